// SPDX-License-Identifier: GPL-3.0-or-later
// Echo state networks: what is said of their spectral radius, the regression that makes their read-out, and their noise.
#include <algorithm>
#include <cmath>
#include <complex>
#include <map>
#include <string>
#include <vector>

#include "algebra/eigen.h"
#include "algebra/ridge.h"
#include "array/error.h"
#include "array/rng.h"
#include "execution/rollout.h"
#include "experiment/experiment.h"
#include "models/network.h"
#include "models/registry.h"
#include "scratch.h"
#include "sweep.h"
#include "test.h"

using namespace reclab;

namespace {

RunRequest request_of(const test::Settings& set, const Sequence& sequence) {
  RunRequest request;
  request.preset = test::preset_of("echo-state");
  request.set = set;
  request.sequence = sequence;
  request.every = 1;
  request.recording.kinds.remove(kinds_of(Stage::late));
  return request;
}
TracePtr run_of(const RunRequest& request) {
  const TracePtr trace = run(builtin_registry(), request, {}, {}).trace;
  CHECK_SAYS(trace->info.outcome == Outcome::finished, trace->info.sentence);
  return trace;
}
TracePtr run_of(const test::Settings& set, const Sequence& sequence) { return run_of(request_of(set, sequence)); }

const std::vector<double>& values(const Trace& trace, const std::string& key) {
  const TraceArray* array = trace.find(key);
  CHECK_SAYS(array && array->real, key);
  return *array->real;
}
bool noted(const Trace& trace, const std::string& text) {
  return std::ranges::any_of(trace.info.notes, [&](const Sentence& note) { return note.terminal_text().find(text) != std::string::npos; });
}

/// The mean of ½ |y - target|² over the steps from `first` to before `last` that count.
double error_of(const Trace& trace, const Sequence& sequence, std::int64_t first, std::int64_t last) {
  const auto& output = values(trace, "output");
  double sum = 0.0, counted = 0.0;
  for (auto t = static_cast<std::size_t>(first); t < static_cast<std::size_t>(last); ++t)
    if (sequence.mask[t] > 0.0) {
      sum += 0.5 * (output[t] - sequence.target[t]) * (output[t] - sequence.target[t]);
      ++counted;
    }
  return sum / counted;
}

/// How far two runs of the same reservoir on the same input are from each other at the end, beginning from two random states.
double apart(const std::string& radius, const std::string& equation, const std::string& leak) {
  Preset preset = test::preset_of("echo-state");
  const Architecture& architecture = builtin_registry().find("echo-state");
  const Hyper hyper =
      hyper_of(builtin_registry(), preset,
               {{"spectral_radius", radius}, {"equation", equation}, {"leak", leak}, {"input_scaling", "0.05"}, {"density", "0.2"}});
  const Sequence sequence = make_task("noise", {.length = 3000, .seed = 4});
  const Parameters parameters = Network(architecture, hyper, {.input = 1}).initialise(1);
  const Model model(architecture, hyper, parameters, cpu_backend(), DType::f64);
  const SequenceLoss loss(LossKind::last, sequence);
  const std::string key = equation == "external" ? "state/0/s" : "state/0/r";
  std::vector<std::complex<double>> ends[2];
  for (int i = 0; i < 2; ++i) {
    Rng rng(static_cast<std::uint64_t>(100 + i));
    std::vector<std::complex<double>> start(100);
    for (auto& value : start) value = rng.uniform(-0.9, 0.9);
    Rollout rollout(model, Batch(sequence, loss), {});
    rollout.set_initial({{key, start}});
    CHECK(!rollout.forward({}, {}));
    ends[i] = rollout.final_states().at(key);
  }
  double largest = 0.0;
  for (std::size_t i = 0; i < 100; ++i) largest = std::max(largest, std::abs(ends[0][i] - ends[1][i]));
  return largest;
}

}  // namespace

TEST_CASE("the echo state property holds below a spectral radius of 1, and fails above") {
  for (const char* equation : {"internal", "external"})
    for (const char* leak : {"1", "0.5"}) {
      const std::string what = std::string(equation) + ", leak " + leak;
      CHECK_SAYS(apart("0.9", equation, leak) < 1e-12, what);
      CHECK_SAYS(apart("2.5", equation, leak) > 1e-2, what);
    }
}

