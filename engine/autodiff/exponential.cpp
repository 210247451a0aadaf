// SPDX-License-Identifier: GPL-3.0-or-later
#include "autodiff/exponential.h"

#include <cmath>
#include <memory>
#include <utility>

#include "array/demand.h"
#include "array/device_array.h"
#include "array/error.h"
#include "array/host.h"

namespace reclab {
namespace {

/// e^A and how it moves: the derivative of e^A along E is the same computation on A + tE to first order in t, and its adjoint is the
/// derivative of e^(A^T) (Al-Mohy and Higham, SIAM J. Matrix Anal. Appl. 30, 2009).
class MatrixExponential final : public Operation {
 public:
  MatrixExponential(DType type, std::int64_t n) : type_(type), n_(n) {}

  void forward(const ForwardCall& c) override {
    std::vector<double> a = to_double(c.backend, type_, c.in[0], n_ * n_);
    if (a != given_) {  // a run in segments asks for the same one at each of them
      given_.clear();
      compute(c.backend, a, {}, c.stop);
      put(c.backend, x_, made_.resize(c.backend, type_, n_ * n_));
      given_ = std::move(a);
    }
    c.backend.copy(c.out[0], made_.data(), made_.bytes());
  }
  void backward(const BackwardCall& c) override {
    if (!c.grad_in[0]) return;
    compute(c.backend, transposed(to_double(c.backend, type_, c.in[0], n_ * n_)), to_double(c.backend, type_, c.grad_out[0], n_ * n_),
            c.stop);
    put(c.backend, dx_, narrow_.resize(c.backend, type_, n_ * n_));
    c.backend.add_scaled(type_, n_ * n_, 0, narrow_.data(), c.grad_in[0], true);
  }
  void tangent(const TangentCall& c) override {
    compute(c.backend, to_double(c.backend, type_, c.in[0], n_ * n_), to_double(c.backend, type_, c.tangent_in[0], n_ * n_), c.stop);
    put(c.backend, dx_, c.tangent_out[0]);
  }
  Cost cost() const override {
    const double n = static_cast<double>(n_);
    return {2.0 * (degree + 3) * n * n * n, 2.0 * n * n * static_cast<double>(bytes_of(type_)), degree + 3.0};
  }

 private:
  /// The remainder of a polynomial of this degree is below 2^-53 where |A| <= 1/2: (1/2)^15 / 15!.
  static constexpr int degree = 14;
  DType type_;
  std::int64_t n_;
  DeviceArray a_, e_, one_, x_, dx_, y_, dy_, narrow_, made_;
  std::vector<double> given_;  // the matrix whose exponential is made_

  std::vector<double> transposed(const std::vector<double>& a) const {
    const auto n = static_cast<std::size_t>(n_);
    std::vector<double> t(a.size());
    for (std::size_t i = 0; i < n; ++i)
      for (std::size_t j = 0; j < n; ++j) t[j * n + i] = a[i * n + j];
    return t;
  }
  void send(Backend& b, DeviceArray& to, const std::vector<double>& values) const {
    b.upload(to.resize(b, DType::f64, n_ * n_), values.data(), values.size() * sizeof(double));
  }
  void put(Backend& b, const DeviceArray& from, void* to) const {
    if (type_ == DType::f64) {
      b.copy(to, from.data(), from.bytes());
      return;
    }
    const std::vector<char> bytes = narrowed(type_, to_double(b, DType::f64, from.data(), n_ * n_));
    b.upload(to, bytes.data(), bytes.size());
  }
  void times(Backend& b, const DeviceArray& x, const DeviceArray& y, const DeviceArray& z, bool accumulate) const {
    b.matmul(DType::f64, {1, n_, n_, n_, false, false, 0, 0, 0}, x.data(), y.data(), z.data(), accumulate);
  }

  /// x_ = e^A, and with E the derivative along it, dx_.
  void compute(Backend& b, std::vector<double> a, std::vector<double> e, const std::stop_token& stop) {
    const auto n = static_cast<std::size_t>(n_);
    const std::int64_t all = n_ * n_;
    const bool moves = !e.empty();
    double norm = 0.0;  // the largest sum of a row's moduli; of NaN none, which the products then carry through
    for (std::size_t i = 0; i < n; ++i) {
      double sum = 0.0;
      for (std::size_t j = 0; j < n; ++j) sum += std::abs(a[i * n + j]);
      norm = std::max(norm, sum);
    }
    const int squarings = std::isfinite(norm) && norm > 0.5 ? std::ilogb(norm) + 2 : 0;  // norm / 2^squarings is in 1/4..1/2
    for (double& value : a) value = std::ldexp(value, -squarings);
    for (double& value : e) value = std::ldexp(value, -squarings);
    std::vector<double> one(n * n);
    for (std::size_t i = 0; i < n; ++i) one[i * n + i] = 1.0;
    send(b, a_, a);
    send(b, one_, one);
    send(b, x_, one);
    y_.resize(b, DType::f64, all);
    if (moves) {
      send(b, e_, e);
      b.zero(dx_.resize(b, DType::f64, all), n * n * sizeof(double));
      dy_.resize(b, DType::f64, all);
    }
    for (int k = degree; k >= 1; --k) {  // Horner: I + A/1 (I + A/2 (I + A/3 ...
      if (stop.stop_requested()) throw Cancelled();
      times(b, a_, x_, y_, false);
      if (moves) {
        times(b, a_, dx_, dy_, false);
        times(b, e_, x_, dy_, true);
        b.unary(Unary::affine, DType::f64, all, dy_.data(), dx_.data(), 1.0 / k, 0.0);
      }
      b.unary(Unary::affine, DType::f64, all, y_.data(), x_.data(), 1.0 / k, 0.0);
      b.add_scaled(DType::f64, all, 0, one_.data(), x_.data(), true);
    }
    for (int k = 0; k < squarings; ++k) {
      if (stop.stop_requested()) throw Cancelled();
      if (moves) {
        times(b, dx_, x_, dy_, false);
        times(b, x_, dx_, dy_, true);
        std::swap(dx_, dy_);
      }
      times(b, x_, x_, y_, false);
      std::swap(x_, y_);
    }
  }
};

}  // namespace

Var matrix_exponential(Var a) {
  RECLAB_DEMAND(a.shape().size() == 2 && a.dim(0) == a.dim(1) && !is_complex(a.dtype()));
  return a.graph->apply(std::make_unique<MatrixExponential>(a.dtype(), a.dim(0)), {a}, {{a.shape(), a.dtype()}})[0];
}

}  // namespace reclab
