// SPDX-License-Identifier: GPL-3.0-or-later
#include "autodiff/ops.h"

#include <cassert>
#include <cmath>
#include <numeric>

#include "array/device_array.h"

namespace reclab {
namespace {

/// The graph an operation belongs to: the innermost of its operands'. A cell's graph knows its enclosing one, so whichever can adopt
/// the other's array is the inner.
Graph& innermost(Var x, Var y) {
  if (x.graph == y.graph) return *x.graph;
  return x.graph->encloses(*y.graph) ? *y.graph : *x.graph;
}

int axis_of(Var x, int axis) { return axis < 0 ? axis + static_cast<int>(x.shape().size()) : axis; }

std::int64_t product(const Shape& shape, int from, int to) {
  return std::accumulate(shape.begin() + from, shape.begin() + to, std::int64_t{1}, std::multiplies<>());
}

double real_bytes(DType type) { return static_cast<double>(bytes_of(type)); }

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

/// Copies a box out of its input.
class Gather final : public Operation {
 public:
  Gather(DType type, const Strided& box) : type_(type), box_(box) {}
  void forward(const ForwardCall& c) override { c.backend.gather(type_, box_, c.in[0], c.out[0], false); }
  void backward(const BackwardCall& c) override {
    if (c.grad_in[0]) c.backend.scatter(type_, box_, c.grad_out[0], c.grad_in[0], true);
  }
  Cost cost() const override { return {0.0, 2.0 * static_cast<double>(box_.elements) * real_bytes(type_)}; }

 private:
  DType type_;
  Strided box_;
};

/// Copies each input into a box of the output.
class Concat final : public Operation {
 public:
  Concat(DType type, std::vector<Strided> boxes) : type_(type), boxes_(std::move(boxes)) {}
  void forward(const ForwardCall& c) override {
    for (std::size_t i = 0; i < boxes_.size(); ++i) c.backend.scatter(type_, boxes_[i], c.in[i], c.out[0], false);
  }
  void backward(const BackwardCall& c) override {
    for (std::size_t i = 0; i < boxes_.size(); ++i)
      if (c.grad_in[i]) c.backend.gather(type_, boxes_[i], c.grad_out[0], c.grad_in[i], true);
  }
  Cost cost() const override {
    double n = 0.0;
    for (const auto& box : boxes_) n += static_cast<double>(box.elements);
    return {0.0, 2.0 * n * real_bytes(type_)};
  }

 private:
  DType type_;
  std::vector<Strided> boxes_;
};

/// The box of `length` positions from `from` on along an axis of an array: three dimensions are enough.
Strided box_along(const Shape& shape, int axis, std::int64_t from, std::int64_t length) {
  const std::int64_t outer = product(shape, 0, axis), inner = product(shape, axis + 1, static_cast<int>(shape.size()));
  Strided box;
  box.rank = 2;
  box.size[0] = outer;
  box.stride[0] = shape[static_cast<std::size_t>(axis)] * inner;
  box.size[1] = length * inner;
  box.stride[1] = 1;
  box.offset = from * inner;
  box.elements = outer * length * inner;
  return box;
}

class Sum final : public Operation {
 public:
  Sum(DType type, std::int64_t outer, std::int64_t n, std::int64_t inner, double scale)
      : type_(type), outer_(outer), n_(n), inner_(inner), scale_(scale) {}
  void forward(const ForwardCall& c) override { c.backend.sum(type_, outer_, n_, inner_, scale_, c.in[0], c.out[0]); }
  void backward(const BackwardCall& c) override {
    if (c.grad_in[0]) c.backend.sum_adjoint(type_, outer_, n_, inner_, scale_, c.grad_out[0], c.grad_in[0]);
  }
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

class CumulativeSum final : public Operation {
 public:
  CumulativeSum(DType type, std::int64_t outer, std::int64_t n, std::int64_t inner) : type_(type), outer_(outer), n_(n), inner_(inner) {}
  void forward(const ForwardCall& c) override { c.backend.cumulative_sum(type_, outer_, n_, inner_, false, c.in[0], c.out[0], false); }
  void backward(const BackwardCall& c) override {
    if (c.grad_in[0]) c.backend.cumulative_sum(type_, outer_, n_, inner_, true, c.grad_out[0], c.grad_in[0], true);
  }
  Cost cost() const override {
    const double all = static_cast<double>(outer_ * n_ * inner_);
    return {all, 2.0 * all * real_bytes(type_)};
  }