TEST_CASE("the reservoir has the spectral radius, the density and the sizes that it is to have") {
  const Sequence sequence = make_task("noise", {.length = 2});
  for (const char* kind : {"normal", "uniform", "signs"}) {
    const auto trace = run_of({{"width", "120"},
                               {"spectral_radius", "1.25"},
                               {"density", "0.2"},
                               {"recurrent_init", kind},
                               {"input_scaling", "0.3"},
                               {"input_density", "0.5"},
                               {"bias_scaling", "0.7"}},
                              sequence);
    const auto &W = values(*trace, "param/0/W"), &Win = values(*trace, "param/0/Win"), &bias = values(*trace, "param/0/bias");
    CHECK_CLOSE(spectral_radius(W, 120), 1.25, 1e-9);
    CHECK_CLOSE(static_cast<double>(std::ranges::count(W, 0.0)) / 14400.0, 0.8, 0.02);
    CHECK_CLOSE(static_cast<double>(std::ranges::count(Win, 0.0)) / 120.0, 0.5, 0.15);
    for (const double value : Win) CHECK(value == 0.0 || std::abs(value) == 0.3);
    for (const double value : bias) CHECK(value == 0.0 || std::abs(value) == 0.7);
    CHECK(std::ranges::count(Win, 0.3) > 10 && std::ranges::count(Win, -0.3) > 10);
  }
  CHECK_ERROR(run_of({{"width", "1"}, {"density", "0.001"}}, sequence), "choose a greater density");
}

TEST_CASE("a regression finds the weights that made its rows, and is that of the normal equations") {
  Rng rng(3);
  const std::size_t n = 7, m = 2, rows = 50;
  std::vector<double> W(m * n), b(m);
  for (double& value : W) value = rng.normal();
  for (double& value : b) value = rng.normal();
  RidgeRegression exact(n, m), noisy(n, m);
  std::vector<std::vector<double>> zs, ys;
  for (std::size_t i = 0; i < rows; ++i) {
    std::vector<double> z(n), y(m), other(m);
    for (double& value : z) value = rng.normal();
    for (std::size_t k = 0; k < m; ++k) {
      y[k] = b[k];
      for (std::size_t j = 0; j < n; ++j) y[k] += W[k * n + j] * z[j];
      other[k] = y[k] + rng.normal();
    }
    exact.add(z, y);
    noisy.add(z, other);
    zs.push_back(z);
    ys.push_back(other);
  }
  std::vector<double> weight(m * n), bias(m);
  CHECK(exact.solve(1e-12, weight, bias));
  for (std::size_t i = 0; i < W.size(); ++i) CHECK_CLOSE(weight[i], W[i], 1e-11);
  for (std::size_t k = 0; k < m; ++k) CHECK_CLOSE(bias[k], b[k], 1e-11);
  // Where the sum of squares with the penalty is least its slope is 0.
  const double lambda = 3.0;
  CHECK(noisy.solve(lambda, weight, bias));
  for (std::size_t k = 0; k < m; ++k)
    for (std::size_t j = 0; j <= n; ++j) {
      double slope = lambda * (j == n ? bias[k] : weight[k * n + j]);
      for (std::size_t i = 0; i < rows; ++i) {
        double error = bias[k] - ys[i][k];
        for (std::size_t l = 0; l < n; ++l) error += weight[k * n + l] * zs[i][l];
        slope += error * (j == n ? 1.0 : zs[i][j]);
      }
      CHECK_CLOSE(slope, 0.0, 1e-10);
    }
  RidgeRegression same(2, 1);
  for (int i = 0; i < 5; ++i) same.add(std::vector<double>{1.0 * i, 2.0 * i}, std::vector<double>{1.0});
  CHECK(!same.solve(1e-30, std::span(weight).first(2), std::span(bias).first(1)));
  CHECK(same.solve(1e-3, std::span(weight).first(2), std::span(bias).first(1)));
}

