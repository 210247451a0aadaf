// SPDX-License-Identifier: GPL-3.0-or-later
// The order in which an associative scan composes the steps of time, for the kernels that compute it and the panels that draw it.
#pragma once

#include <algorithm>
#include <cstdint>

namespace reclab::order {

/// A scan as a tree (G. E. Blelloch, Prefix sums and their applications, 1990): round() comes before each round, then compose(earlier,
/// later) for the pairs of that round, which do not wait for each other. Place `later` becomes both; in the end place t holds steps 0 to t.
template <class Round, class Compose>
void tree(std::int64_t steps, Round&& round, Compose&& compose) {
  std::int64_t stride = 1;
  for (; stride < steps; stride *= 2) {
    round();
    for (std::int64_t t = 2 * stride - 1; t < steps; t += 2 * stride) compose(t - stride, t);
  }
  for (stride /= 2; stride >= 1; stride /= 2) {
    round();
    for (std::int64_t t = 3 * stride - 1; t < steps; t += 2 * stride) compose(t - stride, t);
  }
}

/// Steps of a chunk of a diagonal recurrence.
inline constexpr std::int64_t diagonal_chunk = 64;

/// A scan in chunks: within(t) takes place t - 1 into t, step by step within each chunk, all chunks side by side; then, chunk by chunk,
/// join(last, t) takes the last place of the chunk before into each place of a chunk, which do not wait for each other.
template <class Within, class Join>
void chunks(std::int64_t steps, std::int64_t chunk, Within&& within, Join&& join) {
  for (std::int64_t t = 1; t < steps; ++t)
    if (t % chunk != 0) within(t);
  for (std::int64_t start = chunk; start < steps; start += chunk)
    for (std::int64_t t = start; t < std::min(start + chunk, steps); ++t) join(start - 1, t);
}

}  // namespace reclab::order
