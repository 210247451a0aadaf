// SPDX-License-Identifier: GPL-3.0-or-later
// The Newton forms of stepped recurrences: they meet the sequential form where they converge, and say so; where they do not, the sequential
// form is run instead, and that is said. A state that is carried over is where they begin, and they can be stopped.
#include <unistd.h>

#include <cmath>
#include <filesystem>

#include "array/rng.h"
#include "autodiff/ops.h"
#include "experiment/experiment.h"
#include "models/registry.h"
#include "places.h"
#include "recurrence/memory.h"
#include "recurrence/step/step.h"
#include "test.h"

using namespace reclab;

namespace {

RunRequest request_for(const std::string& architecture, std::int64_t length) {
  RunRequest request;
  request.preset.id = request.preset.architecture = architecture;
  request.set = {{"width", "16"}};
  request.sequence = make_task("noise", {.length = length, .seed = 1});
  return request;
}

/// Largest difference over the largest value; NaN where one is.
double difference(const Trace& trace, const TraceArray& b) {
  const TraceArray* found = trace.find(b.key);
  CHECK_SAYS(found && found->shape == b.shape, b.key);
  const TraceArray& a = *found;
  double most = 0.0, size = 0.0;
  for (std::size_t i = 0; i < a.real->size(); ++i) {
    if (std::isinf((*b.real)[i]) && (*a.real)[i] == (*b.real)[i]) continue;  // log10 of a norm that is zero
    const double distance = std::abs((*a.real)[i] - (*b.real)[i]);
    if (std::isnan(distance)) return distance;
    most = std::max(most, distance);
    size = std::max(size, std::abs((*b.real)[i]));
  }
  return size > 0.0 ? most / size : most;
}

/// The note that a Newton form leaves.
std::string said(const Trace& trace) {
  for (const Sentence& note : trace.info.notes)
    if (note.terminal_text().find("iteration") != std::string::npos) return note.terminal_text();
  return {};
}

}  // namespace

TEST_CASE("a Newton form makes the states, gates and gradients of the sequential one, at any length") {
  for (const std::string model : {"elman", "gru"})
    for (const std::int64_t length : {1, 2, 15, 16, 17, 63, 65, 1000}) {
      RunRequest request = request_for(model, length);
      request.recording.kinds.remove(kinds_of(Stage::late));
      const auto sequential = run(builtin_registry(), request, {}, {}).trace;
      for (const std::string form : {"newton", "quasi-newton", "damped-newton"}) {
        request.form = form;
        const auto trace = run(builtin_registry(), request, {}, {}).trace;
        const std::string what = model + " " + form + " length " + std::to_string(length);
        CHECK_EQUAL(trace->info.form, form);
        CHECK_EQUAL(trace->info.record_form, form);
        for (const auto& array : sequential->arrays())
          CHECK_SAYS(difference(*trace, *array) <= 1e-9, what + ": " + array->key + " " + test::show(difference(*trace, *array)));
        CHECK_SAYS(said(*trace).find("converged in") != std::string::npos, what + ": " + said(*trace));
        const TraceArray* residual = trace->find("newton/0/residual");
        CHECK(residual && residual->axes[0].name == "iteration" && residual->unit == "log10");
        CHECK_SAYS(residual->real->back() < -12.0, what);
        const auto iterations = residual->shape[0] - 1;
        const std::int64_t few = std::min<std::int64_t>(length + 1, form == "quasi-newton" ? 300 : 15);
        CHECK_SAYS(iterations >= 1 && iterations <= few, what + ": " + std::to_string(iterations) + " iterations");
      }
    }
}

TEST_CASE("the Newton forms of the presets agree over a thousand steps, in both precisions") {
  const PresetLibrary library(builtin_registry(), {test::source("presets")});
  for (const std::string id : {"elman", "gru", "lstm", "cornn"})
    for (const std::string dtype : {"f64", "f32"}) {
      RunRequest request;
      request.preset = library.find(id);
      request.dtype = dtype;
      request.sequence = make_task("noise", {.length = 1000, .seed = 1});
      // Oscillators that hardly ring: a pair of rotating states is not in the diagonal that quasi-Newton takes, and the preset's own ring.
      if (id == "cornn") request.set = {{"width", "32"}, {"dt", "0.042"}, {"gamma", "2.7"}, {"epsilon", "4.7"}, {"input_gain", "1"}};
      for (const FormReport& report : compare_forms(builtin_registry(), request, {})) {
        const std::string what = id + " " + report.form + " " + dtype + ": ";
        CHECK_SAYS(report.converged, what + report.note);
        CHECK_SAYS(report.output_error <= (dtype == "f64" ? 1e-9 : 1e-3), what + test::show(report.output_error));
        CHECK_SAYS(report.gradient_error <= (dtype == "f64" ? 1e-9 : 1e-3), what + test::show(report.gradient_error));
      }
    }
  // Oscillators that ring: quasi-Newton says that it does not converge and runs step by step, with the same result; the others converge.
  RunRequest ringing;
  ringing.preset = library.find("cornn");
  ringing.sequence = make_task("noise", {.length = 1000, .seed = 1});
  for (const FormReport& report : compare_forms(builtin_registry(), ringing, {})) {
    CHECK_SAYS(report.converged == (report.form != "quasi-newton"), report.form + ": " + report.note);
    CHECK_SAYS(report.output_error <= 1e-9 && report.gradient_error <= 1e-9, report.form);
  }
}

