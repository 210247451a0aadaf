// SPDX-License-Identifier: GPL-3.0-or-later
// Hankel matrices of filters: H[i, j] = h[i + j + 1], the map from past inputs to future outputs. The rank of that of all taps is the order
// of the filter as a linear system, and its singular values say how far from a system of lower order it is.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace reclab {

/// The filter that the Hankel matrix is of, given taps h_0 .. h_{L-1}.
enum class HankelOf : std::uint8_t {
  taps,   ///< [L/2, L/2], whose entries are all taps that there are: it says nothing of later ones
  ending  ///< [L-1, L-1], of the filter whose taps from L on are 0
};
std::int64_t hankel_size(HankelOf of, std::int64_t taps);

/// The leading singular values and vectors of a symmetric real Hankel matrix H = Σ sign σ u uᵀ.
struct HankelFactors {
  std::int64_t size = 0;                     ///< rows of the matrix
  std::vector<double> values;                ///< σ, largest first
  std::vector<double> signs;                 ///< of the eigenvalues that they are the moduli of
  std::vector<std::vector<double>> vectors;  ///< u, one a value
  /// A lower bound of the sum of the values from place n on: those that were not computed count as the last that was.
  double tail(std::int64_t n) const;
  double value(std::int64_t n) const;  ///< 0 beyond the last
};

/// The `wanted` largest, with their vectors: by Lanczos' method with full reorthogonalisation, started with a vector that is always the
/// same. All values are computed for matrices of at most 256 rows. Throws Cancelled where this thread is to stop (StopScope).
HankelFactors hankel_factors(std::span<const double> taps, HankelOf of, std::int64_t wanted);

/// The largest alone.
double hankel_norm(std::span<const double> taps, HankelOf of);

}  // namespace reclab
