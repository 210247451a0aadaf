// SPDX-License-Identifier: GPL-3.0-or-later
// Models at the edge: weights and inputs scaled by thousands or to next to nothing, every hyper-parameter at the ends of its range. What is
// representable is finite and the same in every exact form; what is not is named with its first step.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "experiment/experiment.h"
#include "extremes.h"
#include "models/network.h"
#include "models/registry.h"
#include "scratch.h"
#include "sweep.h"
#include "test.h"

using namespace reclab;
using test::finite, test::largest, test::Numbers, test::request_for, test::says, test::write_weights;

namespace {

/// A model with some of its weights changed, in both precisions and every form: all that it has is finite, and the output not nothing.
void check_changed(const std::string& architecture, const std::vector<std::pair<std::string, std::string>>& set,
                   const std::function<double(const std::string&, double)>& change, bool gradients = true) {
  for (const std::string dtype : {"f64", "f32"}) {
    RunRequest request = request_for(architecture, 40);
    request.set = set;
    request.dtype = dtype;
    request.loss = LossKind::random;
    if (!gradients) request.recording.kinds.remove({Kind::gradient});
    const test::Scratch folder;
    request.weights = folder / "w.npz";
    write_weights(request, request.weights, change);
    for (const std::string& form : card(builtin_registry(), request.preset).forms) {
      request.form = form;
      const auto trace = run(builtin_registry(), request, {}, {}).trace;
      const std::string what = dtype + ", " + form + ": ";
      CHECK_SAYS(trace->info.outcome == Outcome::finished && trace->info.sentence.empty(), what + trace->info.sentence);
      for (const TraceArray* array : trace->matching("gradient/param/")) CHECK_SAYS(finite(*array->real), what + array->key);
      CHECK_SAYS(finite(*trace->find("output")->real) && largest(*trace->find("output")->real) > 0.0, what + "output");
    }
  }
}
double as_it_is(const std::string&, double value) { return value; }
/// Weights whose name has the part in it become `to`.
std::function<double(const std::string&, double)> all_of(const std::string& part, double to) {
  return [=](const std::string& name, double value) { return says(name, part) ? to : value; };
}

}  // namespace

TEST_CASE("retnet: decays 2^-68 from 1, whose normaliser (1 - γ)/(1 - γ^t) is 1/t") {
  check_changed("retnet", {{"width", "128"}, {"heads", "64"}, {"block", "none"}, {"norm", "no"}}, as_it_is);
}
TEST_CASE("hyena: windows of a normalised filter that all fall below the range, though their ratios do not") {
  check_changed("hyena",
                {{"width", "4"},
                 {"normalized", "yes"},
                 {"target", "1e-9"},
                 {"fast_decay_pct", "0.001"},
                 {"slow_decay_pct", "0.001"},
                 {"l_max", "40"}},
                as_it_is);
}
TEST_CASE("mlstm: a stabiliser of -1000 and less, e^-m beyond the range") {
  check_changed("mlstm", {{"width", "4"}, {"heads", "2"}, {"inner", "8"}, {"eps", "0"}}, all_of("gate.bias", -1000.0));
}
TEST_CASE("mlstm: a stabiliser of 1000, e^-m below the range, where keys are nothing") {
  // What is read is 0; its slope is e^m, out of range.
  check_changed(
      "mlstm", {{"width", "4"}, {"heads", "2"}, {"inner", "8"}, {"eps", "0"}},
      [](const std::string& name, double value) { return says(name, "igate.bias") ? 1000.0
                                                         : says(name, "k_proj")   ? 0.0
                                                                                  : value; }, false);
}
TEST_CASE("lru: exp(-exp(ν)) where the inner one is beyond the range") {
  check_changed("lru", {{"width", "4"}, {"state", "4"}}, all_of("nu_log", 800.0));
}
TEST_CASE("mamba: exp(-Δ exp(A_log)) likewise") { check_changed("mamba", {{"width", "4"}, {"state", "4"}}, all_of("A_log", 800.0)); }
TEST_CASE("rwkv-4: exp(-exp(time_decay)) likewise") { check_changed("rwkv-4", {{"width", "4"}}, all_of("time_decay", 800.0)); }
TEST_CASE("s4d: Re A = -exp(log_A_real) beyond the range") {
  check_changed("s4d", {{"width", "4"}, {"state", "4"}}, all_of("log_A_real", 800.0));
}
TEST_CASE("s4: Re Λ = -exp(A_real) beyond the range") { check_changed("s4", {{"width", "4"}, {"state", "4"}}, all_of("A_real", 800.0)); }
TEST_CASE("s5: an eigenvalue of 0, where (e^(λΔ) - 1)/λ is Δ") {
  check_changed("s5", {{"width", "4"}, {"state", "4"}}, all_of("Lambda", 0.0));
}
TEST_CASE("deltanet: positive features that all underflow, divided by their sum") {
  check_changed("deltanet", {{"width", "4"}, {"heads", "2"}, {"feature_map", "elu"}, {"sum_eps", "0"}, {"block", "none"}},
                [](const std::string& name, double value) { return says(name, "qkvb") ? 2e4 * value : value; });
}

