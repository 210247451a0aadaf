// SPDX-License-Identifier: GPL-3.0-or-later
// Synthetic gradients (M. Jaderberg and others, ICML 2017, section 2.1, with one step between two of them, as O. Marschall, K. Cho, C.
// Savin, JMLR 21, 2020, section 4.3.3): what all later losses say of a state is foretold from that state.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <stop_token>
#include <vector>

#include "execution/step_map.h"
#include "learning/online/batch_gradient.h"
#include "sequence/sequence.h"

namespace reclab {

/// The features of a step that a synthesiser is linear in: the state after it, its target (of classes one number each, 1 for its own; 0 at
/// a step without one), and 1.
std::vector<double> synthesis_features(std::span<const double> state, const Sequence& sequence, std::size_t t, std::size_t outputs);

/// The adjoint of the state after step t by the losses of all later steps, or what stands in its place.
using Synthesise = std::function<std::vector<double>(std::size_t t, std::span<const double> features)>;
/// Called with a synthesised adjoint of the state after step t, and with what the next step makes of the next one: J' lambda[t+1] +
/// dL[t+1]/ds.
using SeeSynthesis =
    std::function<void(std::span<const double> features, std::span<const double> synthesised, std::span<const double> target)>;

/// Goes over a sequence once, forward: own.gradient += sum_t (dn[t]/dtheta)' lambda[t] + dL[t]/dtheta, with lambda of the last step 0.
void synthetic_gradient(StepMap& step, const Sequence& sequence, const Synthesise& synthesise, const SeeSynthesis& see,
                        SequenceGradient& own, const std::stop_token& stop);

}  // namespace reclab
