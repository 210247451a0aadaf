// SPDX-License-Identifier: GPL-3.0-or-later
// The card of LSSL, and its parameters as the equations use them.
#pragma once

#include "models/architecture.h"

namespace reclab::architectures {

Architecture lssl_card();

/// A and B in continuous time: [N, N] and [N], with the axes `of_channels` in front.
struct LsslTransition {
  Var A, B;
};
LsslTransition lssl_transition(Layer& l, std::int64_t N, const Shape& of_channels);

/// H channels, each a system of N states that is read out M times. A distilled layer has D alone.
struct LsslParameters {
  Var A;   ///< [N, N], or [H, N, N] where each channel has its own
  Var B;   ///< [1, N, 1] or [H, N, 1]
  Var C;   ///< [H, M, N]
  Var D;   ///< [H, M]
  Var dt;  ///< Δ [H, 1, 1]
};
LsslParameters lssl_parameters(Layer& l);

/// The maps after the systems; none: left out.
struct LsslOutput {
  Var E;  ///< [H, M]
  Var W;  ///< [H, H M]
  Var b;  ///< [H]
};
LsslOutput lssl_output(Layer& l);

}  // namespace reclab::architectures
