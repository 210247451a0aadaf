// SPDX-License-Identifier: GPL-3.0-or-later
#include "recurrence/attention/attention.h"

#include <algorithm>
#include <cmath>

#include "array/demand.h"
#include "array/error.h"
#include "array/host.h"
#include "autodiff/ops.h"
#include "recurrence/attention/blocks.h"
#include "recurrence/attention/drawing.h"
#include "recurrence/evaluation_order.h"
#include "recurrence/mixing/mixing.h"

namespace reclab {
namespace {

class Softmax final : public Blocks, public HasEvaluationOrder, public HasNormaliser {
 public:
  using Blocks::Blocks;
  bool low = false, relative = false, held = false, pair = false, over_time = true;

  // A block leaves out the columns that its window leaves behind: it has those from `from` on, and column counts are shifted by as many.
  void forward(const ForwardCall& c) override {
    backend_ = &c.backend;
    in_.assign(c.in.begin(), c.in.end());
    each_block(c.backend, c.stop, [&](std::int64_t first, std::int64_t rows, std::int64_t end) {
      const std::int64_t from = start(first), columns = end - from;
      void* p = probabilities(c.backend, c.in, first, rows, from, columns);
      apply(c.backend, p, rows, columns, at(c.in[2], from * s_.value), s_.cached_steps + s_.steps, s_.value, c.out[0], s_.steps, first,
            false);
    });
  }
  void backward(const BackwardCall& c) override {
    Backend& b = c.backend;
    const std::int64_t all = s_.cached_steps + s_.steps;
    const std::size_t at_relative = low ? 4 : 3, at_held = at_relative + (relative ? 2 : 0);
    each_block(c.backend, c.stop, [&](std::int64_t first, std::int64_t rows, std::int64_t end) {
      const std::int64_t from = start(first), columns = end - from;
      void* p = probabilities(b, c.in, first, rows, from, columns);
      void* g = scratch_[1].resize(b, type_, some_ * rows * columns);
      scores(b, c.grad_out[0], s_.steps, first, rows, at(c.in[2], from * s_.value), all, columns, s_.value, g);
      b.softmax_adjoint(type_, some_ * rows, columns, p, g);  // g: of the scores now
      if (c.grad_in[0]) apply(b, g, rows, columns, at(c.in[1], from * s_.key), all, s_.key, c.grad_in[0], s_.steps, first, true);
      if (relative) {
        void* far = scratch_[2].resize(b, type_, some_ * rows * s_.distances);
        b.by_distance_adjoint(type_, some_, rows, columns, s_.distances, s_.cached_steps + first - from, g, far);
        if (c.grad_in[at_relative])
          apply(b, far, rows, s_.distances, c.in[at_relative + 1], s_.distances, s_.far_key, c.grad_in[at_relative], s_.steps, first, true);
        if (c.grad_in[at_relative + 1])
          apply_transposed(b, far, rows, s_.distances, c.in[at_relative], s_.steps, first, s_.far_key, c.grad_in[at_relative + 1],
                           s_.distances);
      }
      if (const std::size_t at_pair = at_held + (held ? 3 : 0); pair && c.grad_in[at_pair]) {
        void* summed = scratch_[2].resize(b, type_, rows * columns);
        b.sum(type_, 1, some_, rows * columns, 1.0, g, summed);
        b.scatter(type_, pairs(first, rows, from, columns, false), summed, c.grad_in[at_pair], true);
      }
      const auto columns_gradient = [&](void* of_k, void* of_v) {
        if (of_k) apply_transposed(b, g, rows, columns, c.in[0], s_.steps, first, s_.key, at(of_k, from * s_.key), all);
        if (of_v) apply_transposed(b, p, rows, columns, c.grad_out[0], s_.steps, first, s_.value, at(of_v, from * s_.value), all);
      };
      if (!held) return columns_gradient(c.grad_in[1], c.grad_in[2]);
      // First the gradient of the columns from `held` on, then, from a fresh copy, that of the columns before.
      const std::size_t size = bytes(some_ * rows * columns);
      void* copies = scratch_[3].resize(b, type_, 2 * some_ * rows * columns);
      b.copy(copies, p, size);
      b.copy(static_cast<char*>(copies) + size, g, size);
      const void* bound = moved(b, c.in[at_held], first, rows, from);
      for (void* block : {p, g}) b.keep_columns(type_, some_, rows, columns, bound, true, block);
      columns_gradient(c.grad_in[1], c.grad_in[2]);
      p = copies;
      g = static_cast<char*>(copies) + size;
      for (void* block : {p, g}) b.keep_columns(type_, some_, rows, columns, bound, false, block);
      columns_gradient(c.grad_in[at_held + 1], c.grad_in[at_held + 2]);
    });
  }
  void tangent(const TangentCall& c) override {
    Backend& b = c.backend;
    const std::int64_t all = s_.cached_steps + s_.steps;
    const std::size_t at_relative = low ? 4 : 3, at_held = at_relative + (relative ? 2 : 0);
    each_block(c.backend, c.stop, [&](std::int64_t first, std::int64_t rows, std::int64_t end) {
      const std::int64_t from = start(first), columns = end - from, block = some_ * rows * columns;
      void* p = probabilities(b, c.in, first, rows, from, columns);
      void *g = c.temporary(0, type_, block), *part = c.temporary(1, type_, block);
      const void* bound = held ? moved(b, c.in[at_held], first, rows, from) : nullptr;
      b.zero(g, bytes(block));
      if (c.tangent_in[0]) scores(b, c.tangent_in[0], s_.steps, first, rows, at(c.in[1], from * s_.key), all, columns, s_.key, g, true);
      // Columns from `held` on move with k and v, those before with k_held and v_held.
      const auto add_keys = [&](const void* dk, bool later) {
        if (!dk) return;
        if (!held) return scores(b, c.in[0], s_.steps, first, rows, at(dk, from * s_.key), all, columns, s_.key, g, true);
        scores(b, c.in[0], s_.steps, first, rows, at(dk, from * s_.key), all, columns, s_.key, part);
        b.keep_columns(type_, some_, rows, columns, bound, later, part);
        b.add_scaled(type_, block, 0, part, g, true);
      };
      add_keys(c.tangent_in[1], true);
      if (held) add_keys(c.tangent_in[at_held + 1], false);
      if (relative && (c.tangent_in[at_relative] || c.tangent_in[at_relative + 1])) {
        void* far = c.temporary(2, type_, some_ * rows * s_.distances);
        b.zero(far, bytes(some_ * rows * s_.distances));
        if (c.tangent_in[at_relative])
          scores(b, c.tangent_in[at_relative], s_.steps, first, rows, c.in[at_relative + 1], s_.distances, s_.distances, s_.far_key, far,
                 true);
        if (c.tangent_in[at_relative + 1])
          scores(b, c.in[at_relative], s_.steps, first, rows, c.tangent_in[at_relative + 1], s_.distances, s_.distances, s_.far_key, far,
                 true);
        b.by_distance(type_, some_, rows, columns, s_.distances, s_.cached_steps + first - from, far, g);
      }
      if (const std::size_t at_pair = at_held + (held ? 3 : 0); pair && c.tangent_in[at_pair])
        b.gather(type_, pairs(first, rows, from, columns, true), c.tangent_in[at_pair], g, true);
      b.softmax_adjoint(type_, some_ * rows, columns, p, g);  // a softmax's Jacobian is symmetric; g: of the probabilities now
      apply(b, g, rows, columns, at(c.in[2], from * s_.value), all, s_.value, c.tangent_out[0], s_.steps, first, false);
      const auto add_values = [&](const void* dv, bool later) {
        if (!dv) return;
        const void* read = p;
        if (held) {
          b.copy(part, p, bytes(block));
          b.keep_columns(type_, some_, rows, columns, bound, later, part);
          read = part;
        }
        apply(b, read, rows, columns, at(dv, from * s_.value), all, s_.value, c.tangent_out[0], s_.steps, first, true);
      };
      add_values(c.tangent_in[2], true);
      if (held) add_values(c.tangent_in[at_held + 2], false);
    });
  }
  std::vector<double> log_normalisers() override {
    Backend& b = *backend_;
    std::vector<double> made(static_cast<std::size_t>(s_.batch * s_.steps));
    each_block(b, {}, [&](std::int64_t first, std::int64_t rows, std::int64_t end) {
      const std::int64_t from = start(first), columns = end - from, n = some_ * rows * columns;
      void* p = raw_scores(b, in_, first, rows, from, columns);
      const auto scored = to_double(b, type_, p, n);
      divide(b, in_, first, rows, from, columns, p);
      const auto shares = to_double(b, type_, p, n);
      for (std::int64_t row = 0; row < some_ * rows; ++row) {
        // The score of the largest share, less the logarithm of that: the others may be too small to tell.
        const auto begin = shares.begin() + row * columns;
        const auto largest = std::max_element(begin, begin + columns);
        made[static_cast<std::size_t>((from_ + row / rows) * s_.steps + first + row % rows)] =
            scored[static_cast<std::size_t>(largest - shares.begin())] - std::log(*largest);
      }
    });
    return made;
  }
  Cost cost() const override {
    double columns_seen = static_cast<double>(s_.cached_steps) + 0.5 * static_cast<double>(s_.steps + 1);
    if (s_.window) columns_seen = std::min(columns_seen, static_cast<double>(s_.window + s_.rows / 2));
    const double pairs = static_cast<double>(s_.batch) * static_cast<double>(s_.steps) * columns_seen;
    const double rows = static_cast<double>(s_.batch * s_.steps), columns = static_cast<double>(s_.batch * (s_.cached_steps + s_.steps));
    return {pairs * (2.0 * static_cast<double>(s_.key + s_.value) + 5.0),
            static_cast<double>(bytes_of(type_)) * (rows + columns) * static_cast<double>(s_.key + s_.value)};
  }
  EvaluationOrder evaluation_order() const override {
    const bool streaming = s_.rows == 1;
    return {.form = streaming ? Form::sequential : Form::attention,
            .draw = streaming ? drawing::rows : drawing::pairs,
            .steps = over_time ? s_.steps : 0,
            .cached_steps = s_.cached_steps,
            .window = s_.window,
            .weights = relative || pair ? EvaluationOrder::Weights::other : EvaluationOrder::Weights::softmax,
            .bounded = low};
  }

