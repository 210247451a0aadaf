// SPDX-License-Identifier: GPL-3.0-or-later
// Recurrences whose transition is diagonal.
#pragma once

#include "recurrence/layer.h"

namespace reclab {

/// s_t = a_t * s_{t-1} + b_t. b [steps, batch, ...] real or complex; a of b's shape, or time-invariant of b's shape without steps and
/// batch. Forms: sequential, scan; convolution (through FFT, channel by channel) when time-invariant and complex.
/// `shown`: the factors that stand for the transition in spectra and in ds_T/ds_t where a is one in units that change from step to step (a
/// stabilised memory): [steps, batch, groups] or time-invariant [groups], each group's factor for as many entries of the state in a row.
MemoryVars diagonal(Graph& graph, Form form, Var a, Var b, Var shown = {});
/// The same from an initial state that the graph has made.
MemoryVars diagonal_from(Graph& graph, Form form, Var a, Var b, Var initial, Var shown = {});
/// The states before each step, the initial one first, for the result of one of these in a form that goes over the states: their readers
/// add to the adjoint of the initial state, in the unit that it has.
Var states_before(const MemoryVars& vars);

/// The time-invariant diagonal system of a bank of single-input single-output channels, read out:
///   s_t[c, n] = a[c, n] s_{t-1}[c, n] + b[c, n] u_t[c],   y_t[c] = Re sum_n w[c, n] s_t[c, n]
/// u [steps, batch, C] real; a, b, w [C, N] of one type, real or complex, which is the state's; y [steps, batch, C]. In the convolution
/// form the kernel sum_n w b a^k is collapsed over the modes first, and no state is formed.
struct BankVars : MemoryVars {
  Var output;
};
BankVars diagonal_bank(Graph& graph, Form form, Var a, Var b, Var w, Var u);

/// A diagonal recurrence in a layer; returns the trajectory.
Var diagonal(Layer& layer, const StateSpec& state, Var a, Var b, Var shown = {});
/// The reads.
Var diagonal_bank(Layer& layer, const StateSpec& state, Var a, Var b, Var w, Var u);

}  // namespace reclab
