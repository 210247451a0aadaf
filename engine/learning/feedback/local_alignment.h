// SPDX-License-Identifier: GPL-3.0-or-later
// Local representation alignment: each layer of a step gets a target for its state by weights of feedback, and its weights learn to come
// nearer to the target in that one step (A. G. Ororbia, A. Mali, AAAI 2019; for recurrent models A. Ororbia, A. Mali, C. L. Giles, D.
// Kifer, IEEE TNNLS 31(10), 2020).
#pragma once

#include <memory>
#include <string>

#include "learning/learning_rule.h"

namespace reclab {

/// With z[k] the state of a layer after the step, layers counted from the output on, e the error of the outputs, dL/dy of the step's loss
/// alone, and d[k] what the state is off its target by:
///   without predictions  d[1] = beta E[1] e,                d[k+1] = beta E[k+1] d[k]
///   with them            d[k] = beta (E[k] p[k-1] - alpha p[k]),  p[0] = e,  p[k] = W[k+1] z[k+1] - z[k], 0 for the last layer.
/// Weights go down |z[k] - target|^2 / 2 of their own layer, by the derivative of the one step; those that act on outputs alone go down the
/// loss. The weights of the rule's own go down by plain steps of its rate: E[k] by z[k] p[k-1]' (without predictions d[k-1] in place of
/// p[k-1]), W[k+1] by p[k] z[k+1]'.
struct AlignmentForm {
  bool predicts = false;  ///< layers predict those nearer to the output
  bool carries = false;   ///< the next step goes on from the targets
};
/// Throws Error for options out of range, a batch in parts, and a model without a state or whose step cannot be taken alone.
std::unique_ptr<LearningRule> local_alignment(const LearningSetup& setup, const std::string& title, const AlignmentForm& form);

}  // namespace reclab
