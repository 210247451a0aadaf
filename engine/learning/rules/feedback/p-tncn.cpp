// SPDX-License-Identifier: GPL-3.0-or-later
// The learning of the parallel temporal neural coding network (A. Ororbia, A. Mali, C. L. Giles, D. Kifer, IEEE TNNLS 31(10), 2020) for the
// layers of any model: each layer also predicts the one nearer to the output, errors of predictions move the states, and the next step
// goes on from there. The derivative of the step is the model's, where the authors leave out that of the activation; feedback learns by the
// change of the prediction transposed, as in their program, and not by the paper's difference of two steps.
#include "learning/feedback/local_alignment.h"

namespace reclab::rules_by_name {
namespace {

constexpr const char* title = "Parallel temporal neural coding";

std::unique_ptr<LearningRule> make(const LearningSetup& setup) {
  return local_alignment(setup, title, {.predicts = true, .carries = true});
}

}  // namespace

LearningRuleInfo p_tncn() {
  return {
      .title = title,
      .year = 2020,
      .name = "P-TNCN",
      .gradient = GradientKind::biased,
      .local = true,
      .memory = "d_s² for the gradient of a full matrix",
      .time = "as a step of the model forward and back for each layer, d_s² for a full matrix",
      .memory_power = 2,
      .time_power = 2,
      .source =
          "A. Ororbia, A. Mali, C. L. Giles, D. Kifer, Continual learning of recurrent neural networks by locally aligning distributed "
          "representations, IEEE TNNLS 31(10), 2020",
      .idea =
          "Outputs predict the target and each layer the one nearer to the output; the errors of both move the states by learned "
          "weights of feedback, and the next step goes on from the moved states. All layers learn at once, from what their own state was "
          "moved by: nothing goes back through time, and what a target says of earlier steps is in the states alone.",
      .make = make};
}

}  // namespace reclab::rules_by_name
