// SPDX-License-Identifier: GPL-3.0-or-later
// Backpropagation through time (D. E. Rumelhart, G. E. Hinton, R. J. Williams, 1986), truncated as by R. J. Williams and J. Peng (Neural
// Computation 2(4), 1990): the gradient of a part's loss goes back over its steps, or over more where the part is shorter than the window.
// The state where it ends to go back is the one that the weights before the change came to.
#pragma once

#include <memory>

#include "learning/learning_rule.h"
#include "recurrence/ode/ode.h"

namespace reclab {

/// `ode`: the way of the gradient through layers whose step solves a differential equation. Throws Error for options and models that it
/// cannot learn with.
std::unique_ptr<LearningRule> through_time(const LearningSetup& setup, OdeGradient ode = OdeGradient::steps);

}  // namespace reclab
