// SPDX-License-Identifier: GPL-3.0-or-later
#include "learning/lifted/positive_definite.h"

#include <cmath>

namespace reclab {

std::vector<double> solve_positive_definite(std::vector<double> A, std::vector<double> b) {
  const std::size_t n = b.size();
  for (std::size_t j = 0; j < n; ++j)
    for (std::size_t i = j; i < n; ++i) {
      double sum = A[i * n + j];
      for (std::size_t k = 0; k < j; ++k) sum -= A[i * n + k] * A[j * n + k];
      A[i * n + j] = i == j ? std::sqrt(sum) : sum / A[j * n + j];
    }
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < i; ++k) b[i] -= A[i * n + k] * b[k];
    b[i] /= A[i * n + i];
  }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t k = i + 1; k < n; ++k) b[i] -= A[k * n + i] * b[k];
    b[i] /= A[i * n + i];
  }
  return b;
}

}  // namespace reclab
