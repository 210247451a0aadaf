// SPDX-License-Identifier: GPL-3.0-or-later
// Attention whose weights are functions of single scores: no score of a row sees another.
#include <memory>

#include "array/demand.h"
#include "autodiff/ops.h"
#include "recurrence/attention/attention.h"
#include "recurrence/attention/blocks.h"
#include "recurrence/attention/drawing.h"
#include "recurrence/evaluation_order.h"
#include "recurrence/mixing/mixing.h"

namespace reclab {
namespace {

/// A function of one entry: y = op(x), with the two constants that affine has.
struct EntryFunction {
  Unary op;
  double p = 0.0, q = 0.0;
};
std::vector<EntryFunction> stages_of(ScoreWeight weight) {
  switch (weight) {
    case ScoreWeight::identity: return {};
    case ScoreWeight::relu_squared: return {{Unary::relu}, {Unary::square}};
    case ScoreWeight::laplace: return {{Unary::affine, 1.0 / 0.282095, -0.707107 / 0.282095}, {Unary::normal_cdf}};
  }
  return {};
}

class Pointwise final : public Blocks, public HasEvaluationOrder {
 public:
  // Inputs: q, k, v, low, high, and where there are distances q2, rel.
  Pointwise(DType type, const AttentionSizes& s, ScoreWeight weight) : Blocks(type, s), stages_(stages_of(weight)) {}

  void forward(const ForwardCall& c) override {
    each_block(c.backend, c.stop, [&](std::int64_t first, std::int64_t rows, std::int64_t end) {
      const std::int64_t from = start(first), columns = end - from;
      void* p = weights(c.backend, c.in, first, rows, from, columns);
      apply(c.backend, p, rows, columns, at(c.in[2], from * s_.value), all(), s_.value, c.out[0], s_.steps, first, false);
    });
  }
  void backward(const BackwardCall& c) override {
    Backend& b = c.backend;
    each_block(c.backend, c.stop, [&](std::int64_t first, std::int64_t rows, std::int64_t end) {
      const std::int64_t from = start(first), columns = end - from, n = some_ * rows * columns;
      void* p = weights(b, c.in, first, rows, from, columns);
      if (c.grad_in[2])
        apply_transposed(b, p, rows, columns, c.grad_out[0], s_.steps, first, s_.value, at(c.grad_in[2], from * s_.value), all());
      void* g = gradient_.resize(b, type_, n);
      scores(b, c.grad_out[0], s_.steps, first, rows, at(c.in[2], from * s_.value), all(), columns, s_.value, g);
      keep_visible(b, c.in, first, rows, from, columns, g);
      for (std::size_t i = stages_.size(); i-- > 0;) {  // g: of the scores in the end
        void* before = other_.resize(b, type_, n);
        b.zero(before, bytes(n));
        b.unary_adjoint(stages_[i].op, type_, n, stage_[i].data(), stage_[i + 1].data(), g, before, stages_[i].p, stages_[i].q);
        b.copy(g, before, bytes(n));
      }
      if (c.grad_in[0]) apply(b, g, rows, columns, at(c.in[1], from * s_.key), all(), s_.key, c.grad_in[0], s_.steps, first, true);
      if (c.grad_in[1]) apply_transposed(b, g, rows, columns, c.in[0], s_.steps, first, s_.key, at(c.grad_in[1], from * s_.key), all());
      if (!s_.distances || (!c.grad_in[5] && !c.grad_in[6])) return;
      void* far = far_.resize(b, type_, some_ * rows * s_.distances);
      b.by_distance_adjoint(type_, some_, rows, columns, s_.distances, s_.cached_steps + first - from, g, far);
      if (c.grad_in[5]) apply(b, far, rows, s_.distances, c.in[6], s_.distances, s_.far_key, c.grad_in[5], s_.steps, first, true);
      if (c.grad_in[6]) apply_transposed(b, far, rows, s_.distances, c.in[5], s_.steps, first, s_.far_key, c.grad_in[6], s_.distances);
    });
  }
  void tangent(const TangentCall& c) override {
    Backend& b = c.backend;
    each_block(c.backend, c.stop, [&](std::int64_t first, std::int64_t rows, std::int64_t end) {
      const std::int64_t from = start(first), columns = end - from, n = some_ * rows * columns;
      void* p = weights(b, c.in, first, rows, from, columns);
      void *g = c.temporary(0, type_, n), *moved = c.temporary(1, type_, n);
      b.zero(g, bytes(n));
      if (c.tangent_in[0]) scores(b, c.tangent_in[0], s_.steps, first, rows, at(c.in[1], from * s_.key), all(), columns, s_.key, g, true);
      if (c.tangent_in[1]) scores(b, c.in[0], s_.steps, first, rows, at(c.tangent_in[1], from * s_.key), all(), columns, s_.key, g, true);
      if (s_.distances && (c.tangent_in[5] || c.tangent_in[6])) {
        void* far = c.temporary(2, type_, some_ * rows * s_.distances);
        b.zero(far, bytes(some_ * rows * s_.distances));
        if (c.tangent_in[5]) scores(b, c.tangent_in[5], s_.steps, first, rows, c.in[6], s_.distances, s_.distances, s_.far_key, far, true);
        if (c.tangent_in[6]) scores(b, c.in[5], s_.steps, first, rows, c.tangent_in[6], s_.distances, s_.distances, s_.far_key, far, true);
        b.by_distance(type_, some_, rows, columns, s_.distances, s_.cached_steps + first - from, far, g);
      }
      for (std::size_t i = 0; i < stages_.size(); ++i) {
        b.zero(moved, bytes(n));
        b.unary_adjoint(stages_[i].op, type_, n, stage_[i].data(), stage_[i + 1].data(), g, moved, stages_[i].p, stages_[i].q);
        b.copy(g, moved, bytes(n));
      }
      keep_visible(b, c.in, first, rows, from, columns, g);
      apply(b, g, rows, columns, at(c.in[2], from * s_.value), all(), s_.value, c.tangent_out[0], s_.steps, first, false);
      if (c.tangent_in[2])
        apply(b, p, rows, columns, at(c.tangent_in[2], from * s_.value), all(), s_.value, c.tangent_out[0], s_.steps, first, true);
    });
  }
  Cost cost() const override {
    double seen = static_cast<double>(s_.cached_steps) + 0.5 * static_cast<double>(s_.steps + 1);
    if (s_.window) seen = std::min(seen, static_cast<double>(s_.window + s_.rows / 2));
    const double rows = static_cast<double>(s_.batch * s_.steps), columns = static_cast<double>(s_.batch * all());
    return {rows * seen * (2.0 * static_cast<double>(s_.key + s_.value) + 3.0),
            static_cast<double>(bytes_of(type_)) * (rows + columns) * static_cast<double>(s_.key + s_.value)};
  }
  EvaluationOrder evaluation_order() const override {
    const bool streaming = s_.rows == 1;
    return {.form = streaming ? Form::sequential : Form::attention,
            .draw = streaming ? drawing::rows : drawing::pairs,
            .steps = s_.steps,
            .cached_steps = s_.cached_steps,
            .window = s_.window,
            .weights = EvaluationOrder::Weights::other,
            .bounded = true};
  }

