// SPDX-License-Identifier: GPL-3.0-or-later
// (I - z A)^-1 of one real matrix for many z, for frequency responses.
#pragma once

#include <complex>
#include <cstdint>
#include <span>
#include <vector>

namespace reclab {

/// A is brought to Hessenberg form H = Q^T A Q once, by reflections, and each z then takes O(n²). c^T (I - z A)^-1 b = (Q^T c)^T (I - z
/// H)^-1 (Q^T b). Source: A. J. Laub, Efficient multivariable frequency response computations, IEEE Trans. Automatic Control 26 (1981) 407.
class Resolvent {
 public:
  /// Row-major [n, n]. Throws Cancelled where this thread is to stop (StopScope), here and in solve.
  Resolvent(std::span<const double> matrix, std::int64_t n);
  /// Q^T v.
  std::vector<double> turned(std::span<const double> v) const;
  /// x <- (I - z H)^-1 x, by elimination with row exchanges. Entries that are not finite where I - z H is singular.
  void solve(std::complex<double> z, std::span<std::complex<double>> x);

 private:
  std::int64_t n_;
  std::vector<double> h_;                         // H, row-major
  std::vector<std::vector<double>> reflectors_;   // the k-th from row k + 1 on; empty: none
  std::vector<std::complex<double>> eliminated_;  // [n, n], of the last solve
};

}  // namespace reclab
