// SPDX-License-Identifier: GPL-3.0-or-later
// The light recurrence of the simple recurrent unit.
#pragma once

#include "recurrence/layer.h"

namespace reclab {

/// f_t = sigmoid(a_t + v ∘ c_{t-1}),  c_t = f_t ∘ c_{t-1} + (1 - f_t) ∘ u_t,  r_t = sigmoid(b_t + w ∘ c_{t-1}): no entry sees another.
/// u, a, b [steps, batch, n]; v, w [n], both or none. Without them c is linear in itself. T. Lei, Y. Zhang, S. I. Wang, H. Dai, Y. Artzi,
/// Simple recurrent units for highly parallelizable recurrence, EMNLP 2018, equations (1), (2) and the gate of (3). With ResetSees::after
/// the reset gate sees the state that it reads, r_t = sigmoid(b_t + w ∘ c_t), as several other implementations have it. Forms: sequential;
/// with v and w newton, quasi_newton, damped_newton, each a scan an iteration; without them scan, chunkwise.
enum class ResetSees { before, after };
struct LightVars : MemoryVars {
  Var forget, reset;  ///< f and r [steps, batch, n]
};
LightVars light(Graph& graph, Form form, Var u, Var a, Var b, Var v = {}, Var w = {}, ResetSees sees = ResetSees::before);

/// A light recurrence in a layer, which gets the gates "forget" and "reset".
struct LightReads {
  Var state, reset;
};
LightReads light(Layer& layer, const StateSpec& state, Var u, Var a, Var b, Var v = {}, Var w = {}, ResetSees sees = ResetSees::before);

}  // namespace reclab
