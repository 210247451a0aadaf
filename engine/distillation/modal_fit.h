// SPDX-License-Identifier: GPL-3.0-or-later
// Modal fits: a filter of many taps as a sum of a few exponentials, h_k ≈ Re Σ_n r_n p_nᵏ + D [k = 0].
// S. Massaroli et al., Laughing hyena distillery, NeurIPS 2023; S. Y. Kung, A new identification and model reduction algorithm via singular
// value decomposition, 1978; K. Glover, All optimal Hankel-norm approximations of linear multivariable systems, Int. J. Control 39, 1984.
#pragma once

#include <complex>
#include <cstdint>
#include <span>
#include <vector>

#include "distillation/hankel.h"

namespace reclab {

/// A filter as a linear system in modal form. A conjugate pair is kept as its pole above the real axis alone, with twice its residue; the
/// imaginary part of a real pole is 0. The order counts both poles of a pair, as the Hankel singular values do.
struct ModalFilter {
  std::vector<std::complex<double>> poles, residues;
  double direct = 0.0;  ///< D
  std::int64_t order() const;
  std::vector<double> taps(std::int64_t count) const;
};

/// The distance of a modal filter from the taps that it was fitted to.
struct ModalError {
  double l2 = 0.0, largest = 0.0;  ///< √Σ e², max |e|, of the taps
  double hankel = 0.0;             ///< the largest singular value of the Hankel matrix of e (HankelOf::taps), which is at least σ_{n+1}
};

struct ModalFit {
  std::int64_t order = 0;  ///< that was allowed
  ModalFilter filter;
  ModalError error;
};

/// The start of a filter's fits.
struct FilterSpectrum {
  HankelFactors taps;    ///< HankelOf::taps: the values that are shown, and Kung's start
  HankelFactors ending;  ///< HankelOf::ending: the start by balanced truncation, and twice the sum of the values that it leaves out, which
                         ///< bounds the error
};
FilterSpectrum filter_spectrum(std::span<const double> taps, std::int64_t order);

/// The best fit that is found of each of these orders, which rise. It begins from the poles of Kung's method and of balanced truncation, of
/// which the last has √Σ e² of at most twice the sum of the singular values that it leaves out (where its poles are apart, as those of a
/// modal form are); residues are those of least squares at any poles; poles then move to the nearest minimum of Σ e² (Levenberg and
/// Marquardt's method on the poles alone), and no fit is worse than one of lower order. All poles lie in the closed unit disk. Throws
/// Cancelled where this thread is to stop (StopScope).
std::vector<ModalFit> modal_fits(std::span<const double> taps, const FilterSpectrum& spectrum, std::span<const std::int64_t> orders);

}  // namespace reclab
