// SPDX-License-Identifier: GPL-3.0-or-later
// The engine against independent implementations: every array of every golden file of tests/oracle/golden (see its README).
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "array/backend.h"
#include "execution/rollout.h"
#include "experiment/experiment.h"
#include "files/npz.h"
#include "learning/losses.h"
#include "models/network.h"
#include "models/registry.h"
#include "places.h"
#include "sweep.h"
#include "targets.h"
#include "test.h"

namespace {

namespace fs = std::filesystem;
using namespace reclab;
using Golden = std::map<std::string, NpyArray>;

constexpr double relative_tolerance = 1e-9;  // of the array's largest magnitude
constexpr double log_tolerance = 1e-8;       // of logarithms to base 10

bool starts(const std::string& text, const std::string& prefix) { return text.rfind(prefix, 0) == 0; }

/// What is compared in the same way: the keys without layers and names.
std::string kind_of(const std::string& key) {
  for (const char* kind : {"state", "gradient/state", "gradient/param", "jacobian_min", "jacobian", "spectrum", "param"})
    if (starts(key, std::string(kind) + "/")) return kind;
  return key;
}

HyperValue value_of(const nlohmann::json& json) {
  if (json.is_boolean()) return json.get<bool>();
  if (json.is_number_integer()) return json.get<std::int64_t>();
  if (json.is_number()) return json.get<double>();
  return json.get<std::string>();
}

Golden read_golden(const fs::path& file) {
  const NpzFile archive(file);
  Golden arrays;
  for (const std::string& name : archive.names()) arrays.emplace(name, archive.read(name));
  return arrays;
}

nlohmann::json meta_of(const Golden& golden) {
  const std::vector<double>& bytes = golden.at("meta").real;
  return nlohmann::json::parse(std::string(bytes.begin(), bytes.end()));
}

/// A folder of this process that goes away with it.
struct Folder {
  fs::path path = fs::temp_directory_path() / ("reclab-oracle-" + std::to_string(::getpid()));
  Folder() { fs::create_directories(path); }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
};

RunRequest request_of(const std::string& name, const Golden& golden, const nlohmann::json& meta, const Folder& folder) {
  RunRequest request;
  request.preset.id = request.preset.title = name;
  request.preset.architecture = meta.at("architecture").get<std::string>();
  for (const auto& [key, value] : meta.at("set").items()) request.preset.hyper.emplace_back(key, value_of(value));

  const NpyArray& input = golden.at("input");
  request.sequence.own().name = request.sequence.own().source = name;
  request.sequence.own().length = input.shape.at(0);
  request.sequence.own().width = input.shape.at(1);
  request.sequence.own().input = input.real;
  for (std::int64_t t = 0; t < request.sequence->length; ++t)
    request.sequence.own().time.push_back(golden.count("time") ? golden.at("time").real.at(static_cast<std::size_t>(t))
                                                               : static_cast<double>(t));
  for (std::int64_t j = 0; j < request.sequence->width; ++j) {
    request.sequence.own().names.push_back("u" + std::to_string(j));
    request.sequence.own().mean.push_back(0.0);
    request.sequence.own().deviation.push_back(1.0);
  }

  request.weights = folder.path / (name + ".npz");
  AtomicFile file(request.weights);
  NpzWriter weights(file);
  for (const auto& [key, array] : golden)
    if (starts(key, "param/")) weights.add(key, array.shape, std::span<const double>(array.real));
  weights.finish();
  file.commit();

  request.loss = meta.at("loss") == "last" ? LossKind::last : meta.at("loss") == "task" ? LossKind::task : LossKind::mean;
  // Of a target of zeros, which the head is there for.
  if (request.loss == LossKind::task)
    test::aim_at(request.sequence.own(), std::vector<double>(golden.at("output").real.size(), 0.0), golden.at("output").shape.at(1));
  request.every = 1;
  return request;
}

/// The largest difference of two values, as a multiple of the tolerance's unit; infinite when only one is finite or one is NaN.
double difference(double actual, double expected) {
  if (actual == expected) return 0.0;  // also two infinities of one sign
  const double gap = std::abs(actual - expected);
  return std::isfinite(gap) ? gap : std::numeric_limits<double>::infinity();
}
double difference(std::complex<double> actual, std::complex<double> expected) {
  return std::hypot(difference(actual.real(), expected.real()), difference(actual.imag(), expected.imag()));
}

template <class T>
double relative_error(const std::vector<T>& actual, const std::vector<T>& expected) {
  double largest = 0.0, worst = 0.0;
  for (const T& value : expected) largest = std::max(largest, std::abs(value));
  for (std::size_t i = 0; i < expected.size(); ++i) worst = std::max(worst, difference(actual[i], expected[i]));
  return worst == 0.0 ? 0.0 : worst / largest;
}

double log_error(const std::vector<double>& actual, const std::vector<double>& expected) {
  double worst = 0.0;
  for (std::size_t i = 0; i < expected.size(); ++i) worst = std::max(worst, difference(actual[i], expected[i]));
  return worst;
}

/// Row by row, each expected eigenvalue with the nearest one not yet taken; relative to the largest modulus of all.
double spectrum_error(const std::vector<std::complex<double>>& actual, const std::vector<std::complex<double>>& expected,
                      std::size_t rows) {
  const std::size_t n = expected.size() / rows;
  double largest = 0.0, worst = 0.0;
  for (const auto& value : expected) largest = std::max(largest, std::abs(value));
  for (std::size_t row = 0; row < rows; ++row) {
    std::vector<std::complex<double>> left(&actual[row * n], &actual[row * n] + n);
    for (std::size_t i = 0; i < n; ++i) {
      const auto wanted = expected[row * n + i];
      const auto nearest = std::min_element(left.begin(), left.end(),
                                            [&](const auto& a, const auto& b) { return difference(a, wanted) < difference(b, wanted); });
      worst = std::max(worst, difference(*nearest, wanted));
      left.erase(nearest);
    }
  }
  return worst == 0.0 ? 0.0 : worst / largest;  // all of them may be 0
}

double error_of(const std::string& key, const TraceArray& actual, const NpyArray& expected) {
  CHECK_SAYS(actual.shape == expected.shape, key + " is " + to_string(actual.shape) + ", not " + to_string(expected.shape));
  CHECK_SAYS(actual.is_complex() == expected.is_complex(), key + " is real on one side and complex on the other");
  const std::string kind = kind_of(key);
  if (kind == "spectrum") return spectrum_error(*actual.complex, expected.complex, static_cast<std::size_t>(expected.shape.at(0)));
  if (expected.is_complex()) return relative_error(*actual.complex, expected.complex);
  if (kind == "gradient/state" || starts(kind, "jacobian")) return log_error(*actual.real, expected.real);
  return relative_error(*actual.real, expected.real);
}

double tolerance_of(const std::string& kind) {
  return kind == "gradient/state" || starts(kind, "jacobian") ? log_tolerance : relative_tolerance;
}

/// Compares every golden array that `wanted` takes with the trace's; adds what is wrong, and the worst error of each kind.
template <class Wanted>
void compare(const Golden& golden, const Trace& trace, const std::string& prefix, const Wanted& wanted,
             std::map<std::string, double>& worst, std::vector<std::string>& wrong) {
  for (const auto& [key, expected] : golden) {
    const std::string kind = kind_of(key);
    if (key == "meta" || key == "time" || !wanted(kind)) continue;
    const TraceArray* actual = trace.find(key);
    if (!actual) {
      wrong.push_back(prefix + key + " is missing");
      continue;
    }
    try {
      const double error = error_of(key, *actual, expected);
      worst[prefix + kind] = std::max(worst[prefix + kind], error);
      if (!(error <= tolerance_of(kind))) wrong.push_back(prefix + key + " is off by " + test::show(error));
    } catch (const test::Failure& failure) {
      wrong.push_back(prefix + failure.what());
    }
  }
}

void compare_with_engine(const fs::path& file) {
  const Folder folder;
  const std::string name = file.stem().string();
  const Golden golden = read_golden(file);
  const nlohmann::json meta = meta_of(golden);
  RunRequest request = request_of(name, golden, meta, folder);
  const RunResult result = run(builtin_registry(), request, {}, {});
  const Trace& trace = *result.trace;
  CHECK_SAYS(trace.info.outcome == Outcome::finished, trace.info.sentence);

  std::map<std::string, double> worst;
  std::vector<std::string> wrong;
  compare(golden, trace, "", [](const std::string&) { return true; }, worst, wrong);
  // What the engine has and the oracle has not would be untested: a parameter, a gradient, a state, a layer. The gradient of the state
  // before the first step is held to the products of the steps' Jacobians (tests/engine/execution/test_step_map.cpp).
  const auto undefined = meta.value("undefined", std::vector<std::string>());
  for (const auto& array : trace.arrays())
    for (const char* prefix : {"param/", "gradient/", "state/", "spectrum/", "jacobian"})
      if (starts(array->key, prefix) && !starts(array->key, "gradient/initial/") && !golden.count(array->key) &&
          std::find(undefined.begin(), undefined.end(), array->key) == undefined.end())
        wrong.push_back(array->key + " is not in the golden file");

  // Every other exact form gives the same output and the same gradients.
  for (const std::string& form : card(builtin_registry(), request.preset, request.sequence->width).forms) {
    if (form == "sequential") continue;
    request.form = form;
    const RunResult other = run(builtin_registry(), request, {}, {});
    // A Newton form that does not converge is run as the sequential one, says so, and is called so.
    const bool instead = std::ranges::any_of(other.trace->info.notes, [](const Sentence& note) {
      return note.terminal_text().find("the sequential form was run instead") != std::string::npos;
    });
    CHECK_SAYS(other.trace->info.form == form || (instead && other.trace->info.form == "sequential"),
               form + " is called " + other.trace->info.form);
    compare(
        golden, *other.trace, form + ":",
        [](const std::string& kind) { return kind == "output" || kind == "gradient/input" || kind == "gradient/param"; }, worst, wrong);
  }

  for (const auto& [kind, error] : worst) {
    const char* what = kind == "output" ? "outputs" : kind == "state" ? "states" : starts(kind, "gradient/") ? "gradients" : nullptr;
    if (what) test::measured(request.preset.architecture, what, kind == "gradient/state" ? std::log(10.0) * error : error);
  }
  std::string summary = name + " (" + meta.at("source").get<std::string>() + "):";
  for (const auto& [kind, error] : worst) {
    char text[64];
    std::snprintf(text, sizeof text, " %s %.1e", kind.c_str(), error);
    summary += text;
  }
  std::printf("%s\n", summary.c_str());
  std::string all;
  for (const std::string& sentence : wrong) all += "\n  " + sentence;
  CHECK_SAYS(wrong.empty(), name + all);
}

/// A run that is cut and continued from its exported state gives the whole one's outputs and states to the bit.
void continue_anywhere(const fs::path& path) {
  const Folder folder;
  const Golden golden = read_golden(path);
  RunRequest whole = request_of(path.stem().string(), golden, meta_of(golden), folder);
  whole.recording.kinds.remove(kinds_of(Stage::late) | Kinds{Kind::gradient});
  const Network recording(builtin_registry().find(whole.preset.architecture), hyper_of(builtin_registry(), whole.preset, {}),
                          {.input = whole.sequence->width});
  if (std::ranges::any_of(recording.layers(), &Network::LayerInfo::reversed))
    throw test::Skip("it runs from the end too, whose state is no start");
  const RunResult all = run(builtin_registry(), whole, {}, {});
  const std::int64_t length = whole.sequence->length, width = whole.sequence->width;
  for (const std::int64_t cut : {std::int64_t{1}, length / 3, length - 2}) {
    RunRequest first = whole, second = whole;
    for (auto& [part, from, to] : {std::tuple(&first, std::int64_t{0}, cut), std::tuple(&second, cut, length)}) {
      part->sequence.own().length = to - from;
      part->sequence.own().input.assign(whole.sequence->input.begin() + from * width, whole.sequence->input.begin() + to * width);
      part->sequence.own().time.assign(whole.sequence->time.begin() + from, whole.sequence->time.begin() + to);
      part->sequence.own().target.resize(static_cast<std::size_t>((to - from) * whole.sequence->target_width));
      if (!whole.sequence->mask.empty()) part->sequence.own().mask.resize(static_cast<std::size_t>(to - from));
    }
    export_run(run(builtin_registry(), first, {}, {}), folder.path / "first", false);
    second.state = folder.path / "first/state.npz";
    const RunResult rest = run(builtin_registry(), second, {}, {});
    for (const auto& array : rest.trace->arrays()) {
      if (array->key != "output" && !starts(array->key, "state/")) continue;
      const TraceArray* full = all.trace->find(array->key);
      const auto skip = static_cast<std::ptrdiff_t>(cut * array->row_size());
      const bool same =
          array->is_complex()
              ? std::equal(array->complex->begin(), array->complex->end(), full->complex->begin() + skip, full->complex->end())
              : std::equal(array->real->begin(), array->real->end(), full->real->begin() + skip, full->real->end());
      CHECK_SAYS(same, array->key + " of a run that was cut at " + std::to_string(cut) + " is not that of the whole one");
    }
  }
}

/// Two sequences side by side give what each gives alone, in every form.
void run_a_batch(const fs::path& path) {
  const Folder folder;
  const Golden golden = read_golden(path);
  const RunRequest request = request_of(path.stem().string(), golden, meta_of(golden), folder);
  const Architecture& architecture = builtin_registry().find(request.preset.architecture);
  const Hyper hyper = hyper_of(builtin_registry(), request.preset, {});
  const SequenceLoss loss(request.loss == LossKind::task ? LossKind::task : LossKind::mean, request.sequence);
  const Network recording(architecture, hyper, {.input = request.sequence->width, .head = loss.outputs()});
  Parameters parameters = recording.initialise(1);
  for (auto& entry : parameters.entries()) entry.values = golden.at("param/" + entry.name).real;
  const std::vector<double>& expected = golden.at("output").real;
  const auto steps = static_cast<std::size_t>(request.sequence->length), row = expected.size() / steps;
  const Model model(architecture, hyper, parameters, cpu_backend(), DType::f64);
  for (const Form form : recording.forms()) {
    Rollout rollout(model, Batch(request.sequence, loss, 2), {.form = form});
    std::vector<double> outputs;
    CHECK(!rollout.forward(
        [&](const Rollout::Segment& s) {
          const auto values =
              to_double(cpu_backend(), DType::f64, s.network.graph().value(s.network.output()), count(s.network.output().shape()));
          outputs.insert(outputs.end(), values.begin(), values.end());
        },
        {}));
    CHECK_EQUAL(outputs.size(), 2 * expected.size());
    std::vector<double> twice;
    for (std::size_t t = 0; t < steps; ++t)
      for (int b = 0; b < 2; ++b)
        twice.insert(twice.end(), expected.begin() + static_cast<std::ptrdiff_t>(t * row),
                     expected.begin() + static_cast<std::ptrdiff_t>((t + 1) * row));
    const double error = relative_error(outputs, twice);
    CHECK_SAYS(error <= relative_tolerance, std::string(to_string(form)) + " of two sequences side by side is off by " + test::show(error));
  }
}

std::vector<fs::path> golden_files() {
  std::vector<fs::path> files;
  const fs::path folder = test::source("tests/oracle/golden");
  if (fs::is_directory(folder))
    for (const auto& entry : fs::recursive_directory_iterator(folder))
      if (entry.path().extension() == ".npz" && entry.path().lexically_relative(folder).begin()->string() != "pytorch")
        files.push_back(entry.path());
  std::sort(files.begin(), files.end());
  return files;
}

/// Cases of their own for each golden file, so that each is reported by its name.
const bool registered = [] {
  for (const fs::path& file : golden_files()) {
    const std::string name = file.stem().string(),
                      family = builtin_registry().find(meta_of(read_golden(file)).at("architecture").get<std::string>()).family;
    test::add_case(family, "oracle", name, [file] { compare_with_engine(file); });
    test::add_case(family, "continued", name, [file] { continue_anywhere(file); });
    test::add_case(family, "batch", name, [file] { run_a_batch(file); });
  }
  return true;
}();

}  // namespace

