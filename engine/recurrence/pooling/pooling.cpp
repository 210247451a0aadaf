// SPDX-License-Identifier: GPL-3.0-or-later
#include "recurrence/pooling/pooling.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "array/host.h"
#include "recurrence/linear/carried.h"

namespace reclab {
namespace {

constexpr double minus_infinity = -std::numeric_limits<double>::infinity();

/// The number of earlier steps of the sequence, modulo `stride`.
std::int64_t phase_of(Backend& backend, DType real, const void* phase, std::int64_t stride) {
  const double value = phase ? to_double(backend, real, phase, 1)[0] : 0.0;
  return value >= 0.0 && value < 0x1p53 ? static_cast<std::int64_t>(value) % stride : 0;
}

/// Rows of a sequence, chosen by the phase alone: row i is row index(phase, i), or zero where there is no such row.
class ChosenRows final : public Operation {
 public:
  using Index = std::function<std::int64_t(std::int64_t phase, std::int64_t i)>;
  ChosenRows(DType type, std::int64_t entries, std::int64_t from, std::int64_t to, std::int64_t stride, bool passes, Index index)
      : type_(type), entries_(entries), from_(from), to_(to), stride_(stride), passes_(passes), index_(std::move(index)) {}

  void forward(const ForwardCall& c) override { choose(c.backend, c.in[0], c.in.size() > 1 ? c.in[1] : nullptr, c.out[0]); }
  void backward(const BackwardCall& c) override {
    if (!c.grad_in[0]) return;
    runs(phase_of(c.backend, real_of(type_), c.in.size() > 1 ? c.in[1] : nullptr, stride_),
         [&](std::int64_t from, std::int64_t to, std::int64_t rows) {
           if (from >= 0) c.backend.add_scaled(type_, rows * entries_, 0, row(c.grad_out[0], to), row(c.grad_in[0], from), true);
         });
  }
  void tangent(const TangentCall& c) override {
    if (c.tangent_in[0])
      choose(c.backend, c.tangent_in[0], c.in.size() > 1 ? c.in[1] : nullptr, c.tangent_out[0]);
    else
      c.backend.zero(c.tangent_out[0], static_cast<std::size_t>(to_) * bytes());
  }
  Cost cost() const override { return {0.0, 2.0 * static_cast<double>(to_) * static_cast<double>(bytes())}; }
  bool passes_gradient() const override { return passes_; }
  bool passes_tangent() const override { return true; }

 private:
  DType type_;
  std::int64_t entries_, from_, to_, stride_;
  bool passes_;
  Index index_;

  std::size_t bytes() const { return static_cast<std::size_t>(entries_) * bytes_of(type_); }
  const void* row(const void* base, std::int64_t i) const { return at(base, static_cast<std::size_t>(i) * bytes()); }
  void* row(void* base, std::int64_t i) const { return at(base, static_cast<std::size_t>(i) * bytes()); }
  /// Rows that follow one another on both sides, together; from = -1: there are none.
  template <class F>
  void runs(std::int64_t phase, F&& f) const {
    const auto source = [&](std::int64_t i) {
      const std::int64_t found = index_(phase, i);
      return found >= 0 && found < from_ ? found : -1;
    };
    for (std::int64_t i = 0, next = 0; i < to_; i = next) {
      const std::int64_t first = source(i);
      for (next = i + 1; next < to_ && source(next) == (first < 0 ? -1 : first + next - i); ++next) {
      }
      f(first, i, next - i);
    }
  }
  void choose(Backend& b, const void* x, const void* phase, void* y) const {
    runs(phase_of(b, real_of(type_), phase, stride_), [&](std::int64_t from, std::int64_t to, std::int64_t rows) {
      const std::size_t size = static_cast<std::size_t>(rows) * bytes();
      if (from < 0)
        b.zero(row(y, to), size);
      else
        b.copy(row(y, to), row(x, from), size);
    });
  }
};

Var rows_of(Var x, Var phase, std::int64_t stride, std::int64_t rows, ChosenRows::Index index, bool passes = true) {
  Shape shape = x.shape();
  const std::int64_t from = shape[0], entries = count(shape) / from;
  shape[0] = rows;
  std::vector<Var> in{x};
  if (phase) in.push_back(phase);
  return x.graph->apply(std::make_unique<ChosenRows>(x.dtype(), entries, from, rows, stride, passes, std::move(index)), in,
                        {{shape, x.dtype()}})[0];
}

Var joined(Var front, Var x) {
  if (!front) return x;
  const Var parts[] = {front, x};
  return concat(parts, 0);
}

/// The memory of a layer at the rate, seen by the sequence.
class StridedMemory final : public Memory {
 public:
  struct State {
    DType type;
    std::int64_t entries;
  };
  StridedMemory(DType real, const Rate& rate, Memory& inner, std::vector<State> states, bool record, bool turned)
      : real_(real), rate_(rate), inner_(inner), states_(std::move(states)), turned_(turned) {
    if (record) inner_.record_backpropagated_norms();
  }