 private:
  DeviceArray scratch_[5];
  Backend* backend_ = nullptr;
  std::vector<const void*> in_;  // of the last forward
  const void* moved(Backend& b, const void* numbers, std::int64_t first, std::int64_t rows, std::int64_t from) {
    return Blocks::moved(b, numbers, first, rows, from, scratch_[4]);
  }
  /// The part of the pairs' array [steps, columns] that a block of scores covers, once or for each of the batch.
  Strided pairs(std::int64_t first, std::int64_t rows, std::int64_t from, std::int64_t columns, bool repeated) const {
    const std::int64_t all = s_.cached_steps + s_.steps, size[] = {some_, rows, columns}, stride[] = {0, all, 1};
    Strided box;
    box.rank = repeated ? 3 : 2;
    box.elements = (repeated ? some_ : 1) * rows * columns;
    box.offset = first * all + from;
    std::copy_n(size + (repeated ? 0 : 1), box.rank, box.size);
    std::copy_n(stride + (repeated ? 0 : 1), box.rank, box.stride);
    return box;
  }
  void* raw_scores(Backend& b, std::span<const void* const> in, std::int64_t first, std::int64_t rows, std::int64_t from,
                   std::int64_t columns) {
    void* p = scratch_[0].resize(b, type_, some_ * rows * columns);
    scores(b, in[0], s_.steps, first, rows, at(in[1], from * s_.key), s_.cached_steps + s_.steps, columns, s_.key, p);
    if (relative) {
      const std::size_t at_relative = low ? 4 : 3;
      void* far = scratch_[2].resize(b, type_, some_ * rows * s_.distances);
      scores(b, in[at_relative], s_.steps, first, rows, in[at_relative + 1], s_.distances, s_.distances, s_.far_key, far);
      b.by_distance(type_, some_, rows, columns, s_.distances, s_.cached_steps + first - from, far, p);
    }
    if (pair) b.gather(type_, pairs(first, rows, from, columns, true), in.back(), p, true);
    return p;
  }
  void* probabilities(Backend& b, std::span<const void* const> in, std::int64_t first, std::int64_t rows, std::int64_t from,
                      std::int64_t columns) {
    void* p = raw_scores(b, in, first, rows, from, columns);
    divide(b, in, first, rows, from, columns, p);
    return p;
  }
  /// Scores become shares.
  void divide(Backend& b, std::span<const void* const> in, std::int64_t first, std::int64_t rows, std::int64_t from, std::int64_t columns,
              void* p) {
    b.softmax(type_, some_, rows, columns, s_.cached_steps + first - from, low ? moved(b, in[3], first, rows, from) : nullptr, p);
  }
};

class Weighted final : public Blocks, public HasEvaluationOrder {
 public:
  Weighted(DType type, const AttentionSizes& sizes, ReadOrder read) : Blocks(type, sizes), read_(read) {}
  void forward(const ForwardCall& c) override {
    each_block(c.backend, c.stop, [&](std::int64_t first, std::int64_t rows, std::int64_t columns) {
      void* p = weights(c.backend, c.in, first, rows, columns);
      apply(c.backend, p, rows, columns, c.in[2], s_.steps, s_.value, c.out[0], s_.steps, first, false);
    });
  }
  void backward(const BackwardCall& c) override {
    Backend& b = c.backend;
    each_block(c.backend, c.stop, [&](std::int64_t first, std::int64_t rows, std::int64_t columns) {
      void* p = weights(b, c.in, first, rows, columns);
      void* g = scratch_[1].resize(b, type_, some_ * rows * columns);
      scores(b, c.grad_out[0], s_.steps, first, rows, c.in[2], s_.steps, columns, s_.value, g);
      if (c.grad_in[2]) apply_transposed(b, p, rows, columns, c.grad_out[0], s_.steps, first, s_.value, c.grad_in[2], s_.steps);
      // The exponents' adjoint is p g; the scores' is g times the weight alone.
      const auto own = [&](auto* numbers) { return numbers ? at(numbers, from_ * s_.steps) : nullptr; };
      b.weigh_adjoint(type_, some_, s_.steps, first, rows, columns, own(c.in[3]), own(c.in[4]), own(c.in[5]), own(c.in[6]), p, g,
                      own(c.grad_in[3]), own(c.grad_in[4]));
      if (c.grad_in[0]) apply(b, g, rows, columns, c.in[1], s_.steps, s_.key, c.grad_in[0], s_.steps, first, true);
      if (c.grad_in[1]) apply_transposed(b, g, rows, columns, c.in[0], s_.steps, first, s_.key, c.grad_in[1], s_.steps);
    });
  }
  void tangent(const TangentCall& c) override {
    Backend& b = c.backend;
    each_block(c.backend, c.stop, [&](std::int64_t first, std::int64_t rows, std::int64_t columns) {
      const std::int64_t block = some_ * rows * columns;
      void* p = weights(b, c.in, first, rows, columns);
      void *g = c.temporary(0, type_, block), *part = c.temporary(1, type_, block);
      b.zero(g, bytes(block));
      if (c.tangent_in[0]) scores(b, c.tangent_in[0], s_.steps, first, rows, c.in[1], s_.steps, columns, s_.key, g, true);
      if (c.tangent_in[1]) scores(b, c.in[0], s_.steps, first, rows, c.tangent_in[1], s_.steps, columns, s_.key, g, true);
      weigh(b, c.in, first, rows, columns, g);
      for (const bool by_row : {true, false}) {
        const void* exponents = c.tangent_in[by_row ? 3 : 4];
        if (!exponents) continue;
        Broadcast shape;
        shape.rank = 3;
        shape.elements = block;
        const std::int64_t sizes[] = {some_, rows, columns}, dense[] = {rows * columns, columns, 1},
                           repeated[] = {s_.steps, by_row ? 1 : 0, by_row ? 0 : 1};
        std::copy_n(sizes, 3, shape.size);
        std::copy_n(dense, 3, shape.stride_x);
        std::copy_n(repeated, 3, shape.stride_y);
        b.binary(Binary::multiply, type_, shape, p, at(exponents, from_ * s_.steps + (by_row ? first : 0)), part);
        b.add_scaled(type_, block, 0, part, g, true);
      }
      apply(b, g, rows, columns, c.in[2], s_.steps, s_.value, c.tangent_out[0], s_.steps, first, false);
      if (c.tangent_in[2]) apply(b, p, rows, columns, c.tangent_in[2], s_.steps, s_.value, c.tangent_out[0], s_.steps, first, true);
    });
  }
  Cost cost() const override {
    const double t = static_cast<double>(s_.steps), d = static_cast<double>(s_.key + s_.value), n = static_cast<double>(s_.batch);
    return {n * t * (t + 1.0) * (d + 1.0), 2.0 * n * t * d * static_cast<double>(bytes_of(type_))};
  }
  EvaluationOrder evaluation_order() const override {
    return {
        .form = Form::attention, .draw = drawing::pairs, .steps = s_.steps, .weights = EvaluationOrder::Weights::decayed, .read = read_};
  }

