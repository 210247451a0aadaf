// SPDX-License-Identifier: GPL-3.0-or-later
// Gradients of every parameter and of the input of every architecture against central differences, for every setting of every flag
// and choice, one at a time. A sweep over the registry: a new architecture is tested without editing this file.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "array/backend.h"
#include "array/npz.h"
#include "array/rng.h"
#include "experiment/experiment.h"
#include "models/network.h"
#include "models/registry.h"
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
  request.sequence.name = request.sequence.source = "noise";
  request.sequence.length = 6;
  request.sequence.width = 3;
  Rng numbers(7);
  for (std::int64_t t = 0; t < request.sequence.length; ++t) {
    request.sequence.time.push_back(static_cast<double>(t));
    for (std::int64_t j = 0; j < request.sequence.width; ++j) request.sequence.input.push_back(numbers.normal());
  }
  for (std::int64_t j = 0; j < request.sequence.width; ++j) {
    request.sequence.names.push_back("u" + std::to_string(j));
    request.sequence.mean.push_back(0.0);
    request.sequence.deviation.push_back(1.0);
  }
  request.seed = 3;
  request.every = 1;
  request.loss = LossKind::mean;
  request.probe.states = request.probe.gates = request.probe.spectra = request.probe.jacobians = false;
  return request;
}

/// The mean loss 1/(2T) sum |y_t|^2 as a function of the input and the weights: the forward pass alone.
class Loss {
 public:
  Loss(const RunRequest& request, const Arrays& parameters)
      : arrays_(parameters),
        network_(builtin_registry().find(request.preset.architecture), hyper_of(builtin_registry(), request.preset, request.set),
                 {.steps = request.sequence.length, .input = request.sequence.width}) {
    arrays_["input"] = request.sequence.input;
    Graph& graph = network_.graph();
    graph.allocate(cpu_backend(), false);
    graph.bind(network_.input(), arrays_.at("input").data());
    for (const auto& parameter : network_.parameters()) graph.bind(parameter.var, arrays_.at(parameter.name).data());
    for (const auto& state : network_.states()) {
      const std::size_t bytes = static_cast<std::size_t>(count(state.initial.shape())) * bytes_of(state.initial.dtype());
      zeros_.emplace_back(bytes / sizeof(double));
      graph.bind(state.initial, zeros_.back().data());
    }
  }

  double value() {
    network_.graph().forward();
    const auto* y = static_cast<const double*>(network_.graph().value(network_.output()));
    double sum = 0.0;
    for (std::int64_t i = 0; i < count(network_.output().shape()); ++i) sum += y[i] * y[i];
    return 0.5 * sum / static_cast<double>(network_.options().steps);
  }
  /// (f(x + h) - f(x - h)) / 2h at h and h/2, combined so that the error falls with the fourth power of h.
  double slope(const std::string& key, std::size_t entry, double h) {
    return (4.0 * central(key, entry, h / 2) - central(key, entry, h)) / 3.0;
  }

 private:
  double central(const std::string& key, std::size_t entry, double h) { return (moved(key, entry, h) - moved(key, entry, -h)) / (2 * h); }
  double moved(const std::string& key, std::size_t entry, double by) {
    double& place = arrays_.at(key).at(entry);
    const double kept = place;
    place += by;
    const double loss = value();
    place = kept;
    return loss;
  }

  Arrays arrays_;
  Network network_;
  std::vector<std::vector<double>> zeros_;
};

struct Worst {
  double error = 0.0;
  std::string key;
};

