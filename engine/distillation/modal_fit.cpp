// SPDX-License-Identifier: GPL-3.0-or-later
#include "distillation/modal_fit.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <optional>
#include <utility>

#include "algebra/columns.h"
#include "algebra/eigen.h"
#include "array/demand.h"
#include "array/stop.h"

namespace reclab {
namespace {

using columns::Columns;
using Complex = std::complex<double>;

/// f(k, p^k) for k = 0 .. count - 1, p not 0.
template <class F>
void each_power(Complex pole, std::int64_t count, const F& f) {
  constexpr std::int64_t run = 32;  // so many products in a row, so that rounding does not add up
  const double rate = std::log(std::abs(pole)), angle = std::arg(pole);
  for (std::int64_t first = 0; first < count; first += run) {
    const double k = static_cast<double>(first);
    Complex power = first == 0 ? Complex(1.0) : std::polar(std::exp(k * rate), std::remainder(k * angle, 2.0 * std::numbers::pi));
    for (std::int64_t i = first; i < std::min(count, first + run); ++i, power *= pole) f(i, power);
  }
}

bool is_pair(Complex pole) { return pole.imag() != 0.0; }

/// A pole at 0 stands for the tap at 1 with a residue without bound, and two equal poles for a product with k, also without bound. A run in
/// floating point has neither: with residues this much larger than the taps the sum would be rounding.
constexpr double least_radius = 1e-5, largest_coefficient = 1e6;

/// On the circle, or inside it and not at its centre.
Complex in_disk(Complex pole) {
  const double radius = std::abs(pole);
  if (radius > 1.0) return pole / radius;
  return radius >= least_radius ? pole : radius > 0.0 ? pole * (least_radius / radius) : Complex(least_radius);
}

/// The powers of some poles at the taps 1 .. L-1, a column for a real one, two for a pair; and the coefficients of these columns that come
/// nearest to the taps. Columns are made orthogonal by modified Gram and Schmidt steps with pivoting.
class Projection {
 public:
  Projection(const std::vector<Complex>& poles, std::span<const double> taps) : rows_(std::ssize(taps) - 1), left_(rows_, 1) {
    std::int64_t count = 0;
    for (const Complex pole : poles) count += is_pair(pole) ? 2 : 1;
    q_ = Columns(rows_, count);
    std::int64_t column = 0;
    for (const Complex pole : poles) {
      double *re = q_[column], *im = is_pair(pole) ? q_[column + 1] : nullptr;
      each_power(pole, rows_ + 1, [&](std::int64_t k, Complex power) {
        if (k == 0) return;
        re[k - 1] = power.real();
        if (im) im[k - 1] = -power.imag();
      });
      column += im ? 2 : 1;
    }
    std::copy(taps.begin() + 1, taps.end(), left_[0]);
    solve(count);
    residues_.reserve(poles.size());
    column = 0;
    for (const Complex pole : poles) {
      residues_.emplace_back(coefficients_[static_cast<std::size_t>(column)],
                             is_pair(pole) ? coefficients_[static_cast<std::size_t>(column) + 1] : 0.0);
      column += is_pair(pole) ? 2 : 1;
    }
  }
  const std::vector<Complex>& residues() const { return residues_; }
  double squares() const { return squares_; }  ///< squared norm of the residual
  const double* left() const { return left_[0]; }
  /// Subtracts from x its projection on these columns.
  void project(double* x) const {
    for (std::int64_t i = 0; i < rank_; ++i) {
      const double s = columns::dot(q_[i], x, 0, q_.height());
      for (std::int64_t row = 0; row < q_.height(); ++row) x[row] -= s * q_[i][row];
    }
  }

