// SPDX-License-Identifier: GPL-3.0-or-later
#include "models/parts/hippo.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "array/stop.h"

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

using Complex = std::complex<double>;

struct Singular {
  std::vector<double> values;       ///< largest first
  std::vector<double> left, right;  ///< [n, n], column k of value k
};
/// Of a square matrix of full rank, by one-sided Jacobi rotations.
Singular singular_values(std::vector<double> X, std::size_t n) {
  std::vector<double> V(n * n, 0.0);
  for (std::size_t i = 0; i < n; ++i) V[i * n + i] = 1.0;
  for (bool turned = true; turned;) {
    turned = false;
    for (std::size_t p = 0; p + 1 < n; ++p)
      for (std::size_t q = p + 1; q < n; ++q) {
        check_stop();
        double pp = 0.0, qq = 0.0, pq = 0.0;
        for (std::size_t i = 0; i < n; ++i) {
          pp += X[i * n + p] * X[i * n + p];
          qq += X[i * n + q] * X[i * n + q];
          pq += X[i * n + p] * X[i * n + q];
        }
        if (std::abs(pq) <= 1e-15 * std::sqrt(pp * qq)) continue;
        turned = true;
        const double zeta = (qq - pp) / (2.0 * pq), t = std::copysign(1.0, zeta) / (std::abs(zeta) + std::hypot(1.0, zeta)),
                     c = 1.0 / std::hypot(1.0, t), s = c * t;
        for (std::vector<double>* matrix : {&X, &V})
          for (std::size_t i = 0; i < n; ++i) {
            double &a = (*matrix)[i * n + p], &b = (*matrix)[i * n + q];
            const double before = a;
            a = c * before - s * b;
            b = s * before + c * b;
          }
      }
  }
  std::vector<double> sizes(n, 0.0);
  for (std::size_t k = 0; k < n; ++k)
    for (std::size_t i = 0; i < n; ++i) sizes[k] = std::hypot(sizes[k], X[i * n + k]);
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, std::ranges::greater{}, [&](std::size_t k) { return sizes[k]; });
  Singular found{std::vector<double>(n), std::vector<double>(n * n), std::vector<double>(n * n)};
  for (std::size_t k = 0; k < n; ++k) {
    found.values[k] = sizes[order[k]];
    for (std::size_t i = 0; i < n; ++i) {
      found.left[i * n + k] = X[i * n + order[k]] / sizes[order[k]];
      found.right[i * n + k] = V[i * n + order[k]];
    }
  }
  return found;
}

/// V* b and V* p_r with the phases that make the first real and positive; vectors [n, n / 2], of length 1.
void project(LowRankMeasure& system, std::vector<Complex> vectors, std::size_t n, const std::vector<double>& b,
             const std::vector<std::vector<double>>& corrections) {
  const std::size_t half = n / 2;
  const auto read = [&](const std::vector<double>& v, std::size_t k) {
    Complex sum = 0.0;
    for (std::size_t i = 0; i < n; ++i) sum += std::conj(vectors[i * half + k]) * v[i];
    return sum;
  };
  system.low_rank.resize(corrections.size());
  for (std::size_t k = 0; k < half; ++k) {
    const Complex given = read(b, k);
    if (const double size = std::abs(given); size > 1e-12)
      for (std::size_t i = 0; i < n; ++i) vectors[i * half + k] *= given / size;
    system.first.push_back(vectors[k]);
    system.input.emplace_back(std::abs(given));
    for (std::size_t r = 0; r < corrections.size(); ++r) system.low_rank[r].push_back(read(corrections[r], k));
  }
}

