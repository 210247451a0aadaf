// SPDX-License-Identifier: GPL-3.0-or-later
// Cholesky's factor of a symmetric matrix in float64, entry by entry in one order, so that the same matrix gives the same bits.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace reclab {

/// Puts L, with A = L Lᵀ, into the lower triangle of A [n, n], which is all of A that is read. False where A is not positive definite: a
/// pivot is no more than `least` of its diagonal entry; A is NaN then, and so is all that is solved with it. Throws Cancelled where this
/// thread is to stop (StopScope).
bool factor_cholesky(std::span<double> A, std::size_t n, double least = 0.0);
/// x with L Lᵀ x = b, into b [n].
void solve_cholesky(std::span<const double> L, std::span<double> b);
/// x with A x = b; NaN where A is not positive definite.
std::vector<double> solve_positive_definite(std::vector<double> A, std::vector<double> b);

}  // namespace reclab
