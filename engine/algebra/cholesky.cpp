// SPDX-License-Identifier: GPL-3.0-or-later
#include "algebra/cholesky.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "array/stop.h"

namespace reclab {

bool factor_cholesky(std::span<double> A, std::size_t n, double least) {
  for (std::size_t i = 0; i < n; ++i) {
    if (i % 16 == 0) check_stop();
    double* row = A.data() + i * n;
    const double whole = row[i];
    for (std::size_t j = 0; j <= i; ++j) {
      const double* other = A.data() + j * n;
      double sum = row[j];
      for (std::size_t k = 0; k < j; ++k) sum -= row[k] * other[k];
      if (j < i) {
        row[j] = sum / other[j];
      } else if (sum > least * whole) {
        row[i] = std::sqrt(sum);
      } else {
        std::ranges::fill(A, std::numeric_limits<double>::quiet_NaN());
        return false;
      }
    }
  }
  return true;
}

void solve_cholesky(std::span<const double> L, std::span<double> b) {
  const std::size_t n = b.size();
  for (std::size_t i = 0; i < n; ++i) {
    double sum = b[i];
    for (std::size_t j = 0; j < i; ++j) sum -= L[i * n + j] * b[j];
    b[i] = sum / L[i * n + i];
  }
  for (std::size_t i = n; i-- > 0;) {
    double sum = b[i];
    for (std::size_t j = i + 1; j < n; ++j) sum -= L[j * n + i] * b[j];
    b[i] = sum / L[i * n + i];
  }
}

std::vector<double> solve_positive_definite(std::vector<double> A, std::vector<double> b) {
  factor_cholesky(A, b.size());
  solve_cholesky(A, b);
  return b;
}

}  // namespace reclab
