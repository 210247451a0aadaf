// SPDX-License-Identifier: GPL-3.0-or-later
#include "algebra/ridge.h"

#include <algorithm>

#include "algebra/cholesky.h"
#include "array/demand.h"

namespace reclab {

RidgeRegression::RidgeRegression(std::int64_t features, std::int64_t outputs)
    : size_(features + 1),
      outputs_(outputs),
      squares_(static_cast<std::size_t>(size_ * size_)),
      products_(static_cast<std::size_t>(outputs * size_)),
      row_(static_cast<std::size_t>(size_), 1.0) {}

void RidgeRegression::add(std::span<const double> z, std::span<const double> y) {
  RECLAB_DEMAND(std::ssize(z) == size_ - 1 && std::ssize(y) == outputs_);
  std::ranges::copy(z, row_.begin() + 1);
  for (std::int64_t i = 0; i < size_; ++i) {
    double* to = squares_.data() + i * size_;
    const double factor = row_[static_cast<std::size_t>(i)];
    for (std::int64_t j = 0; j <= i; ++j) to[j] += factor * row_[static_cast<std::size_t>(j)];
  }
  for (std::int64_t k = 0; k < outputs_; ++k)
    for (std::int64_t j = 0; j < size_; ++j)
      products_[static_cast<std::size_t>(k * size_ + j)] += y[static_cast<std::size_t>(k)] * row_[static_cast<std::size_t>(j)];
  ++rows_;
}

bool RidgeRegression::solve(double lambda, std::span<double> weight, std::span<double> bias) const {
  const auto n = static_cast<std::size_t>(size_);
  std::vector<double> l = squares_;
  for (std::size_t i = 0; i < n; ++i) l[i * n + i] += lambda;
  if (!factor_cholesky(l, n, 1e-15 * static_cast<double>(n))) return false;  // nothing but rounding is left
  std::vector<double> x(n);
  for (std::int64_t k = 0; k < outputs_; ++k) {
    std::copy_n(products_.begin() + k * size_, n, x.begin());
    solve_cholesky(l, x);
    bias[static_cast<std::size_t>(k)] = x[0];
    for (std::int64_t j = 1; j < size_; ++j) weight[static_cast<std::size_t>(k * (size_ - 1) + j - 1)] = x[static_cast<std::size_t>(j)];
  }
  return true;
}

}  // namespace reclab