 private:
  DType type_;
  std::int64_t outer_, n_, inner_;
};

/// What the adjoint of a matrix is still to be given: rows of what came in and of what came back, of several steps of a recurrence, so
/// that it is gone through once for many of them.
class Outstanding {
 public:
  Outstanding(DType type, std::int64_t rows, std::int64_t in, std::int64_t out) : type_(type), rows_(rows), in_(in), out_(out), most_(std::max<std::int64_t>(1, 128 / rows)) {}
  void forget() { count_ = 0; }
  void add(Backend& backend, const void* x, const void* g, void* gradient) {
    came_in_.resize(backend, type_, most_ * rows_ * in_);
    came_back_.resize(backend, type_, most_ * rows_ * out_);
    backend_ = &backend;
    backend.copy(came_in_.at(count_ * rows_ * in_), x, static_cast<std::size_t>(rows_ * in_) * bytes_of(type_));
    backend.copy(came_back_.at(count_ * rows_ * out_), g, static_cast<std::size_t>(rows_ * out_) * bytes_of(type_));
    if (++count_ == most_) settle(gradient);
  }
  /// gradient [out, in] += the sum over all rows.
  void settle(void* gradient) {
    if (count_) backend_->matmul(type_, {1, out_, in_, count_ * rows_, true, false}, came_back_.data(), came_in_.data(), gradient, true);
    count_ = 0;
  }

 private:
  DType type_;
  std::int64_t rows_, in_, out_, most_, count_ = 0;
  Backend* backend_ = nullptr;
  DeviceArray came_in_, came_back_;
};

/// A matrix [out, in] that products are made with at every step, in the backend's own order: for x W^T and for g W.
class Pack final : public Operation {
 public:
  Pack(DType type, std::int64_t out, std::int64_t in, std::shared_ptr<Outstanding> outstanding) : type_(type), out_(out), in_(in), outstanding_(std::move(outstanding)) {}
  void forward(const ForwardCall& c) override {
    outstanding_->forget();
    c.backend.pack(type_, in_, out_, true, c.in[0], c.out[0]);
    c.backend.pack(type_, out_, in_, false, c.in[0], c.out[1]);
  }
  void backward(const BackwardCall& c) override {
    if (c.grad_in[0]) outstanding_->settle(c.grad_in[0]);
  }
  Cost cost() const override { return {0.0, 4.0 * static_cast<double>(out_ * in_) * real_bytes(type_)}; }

 private:
  DType type_;
  std::int64_t out_, in_;
  std::shared_ptr<Outstanding> outstanding_;
};

/// x W^T with a packed W. Inputs x, W, and W packed for each way; all of W's gradient goes to W.
class PackedLinear final : public Operation {
 public:
  PackedLinear(DType type, std::int64_t rows, std::int64_t out, std::int64_t in, std::shared_ptr<Outstanding> outstanding)
      : type_(type), rows_(rows), out_(out), in_(in), outstanding_(std::move(outstanding)) {}
  void forward(const ForwardCall& c) override { c.backend.matmul_packed(type_, rows_, out_, in_, true, c.in[0], c.in[1], c.in[2], c.out[0], false); }
  void backward(const BackwardCall& c) override {
    if (c.grad_in[0]) c.backend.matmul_packed(type_, rows_, in_, out_, false, c.grad_out[0], c.in[1], c.in[3], c.grad_in[0], true);
    if (c.grad_in[1]) outstanding_->add(c.backend, c.in[0], c.grad_out[0], c.grad_in[1]);
  }
  Cost cost() const override {
    const double m = static_cast<double>(rows_), n = static_cast<double>(out_), k = static_cast<double>(in_);
    return {2.0 * m * n * k, (m * k + m * n + k * n) * real_bytes(type_)};
  }