  bool carries() const override { return inner_.carries(); }
  Transition transition() const override {
    Transition own = inner_.transition();
    own.every = rate_.stride;
    return own;
  }
  std::int64_t next_move(std::int64_t t) const override {
    while (!moves(t)) ++t;
    return t;
  }
  void factors(std::int64_t t, std::span<std::complex<double>> factors) override {
    if (moves(t))
      inner_.factors(number(t), factors);
    else
      std::ranges::fill(factors, 1.0);
  }
  void jacobian(std::int64_t t, std::span<double> matrices) override {
    if (moves(t)) return inner_.jacobian(number(t), matrices);
    const auto n = static_cast<std::size_t>(inner_.transition().size);
    for (std::size_t i = 0; i < matrices.size(); ++i) matrices[i] = i % (n * n) % (n + 1) == 0 ? 1.0 : 0.0;
  }
  void low_rank(std::int64_t t, std::span<double> scale, std::span<double> u, std::span<double> v) override {
    if (moves(t)) return inner_.low_rank(number(t), scale, u, v);
    std::ranges::fill(scale, 1.0);
    std::ranges::fill(u, 0.0);
    std::ranges::fill(v, 0.0);
  }

  // Inputs: the phase, then of each state the initial one and the trajectory. Outputs: a number, then the last of each state.
  void forward(const ForwardCall& c) override {
    phase_ = phase_of(c.backend, real_, c.in[0], rate_.stride);
    c.backend.zero(c.out[0], bytes_of(real_));
    choose(c.backend, c.in, c.out);
  }
  void backward(const BackwardCall& c) override {
    const std::int64_t whole = rate_.whole(phase_);
    // Where the last row is the last whole step, the adjoint from later keeps its unit.
    const bool all = whole == rate_.rows();
    if (all)
      inner_.set_final_adjoint(carried_, exponent_);
    else
      inner_.set_final_adjoint({}, 0);
    later_.assign(states_.size(), minus_infinity);
    for (std::size_t i = 0; i < states_.size(); ++i) {
      const State& state = states_[i];
      void* to = c.grad_in[whole ? 2 + 2 * i : 1 + 2 * i];
      if (whole && to) to = at(to, static_cast<std::size_t>(whole - 1) * bytes(state));
      if (to) c.backend.add_scaled(state.type, state.entries, 0, c.grad_out[1 + i], to, true);
      const void* carried = i < carried_.size() ? carried_[i] : nullptr;
      if (!carried) continue;
      later_[i] = c.backend.log2_norm(state.type, state.entries, carried, exponent_);
      if (!all && to) c.backend.add_scaled(state.type, state.entries, exponent_, carried, to, true);
    }
  }
  void tangent(const TangentCall& c) override {
    c.backend.zero(c.tangent_out[0], bytes_of(real_));
    choose(c.backend, c.tangent_in, c.tangent_out);
  }
  Cost cost() const override { return {}; }

