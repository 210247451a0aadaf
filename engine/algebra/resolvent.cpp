// SPDX-License-Identifier: GPL-3.0-or-later
#include "algebra/resolvent.h"

#include <algorithm>
#include <cmath>

#include "array/demand.h"
#include "array/stop.h"

namespace reclab {
namespace {

/// x <- x - 2 v (v . x), v of length 1.
void reflect(std::span<const double> v, double* x, std::int64_t stride) {
  double sum = 0.0;
  for (std::size_t i = 0; i < v.size(); ++i) sum += v[i] * x[static_cast<std::int64_t>(i) * stride];
  for (std::size_t i = 0; i < v.size(); ++i) x[static_cast<std::int64_t>(i) * stride] -= 2.0 * sum * v[i];
}

}  // namespace

Resolvent::Resolvent(std::span<const double> matrix, std::int64_t n)
    : n_(n), h_(matrix.begin(), matrix.end()), eliminated_(static_cast<std::size_t>(n * n)) {
  RECLAB_DEMAND(std::ssize(matrix) == n * n);
  for (std::int64_t k = 0; k + 2 < n; ++k) {
    check_stop();
    std::vector<double> v;
    for (std::int64_t i = k + 1; i < n; ++i) v.push_back(h_[static_cast<std::size_t>(i * n + k)]);
    double largest = 0.0, norm = 0.0;
    for (std::size_t i = 1; i < v.size(); ++i) largest = std::max(largest, std::abs(v[i]));
    reflectors_.emplace_back();
    if (largest == 0.0) continue;
    const double unit = std::max(largest, std::abs(v[0]));
    for (double& x : v) {
      x /= unit;
      norm += x * x;
    }
    v[0] += std::copysign(std::sqrt(norm), v[0]);
    norm = 0.0;
    for (const double x : v) norm += x * x;
    for (double& x : v) x /= std::sqrt(norm);
    for (std::int64_t j = 0; j < n; ++j) reflect(v, h_.data() + (k + 1) * n + j, n);
    for (std::int64_t i = 0; i < n; ++i) reflect(v, h_.data() + i * n + k + 1, 1);
    for (std::int64_t i = k + 2; i < n; ++i) h_[static_cast<std::size_t>(i * n + k)] = 0.0;
    reflectors_.back() = std::move(v);
  }
}

std::vector<double> Resolvent::turned(std::span<const double> v) const {
  std::vector<double> x(v.begin(), v.end());
  for (std::size_t k = 0; k < reflectors_.size(); ++k)
    if (!reflectors_[k].empty()) reflect(reflectors_[k], x.data() + k + 1, 1);
  return x;
}

void Resolvent::solve(std::complex<double> z, std::span<std::complex<double>> x) {
  const auto n = static_cast<std::size_t>(n_);
  auto* m = eliminated_.data();
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = i ? i - 1 : 0; j < n; ++j) m[i * n + j] = -z * h_[i * n + j] + (i == j ? 1.0 : 0.0);
  for (std::size_t i = 0; i + 1 < n; ++i) {
    check_stop();
    auto *row = m + i * n, *next = row + n;
    if (std::norm(next[i]) > std::norm(row[i])) {
      for (std::size_t j = i; j < n; ++j) std::swap(row[j], next[j]);
      std::swap(x[i], x[i + 1]);
    }
    if (next[i] == 0.0) continue;
    const std::complex<double> factor = next[i] / row[i];
    for (std::size_t j = i + 1; j < n; ++j) next[j] -= factor * row[j];
    x[i + 1] -= factor * x[i];
  }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t j = i + 1; j < n; ++j) x[i] -= m[i * n + j] * x[j];
    x[i] /= m[i * n + i];
  }
}

}  // namespace reclab
