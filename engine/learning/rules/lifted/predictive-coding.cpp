// SPDX-License-Identifier: GPL-3.0-or-later
// Predictive coding (B. Millidge, A. Tschantz, C. L. Buckley, Neural Computation 34(6), 2022), with predictions that are fixed while errors
// relax. At a rate of 1 an error goes one step back in each iteration.
#include "learning/lifted/lifted.h"

namespace reclab::rules_by_name {
namespace {

constexpr const char* title = "Predictive coding";

std::unique_ptr<LearningRule> make(const LearningSetup& setup) {
  const std::int64_t asked = setup.options.pc_iterations, iterations = asked > 0 ? asked : setup.length;
  const double rate = setup.options.pc_rate;
  if (!(rate > 0.0 && rate <= 1.0))
    throw Error("pc_rate is out of range: choose more than 0, at most 1.",
                {.parameter = "pc_rate", .value = std::to_string(rate), .range = "more than 0, at most 1"});
  const bool exact = rate == 1.0 && iterations + 1 >= setup.length;
  return lifted_rule(setup, title, exact, [iterations, rate](LiftedSequence& sequence) { sequence.code(iterations, rate); });
}

}  // namespace

LearningRuleInfo predictive_coding() {
  return {
      .title = title,
      .year = 2022,
      .name = "predictive coding",
      .past_facing = false,
      .local = true,
      .memory = "T d_s",
      .time = "K d_s² for a full matrix, K |θ| for others",
      .memory_power = 1,
      .time_power = 2,
      .source = "B. Millidge, A. Tschantz, C. L. Buckley, Neural Computation 34(6), 2022, equations 5 and 6",
      .idea =
          "Each state has an error beside it, its prediction from the step before less itself, and all errors relax at once towards what "
          "the errors and losses one step later ask for. Where they come to rest they are the adjoints of backpropagation; after K "
          "iterations a loss has gone K steps back.",
      .make = make};
}

}  // namespace reclab::rules_by_name
