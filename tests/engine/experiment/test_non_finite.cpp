// SPDX-License-Identifier: GPL-3.0-or-later
// What leaves the range is named: the array and its first step, forward and on the way back.
#include <algorithm>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "experiment/experiment.h"
#include "extremes.h"
#include "models/registry.h"
#include "recurrence/diagonal/diagonal.h"
#include "recurrence/linear/linear.h"
#include "recurrence/memory.h"
#include "recurrence/step/step.h"
#include "scratch.h"
#include "test.h"

using namespace reclab;
using test::finite, test::request_for, test::says, test::sequence_of, test::write_weights;

TEST_CASE("gradients that leave the range on the way back are named with array and step, though the run has finished") {
  // Without input the states stay at 0, and the gradient of an output that is asked for grows by 2 a step.
  RunRequest request = request_for("elman", 1500, 0.0);
  request.set = {{"activation", "identity"}, {"width", "2"}, {"spectral_radius", "2"}, {"bias", "no"}};
  request.loss = LossKind::random;
  const auto trace = run(builtin_registry(), request, {}, {}).trace;
  const std::string all = trace->info.sentence;
  CHECK_SAYS(says(all, " became non-finite at step ") && says(all, "gradient/") && says(all, "on the way back"), all);
  CHECK_EQUAL(std::string(to_string(trace->info.outcome)), "finished");
  // The norms of the states' gradients, which are kept as logarithms, go on.
  const TraceArray* norms = trace->find("gradient/state/0/h");
  CHECK(norms && finite(*norms->real));
  for (const FormReport& form : compare_forms(builtin_registry(), request, {})) {
    CHECK_SAYS(says(form.note, "became non-finite at step") && says(form.note, "gradient/"), form.form + ": " + form.note);
    CHECK(std::isnan(form.gradient_error));
  }
}

TEST_CASE("a loss beyond the range, an input beyond float32 and weights that are not numbers are named") {
  RunRequest request = request_for("elman", 40, 1e200);
  request.set = {{"activation", "identity"}, {"width", "4"}, {"spectral_radius", "0.5"}};
  request.loss = LossKind::mean;
  const auto trace = run(builtin_registry(), request, {}, {}).trace;
  CHECK_EQUAL(std::string(to_string(trace->info.outcome)), "finished");
  CHECK(std::any_of(trace->info.notes.begin(), trace->info.notes.end(),
                    [](const Sentence& note) { return says(note.terminal_text(), "The loss became non-finite at step 0"); }));
  request.dtype = "f32";
  const auto narrow = run(builtin_registry(), request, {}, {}).trace;
  CHECK_EQUAL(std::string(to_string(narrow->info.outcome)), "diverged");
  CHECK_SAYS(narrow->info.sentence.starts_with("input became non-finite at step 0"), narrow->info.sentence);
  request = request_for("elman", 40);
  test::Scratch folder;
  request.weights = folder / "w.npz";
  write_weights(request, request.weights, [](const std::string& name, double value) { return says(name, "weight_hh") ? NAN : value; });
  CHECK_ERROR(run(builtin_registry(), request, {}, {}), request.weights.string() + ": the entry 0/weight_hh is not finite at [0, 0]");
}

TEST_CASE("a final state that is not recorded is looked at too") {
  Architecture own;
  own.title = "a layer of the test's";
  own.layer = [](Layer& l, Var x) {
    const Var big = x * 1e300;
    const Var before = slice(l.history("buffer", big * 1e10, 1, "what was before"), 0, 0, l.steps());
    return tanh(before);  // 1, whatever overflowed before
  };
  Registry registry;
  registry.add("own", "test", own);
  RunRequest request;
  request.preset.id = request.preset.architecture = "own";
  request.sequence = sequence_of(20, 1, [](std::int64_t t) { return t < 12 ? 0.0 : 1.0; });
  const auto trace = run(registry, request, {}, {}).trace;
  CHECK_EQUAL(std::string(to_string(trace->info.outcome)), "diverged");
  CHECK_SAYS(trace->info.sentence.starts_with("state/0/buffer became non-finite between steps 0 and 19"), trace->info.sentence);
}

TEST_CASE("a gradient within the range is found where what it is made of on the way back is beyond it") {
  Architecture own;
  own.title = "a layer of the test's";
  own.layer = [](Layer& l, Var x) {
    const Var small = exp(l.parameter("log", {1}, init::constant(-85.0), "The logarithm of 1.2e-37."));
    return x * small * 1e19 * 1e19;  // its slope by that number is 1e38 a step
  };
  Registry registry;
  registry.add("own", "test", own);
  RunRequest request;
  request.preset.id = request.preset.architecture = "own";
  request.sequence = sequence_of(20, 1, [](std::int64_t t) { return static_cast<double>(1 + t % 3); });
  request.loss = LossKind::mean;
  std::vector<double> found;
  for (const std::string dtype : {"f64", "f32"}) {
    request.dtype = dtype;
    const auto trace = run(registry, request, {}, {}).trace;
    CHECK_EQUAL(trace->info.sentence, "");
    found.push_back(trace->find("gradient/param/0/log")->real->front());
    CHECK(finite(*trace->find("gradient/input")->real));
  }
  CHECK(found[0] > 1.0);
  CHECK_CLOSE(found[1] / found[0], 1.0, 1e-5);
}

TEST_CASE("a gradient that is not a number reaches the memory and is not taken for none") {
  // sqrt has no slope at 0: 0 times infinity at the last step.
  for (const std::string kind : {"step", "diagonal", "linear"}) {
    Architecture own;
    own.title = "a layer of the test's";
    own.layer = [kind](Layer& l, Var x) {
      Var s;
      if (kind == "step")
        s = step(l, {{"s", {1}, "s"}}, {x},
                 [](Cell&, std::span<const Var> u, std::span<const Var> at) { return std::vector<Var>{0.5 * at[0] + u[0]}; })[0];
      else if (kind == "diagonal")
        s = diagonal(l, {"s", {1}, "s"}, reshape(affine(slice(x, 0, 0, 1), 0.0, 0.5), {1}), x);
      else
        s = reshape(linear(l, {"s", {1, 1}, "s"}, x.graph->constant({1, 1}, {0.5}), reshape(x, {l.steps(), l.batch(), 1, 1})), x.shape());
      return sqrt(s);
    };
    Registry registry;
    registry.add("own", "test", own);
    RunRequest request;
    request.preset.id = request.preset.architecture = "own";
    request.sequence = sequence_of(20, 1, [](std::int64_t) { return 0.0; });
    const auto trace = run(registry, request, {}, {}).trace;
    CHECK_SAYS(trace->info.sentence.starts_with("gradient/state/0/s became non-finite at step 19 on the way back"),
               kind + ": " + trace->info.sentence);
  }
}
