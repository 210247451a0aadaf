// SPDX-License-Identifier: GPL-3.0-or-later
// Real-time recurrent learning where a layer's transition is diagonal or falls into blocks (N. Zucchet, R. Meier, S. Schug, A.
// Mujika, J. Sacramento, NeurIPS 2023): a weight reaches few entries of the state, so that what it reaches in its own layer is all of P
// that is kept. Where it enters a layer above, it is seen by the error that comes down within the step, and not by the memory of that
// layer: exact for one layer, for a stack an approximation.
#include <algorithm>
#include <limits>

#include "learning/online/sparse_influence.h"

namespace reclab::rules_by_name {
namespace {

OnlineMethod method(const OnlineSetup& setup) {
  const StepPattern pattern = step_pattern(setup);
  const StepMap step(setup.model, setup.inputs, setup.outputs);
  const std::size_t n = step.states(), weights = step.weights();
  std::vector<int> layer_of(n);
  for (std::size_t i = 0; i < step.parts().size(); ++i)
    std::fill_n(layer_of.begin() + static_cast<std::ptrdiff_t>(step.parts()[i].first), step.parts()[i].entries,
                step.network().states()[i].layer);
  // The lowest layer that a weight acts on is its own.
  std::vector<int> own(weights, std::numeric_limits<int>::max());
  for (std::size_t i = 0; i < n; ++i)
    for (const std::uint32_t w : pattern.direct.listed(i)) own[w] = std::min(own[w], layer_of[i]);
  StepPattern within{BitMatrix(n, n), BitMatrix(n, weights)};
  for (std::size_t i = 0; i < n; ++i) {
    for (const std::uint32_t j : pattern.jacobian.listed(i))
      if (layer_of[i] == layer_of[j]) within.jacobian.set(i, j);
    for (const std::uint32_t w : pattern.direct.listed(i))
      if (own[w] == layer_of[i]) within.direct.set(i, w);
  }
  BitMatrix self(n, n);
  for (std::size_t i = 0; i < n; ++i) self.set(i, i);
  const BitMatrix blocks = reached_within({within.jacobian, self}, std::numeric_limits<std::int64_t>::max()).within;
  for (std::size_t i = 0; i < n; ++i) {
    const auto of_layer = static_cast<std::size_t>(std::ranges::count(layer_of, layer_of[i])), block = blocks.listed(i).size();
    if (block > 2 && 2 * block > of_layer)
      throw Error(
          setup.model.architecture().id + " has a layer in which " + std::to_string(block) + " of " + std::to_string(of_layer) +
              " entries of the state act on one of them, so its transition is neither diagonal nor in blocks: choose rtrl, or snap.",
          {.model = setup.model.architecture().id, .parameter = "rule", .value = "diagonal-rtrl"});
  }
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