 private:
  DType type_;
  std::int64_t rows_, out_, in_;
  std::shared_ptr<Outstanding> outstanding_;
};

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

class Product final : public Operation {
 public:
  Product(DType type, const MatMul& dims) : type_(type), d_(dims) {}
  void forward(const ForwardCall& c) override { c.backend.matmul(type_, d_, c.in[0], c.in[1], c.out[0], false); }
  void backward(const BackwardCall& c) override {
    const void* g = c.grad_out[0];
    if (c.grad_in[0]) {  // gA = gC op(B)^T, transposed where A was
      MatMul d;
      d.batch = d_.batch;
      if (!d_.transpose_a) {
        d = {d_.batch, d_.m, d_.k, d_.n, false, !d_.transpose_b, d_.stride_c, d_.stride_b, d_.stride_a};
        c.backend.matmul(type_, d, g, c.in[1], c.grad_in[0], true);
      } else {
        d = {d_.batch, d_.k, d_.m, d_.n, d_.transpose_b, true, d_.stride_b, d_.stride_c, d_.stride_a};
        c.backend.matmul(type_, d, c.in[1], g, c.grad_in[0], true);
      }
    }
    if (c.grad_in[1]) {
      MatMul d;
      if (!d_.transpose_b) {
        d = {d_.batch, d_.k, d_.n, d_.m, !d_.transpose_a, false, d_.stride_a, d_.stride_c, d_.stride_b};
        c.backend.matmul(type_, d, c.in[0], g, c.grad_in[1], true);
      } else {
        d = {d_.batch, d_.n, d_.k, d_.m, true, d_.transpose_a, d_.stride_c, d_.stride_a, d_.stride_b};
        c.backend.matmul(type_, d, g, c.in[0], c.grad_in[1], true);
      }
    }
  }
  Cost cost() const override {
    const double b = static_cast<double>(d_.batch), m = static_cast<double>(d_.m), n = static_cast<double>(d_.n), k = static_cast<double>(d_.k);
    return {2.0 * b * m * n * k, (b * (m * k + m * n) + (d_.stride_b ? b : 1.0) * k * n) * real_bytes(type_)};
  }

 private:
  DType type_;
  MatMul d_;
};

class Depthwise final : public Operation {
 public:
  Depthwise(DType type, const DepthwiseDims& dims) : type_(type), d_(dims) {}
  void forward(const ForwardCall& c) override { c.backend.depthwise(type_, d_, c.in[0], c.in[1], c.out[0]); }
  void backward(const BackwardCall& c) override {
    c.backend.depthwise_adjoint(type_, d_, c.in[0], c.in[1], c.grad_out[0], c.grad_in[0], c.grad_in[1]);
  }
  Cost cost() const override {
    const double n = static_cast<double>(d_.steps * d_.batch * d_.channels);
    return {2.0 * n * static_cast<double>(d_.taps), 2.0 * n * real_bytes(type_)};
  }