TEST_CASE("the read-out of a run is fitted to its target where its weights are drawn, and to the steps that it is told to take") {
  const Sequence sequence = make_task("delay", {.length = 700, .seed = 2, .set = {{"delay", "8"}}});
  const test::Settings settings{{"input_scaling", "0.1"}, {"washout", "50"}, {"fit_steps", "400"}, {"ridge", "1e-9"}};
  const auto with = [&](test::Settings more) {
    more.insert(more.begin(), settings.begin(), settings.end());
    return more;
  };
  const auto fitted = run_of(settings, sequence), drawn = run_of(with({{"readout", "drawn"}}), sequence);
  CHECK(noted(*fitted, "fitted by ridge regression to the target at 350 steps of the first 400 (fit_steps); the other 300 are a test.") &&
        !noted(*drawn, "fitted"));
  CHECK(values(*fitted, "param/0/W") == values(*drawn, "param/0/W"));
  CHECK(error_of(*fitted, sequence, 50, 400) < 0.01 && error_of(*fitted, sequence, 400, 700) < 0.01 &&
        error_of(*drawn, sequence, 50, 700) > 0.3);
  CHECK(error_of(*fitted, sequence, 50, 400) < error_of(*fitted, sequence, 400, 700));
  CHECK_CLOSE(error_of(*run_of(with({{"ridge", "1000"}}), sequence), sequence, 50, 400), 0.5, 0.15);

  // It is the least of all read-outs: the loss's slope with regard to the head, summed over the fitted steps, is the penalty's.
  const auto &W = values(*fitted, "param/head/weight"), &b = values(*fitted, "param/head/bias"), &r = values(*fitted, "state/0/r"),
             &output = values(*fitted, "output");
  for (std::size_t j = 0; j <= W.size(); ++j) {
    double slope = 1e-9 * (j == W.size() ? b[0] : W[j]);
    for (std::size_t t = 50; t < 400; ++t) slope += (output[t] - sequence.target[t]) * (j == W.size() ? 1.0 : r[t * W.size() + j]);
    CHECK_CLOSE(slope, 0.0, 1e-8);
  }
  // What runs in other forms, on other devices or in float32 has the same weights.
  RunRequest narrow = request_of(settings, sequence);
  narrow.dtype = "f32";
  CHECK_CLOSE(values(*run_of(narrow), "param/head/weight")[0], W[0], 1e-6 * std::abs(W[0]));

  // All of a sequence that is a user's own counts, however long, unless a part is asked for.
  RunRequest shipped = request_of({}, make_task("delay", {.length = 900, .seed = 4}));
  shipped.preset = test::shipped().find("echo-state");
  CHECK(noted(*run_of(shipped), "to the target at 850 steps."));
  shipped.set = {{"fit_steps", "300"}};
  CHECK(noted(*run_of(shipped), "at 250 steps of the first 300 (fit_steps); the other 600 are a test."));

  // Weights from a file are not fitted again.
  const test::Scratch scratch;
  save_weights(*drawn, scratch.path() / "weights.npz");
  RunRequest loaded = request_of(settings, sequence);
  loaded.weights = scratch.path() / "weights.npz";
  const auto kept = run_of(loaded);
  CHECK(values(*kept, "output") == values(*drawn, "output") && !noted(*kept, "fitted"));
  const auto without_effect = settings_without_effect(builtin_registry(), loaded);
  CHECK(std::ranges::find(without_effect, "ridge") != without_effect.end());

  // A run that goes on from a state is told that its read-out is another.
  save_state(run(builtin_registry(), request_of(settings, sequence), {}, {}).state, scratch / "state.npz");
  RunRequest going_on = request_of(settings, sequence);
  going_on.state = scratch / "state.npz";
  CHECK(noted(*run_of(going_on), "given that one's weights too") && !noted(*fitted, "weights too"));
  going_on.weights = scratch / "weights.npz";
  CHECK(!noted(*run_of(going_on), "weights too"));

  // Without a target, or with none after the washout, nothing is fitted.
  CHECK(!noted(*run_of(settings, make_task("noise", {.length = 30})), "fitted"));
  CHECK(noted(*run_of({{"washout", "700"}}, sequence), "was not fitted: no step after the washout of 700 steps"));
  // Classes are fitted as 0 and 1.
  const auto classes = run_of({{"washout", "0"}, {"width", "20"}}, make_task("copy", {.length = 60, .seed = 1}));
  CHECK(noted(*classes, "fitted by ridge regression"));
}

