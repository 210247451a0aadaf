// SPDX-License-Identifier: GPL-3.0-or-later
// The method of quadratic penalties, by auxiliary coordinates (M. Carreira-Perpinan, W. Wang, Distributed optimization of deeply nested
// systems, AISTATS 2014), for the states of a sequence: states and weights go down the loss and penalty/2 |f(s[t-1], u[t]) - s[t]|^2 by
// turns.
#include "learning/lifted/lifted.h"

namespace reclab::rules_by_name {
namespace {

constexpr const char* title = "Lifted states with quadratic penalties";

std::unique_ptr<LearningRule> make(const LearningSetup& setup) {
  const TrainingOptions& options = setup.options;
  check_lifted(options);
  return lifted_rule(setup, title, false,
                     [penalty = options.lifted_penalty, iterations = options.lifted_iterations](LiftedSequence& sequence) {
                       sequence.lift(penalty, 1, iterations);
                     });
}

}  // namespace

LearningRuleInfo lifted() {
  return {
      .title = title,
      .year = 2014,
      .name = "lifted",
      .gradient = GradientKind::biased,
      .past_facing = false,
      .local = true,
      .memory = "T d_s",
      .time = "K d_s² for a full matrix, K |θ| for others",
      .memory_power = 1,
      .time_power = 2,
      .source = "M. Carreira-Perpiñán, W. Wang, AISTATS 2014, section 2",
      .idea =
          "States are variables beside the weights, and a penalty holds each to what the step makes of the one before. They move to where "
          "losses ask for them, and each step's weights then have a target of their own, one step away. The larger the penalty, the "
          "nearer is the gradient to that of backpropagation, and the slower do states move.",
      .make = make};
}

}  // namespace reclab::rules_by_name
