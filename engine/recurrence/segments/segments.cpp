// SPDX-License-Identifier: GPL-3.0-or-later
// A recurrence whose step is a segment of time. A sequence that goes on inside a segment computes that segment again from its start, so
// that the same rows are made from the same numbers wherever a run was cut.
#include <cassert>

#include "autodiff/ops.h"
#include "recurrence/evaluation_order.h"
#include "recurrence/segments/drawing.h"
#include "recurrence/segments/segments.h"
#include "recurrence/step/step.h"

namespace reclab {
namespace {

/// Which memory stands after each step: 0 is that of the start, k that which the k-th segment left.
struct SegmentSchedule {
  std::int64_t length = 1, cached_steps = 0, steps = 0;  ///< cached: steps of the unfinished segment that came before
  std::int64_t after(std::int64_t t) const { return (cached_steps + t + 1) / length; }
};

/// Passes the memory of the start on to the recurrence over segments, whose adjoint comes back as a mantissa and a power of two, and knows
/// the adjoint of the memory of each step. There is no transition from step to step.
class SegmentMemory final : public Memory, public HasEvaluationOrder {
 public:
  SegmentMemory(DType type, std::int64_t n, const SegmentSchedule& schedule) : type_(type), n_(n), schedule_(schedule) {}
  void follow(const Memory* segments) { segments_ = segments; }
  Transition transition() const override { return Transition::none("the memory changes once a segment"); }
  void forward(const ForwardCall& c) override { c.backend.copy(c.out[0], c.in[0], static_cast<std::size_t>(n_) * bytes_of(type_)); }
  void backward(const BackwardCall& c) override {
    assert((carried_.empty() || !carried_[0]) && "the sequence is run as one");
    const int power = segments_ ? segments_->exponent() : 0;
    const double first = c.backend.log2_norm(type_, n_, c.grad_out[0], power);
    log2_norms_.assign(1, {});
    for (std::int64_t t = 0; t < schedule_.steps; ++t) {
      const std::int64_t k = schedule_.after(t);
      log2_norms_[0].push_back(k ? segments_->log2_norms()[0][static_cast<std::size_t>(k - 1)] : first);
    }
    if (c.grad_in[0]) c.backend.add_scaled(type_, n_, power, c.grad_out[0], c.grad_in[0], true);
  }
  void tangent(const TangentCall& c) override { c.backend.copy(c.tangent_out[0], c.tangent_in[0], static_cast<std::size_t>(n_) * bytes_of(type_)); }
  Cost cost() const override { return {}; }
  EvaluationOrder evaluation_order() const override { return {.draw = drawing::segments, .steps = schedule_.steps, .chunk = schedule_.length, .cached_steps = schedule_.cached_steps}; }

 private:
  DType type_;
  std::int64_t n_;
  SegmentSchedule schedule_;
  const Memory* segments_ = nullptr;
};

/// The memory after each step, from that of the start and those that the segments left; for the record alone.
class RepeatOverSteps final : public Operation {
 public:
  RepeatOverSteps(DType type, std::int64_t n, const SegmentSchedule& schedule) : size_(static_cast<std::size_t>(n) * bytes_of(type)), schedule_(schedule) {}
  void forward(const ForwardCall& c) override { spread(c.backend, c.in, c.out[0]); }
  void backward(const BackwardCall&) override {}
  void tangent(const TangentCall& c) override { spread(c.backend, c.tangent_in, c.tangent_out[0]); }
  bool passes_gradient() const override { return false; }
  bool passes_tangent() const override { return true; }
  Cost cost() const override { return {}; }

 private:
  std::size_t size_;
  SegmentSchedule schedule_;

  void spread(Backend& backend, std::span<const void* const> in, void* to) const {
    for (std::int64_t t = 0; t < schedule_.steps; ++t) {
      const std::int64_t k = schedule_.after(t);
      const void* from = in[k ? 1 : 0];
      char* row = static_cast<char*>(to) + static_cast<std::size_t>(t) * size_;
      if (from)
        backend.copy(row, static_cast<const char*>(from) + (k ? static_cast<std::size_t>(k - 1) * size_ : 0), size_);
      else
        backend.zero(row, size_);
    }
  }
};

/// [steps, batch, features] <-> [batch, steps, features].
Var swapped(Var x) {
  const int axes[] = {1, 0, 2};
  return permute(x, axes);
}

}  // namespace

Var segments(Layer& layer, const StateSpec& memory, Var first, Var x, std::int64_t length, const SegmentFunction& segment) {
  layer.run_as_one();
  Graph& graph = layer.graph();
  const std::int64_t B = layer.batch(), unread = layer.cached_steps() % length, all = unread + layer.steps(), full = all / length, rest = all % length, features = x.dim(-1);
  const SegmentSchedule schedule{length, unread, layer.steps()};

  // At the start of the sequence the memory is a parameter, later what was carried over: `started` is 0 or 1.
  Shape shape = memory.shape, ones(memory.shape.size() + 1, 1);
  shape.insert(shape.begin(), B);
  ones[0] = B;
  const Var started = reshape(sign(slice(layer.position(), 0, 0, 1)), ones), carried = graph.leaf(LeafKind::variable, shape, graph.real());
  const Var start = first * (1.0 - started) + carried * started;
  auto operation = std::make_unique<SegmentMemory>(graph.real(), count(shape), schedule);
  SegmentMemory* held = operation.get();
  const Var begin = graph.apply(std::move(operation), {start}, {{shape, graph.real()}})[0];

  const Var before = graph.leaf(LeafKind::variable, {unread, B, features}, x.dtype());
  if (unread) {
    const Var parts[] = {before, x};
    x = concat(parts, 0);
  }
  std::vector<Var> reads, spread{begin};
  Var now = begin;
  if (full) {
    const int axes[] = {0, 2, 1, 3};
    const Var tokens = permute(reshape(slice(x, 0, 0, full * length), {full, length, B, features}), axes);
    const StepVars vars = step(graph, B, {{memory.name, memory.shape}}, {tokens},
                                       [&](Cell&, std::span<const Var> u, std::span<const Var> s) {
                                         const SegmentResult result = segment(s[0], u[0]);
                                         return std::vector<Var>{result.memory, result.reads};
                                       },
                                       {begin});
    held->follow(vars.memory);
    spread.push_back(vars.trajectories[0]);
    now = vars.finals[0];
    reads.push_back(reshape(permute(vars.reads[0], axes), {full * length, B, -1}));
  }
  const Var unfinished = slice(x, 0, all - rest, all);
  if (rest) reads.push_back(swapped(segment(now, swapped(unfinished)).reads));

  shape.insert(shape.begin(), layer.steps());
  const Var trajectory =
      layer.records() ? graph.apply(std::make_unique<RepeatOverSteps>(graph.real(), count(shape) / layer.steps(), schedule), spread, {{shape, graph.real()}})[0] : Var{};
  layer.declare({memory}, {held, {carried}, {trajectory}, {now}});
  layer.carry({.name = "segment", .text = "The layer's inputs since the start of the unfinished segment.", .shape = {features}, .initial = before, .final_state = unfinished, .growing = true, .period = length});
  return slice(reads.size() == 1 ? reads[0] : concat(reads, 0), 0, unread, all);
}

}  // namespace reclab