 private:
  void solve(std::int64_t count) {
    const std::int64_t height = q_.height();
    const auto n = static_cast<std::size_t>(count);
    std::vector<std::size_t> place(n);  // of the column at i: which it was
    for (std::size_t i = 0; i < n; ++i) place[i] = i;
    std::vector<double> scale(n, 1.0), R(n * n, 0.0), projected(n, 0.0);
    const double most = largest_coefficient * columns::norm(left_[0], 0, height);
    for (std::size_t i = 0; i < n; ++i) {  // columns of one length, so that a pole that falls fast is not given up for a slow one
      const double size = columns::norm(q_[static_cast<std::int64_t>(i)], 0, height);
      if (size == 0.0) continue;
      scale[i] = size;
      for (std::int64_t row = 0; row < height; ++row) q_[static_cast<std::int64_t>(i)][row] /= size;
    }
    for (std::int64_t k = 0; k < count; ++k) {
      check_stop();
      std::int64_t best = k;
      double longest = -1.0;
      for (std::int64_t j = k; j < count; ++j)
        if (const double size = columns::norm(q_[j], 0, height); size > longest) {
          longest = size;
          best = j;
        }
      if (longest <= 1e-14) break;
      const auto at = static_cast<std::size_t>(k);
      if (best != k) {
        std::swap_ranges(q_[k], q_[k] + height, q_[best]);
        std::swap(place[at], place[static_cast<std::size_t>(best)]);
        for (std::size_t i = 0; i < at; ++i) std::swap(R[i * n + at], R[i * n + static_cast<std::size_t>(best)]);
      }
      for (std::int64_t i = 0; i < k; ++i) {
        const double s = columns::dot(q_[i], q_[k], 0, height);
        R[static_cast<std::size_t>(i) * n + at] += s;
        for (std::int64_t row = 0; row < height; ++row) q_[k][row] -= s * q_[i][row];
      }
      const double size = columns::norm(q_[k], 0, height);
      R[at * n + at] = size;
      for (std::int64_t row = 0; row < height; ++row) q_[k][row] /= size;
      for (std::int64_t j = k + 1; j < count; ++j) {
        const double s = columns::dot(q_[k], q_[j], 0, height);
        R[at * n + static_cast<std::size_t>(j)] = s;
        for (std::int64_t row = 0; row < height; ++row) q_[j][row] -= s * q_[k][row];
      }
      const double s = columns::dot(q_[k], left_[0], 0, height);
      if (std::abs(s) > most * size) break;
      projected[at] = s;
      for (std::int64_t row = 0; row < height; ++row) left_[0][row] -= s * q_[k][row];
      rank_ = k + 1;
    }
    coefficients_.assign(n, 0.0);
    for (std::size_t i = static_cast<std::size_t>(rank_); i-- > 0;) {
      double value = projected[i];
      for (std::size_t j = i + 1; j < static_cast<std::size_t>(rank_); ++j)
        value -= R[i * n + j] * coefficients_[place[j]] * scale[place[j]];
      coefficients_[place[i]] = value / R[i * n + i] / scale[place[i]];
    }
    squares_ = columns::dot(left_[0], left_[0], 0, height);
  }

