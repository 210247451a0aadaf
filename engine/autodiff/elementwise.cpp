// SPDX-License-Identifier: GPL-3.0-or-later
#include <cassert>

#include "autodiff/operands.h"
#include "autodiff/ops.h"

namespace reclab {
namespace {

class UnaryOperation final : public Operation {
 public:
  UnaryOperation(Unary op, DType type, std::int64_t n, double p, double q) : op_(op), type_(type), n_(n), p_(p), q_(q) {}
  void forward(const ForwardCall& c) override { c.backend.unary(op_, type_, n_, c.in[0], c.out[0], p_, q_); }
  void backward(const BackwardCall& c) override {
    if (c.grad_in[0]) c.backend.unary_adjoint(op_, type_, n_, c.in[0], c.out[0], c.grad_out[0], c.grad_in[0], p_, q_);
  }
  Cost cost() const override { return {static_cast<double>(n_), 2.0 * static_cast<double>(n_) * real_bytes(type_)}; }

 private:
  Unary op_;
  DType type_;
  std::int64_t n_;
  double p_, q_;
};

Var unary(Unary op, Var x, double p = 0.0, double q = 0.0) {
  return x.graph->apply(std::make_unique<UnaryOperation>(op, x.dtype(), count(x.shape()), p, q), {x}, {{x.shape(), x.dtype()}})[0];
}

class BinaryOperation final : public Operation {
 public:
  BinaryOperation(Binary op, DType type, const Broadcast& shape) : op_(op), type_(type), shape_(shape) {}
  void forward(const ForwardCall& c) override { c.backend.binary(op_, type_, shape_, c.in[0], c.in[1], c.out[0]); }
  void backward(const BackwardCall& c) override {
    c.backend.binary_adjoint(op_, type_, shape_, c.in[0], c.in[1], c.grad_out[0], c.grad_in[0], c.grad_in[1]);
  }
  Cost cost() const override {
    const double n = static_cast<double>(shape_.elements);
    return {is_complex(type_) ? 4.0 * n : n, 3.0 * n * real_bytes(type_)};
  }

 private:
  Binary op_;
  DType type_;
  Broadcast shape_;
};

class Join final : public Operation {
 public:
  Join(DType type, std::int64_t n) : type_(type), n_(n) {}
  void forward(const ForwardCall& c) override { c.backend.join(type_, n_, c.in[0], c.in[1], c.out[0]); }
  void backward(const BackwardCall& c) override { c.backend.join_adjoint(type_, n_, c.grad_out[0], c.grad_in[0], c.grad_in[1]); }
  Cost cost() const override { return {0.0, 2.0 * static_cast<double>(n_) * real_bytes(type_)}; }

 private:
  DType type_;
  std::int64_t n_;
};

class Part final : public Operation {
 public:
  Part(DType type, int which, std::int64_t n) : type_(type), which_(which), n_(n) {}
  void forward(const ForwardCall& c) override { c.backend.part(type_, which_, n_, c.in[0], c.out[0]); }
  void backward(const BackwardCall& c) override {
    if (c.grad_in[0]) c.backend.part_adjoint(type_, which_, n_, c.grad_out[0], c.grad_in[0]);
  }
  Cost cost() const override { return {0.0, 1.5 * static_cast<double>(n_) * real_bytes(type_)}; }

 private:
  DType type_;
  int which_;
  std::int64_t n_;
};

Var part(Var z, int which) {
  assert(is_complex(z.dtype()));
  return z.graph->apply(std::make_unique<Part>(z.dtype(), which, count(z.shape())), {z}, {{z.shape(), real_of(z.dtype())}})[0];
}

Var promoted(Var x, DType type) {
  if (x.dtype() == type) return x;
  assert(is_complex(type) && !is_complex(x.dtype()));
  return complex(x, affine(x, 0.0, 0.0));
}

Var binary(Binary op, Var x, Var y) {
  Graph& graph = innermost(x, y);
  x = graph.adopt(x);
  y = graph.adopt(y);
  const DType type = is_complex(x.dtype()) ? x.dtype() : y.dtype();
  x = promoted(x, type);
  y = promoted(y, type);
  Shape shape;
  const Broadcast together = broadcast(x.shape(), y.shape(), shape);
  return graph.apply(std::make_unique<BinaryOperation>(op, type, together), {x, y}, {{shape, type}})[0];
}

/// Passes its values on, and no gradient back.
class Detach final : public Operation {
 public:
  Detach(DType type, std::int64_t n) : type_(type), n_(n) {}
  void forward(const ForwardCall& c) override { c.backend.copy(c.out[0], c.in[0], static_cast<std::size_t>(n_) * bytes_of(type_)); }
  void backward(const BackwardCall&) override {}
  bool passes_gradient() const override { return false; }
  Cost cost() const override { return {0.0, 2.0 * static_cast<double>(n_) * real_bytes(type_)}; }