TEST_CASE("several sequences at once, two states and a read: each sequence is solved by itself") {
  constexpr std::int64_t steps = 50, batch = 3;
  const auto result = [&](Form form) {
    Graph graph(DType::f64);
    Rng rng(3);
    const auto numbers = [&](std::int64_t n) {
      std::vector<double> values;
      for (std::int64_t i = 0; i < n; ++i) values.push_back(rng.uniform(-1.0, 1.0));
      return values;
    };
    const Var x = graph.constant({steps, batch, 4}, numbers(steps * batch * 4));
    const Var W = graph.constant({4, 4}, numbers(16)), V = graph.constant({4, 2}, numbers(8));
    const Var first = graph.constant({batch, 4}, numbers(batch * 4));
    const StepVars vars = step(
        graph, batch, {{"a", {4}}, {"b", {2}}}, {x},
        [=](Cell&, std::span<const Var> u, std::span<const Var> s) {
          const Var a = tanh(u[0] + linear(s[0], W) + linear(s[1], V)), b = 0.5 * s[1] + sigmoid(slice(a, -1, 0, 2) * s[1]);
          return std::vector<Var>{a, b, sum(a, -1)};
        },
        {first, slice(first, -1, 0, 2)}, form);
    graph.allocate(cpu_backend(), true);
    graph.forward();
    if (form != Form::sequential) CHECK(vars.memory->newton() && vars.memory->newton()->converged);
    std::vector<double> all;
    for (const Var v : {vars.trajectories[0], vars.trajectories[1], vars.reads[0]}) {
      const auto* values = static_cast<const double*>(graph.value(v));
      all.insert(all.end(), values, values + count(v.shape()));
    }
    return all;
  };
  const auto expected = result(Form::sequential);
  for (const Form form : {Form::newton, Form::quasi_newton, Form::damped_newton}) {
    const auto found = result(form);
    for (std::size_t i = 0; i < expected.size(); ++i) CHECK_CLOSE(found[i], expected[i], 1e-11);
  }
}

TEST_CASE("the iteration of a linear recurrence ends after the first step") {
  RunRequest request = request_for("elman", 500);
  request.set = {{"activation", "identity"}, {"width", "8"}};
  request.form = "newton";
  const auto trace = run(builtin_registry(), request, {}, {}).trace;
  CHECK(trace->find("newton/0/residual")->shape[0] <= 3);
}

TEST_CASE("a chaotic recurrence falls back on the sequential form, says so, and is right") {
  RunRequest request = request_for("elman", 1000);
  request.set = {{"spectral_radius", "2"}, {"width", "32"}};
  request.recording.kinds.remove(kinds_of(Stage::late));
  const auto sequential = run(builtin_registry(), request, {}, {}).trace;
  for (const std::string form : {"newton", "quasi-newton", "damped-newton"}) {
    request.form = form;
    const auto trace = run(builtin_registry(), request, {}, {}).trace;
    CHECK_SAYS(said(*trace).find("did not converge after") != std::string::npos, form + ": " + said(*trace));
    CHECK_SAYS(said(*trace).find("the sequential form was run instead") != std::string::npos, form + ": " + said(*trace));
    CHECK_EQUAL(trace->info.form, "sequential");
    CHECK_EQUAL(trace->info.record_form, "sequential");
    for (const auto& array : sequential->arrays()) CHECK_SAYS(difference(*trace, *array) == 0.0, form + ": " + array->key);
  }
  for (const auto& report : compare_forms(builtin_registry(), request, {})) {
    CHECK_EQUAL(report.converged, report.form == "sequential");
    CHECK_EQUAL(report.iterations >= 0, report.form != "sequential");
    CHECK(report.output_error == 0.0 && report.gradient_error == 0.0);
  }
}

