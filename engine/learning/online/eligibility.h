// SPDX-License-Identifier: GPL-3.0-or-later
// Eligibility traces: the influence of a weight without the paths through recurrent weights, P[t] = (J[t] - Q W) P[t-1] + D[t], which
// stays at the weight's own unit: 1 - alpha on the diagonal where units leak, and the path along the gates of gated ones.
#pragma once

#include <cstdint>
#include <string>

#include "learning/online/influence.h"

namespace reclab {

/// The weights that bring the error to the units, dL/ds[t] = B' dL/dy: fixed random ones, or those of the read-out as they are.
enum class Feedback : std::uint8_t { random, read_out };

/// Throws Error, which begins with `title`, for a model that is not one layer of units that are joined by recurrent weights and read by a
/// linear read-out.
OnlineMethod eligibility(const OnlineSetup& setup, Feedback feedback, const std::string& title);

}  // namespace reclab
