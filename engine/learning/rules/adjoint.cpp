// SPDX-License-Identifier: GPL-3.0-or-later
// The adjoint method (R. T. Q. Chen, Y. Rubanova, J. Bettencourt, D. Duvenaud, Neural ordinary differential equations, NeurIPS 2018, after
// L. S. Pontryagin and others, 1962): through a layer whose step solves a differential equation the adjoint goes back by another one
// (recurrence/ode/ode.h), and through all else as in backpropagation, observations among them.
#include <algorithm>
#include <string>

#include "learning/losses.h"
#include "learning/through_time/through_time.h"
#include "models/network.h"

namespace reclab::rules_by_name {
namespace {

void require_equation(const LearningSetup& setup) {
  const Sequence& first = setup.examples.front();
  const Model& model = setup.model;
  const std::string& id = model.architecture().id;
  const ErrorPlace place{.model = id, .parameter = "rule", .value = "adjoint"};
  const Network network(model.architecture(), model.hyper(),
                        {.input = first.width, .head = SequenceLoss(LossKind::task, first).outputs(), .real = model.real()});
  if (network.ode_layers().empty())
    throw Error(id + " has no layer whose step solves a differential equation by explicit Runge–Kutta steps, so there is none that the "
                     "adjoint method could go back by: choose bptt.",
                place);
  for (const Network::OdeLayer& layer : network.ode_layers())
    if (!layer.why_no_adjoint.empty()) throw Error(id + " " + layer.why_no_adjoint + ".", place);
}

}  // namespace

LearningRuleInfo adjoint() {
  return {.title = "The adjoint method",
          .year = 2018,
          .name = "adjoint",
          .gradient = GradientKind::biased,
          .past_facing = false,
          .memory = "T d_s, whatever the solver's steps",
          .time = "|θ|, d_s² for a full matrix",
          .memory_power = 1,
          .time_power = 2,
          .source = "R. T. Q. Chen, Y. Rubanova, J. Bettencourt, D. Duvenaud, NeurIPS 2018, algorithm 1",
          .idea =
              "Between two observations the adjoint is the solution of a differential equation of its own, which is solved backward beside "
              "the state's. Nothing of the solver's steps is kept; the gradient is that of the exact solution, as far as the steps are "
              "fine enough, and not that of the steps.",
          .make = [](const LearningSetup& setup) -> std::unique_ptr<LearningRule> {
            require_equation(setup);
            return through_time(setup,
                                setup.options.ode_states == OdeStates::checkpoints ? OdeGradient::checkpoints : OdeGradient::adjoint);
          }};
}

}  // namespace reclab::rules_by_name