 private:
  DType type_;
  std::int64_t n_;
};

}  // namespace

Var operator+(Var x, Var y) { return binary(Binary::add, x, y); }
Var operator-(Var x, Var y) { return binary(Binary::subtract, x, y); }
Var operator*(Var x, Var y) { return binary(Binary::multiply, x, y); }
Var operator/(Var x, Var y) { return binary(Binary::divide, x, y); }
Var affine(Var x, double a, double b) { return unary(Unary::affine, x, a, b); }
Var operator+(Var x, double c) { return affine(x, 1.0, c); }
Var operator+(double c, Var x) { return affine(x, 1.0, c); }
Var operator-(Var x, double c) { return affine(x, 1.0, -c); }
Var operator-(double c, Var x) { return affine(x, -1.0, c); }
Var operator*(Var x, double c) { return affine(x, c, 0.0); }
Var operator*(double c, Var x) { return affine(x, c, 0.0); }
Var operator/(Var x, double c) { return affine(x, 1.0 / c, 0.0); }
Var operator-(Var x) { return affine(x, -1.0, 0.0); }

Var exp(Var x) { return unary(Unary::exp, x); }
Var log(Var x) { return unary(Unary::log, x); }
Var sqrt(Var x) { return unary(Unary::sqrt, x); }
Var square(Var x) { return unary(Unary::square, x); }
Var reciprocal(Var x) { return unary(Unary::reciprocal, x); }
Var sigmoid(Var x) { return unary(Unary::sigmoid, x); }
Var tanh(Var x) { return unary(Unary::tanh, x); }
Var relu(Var x) { return unary(Unary::relu, x); }
Var softplus(Var x) { return unary(Unary::softplus, x); }
Var silu(Var x) { return unary(Unary::silu, x); }
Var gelu(Var x) { return unary(Unary::gelu, x); }
Var gelu_tanh(Var x) { return unary(Unary::gelu_tanh, x); }
Var elu(Var x) { return unary(Unary::elu, x); }

Var abs(Var x) { return unary(Unary::abs, x); }
Var sign(Var x) { return unary(Unary::sign, x); }
Var floor(Var x) { return unary(Unary::floor, x); }
Var sin(Var x) { return unary(Unary::sin, x); }
Var cos(Var x) { return unary(Unary::cos, x); }
Var log_sigmoid(Var x) { return unary(Unary::log_sigmoid, x); }
Var mean_exp(Var x) { return unary(Unary::mean_exp, x); }
Var exp_in_range(Var x) { return exp(minimum(x, x.dtype() == DType::f64 ? 709.0 : 88.0)); }
Var maximum(Var x, Var y) {
  assert(!is_complex(x.dtype()) && !is_complex(y.dtype()));
  return binary(Binary::maximum, x, y);
}
Var minimum(Var x, double c) { return -maximum(-x, affine(x, 0.0, -c)); }
Var detach(Var x) { return x.graph->apply(std::make_unique<Detach>(x.dtype(), count(x.shape())), {x}, {{x.shape(), x.dtype()}})[0]; }

Var complex(Var re, Var im) {
  Graph& graph = innermost(re, im);
  assert(re.shape() == im.shape() && !is_complex(re.dtype()) && !is_complex(im.dtype()));
  const Shape shape = re.shape();
  return graph.apply(std::make_unique<Join>(graph.complex(), count(shape)), {re, im}, {{shape, graph.complex()}})[0];
}
Var real(Var z) { return part(z, 0); }
Var imag(Var z) { return part(z, 1); }

}  // namespace reclab