TEST_CASE("a fit of a sequence that is cut into segments is that of the whole, also where a reservoir runs backward") {
  // 256 steps are run at once; the states of the fit are those of the run itself.
  const Sequence sequence = make_task("delay", {.length = 600, .seed = 5, .set = {{"delay", "3"}}});
  for (const char* direction : {"forward", "backward", "both"}) {
    const auto trace = run_of({{"direction", direction},
                               {"width", "20"},
                               {"input_scaling", "0.3"},
                               {"washout", "0"},
                               {"ridge", "0.01"},
                               {"read_input", "true"},
                               {"leak", "0.7"}},
                              sequence);
    const auto &W = values(*trace, "param/head/weight"), &b = values(*trace, "param/head/bias"), &output = values(*trace, "output");
    double slope = 0.01 * b[0];
    for (std::size_t t = 3; t < 600; ++t) slope += output[t] - sequence.target[t];
    CHECK_SAYS(std::abs(slope) < 1e-9, direction);
    CHECK_EQUAL(W.size(), std::string(direction) == "both" ? 42u : 21u);
  }
}

TEST_CASE("a reservoir that is taught a signal goes on with it by itself") {
  // A network without input that feeds its output back, taught a sum of nothing but its own past: the sine of the task's target.
  Sequence sequence = make_task("sine", {.length = 900, .seed = 1});
  std::ranges::fill(sequence.input, 0.0);
  const test::Settings settings{{"feedback", "1"},  {"feedback_scaling", "0.5"}, {"spectral_radius", "0.9"}, {"bias_scaling", "0.5"},
                                {"washout", "100"}, {"ridge", "0.01"},           {"noise_state", "0.001"},   {"noise_seed", "1"}};
  const auto trace = run_of(settings, sequence);
  CHECK(noted(*trace, "with the target of the step before in place of what is fed back"));
  // Its phase is its own, for it began from rest; what it has of the teacher is period and amplitude.
  const auto& output = values(*trace, "output");
  double least = 0.0, most = 0.0, repeats = 0.0;
  for (std::size_t t = 600; t < 850; ++t) {
    least = std::min(least, output[t]);
    most = std::max(most, output[t]);
    repeats = std::max(repeats, std::abs(output[t + 50] - output[t]));
  }
  CHECK_SAYS(most > 0.95 && most < 1.05 && least < -0.95 && least > -1.05, test::show(least) + " to " + test::show(most));
  CHECK_SAYS(repeats < 0.1, test::show(repeats));
  CHECK(values(*trace, "param/head/weight") == std::vector<double>{1.0} && values(*trace, "param/head/bias") == std::vector<double>{0.0});
  CHECK_ERROR(run_of({{"feedback", "2"}}, sequence), "choose feedback=1, or 0 for none");
  CHECK_ERROR(run_of({{"feedback", "1"}, {"layers", "2"}}, sequence), "layers=1");
  CHECK_ERROR(run_of({{"feedback", "1"}, {"direction", "backward"}}, sequence), "direction=forward");
}

TEST_CASE("noise follows from its seed and the step alone, has its deviation, and moves nothing where it is 0") {
  Sequence silence = make_task("noise", {.length = 4000});
  std::ranges::fill(silence.input, 0.0);
  const test::Settings settings{{"width", "10"}, {"density", "1"}, {"spectral_radius", "0"}, {"activation", "identity"}, {"bias", "false"}};
  const auto with = [&](test::Settings more) {
    more.insert(more.begin(), settings.begin(), settings.end());
    return run_of(more, silence);
  };
  CHECK(std::ranges::all_of(values(*with({}), "state/0/r"), [](double value) { return value == 0.0; }));
  const auto one = with({{"noise_state", "0.5"}, {"noise_seed", "1"}}), again = with({{"noise_state", "0.5"}, {"noise_seed", "1"}}),
             other = with({{"noise_state", "0.5"}, {"noise_seed", "2"}});
  const auto& r = values(*one, "state/0/r");
  CHECK(r == values(*again, "state/0/r") && r != values(*other, "state/0/r"));
  double sum = 0.0, squares = 0.0, between = 0.0;
  for (std::size_t i = 0; i < r.size(); ++i) {
    sum += r[i];
    squares += r[i] * r[i];
    if (i >= 10) between += r[i] * r[i - 10];
  }
  const auto n = static_cast<double>(r.size());
  CHECK_CLOSE(sum / n, 0.0, 0.01);
  CHECK_CLOSE(std::sqrt(squares / n), 0.5, 0.01);
  CHECK_CLOSE(between / squares, 0.0, 0.02);
}

