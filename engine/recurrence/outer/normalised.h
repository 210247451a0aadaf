// SPDX-License-Identifier: GPL-3.0-or-later
// Matrix memories whose reads are divided by the weight of their keys, and gates that would leave the range kept in units of a running
// maximum.
#pragma once

#include <functional>

#include "recurrence/outer/outer.h"

namespace reclab {

/// The divisor of a read as a function of w_t = q_t . z_t, the weight of all keys that it sees; [steps, batch, heads, 1].
using Denominator = std::function<Var(Var weight)>;
namespace denominator {
Denominator plus(double eps);                               ///< w + eps
Denominator at_least(double least);                         ///< max(w, least)
Denominator size_at_least(double least, double eps = 0.0);  ///< max(|w|, least) + eps
Denominator size_at_least(Var least, double eps);           ///< least broadcasts with w
}  // namespace denominator

/// A normalised matrix memory in a layer; returns its reads divided by the denominator. The state `normaliser` is z [heads, key], decayed,
/// written with k and read with q as the memory is, its values all 1.
Var normalised_outer(Layer& layer, const StateSpec& memory, const StateSpec& normaliser, const OuterInputs& in,
                     const Denominator& denominator);

/// Gates exp(input) and exp(log_forget) of a memory that is kept divided by e^m, m_t = max(log_forget_t + m_{t-1}, input_t) the running
/// maximum of the exponents, so that none of them is above 0. All [steps, batch, heads].
struct StabilisedGates {
  Var m;      ///< after the step
  Var keep;   ///< log_forget_t + m_{t-1} - m_t, a logarithm: the memory's decay
  Var write;  ///< exp(input_t - m_t): the factor of the key
  /// e^-m as a least denominator, in the units that the memory is in; neither 0, which would leave 0/0 where nothing was recalled, nor
  /// infinite, which has no slope.
  Var unit() const;
};
StabilisedGates stabilised(Layer& layer, const StateSpec& m, Var log_forget, Var input);

}  // namespace reclab
