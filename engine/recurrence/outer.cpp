// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <cassert>

#include "autodiff/ops.h"
#include "recurrence/memory.h"

namespace reclab {
namespace {

class Outer final : public Memory {
 public:
  Outer(DType type, bool attention, bool record, const OuterDims& dims, std::int64_t batch)
      : type_(type), attention_(attention), record_(record), d_(dims), batch_(batch) {}
  ~Outer() override {
    if (scratch_) backend_->release(scratch_);
  }

  std::int64_t width() const override { return d_.heads / batch_ * d_.key * d_.value; }
  bool time_invariant() const override { return true; }
  bool diagonal() const override { return true; }
  void transition(std::int64_t, std::span<std::complex<double>> factors) const override { std::fill(factors.begin(), factors.end(), 1.0); }
  void jacobian(std::int64_t, std::span<double> matrix) override {
    const std::int64_t n = width();
    std::fill(matrix.begin(), matrix.end(), 0.0);
    for (std::int64_t i = 0; i < n; ++i) matrix[static_cast<std::size_t>(i * n + i)] = 1.0;
  }

  void forward(const ForwardCall& c) override {
    backend_ = &c.backend;
    c.backend.outer(type_, d_, attention_, c.in[0], c.in[1], c.in[2], c.in[3], c.out[0], record_ ? c.out[2] : nullptr, c.out[1], c.stop);
  }
  void backward(const BackwardCall& c) override {
    const std::int64_t n = d_.heads * d_.key * d_.value;
    const void* carried = carried_.empty() ? nullptr : carried_[0];
    if (carried && exponent_) {  // the memory keeps everything, so its adjoint never leaves the range: back to plain units
      if (!scratch_) scratch_ = c.backend.allocate(static_cast<std::size_t>(n) * bytes_of(type_));
      c.backend.add_scaled(type_, n, exponent_, carried, scratch_, false);
      carried = scratch_;
    }
    exponent_ = 0;
    log2_norms_.clear();
    if (!attention_) log2_norms_.assign(1, std::vector<double>(static_cast<std::size_t>(d_.steps)));
    assert(c.grad_in[0] && c.grad_in[1] && c.grad_in[2]);
    c.backend.outer_adjoint(type_, d_, attention_, c.in[0], c.in[1], c.in[2], c.in[3], c.grad_out[0], carried, c.grad_in[0], c.grad_in[1],
                            c.grad_in[2], c.grad_in[3], attention_ ? nullptr : log2_norms_[0].data(), c.stop);
  }
  Cost cost() const override {
    const double t = static_cast<double>(d_.steps), h = static_cast<double>(d_.heads), k = static_cast<double>(d_.key), v = static_cast<double>(d_.value);
    const double size = static_cast<double>(bytes_of(type_));
    return {attention_ ? h * t * (t + 1.0) * (k + v) : 4.0 * t * h * k * v, (2.0 * k + 2.0 * v) * t * h * size};
  }

 private:
  DType type_;
  bool attention_, record_;
  OuterDims d_;
  std::int64_t batch_;
  Backend* backend_ = nullptr;
  void* scratch_ = nullptr;
};

}  // namespace

OuterVars outer(Graph& graph, Form form, Var q, Var k, Var v, bool record) {
  const std::int64_t steps = q.dim(0), batch = q.dim(1), heads = q.dim(2), key = q.dim(3), value = v.dim(3);
  assert(k.shape() == q.shape() && v.dim(2) == heads);
  const bool attention = form == Form::attention;
  record = record && !attention;
  OuterVars vars;
  vars.initial = {graph.leaf(LeafKind::variable, {batch, heads, key, value}, v.dtype())};
  auto operation = std::make_unique<Outer>(v.dtype(), attention, record, OuterDims{steps, batch * heads, key, value}, batch);
  vars.memory = operation.get();
  std::vector<std::pair<Shape, DType>> outputs{{v.shape(), v.dtype()}, {Shape{batch, heads, key, value}, v.dtype()}};
  if (record) outputs.emplace_back(Shape{steps, batch, heads, key, value}, v.dtype());
  const auto made = graph.apply(std::move(operation), {q, k, v, vars.initial[0]}, std::move(outputs));
  vars.output = made[0];
  vars.finals = {made[1]};
  vars.trajectories = {record ? made[2] : Var{}};
  return vars;
}

}  // namespace reclab