/// Column k: entries 1 and i of step k's pair, the eigenvector of a block that turns by -frequency.
LowRankMeasure fourier(std::size_t n) {
  LowRankMeasure system;
  const std::size_t half = n / 2;
  std::vector<Complex> vectors(n * half);
  std::vector<double> b(n, 0.0);
  for (std::size_t i = 0; i < n; i += 2) b[i] = i ? std::numbers::sqrt2 : 1.0;
  for (std::size_t k = 0; k < half; ++k) {
    const std::size_t pair = half - 1 - k;
    system.frequencies.push_back(std::numbers::pi * static_cast<double>(pair));
    vectors[2 * pair * half + k] = std::sqrt(0.5);
    vectors[(2 * pair + 1) * half + k] = Complex(0.0, std::sqrt(0.5));
  }
  project(system, std::move(vectors), n, b, {b});
  return system;
}

/// A + p p^T is half of the signs of a skew matrix that turns in a circle with one change of sign, so its eigenvectors are powers of roots
/// of -1.
LowRankMeasure lagt(std::size_t n) {
  LowRankMeasure system;
  const std::size_t half = n / 2;
  std::vector<Complex> vectors(n * half);
  for (std::size_t k = 0; k < half; ++k) {
    const double angle = std::numbers::pi * static_cast<double>(2 * k + 1) / static_cast<double>(n);
    system.frequencies.push_back(0.5 / std::tan(0.5 * angle));
    for (std::size_t i = 0; i < n; ++i)
      vectors[i * half + k] = std::polar(1.0 / std::sqrt(static_cast<double>(n)), -angle * static_cast<double>(i));
  }
  project(system, std::move(vectors), n, std::vector<double>(n, 1.0), {std::vector<double>(n, std::sqrt(0.5))});
  return system;
}

/// A + p₀ p₀^T + p₁ p₁^T has entries between even and odd places alone: its eigenvectors are pairs of singular vectors of that block.
LowRankMeasure legt(std::size_t n) {
  LowRankMeasure system;
  const std::size_t half = n / 2;
  const auto root = [](std::size_t i) { return std::sqrt(2.0 * static_cast<double>(i) + 1.0); };
  std::vector<double> block(half * half);
  for (std::size_t i = 0; i < half; ++i)
    for (std::size_t j = 0; j < half; ++j) block[i * half + j] = (i <= j ? 0.5 : -0.5) * root(2 * i) * root(2 * j + 1);
  const Singular pairs = singular_values(std::move(block), half);
  system.frequencies = pairs.values;
  std::vector<Complex> vectors(n * half);
  for (std::size_t k = 0; k < half; ++k)
    for (std::size_t i = 0; i < half; ++i) {
      vectors[2 * i * half + k] = pairs.left[i * half + k] * std::sqrt(0.5);
      vectors[(2 * i + 1) * half + k] = Complex(0.0, -pairs.right[i * half + k] * std::sqrt(0.5));
    }
  std::vector<double> b(n), even(n, 0.0), odd(n, 0.0);
  for (std::size_t i = 0; i < n; ++i) {
    b[i] = 0.5 * root(i);
    (i % 2 ? odd : even)[i] = root(i) * std::sqrt(0.5);
  }
  project(system, std::move(vectors), n, b, {odd, even});
  return system;
}

}  // namespace

LowRankMeasure low_rank_of(const std::string& measure, std::int64_t n) {
  if (measure == "fourier") return fourier(static_cast<std::size_t>(n));
  if (measure == "lagt") return lagt(static_cast<std::size_t>(n));
  if (measure == "legt") return legt(static_cast<std::size_t>(n));
  const Normal legs = legs_normal(n);
  LowRankMeasure system{0.5, {}, {}, {}, {{}}};
  for (std::size_t k = 0; k < static_cast<std::size_t>(n / 2); ++k) {
    system.frequencies.push_back(-legs.frequencies[k]);
    system.first.push_back(legs.vectors[k]);
    system.input.emplace_back(legs.input[k]);
    system.low_rank[0].emplace_back(legs.input[k] * std::numbers::sqrt2 / 2.0);
  }
  return system;
}

Normal legs_normal(std::int64_t size) {
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
