// SPDX-License-Identifier: GPL-3.0-or-later
// A recurrence whose step is a segment of time. A sequence that goes on inside a segment computes that segment again from its start, so
// that the same rows are made from the same numbers wherever a run was cut.
#include <algorithm>
#include <cassert>

#include "autodiff/ops.h"
#include "recurrence/evaluation_order.h"
#include "recurrence/segments/drawing.h"
#include "recurrence/segments/segments.h"

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
  SegmentMemory(DType type, std::vector<std::int64_t> sizes, const SegmentSchedule& schedule) : type_(type), sizes_(std::move(sizes)), schedule_(schedule) {}
  void follow(const Memory* segments) { segments_ = segments; }
  Transition transition() const override { return Transition::none("the memory changes once a segment"); }
  void forward(const ForwardCall& c) override {
    for (std::size_t i = 0; i < sizes_.size(); ++i) c.backend.copy(c.out[i], c.in[i], bytes(i));
  }
  void backward(const BackwardCall& c) override {
    const int power = segments_ ? segments_->exponent() : 0;
    log2_norms_.assign(sizes_.size(), {});
    for (std::size_t i = 0; i < sizes_.size(); ++i) {
      const double first = c.backend.log2_norm(type_, sizes_[i], c.grad_out[i], power);
      for (std::int64_t t = 0; t < schedule_.steps; ++t) {
        const std::int64_t k = schedule_.after(t);
        log2_norms_[i].push_back(k ? segments_->log2_norms()[i][static_cast<std::size_t>(k - 1)] : first);
      }
      if (c.grad_in[i]) c.backend.add_scaled(type_, sizes_[i], power, c.grad_out[i], c.grad_in[i], true);
    }
    exponent_ = 0;
  }
  /// The adjoint of the last memory that comes from later segments of the run, to the one before the segments here.
  void add_carried(Backend& backend, std::span<void* const> to) const {
    for (std::size_t i = 0; i < carried_.size(); ++i)
      if (carried_[i] && to[i]) backend.add_scaled(type_, sizes_[i], exponent_, carried_[i], to[i], true);
  }
  void tangent(const TangentCall& c) override {
    for (std::size_t i = 0; i < sizes_.size(); ++i)
      if (c.tangent_in[i])
        c.backend.copy(c.tangent_out[i], c.tangent_in[i], bytes(i));
      else
        c.backend.zero(c.tangent_out[i], bytes(i));
  }
  Cost cost() const override { return {}; }
  EvaluationOrder evaluation_order() const override { return {.draw = drawing::segments, .steps = schedule_.steps, .chunk = schedule_.length, .cached_steps = schedule_.cached_steps}; }

 private:
  DType type_;
  std::vector<std::int64_t> sizes_;
  SegmentSchedule schedule_;
  const Memory* segments_ = nullptr;
  std::size_t bytes(std::size_t i) const { return static_cast<std::size_t>(sizes_[i]) * bytes_of(type_); }
};

/// The last memory, whose adjoint from later segments of the run enters here.
class LastMemory final : public Operation {
 public:
  LastMemory(DType type, std::vector<std::int64_t> sizes, const SegmentMemory& memory) : type_(type), sizes_(std::move(sizes)), memory_(memory) {}
  void forward(const ForwardCall& c) override {
    for (std::size_t i = 0; i < sizes_.size(); ++i) c.backend.copy(c.out[i], c.in[i], bytes(i));
  }
  void backward(const BackwardCall& c) override {
    for (std::size_t i = 0; i < sizes_.size(); ++i)
      if (c.grad_in[i]) c.backend.add_scaled(type_, sizes_[i], 0, c.grad_out[i], c.grad_in[i], true);
    memory_.add_carried(c.backend, c.grad_in);
  }
  void tangent(const TangentCall& c) override {
    for (std::size_t i = 0; i < sizes_.size(); ++i)
      if (c.tangent_in[i])
        c.backend.copy(c.tangent_out[i], c.tangent_in[i], bytes(i));
      else
        c.backend.zero(c.tangent_out[i], bytes(i));
  }
  Cost cost() const override { return {}; }

 private:
  DType type_;
  std::vector<std::int64_t> sizes_;
  const SegmentMemory& memory_;
  std::size_t bytes(std::size_t i) const { return static_cast<std::size_t>(sizes_[i]) * bytes_of(type_); }
};

/// What stands after each step, from what stands at the start and what the segments made; for the record alone.
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

SegmentFunction filled_up(std::int64_t length, SegmentFunction full) {
  return [length, full = std::move(full)](Cell& cell, std::span<const Var> memory, Var tokens) {
    const std::int64_t batch = tokens.dim(0), rows = tokens.dim(1), features = tokens.dim(2);
    if (rows == length) return full(cell, memory, tokens);
    const Var zeros = tokens.graph->constant({batch, length - rows, features}, std::vector<double>(static_cast<std::size_t>(batch * (length - rows) * features), 0.0));
    const Var parts[] = {tokens, zeros};
    return SegmentResult{slice(full(cell, memory, concat(parts, 1)).reads, 1, 0, rows), {}};
  };
}

