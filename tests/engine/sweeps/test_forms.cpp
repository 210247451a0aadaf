// SPDX-License-Identifier: GPL-3.0-or-later
// Every exact form of every model agrees with its sequential one, outputs and gradients, in both precisions.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "array/error.h"
#include "experiment/compare.h"
#include "experiment/experiment.h"
#include "experiment/prepared.h"
#include "models/registry.h"
#include "sweep.h"
#include "test.h"
#include "timing/primitives.h"

using namespace reclab;

namespace {

/// Around the lengths that forms cut a sequence at, long enough for several segments, and 4,096 steps.
const std::vector<std::int64_t> all_lengths{1, 2, 3, 63, 64, 65, 1000, 4096};

using Numbers = std::vector<double>;

double largest(const Numbers& values) {
  double size = 0.0;
  for (const double x : values) size = std::max(size, std::abs(x));
  return size;
}
double distance(const Numbers& a, const Numbers& b) {
  double size = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) size = std::isnan(a[i] - b[i]) ? HUGE_VAL : std::max(size, std::abs(a[i] - b[i]));
  return size;
}

/// The same weights and inputs in three ways: in float32, those in float64, and in float64 without the rounding of weights and inputs to
/// float32.
struct Precisions {
  FormResult narrow, exact, unrounded;
};
/// What of a form's float32 gradients is more than rounding, as text; empty where nothing is. A float32 recurrence rounds at each step, and
/// gradients that are what is left of large terms, or of a quotient of small ones, or of a function with kinks, show it: then two forms are
/// further apart than the tolerance, and each is from float64. So each array of a form may be as far from float64 as the tolerance and
/// twice what the sequential form's is. Of that one's own errors a hundred units in the last place for each step are taken to be rounding,
/// and a hundred times what the rounding of the weights alone makes in float64.
std::string beyond_rounding(const FormResult& form, const Precisions& sequential, std::int64_t steps, double tolerance) {
  const FormResult& exact = sequential.exact;
  double all = largest(exact.input_gradient);
  for (const auto& [name, values] : exact.gradients) all = std::max(all, largest(values));
  const double unit = 0x1p-24 * static_cast<double>(steps) * all;
  std::string said;
  const auto look = [&](const std::string& name, const Numbers& own, const Numbers& narrow, const Numbers& truth,
                        const Numbers& unrounded) {
    const double off = distance(own, truth), rounding = distance(narrow, truth);
    if (!(rounding <= 100.0 * (unit + distance(unrounded, truth))))
      said += "; of the sequential form " + name + " is off by " + test::show(rounding / all) + " of the largest gradient";
    if (!(off <= tolerance * std::max(largest(truth), 1e-4 * all) + 2.0 * rounding))
      said += "; " + name + " is off by " + test::show(off / largest(truth)) + ", in the sequential form by " +
              test::show(rounding / largest(truth));
  };
  look("the input's gradient", form.input_gradient, sequential.narrow.input_gradient, exact.input_gradient,
       sequential.unrounded.input_gradient);
  for (const auto& [name, values] : exact.gradients)
    look(name, form.gradients.at(name), sequential.narrow.gradients.at(name), values, sequential.unrounded.gradients.at(name));
  return said;
}
std::string beyond_rounding(const Registry& registry, const RunRequest& request, const std::string& form, double tolerance) {
  const Prepared prepared(registry, request);
  Parameters parameters = prepared.parameters;
  for (auto& entry : parameters.entries())
    for (double& value : entry.values) value = static_cast<float>(value);
  Sequence sequence = *request.sequence;
  for (double& value : sequence.input) value = static_cast<float>(value);
  const SequenceLoss loss(LossKind::random, sequence, prepared.loss.outputs());
  const FormCase rounded{prepared.architecture, prepared.hyper, parameters, sequence, loss, prepared.backend};
  const FormCase given{prepared.architecture, prepared.hyper, prepared.parameters, request.sequence, loss, prepared.backend};
  const auto of = [](const FormCase& what, Form which, DType real) { return result_of(what, which, real, true, {}); };
  const Precisions sequential{of(rounded, Form::sequential, DType::f32), of(rounded, Form::sequential, DType::f64),
                              of(given, Form::sequential, DType::f64)};
  return beyond_rounding(of(rounded, form_from(form), DType::f32), sequential, sequence.length, tolerance);
}

/// Returns the operations of the largest form, forward.
double agree(const Registry& registry, RunRequest request) {
  double most = 0.0;
  const double tolerance = request.dtype == "f64" ? 1e-9 : 1e-3;
  for (const FormReport& form : compare_forms(registry, request, {})) {
    const std::string what =
        request.preset.id + " " + form.form + " " + request.dtype + " length " + std::to_string(request.sequence->length);
    if (request.dtype == "f64")
      test::measured(request.preset.architecture.empty() ? request.preset.id : request.preset.architecture, "forms",
                     std::max(form.output_error, form.gradient_error));
    CHECK_SAYS(form.output_error <= tolerance, what + ": outputs differ by " + test::show(form.output_error));
    if (form.gradient_error > tolerance && request.dtype == "f32") {
      const std::string said = beyond_rounding(registry, request, form.form, tolerance);
      std::printf("%s: gradients differ by %g, by float64 %s\n", what.c_str(), form.gradient_error,
                  said.empty() ? "no more than by rounding" : "too");
      CHECK_SAYS(said.empty(), what + ": gradients differ by " + test::show(form.gradient_error) + said);
    } else {
      CHECK_SAYS(form.gradient_error <= tolerance, what + ": gradients differ by " + test::show(form.gradient_error));
    }
    most = std::max(most, form.flops);
  }
  return most;
}

