// SPDX-License-Identifier: GPL-3.0-or-later
// Gradients of every parameter and of the input of every architecture, and tangents along them, against central differences, for every
// setting of every flag and choice, one at a time. A sweep over the registry: a new architecture is tested without editing this file.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <map>
#include <numeric>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "array/backend.h"
#include "array/rng.h"
#include "experiment/experiment.h"
#include "files/npz.h"
#include "learning/losses.h"
#include "models/network.h"
#include "models/registry.h"
#include "sweep.h"
#include "test.h"

namespace {

namespace fs = std::filesystem;
using namespace reclab;

constexpr double tolerance = 1e-6;  // of the array's largest gradient, beyond the differences' own noise

using Arrays = std::map<std::string, std::vector<double>>;
using Settings = std::vector<std::pair<std::string, std::string>>;

Arrays arrays_of(const Trace& trace, const std::string& prefix) {
  Arrays arrays;
  for (const auto* array : trace.matching(prefix)) {
    CHECK_SAYS(array->real, array->key + " is complex");
    arrays[array->key.substr(prefix.size())] = *array->real;
  }
  return arrays;
}

RunRequest small_request(const std::string& architecture, const Settings& set) {
  RunRequest request;
  request.preset.id = request.preset.title = request.preset.architecture = architecture;
  request.set = set;
  request.sequence.own().name = request.sequence.own().source = "noise";
  request.sequence.own().length = 6;
  request.sequence.own().width = 3;
  Rng numbers(7);
  for (std::int64_t t = 0; t < request.sequence->length; ++t) {
    request.sequence.own().time.push_back(static_cast<double>(t));
    for (std::int64_t j = 0; j < request.sequence->width; ++j) request.sequence.own().input.push_back(numbers.normal());
  }
  for (std::int64_t j = 0; j < request.sequence->width; ++j) {
    request.sequence.own().names.push_back("u" + std::to_string(j));
    request.sequence.own().mean.push_back(0.0);
    request.sequence.own().deviation.push_back(1.0);
  }
  request.seed = 3;
  request.every = 1;
  request.loss = LossKind::random;  // linear in the outputs: no norm at the end makes it constant
  request.recording.kinds.remove(kinds_of(Stage::late) | Kinds{Kind::state, Kind::signal, Kind::basis, Kind::reconstruction, Kind::gate});
  return request;
}

/// The loss as a function of the input and the weights: the forward pass alone.
class Loss {
 public:
  Loss(const RunRequest& request, const Arrays& parameters)
      : arrays_(parameters),
        network_(builtin_registry().find(request.preset.architecture), hyper_of(builtin_registry(), request.preset, request.set),
                 {.steps = request.sequence->length, .input = request.sequence->width}),
        loss_(request.loss, *request.sequence) {
    arrays_["input"] = request.sequence->input;
    Graph& graph = network_.graph();
    graph.allocate(cpu_backend(), false);
    graph.bind(network_.input(), arrays_.at("input").data());
    for (const auto& parameter : network_.parameters()) graph.bind(parameter.var, arrays_.at(parameter.name).data());
    for (const auto& state : network_.states()) {
      const std::size_t bytes = static_cast<std::size_t>(count(state.initial.shape())) * bytes_of(state.initial.dtype());
      starts_.emplace_back(bytes / sizeof(double), state.start);
      graph.bind(state.initial, starts_.back().data());
      if (state.unscaled_initial) graph.bind(state.unscaled_initial, starts_.back().data());
    }
  }

  double value() {
    network_.graph().forward();
    return weigh().sum;
  }
  /// What its terms add up to without their signs: rounding is a share of it.
  double size() {
    network_.graph().forward();
    return weigh().size;
  }
  /// (f(x + h) - f(x - h)) / 2h at h and h/2, combined so that the error falls with the fourth power of h.
  using Direction = std::vector<std::pair<std::size_t, double>>;  // entries and how far each goes
  double slope(const std::string& key, const Direction& along, double h) {
    return (4.0 * central(key, along, h / 2) - central(key, along, h)) / 3.0;
  }
  /// How it moves along a direction, by forward mode.
  double tangent(const std::string& key, const Direction& along) {
    std::vector<double> moved(arrays_.at(key).size(), 0.0);
    for (const auto& [entry, weight] : along) moved[entry] += weight;
    Graph& graph = network_.graph();
    const Var leaf = key == "input" ? network_.input() : std::ranges::find(network_.parameters(), key, &Network::ParameterVar::name)->var;
    graph.bind_tangent(leaf, moved.data());
    graph.forward();
    graph.push_tangents();
    const auto* dy = static_cast<const double*>(graph.tangent(network_.output()));
    weigh();
    const double sum = dy ? std::inner_product(slopes_.begin(), slopes_.end(), dy, 0.0) : 0.0;
    graph.bind_tangent(leaf, nullptr);
    return sum;
  }
  double moved(const std::string& key, const Direction& along, double by) {
    std::vector<double>& array = arrays_.at(key);
    const std::vector<double> kept = array;
    for (const auto& [entry, weight] : along) array[entry] += by * weight;
    const double loss = value();
    std::copy(kept.begin(), kept.end(), array.begin());  // the graph is bound to this memory
    return loss;
  }

