// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <vector>

#include "array/demand.h"
#include "array/device_array.h"
#include "autodiff/fresh.h"
#include "autodiff/operands.h"
#include "autodiff/ops.h"
#include "autodiff/units.h"

namespace reclab {
namespace {

/// The gradient of a matrix that is still to be accumulated: inputs and output adjoints of several steps of a recurrence, so that one
/// product serves many steps.
class DeferredWeightGradient {
 public:
  DeferredWeightGradient(DType type, std::int64_t rows, std::int64_t in, std::int64_t out)
      : type_(type), rows_(rows), in_(in), out_(out), most_(std::max<std::int64_t>(1, 128 / rows)) {}
  void forget() { count_ = 0; }
  void add(Backend& backend, const void* x, const void* g, void* gradient) {
    came_in_.resize(backend, type_, most_ * rows_ * in_);
    came_back_.resize(backend, type_, most_ * rows_ * out_);
    backend_ = &backend;
    backend.copy(came_in_.at(count_ * rows_ * in_), x, bytes(type_, rows_ * in_));
    backend.copy(came_back_.at(count_ * rows_ * out_), g, bytes(type_, rows_ * out_));
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
  Pack(DType type, std::int64_t out, std::int64_t in, std::shared_ptr<DeferredWeightGradient> outstanding)
      : type_(type), out_(out), in_(in), outstanding_(std::move(outstanding)) {}
  void forward(const ForwardCall& c) override {
    outstanding_->forget();
    c.backend.pack(type_, in_, out_, true, c.in[0], c.out[0]);
    c.backend.pack(type_, out_, in_, false, c.in[0], c.out[1]);
  }
  void backward(const BackwardCall& c) override {
    if (c.grad_in[0]) outstanding_->settle(c.grad_in[0]);
  }
  void tangent(const TangentCall& c) override {
    c.backend.pack(type_, in_, out_, true, c.tangent_in[0], c.tangent_out[0]);
    c.backend.pack(type_, out_, in_, false, c.tangent_in[0], c.tangent_out[1]);
  }
  Cost cost() const override { return {0.0, 4.0 * static_cast<double>(out_ * in_) * real_bytes(type_)}; }

 private:
  DType type_;
  std::int64_t out_, in_;
  std::shared_ptr<DeferredWeightGradient> outstanding_;
};

/// The bias in the direction of a tangent: added to the product's tangent, or alone where that is zero.
void bias_tangent(const TangentCall& c, DType type, std::int64_t rows, std::int64_t n, bool by_rows, const void* moved, bool onto) {
  if (!moved) return;
  if (!onto) c.backend.zero(c.tangent_out[0], bytes(type, rows * n));
  c.backend.add_to_rows(type, rows, n, moved, by_rows, c.tangent_out[0]);
}

/// x W^T + b with a packed W. Inputs x, W, W packed for each way, and b, if there is one, of one row or (by_rows) of as many as x; all of
/// W's gradient goes to W.
class PackedLinear final : public Operation, public OverwritesGradient, public RunsByUnits {
 public:
  PackedLinear(DType type, std::int64_t rows, std::int64_t out, std::int64_t in, std::shared_ptr<DeferredWeightGradient> outstanding,
               bool by_rows)
      : type_(type), rows_(rows), out_(out), in_(in), outstanding_(std::move(outstanding)), by_rows_(by_rows) {}
  void forward(const ForwardCall& c) override {
    c.backend.matmul_packed(type_, rows_, out_, in_, true, c.in[0], c.in[1], c.in[2], c.in.size() > 4 ? c.in[4] : nullptr, by_rows_,
                            c.out[0], false);
  }
  Entries entries() const override { return rows_ == 1 ? Entries::product : Entries::none; }
  void forward(const ForwardCall& c, const EntryRanges& entries) override {
    c.backend.row_times_packed(type_, out_, in_, c.in[0], c.in[1], c.in[2], c.in.size() > 4 ? c.in[4] : nullptr, c.out[0], entries);
  }
  void backward(const BackwardCall& c) override { backward(c, std::vector<char>(c.in.size())); }
  bool writes(std::size_t input) const override { return input == 0 || (input == 4 && by_rows_); }
  void backward(const BackwardCall& c, std::span<const char> fresh) override {
    if (c.in.size() > 4 && c.grad_in[4]) {
      if (by_rows_)
        c.backend.add_scaled(type_, rows_ * out_, 0, c.grad_out[0], c.grad_in[4], !fresh[4]);
      else
        c.backend.binary_adjoint(Binary::add, type_, broadcast_row(rows_, out_), c.out[0], c.in[4], c.grad_out[0], nullptr, c.grad_in[4]);
    }
    if (c.grad_in[0])
      c.backend.matmul_packed(type_, rows_, in_, out_, false, c.grad_out[0], c.in[1], c.in[3], nullptr, false, c.grad_in[0], !fresh[0]);
    if (c.grad_in[1]) outstanding_->add(c.backend, c.in[0], c.grad_out[0], c.grad_in[1]);
  }
  void tangent(const TangentCall& c) override {
    const void *dx = c.tangent_in[0], *dw = c.tangent_in[1];
    if (dx) c.backend.matmul_packed(type_, rows_, out_, in_, true, dx, c.in[1], c.in[2], nullptr, false, c.tangent_out[0], false);
    if (dw)
      c.backend.matmul_packed(type_, rows_, out_, in_, true, c.in[0], dw, c.tangent_in[2], nullptr, false, c.tangent_out[0], dx != nullptr);
    if (c.in.size() > 4) bias_tangent(c, type_, rows_, out_, by_rows_, c.tangent_in[4], dx || dw);
  }
  bool is_pure() const override { return true; }
  bool reads_output(std::size_t) const override { return false; }
  Cost cost() const override {
    const double m = static_cast<double>(rows_), n = static_cast<double>(out_), k = static_cast<double>(in_);
    return {2.0 * m * n * k, (m * k + m * n + k * n) * real_bytes(type_)};
  }

