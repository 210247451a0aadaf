// SPDX-License-Identifier: GPL-3.0-or-later
// Real-time recurrent learning where a layer's transition is diagonal or falls into blocks (N. Zucchet, R. Meier, S. Schug, A.
// Mujika, J. Sacramento, NeurIPS 2023): a weight reaches few entries of the state, so that what it reaches in its own layer is all of P
// that is kept. Where it enters a layer above, it is seen by the error that comes down within the step, and not by the memory of that
// layer: exact for one layer, for a stack an approximation.
#include <limits>

#include "learning/online/sparse_influence.h"
#include "learning/structure/step_layers.h"

namespace reclab::rules_by_name {
namespace {

OnlineMethod method(const OnlineSetup& setup) {
  const StepLayers layers = step_layers(setup);
  const StepPattern pattern = step_pattern(setup), within = layers.within(pattern);
  require_blocks(layers, pattern, setup, "diagonal-rtrl");
  const BitMatrix kept = reached_within(within, std::numeric_limits<std::int64_t>::max()).within;
  const auto plan = std::make_shared<const SparsePlan>(pattern, kept, within.jacobian);
  return {.influence = [plan] { return std::make_unique<SparseInfluence>(plan); },
          .numbers = plan->numbers(),
          .exact = kept == reached_within(pattern, std::numeric_limits<std::int64_t>::max()).within};
}

}  // namespace

LearningRuleInfo diagonal_rtrl() {
  return {.title = "Real-time recurrent learning of diagonal transitions",
          .year = 2023,
          .name = "diagonal RTRL",
          .gradient = GradientKind::biased,
          .local = true,
          .sparse = true,
          .memory = "|θ| for weights that act on one entry of the state",
          .time = "|θ| beside a few products of the step's Jacobian",
          .memory_power = 2,
          .time_power = 2,
          .source = "N. Zucchet, R. Meier, S. Schug, A. Mujika, J. Sacramento, Online learning of long-range dependencies, NeurIPS 2023",
          .idea =
              "Of the influence of the weights only what goes on within each entry of the state, or each block, is carried. Where the "
              "transition is diagonal that is all of it; where units mix, what passes from one to another is left out.",
          .online = method};
}

}  // namespace reclab::rules_by_name
