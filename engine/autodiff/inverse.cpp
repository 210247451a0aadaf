// SPDX-License-Identifier: GPL-3.0-or-later
#include "autodiff/inverse.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <stop_token>
#include <utility>

#include "array/demand.h"
#include "array/device_array.h"
#include "array/error.h"
#include "array/host.h"

namespace reclab {
namespace {

/// Gauss and Jordan's elimination, a row's pivot being the largest entry that is left in its column. A triangular matrix takes its own
/// diagonal, so that its inverse is as triangular as it is: of one far from normal the rest, however small, would move the eigenvalues.
std::vector<double> inverted(std::vector<double> a, std::size_t n, const std::stop_token& stop) {
  std::vector<double> x(n * n);
  for (std::size_t i = 0; i < n; ++i) x[i * n + i] = 1.0;
  bool triangular = true;
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = i + 1; j < n; ++j) triangular = triangular && a[i * n + j] == 0.0;
  for (std::size_t k = 0; k < n; ++k) {
    if (stop.stop_requested()) throw Cancelled();
    std::size_t pivot = k;
    for (std::size_t i = k + 1; i < n && !triangular; ++i)
      if (std::abs(a[i * n + k]) > std::abs(a[pivot * n + k])) pivot = i;
    if (pivot != k)
      for (std::size_t j = 0; j < n; ++j) {
        std::swap(a[k * n + j], a[pivot * n + j]);
        std::swap(x[k * n + j], x[pivot * n + j]);
      }
    const double scale = 1.0 / a[k * n + k];
    for (std::size_t j = 0; j < n; ++j) {
      a[k * n + j] *= scale;
      x[k * n + j] *= scale;
    }
    for (std::size_t i = 0; i < n; ++i) {
      const double factor = a[i * n + k];
      if (i == k || factor == 0.0) continue;
      for (std::size_t j = 0; j < n; ++j) {
        a[i * n + j] -= factor * a[k * n + j];
        x[i * n + j] -= factor * x[k * n + j];
      }
    }
  }
  return x;
}

class MatrixInverse final : public Operation {
 public:
  MatrixInverse(DType type, std::int64_t matrices, std::int64_t n) : type_(type), matrices_(matrices), n_(n) {}
  void forward(const ForwardCall& c) override {
    std::vector<double> a = to_double(c.backend, type_, c.in[0], matrices_ * n_ * n_);
    if (a != given_) {  // a run in segments asks for the same ones at each of them
      given_.clear();
      const auto n = static_cast<std::size_t>(n_);
      std::vector<double> all;
      for (auto one = a.begin(); one != a.end(); one += n_ * n_) {
        const std::vector<double> x = inverted({one, one + n_ * n_}, n, c.stop);
        all.insert(all.end(), x.begin(), x.end());
      }
      const std::vector<char> bytes = narrowed(type_, all);
      c.backend.upload(made_.resize(c.backend, type_, matrices_ * n_ * n_), bytes.data(), bytes.size());
      given_ = std::move(a);
    }
    c.backend.copy(c.out[0], made_.data(), made_.bytes());
  }
  void backward(const BackwardCall& c) override {  // gA = -X^T g X^T
    if (!c.grad_in[0]) return;
    const std::int64_t all = matrices_ * n_ * n_;
    void* half = scratch_.resize(c.backend, type_, 2 * all);
    void* negative = scratch_.at(all);
    c.backend.matmul(type_, product(true, false), c.out[0], c.grad_out[0], half, false);
    c.backend.matmul(type_, product(false, true), half, c.out[0], negative, false);
    c.backend.unary(Unary::affine, type_, all, negative, negative, -1.0, 0.0);
    c.backend.add_scaled(type_, all, 0, negative, c.grad_in[0], true);
  }
  void tangent(const TangentCall& c) override {  // -X dA X
    const std::int64_t all = matrices_ * n_ * n_;
    void *half = c.temporary(0, type_, all), *negative = c.temporary(1, type_, all);
    c.backend.matmul(type_, product(false, false), c.out[0], c.tangent_in[0], half, false);
    c.backend.matmul(type_, product(false, false), half, c.out[0], negative, false);
    c.backend.unary(Unary::affine, type_, all, negative, c.tangent_out[0], -1.0, 0.0);
  }
  Cost cost() const override {
    const double n = static_cast<double>(n_), matrices = static_cast<double>(matrices_);
    return {4.0 * matrices * n * n * n, 2.0 * matrices * n * n * static_cast<double>(bytes_of(type_))};
  }

 private:
  DType type_;
  std::int64_t matrices_, n_;
  DeviceArray made_, scratch_;
  std::vector<double> given_;  // the matrix whose inverse is made_

  MatMul product(bool first_turned, bool second_turned) const {
    return {matrices_, n_, n_, n_, first_turned, second_turned, n_ * n_, n_ * n_, n_ * n_};
  }
};

}  // namespace

Var matrix_inverse(Var a) {
  const std::int64_t n = a.dim(-1);
  RECLAB_DEMAND(a.shape().size() >= 2 && a.dim(-2) == n && !is_complex(a.dtype()));
  return a.graph->apply(std::make_unique<MatrixInverse>(a.dtype(), count(a.shape()) / (n * n), n), {a}, {{a.shape(), a.dtype()}})[0];
}

}  // namespace reclab