 private:
  DType type_;
  std::int64_t rows_, out_, in_;
  std::shared_ptr<DeferredWeightGradient> outstanding_;
  bool by_rows_;
};

/// A product, of two matrices or of many; with a third input, of one, a bias that is added to each row.
class ProductOperation final : public Operation, public OverwritesGradient {
 public:
  ProductOperation(DType type, const MatMul& dims) : type_(type), d_(dims) {}
  void forward(const ForwardCall& c) override {
    if (c.in.size() > 2)
      c.backend.matmul_biased(type_, d_, c.in[0], c.in[1], c.in[2], c.out[0]);
    else
      c.backend.matmul(type_, d_, c.in[0], c.in[1], c.out[0], false);
  }
  void backward(const BackwardCall& c) override { backward(c, std::vector<char>(c.in.size())); }
  bool writes(std::size_t input) const override { return input < 2 && (d_.batch == 1 || (input ? d_.stride_b : d_.stride_a) != 0); }
  void backward(const BackwardCall& c, std::span<const char> fresh) override {
    const void* g = c.grad_out[0];
    if (c.in.size() > 2 && c.grad_in[2])
      c.backend.binary_adjoint(Binary::add, type_, broadcast_row(d_.m, d_.n), c.out[0], c.in[2], g, nullptr, c.grad_in[2]);
    if (c.grad_in[0]) {  // gA = gC op(B)^T, transposed where A was
      MatMul d;
      d.batch = d_.batch;
      if (!d_.transpose_a) {
        d = {d_.batch, d_.m, d_.k, d_.n, false, !d_.transpose_b, d_.stride_c, d_.stride_b, d_.stride_a};
        c.backend.matmul(type_, d, g, c.in[1], c.grad_in[0], !fresh[0]);
      } else {
        d = {d_.batch, d_.k, d_.m, d_.n, d_.transpose_b, true, d_.stride_b, d_.stride_c, d_.stride_a};
        c.backend.matmul(type_, d, c.in[1], g, c.grad_in[0], !fresh[0]);
      }
    }
    if (c.grad_in[1]) {
      MatMul d;
      if (!d_.transpose_b) {
        d = {d_.batch, d_.k, d_.n, d_.m, !d_.transpose_a, false, d_.stride_a, d_.stride_c, d_.stride_b};
        c.backend.matmul(type_, d, c.in[0], g, c.grad_in[1], !fresh[1]);
      } else {
        d = {d_.batch, d_.n, d_.k, d_.m, true, d_.transpose_a, d_.stride_c, d_.stride_a, d_.stride_b};
        c.backend.matmul(type_, d, g, c.in[0], c.grad_in[1], !fresh[1]);
      }
    }
  }
  void tangent(const TangentCall& c) override {
    const void *da = c.tangent_in[0], *db = c.tangent_in[1];
    if (da) c.backend.matmul(type_, d_, da, c.in[1], c.tangent_out[0], false);
    if (db) c.backend.matmul(type_, d_, c.in[0], db, c.tangent_out[0], da != nullptr);
    if (c.in.size() > 2) bias_tangent(c, type_, d_.m, d_.n, false, c.tangent_in[2], da || db);
  }
  bool is_pure() const override { return true; }
  bool reads_output(std::size_t) const override { return false; }
  Cost cost() const override {
    const double b = static_cast<double>(d_.batch), m = static_cast<double>(d_.m), n = static_cast<double>(d_.n),
                 k = static_cast<double>(d_.k);
    return {2.0 * b * m * n * k, (b * (m * k + m * n) + (d_.stride_b ? b : 1.0) * k * n) * real_bytes(type_)};
  }

