// SPDX-License-Identifier: GPL-3.0-or-later
// What running a network takes of memory, known before anything runs.
#pragma once

#include <cstdint>

#include "models/network.h"

namespace reclab {

/// The most bytes of the backend's memory that one forward and one backward of the network take at any time: the arrays of its graph and of the
/// graphs inside its operations, what the operations keep, and the kernels' scratch; without its input, weights and states. The network is used
/// up by it: its graph has no memory yet, and is given none on the backend itself. It takes about as long as the calls of the backend take to
/// be made.
std::int64_t planned_memory(Network& network, Backend& backend);

}  // namespace reclab
