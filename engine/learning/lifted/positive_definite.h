// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <vector>

namespace reclab {

/// x with A x = b for a symmetric positive definite A [n, n], of which the lower triangle is read, by its Cholesky factor.
std::vector<double> solve_positive_definite(std::vector<double> A, std::vector<double> b);

}  // namespace reclab