/// Weights away from where they start: at an initialisation a final norm makes the loss constant, and gradients vanish for a reason
/// that hides mistakes.
void write_generic_weights(const RunRequest& request) {
  const Network network(builtin_registry().find(request.preset.architecture), hyper_of(builtin_registry(), request.preset, request.set),
                        {.input = request.sequence.width});
  AtomicFile file(request.weights);
  NpzWriter writer(file);
  Rng numbers(11);
  Parameters parameters = network.initialise(request.seed);
  for (auto& entry : parameters.entries()) {
    for (double& value : entry.values) value += 0.5 * numbers.normal();
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

void check(const std::string& architecture, const Settings& set) {
  const Folder folder;
  RunRequest request = small_request(architecture, set);
  request.weights = folder.path / "weights.npz";
  write_generic_weights(request);
  const RunResult result = run(builtin_registry(), request, {}, {});
  const Trace& trace = *result.trace;
  CHECK_SAYS(trace.info.outcome == Outcome::finished, trace.info.sentence);
  const Arrays parameters = arrays_of(trace, "param/");
  Arrays gradients = arrays_of(trace, "gradient/param/");
  CHECK(!parameters.empty());
  for (const auto& [key, values] : parameters)
    CHECK_SAYS(gradients.count(key) && gradients.at(key).size() == values.size(), "no gradient of " + key);
  CHECK_EQUAL(gradients.size(), parameters.size());
  const TraceArray* of_input = trace.find("gradient/input");
  CHECK(of_input);
  gradients["input"] = *of_input->real;

  Loss loss(request, parameters);
  CHECK_CLOSE(trace.info.loss_value, loss.value(), 1e-12 * std::max(1.0, loss.value()));
  constexpr double h = 4e-4;
  const double noise = 20 * std::numeric_limits<double>::epsilon() * trace.info.loss_value / h;
  Worst worst;
  for (const auto& [key, gradient] : gradients) {
    double largest = 0.0;
    for (const double value : gradient) {
      CHECK_SAYS(std::isfinite(value), "gradient of " + key + " is not finite");
      largest = std::max(largest, std::abs(value));
    }
    for (std::size_t i = 0; i < gradient.size(); ++i) {
      const double slope = loss.slope(key, i, h);
      const double gap = std::abs(slope - gradient[i]);
      CHECK_SAYS(gap <= tolerance * largest + noise, "gradient of " + key + "[" + std::to_string(i) + "] is " + test::show(gradient[i]) +
                                                         ", the central difference " + test::show(slope));
      if (largest > 0 && gap / largest > worst.error) worst = {gap / largest, key};
    }
    // A gradient below the noise of the differences has not been checked by them.
    CHECK_SAYS(largest > 100 * noise, "gradient of " + key + " is too small to be checked: " + test::show(largest));
  }
  std::string said = architecture;
  for (const auto& [key, value] : set) said += " " + key + "=" + value;
  std::printf("%s: %zu arrays, worst %.1e in %s\n", said.c_str(), gradients.size(), worst.error, worst.key.c_str());
}

Settings changed(Settings set, const std::string& key, const std::string& value) {
  set.emplace_back(key, value);
  return set;
}

/// The small model, then every other value of every flag and choice, and what an integer that is off (0) by default switches on.
std::vector<Settings> variants(const std::vector<HyperSpec>& table) {
  Settings small;
  for (const HyperSpec& spec : table) {
    if (spec.key == "width" || spec.key == "state") small.emplace_back(spec.key, "4");
    if (spec.key == "layers" || spec.key == "heads") small.emplace_back(spec.key, "2");
  }
  std::vector<Settings> all{small};
  for (const HyperSpec& spec : table) {
    if (spec.kind == HyperKind::flag) all.push_back(changed(small, spec.key, std::get<bool>(spec.standard) ? "no" : "yes"));
    if (spec.kind == HyperKind::choice)
      for (const std::string& choice : spec.choices)
        if (choice != std::get<std::string>(spec.standard)) all.push_back(changed(small, spec.key, choice));
    if (spec.kind == HyperKind::integer && std::get<std::int64_t>(spec.standard) == 0) all.push_back(changed(small, spec.key, "2"));
  }
  return all;
}

/// One case an architecture and a setting, so that each is reported by its name.
const bool registered = [] {
  for (const Architecture& architecture : builtin_registry().all())
    for (const Settings& set : variants(architecture.hyper)) {
      std::string name = "gradients of " + architecture.id;
      for (const auto& [key, value] : set) name += " " + key + "=" + value;
      test::cases().push_back({name, [id = architecture.id, set] { check(id, set); }});
    }
  return true;
}();

}  // namespace

TEST_CASE("there are architectures to differentiate") {
  CHECK(registered);
  CHECK(!builtin_registry().all().empty());
}
