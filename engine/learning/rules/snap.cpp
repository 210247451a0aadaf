// SPDX-License-Identifier: GPL-3.0-or-later
// The sparse n-step approximation (J. Menick, E. Elsen, U. Evci, S. Osindero, K. Simonyan, A. Graves, ICLR 2021): of the influence P the
// entries are kept at which a weight reaches an entry of the state within n steps, and the others are held at 0. The last step of a
// gradient is taken whole. From the n on at which no more steps reach more entries it is real-time recurrent learning.
#include "learning/online/sparse_influence.h"

namespace reclab::rules_by_name {
namespace {

OnlineMethod method(const OnlineSetup& setup) {
  const StepPattern pattern = step_pattern(setup);
  const Reached reached = reached_within(pattern, setup.options.snap_order);
  const auto plan = std::make_shared<const SparsePlan>(pattern, reached.within, pattern.jacobian);
  return {.influence = [plan] { return std::make_unique<SparseInfluence>(plan); }, .numbers = plan->numbers(), .exact = !reached.grows};
}

}  // namespace

LearningRuleInfo snap() {
  return {.title = "Sparse n-step approximation",
          .year = 2021,
          .name = "SnAp-n",
          .gradient = GradientKind::biased,
          .sparse = true,
          .memory = "d_s + d |θ|, d the share of entries that n steps reach",
          .time = "d (d_s² + |θ|) for n = 1",
          .memory_power = 2,
          .time_power = 2,
          .source =
              "J. Menick, E. Elsen, U. Evci, S. Osindero, K. Simonyan, A. Graves, Practical real time recurrent learning with a sparse "
              "approximation, ICLR 2021, section 3",
          .idea =
              "Of the influence of the weights those entries alone are carried that a weight reaches within n steps. With n = 1 little is "
              "kept and influence through other units is lost; with n the diameter of the network it is exact.",
          .online = method};
}

}  // namespace reclab::rules_by_name
