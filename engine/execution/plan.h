// SPDX-License-Identifier: GPL-3.0-or-later
// The memory that running a network takes, known before anything runs.
#pragma once

#include <cstdint>

#include "models/network.h"

namespace reclab {

/// The most bytes of the backend's memory that one forward and one backward of such a network take at any time: the arrays of its graph and
/// of the graphs inside its operations, the arrays that operations keep, and the kernels' scratch; without its input, weights and states.
/// It takes as long as the network to be built and the calls of the backend to be made, and none of the backend's memory.
std::int64_t planned_memory(const Architecture& architecture, const Hyper& hyper, const NetworkOptions& options, Backend& backend);

}  // namespace reclab
