// SPDX-License-Identifier: GPL-3.0-or-later
// Every exact form of every model agrees with its sequential one, outputs and gradients, in both precisions.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "experiment/experiment.h"
#include "models/registry.h"
#include "sweep.h"
#include "test.h"
#include "timing/primitives.h"

using namespace reclab;

namespace {

/// Around the lengths that forms cut a sequence at, long enough for several segments, and 4,096 steps.
const std::vector<std::int64_t> all_lengths{1, 2, 3, 63, 64, 65, 1000, 4096};

/// Returns the operations of the largest form, forward.
double agree(const Registry& registry, RunRequest request) {
  double most = 0.0;
  const double tolerance = request.dtype == "f64" ? 1e-9 : 1e-3;
  for (const FormReport& form : compare_forms(registry, request, {})) {
    const std::string what = request.preset.id + " " + form.form + " " + request.dtype + " length " + std::to_string(request.sequence->length);
    CHECK_SAYS(form.output_error <= tolerance, what + ": outputs differ by " + test::show(form.output_error));
    CHECK_SAYS(form.gradient_error <= tolerance, what + ": gradients differ by " + test::show(form.gradient_error));
    most = std::max(most, form.flops);
  }
  return most;
}

/// One case a primitive and a choice, so that each is reported by its name.
const bool registered = [] {
  for (const Preset& preset : test::primitive_presets())
    test::cases().push_back({"every exact form agrees with the sequential one: " + preset.id, [preset] {
                               for (const std::string dtype : {"f64", "f32"}) {
                                 std::map<std::int64_t, double> flops;
                                 for (const std::int64_t length : all_lengths) {
                                   // A form that is cubic in the steps takes minutes at 4,096: there with --thorough alone.
                                   if (length == 4096 && !test::thorough() && flops[1000] * std::pow(4.096, std::log(flops[1000] / flops[65]) / std::log(1000.0 / 65.0)) > 2e10) continue;
                                   RunRequest request;
                                   request.preset = preset;
                                   request.dtype = dtype;
                                   request.sequence = primitive_input(preset.architecture, hyper_of(primitives(), preset), length, 1);
                                   flops[length] = agree(primitives(), request);
                                 }
                               }
                             }, {}});
  return true;
}();

}  // namespace

TEST_CASE("there are primitives and presets to compare") { CHECK(registered && !primitive_names().empty() && !test::shipped().presets().empty()); }

SWEEP_PRESETS("every exact form agrees with the sequential one", preset) {
  // Of what is only composed of primitives: one step, one more than a chunk, and more than the 256 that stacks take at once.
  const bool all = test::in_full(preset);
  if (all) std::printf("%s at all lengths\n", preset.id.c_str());
  for (const std::string dtype : {"f64", "f32"})
    for (const std::int64_t length : all ? all_lengths : dtype == "f64" ? std::vector<std::int64_t>{1, 65, 300} : std::vector<std::int64_t>{65}) {
      RunRequest request;
      request.preset = preset;
      request.dtype = dtype;
      request.sequence = make_task(length < 32 ? "noise" : preset.task, {.length = length, .seed = 1});  // other tasks have a shortest length
      agree(builtin_registry(), request);
    }
}
