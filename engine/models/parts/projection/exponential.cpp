// SPDX-License-Identifier: GPL-3.0-or-later
#include "models/parts/projection/exponential.h"

#include <algorithm>
#include <cmath>

namespace reclab::hippo {

std::vector<double> exponential(std::vector<double> x, std::size_t n) {
  const auto product = [n](const std::vector<double>& a, const std::vector<double>& b) {
    std::vector<double> c(n * n, 0.0);
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t k = 0; k < n; ++k)
        for (std::size_t j = 0; j < n; ++j) c[i * n + j] += a[i * n + k] * b[k * n + j];
    return c;
  };
  double norm = 0.0;
  for (std::size_t i = 0; i < n; ++i) {
    double row = 0.0;
    for (std::size_t j = 0; j < n; ++j) row += std::abs(x[i * n + j]);
    norm = std::max(norm, row);
  }
  int halvings = 0;
  for (; norm > 0.5; norm *= 0.5) ++halvings;
  for (double& value : x) value = std::ldexp(value, -halvings);
  std::vector<double> sum(n * n, 0.0), term = sum;
  for (std::size_t i = 0; i < n; ++i) sum[i * n + i] = term[i * n + i] = 1.0;
  for (int k = 1; k <= 16; ++k) {
    term = product(term, x);
    for (std::size_t i = 0; i < n * n; ++i) sum[i] += term[i] /= k;
  }
  for (; halvings > 0; --halvings) sum = product(sum, sum);
  return sum;
}

}  // namespace reclab::hippo
