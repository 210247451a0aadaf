// SPDX-License-Identifier: GPL-3.0-or-later
// Local propagation (G. Marra, M. Tiezzi, S. Melacci, A. Betti, M. Maggini, M. Gori, IJCNN 2020): the constraints s[t] = f(s[t-1], u[t]) by
// an augmented Lagrangian. Multipliers rise by the penalty times what a constraint is off by, as in the method of multipliers and in G.
// Taylor and others (ICML 2016).
#include "learning/lifted/lifted.h"

namespace reclab::rules_by_name {
namespace {

constexpr const char* title = "Local propagation";

std::unique_ptr<LearningRule> make(const LearningSetup& setup) {
  const TrainingOptions& options = setup.options;
  check_lifted(options);
  return lifted_rule(setup, title, false,
                     [penalty = options.lifted_penalty, rounds = options.lifted_rounds,
                      iterations = options.lifted_iterations](LiftedSequence& sequence) { sequence.lift(penalty, rounds, iterations); });
}

}  // namespace

LearningRuleInfo local_propagation() {
  return {.title = title,
          .year = 2020,
          .name = "local propagation",
          .gradient = GradientKind::biased,
          .past_facing = false,
          .local = true,
          .memory = "T d_s",
          .time = "K d_s² for a full matrix, K |θ| for others",
          .memory_power = 1,
          .time_power = 2,
          .source = "G. Marra and others, IJCNN 2020, equations 4 to 7",
          .idea =
              "States are variables beside the weights, each constraint to what the step makes of the one before has a multiplier, and a "
              "saddle point is sought: states go down, multipliers up. Where all constraints hold the multipliers are the adjoints of "
              "backpropagation.",
          .make = make};
}

}  // namespace reclab::rules_by_name
