// SPDX-License-Identifier: GPL-3.0-or-later
// The card of H3, its parameters as the equations use them, and the memories of the product of a key and a value.
#pragma once

#include <string>

#include "models/architecture.h"

namespace reclab::architectures {

Architecture h3_card();

std::int64_t h3_heads(const Hyper& h);
/// The number of copies of A and B.
std::int64_t h3_copies(const Hyper& h);

/// s_t = shift(s_{t-1}) + B k_t, read by C: N places a channel.
struct H3Shift {
  Var B, C;  ///< [channels, N]
};
H3Shift h3_shift(Layer& l, const std::string& name, std::int64_t channels);

/// The diagonal system in continuous time, M = N/2 modes a head, one of each conjugate pair.
struct H3Diagonal {
  Var A;   ///< [heads, M]
  Var dt;  ///< Δ [heads, 1]
  Var B;   ///< [heads, M]
  Var C;   ///< [heads, M]; 0 for modes beyond the band limit
};
H3Diagonal h3_diagonal(Layer& l);

/// The moving averages of mode=ema, N a head: 1 − σ(δ) σ(α) is the share that stays, σ(δ) β the weight of an input.
struct H3Averages {
  Var delta;               ///< [heads, N] or [heads, 1]
  Var alpha, beta, gamma;  ///< [heads, N]
};
H3Averages h3_averages(Layer& l);

/// A system in discrete time, h_t = a ⊙ h_{t-1} + b u_t, read by Re Σ w_n h_n; [heads, modes], complex or real.
struct H3Modes {
  Var a, b, w;
  bool may_grow = false;  ///< whether |a| may be above 1
};
/// The output of a system for u [steps, batch, channels], `each` channels of a head after another: mode by mode, or by the first taps of
/// its kernel [heads, taps].
Var h3_by_modes(Layer& l, const H3Modes& system, Var u, std::int64_t each);
Var h3_by_taps(Layer& l, Var kernel, Var u, std::int64_t each);

}  // namespace reclab::architectures
