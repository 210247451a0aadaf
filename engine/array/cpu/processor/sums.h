// SPDX-License-Identifier: GPL-3.0-or-later
// Sums over a row that do not wait for each addition.
#pragma once

#include <cstdint>

namespace reclab::cpu {

inline constexpr std::int64_t lanes = 16;

/// The sum of term(j) over n columns, as many sums side by side as a vector has entries: the order is that of the columns from the first on alone.
template <class F>
double in_lanes(std::int64_t n, const F& term) {
  double sums[lanes] = {};
  std::int64_t j = 0;
  for (; j + lanes <= n; j += lanes)
    for (std::int64_t l = 0; l < lanes; ++l) sums[l] += term(j + l);
  for (std::int64_t l = 0; j + l < n; ++l) sums[l] += term(j + l);
  for (std::int64_t half = lanes / 2; half; half /= 2)
    for (std::int64_t l = 0; l < half; ++l) sums[l] += sums[l + half];
  return sums[0];
}

}  // namespace reclab::cpu