 private:
  ReadOrder read_;
  DeviceArray scratch_[2];
  void weigh(Backend& b, std::span<const void* const> in, std::int64_t first, std::int64_t rows, std::int64_t columns, void* block) {
    const auto own = [&](std::size_t input) { return at(in[input], from_ * s_.steps); };
    b.weigh(type_, some_, s_.steps, first, rows, columns, own(3), own(4), own(5), own(6), block);
  }
  void* weights(Backend& b, std::span<const void* const> in, std::int64_t first, std::int64_t rows, std::int64_t columns) {
    void* p = scratch_[0].resize(b, type_, some_ * rows * columns);
    scores(b, in[0], s_.steps, first, rows, in[1], s_.steps, columns, s_.key, p);
    weigh(b, in, first, rows, columns, p);
    return p;
  }
};

class SoftmaxRows final : public Operation {
 public:
  SoftmaxRows(DType type, std::int64_t rows, std::int64_t columns) : type_(type), rows_(rows), columns_(columns) {}
  void forward(const ForwardCall& c) override {
    c.backend.copy(c.out[0], c.in[0], bytes());
    c.backend.softmax(type_, rows_, 1, columns_, columns_ - 1, nullptr, c.out[0]);
  }
  void backward(const BackwardCall& c) override {
    if (!c.grad_in[0]) return;
    void* g = scratch_.resize(c.backend, type_, rows_ * columns_);
    c.backend.copy(g, c.grad_out[0], bytes());
    c.backend.softmax_adjoint(type_, rows_, columns_, c.out[0], g);
    c.backend.add_scaled(type_, rows_ * columns_, 0, g, c.grad_in[0], true);
  }
  void tangent(const TangentCall& c) override {  // a softmax's Jacobian is symmetric
    c.backend.copy(c.tangent_out[0], c.tangent_in[0], bytes());
    c.backend.softmax_adjoint(type_, rows_, columns_, c.out[0], c.tangent_out[0]);
  }
  bool is_pure() const override { return true; }
  bool reads_input(std::size_t) const override { return false; }
  Cost cost() const override { return {5.0 * static_cast<double>(rows_ * columns_), 2.0 * static_cast<double>(bytes())}; }

