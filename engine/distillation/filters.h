// SPDX-License-Identifier: GPL-3.0-or-later
// The long filters of a model: the kernels that its layers convolve with over time.
#pragma once

#include <cstdint>
#include <span>
#include <stop_token>
#include <vector>

#include "experiment/prepared.h"

namespace reclab {

struct LongFilter {
  int layer = 0;
  int number = 0;  ///< among those of its layer, in the order that they are applied in
  std::int64_t channels = 0, length = 0;
  std::vector<double> taps;  ///< [channels, length]
  std::span<const double> channel(std::int64_t c) const {
    return std::span(taps).subspan(static_cast<std::size_t>(c * length), static_cast<std::size_t>(length));
  }
};

/// All long filters of a model over so many steps: those of its convolutions, and the impulse responses of the memories that it can run as
/// one. Throws Error for a model without one.
std::vector<LongFilter> long_filters(const Prepared& prepared, const RunRequest& request, std::int64_t taps, std::stop_token stop);

}  // namespace reclab