 private:
  DType type_;
  MatMul d_;
};

class DepthwiseOperation final : public Operation {
 public:
  DepthwiseOperation(DType type, const DepthwiseDims& dims) : type_(type), d_(dims) {}
  void forward(const ForwardCall& c) override { c.backend.depthwise(type_, d_, c.in[0], c.in[1], c.out[0]); }
  void backward(const BackwardCall& c) override {
    c.backend.depthwise_adjoint(type_, d_, c.in[0], c.in[1], c.grad_out[0], c.grad_in[0], c.grad_in[1]);
  }
  void tangent(const TangentCall& c) override {
    const void *dx = c.tangent_in[0], *dw = c.tangent_in[1];
    if (dx) c.backend.depthwise(type_, d_, dx, c.in[1], c.tangent_out[0]);
    if (!dw) return;
    const std::int64_t n = d_.steps * d_.batch * d_.channels;
    void* other = dx ? c.temporary(0, type_, n) : c.tangent_out[0];
    c.backend.depthwise(type_, d_, c.in[0], dw, other);
    if (dx) c.backend.add_scaled(type_, n, 0, other, c.tangent_out[0], true);
  }
  bool is_pure() const override { return true; }
  bool reads_output(std::size_t) const override { return false; }
  Cost cost() const override {
    const double n = static_cast<double>(d_.steps * d_.batch * d_.channels);
    return {2.0 * n * static_cast<double>(d_.taps), 2.0 * n * real_bytes(type_)};
  }

 private:
  DType type_;
  DepthwiseDims d_;
};

}  // namespace

Var matmul(Var a, Var b) {
  Graph& graph = innermost(a, b);
  a = graph.adopt(a);
  b = graph.adopt(b);
  Shape shape = a.shape();
  MatMul d;
  d.k = a.dim(-1);
  d.n = b.dim(-1);
  RECLAB_DEMAND(b.dim(-2) == d.k);
  if (b.shape().size() == 2) {  // shared: all rows of A at once
    d.m = count(shape) / d.k;
  } else {
    RECLAB_DEMAND(b.shape().size() == shape.size());
    d.m = a.dim(-2);
    d.batch = count(shape) / (d.m * d.k);
    d.stride_a = d.m * d.k;
    d.stride_b = d.k * d.n;
    d.stride_c = d.m * d.n;
  }
  shape.back() = d.n;
  return graph.apply(std::make_unique<ProductOperation>(a.dtype(), d), {a, b}, {{shape, a.dtype()}})[0];
}

Var matmul_transposed(Var a, Var b) {
  Graph& graph = innermost(a, b);
  a = graph.adopt(a);
  b = graph.adopt(b);
  Shape shape = a.shape();
  RECLAB_DEMAND(b.shape().size() == shape.size() && a.dim(-1) == b.dim(-1));
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
  return graph.apply(std::make_unique<ProductOperation>(a.dtype(), d), {a, b}, {{shape, a.dtype()}})[0];
}

Var linear(Var x, Var weight, Var bias) {
  // A bias that is one number a column, or inside a cell one an entry, is added by the product itself.
  bool own_bias = bias && bias.dtype() == x.dtype() && bias.shape() == Shape{weight.dim(0)};
  Var y;
  if (weight.graph != x.graph && weight.graph->encloses(*x.graph)) {
    // Inside a cell the weight is the same at every step: it is put in order once.
    Graph& graph = *x.graph;
    const Var own = graph.adopt(weight);
    Shape shape = x.shape();
    const std::int64_t in = shape.back(), out = own.dim(0), rows = count(shape) / in;
    const auto padded = [](std::int64_t n) { return (n + 31) / 32 * 32; };
    RECLAB_DEMAND(own.dim(1) == in);
    shape.back() = out;
    auto outstanding = std::make_shared<DeferredWeightGradient>(x.dtype(), rows, in, out);
    const auto packed = graph.apply(std::make_unique<Pack>(x.dtype(), out, in, outstanding), {own},
                                    {{Shape{in * padded(out)}, x.dtype()}, {Shape{out * padded(in)}, x.dtype()}});
    std::vector<Var> inputs{x, own, packed[0], packed[1]};
    const bool by_rows = !own_bias && bias && bias.dtype() == x.dtype() && bias.shape() == shape;
    own_bias = own_bias || by_rows;
    if (own_bias) inputs.push_back(bias);
    y = graph.apply(std::make_unique<PackedLinear>(x.dtype(), rows, out, in, outstanding, by_rows), inputs, {{shape, x.dtype()}})[0];
  } else {
    Graph& graph = innermost(x, weight);
    Shape shape = x.shape();
    MatMul d;
    d.k = shape.back();
    d.n = weight.dim(0);
    d.m = count(shape) / d.k;
    d.transpose_b = true;
    RECLAB_DEMAND(weight.dim(1) == d.k);
    shape.back() = d.n;
    std::vector<Var> inputs{x, weight};
    if (own_bias) inputs.push_back(bias);
    y = graph.apply(std::make_unique<ProductOperation>(x.dtype(), d), inputs, {{shape, x.dtype()}})[0];
  }
  return bias && !own_bias ? y + bias : y;
}

Var depthwise(Var x, Var weight) {
  Shape shape = x.shape();
  RECLAB_DEMAND(shape.size() == 3);
  DepthwiseDims d;
  d.taps = weight.dim(-1);
  d.steps = shape[0] - d.taps + 1;
  d.batch = shape[1];
  d.channels = shape[2];
  RECLAB_DEMAND(count(weight.shape()) == d.channels * d.taps);
  shape[0] = d.steps;
  return x.graph->apply(std::make_unique<DepthwiseOperation>(x.dtype(), d), {x, weight}, {{shape, x.dtype()}})[0];
}

}  // namespace reclab
