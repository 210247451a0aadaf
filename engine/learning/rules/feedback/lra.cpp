// SPDX-License-Identifier: GPL-3.0-or-later
// Local representation alignment by errors (A. G. Ororbia, A. Mali, AAAI 2019, algorithm 1, with one step to the targets). Targets are set
// for the states themselves, since what a step adds up before its activation is not the same for all models.
#include "learning/feedback/local_alignment.h"

namespace reclab::rules_by_name {
namespace {

constexpr const char* title = "Local representation alignment";

std::unique_ptr<LearningRule> make(const LearningSetup& setup) { return local_alignment(setup, title, {}); }

}  // namespace

LearningRuleInfo lra() {
  return {
      .title = title,
      .year = 2019,
      .name = "LRA",
      .gradient = GradientKind::biased,
      .local = true,
      .memory = "d_s² for the gradient of a full matrix",
      .time = "as a step of the model forward and back for each layer, d_s² for a full matrix",
      .memory_power = 2,
      .time_power = 2,
      .source = "A. G. Ororbia, A. Mali, Biologically motivated algorithms for propagating local target representations, AAAI 2019",
      .idea =
          "Weights of feedback, drawn and then learned, turn the error of the outputs into a target for the state of the last layer, and "
          "what that is off by into one for the layer before. The weights of a layer learn to come nearer to its target within the "
          "one step; what earlier steps had to do with it is left out.",
      .make = make};
}

}  // namespace reclab::rules_by_name
