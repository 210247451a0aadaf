// SPDX-License-Identifier: GPL-3.0-or-later
// The card of S4D, and its parameters as the equations use them. Their names, shapes and signs (code=minimal, code=full), initial values
// and transforms are in parameters.cpp.
#pragma once

#include "models/architecture.h"

namespace reclab::architectures {

Architecture s4d_card();

/// H channels of M modes: N/2, one of each conjugate pair, or N real ones.
struct S4dParameters {
  Var A;   ///< [H, M]
  Var dt;  ///< Δ [H, 1], or [H, M]
  Var B;   ///< [H, M]; none: 1
  Var C;   ///< [reads H, M] of the layer's direction; 0 for modes beyond the band limit
  Var D;   ///< as parts::skip takes it; none where both directions share it
};
S4dParameters s4d_parameters(Layer& l);
/// D alone.
Var s4d_skip(Layer& l);
/// GLU(W gelu(y) + b).
Var s4d_output(Layer& l, Var y);

}  // namespace reclab::architectures
