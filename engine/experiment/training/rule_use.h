// SPDX-License-Identifier: GPL-3.0-or-later
// Which learning rules a preset can be trained by: asked of the rules themselves.
#pragma once

#include <string>
#include <vector>

#include "experiment/experiment.h"

namespace reclab {

struct RuleUse {
  std::string rule;    ///< its id
  bool exact = false;  ///< its gradients are those of backpropagation, for this model
  Sentence why_not;    ///< empty: the preset can be trained by it
  Sentence no_credit;  ///< empty: its gradients of single steps of the request's own loss can be compared with the true ones
};

/// Of all rules, in their order, for the model of a preset on its own sequence; a large one is made small, whose step has the same
/// structure. Throws Error for a preset that cannot be built.
std::vector<RuleUse> rule_uses(const Registry& registry, const Preset& preset);
/// The same for the model of a request on its sequence, with weights that are drawn; on one of a task where that has no target. Throws
/// Cancelled.
std::vector<RuleUse> rule_uses(const Registry& registry, RunRequest request, std::stop_token stop = {});

/// The settings that make a preset small, as far as it can be.
std::vector<std::pair<std::string, std::string>> small_settings(const Registry& registry, const Preset& preset);

}  // namespace reclab