 private:
  std::vector<EntryFunction> stages_;
  DeviceArray stage_[3];  // the scores after each stage
  DeviceArray weight_, gradient_, other_, far_, low_, high_;

  std::int64_t all() const { return s_.cached_steps + s_.steps; }
  void keep_visible(Backend& b, std::span<const void* const> in, std::int64_t first, std::int64_t rows, std::int64_t from,
                    std::int64_t columns, void* block) {
    b.keep_columns(type_, some_, rows, columns, moved(b, in[3], first, rows, from, low_), true, block);
    b.keep_columns(type_, some_, rows, columns, moved(b, in[4], first, rows, from, high_), false, block);
  }
  void* weights(Backend& b, std::span<const void* const> in, std::int64_t first, std::int64_t rows, std::int64_t from,
                std::int64_t columns) {
    const std::int64_t n = some_ * rows * columns;
    void* last = stage_[0].resize(b, type_, n);
    scores(b, in[0], s_.steps, first, rows, at(in[1], from * s_.key), all(), columns, s_.key, last);
    if (s_.distances) {
      void* far = far_.resize(b, type_, some_ * rows * s_.distances);
      scores(b, in[5], s_.steps, first, rows, in[6], s_.distances, s_.distances, s_.far_key, far);
      b.by_distance(type_, some_, rows, columns, s_.distances, s_.cached_steps + first - from, far, last);
    }
    for (std::size_t i = 0; i < stages_.size(); ++i) {
      void* next = stage_[i + 1].resize(b, type_, n);
      b.unary(stages_[i].op, type_, n, last, next, stages_[i].p, stages_[i].q);
      last = next;
    }
    void* kept = weight_.resize(b, type_, n);
    b.copy(kept, last, bytes(n));
    keep_visible(b, in, first, rows, from, columns, kept);
    return kept;
  }
};

}  // namespace

Var pointwise_attention(const PointwiseAttention& a, bool streaming) {
  const std::int64_t steps = a.q.dim(1), past = a.k.dim(1) - steps;
  const AttentionSizes s{a.q.dim(0),
                         steps,
                         past,
                         a.q.dim(2),
                         a.v.dim(2),
                         a.rel ? a.rel.dim(1) : 0,
                         streaming ? 1 : block_rows,
                         a.window,
                         a.rel ? a.rel.dim(2) : 0};
  RECLAB_DEMAND(!a.window || a.low);
  RECLAB_DEMAND(a.k.dim(2) == s.key && a.v.dim(1) == a.k.dim(1) && a.k.dim(0) == s.batch && a.v.dim(0) == s.batch);
  std::vector<double> after;
  for (std::int64_t i = 0; i < steps; ++i) after.push_back(static_cast<double>(past + i + 1));
  Graph& graph = *a.q.graph;
  std::vector<Var> inputs{a.q, a.k, a.v,
                          a.low ? detach(a.low) : graph.constant({steps}, std::vector<double>(static_cast<std::size_t>(steps), 0.0)),
                          a.high ? detach(a.high) : graph.constant({steps}, std::move(after))};
  if (a.rel) inputs.insert(inputs.end(), {a.q2, a.rel});
  return graph.apply(std::make_unique<Pointwise>(a.q.dtype(), s, a.weight), inputs, {{Shape{s.batch, steps, s.value}, a.q.dtype()}})[0];
}

Var attention(Layer& layer, const PointwiseAttention& a) {
  layer.declare_forms({Form::attention});
  const Var made = pointwise_attention(a, layer.form() == Form::sequential);
  if (a.v.dim(1) == layer.steps() && a.q.dim(1) == layer.steps())
    declare_mixing(
        layer,
        {.name = "attention", .value = a.v, .output = made, .groups = a.v.dim(0) / layer.batch(), .group = "head", .rows_first = false});
  return made;
}

}  // namespace reclab