SegmentVars segments(Graph& graph, std::int64_t batch, const std::vector<StateShape>& memory, const std::vector<Var>& begin, Var x, std::int64_t unread, std::int64_t length,
                     const SegmentFunction& segment, bool record, const std::vector<SegmentGate>& gates) {
  const std::int64_t all = x.dim(0), steps = all - unread, full = all / length, rest = all % length, features = x.dim(-1);
  const SegmentSchedule schedule{length, unread, steps};
  std::vector<std::int64_t> sizes;
  std::vector<std::pair<Shape, DType>> shapes;
  for (const Var b : begin) {
    sizes.push_back(count(b.shape()));
    shapes.emplace_back(b.shape(), graph.real());
  }
  auto operation = std::make_unique<SegmentMemory>(graph.real(), sizes, schedule);
  SegmentMemory* held = operation.get();
  SegmentVars made;
  made.memory = held;
  const std::vector<Var> started = graph.apply(std::move(operation), begin, shapes);
  made.finals = started;

  // What each step finds, repeated from what stood at the start (none: it is as the segments left it) and what the segments made.
  const auto repeated = [&](Var start, Var of_segments) {
    Shape shape = start.shape();
    const std::int64_t n = count(shape);
    shape.insert(shape.begin(), steps);
    std::vector<Var> in{start};
    if (of_segments) in.push_back(of_segments);
    return graph.apply(std::make_unique<RepeatOverSteps>(graph.real(), n, schedule), in, {{shape, graph.real()}})[0];
  };
  std::vector<Var> reads, left(memory.size());
  StepVars vars;
  if (full) {
    const int axes[] = {0, 2, 1, 3};
    const Var tokens = permute(reshape(slice(x, 0, 0, full * length), {full, length, batch, features}), axes);
    vars = step(graph, batch, memory, {tokens},
                [&](Cell& cell, std::span<const Var> u, std::span<const Var> s) {
                  SegmentResult result = segment(cell, s, u[0]);
                  std::vector<Var> next = std::move(result.memory);
                  next.push_back(result.reads);
                  return next;
                },
                started);
    held->follow(vars.memory);
    left = vars.trajectories;
    made.finals = vars.finals;
    reads.push_back(reshape(permute(vars.reads[0], axes), {full * length, batch, -1}));
  }
  if (rest) {
    Cell cell;
    reads.push_back(swapped(segment(cell, made.finals, swapped(slice(x, 0, all - rest, all))).reads));
  }
  made.reads = reads.size() == 1 ? reads[0] : concat(reads, 0);
  made.finals = graph.apply(std::make_unique<LastMemory>(graph.real(), sizes, *held), made.finals, shapes);
  if (!record) made.trajectories.resize(memory.size());
  for (std::size_t i = 0; record && i < memory.size(); ++i) made.trajectories.push_back(repeated(started[i], left[i]));
  if (gates.empty()) return made;
  // The gates of a full segment, also where there is none yet, so that their names and shapes are known.
  if (!full) {
    std::vector<CellGate> named;
    Graph& inner = graph;
    Cell cell;
    std::vector<double> nothing(static_cast<std::size_t>(batch * length * features), 0.0);
    segment(cell, started, inner.constant({batch, length, features}, std::move(nothing)));
    vars.gates = std::move(cell.gates());
  }
  for (const SegmentGate& gate : gates)
    for (CellGate& g : vars.gates) {
      if (g.name != gate.name) continue;
      const Shape shape = full ? Shape(g.trajectory.shape().begin() + 1, g.trajectory.shape().end()) : g.inner.shape();
      const Var before = graph.constant(shape, std::vector<double>(static_cast<std::size_t>(count(shape)), gate.before));
      g.trajectory = repeated(before, full ? g.trajectory : Var{});
      made.gates.push_back(g);
    }
  return made;
}

Var segments(Layer& layer, const std::vector<StateSpec>& memory, const std::vector<Var>& first, Var x, std::int64_t length, const SegmentFunction& segment,
             const std::vector<SegmentGate>& gates) {
  layer.run_as_one();
  Graph& graph = layer.graph();
  const std::int64_t B = layer.batch(), unread = layer.cached_steps() % length, all = unread + layer.steps(), features = x.dim(-1);

  // At the start of the sequence the memory is a parameter, later what was carried over: `started` is 0 or 1.
  const Var at = sign(slice(layer.position(), 0, 0, 1));
  std::vector<Var> begin, initial;
  std::vector<StateShape> shapes;
  for (std::size_t i = 0; i < memory.size(); ++i) {
    Shape shape = memory[i].shape, ones(memory[i].shape.size() + 1, 1);
    shape.insert(shape.begin(), B);
    ones[0] = B;
    const Var started = reshape(at, ones);
    initial.push_back(graph.leaf(LeafKind::variable, shape, graph.real()));
    begin.push_back(first[i] * (1.0 - started) + initial.back() * started);
    shapes.push_back({memory[i].name, memory[i].shape});
  }
  const Var before = graph.leaf(LeafKind::variable, {unread, B, features}, x.dtype());
  if (unread) {
    const Var parts[] = {before, x};
    x = concat(parts, 0);
  }
  SegmentVars vars = segments(graph, B, shapes, begin, x, unread, length, segment, layer.records(), gates);
  vars.initial = initial;
  for (const CellGate& g : vars.gates) layer.gate(g.name, g.trajectory, g.low, g.high, g.text);
  layer.declare(memory, vars);
  layer.carry({.name = "segment", .text = "The layer's inputs since the start of the unfinished segment.", .shape = {features}, .initial = before, .final_state = slice(x, 0, all - all % length, all), .growing = true, .period = length});
  return slice(vars.reads, 0, unread, all);
}

}  // namespace reclab