  /// After the inner one's backward, which comes later.
  int exponent() const override { return inner_.exponent(); }
  const std::vector<std::vector<double>>& log2_norms() const override {
    held_norms_.assign(inner_.log2_norms().size(), {});
    const auto& passed = inner_.log2_backpropagated();
    for (std::size_t i = 0; i < held_norms_.size(); ++i)
      for (std::int64_t t = 0; t < rate_.sequence; ++t) {
        const std::int64_t k = after(t);
        if (k > 0 && moves(t))
          held_norms_[i].push_back(inner_.log2_norms()[i][static_cast<std::size_t>(k - 1)]);
        else if (k < after(rate_.sequence - 1))
          held_norms_[i].push_back(i < passed.size() ? passed[i][static_cast<std::size_t>(k)] : minus_infinity);
        else
          held_norms_[i].push_back(i < later_.size() ? later_[i] : minus_infinity);
      }
    return held_norms_;
  }

 private:
  DType real_;
  Rate rate_;
  Memory& inner_;
  std::vector<State> states_;
  bool turned_;
  std::int64_t phase_ = 0;
  std::vector<double> later_;
  mutable std::vector<std::vector<double>> held_norms_;

  /// Steps of the layer that ended with step t of the sequence or before, in the direction of the layer.
  std::int64_t after(std::int64_t t) const {
    if (!turned_) return rate_.whole(phase_, t + 1);
    return std::max<std::int64_t>(0, t + 1 - (phase_ + rate_.sequence) % rate_.stride) / rate_.stride;
  }
  bool moves(std::int64_t t) const { return after(t) != (t > 0 ? after(t - 1) : 0); }
  std::int64_t number(std::int64_t t) const { return std::clamp<std::int64_t>(after(t) - 1, 0, rate_.rows() - 1); }
  std::size_t bytes(const State& state) const { return static_cast<std::size_t>(state.entries) * bytes_of(state.type); }

