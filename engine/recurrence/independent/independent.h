// SPDX-License-Identifier: GPL-3.0-or-later
// The recurrence of the independently recurrent network.
#pragma once

#include "recurrence/layer.h"

namespace reclab {

enum class Activation : std::uint8_t { identity, relu, sigmoid, tanh };

/// h_t = f(x_t + u ∘ h_{t-1}): no entry sees another. x [steps, batch, n], u [n], real. S. Li, W. Li, C. Cook, C. Zhu, Y. Gao,
/// Independently recurrent neural network (IndRNN), CVPR 2018, equation (2). Forms: sequential (one operation), newton, quasi_newton,
/// damped_newton, each a scan an iteration.
MemoryVars independent(Graph& graph, Form form, Activation f, Var x, Var u);

/// An independent recurrence in a layer; returns the states.
Var independent(Layer& layer, const StateSpec& state, Activation f, Var x, Var u);

}  // namespace reclab