/// Its first steps.
Sequence first_steps(Sequence sequence, std::int64_t steps) {
  const auto keep = [&](Numbers& values) {
    values.resize(values.size() / static_cast<std::size_t>(sequence.length) * static_cast<std::size_t>(steps));
  };
  for (Numbers* values : {&sequence.input, &sequence.time, &sequence.target, &sequence.mask}) keep(*values);
  sequence.length = steps;
  return sequence;
}
/// A model whose state grows without bound leaves the range of the numbers in the sequential form too, in float32 first. There is nothing
/// to compare from that step on: the steps before are. That is the model's own where its preset is over by then, and a fault before.
double agree_while_finite(const Registry& registry, RunRequest request) {
  try {
    return agree(registry, request);
  } catch (const Error& error) {
    const Prepared prepared(registry, request);
    const SequenceLoss loss(LossKind::random, request.sequence, prepared.loss.outputs());
    const auto bad = result_of({prepared.architecture, prepared.hyper, prepared.parameters, request.sequence, loss, prepared.backend},
                               Form::sequential, prepared.real, false, {})
                         .bad;
    if (!bad) throw;
    const std::int64_t step = bad->other < 0 ? bad->step : std::min(bad->step, bad->other);
    CHECK_SAYS(step >= request.preset.task_length, error.what());
    std::printf("%s %s: %s; the steps before are compared\n", request.preset.id.c_str(), request.dtype.c_str(), sentence(*bad).c_str());
    request.sequence = first_steps(*request.sequence, step);
    return agree(registry, request);
  }
}

/// One case a primitive and a choice, so that each is reported by its name.
const bool registered = [] {
  for (const Preset& preset : test::primitive_presets())
    test::cases().push_back({"every exact form agrees with the sequential one: " + preset.id,
                             [preset] {
                               for (const std::string dtype : {"f64", "f32"}) {
                                 std::map<std::int64_t, double> flops;
                                 for (const std::int64_t length : all_lengths) {
                                   // A form that is cubic in the steps takes minutes at 4,096: there with --thorough alone.
                                   if (length == 4096 && !test::thorough() &&
                                       flops[1000] * std::pow(4.096, std::log(flops[1000] / flops[65]) / std::log(1000.0 / 65.0)) > 2e10)
                                     continue;
                                   RunRequest request;
                                   request.preset = preset;
                                   request.dtype = dtype;
                                   request.sequence = primitive_input(preset.architecture, hyper_of(primitives(), preset), length, 1);
                                   flops[length] = agree(primitives(), request);
                                 }
                               }
                             },
                             {}});
  return true;
}();

}  // namespace

TEST_CASE("there are primitives and presets to compare") {
  CHECK(registered && !primitive_names().empty() && !test::shipped().presets().empty());
}

TEST_CASE("a float32 form's gradient that is further from float64 than rounding takes it is found") {
  // One of 1, and one of 1e-3 that is left of terms of 1, where a rounding of 2e-6 is two thousandths.
  const auto result = [](double large, double small) {
    FormResult one;
    one.input_gradient = {large, 0.5};
    one.gradients["small"] = {small, 1e-4};
    return one;
  };
  const FormResult exact = result(1.0, 1e-3);
  const auto said = [&](const FormResult& form, const FormResult& sequential, const FormResult& unrounded) {
    return beyond_rounding(form, {sequential, exact, unrounded}, 1, 1e-3);
  };
  const FormResult rounded = result(1.0 + 1e-7, 1e-3 + 2e-6);
  CHECK_EQUAL(said(exact, rounded, exact), "");
  CHECK_EQUAL(said(result(1.0 - 1e-7, 1e-3 - 3e-6), rounded, exact), "");
  CHECK(!said(result(1.01, 1e-3), rounded, exact).empty());
  CHECK(!said(result(1.0, 1.01e-3), rounded, exact).empty());
  CHECK(!said(result(NAN, 1e-3), rounded, exact).empty());
  // The sequential form's own mistake, and what is none since the weights' rounding does a tenth of it.
  CHECK(!said(exact, result(1.01, 1e-3), exact).empty());
  CHECK(!said(exact, result(1.0, 1.01e-3), exact).empty());
  CHECK_EQUAL(said(exact, result(1.01, 1e-3), result(1.001, 1e-3)), "");
}

SWEEP_PRESETS("every exact form agrees with the sequential one", preset) {
  // Of what is only composed of primitives: one step, one more than a chunk, and more than the 256 that stacks take at once.
  const bool all = test::in_full(preset);
  if (all) std::printf("%s at all lengths\n", preset.id.c_str());
  for (const std::string dtype : {"f64", "f32"})
    for (const std::int64_t length : all              ? all_lengths
                                     : dtype == "f64" ? std::vector<std::int64_t>{1, 65, 300}
                                                      : std::vector<std::int64_t>{65}) {
      RunRequest request;
      request.preset = preset;
      request.dtype = dtype;
      request.sequence =
          make_task(length < 32 ? "noise" : preset.task, {.length = length, .seed = 1});  // other tasks have a shortest length
      agree_while_finite(builtin_registry(), request);
    }
}
