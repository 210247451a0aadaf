// SPDX-License-Identifier: GPL-3.0-or-later
#include "distillation/hankel.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "algebra/columns.h"
#include "array/backend.h"
#include "array/device_array.h"
#include "array/rng.h"
#include "array/stop.h"

namespace reclab {
namespace {

using columns::Columns;

constexpr std::int64_t factored_whole = 256;
constexpr std::int64_t summed_directly = 256;

/// y = 2^-unit H x, in a unit in which squares of its entries neither overflow nor vanish; as the sum itself or as a convolution with the
/// reversed vector.
class HankelProduct {
 public:
  HankelProduct(std::span<const double> taps, HankelOf of) : size_(hankel_size(of, std::ssize(taps))), backend_(cpu_backend()) {
    sequence_.assign(static_cast<std::size_t>(std::max<std::int64_t>(2 * size_ - 1, 0)), 0.0);
    double most = 0.0;
    for (const double tap : taps.subspan(std::min<std::size_t>(1, taps.size()))) most = std::max(most, std::abs(tap));
    if (most > 0.0) unit_ = std::ilogb(most);
    for (std::size_t k = 0; k < sequence_.size() && k + 1 < taps.size(); ++k) sequence_[k] = std::ldexp(taps[k + 1], -unit_);
    if (size_ <= summed_directly) return;
    const std::int64_t n = std::ssize(sequence_);
    if (const std::size_t bytes = backend_.spectrum_size(DType::f64, n, 1)) spectrum_ = DeviceArray(backend_, bytes);
    backend_.spectrum(DType::f64, n, 1, sequence_.data(), spectrum_.data());
    reversed_.assign(sequence_.size(), 0.0);
    result_.resize(sequence_.size());
  }
  std::int64_t size() const { return size_; }
  int unit() const { return unit_; }

  void operator()(const double* x, double* y) {
    check_stop();
    const auto m = static_cast<std::size_t>(size_);
    if (size_ <= summed_directly) {
      for (std::size_t i = 0; i < m; ++i) {
        double sum = 0.0;
        for (std::size_t j = 0; j < m; ++j) sum += sequence_[i + j] * x[j];
        y[i] = sum;
      }
      return;
    }
    for (std::size_t j = 0; j < m; ++j) reversed_[j] = x[m - 1 - j];
    backend_.convolve_with(DType::f64, std::ssize(sequence_), 1, 1, sequence_.data(), spectrum_.data(), reversed_.data(), result_.data());
    for (std::size_t i = 0; i < m; ++i) y[i] = result_[m - 1 + i];
  }

