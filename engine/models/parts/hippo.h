// SPDX-License-Identifier: GPL-3.0-or-later
// The normal part of the scaled Legendre (LegS) matrix of HiPPO: A + p p^T with A_nk = -sqrt(2n+1) sqrt(2k+1) below the diagonal, -(n+1) on
// it, and p_n = sqrt(n + 1/2), is -1/2 I plus a skew-symmetric matrix. A. Gu, K. Goel, C. Ré, ICLR 2022.
#pragma once

#include <complex>
#include <cstdint>
#include <string>
#include <vector>

namespace reclab::hippo {

struct Normal {
  std::vector<double> frequencies;            ///< imaginary parts of the eigenvalues, ascending; all real parts are -1/2
  std::vector<std::complex<double>> vectors;  ///< [n, n], column k of frequency k, with sum_n conj(v_nk) sqrt(2n+1) real and positive
  std::vector<double> input;                  ///< that sum for each k: V* B. V* p is V* B / sqrt(2)
};
Normal legs_normal(std::int64_t n);

/// A measure's A and B in the basis where A + Σ_r p_r p_rᵀ is diagonal, one of each conjugate pair: A = Λ − Σ_r P_r P_r*, Λ = −decay − i
/// frequency. measure: legs and lagt and fourier, of rank 1, and legt, of rank 2; n is even. Eigenvectors have phases that make B real and
/// positive.
struct LowRankMeasure {
  double decay = 0.0;
  std::vector<double> frequencies;                          ///< largest first, [n / 2]
  std::vector<std::complex<double>> first;                  ///< the first entry of each eigenvector
  std::vector<std::complex<double>> input;                  ///< V* B
  std::vector<std::vector<std::complex<double>>> low_rank;  ///< V* p_r
};
LowRankMeasure low_rank_of(const std::string& measure, std::int64_t n);

}  // namespace reclab::hippo
