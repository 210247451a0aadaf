// SPDX-License-Identifier: GPL-3.0-or-later
// What both ways of convolving have in common.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <type_traits>

#include "array/cpu/processor/threads.h"

namespace reclab::cpu {

/// The length of the transforms of a causal convolution over so many steps: a power of two, so that the end does not run into the
/// beginning.
inline std::int64_t transform_size(std::int64_t steps) {
  return static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(1, 2 * steps))));
}

/// Calls f(first channel, number of channels) for each group of `size` neighbours, on all processors; the number of a whole group is a
/// constant.
template <std::int64_t size, class F>
void each_group(std::int64_t channels, const F& f) {
  parallel((channels + size - 1) / size, [&](std::int64_t group) {
    const std::int64_t c = group * size;
    if (channels - c >= size)
      f(c, std::integral_constant<std::int64_t, size>{});
    else
      f(c, channels - c);
  });
}

}  // namespace reclab::cpu