  void choose(Backend& b, std::span<const void* const> in, std::span<void* const> out) const {
    const std::int64_t whole = rate_.whole(phase_);
    for (std::size_t i = 0; i < states_.size(); ++i) {
      const std::size_t size = bytes(states_[i]);
      const void* from = in[whole ? 2 + 2 * i : 1 + 2 * i];
      if (from)
        b.copy(out[1 + i], whole ? at(from, static_cast<std::size_t>(whole - 1) * size) : from, size);
      else
        b.zero(out[1 + i], size);
    }
  }
};

/// The rate of a layer; its phase is the position, unless an enclosing body counts.
Rate rate_of(Layer& layer) {
  Rate rate = layer.rate();
  if (!rate.phase) rate.phase = slice(layer.position(), 0, 0, 1);
  return rate;
}

Shape with_row(Shape shape) {
  shape.insert(shape.begin(), 1);
  return shape;
}

}  // namespace

Pooled pooled(const Rate& rate, std::int64_t factor, Var x, Var held) {
  const Rate slow = rate.slower(factor);
  const std::int64_t rows = slow.rows(), batch = x.dim(1), features = x.dim(2), kept = factor - 1, stride = rate.stride;
  if (factor == 1) return {x, held};
  const Var all = joined(held, x);
  Pooled made;
  // An unfinished window is padded with the last step; any values would do.
  const std::int64_t last = kept + rate.rows() - 1;
  const Var chosen = rows_of(all, rate.phase, slow.stride, rows * factor,
                             [=](std::int64_t phase, std::int64_t i) { return std::min(kept - phase / stride % factor + i, last); });
  const int feature_first[] = {0, 2, 3, 1};
  made.windows = reshape(permute(reshape(chosen, {rows, factor, batch, features}), feature_first), {rows, batch, features * factor});
  made.held = rows_of(all, rate.phase, slow.stride, kept, [rate](std::int64_t phase, std::int64_t i) { return rate.whole(phase) + i; });
  return made;
}

Expanded expanded(const Rate& rate, std::int64_t factor, Var u, Var held) {
  const Rate slow = rate.slower(factor);
  const std::int64_t rows = slow.rows() + 1, batch = u.dim(1), features = u.dim(2) / factor, stride = rate.stride;
  const Var all = joined(held, u);
  const int step_first[] = {0, 3, 1, 2};
  const Var laid = reshape(permute(reshape(all, {rows, batch, features, factor}), step_first), {rows * factor, batch, features});
  Expanded made;
  made.x =
      rows_of(laid, rate.phase, slow.stride, rate.rows(), [=](std::int64_t phase, std::int64_t i) { return phase / stride % factor + i; });
  made.held = rows_of(all, rate.phase, slow.stride, 1, [slow](std::int64_t phase, std::int64_t) { return slow.whole(phase); });
  return made;
}

Var reversed_whole(const Rate& rate, Var x) {
  if (!rate.is_ragged()) return reversed(x);
  return rows_of(x, rate.phase, rate.stride, x.dim(0), [rate](std::int64_t phase, std::int64_t i) {
    const std::int64_t whole = rate.whole(phase);
    return i < whole ? whole - 1 - i : i;
  });
}

Var only_whole(const Rate& rate, Var x) {
  if (!rate.is_ragged()) return x;
  return rows_of(x, rate.phase, rate.stride, x.dim(0),
                 [rate](std::int64_t phase, std::int64_t i) { return i < rate.whole(phase) ? i : -1; });
}

Var held_rows(const Rate& rate, Var before, Var x, bool turned) {
  return rows_of(
      joined(before, x), rate.phase, rate.stride, rate.sequence,
      [=](std::int64_t phase, std::int64_t t) {
        if (!turned) return rate.whole(phase, t + 1);
        return std::max<std::int64_t>(0, t + 1 - (phase + rate.sequence) % rate.stride) / rate.stride;
      },
      false);
}

Var last_row(const Rate& rate, Var before, Var x) {
  return rows_of(
      joined(before, x), rate.phase, rate.stride, 1, [rate](std::int64_t phase, std::int64_t) { return rate.whole(phase); }, false);
}

MemoryVars strided_memory(const Rate& rate, const MemoryVars& made, const std::vector<Var>& before, bool record, bool turned) {
  Graph& graph = *made.initial[0].graph;
  std::vector<StridedMemory::State> states;
  std::vector<Var> in{rate.phase};
  std::vector<std::pair<Shape, DType>> out{{{1}, graph.real()}};
  MemoryVars held;
  held.initial = made.initial;
  held.trajectories.resize(made.initial.size());
  held.finals.resize(made.initial.size());
  const bool known = std::ranges::all_of(made.trajectories, [](Var trajectory) { return static_cast<bool>(trajectory); });
  for (std::size_t i = 0; known && i < made.initial.size(); ++i) {
    const Var initial = made.initial[i];
    states.push_back({initial.dtype(), count(initial.shape())});
    in.insert(in.end(), {before[i], made.trajectories[i]});
    out.emplace_back(initial.shape(), initial.dtype());
    if (record) held.trajectories[i] = held_rows(rate, reshape(before[i], with_row(initial.shape())), made.trajectories[i], turned);
  }
  auto operation = std::make_unique<StridedMemory>(graph.real(), rate, *made.memory, states, record, turned);
  held.memory = operation.get();
  const auto outputs = graph.apply(std::move(operation), in, out);
  for (std::size_t i = 0; i < states.size(); ++i) held.finals[i] = outputs[1 + i];
  return held;
}

Var pooled(Layer& layer, Var x, std::int64_t factor) {
  const std::int64_t batch = x.dim(1), features = x.dim(2);
  if (factor == 1) return x;
  const Var held = layer.graph().leaf(LeafKind::variable, {factor - 1, batch, features}, x.dtype());
  const Pooled made = pooled(rate_of(layer), factor, x, held);
  layer.add_carried_state({.name = "inputs",
                           .text = "The last steps that were read, of which those of an unfinished window count.",
                           .shape = {factor - 1, features},
                           .initial = held,
                           .final_state = made.held});
  return made.windows;
}

Var expanded(Layer& layer, Var u, std::int64_t factor) {
  const Var held = layer.graph().leaf(LeafKind::variable, {1, u.dim(1), u.dim(2)}, u.dtype());
  const Expanded made = expanded(rate_of(layer), factor, u, held);
  layer.add_carried_state({.name = "held",
                           .text = "What the last step at the slower rate left for the steps after it, channel by channel.",
                           .shape = {u.dim(2)},
                           .initial = held,
                           .final_state = made.held});
  return made.x;
}

}  // namespace reclab
