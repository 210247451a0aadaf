// SPDX-License-Identifier: GPL-3.0-or-later
// Ridge regression on rows that come one after another.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace reclab {

/// Finds W and b that make Σ |y - W z - b|² + λ (|W|² + |b|²) least, for rows z and y that are added one by one: [b W] = Y Zᵀ (Z Zᵀ + λ
/// I)^-1, where the first entry of each row of Z is 1. It keeps Z Zᵀ and Y Zᵀ. Sums are made in the order of the rows, so the same rows
/// give the same bits.
class RidgeRegression {
 public:
  RidgeRegression(std::int64_t features, std::int64_t outputs);
  void add(std::span<const double> z, std::span<const double> y);
  std::int64_t rows() const { return rows_; }
  /// weight [outputs, features], bias [outputs]. False, and nothing is written, where the matrix is not positive definite in float64: λ is
  /// too small for rows that depend on each other. Throws Cancelled where this thread is to stop (StopScope).
  bool solve(double lambda, std::span<double> weight, std::span<double> bias) const;

 private:
  std::int64_t size_, outputs_, rows_ = 0;  // size: features and the 1
  std::vector<double> squares_, products_;  // the lower triangle of Z Zᵀ, [size, size]; Y Zᵀ, [outputs, size]
  std::vector<double> row_;
};

}  // namespace reclab