  std::int64_t rows_, rank_ = 0;
  Columns q_, left_;
  std::vector<double> coefficients_;
  std::vector<Complex> residues_;
  double squares_ = 0.0;
};

/// The eigenvalues of the matrix that shifts the leading singular vectors by a row: the poles of a system of that order, inside the closed
/// unit disk.
std::vector<Complex> poles_of(const HankelFactors& h, std::int64_t order, bool ending) {
  std::int64_t n = 0;
  while (n < std::min<std::int64_t>(order, std::ssize(h.vectors)) && h.value(n) > 1e-13 * h.value(0)) ++n;
  if (n == 0) return {};
  const auto size = static_cast<std::size_t>(n), last = static_cast<std::size_t>(h.size) - 1;
  std::vector<double> shift(size * size), A(size * size, 0.0);
  for (std::size_t i = 0; i < size; ++i)
    for (std::size_t j = 0; j < size; ++j) {
      double sum = 0.0;
      for (std::size_t row = 0; row < last; ++row) sum += h.vectors[i][row] * h.vectors[j][row + 1];
      shift[i * size + j] = sum;
    }
  if (!ending) {  // all rows but the last tell: their squares are I - r rᵀ
    double outside = 1.0;
    for (std::size_t i = 0; i < size; ++i) outside -= h.vectors[i][last] * h.vectors[i][last];
    if (outside <= 1e-12) return {};
    const std::vector<double> plain = shift;
    for (std::size_t j = 0; j < size; ++j) {
      double sum = 0.0;
      for (std::size_t i = 0; i < size; ++i) sum += h.vectors[i][last] * plain[i * size + j];
      for (std::size_t i = 0; i < size; ++i) shift[i * size + j] += h.vectors[i][last] * sum / outside;
    }
  }
  for (std::size_t i = 0; i < size; ++i)
    for (std::size_t j = 0; j < size; ++j) A[i * size + j] = shift[i * size + j] * std::sqrt(h.values[j] / h.values[i]);
  std::vector<Complex> poles;
  for (Complex pole : eigenvalues(A, n)) {
    if (!std::isfinite(pole.real()) || !std::isfinite(pole.imag())) return {};
    if (pole.imag() < 0.0) continue;
    poles.push_back(in_disk(pole));
  }
  return poles;
}

/// G x = g for a symmetric positive definite matrix; none where it is not.
std::optional<std::vector<double>> solved(std::vector<double> G, std::vector<double> g) {
  const auto n = g.size();
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t j = 0; j <= i; ++j) {
      double value = G[i * n + j];
      for (std::size_t k = 0; k < j; ++k) value -= G[i * n + k] * G[j * n + k];
      if (i != j) {
        G[i * n + j] = value / G[j * n + j];
      } else if (value > 0.0) {
        G[i * n + i] = std::sqrt(value);
      } else {
        return {};
      }
    }
    for (std::size_t k = 0; k < i; ++k) g[i] -= G[i * n + k] * g[k];
    g[i] /= G[i * n + i];
  }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t k = i + 1; k < n; ++k) g[i] -= G[k * n + i] * g[k];
    g[i] /= G[i * n + i];
  }
  return g;
}

/// Moves poles to the nearest minimum of the squares that are left: p = exp(w), Re w <= 0, a real pole on its own side of the real axis, a
/// pair above it.
void refine(std::vector<Complex>& poles, std::optional<Projection>& best, std::span<const double> taps) {
  constexpr int turns = 40;
  const std::int64_t rows = std::ssize(taps) - 1;
  double enough = 0.0;
  for (std::size_t k = 1; k < taps.size(); ++k) enough += 1e-30 * taps[k] * taps[k];
  double damping = 1e-3;
  int idle = 0;
  for (int turn = 0; turn < turns && best->squares() > enough; ++turn) {
    check_stop();
    std::int64_t count = 0;
    for (const Complex pole : poles) count += is_pair(pole) ? 2 : 1;
    Columns J(rows, count);
    std::int64_t column = 0;
    for (std::size_t n = 0; n < poles.size(); ++n) {
      double *re = J[column], *im = is_pair(poles[n]) ? J[column + 1] : nullptr;
      each_power(poles[n], rows + 1, [&](std::int64_t k, Complex power) {
        if (k == 0) return;
        const Complex moved = static_cast<double>(k) * best->residues()[n] * power;
        re[k - 1] = moved.real();
        if (im) im[k - 1] = -moved.imag();
      });
      column += im ? 2 : 1;
    }
    const auto q = static_cast<std::size_t>(count);
    std::vector<double> G(q * q), g(q);
    for (std::int64_t i = 0; i < count; ++i) {
      best->project(J[i]);
      for (std::int64_t j = 0; j <= i; ++j)
        G[static_cast<std::size_t>(i) * q + static_cast<std::size_t>(j)] =
            G[static_cast<std::size_t>(j) * q + static_cast<std::size_t>(i)] = columns::dot(J[i], J[j], 0, J.height());
      g[static_cast<std::size_t>(i)] = columns::dot(J[i], best->left(), 0, J.height());
    }
    double largest = 0.0;
    for (std::size_t i = 0; i < q; ++i) largest = std::max(largest, G[i * q + i]);
    if (largest == 0.0) return;
    bool better = false;
    const double before = best->squares();
    for (int attempt = 0; attempt < 10 && !better; ++attempt) {
      std::vector<double> damped = G;
      for (std::size_t i = 0; i < q; ++i) damped[i * q + i] += damping * G[i * q + i] + 1e-14 * largest;
      const auto step = solved(std::move(damped), g);
      if (step) {
        std::vector<Complex> moved = poles;
        std::size_t at = 0;
        for (Complex& pole : moved) {
          const bool pair = is_pair(pole);
          const double rate = std::clamp(std::log(std::abs(pole)) + (*step)[at], std::log(least_radius), 0.0);
          if (pair) {
            const double angle = std::abs(std::remainder(std::arg(pole) + (*step)[at + 1], 2.0 * std::numbers::pi));
            pole = std::polar(std::exp(rate), std::clamp(angle, 1e-12, std::numbers::pi - 1e-12));
          } else {
            pole = std::copysign(std::exp(rate), pole.real());
          }
          at += pair ? 2 : 1;
        }
        std::optional<Projection> there(std::in_place, moved, taps);
        if (there->squares() < before) {
          poles = std::move(moved);
          best = std::move(there);
          better = true;
          damping = std::max(damping / 5.0, 1e-12);
        }
      }
      if (!better) damping *= 4.0;
    }
    if (!better) return;
    idle = best->squares() > (1.0 - 1e-4) * before ? idle + 1 : 0;
    if (idle == 3) return;
  }
}

}  // namespace

