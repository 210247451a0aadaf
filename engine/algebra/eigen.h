// SPDX-License-Identifier: GPL-3.0-or-later
// Eigenvalues of real matrices, for spectra of recurrent Jacobians.
#pragma once

#include <complex>
#include <cstdint>
#include <functional>
#include <span>
#include <stop_token>
#include <vector>

namespace reclab {

/// All eigenvalues of a real matrix, row-major [n, n], by decreasing |lambda|, then by argument. NaNs when an entry is not finite.
/// Balanced (permuted and scaled by powers of two), reduced to Hessenberg form, then Francis' double-shift QR on the part that is still
/// coupled, without the Schur form that nobody looks at. The same matrix gives the same bits.
/// Sources: Golub & Van Loan, Matrix Computations, 7.4 and 7.5; Ahues & Tisseur, LAPACK Working Note 122 (deflation);
/// James, Langou & Lowery, arXiv:1401.5766 (balancing in the 2-norm).
std::vector<std::complex<double>> eigenvalues(std::span<const double> matrix, std::int64_t n);

/// The same for many matrices on all cores: fill(i, buffer) writes matrix i, consume(i, values) takes its eigenvalues; both are called from
/// several threads, for different i at once. Returns early, with some left out, when a stop is requested: within a few milliseconds, in the
/// middle of a matrix if need be. Any other exception of fill or consume ends the work and is thrown here.
void eigenvalues_of_many(std::int64_t count, std::int64_t n, const std::function<void(std::int64_t, std::span<double>)>& fill,
                         const std::function<void(std::int64_t, const std::vector<std::complex<double>>&)>& consume, std::stop_token stop);

/// The eigenvalues of scale I + u v^T, u and v [n, rank], in the same order: n - rank of them are scale, the others scale plus an
/// eigenvalue of v^T u.
std::vector<std::complex<double>> low_rank_eigenvalues(double scale, std::span<const double> u, std::span<const double> v, std::int64_t n,
                                                       std::int64_t rank);

/// The cost of eigenvalues() for a matrix, in floating-point operations: far less than for most of its size where it is sparse. Takes as
/// long as they do; the same matrix gives the same number.
double eigenvalue_work(std::span<const double> matrix, std::int64_t n);

/// The largest |lambda|; NaN when an entry is not finite.
double spectral_radius(std::span<const double> matrix, std::int64_t n);

}  // namespace reclab
