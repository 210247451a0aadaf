// SPDX-License-Identifier: GPL-3.0-or-later
// Segment lengths, the steps of a sequence that are computed at once: as many as memory and the number format allow.
#pragma once

#include <cstdint>

#include "execution/model.h"

namespace reclab {

/// The steps of the network that is built first for a sequence of `length` steps, and that segment_length reads: all that may be one
/// segment, of a longer sequence some.
std::int64_t sampled_steps(std::int64_t length);

/// The number of `length` steps that are computed at once, told from a network of fewer or of as many steps. Forms other than the
/// sequential one, and networks that need it, take all of them. Throws Error, with the cure, where that needs more memory than there is.
std::int64_t segment_length(const Model& model, const Network& sample, std::int64_t length);

}  // namespace reclab