std::int64_t ModalFilter::order() const {
  std::int64_t n = 0;
  for (const Complex pole : poles) n += is_pair(pole) ? 2 : 1;
  return n;
}

std::vector<double> ModalFilter::taps(std::int64_t count) const {
  std::vector<double> h(static_cast<std::size_t>(count), 0.0);
  for (std::size_t n = 0; n < poles.size(); ++n)
    each_power(poles[n], count, [&](std::int64_t k, Complex power) { h[static_cast<std::size_t>(k)] += (residues[n] * power).real(); });
  if (count > 0) h[0] += direct;
  return h;
}

FilterSpectrum filter_spectrum(std::span<const double> taps, std::int64_t order) {
  return {hankel_factors(taps, HankelOf::taps, order + 1), hankel_factors(taps, HankelOf::ending, order + 1)};
}

std::vector<ModalFit> modal_fits(std::span<const double> taps, const FilterSpectrum& spectrum, std::span<const std::int64_t> orders) {
  RECLAB_DEMAND(!taps.empty() && std::ranges::is_sorted(orders));
  // In a unit in which squares of taps neither overflow nor vanish.
  const auto unit_of = [](std::span<const double> values) {
    double most = 0.0;
    for (const double value : values) most = std::max(most, std::abs(value));
    return most > 0.0 ? std::ilogb(most) : 0;
  };
  const int unit = unit_of(taps.subspan(1));
  std::vector<double> scaled(taps.size(), 0.0);
  for (std::size_t k = 1; k < taps.size(); ++k) scaled[k] = std::ldexp(taps[k], -unit);
  std::vector<ModalFit> fits;
  std::vector<Complex> best_poles;
  for (const std::int64_t order : orders) {
    std::vector<Complex> poles = best_poles;
    std::optional<Projection> found(std::in_place, poles, scaled);
    if (taps.size() > 1) {
      for (const bool ending : {true, false}) {
        std::vector<Complex> start = poles_of(ending ? spectrum.ending : spectrum.taps, order, ending);
        std::optional<Projection> there(std::in_place, start, scaled);
        if (there->squares() < found->squares()) {
          found = std::move(there);
          poles = std::move(start);
        }
      }
      refine(poles, found, scaled);
    }
    ModalFit fit{order, {poles, found->residues(), taps[0]}, {}};
    for (Complex& residue : fit.filter.residues) {
      residue = {std::ldexp(residue.real(), unit), std::ldexp(residue.imag(), unit)};
      fit.filter.direct -= residue.real();
    }
    std::vector<double> error = fit.filter.taps(std::ssize(taps));
    for (std::size_t k = 0; k < error.size(); ++k) error[k] = taps[k] - error[k];
    const int of_error = unit_of(error);
    for (const double e : error) {
      const double small = std::ldexp(e, -of_error);
      fit.error.l2 += small * small;
      fit.error.largest = std::max(fit.error.largest, std::abs(e));
    }
    fit.error.l2 = std::ldexp(std::sqrt(fit.error.l2), of_error);
    fit.error.hankel = hankel_norm(error, HankelOf::taps);
    fits.push_back(std::move(fit));
    best_poles = std::move(poles);
  }
  return fits;
}

}  // namespace reclab