TEST_CASE("a segment that converges after one that was run step by step goes back through its own steps") {
  constexpr std::int64_t steps = 400, n = 24;
  Rng rng(11);
  std::vector<double> chaotic, calm, input;
  for (std::int64_t i = 0; i < n * n; ++i) chaotic.push_back(3.0 * rng.normal() / std::sqrt(static_cast<double>(n)));
  for (const double w : chaotic) calm.push_back(0.1 * w);
  for (std::int64_t i = 0; i < steps * n; ++i) input.push_back(rng.normal());
  const auto gradient = [&](Form form, bool after_another) {
    Graph graph(DType::f64);
    const Var x = graph.leaf(LeafKind::variable, {steps, 1, n}, DType::f64), W = graph.leaf(LeafKind::variable, {n, n}, DType::f64),
              first = graph.constant({1, n}, std::vector<double>(n));
    const StepVars vars = step(
        graph, 1, {{"h", {n}}}, {x},
        [=](Cell&, std::span<const Var> u, std::span<const Var> s) { return std::vector<Var>{tanh(linear(s[0], W, u[0]))}; }, {first},
        form);
    graph.allocate(cpu_backend(), true);
    graph.bind(x, input.data());
    if (after_another) {
      graph.bind(W, chaotic.data());
      graph.forward({}, Graph::Part::all, true);
      CHECK(!vars.memory->newton()->converged);
    }
    graph.bind(W, calm.data());
    graph.forward({}, Graph::Part::all, true);
    CHECK(form == Form::sequential || vars.memory->newton()->converged);
    graph.clear_gradients();
    const std::int64_t size = count(vars.trajectories[0].shape());
    cpu_backend().add_scaled(DType::f64, size, 0, graph.value(vars.trajectories[0]), graph.gradient(vars.trajectories[0]), true);
    graph.backward();
    const auto* found = static_cast<const double*>(graph.gradient(W));
    return std::vector<double>(found, found + n * n);
  };
  const auto expected = gradient(Form::sequential, false);
  for (const bool after_another : {false, true}) {
    const auto found = gradient(Form::newton, after_another);
    for (std::size_t i = 0; i < found.size(); ++i) CHECK_CLOSE(found[i], expected[i], 1e-9);
  }
}

TEST_CASE("differences of what is not a number are not a number, wherever it stands") {
  Trace trace;
  TraceArray a;
  a.key = "x";
  a.shape = {3};
  a.real = std::make_shared<const std::vector<double>>(std::vector<double>{1.0, 2.0, 4.0});
  trace.put(a);
  for (const std::size_t place : {0, 1, 2}) {
    std::vector<double> values{1.0, 2.0, 4.0};
    values[place] = std::nan("");
    TraceArray b = a;
    b.real = std::make_shared<const std::vector<double>>(values);
    CHECK(!(difference(trace, b) <= 1.0));
  }
  CHECK_EQUAL(difference(trace, a), 0.0);
}

TEST_CASE("a state carried over from another run is where the iteration begins") {
  const auto file = std::filesystem::temp_directory_path() / ("reclab-test-newton-" + std::to_string(getpid()) + ".npz");
  RunRequest request = request_for("lstm", 70);
  request.set = {{"width", "8"}};
  request.recording.kinds.remove(kinds_of(Stage::late));
  save_state(run(builtin_registry(), request, {}, {}).state, file);
  const auto fresh = run(builtin_registry(), request, {}, {}).trace;
  request.state = file;
  const auto sequential = run(builtin_registry(), request, {}, {}).trace;
  CHECK(difference(*fresh, *sequential->find("state/0/c")) > 1e-3);  // it matters
  for (const std::string form : {"newton", "quasi-newton", "damped-newton"}) {
    request.form = form;
    const auto trace = run(builtin_registry(), request, {}, {}).trace;
    CHECK_SAYS(said(*trace).find("converged in") != std::string::npos, form + ": " + said(*trace));
    for (const auto& array : sequential->arrays())
      CHECK_SAYS(difference(*trace, *array) <= 1e-9, form + ": " + array->key + " " + test::show(difference(*trace, *array)));
  }
  std::filesystem::remove(file);
}

TEST_CASE("several layers each have their own iteration") {
  RunRequest request = request_for("lstm", 70);
  request.set = {{"width", "8"}, {"layers", "2"}};
  request.form = "newton";
  const auto trace = run(builtin_registry(), request, {}, {}).trace;
  CHECK(trace->find("newton/0/residual") && trace->find("newton/1/residual"));
  CHECK_SAYS(said(*trace).starts_with("Layer 0: Newton's iteration converged in"), said(*trace));
}
