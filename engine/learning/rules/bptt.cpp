// SPDX-License-Identifier: GPL-3.0-or-later
#include "learning/through_time/through_time.h"

namespace reclab::rules_by_name {

LearningRuleInfo bptt() {
  return {.title = "Backpropagation through time",
          .year = 1986,
          .name = "BPTT",
          .past_facing = false,
          .memory = "T d_s",
          .time = "|θ|, d_s² for a full matrix",
          .memory_power = 1,
          .time_power = 2,
          .source =
              "D. E. Rumelhart, G. E. Hinton, R. J. Williams, Nature 323, 1986; truncated: R. J. Williams, J. Peng, Neural "
              "Computation 2(4), 1990",
          .idea =
              "An adjoint goes back from the last step to the first and meets each step's weights there. All states of the sequence are "
              "kept for it; truncated, it does not see what lies further back than its window.",
          .make = [](const LearningSetup& setup) -> std::unique_ptr<LearningRule> { return through_time(setup); }};
}

}  // namespace reclab::rules_by_name
