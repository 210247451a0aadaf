// SPDX-License-Identifier: GPL-3.0-or-later
#include <utility>

#include "autodiff/fresh.h"
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
  bool is_pure() const override { return true; }
  bool reads_input(std::size_t) const override { return false; }
  bool reads_output(std::size_t) const override { return false; }
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
  auto operation =
      std::make_unique<Sum>(x.dtype(), product(shape, 0, axis), n, product(shape, axis + 1, static_cast<int>(shape.size())), scale);
  if (keep)
    shape[static_cast<std::size_t>(axis)] = 1;
  else
    shape.erase(shape.begin() + axis);
  return x.graph->apply(std::move(operation), {x}, {{shape, x.dtype()}})[0];
}

class CumulativeSumOperation final : public Operation {
 public:
  CumulativeSumOperation(DType type, std::int64_t outer, std::int64_t n, std::int64_t inner)
      : type_(type), outer_(outer), n_(n), inner_(inner) {}
  void forward(const ForwardCall& c) override { c.backend.cumulative_sum(type_, outer_, n_, inner_, false, c.in[0], c.out[0], false); }
  void backward(const BackwardCall& c) override {
    if (c.grad_in[0]) c.backend.cumulative_sum(type_, outer_, n_, inner_, true, c.grad_out[0], c.grad_in[0], true);
  }
  void tangent(const TangentCall& c) override {
    c.backend.cumulative_sum(type_, outer_, n_, inner_, false, c.tangent_in[0], c.tangent_out[0], false);
  }
  bool is_pure() const override { return true; }
  bool reads_input(std::size_t) const override { return false; }
  bool reads_output(std::size_t) const override { return false; }
  Cost cost() const override {
    const double all = static_cast<double>(outer_ * n_ * inner_);
    return {all, 2.0 * all * real_bytes(type_)};
  }

 private:
  DType type_;
  std::int64_t outer_, n_, inner_;
};

/// Backend::norm. Inputs x, the weight and the bias, if there are any.
class Normalise final : public Operation, public OverwritesGradient {
 public:
  Normalise(DType type, std::int64_t rows, std::int64_t n, bool centred, double eps, bool weight, bool bias)
      : type_(type), rows_(rows), n_(n), centred_(centred), eps_(eps), weight_(weight ? 1 : 0), bias_(bias ? weight_ + 1 : 0) {}
  void forward(const ForwardCall& c) override {
    c.backend.norm(type_, rows_, n_, centred_, eps_, c.in[0], of(c.in, weight_), of(c.in, bias_), c.out[0]);
  }
  void backward(const BackwardCall& c) override { backward(c, std::vector<char>(c.in.size())); }
  bool writes(std::size_t input) const override { return input == 0; }
  void backward(const BackwardCall& c, std::span<const char> fresh) override {
    c.backend.norm_adjoint(type_, rows_, n_, centred_, eps_, c.in[0], of(c.in, weight_), c.grad_out[0], c.grad_in[0], !fresh[0],
                           of(c.grad_in, weight_), of(c.grad_in, bias_));
  }
  void tangent(const TangentCall& c) override {
    // The Jacobian of the normalisation without weights is symmetric: its adjoint is its tangent.
    Backend& b = c.backend;
    const std::int64_t all = rows_ * n_;
    const void *dx = c.tangent_in[0], *dw = of(c.tangent_in, weight_), *db = of(c.tangent_in, bias_);
    void *dy = c.tangent_out[0], *part = c.temporary(0, type_, all), *more = c.temporary(1, type_, all);
    const Broadcast columns = broadcast_row(rows_, n_);
    if (dx) {
      b.norm_adjoint(type_, rows_, n_, centred_, eps_, c.in[0], nullptr, dx, weight_ ? part : dy, false, nullptr, nullptr);
      if (weight_) b.binary(Binary::multiply, type_, columns, part, of(c.in, weight_), dy);
    } else {
      b.zero(dy, bytes(type_, all));
    }
    if (dw) {
      b.norm(type_, rows_, n_, centred_, eps_, c.in[0], nullptr, nullptr, part);
      b.binary(Binary::multiply, type_, columns, part, dw, more);
      b.add_scaled(type_, all, 0, more, dy, true);
    }
    if (db) b.add_to_rows(type_, rows_, n_, db, false, dy);
  }
  bool is_pure() const override { return true; }
  bool reads_output(std::size_t) const override { return false; }
  Cost cost() const override {
    const double all = static_cast<double>(rows_ * n_);
    return {7.0 * all, 2.0 * all * real_bytes(type_)};
  }

 private:
  DType type_;
  std::int64_t rows_, n_;
  bool centred_;
  double eps_;
  std::size_t weight_, bias_;  // where they are among the inputs; 0: there is none
  template <class P>
  static P of(std::span<P const> all, std::size_t at) {
    return at ? all[at] : nullptr;
  }
};

Var norm(Var x, Var weight, Var bias, bool centred, double eps) {
  const std::int64_t n = x.dim(-1);
  const auto is_row = [&](Var v) { return v && v.dtype() == x.dtype() && count(v.shape()) == n && v.dim(-1) == n; };
  const bool own_weight = is_row(weight), own_bias = is_row(bias) && (own_weight || !weight);
  std::vector<Var> inputs{x};
  Graph* graph = x.graph;
  for (const auto& [own, more] : {std::pair{own_weight, weight}, std::pair{own_bias, bias}})
    if (own) {
      inputs.push_back(more);
      if (graph->encloses(*more.graph)) graph = more.graph;
    }
  Var y = graph->apply(std::make_unique<Normalise>(x.dtype(), count(x.shape()) / n, n, centred, eps, own_weight, own_bias), inputs,
                       {{x.shape(), x.dtype()}})[0];
  if (weight && !own_weight) y = y * weight;
  return bias && !own_bias ? y + bias : y;
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

Var layer_norm(Var x, Var weight, Var bias, double eps) { return norm(x, weight, bias, true, eps); }
Var rms_norm(Var x, Var weight, double eps) { return norm(x, weight, {}, false, eps); }

bool is_normalised(Var y) {
  bool found = false;
  y.graph->visit([&](const Operation& operation, std::span<const Var>, std::span<const Var> out) {
    if (count(out[0].shape()) == count(y.shape()) && y.graph->is_same_memory(out[0], y))
      found = dynamic_cast<const Normalise*>(&operation) != nullptr;
  });
  return found;
}

}  // namespace reclab
