// SPDX-License-Identifier: GPL-3.0-or-later
// Singular values of long products of Jacobians, in logarithms: the part of a perturbation that ds_T/ds_t keeps T - t steps later.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace reclab {

/// M_t = J_T J_{T-1} ... J_{t+1}, grown on the right while t goes down, as gradients flow: M_t = ds_T/ds_t.
///
/// Kept is M^T = U D V^T with D a diagonal of (mantissa, exponent) pairs that cannot under- or overflow, U with unit columns that are
/// nearly orthogonal, and V orthogonal and forgotten, since singular values do not need it and later factors never touch it. A factor makes
/// J^T U D = Q R D; R D, graded by pivoting, is brought near a diagonal by an LQ sweep whose rotations join V. One-sided Jacobi on the
/// rest, again on scaled columns, gives every singular value, the smallest too, to a relative error of about 1e-16 times the sum of the
/// condition numbers of the factors (rows or columns of very different size, as saturated gates make them, do not count). Sources: Golub &
/// Van Loan, Matrix Computations, 5.4 and 8.6; Demmel & Veselic, SIAM J. Matrix Anal. Appl. 13 (1992) 1204; Drmac & Veselic, ibid. 29
/// (2008) 1322; Cox & Higham, BIT 38 (1998) 34 (row sorting, for factors with rows of very different size).
///
/// Costs about 8 n^3 flops a factor, less when factors are well conditioned (up to eight are then multiplied before a factorisation).
/// multiply allocates nothing. Throws Cancelled where this thread is to stop (StopScope), after which only reset() is of use. The same
/// calls give the same bits. An object belongs to one thread, its const functions included.
class JacobianProduct {
 public:
  explicit JacobianProduct(std::int64_t n);
  ~JacobianProduct();
  JacobianProduct(JacobianProduct&&) noexcept;
  JacobianProduct& operator=(JacobianProduct&&) noexcept;

  /// M <- M J with J row-major [n, n], J[i][j] = d s_t[i] / d s_{t-1}[j]. After a factor that is not finite all singular values are NaN.
  void multiply(std::span<const double> jacobian);
  /// Sets the product to the identity.
  void reset();

  /// log10 of the min(k, n) largest singular values, descending; -infinity for those that are zero.
  std::vector<double> log10_largest(int k) const;
  /// log10 of the smallest singular value; -infinity when M is singular: a factor was, to rounding (a column of the factorised block
  /// vanished against the rows that it was computed from).
  double log10_smallest() const;

  std::int64_t size() const;
  /// The work since the last reset(), in floating-point operations, including that of the singular values that were asked for.
  double work() const;
  /// n less the number of singular values that are zero.
  std::int64_t rank() const;

 private:
  struct Factors;
  std::unique_ptr<Factors> factors_;
};

/// The product of diagonal Jacobians (gated and diagonal state-space models): the singular values are the products of |a| an entry.
class DiagonalProduct {
 public:
  explicit DiagonalProduct(std::int64_t n);

  /// Adds ln|a| an entry [n]; -infinity for a = 0. Sums are compensated, so that 1e6 factors cost no digits.
  void multiply(std::span<const double> log_abs);
  void reset();

  /// log10 of the min(k, n) largest, descending.
  std::vector<double> log10_largest(int k) const;
  double log10_smallest() const;

 private:
  double total(std::size_t i) const;  // ln, with the carry; NaN stays NaN, -infinity stays -infinity
  std::vector<double> sum_, carry_;
};

}  // namespace reclab