 private:
  DType type_;
  DepthwiseDims d_;
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
Var cumulative_sum(Var x, int axis) {
  axis = axis_of(x, axis);
  const Shape& shape = x.shape();
  auto operation = std::make_unique<CumulativeSum>(x.dtype(), product(shape, 0, axis), shape[static_cast<std::size_t>(axis)],
                                                   product(shape, axis + 1, static_cast<int>(shape.size())));
  return x.graph->apply(std::move(operation), {x}, {{shape, x.dtype()}})[0];
}

Var complex(Var re, Var im) {
  Graph& graph = innermost(re, im);
  assert(re.shape() == im.shape() && !is_complex(re.dtype()) && !is_complex(im.dtype()));
  const Shape shape = re.shape();
  return graph.apply(std::make_unique<Join>(graph.complex(), count(shape)), {re, im}, {{shape, graph.complex()}})[0];
}
Var real(Var z) { return part(z, 0); }
Var imag(Var z) { return part(z, 1); }

Var reshape(Var x, Shape shape) {
  std::int64_t known = 1;
  std::int64_t* open = nullptr;
  for (auto& d : shape) {
    if (d < 0)
      open = &d;
    else
      known *= d;
  }
  if (open) *open = count(x.shape()) / known;
  assert(count(shape) == count(x.shape()));
  return x.graph->alias(x, std::move(shape));
}

Var slice(Var x, int axis, std::int64_t from, std::int64_t to) {
  axis = axis_of(x, axis);
  Shape shape = x.shape();
  const auto a = static_cast<std::size_t>(axis);
  assert(0 <= from && from <= to && to <= shape[a]);
  const std::int64_t outer = product(shape, 0, axis), inner = product(shape, axis + 1, static_cast<int>(shape.size()));
  const Strided box = box_along(shape, axis, from, to - from);
  shape[a] = to - from;
  if (outer == 1) return x.graph->alias(x, std::move(shape), from * inner);
  return x.graph->apply(std::make_unique<Gather>(x.dtype(), box), {x}, {{shape, x.dtype()}})[0];
}

Var reversed(Var x) {
  const std::int64_t rows = x.dim(0), row = product(x.shape(), 1, static_cast<int>(x.shape().size()));
  Strided box;
  box.rank = 2;
  box.size[0] = rows;
  box.stride[0] = -row;
  box.size[1] = row;
  box.stride[1] = 1;
  box.offset = std::max<std::int64_t>(rows - 1, 0) * row;
  box.elements = rows * row;
  return x.graph->apply(std::make_unique<Gather>(x.dtype(), box), {x}, {{x.shape(), x.dtype()}})[0];
}

Var last(Var x) {
  Shape shape(x.shape().begin() + 1, x.shape().end());
  const std::int64_t offset = count(x.shape()) - count(shape);
  return x.graph->alias(x, std::move(shape), offset);
}

std::vector<Var> split(Var x, int axis, std::int64_t parts) {
  const std::int64_t size = x.shape()[static_cast<std::size_t>(axis_of(x, axis))];
  assert(size % parts == 0);
  std::vector<Var> made;
  for (std::int64_t i = 0; i < parts; ++i) made.push_back(slice(x, axis, i * (size / parts), (i + 1) * (size / parts)));
  return made;
}

Var concat(std::span<const Var> parts, int axis) {
  assert(!parts.empty());
  Var any = parts[0];
  Graph* graph = any.graph;
  for (const Var& p : parts)
    if (p.graph != graph) graph = &innermost(any, p);
  axis = axis_of(any, axis);
  Shape shape = any.shape();
  std::int64_t total = 0;
  for (const Var& p : parts) total += p.shape()[static_cast<std::size_t>(axis)];
  shape[static_cast<std::size_t>(axis)] = total;
  std::vector<Strided> boxes;
  std::int64_t at = 0;
  for (const Var& p : parts) {
    const std::int64_t length = p.shape()[static_cast<std::size_t>(axis)];
    boxes.push_back(box_along(shape, axis, at, length));
    at += length;
  }
  return graph->apply(std::make_unique<Concat>(any.dtype(), std::move(boxes)), std::vector<Var>(parts.begin(), parts.end()), {{shape, any.dtype()}})[0];
}

Var permute(Var x, std::span<const int> axes) {
  const Shape& from = x.shape();
  const int rank = static_cast<int>(from.size());
  assert(rank <= 6 && static_cast<int>(axes.size()) == rank);
  Shape shape;
  Strided box;
  box.rank = rank;
  for (int d = 0; d < rank; ++d) {
    const int axis = axes[static_cast<std::size_t>(d)];
    shape.push_back(from[static_cast<std::size_t>(axis)]);
    box.size[d] = shape.back();
    box.stride[d] = product(from, axis + 1, rank);
  }
  box.elements = count(shape);
  return x.graph->apply(std::make_unique<Gather>(x.dtype(), box), {x}, {{shape, x.dtype()}})[0];
}

Var transpose(Var x) {
  Shape shape = x.shape();
  const int rank = static_cast<int>(shape.size());
  assert(rank >= 2);
  const std::int64_t rows = x.dim(-2), columns = x.dim(-1);
  Strided box;
  box.rank = 3;
  box.size[0] = product(shape, 0, rank - 2);
  box.stride[0] = rows * columns;
  box.size[1] = columns;
  box.stride[1] = 1;
  box.size[2] = rows;
  box.stride[2] = columns;
  box.elements = count(shape);
  std::swap(shape[static_cast<std::size_t>(rank - 1)], shape[static_cast<std::size_t>(rank - 2)]);
  return x.graph->apply(std::make_unique<Gather>(x.dtype(), box), {x}, {{shape, x.dtype()}})[0];
}

Var sum(Var x, int axis) { return reduce(x, axis, 1.0, false); }
Var mean(Var x, int axis) { return reduce(x, axis, 1.0 / static_cast<double>(x.dim(axis)), false); }
Var mean_keep(Var x, int axis) { return reduce(x, axis, 1.0 / static_cast<double>(x.dim(axis)), true); }

Var matmul(Var a, Var b) {
  Graph& graph = innermost(a, b);
  a = graph.adopt(a);
  b = graph.adopt(b);
  Shape shape = a.shape();
  MatMul d;
  d.k = a.dim(-1);
  d.n = b.dim(-1);
  assert(b.dim(-2) == d.k);
  if (b.shape().size() == 2) {  // shared: all rows of A at once
    d.m = count(shape) / d.k;
  } else {
    assert(b.shape().size() == shape.size());
    d.m = a.dim(-2);
    d.batch = count(shape) / (d.m * d.k);
    d.stride_a = d.m * d.k;
    d.stride_b = d.k * d.n;
    d.stride_c = d.m * d.n;
  }
  shape.back() = d.n;
  return graph.apply(std::make_unique<Product>(a.dtype(), d), {a, b}, {{shape, a.dtype()}})[0];
}

Var matmul_transposed(Var a, Var b) {
  Graph& graph = innermost(a, b);
  a = graph.adopt(a);
  b = graph.adopt(b);
  Shape shape = a.shape();
  assert(b.shape().size() == shape.size() && a.dim(-1) == b.dim(-1));
  MatMul d;
  d.k = a.dim(-1);
  d.m = a.dim(-2);
  d.n = b.dim(-2);
  d.transpose_b = true;
  d.batch = count(shape) / (d.m * d.k);
  d.stride_a = d.m * d.k;
  d.stride_b = d.n * d.k;
  d.stride_c = d.m * d.n;
  shape.back() = d.n;
  return graph.apply(std::make_unique<Product>(a.dtype(), d), {a, b}, {{shape, a.dtype()}})[0];
}

Var linear(Var x, Var weight, Var bias) {
  Var y;
  if (weight.graph != x.graph && weight.graph->encloses(*x.graph)) {
    // Inside a cell the weight is the same at every step: it is put in order once.
    Graph& graph = *x.graph;
    const Var own = graph.adopt(weight);
    Shape shape = x.shape();
    const std::int64_t in = shape.back(), out = own.dim(0), rows = count(shape) / in;
    const auto padded = [](std::int64_t n) { return (n + 31) / 32 * 32; };
    assert(own.dim(1) == in);
    shape.back() = out;
    auto outstanding = std::make_shared<Outstanding>(x.dtype(), rows, in, out);
    const auto packed = graph.apply(std::make_unique<Pack>(x.dtype(), out, in, outstanding), {own}, {{Shape{in * padded(out)}, x.dtype()}, {Shape{out * padded(in)}, x.dtype()}});
    y = graph.apply(std::make_unique<PackedLinear>(x.dtype(), rows, out, in, outstanding), {x, own, packed[0], packed[1]}, {{shape, x.dtype()}})[0];
  } else {
    Graph& graph = innermost(x, weight);
    Shape shape = x.shape();
    MatMul d;
    d.k = shape.back();
    d.n = weight.dim(0);
    d.m = count(shape) / d.k;
    d.transpose_b = true;
    assert(weight.dim(1) == d.k);
    shape.back() = d.n;
    y = graph.apply(std::make_unique<Product>(x.dtype(), d), {x, weight}, {{shape, x.dtype()}})[0];
  }
  return bias ? y + bias : y;
}

namespace {

/// x / sqrt(mean x^2 + eps) over the last axis. The squares of floats above 1e19 are out of range: there x is divided by its size first.
/// Below 1e9 that size is taken as 1, which changes no bit.
Var over_root_mean_square(Var x, double eps) {
  if (x.dtype() != DType::f32) return x / sqrt(mean_keep(square(x), -1) + eps);
  const Var size = detach(mean_keep(abs(x) * std::ldexp(1.0, -30), -1)), unit = maximum(size, affine(size, 0.0, 1.0)), small = x / unit;
  return small / sqrt(mean_keep(square(small), -1) + square(reciprocal(unit)) * eps);
}

}  // namespace

Var layer_norm(Var x, Var weight, Var bias, double eps) {
  Var y = over_root_mean_square(x - mean_keep(x, -1), eps);
  if (weight) y = y * weight;
  return bias ? y + bias : y;
}

Var rms_norm(Var x, Var weight, double eps) {
  const Var y = over_root_mean_square(x, eps);
  return weight ? y * weight : y;
}

Var depthwise(Var x, Var weight) {
  Shape shape = x.shape();
  assert(shape.size() == 3);
  DepthwiseDims d;
  d.taps = weight.dim(-1);
  d.steps = shape[0] - d.taps + 1;
  d.batch = shape[1];
  d.channels = shape[2];
  assert(count(weight.shape()) == d.channels * d.taps);
  shape[0] = d.steps;
  return x.graph->apply(std::make_unique<Depthwise>(x.dtype(), d), {x, weight}, {{shape, x.dtype()}})[0];
}

}  // namespace reclab
