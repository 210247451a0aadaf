// SPDX-License-Identifier: GPL-3.0-or-later
// Flow: the continuous-time system ds/dt = A s + ... whose discretisation a layer's transition is, and the rule that discretises it.
#pragma once

#include <string>

#include "recurrence/layer.h"

namespace reclab {

/// The step is (1 + (1 - share) ΔA) / (1 - share ΔA), or exp(ΔA); Δ and A are the model's own, and only their product counts.
struct Flow {
  enum class Rule : std::uint8_t { forward, backward, bilinear, generalised, exponential };
  Rule rule = Rule::bilinear;
  double share = 0.5;  ///< of generalised: the share of the new state in the step's slope
  /// For exponential: the eigenvalues of ΔA, complex, in the order of those of the transition or of a whole part of them that repeats. exp
  /// forgets whole turns, so they cannot be told from the transition. None where they are real.
  Var exponents{};
};
/// "forward", "backward", "bilinear", "generalised" and "exponential"; also "zoh", which moves a state that is not driven as exponential
/// does.
Flow::Rule flow_rule(const std::string& name);
const char* to_string(Flow::Rule rule);

/// The receiver of declare_flow: an interface beside Layer.
class FlowListener {
 public:
  virtual ~FlowListener() = default;
  virtual void flows(const Flow& flow) = 0;
};
/// Says that the transition of the layer's states is such a step. Once a layer. A generalised one is named by its share where that has a
/// name; exponents count with exponential alone.
void declare_flow(Layer& layer, const Flow& flow);

}  // namespace reclab
