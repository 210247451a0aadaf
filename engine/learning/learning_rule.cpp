// SPDX-License-Identifier: GPL-3.0-or-later
#include "learning/learning_rule.h"

#include <utility>

#include "learning/find_listed.h"
#include "learning/online/influence.h"

namespace reclab {

TrainingDiverged::TrainingDiverged(std::int64_t at, const std::string& what, std::string of)
    : Error("Training ended at step " + std::to_string(at) + ", where " + what + Remedy{": ", "choose a smaller rate (", {"lr"}, ")"} +
                Remedy{", or ", "clip the gradient (", {"clip", "1"}, ")"} + ".",
            {.place = "step " + std::to_string(at), .parameter = of}),
      step(at),
      array(std::move(of)) {}

std::string_view to_string(GradientKind kind) {
  static constexpr std::string_view names[] = {"exact", "unbiased", "biased"};
  return names[static_cast<std::size_t>(kind)];
}

std::string_view to_string(OdeStates states) { return states == OdeStates::backward ? "backward" : "checkpoints"; }

OdeStates ode_states(std::string_view name) {
  for (const OdeStates states : {OdeStates::backward, OdeStates::checkpoints})
    if (name == to_string(states)) return states;
  throw Error("There are no states " + std::string(name) + " of the adjoint method: choose backward or checkpoints.",
              {.parameter = "ode_states", .value = std::string(name), .range = "backward, checkpoints"});
}

std::unique_ptr<LearningRule> make_learning_rule(const LearningSetup& setup) {
  const LearningRuleInfo& info = learning_rule(setup.options.rule);
  if (setup.options.gate_penalty > 0.0 && info.id != "bptt" && info.id != "fptt" && info.id != "adjoint")
    throw Error(
        info.title + " takes no gate penalty, which goes back through the steps: choose the rule bptt, fptt or adjoint, or no penalty.",
        {.parameter = "gate_penalty", .range = "0"});
  return info.make ? info.make(setup) : online_rule(info, setup);
}

const LearningRuleInfo& learning_rule(std::string_view id) { return find_listed(learning_rules(), id, "learning rule", "rule"); }

}  // namespace reclab
