// SPDX-License-Identifier: GPL-3.0-or-later
// The card of the echo state network, and its parameters as the equations use them.
#pragma once

#include "models/architecture.h"

namespace reclab::architectures {

Architecture echo_state_card();

/// N units, M outputs that are fed back.
struct EchoStateParameters {
  Var W;             ///< [N, N]
  Var W_in;          ///< [N, in]
  Var b;             ///< [N]; none: 0
  Var W_fb;          ///< [N, M]; none, as the two below: nothing is fed back
  Var W_out, b_out;  ///< [M, N], or [M, N + in], and [M]
};
EchoStateParameters echo_state_parameters(Layer& l, std::int64_t in);

}  // namespace reclab::architectures
