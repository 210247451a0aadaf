// SPDX-License-Identifier: GPL-3.0-or-later
// A sequence that is run in segments has the gradients of the whole, whatever units the adjoints are carried in from one to the next.
#include <algorithm>
#include <cmath>
#include <map>

#include "experiment/experiment.h"
#include "experiment/rollout.h"
#include "models/registry.h"
#include "test.h"

using namespace reclab;

namespace {

struct Gradients {
  std::map<std::string, std::vector<double>> all;    ///< of parameters and of the input
  std::map<std::string, std::vector<double>> norms;  ///< log2 of those of the states of memories, a step each
  bool whole = false;
};

Gradients gradients_of(const Architecture& architecture, const Hyper& hyper, Loss::Kind kind, const Sequence& sequence, std::int64_t segment, bool record = true) {
  const Loss loss(kind, sequence);
  NetworkOptions one;
  one.input = sequence.width;
  const Parameters parameters = Network(architecture, hyper, one).initialise(1);
  Rollout::Options options;
  options.segment = segment;
  options.record = record;
  Rollout rollout(architecture, hyper, parameters, sequence, loss, cpu_backend(), options);
  CHECK(!rollout.forward({}, {}));
  Gradients found;
  found.whole = rollout.network().whole();
  auto& input = found.all["input"];
  input.resize(sequence.input.size());
  rollout.backward([&](const Rollout::Segment& s, int scale) {
    const auto values = to_double(cpu_backend(), DType::f64, s.network.graph().gradient(s.network.input()), s.steps * sequence.width);
    for (std::size_t i = 0; i < values.size(); ++i) input[static_cast<std::size_t>(s.first * sequence.width) + i] = std::ldexp(values[i], scale);
    for (const auto& state : s.network.states()) {
      if (!state.memory || static_cast<std::size_t>(state.slot) >= state.memory->log2_norms().size()) continue;
      auto& norms = found.norms[Rollout::state_key(state)];
      norms.resize(static_cast<std::size_t>(sequence.length));
      for (std::int64_t t = 0; t < s.steps; ++t) norms[static_cast<std::size_t>(s.first + t)] = state.memory->log2_norms()[static_cast<std::size_t>(state.slot)][static_cast<std::size_t>(t)] + scale;
    }
  }, {});
  found.all.insert(rollout.parameter_gradients().begin(), rollout.parameter_gradients().end());
  return found;
}

}  // namespace

TEST_CASE("the gradients of every preset are the same in segments of any length") {
  const PresetLibrary library(builtin_registry(), {std::filesystem::path(RECLAB_SOURCE_DIR) / "presets"});
  std::size_t compared = 0;
  for (const Preset& preset : library.presets()) {
    const auto architecture = architecture_of(builtin_registry(), preset);
    const Hyper hyper = hyper_of(builtin_registry(), preset);
    const Sequence sequence = make_task("noise", {.length = 90, .seed = 2});
    for (const Loss::Kind kind : {Loss::Kind::last, Loss::Kind::mean, Loss::Kind::random}) {
      const Gradients whole = gradients_of(*architecture, hyper, kind, sequence, 90);
      if (whole.whole) continue;
      double largest = 0.0;
      for (const auto& [name, values] : whole.all)
        for (const double x : values) largest = std::max(largest, std::abs(x));
      for (const std::int64_t segment : {1, 7, 64, -64}) {  // negative: nothing is recorded, and memories need not keep their states
        const Gradients parts = gradients_of(*architecture, hyper, kind, sequence, std::abs(segment), segment > 0);
        for (const auto& [name, values] : whole.all) {
          double size = 1e-6 * largest, difference = 0.0;
          for (std::size_t i = 0; i < values.size(); ++i) {
            size = std::max(size, std::abs(values[i]));
            difference = std::max(difference, std::abs(values[i] - parts.all.at(name)[i]));
          }
          CHECK_SAYS(difference <= 1e-9 * size, preset.id + ", segments of " + std::to_string(segment) + ": " + name + " differs by " + test::show(difference) + " of " + test::show(size));
        }
        for (const auto& [name, norms] : whole.norms)
          for (std::size_t t = 0; t < norms.size() && segment > 0; ++t) {
            if (norms[t] < std::log2(largest) - 40.0) continue;  // the rounding of larger terms
            CHECK_SAYS(std::abs(norms[t] - parts.norms.at(name)[t]) <= 1e-3, preset.id + ", segments of " + std::to_string(segment) + ": |dL/d" + name + "| at step " + std::to_string(t) +
                                                                                " is 2^" + test::show(parts.norms.at(name)[t]) + ", not 2^" + test::show(norms[t]));
          }
        ++compared;
      }
    }
  }
  CHECK(compared > 40);
}
