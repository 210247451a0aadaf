// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <span>

namespace reclab {

/// The Legendre polynomials P_0, P_1, ... on [-1, 1]: values [orders, x.size()], a row a degree, by Bonnet's recursion.
inline void legendre(std::span<const double> x, std::span<double> values) {
  const std::size_t count = x.size(), orders = count ? values.size() / count : 0;
  for (std::size_t n = 0; n < orders; ++n) {
    double* row = values.data() + n * count;
    const double a = n < 2 ? 1.0 : (2.0 * static_cast<double>(n) - 1.0) / static_cast<double>(n), b = 1.0 - a;
    for (std::size_t i = 0; i < count; ++i)
      row[i] = n == 0 ? 1.0 : n == 1 ? x[i] : a * x[i] * values[(n - 1) * count + i] + b * values[(n - 2) * count + i];
  }
}

}  // namespace reclab