 private:
  struct Weighed {
    double sum = 0.0, size = 0.0;
  };
  Weighed weigh() {
    const auto* y = static_cast<const double*>(network_.graph().value(network_.output()));
    const std::int64_t steps = network_.options().steps, outputs = count(network_.output().shape()) / steps;
    slopes_.assign(static_cast<std::size_t>(steps * outputs), 0.0);
    Weighed loss{loss_.segment(0, steps, outputs, {y, slopes_.size()}, slopes_)};
    for (std::size_t i = 0; i < slopes_.size(); ++i) loss.size += std::abs(slopes_[i] * y[i]);
    return loss;
  }
  double central(const std::string& key, const Direction& along, double h) {
    return (moved(key, along, h) - moved(key, along, -h)) / (2 * h);
  }

  Arrays arrays_;
  Network network_;
  SequenceLoss loss_;
  std::vector<double> slopes_;  // of the loss by each output
  std::vector<std::vector<double>> starts_;
};

struct Worst {
  double error = 0.0;
  std::string key;
};

/// Weights away from where they start: at an initialisation a final norm makes the loss constant, and gradients vanish for a reason
/// that hides mistakes.
void write_generic_weights(const RunRequest& request, double spread) {
  const Network network(builtin_registry().find(request.preset.architecture), hyper_of(builtin_registry(), request.preset, request.set),
                        {.input = request.sequence->width});
  AtomicFile file(request.weights);
  NpzWriter writer(file);
  Rng numbers(11);
  Parameters parameters = network.initialise(request.seed);
  for (auto& entry : parameters.entries()) {
    // 1/theta stays above 0, since a memory whose window is negative grows beyond all bounds.
    const bool positive = entry.name.ends_with("theta_inv");
    for (double& value : entry.values) value = positive ? value * std::exp(spread * numbers.normal()) : value + spread * numbers.normal();
    writer.add("param/" + entry.name, entry.shape, std::span<const double>(entry.values));
  }
  writer.finish();
  file.commit();
}

struct Folder {
  fs::path path = fs::temp_directory_path() / ("reclab-gradients-" + std::to_string(::getpid()));
  Folder() { fs::create_directories(path); }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
};

Settings changed(Settings set, const std::string& key, const std::string& value) {
  set.emplace_back(key, value);
  return set;
}

bool possible(const Architecture& architecture, const Settings& set) {
  Preset preset;
  preset.id = preset.architecture = architecture.id;
  try {
    hyper_of(builtin_registry(), preset, set);
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// A run with weights with which every gradient can be checked: weights with which the model explodes would hide everything behind their
/// size, so nearer to the start, then.
RunResult checkable_run(RunRequest& request) {
  double spread = 0.5;
  do {
    write_generic_weights(request, spread);
    RunResult result = run(builtin_registry(), request, {}, {});
    spread /= 2;
    if ((result.trace->info.outcome == Outcome::finished && std::abs(result.trace->info.loss_value) < 1e4) || spread <= 0.01) return result;
  } while (true);
}

/// Whether all that there is of some gradient is rounding: of the two features that a relu makes one may be all there is, and then queries
/// cancel.
bool some_cancel(const RunRequest& request, const Trace& trace) {
  const double rounding = std::numeric_limits<double>::epsilon() * Loss(request, arrays_of(trace, "param/")).size();
  for (const auto& [key, gradient] : arrays_of(trace, "gradient/param/")) {
    double largest = 0.0;
    for (const double value : gradient) largest = std::max(largest, std::abs(value));
    if (largest > 0.0 && largest < rounding) return true;
  }
  return false;
}

void check(const std::string& architecture, const Settings& asked) {
  const Folder folder;
  Settings set = asked;
  RunRequest request = small_request(architecture, set);
  request.weights = folder.path / "weights.npz";
  RunResult result = checkable_run(request);
  // What cancels in a narrow model does not in a wider one.
  for (const char* width : {"8", "16"}) {
    if (!some_cancel(request, *result.trace)) break;
    const Settings wider = changed(asked, "width", width);
    if (!possible(builtin_registry().find(architecture), wider)) continue;
    set = wider;
    request.set = set;
    result = checkable_run(request);
  }
  const Trace& trace = *result.trace;
  CHECK_SAYS(trace.info.outcome == Outcome::finished, trace.info.sentence);
  const Arrays parameters = arrays_of(trace, "param/");
  Arrays gradients = arrays_of(trace, "gradient/param/");
  for (const auto& [key, values] : parameters)
    CHECK_SAYS(gradients.count(key) && gradients.at(key).size() == values.size(), "no gradient of " + key);
  CHECK_EQUAL(gradients.size(), parameters.size());
  const TraceArray* of_input = trace.find("gradient/input");
  CHECK(of_input);
  gradients["input"] = *of_input->real;

  Loss loss(request, parameters);
  const double size = loss.size();
  CHECK_CLOSE(trace.info.loss_value, loss.value(), 1e-12 * std::max(1.0, size));
  const auto noise_of = [&](double h) { return 5 * std::numeric_limits<double>::epsilon() * size / h; };
  constexpr double longest = 4e-4;
  const double noise = noise_of(longest);
  Worst worst;
  Rng numbers(5);
  for (const auto& [key, gradient] : gradients) {
    double largest = 0.0;
    for (const double value : gradient) {
      CHECK_SAYS(std::isfinite(value), "gradient of " + key + " is not finite");
      largest = std::max(largest, std::abs(value));
    }
    // Every entry of a small array; of a large one some, and a direction in which all of them take part.
    constexpr std::size_t most = 24;
    std::vector<Loss::Direction> directions;
    for (std::size_t i = 0; i < std::min(most, gradient.size()); ++i)
      directions.push_back({{gradient.size() <= most ? i : i * gradient.size() / most, 1.0}});
    if (gradient.size() > most) {
      directions.emplace_back();
      for (std::size_t i = 0; i < gradient.size(); ++i)
        directions.back().emplace_back(i, numbers.normal() / std::sqrt(static_cast<double>(gradient.size())));
    }
    for (const auto& along : directions) {
      double expected = 0.0;
      for (const auto& [entry, weight] : along) expected += weight * gradient[entry];
      // A step may cross a kink of relu, |x| or max: a shorter one does not, though it has more noise.
      double slope = 0.0, gap = 0.0, allowed = 0.0;
      for (double h = longest; h > longest / 2000; h /= 4) {
        slope = loss.slope(key, along, h);
        gap = std::abs(slope - expected);
        allowed = tolerance * largest + noise_of(h);
        if (gap <= allowed || (largest > 0 && noise_of(h) > 1e-2 * largest)) break;
      }
      CHECK_SAYS(gap <= allowed, "gradient of " + key + "[" + std::to_string(along[0].first) + (along.size() > 1 ? " and all others" : "") +
                                     "] is " + test::show(expected) + ", the central difference " + test::show(slope));
      if (largest > 0 && gap / largest > worst.error) worst = {gap / largest, key};
      if (&along != &directions.back()) continue;
      const double tangent = loss.tangent(key, along),
                   far = std::accumulate(along.begin(), along.end(), 0.0,
                                         [](double sum, const auto& one) { return sum + std::abs(one.second); });
      CHECK_SAYS(std::abs(tangent - slope) <= allowed,
                 "tangent of the loss along " + key + " is " + test::show(tangent) + ", the central difference " + test::show(slope));
      CHECK_SAYS(std::abs(tangent - expected) <= 1e-10 * largest * far,
                 "tangent of the loss along " + key + " is " + test::show(tangent) + ", by the gradient " + test::show(expected));
    }
    // A gradient below the noise of the differences has not been checked by them, unless a long step changes nothing either; or, where it
    // is 0, as behind a sign, the loss moves in steps and a short one changes no bit of it.
    if (largest <= 100 * noise)
      for (const auto& along : directions)
        CHECK_SAYS(std::abs(loss.moved(key, along, 0.1) - trace.info.loss_value) <= 1e-9 * size ||
                       (largest == 0.0 && loss.moved(key, along, longest / 1000) == loss.value() &&
                        loss.moved(key, along, -longest / 1000) == loss.value()),
                   "gradient of " + key + " is too small to be checked: " + test::show(largest));
  }
  std::string said = architecture;
  for (const auto& [key, value] : set) said += " " + key + "=" + value;
  std::printf("%s: %zu arrays, worst %.1e in %s\n", said.c_str(), gradients.size(), worst.error, worst.key.c_str());
}

/// Two layers, or as many as show each kind that the model has by default.
std::string few_layers(const Architecture& architecture) {
  std::int64_t few = 2;
  if (architecture.kind) {
    const Hyper hyper(architecture.hyper);
    std::set<const Architecture*> seen;
    for (std::int64_t layer = 0; layer < hyper.integer("layers"); ++layer)
      if (seen.insert(architecture.kind(hyper, layer).architecture).second) few = std::max(few, layer + 1);
  }
  return std::to_string(few);
}

/// The smallest model that is possible, then every other value of every flag and choice, and what an integer that is off (0) by default
/// switches on.
std::vector<Settings> variants(const Architecture& architecture) {
  const std::vector<HyperSpec>& table = architecture.hyper;
  Settings small;
  for (const char* width : {"4", "8", "16"}) {
    small.clear();
    for (const HyperSpec& spec : table) {
      if (spec.key == "width" || spec.key == "state") small.emplace_back(spec.key, width);
      if (spec.key == "heads") small.emplace_back(spec.key, "2");
      if (spec.key == "layers") small.emplace_back(spec.key, few_layers(architecture));
      if (spec.key == "inner") small.emplace_back(spec.key, "8");
      if (spec.key == "features") small.emplace_back(spec.key, "5");
      if (spec.key == "max_steps") small.emplace_back(spec.key, "30");  // more than are tried: what comes after the end is computed too
    }
    if (possible(architecture, small)) break;
  }
  std::vector<Settings> all{small};
  // A value that is not possible alone is tried beside one of another choice, and with wider heads.
  const auto beside_another = [&](const Settings& set) {
    if (possible(architecture, set)) return set;
    for (const Settings& base : {set, changed(set, "width", "8")})
      for (const HyperSpec& other : table)
        for (const std::string& value : other.choices)
          if (const Settings both = changed(base, other.key, value); other.key != set.back().first && possible(architecture, both))
            return both;
    return set;
  };
  for (const HyperSpec& spec : table) {
    if (spec.key == "straight_through") continue;  // its gradient is no slope, by intention: the golden data check it
    if (spec.kind == HyperKind::flag) all.push_back(changed(small, spec.key, std::get<bool>(spec.standard) ? "no" : "yes"));
    // Held, what is taken from the exponents has no slope, which is exact where it cancels.
    if (spec.key == "hold_maximum") all.back() = changed(all.back(), "feature_eps", "0");
    if (spec.kind == HyperKind::choice)
      for (const std::string& choice : spec.choices)
        if (choice != std::get<std::string>(spec.standard)) {
          all.push_back(beside_another(changed(small, spec.key, choice)));
          // The sum of absolute weights is held. A norm takes it out but for its epsilon, and then holding it is exact.
          if (architecture.id == "retnet" && choice == "absolute") all.back() = changed(all.back(), "norm_eps", "1e-12");
        }
    if (spec.kind == HyperKind::integer && std::get<std::int64_t>(spec.standard) == 0 && spec.key != "inner")
      for (const char* value : {"2", "4", "8"})
        if (possible(architecture, changed(small, spec.key, value))) {
          all.push_back(changed(small, spec.key, value));
          break;
        }
  }
  return all;
}

/// One case an architecture and a setting, so that each is reported by its name.
const bool registered = [] {
  for (const Architecture& architecture : builtin_registry().all())
    for (const Settings& set : variants(architecture)) {
      std::string name = architecture.id;
      for (const auto& [key, value] : set) name += " " + key + "=" + value;
      test::add_case(architecture.family, "gradients", name, [id = architecture.id, set] { check(id, set); });
    }
  return true;
}();

}  // namespace

TEST_CASE("there are architectures to differentiate") {
  CHECK(registered);
  CHECK(!builtin_registry().all().empty());
}
