// SPDX-License-Identifier: GPL-3.0-or-later
// A penalty on the gates of a network, whose gradient goes back through them beside that of the loss.
#pragma once

#include <cstdint>
#include <string_view>

#include "autodiff/graph.h"

namespace reclab {

class Network;

/// What a gate's entry g adds: |g|; g^2; or (2u - 1)^2 with u = (g - low)/(high - low), which is 0 in the middle of its range and 1 at
/// either end, for gates that are bounded.
enum class GatePenalty : std::uint8_t { none, l1, l2, saturation };
std::string_view to_string(GatePenalty penalty);
/// Of a name of to_string() but "none". Throws Error.
GatePenalty gate_penalty(std::string_view name);

/// [steps, batch]: the mean over all entries of the gates of each step, as an array of the network's graph, before it is allocated. Gates
/// that no weight and no input moves are no part of it. The network must record. Throws Error where that leaves none, and for a gate that
/// passes no gradient because its primitive has none for it.
Var add_gate_penalty(Network& network, GatePenalty penalty);

}  // namespace reclab