TEST_CASE("a reservoir above other parts has its read-out fitted; what is fed back there is refused") {
  const Sequence sequence = make_task("delay", {.length = 400, .seed = 2});
  RunRequest request;
  request.preset.id = request.preset.title = "stack";
  request.preset.stack = {{"ltc", {{"width", std::int64_t{6}}}},
                          {"echo-state", {{"width", std::int64_t{60}}, {"washout", std::int64_t{40}}}}};
  request.sequence = sequence;
  request.every = 1;
  request.recording.kinds.remove(kinds_of(Stage::late));
  const TracePtr fitted = run_of(request);
  CHECK(noted(*fitted, "The read-out was fitted by ridge regression to the target at 360 steps."));
  RunRequest drawn = request;
  drawn.preset.stack[1].second.emplace_back("readout", std::string("drawn"));
  const TracePtr other = run_of(drawn);
  CHECK(!noted(*other, "read-out was fitted"));
  CHECK(error_of(*fitted, sequence, 40, 400) < error_of(*other, sequence, 40, 400));
  // The fitted head is what the normal equations say: the residual is orthogonal to the features, but for the penalty.
  const auto &head = values(*fitted, "param/head/weight"), &output = values(*fitted, "output"), &state = values(*fitted, "state/1/r");
  CHECK_EQUAL(head.size(), 60u);
  for (std::size_t i = 0; i < 60; ++i) {
    double along = 0.0, size = 0.0;
    for (std::size_t t = 40; t < 400; ++t) {
      along += (sequence.target[t] - output[t]) * state[t * 60 + i];
      size += std::abs(sequence.target[t] * state[t * 60 + i]);
    }
    CHECK_CLOSE(along, 1e-6 * head[i], 1e-9 * size);
  }
  RunRequest below = request;  // a head above another model is that one's
  std::swap(below.preset.stack[0], below.preset.stack[1]);
  CHECK(!noted(*run_of(below), "read-out was fitted"));
  RunRequest fed = request;
  fed.preset.stack[1].second.emplace_back("feedback", std::int64_t{1});
  CHECK_ERROR(run(builtin_registry(), fed, {}, {}),
              "part 1, echo-state: what is fed back is fitted to the target in a model of one part alone, and 1.feedback = 1: choose "
              "1.feedback=0, or 1.readout=drawn.");
}

TEST_CASE("the read-out above a part that knows time is fitted to what that part returns at its times") {
  Sequence sequence = make_task("delay", {.length = 120, .seed = 2});
  for (std::size_t t = 1; t < sequence.time.size(); ++t) sequence.time[t] = sequence.time[t - 1] + (t % 3 ? 0.5 : 2.0);
  RunRequest request;
  request.preset.id = request.preset.title = "stack";
  request.preset.stack = {{"ltc", {{"width", std::int64_t{6}}}}, {"echo-state", {{"width", std::int64_t{20}}}}};
  request.sequence = sequence;
  request.every = 1;
  request.recording.kinds.remove(kinds_of(Stage::late));
  const TracePtr trace = run_of(request);
  const auto &head = values(*trace, "param/head/weight"), &output = values(*trace, "output"), &state = values(*trace, "state/1/r");
  for (std::size_t i = 0; i < 20; ++i) {
    double along = 0.0, size = 0.0;
    for (std::size_t t = 20; t < 120; ++t) {
      if (sequence.mask[t] == 0.0) continue;
      along += (sequence.target[t] - output[t]) * state[t * 20 + i];
      size += std::abs(sequence.target[t] * state[t * 20 + i]);
    }
    CHECK_CLOSE(along, 1e-6 * head[i], 1e-9 * size);
  }
}