TEST_CASE("there is golden data of every architecture, and of every value that a flag or a choice has") {
  CHECK(registered);
  std::map<std::string, std::map<std::string, std::set<std::string>>> covered;  // architecture, key, values
  for (const fs::path& file : golden_files()) {
    const nlohmann::json meta = meta_of(read_golden(file));
    const Architecture& of = builtin_registry().find(meta.at("architecture").get<std::string>());
    std::string folder = of.family;
    std::ranges::replace(folder, '-', '_');
    CHECK_SAYS(file.parent_path().filename() == folder, file.string() + " lies in the folder of another family");
    Preset preset;
    preset.id = preset.architecture = meta.at("architecture").get<std::string>();
    for (const auto& [key, value] : meta.at("set").items()) preset.hyper.emplace_back(key, value_of(value));
    const Hyper hyper = hyper_of(builtin_registry(), preset, {});
    for (const HyperSpec& spec : hyper.table()) covered[preset.architecture][spec.key].insert(hyper.text(spec.key));
  }
  std::string missing;
  for (const Architecture& architecture : builtin_registry().all()) {
    // Without an independent computation of its numbers an architecture is not done.
    CHECK_SAYS(covered.count(architecture.id), "no golden data of " + architecture.id);
    for (const HyperSpec& spec : architecture.hyper) {
      // These say how weights are drawn, or are the network's round any architecture (test_stack.cpp).
      if (spec.initialisation_only || spec.key == "direction" || spec.key == "encoder_bias") continue;
      const auto& values = covered.at(architecture.id).at(spec.key);
      std::vector<std::string> all = spec.choices;
      if (spec.kind == HyperKind::flag) all = {"true", "false"};
      for (const std::string& value : all)
        if (!values.count(value)) missing += "\n  " + architecture.id + " " + spec.key + "=" + value;
    }
  }
  CHECK_SAYS(missing.empty(), "no golden data has" + missing);
}