TEST_CASE("s4d and s5: a step of 1e-6 keeps the digits of (e^(λΔ) - 1)/λ") {
  // Over 40 steps of 1e-6 nothing decays, so the output is that of a sum with B̄ = Δ to 1e-4, and doubling the step doubles the state.
  for (const std::string architecture : {"s4d", "s5"})
    for (const std::string dtype : {"f64", "f32"}) {
      std::vector<Numbers> states;
      for (const char* step : {"1e-06", "2e-06"}) {
        RunRequest request = request_for(architecture, 40);
        request.set = {{"width", "4"}, {"state", "4"}, {"dt_min", step}, {"dt_max", step}, {"block", "none"}};
        request.dtype = dtype;
        const auto trace = run(builtin_registry(), request, {}, {}).trace;
        states.emplace_back();
        for (const auto& z : *trace->find("state/0/h")->complex) states.back().push_back(std::abs(z));
      }
      const double size = largest(states[1]);
      for (std::size_t i = 0; i < states[0].size(); ++i)
        CHECK_SAYS(std::abs(states[1][i] - 2.0 * states[0][i]) <= 1e-3 * size,
                   architecture + ", " + dtype + ": " + test::show(states[0][i]) + " and " + test::show(states[1][i]));
    }
}

namespace {

using test::Settings;

struct Counts {
  int finite = 0, named = 0, diverged = 0, refused = 0;
};

/// A run ends with numbers that are finite, or says of which array and step it cannot. Returns whether all are finite.
bool check_run(const RunRequest& request, const std::string& what, Counts& counts) {
  RunResult result;
  try {
    result = run(builtin_registry(), request, {}, {});
  } catch (const Error& error) {
    CHECK_SAYS(std::string(error.what()).size() > 20, what + ": no sentence");
    ++counts.refused;
    std::printf("%s: %s\n", what.c_str(), error.what());
    return false;
  }
  const Trace& trace = *result.trace;
  const RunInfo& info = trace.info;
  if (!info.sentence.empty()) std::printf("%s: %s\n", what.c_str(), info.sentence.c_str());
  const bool diverged = info.outcome == Outcome::diverged;
  CHECK_SAYS(diverged || info.outcome == Outcome::finished, what + ": " + info.sentence);
  if (diverged)
    CHECK_SAYS(says(info.sentence, " became non-finite at step ") || says(info.sentence, " became non-finite between steps "),
               what + ": " + info.sentence);
  const bool back = !diverged && says(info.sentence, "on the way back");
  if (!diverged && !info.sentence.empty()) CHECK_SAYS(back && says(info.sentence, "gradient/"), what + ": " + info.sentence);
  bool all = true;
  for (const auto& array : trace.arrays()) {
    const bool logs = array->unit == "log10" || parse_key(array->key)->kind == Kind::lyapunov;  // -infinity is that of 0
    bool fine = true;
    if (array->is_complex())
      for (const auto& z : *array->complex) fine = fine && std::isfinite(z.real()) && std::isfinite(z.imag());
    else
      for (const double x : *array->real) fine = fine && (std::isfinite(x) || (logs && std::isinf(x) && x < 0.0));
    if (fine || array->text.find("infinite where") != std::string::npos) continue;  // it says so, as of a memory that does not forget
    all = false;
    const bool noted = std::any_of(info.notes.begin(), info.notes.end(), [&](const Sentence& note) {
      return note.terminal_text().starts_with(array->key + " is not finite, first at step ");
    });
    const bool said = array->text.find("NaN where") != std::string::npos;
    CHECK_SAYS(noted || said || (back && array->key.starts_with("gradient/")),
               what + ": " + array->key + " has entries that are not finite, and nothing says so");
  }
  for (const auto& [key, array] : result.state) {
    if (array.real) CHECK_SAYS(finite(*array.real), what + ": final " + key);
    if (array.complex)
      for (const auto& z : *array.complex) CHECK_SAYS(std::isfinite(z.real()) && std::isfinite(z.imag()), what + ": final " + key);
  }
  if (!diverged && !std::isfinite(info.loss_value))
    CHECK_SAYS(std::any_of(info.notes.begin(), info.notes.end(),
                           [](const Sentence& note) { return note.terminal_text().starts_with("The loss became non-finite at step "); }),
               what + ": the loss");
  ++(diverged ? counts.diverged : all ? counts.finite : counts.named);
  return !diverged && all;
}

Settings with(Settings set, const std::string& key, const std::string& value) {
  set.erase(std::remove_if(set.begin(), set.end(), [&](const auto& entry) { return entry.first == key; }), set.end());
  set.emplace_back(key, value);
  return set;
}
std::string text_of(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

/// Every hyper-parameter at the ends of its range, each choice and flag, each on its own; of integers the low end, and the high one where
/// it costs nothing (a window, a time).
std::vector<Settings> ends_of(const Preset& preset, const Settings& small) {
  std::vector<Settings> all{small};
  for (const HyperSpec& spec : builtin_registry().find(preset.architecture).hyper) {
    std::vector<std::string> values;
    if (spec.kind == HyperKind::flag) values = {"no", "yes"};
    if (spec.kind == HyperKind::choice) values = spec.choices;
    if (spec.kind == HyperKind::real) values = {text_of(spec.low), text_of(spec.high)};
    if (spec.kind == HyperKind::integer) {
      values = {std::to_string(static_cast<std::int64_t>(spec.low))};
      if (spec.high <= 64) values.push_back(std::to_string(std::min<std::int64_t>(16, static_cast<std::int64_t>(spec.high))));
    }
    for (const std::string& value : values)
      if (test::possible(preset, with(small, spec.key, value))) all.push_back(with(small, spec.key, value));
  }
  return all;
}

}  // namespace

SWEEP_ARCHITECTURES("extremes", architecture) {
  const test::Scratch folder;
  Counts counts;
  for (const Preset& preset : test::shipped().presets()) {
    if (preset.architecture != architecture.id) continue;
    const Settings small = test::small_settings(preset);
    RunRequest request = request_for(architecture.id, 70);
    request.preset = preset;
    request.set = small;
    request.loss = LossKind::mean;
    const std::vector<Form> forms =
        Network(architecture, hyper_of(builtin_registry(), preset, small), {.input = request.sequence->width}).forms();
    const bool all = test::in_full(preset);  // else float32 takes the sequential form and plain inputs
    const Sequence plain = request.sequence;
    struct Change {
      const char* name;
      double input, weights;
      bool around;  // of the weights: all of one size, signs in turn
    };
    static const Change changes[] = {{"inputs times 1e3", 1e3, 1.0, false},  {"inputs times 1e-12", 1e-12, 1.0, false},
                                     {"weights times 1e3", 1.0, 1e3, false}, {"weights times 1e-12", 1.0, 1e-12, false},
                                     {"weights of 0", 1.0, 0.0, false},      {"weights of 30", 1.0, 30.0, true},
                                     {"weights of -1e3", 1.0, -1e3, true},   {"inputs and weights times 1e3", 1e3, 1e3, false},
                                     {"inputs of 0", 0.0, 1.0, false}};
    for (const std::string dtype : {"f64", "f32"}) {
      request.dtype = dtype;
      for (const Change& change : changes) {
        request.sequence = plain;
        for (double& x : request.sequence.own().input) x *= change.input;
        request.weights = folder / "w.npz";
        write_weights(request, request.weights,
                      [&](const std::string&, double value) { return change.around ? change.weights : value * change.weights; });
        const std::string what = preset.id + ", " + dtype + ", " + change.name;
        if (!check_run(request, what, counts)) continue;
        for (const Form one : forms) {
          if (dtype == "f32" && !all) break;
          const std::string form(to_string(one));
          request.form = form;
          if (form != "sequential")
            CHECK_SAYS(check_run(request, what + ", " + form, counts), what + ": the form " + form + " loses what the sequential one has");
        }
        request.form = "sequential";
      }
      request.weights.clear();
      for (const Settings& set : ends_of(preset, small)) {
        std::string what = preset.id + ", " + dtype + ", " + set.back().first + "=" + set.back().second;
        request.set = set;
        for (const double size : {1.0, 1e3}) {
          if (dtype == "f32" && !all && size > 1.0) break;
          request.sequence = plain;
          for (double& x : request.sequence.own().input) x *= size;
          check_run(request, what + (size > 1.0 ? ", inputs times 1e3" : ""), counts);
        }
      }
      request.set = small;
    }
  }
  CHECK(counts.finite + counts.named + counts.diverged > 0);
  // Most of what is legal is representable: a model that diverges in more than half of these has lost its numbers, not its range.
  CHECK_SAYS(2 * counts.finite > counts.named + counts.diverged,
             architecture.id + ": only " + std::to_string(counts.finite) + " runs are finite");
  std::printf("%s: %d finite, %d with a gradient named, %d diverged, %d refused\n", architecture.id.c_str(), counts.finite, counts.named,
              counts.diverged, counts.refused);
}
