// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>

#include "array/demand.h"
#include "autodiff/fresh.h"
#include "autodiff/operands.h"
#include "autodiff/ops.h"
#include "autodiff/units.h"

namespace reclab {
namespace {

/// to = the conjugates of n complex numbers.
void conjugate(const TangentCall& c, DType type, std::int64_t n, const void* z, void* to) {
  const DType real = real_of(type);
  void *re = c.temporary(0, real, n), *im = c.temporary(1, real, n);
  c.backend.part(type, 0, n, z, re);
  c.backend.part(type, 1, n, z, im);
  c.backend.unary(Unary::affine, real, n, im, im, -1.0, 0.0);
  c.backend.join(type, n, re, im, to);
}

const void* entry(const void* array, DType type, std::int64_t i) { return static_cast<const char*>(array) + bytes(type, i); }
void* entry(void* array, DType type, std::int64_t i) { return static_cast<char*>(array) + bytes(type, i); }

class UnaryOperation final : public Operation, public OverwritesGradient, public RunsByUnits {
 public:
  UnaryOperation(Unary op, DType type, std::int64_t n, double p, double q) : op_(op), type_(type), n_(n), p_(p), q_(q) {}
  void forward(const ForwardCall& c) override { c.backend.unary(op_, type_, n_, c.in[0], c.out[0], p_, q_); }
  Entries entries() const override { return Entries::pointwise; }
  void forward(const ForwardCall& c, const EntryRanges& entries) override {
    const std::int64_t from = entries.from;
    c.backend.unary(op_, type_, entries.to - from, entry(c.in[0], type_, from), entry(c.out[0], type_, from), p_, q_);
  }
  void backward(const BackwardCall& c) override {
    if (c.grad_in[0]) c.backend.unary_adjoint(op_, type_, n_, c.in[0], c.out[0], c.grad_out[0], c.grad_in[0], p_, q_);
  }
  bool writes(std::size_t) const override { return op_ == Unary::affine; }
  void backward(const BackwardCall& c, std::span<const char> fresh) override {
    if (!fresh[0]) return backward(c);
    c.backend.unary(Unary::affine, type_, n_, c.grad_out[0], c.grad_in[0], p_, 0.0);
  }
  void tangent(const TangentCall& c) override {
    if (op_ == Unary::affine) return c.backend.unary(op_, type_, n_, c.tangent_in[0], c.tangent_out[0], p_, 0.0);
    // The adjoint multiplies with the slope, or with its conjugate.
    const void* moved = c.tangent_in[0];
    if (is_complex(type_)) {
      void* conjugated = c.temporary(2, type_, n_);
      conjugate(c, type_, n_, moved, conjugated);
      moved = conjugated;
    }
    c.backend.zero(c.tangent_out[0], bytes(type_, n_));
    c.backend.unary_adjoint(op_, type_, n_, c.in[0], c.out[0], moved, c.tangent_out[0], p_, q_);
    if (is_complex(type_)) conjugate(c, type_, n_, c.tangent_out[0], c.tangent_out[0]);
  }
  bool is_pure() const override { return true; }
  bool reads_input(std::size_t) const override {
    return op_ != Unary::affine && op_ != Unary::exp && op_ != Unary::sqrt && op_ != Unary::reciprocal;
  }
  bool reads_output(std::size_t) const override {
    return op_ == Unary::exp || op_ == Unary::sqrt || op_ == Unary::reciprocal || op_ == Unary::mean_exp;
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

class BinaryOperation final : public Operation, public OverwritesGradient, public RunsByUnits {
 public:
  BinaryOperation(Binary op, DType type, const Broadcast& shape) : op_(op), type_(type), shape_(shape) {}
  void forward(const ForwardCall& c) override { c.backend.binary(op_, type_, shape_, c.in[0], c.in[1], c.out[0]); }
  Entries entries() const override {
    return shape_.rank == 1 && shape_.stride_x[0] + shape_.stride_y[0] > 0 ? Entries::pointwise : Entries::none;
  }
  void forward(const ForwardCall& c, const EntryRanges& entries) override {
    const std::int64_t from = entries.from;
    Broadcast part = shape_;
    part.size[0] = part.elements = entries.to - from;
    c.backend.binary(op_, type_, part, entry(c.in[0], type_, from * shape_.stride_x[0]), entry(c.in[1], type_, from * shape_.stride_y[0]),
                     entry(c.out[0], type_, from));
  }
  void backward(const BackwardCall& c) override {
    c.backend.binary_adjoint(op_, type_, shape_, c.in[0], c.in[1], c.grad_out[0], c.grad_in[0], c.grad_in[1]);
  }
  bool writes(std::size_t input) const override {
    const Broadcast in_full = result_in_place_of_x();
    return (op_ == Binary::add || op_ == Binary::subtract || (op_ == Binary::multiply && !is_complex(type_))) &&
           std::equal(in_full.stride_x, in_full.stride_x + shape_.rank, input ? shape_.stride_y : shape_.stride_x);
  }
  void backward(const BackwardCall& c, std::span<const char> fresh) override {
    void* grad[] = {c.grad_in[0], c.grad_in[1]};
    for (std::size_t i = 0; i < 2; ++i) {
      if (!fresh[i]) continue;
      if (op_ == Binary::multiply) {
        Broadcast shape = result_in_place_of_x();
        if (i) std::copy_n(shape_.stride_x, shape_.rank, shape.stride_y);
        c.backend.binary(op_, type_, shape, c.grad_out[0], c.in[1 - i], grad[i]);
      } else if (op_ == Binary::subtract && i) {
        c.backend.unary(Unary::affine, type_, shape_.elements, c.grad_out[0], grad[i], -1.0, 0.0);
      } else {
        c.backend.copy(grad[i], c.grad_out[0], static_cast<std::size_t>(bytes(type_, shape_.elements)));
      }
      grad[i] = nullptr;
    }
    if (grad[0] || grad[1]) c.backend.binary_adjoint(op_, type_, shape_, c.in[0], c.in[1], c.grad_out[0], grad[0], grad[1]);
  }
  void tangent(const TangentCall& c) override {
    Backend& b = c.backend;
    const std::int64_t n = shape_.elements;
    const void *dx = c.tangent_in[0], *dy = c.tangent_in[1];
    void* dz = c.tangent_out[0];
    switch (op_) {
      case Binary::add:
      case Binary::subtract:
        if (dx && dy) return b.binary(op_, type_, shape_, dx, dy, dz);
        repeat(b, dx ? dx : dy, !dx, dz);
        if (!dx && op_ == Binary::subtract) b.unary(Unary::affine, type_, n, dz, dz, -1.0, 0.0);
        return;
      case Binary::multiply:
        if (dx) b.binary(op_, type_, shape_, dx, c.in[1], dz);
        if (dy) {
          void* other = dx ? c.temporary(0, type_, n) : dz;
          b.binary(op_, type_, shape_, c.in[0], dy, other);
          if (dx) b.add_scaled(type_, n, 0, other, dz, true);
        }
        return;
      case Binary::divide:  // dx / y - z dy / y
        if (dx) b.binary(op_, type_, shape_, dx, c.in[1], dz);
        if (dy) {
          void *product = c.temporary(0, type_, n), *quotient = c.temporary(1, type_, n);
          const Broadcast with_result = result_in_place_of_x();
          b.binary(Binary::multiply, type_, with_result, c.out[0], dy, product);
          b.binary(op_, type_, with_result, product, c.in[1], quotient);
          b.unary(Unary::affine, type_, n, quotient, dx ? product : dz, -1.0, 0.0);
          if (dx) b.add_scaled(type_, n, 0, product, dz, true);
        }
        return;
      case Binary::maximum: {  // by its slopes, which the adjoint knows, of operands that are repeated in full
        Broadcast flat;
        flat.rank = 1;
        flat.size[0] = flat.elements = n;
        flat.stride_x[0] = flat.stride_y[0] = 1;
        void *x = c.temporary(0, type_, n), *y = c.temporary(1, type_, n), *moved = c.temporary(2, type_, n);
        repeat(b, c.in[0], false, x);
        repeat(b, c.in[1], true, y);
        b.zero(dz, bytes(type_, n));
        for (const bool of_y : {false, true}) {
          if (!(of_y ? dy : dx)) continue;
          repeat(b, of_y ? dy : dx, of_y, moved);
          b.binary_adjoint(op_, type_, flat, x, y, moved, of_y ? nullptr : dz, of_y ? dz : nullptr);
        }
        return;
      }
    }
  }
  bool is_pure() const override { return true; }
  bool reads_input(std::size_t) const override { return op_ != Binary::add && op_ != Binary::subtract; }
  bool reads_output(std::size_t) const override { return false; }
  Cost cost() const override {
    const double n = static_cast<double>(shape_.elements);
    return {is_complex(type_) ? 4.0 * n : n, 3.0 * n * real_bytes(type_)};
  }

 private:
  Binary op_;
  DType type_;
  Broadcast shape_;

  /// An operand at every place of the result.
  void repeat(Backend& backend, const void* operand, bool y, void* to) const {
    Strided box;
    box.rank = shape_.rank;
    box.elements = shape_.elements;
    for (int d = 0; d < shape_.rank; ++d) {
      box.size[d] = shape_.size[d];
      box.stride[d] = y ? shape_.stride_y[d] : shape_.stride_x[d];
    }
    backend.gather(type_, box, operand, to, false);
  }
  Broadcast result_in_place_of_x() const {
    Broadcast shape = shape_;
    std::int64_t run = 1;
    for (int d = shape.rank - 1; d >= 0; run *= shape.size[d--]) shape.stride_x[d] = run;
    return shape;
  }
};

class JoinOperation final : public Operation {
 public:
  JoinOperation(DType type, std::int64_t n) : type_(type), n_(n) {}
  void forward(const ForwardCall& c) override { c.backend.join(type_, n_, c.in[0], c.in[1], c.out[0]); }
  void backward(const BackwardCall& c) override { c.backend.join_adjoint(type_, n_, c.grad_out[0], c.grad_in[0], c.grad_in[1]); }
  void tangent(const TangentCall& c) override {
    const void* parts[] = {c.tangent_in[0], c.tangent_in[1]};
    for (const void*& part : parts)
      if (!part) {
        void* still = c.temporary(0, real_of(type_), n_);
        c.backend.zero(still, bytes(real_of(type_), n_));
        part = still;
      }
    c.backend.join(type_, n_, parts[0], parts[1], c.tangent_out[0]);
  }
  bool is_pure() const override { return true; }
  bool reads_input(std::size_t) const override { return false; }
  bool reads_output(std::size_t) const override { return false; }
  Cost cost() const override { return {0.0, 2.0 * static_cast<double>(n_) * real_bytes(type_)}; }

 private:
  DType type_;
  std::int64_t n_;
};

class PartOperation final : public Operation {
 public:
  PartOperation(DType type, int which, std::int64_t n) : type_(type), which_(which), n_(n) {}
  void forward(const ForwardCall& c) override { c.backend.part(type_, which_, n_, c.in[0], c.out[0]); }
  void backward(const BackwardCall& c) override {
    if (c.grad_in[0]) c.backend.part_adjoint(type_, which_, n_, c.grad_out[0], c.grad_in[0]);
  }
  void tangent(const TangentCall& c) override { c.backend.part(type_, which_, n_, c.tangent_in[0], c.tangent_out[0]); }
  bool is_pure() const override { return true; }
  bool reads_input(std::size_t) const override { return false; }
  bool reads_output(std::size_t) const override { return false; }
  Cost cost() const override { return {0.0, 1.5 * static_cast<double>(n_) * real_bytes(type_)}; }

 private:
  DType type_;
  int which_;
  std::int64_t n_;
};

Var part(Var z, int which) {
  RECLAB_DEMAND(is_complex(z.dtype()));
  return z.graph->apply(std::make_unique<PartOperation>(z.dtype(), which, count(z.shape())), {z}, {{z.shape(), real_of(z.dtype())}})[0];
}

Var promoted(Var x, DType type) {
  if (x.dtype() == type) return x;
  RECLAB_DEMAND(is_complex(type) && !is_complex(x.dtype()));
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

/// Passes its values on, and no derivative: no gradient back, no tangent forward.
class Detach final : public Operation {
 public:
  Detach(DType type, std::int64_t n) : type_(type), n_(n) {}
  void forward(const ForwardCall& c) override { c.backend.copy(c.out[0], c.in[0], bytes(type_, n_)); }
  void backward(const BackwardCall&) override {}
  void tangent(const TangentCall& c) override { c.backend.zero(c.tangent_out[0], bytes(type_, n_)); }
  bool passes_gradient() const override { return false; }
  bool is_pure() const override { return true; }
  bool reads_input(std::size_t) const override { return false; }
  bool reads_output(std::size_t) const override { return false; }
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
Var normal_cdf(Var x) { return unary(Unary::normal_cdf, x); }
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
  RECLAB_DEMAND(!is_complex(x.dtype()) && !is_complex(y.dtype()));
  return binary(Binary::maximum, x, y);
}
Var minimum(Var x, double c) { return -maximum(-x, affine(x, 0.0, -c)); }
Var detach(Var x) { return x.graph->apply(std::make_unique<Detach>(x.dtype(), count(x.shape())), {x}, {{x.shape(), x.dtype()}})[0]; }

Var complex(Var re, Var im) {
  Graph& graph = innermost(re, im);
  RECLAB_DEMAND(re.shape() == im.shape() && !is_complex(re.dtype()) && !is_complex(im.dtype()));
  const Shape shape = re.shape();
  return graph.apply(std::make_unique<JoinOperation>(graph.complex(), count(shape)), {re, im}, {{shape, graph.complex()}})[0];
}
Var real(Var z) { return part(z, 0); }
Var imag(Var z) { return part(z, 1); }

}  // namespace reclab