 private:
  DType type_;
  std::int64_t rows_, columns_;
  DeviceArray scratch_;
  std::size_t bytes() const { return static_cast<std::size_t>(rows_ * columns_) * bytes_of(type_); }
};

}  // namespace

Var softmax_rows(Var scores) {
  const std::int64_t columns = scores.dim(-1);
  return scores.graph->apply(std::make_unique<SoftmaxRows>(scores.dtype(), count(scores.shape()) / columns, columns), {scores},
                             {{scores.shape(), scores.dtype()}})[0];
}

namespace {

struct Attended {
  Var made;
  HasNormaliser* normaliser;
};
Attended attended(const SoftmaxAttention& a, bool streaming) {
  AttentionSizes s{a.q.dim(0),
                   a.q.dim(1),
                   a.k.dim(1) - a.q.dim(1),
                   a.q.dim(2),
                   a.v.dim(2),
                   a.rel ? a.rel.dim(1) : 0,
                   streaming ? 1 : block_rows,
                   a.window,
                   a.rel ? a.rel.dim(2) : 0};
  RECLAB_DEMAND(!a.window || a.low);
  RECLAB_DEMAND(a.k.dim(2) == s.key && a.v.dim(1) == a.k.dim(1) && a.k.dim(0) == s.batch && a.v.dim(0) == s.batch);
  auto operation = std::make_unique<Softmax>(a.q.dtype(), s);
  std::vector<Var> inputs{a.q, a.k, a.v};
  if (a.low) inputs.push_back(a.low);
  if (a.rel) inputs.insert(inputs.end(), {a.q2, a.rel});
  if (a.held) inputs.insert(inputs.end(), {a.held, a.k_held, a.v_held});
  if (a.pair) inputs.push_back(a.pair);
  operation->pair = static_cast<bool>(a.pair);
  if (a.pair) operation->take_batch_at_once();  // a pair's gradient is one sum over the batch
  operation->over_time = a.over_time;
  operation->low = static_cast<bool>(a.low);
  operation->relative = static_cast<bool>(a.rel);
  operation->held = static_cast<bool>(a.held);
  HasNormaliser* normaliser = operation.get();
  return {a.q.graph->apply(std::move(operation), inputs, {{Shape{s.batch, s.steps, s.value}, a.q.dtype()}})[0], normaliser};
}

}  // namespace

Var softmax_attention(const SoftmaxAttention& a, bool streaming) { return attended(a, streaming).made; }

Var weighted_attention(Var q, Var k, Var v, Var row, Var column, Var row_low, Var column_low, ReadOrder read) {
  const AttentionSizes s{q.dim(0), q.dim(1), 0, q.dim(2), v.dim(2), 0, block_rows};
  RECLAB_DEMAND(k.shape() == q.shape() && v.dim(1) == s.steps && count(row.shape()) == s.batch * s.steps &&
                count(column.shape()) == s.batch * s.steps);
  return q.graph->apply(std::make_unique<Weighted>(q.dtype(), s, read), {q, k, v, row, column, row_low, column_low},
                        {{Shape{s.batch, s.steps, s.value}, q.dtype()}})[0];
}

Var heads_first(Var x) {
  const int axes[] = {1, 2, 0, 3};
  return reshape(permute(x, axes), {x.dim(1) * x.dim(2), x.dim(0), x.dim(3)});
}
Var heads_last(Var x, std::int64_t batch, std::int64_t heads) {
  const int axes[] = {2, 0, 1, 3};
  return permute(reshape(x, {batch, heads, x.dim(1), x.dim(2)}), axes);
}
Var repeated_heads(Var x, std::int64_t times) {
  if (times == 1) return x;
  const Var ones = x.graph->constant({times, 1}, std::vector<double>(static_cast<std::size_t>(times), 1.0));
  return reshape(reshape(x, {x.dim(0), x.dim(1), x.dim(2), 1, x.dim(3)}) * ones, {x.dim(0), x.dim(1), x.dim(2) * times, x.dim(3)});
}

namespace {

Attended attend(Layer& layer, const SoftmaxAttention& a) {
  layer.declare_forms({Form::attention});
  return attended(a, layer.form() == Form::sequential);
}

}  // namespace

Var attention(Layer& layer, const SoftmaxAttention& a) {
  const auto [made, normaliser] = attend(layer, a);
  if (a.over_time && !a.held && a.v.dim(1) == layer.steps() && a.q.dim(1) == layer.steps() && a.v.dim(0) % layer.batch() == 0)
    declare_mixing(layer, {.name = "attention",
                           .value = a.v,
                           .output = made,
                           .groups = a.v.dim(0) / layer.batch(),
                           .group = "head",
                           .rows_first = false,
                           .is_share = true,
                           .normaliser = normaliser});
  return made;
}

namespace {

/// All rows so far, carried over and not recorded; gradients pass, as to the rows of a cache.
Var grown(Layer& layer, const StateSpec& state, Var x) {
  layer.require_single_segment();
  Shape shape = x.shape();
  shape[0] = layer.cached_steps();
  const Var initial = layer.graph().leaf(LeafKind::variable, shape, x.dtype());
  const Var both[] = {initial, x};
  const Var joined = shape[0] ? concat(both, 0) : affine(x, 1.0, 0.0);
  layer.add_carried_state(
      {.name = state.name, .text = state.text, .shape = state.shape, .initial = initial, .final_state = joined, .growing = true});
  return joined;
}

}  // namespace

Var attention(Layer& layer, const StateSpec& key, const StateSpec& value, Var q, Var k, Var written, std::int64_t window) {
  const Var v = apart(layer, written, {q, k});
  const std::int64_t heads = q.dim(2), shared = heads / k.dim(2);
  // The rows that are appended get nodes of their own, so that their adjoints count only reads of the cache.
  const auto kept = [&](const StateSpec& state, Var x) {
    if (state.auxiliary) return window ? layer.history(state.name, x, window - 1, state.text) : grown(layer, state, x);
    return window ? layer.history(state, x, window - 1) : layer.cache(state, affine(x, 1.0, 0.0));
  };
  SoftmaxAttention a;
  const Var keys = kept(key, k), values = kept(value, v);
  a.q = heads_first(q);
  a.k = heads_first(repeated_heads(keys, shared));
  a.v = heads_first(repeated_heads(values, shared));
  a.window = window;
  if (window) {
    // Column j of row i is step position_i - (window - 1 + i) + j; columns before the sequence are masked.
    const std::int64_t steps = layer.steps();
    std::vector<double> own;
    for (std::int64_t i = 0; i < steps; ++i) own.push_back(static_cast<double>(i));
    const Var row = layer.graph().constant({steps}, std::move(own)), at = reshape(slice(layer.position(), 1, 0, 1), {steps});
    a.low = maximum(row, row + static_cast<double>(window - 1) - at);
  }
  const Attended attended = attend(layer, a);
  const Var made = heads_last(attended.made, layer.batch(), heads);
  declare_mixing(layer, {.name = "attention",
                         .value = v,
                         .output = made,
                         .groups = k.dim(2),
                         .reads = shared,
                         .group = "head",
                         .is_share = true,
                         .normaliser = attended.normaliser});
  return made;
}

}  // namespace reclab