 private:
  std::int64_t size_;
  int unit_ = 0;
  Backend& backend_;
  std::vector<double> sequence_, reversed_, result_;
  DeviceArray spectrum_;
};

/// Eigenvalues and, row by row of `rotations` [n, n] that starts as the identity, eigenvectors of a symmetric tridiagonal matrix: the
/// implicit QL method (Golub & Van Loan, 8.3). vectors[k] is the k-th row.
void tridiagonal_eigen(std::vector<double>& diagonal, std::vector<double> beside, std::vector<std::vector<double>>& vectors) {
  const auto n = diagonal.size();
  vectors.assign(n, std::vector<double>(n, 0.0));
  for (std::size_t i = 0; i < n; ++i) vectors[i][i] = 1.0;
  beside.resize(n, 0.0);  // beside[i] couples i and i + 1
  for (std::size_t l = 0; l < n; ++l) {
    check_stop();
    for (int turn = 0; turn < 200; ++turn) {
      std::size_t m = l;
      while (m + 1 < n &&
             std::abs(beside[m]) > std::numeric_limits<double>::epsilon() * (std::abs(diagonal[m]) + std::abs(diagonal[m + 1])))
        ++m;
      if (m == l) break;
      double g = (diagonal[l + 1] - diagonal[l]) / (2.0 * beside[l]);
      double r = std::hypot(g, 1.0);
      g = diagonal[m] - diagonal[l] + beside[l] / (g + std::copysign(r, g));
      double s = 1.0, c = 1.0, p = 0.0;
      bool parted = false;
      for (std::size_t i = m; i-- > l;) {
        const double f = s * beside[i], b = c * beside[i];
        r = std::hypot(f, g);
        beside[i + 1] = r;
        if (r == 0.0) {
          diagonal[i + 1] -= p;
          beside[m] = 0.0;
          parted = true;
          break;
        }
        s = f / r;
        c = g / r;
        g = diagonal[i + 1] - p;
        r = (diagonal[i] - g) * s + 2.0 * c * b;
        p = s * r;
        diagonal[i + 1] = g + p;
        g = c * r - b;
        std::vector<double>&upper = vectors[i + 1], &lower = vectors[i];
        for (std::size_t k = 0; k < n; ++k) {
          const double old = upper[k];
          upper[k] = s * lower[k] + c * old;
          lower[k] = c * lower[k] - s * old;
        }
      }
      if (parted) continue;
      diagonal[l] -= p;
      beside[l] = g;
      beside[m] = 0.0;
    }
  }
}

}  // namespace

std::int64_t hankel_size(HankelOf of, std::int64_t taps) { return of == HankelOf::ending ? std::max<std::int64_t>(taps - 1, 0) : taps / 2; }

double HankelFactors::tail(std::int64_t n) const {
  const std::int64_t known = std::ssize(values);
  if (known == 0) return 0.0;
  return (n < known ? std::accumulate(values.begin() + n, values.end(), 0.0) : 0.0) +
         static_cast<double>(std::max<std::int64_t>(size - std::max(n, known), 0)) * values.back();
}
double HankelFactors::value(std::int64_t n) const { return n < std::ssize(values) ? values[static_cast<std::size_t>(n)] : 0.0; }

namespace {

/// wanted = 0: the largest value alone.
HankelFactors factors_of(std::span<const double> taps, HankelOf of, std::int64_t wanted) {
  HankelProduct product(taps, of);
  const std::int64_t m = product.size();
  HankelFactors found;
  found.size = m;
  if (m == 0) return found;
  const bool whole = m <= factored_whole && wanted > 0;
  const std::int64_t count = std::max<std::int64_t>(wanted, 1), most = whole ? m : std::min(m, std::max<std::int64_t>(6 * count, 600));
  const double tolerance = wanted > 0 ? 1e-14 : 1e-9;  // the error of a value is of second order in that of its vector
  std::int64_t next = whole ? m : std::min(most, wanted > 0 ? 2 * count + 40 : 30);
  Columns basis(m, most + 1);
  const std::int64_t height = basis.height();
  std::vector<double> alpha, beta;  // beta[k] couples k and k + 1
  Rng rng = Rng(1).split("hankel");
  /// Subtracts from column k its projection on the first k vectors, and returns the norm of the remainder.
  const auto orthogonalised = [&](std::int64_t k) {
    for (int twice = 0; twice < 2; ++twice)
      for (std::int64_t i = 0; i < k; ++i) {
        const double s = columns::dot(basis[i], basis[k], 0, height);
        for (std::int64_t row = 0; row < height; ++row) basis[k][row] -= s * basis[i][row];
      }
    return columns::norm(basis[k], 0, height);
  };
  const auto begin_anew = [&](std::int64_t k) {
    for (std::int64_t row = 0; row < m; ++row) basis[k][row] = rng.normal();
    const double size = orthogonalised(k);
    for (std::int64_t row = 0; row < m; ++row) basis[k][row] /= size;
  };
  begin_anew(0);
  double scale = 0.0;
  std::vector<double> theta;
  std::vector<std::vector<double>> rotations;
  std::vector<std::size_t> order;
  while (true) {
    for (std::int64_t k = std::ssize(alpha); k < next; ++k) {
      product(basis[k], basis[k + 1]);
      alpha.push_back(columns::dot(basis[k], basis[k + 1], 0, height));
      const double left = orthogonalised(k + 1);
      scale = std::max({scale, std::abs(alpha.back()), left});
      if (k + 1 == m) {
        beta.push_back(0.0);
      } else if (left > 1e-15 * scale * std::sqrt(static_cast<double>(m))) {
        beta.push_back(left);
        for (std::int64_t row = 0; row < m; ++row) basis[k + 1][row] /= left;
      } else {  // these vectors are a space of their own
        beta.push_back(0.0);
        std::fill(basis[k + 1], basis[k + 1] + height, 0.0);
        begin_anew(k + 1);
      }
    }
    theta = alpha;
    tridiagonal_eigen(theta, std::vector<double>(beta.begin(), beta.end() - 1), rotations);
    order.resize(theta.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return std::abs(theta[a]) > std::abs(theta[b]); });
    if (next == m || next == most) break;
    double worst = 0.0;
    for (std::size_t i = 0; i < std::min(order.size(), static_cast<std::size_t>(count)); ++i)
      worst = std::max(worst, std::abs(beta.back() * rotations[order[i]].back()));
    if (worst <= tolerance * scale) break;
    next = std::min(most, next + next / 2);
  }
  const auto kept = next == m ? order.size() : std::min(order.size(), static_cast<std::size_t>(count));
  for (std::size_t i = 0; i < kept; ++i) {
    found.values.push_back(std::ldexp(std::abs(theta[order[i]]), product.unit()));
    found.signs.push_back(theta[order[i]] < 0.0 ? -1.0 : 1.0);
    if (i >= static_cast<std::size_t>(wanted)) continue;
    std::vector<double> u(static_cast<std::size_t>(m), 0.0);
    const std::vector<double>& weights = rotations[order[i]];
    for (std::size_t k = 0; k < weights.size(); ++k) {
      const double* column = basis[static_cast<std::int64_t>(k)];
      for (std::size_t row = 0; row < u.size(); ++row) u[row] += weights[k] * column[row];
    }
    found.vectors.push_back(std::move(u));
  }
  return found;
}

}  // namespace

HankelFactors hankel_factors(std::span<const double> taps, HankelOf of, std::int64_t wanted) {
  return factors_of(taps, of, std::max<std::int64_t>(wanted, 1));
}
double hankel_norm(std::span<const double> taps, HankelOf of) { return factors_of(taps, of, 0).value(0); }

}  // namespace reclab
