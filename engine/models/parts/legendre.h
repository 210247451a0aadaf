// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <span>

namespace reclab {

/// The Legendre polynomials P_0, P_1, ... on [-1, 1]: values [orders, x.size()], a row a degree, by Bonnet's recursion
/// n P_n = (2n-1) x P_{n-1} - (n-1) P_{n-2}.
inline void legendre(std::span<const double> x, std::span<double> values) {
  const std::size_t count = x.size(), orders = count ? values.size() / count : 0;
  for (std::size_t n = 0; n < orders; ++n) {
    double* now = values.data() + n * count;
    if (n < 2) {
      for (std::size_t i = 0; i < count; ++i) now[i] = n == 0 ? 1.0 : x[i];
      continue;
    }
    const double *last = now - count, *before = last - count;
    const double b = (static_cast<double>(n) - 1.0) / static_cast<double>(n), a = 1.0 + b;
    for (std::size_t i = 0; i < count; ++i) now[i] = a * x[i] * last[i] - b * before[i];
  }
}

}  // namespace reclab
