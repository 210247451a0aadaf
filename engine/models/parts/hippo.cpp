// SPDX-License-Identifier: GPL-3.0-or-later
#include "models/parts/hippo.h"

#include <cmath>
#include <numbers>

namespace reclab::hippo {
namespace {

/// The positive mu with sum_n atan(mu / (n + 1/2)) = wanted.
double frequency(std::int64_t size, double wanted) {
  double low = 0.0, high = static_cast<double>(size * size);
  while (true) {
    const double middle = 0.5 * (low + high);
    if (middle <= low || middle >= high) return low;
    double sum = 0.0;
    for (std::int64_t n = 0; n < size; ++n) sum += std::atan(middle / (static_cast<double>(n) + 0.5));
    (sum < wanted ? low : high) = middle;
  }
}

}  // namespace

Normal legs_normal(std::int64_t size) {
  using Complex = std::complex<double>;
  const auto n = static_cast<std::size_t>(size);
  Normal normal;
  normal.frequencies.resize(n);
  normal.vectors.resize(n * n);
  // The difference of two neighbouring rows of (skew part) v = i mu v couples two entries of v only, and its first and last rows leave
  // exp(2 i sum_n atan(mu / (n + 1/2))) = (-1)^(size + 1).
  for (std::size_t k = 0; k < n / 2; ++k) {
    const double mu = frequency(size, std::numbers::pi * (0.5 * static_cast<double>(size - 1) - static_cast<double>(k)));
    normal.frequencies[k] = -mu;
    normal.frequencies[n - 1 - k] = mu;
  }
  for (std::size_t k = 0; k < n; ++k) {
    Complex weight = 1.0, with_b = 0.0;
    double squares = 0.0;
    for (std::size_t i = 0; i < n; ++i) {
      const double half = static_cast<double>(i) + 0.5, root = std::sqrt(2.0 * half);
      const Complex entry = weight * root;
      normal.vectors[i * n + k] = entry;
      squares += std::norm(entry);
      with_b += std::conj(entry) * root;
      weight *= Complex(-half, normal.frequencies[k]) / Complex(half + 1.0, normal.frequencies[k]);
    }
    const double size_b = std::abs(with_b);
    for (std::size_t i = 0; i < n; ++i) normal.vectors[i * n + k] *= with_b / (size_b * std::sqrt(squares));
    normal.input.push_back(size_b / std::sqrt(squares));
  }
  return normal;
}

}  // namespace reclab::hippo
