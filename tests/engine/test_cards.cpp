// SPDX-License-Identifier: GPL-3.0-or-later
// What the cards say, measured in the presets' own runs.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "array/error.h"
#include "experiment/experiment.h"
#include "models/registry.h"
#include "test.h"

namespace fs = std::filesystem;
using namespace reclab;

namespace {

const PresetLibrary& library() {
  static const PresetLibrary presets(builtin_registry(), {fs::path(RECLAB_SOURCE_DIR) / "presets"});
  return presets;
}

RunResult run_of(RunRequest request) { return run(builtin_registry(), request, [](double, std::string_view) {}, {}); }

}  // namespace

TEST_CASE("input_scale multiplies what a model sees, and nothing else") {
  for (const char* id : {"elman", "s4d"}) {
    RunRequest request;
    request.preset = library().find(id);
    request.sequence = make_task("noise", {.length = 20});
    request.probe.spectra = request.probe.jacobians = false;
    RunRequest scaled = request, louder = request;
    scaled.set = {{"input_scale", "4"}};
    for (double& value : louder.sequence.input) value *= 4.0;
    const auto by_setting = run_of(scaled).trace, by_hand = run_of(louder).trace, plain = run_of(request).trace;
    CHECK(*by_setting->find("output")->real == *by_hand->find("output")->real);
    CHECK(*by_setting->find("input")->real == *plain->find("input")->real);
    CHECK(*by_setting->find("output")->real != *plain->find("output")->real);
    // Towards the input as it is, the slope is four times that towards the louder one.
    const auto &slope = *by_setting->find("gradient/input")->real, &louder_slope = *by_hand->find("gradient/input")->real;
    for (std::size_t i = 0; i < slope.size(); ++i) CHECK_EQUAL(slope[i], 4.0 * louder_slope[i]);
  }
}

TEST_CASE("without the encoder's bias zeros stay zeros, and every other weight is as it was") {
  RunRequest request;
  request.preset = library().find("lru");
  request.sequence = make_task("impulse", {.length = 30});
  request.probe.spectra = request.probe.jacobians = false;
  request.set = {{"encoder_bias", "true"}};
  RunRequest bare = request;
  bare.set = {{"encoder_bias", "false"}};
  const auto with = run_of(request).trace, without = run_of(bare).trace;
  CHECK(with->find("param/encoder/bias") && !without->find("param/encoder/bias"));
  CHECK_EQUAL(with->matching("param/").size(), without->matching("param/").size() + 1);
  for (const TraceArray* array : without->matching("param/")) CHECK_SAYS(*array->real == *with->find(array->key)->real, array->key);
  // After the impulse the state moves by its own eigenvalues alone.
  const auto& state = *without->find("state/0/h")->complex;
  const auto &nu = *without->find("param/0/nu_log")->real, &theta = *without->find("param/0/theta_log")->real;
  const std::size_t n = nu.size();
  for (std::size_t i = 0; i < n; ++i) {
    const std::complex<double> lambda = std::exp(std::complex<double>(-std::exp(nu[i]), std::exp(theta[i])));
    CHECK_CLOSE(std::abs(state[29 * n + i] - std::pow(lambda, 29) * state[i]), 0.0, 1e-12);
  }
  // Elman's network takes an input of any width, so it has no encoder.
  RunRequest none = request;
  none.preset = library().find("elman");
  CHECK_ERROR(run_of(none), "encoder_bias");
}
