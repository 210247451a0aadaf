// SPDX-License-Identifier: GPL-3.0-or-later
#include <cmath>

#include "autodiff/operands.h"
#include "autodiff/ops.h"

namespace reclab {
namespace {

class Sum final : public Operation {
 public:
  Sum(DType type, std::int64_t outer, std::int64_t n, std::int64_t inner, double scale)
      : type_(type), outer_(outer), n_(n), inner_(inner), scale_(scale) {}
  void forward(const ForwardCall& c) override { c.backend.sum(type_, outer_, n_, inner_, scale_, c.in[0], c.out[0]); }
  void backward(const BackwardCall& c) override {
    if (c.grad_in[0]) c.backend.sum_adjoint(type_, outer_, n_, inner_, scale_, c.grad_out[0], c.grad_in[0]);
  }
  void tangent(const TangentCall& c) override { c.backend.sum(type_, outer_, n_, inner_, scale_, c.tangent_in[0], c.tangent_out[0]); }
  Cost cost() const override {
    const double all = static_cast<double>(outer_ * n_ * inner_);
    return {all, (all + all / static_cast<double>(n_)) * real_bytes(type_)};
  }

 private:
  DType type_;
  std::int64_t outer_, n_, inner_;
  double scale_;
};

Var reduce(Var x, int axis, double scale, bool keep) {
  axis = axis_of(x, axis);
  Shape shape = x.shape();
  const std::int64_t n = shape[static_cast<std::size_t>(axis)];
  auto operation = std::make_unique<Sum>(x.dtype(), product(shape, 0, axis), n, product(shape, axis + 1, static_cast<int>(shape.size())), scale);
  if (keep)
    shape[static_cast<std::size_t>(axis)] = 1;
  else
    shape.erase(shape.begin() + axis);
  return x.graph->apply(std::move(operation), {x}, {{shape, x.dtype()}})[0];
}

class CumulativeSumOperation final : public Operation {
 public:
  CumulativeSumOperation(DType type, std::int64_t outer, std::int64_t n, std::int64_t inner) : type_(type), outer_(outer), n_(n), inner_(inner) {}
  void forward(const ForwardCall& c) override { c.backend.cumulative_sum(type_, outer_, n_, inner_, false, c.in[0], c.out[0], false); }
  void backward(const BackwardCall& c) override {
    if (c.grad_in[0]) c.backend.cumulative_sum(type_, outer_, n_, inner_, true, c.grad_out[0], c.grad_in[0], true);
  }
  void tangent(const TangentCall& c) override { c.backend.cumulative_sum(type_, outer_, n_, inner_, false, c.tangent_in[0], c.tangent_out[0], false); }
  Cost cost() const override {
    const double all = static_cast<double>(outer_ * n_ * inner_);
    return {all, 2.0 * all * real_bytes(type_)};
  }

 private:
  DType type_;
  std::int64_t outer_, n_, inner_;
};

/// x / sqrt(mean x^2 + eps) over the last axis. The squares of floats above 1e19 are out of range: there x is divided by its size first.
/// Below 1e9 that size is taken as 1, which changes no bit.
Var over_root_mean_square(Var x, double eps) {
  if (x.dtype() != DType::f32) return x / sqrt(mean_keep(square(x), -1) + eps);
  const Var size = detach(mean_keep(abs(x) * std::ldexp(1.0, -30), -1)), unit = maximum(size, affine(size, 0.0, 1.0)), small = x / unit;
  return small / sqrt(mean_keep(square(small), -1) + square(reciprocal(unit)) * eps);
}

}  // namespace

Var cumulative_sum(Var x, int axis) {
  axis = axis_of(x, axis);
  const Shape& shape = x.shape();
  auto operation = std::make_unique<CumulativeSumOperation>(x.dtype(), product(shape, 0, axis), shape[static_cast<std::size_t>(axis)],
                                                   product(shape, axis + 1, static_cast<int>(shape.size())));
  return x.graph->apply(std::move(operation), {x}, {{shape, x.dtype()}})[0];
}

Var sum(Var x, int axis) { return reduce(x, axis, 1.0, false); }
Var mean(Var x, int axis) { return reduce(x, axis, 1.0 / static_cast<double>(x.dim(axis)), false); }
Var mean_keep(Var x, int axis) { return reduce(x, axis, 1.0 / static_cast<double>(x.dim(axis)), true); }

Var layer_norm(Var x, Var weight, Var bias, double eps) {
  Var y = over_root_mean_square(x - mean_keep(x, -1), eps);
  if (weight) y = y * weight;
  return bias ? y + bias : y;
}

Var rms_norm(Var x, Var weight, double eps) {
  const Var y = over_root_mean_square(x, eps);
  return weight ? y * weight : y;
}

}  // namespace reclab
