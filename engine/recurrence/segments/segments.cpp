// SPDX-License-Identifier: GPL-3.0-or-later
// A recurrence whose step is a segment of time. A sequence that goes on inside a segment computes that segment again from its start, so
// that the same rows are made from the same numbers wherever a run was cut.
#include <algorithm>

#include "autodiff/ops.h"
#include "recurrence/evaluation_order.h"
#include "recurrence/segments/drawing.h"
#include "recurrence/segments/segments.h"

namespace reclab {
namespace {

/// The index of the memory after each step: 0 at the start, k after the k-th segment.
struct SegmentSchedule {
  std::int64_t length = 1, cached_steps = 0, steps = 0;  ///< cached: steps of the unfinished segment that came before
  std::int64_t after(std::int64_t t) const { return (cached_steps + t + 1) / length; }
};

/// Passes the memory of the start on to the recurrence over segments, whose adjoint comes back as a mantissa and a power of two, and knows
/// the adjoint of the memory of each step. There is no transition from step to step.
class SegmentMemory final : public Memory, public HasEvaluationOrder {
 public:
  SegmentMemory(DType type, std::vector<std::int64_t> sizes, const SegmentSchedule& schedule, EvaluationOrder::Draw draw)
      : type_(type), sizes_(std::move(sizes)), schedule_(schedule), draw_(draw) {}
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
  EvaluationOrder evaluation_order() const override {
    return {.draw = draw_, .steps = schedule_.steps, .chunk = schedule_.length, .cached_steps = schedule_.cached_steps};
  }

 private:
  DType type_;
  std::vector<std::int64_t> sizes_;
  SegmentSchedule schedule_;
  EvaluationOrder::Draw draw_;
  const Memory* segments_ = nullptr;
  std::size_t bytes(std::size_t i) const { return static_cast<std::size_t>(sizes_[i]) * bytes_of(type_); }
};

/// The memories that all segments left, [segments, batch, ...], where none is made of another: passes them on and knows their adjoints.
class LeftMemories final : public Memory {
 public:
  LeftMemories(DType type, std::int64_t segments, std::int64_t n) : type_(type), segments_(segments), n_(n) {}
  Transition transition() const override { return Transition::none("the memory changes once a segment"); }
  void forward(const ForwardCall& c) override { c.backend.copy(c.out[0], c.in[0], bytes() * static_cast<std::size_t>(segments_)); }
  void backward(const BackwardCall& c) override {
    log2_norms_.assign(1, {});
    for (std::int64_t k = 0; k < segments_; ++k)
      log2_norms_[0].push_back(
          c.backend.log2_norm(type_, n_, static_cast<const char*>(c.grad_out[0]) + static_cast<std::size_t>(k) * bytes(), 0));
    if (c.grad_in[0]) c.backend.add_scaled(type_, segments_ * n_, 0, c.grad_out[0], c.grad_in[0], true);
  }
  void tangent(const TangentCall& c) override {
    const std::size_t all = bytes() * static_cast<std::size_t>(segments_);
    if (c.tangent_in[0])
      c.backend.copy(c.tangent_out[0], c.tangent_in[0], all);
    else
      c.backend.zero(c.tangent_out[0], all);
  }
  Cost cost() const override { return {}; }

 private:
  DType type_;
  std::int64_t segments_, n_;
  std::size_t bytes() const { return static_cast<std::size_t>(n_) * bytes_of(type_); }
};

/// The last memory, whose adjoint from later segments of the run enters here.
class LastMemory final : public Operation {
 public:
  LastMemory(DType type, std::vector<std::int64_t> sizes, const SegmentMemory& memory)
      : type_(type), sizes_(std::move(sizes)), memory_(memory) {}
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

/// Repeats the initial values and those after each segment over the steps. A state's trajectory is for the record alone; a gate's passes
/// the gradient.
class RepeatOverSteps final : public Operation {
 public:
  RepeatOverSteps(DType type, std::int64_t n, const SegmentSchedule& schedule, bool passes)
      : type_(type), n_(n), size_(static_cast<std::size_t>(n) * bytes_of(type)), schedule_(schedule), passes_(passes) {}
  void forward(const ForwardCall& c) override { spread(c.backend, c.in, c.out[0]); }
  void backward(const BackwardCall& c) override {
    for (std::int64_t t = 0; t < schedule_.steps; ++t) {
      const std::int64_t k = schedule_.after(t);
      void* to = c.grad_in[k ? 1 : 0];
      if (to)
        c.backend.add_scaled(type_, n_, 0, static_cast<const char*>(c.grad_out[0]) + static_cast<std::size_t>(t) * size_,
                             static_cast<char*>(to) + (k ? static_cast<std::size_t>(k - 1) * size_ : 0), true);
    }
  }
  bool is_pure() const override { return true; }
  bool reads_input(std::size_t) const override { return false; }
  bool reads_output(std::size_t) const override { return false; }
  void tangent(const TangentCall& c) override { spread(c.backend, c.tangent_in, c.tangent_out[0]); }
  bool passes_gradient() const override { return passes_; }
  bool passes_tangent() const override { return true; }
  Cost cost() const override { return {}; }

 private:
  DType type_;
  std::int64_t n_;
  std::size_t size_;
  SegmentSchedule schedule_;
  bool passes_;

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
    const Var zeros = tokens.graph->constant({batch, length - rows, features},
                                             std::vector<double>(static_cast<std::size_t>(batch * (length - rows) * features), 0.0));
    const Var parts[] = {tokens, zeros};
    return SegmentResult{slice(full(cell, memory, concat(parts, 1)).reads, 1, 0, rows), {}};
  };
}

namespace {

/// The parts of a recurrence over segments that its two forms share: the start, the unfinished segment and the record.
class Segments {
 public:
  Segments(Graph& graph, std::int64_t batch, std::vector<Var> begin, Var x, std::int64_t unread, std::int64_t length,
           EvaluationOrder::Draw draw)
      : full(x.dim(0) / length),
        rest(x.dim(0) % length),
        graph_(graph),
        batch_(batch),
        length_(length),
        x_(x),
        schedule_{length, unread, x.dim(0) - unread} {
    for (const Var b : begin) {
      sizes_.push_back(count(b.shape()));
      shapes_.emplace_back(b.shape(), graph.real());
    }
    auto operation = std::make_unique<SegmentMemory>(graph.real(), sizes_, schedule_, draw);
    held_ = operation.get();
    started = graph.apply(std::move(operation), begin, shapes_);
  }
  std::vector<Var> started;  ///< the memory before the first segment
  const std::int64_t full, rest;

  /// [full segments, batch, length, features].
  Var tokens() const { return permute(reshape(slice(x_, 0, 0, full * length_), {full, length_, batch_, x_.dim(-1)}), swapped_axes); }
  /// [batch, rest, features].
  Var unfinished() const { return swapped(slice(x_, 0, x_.dim(0) - rest, x_.dim(0))); }
  /// Values of each step: those at the start and those after each segment (none: the start's throughout), repeated.
  Var repeated(Var start, Var of_segments, bool passes = false) const {
    Shape shape = start.shape();
    const std::int64_t n = count(shape);
    shape.insert(shape.begin(), schedule_.steps);
    std::vector<Var> in{start};
    if (of_segments) in.push_back(of_segments);
    return graph_.apply(std::make_unique<RepeatOverSteps>(graph_.real(), n, schedule_, passes), in, {{shape, graph_.real()}})[0];
  }
  /// From the reads of full segments [full, batch, length, out] and those of the rest [batch, rest, out], where there are such, the
  /// memories that each segment left and the last of them, and the operation that knows their adjoints.
  SegmentVars made(Var of_full, Var of_rest, const std::vector<Var>& left, const std::vector<Var>& finals, const Memory* of_left,
                   bool record) const {
    held_->follow(of_left);
    std::vector<Var> reads;
    if (of_full) reads.push_back(reshape(permute(of_full, swapped_axes), {full * length_, batch_, -1}));
    if (of_rest) reads.push_back(swapped(of_rest));
    SegmentVars vars;
    vars.memory = held_;
    vars.reads = reads.size() == 1 ? reads[0] : concat(reads, 0);
    vars.finals = graph_.apply(std::make_unique<LastMemory>(graph_.real(), sizes_, *held_), finals, shapes_);
    vars.trajectories.resize(started.size());
    for (std::size_t i = 0; record && i < started.size(); ++i) vars.trajectories[i] = repeated(started[i], left[i]);
    return vars;
  }

 private:
  static constexpr int swapped_axes[] = {0, 2, 1, 3};
  Graph& graph_;
  std::int64_t batch_, length_;
  Var x_;
  SegmentSchedule schedule_;
  std::vector<std::int64_t> sizes_;
  std::vector<std::pair<Shape, DType>> shapes_;
  SegmentMemory* held_;
};

}  // namespace

SegmentVars segments(Graph& graph, std::int64_t batch, const std::vector<StateShape>& memory, const std::vector<Var>& begin, Var x,
                     std::int64_t unread, std::int64_t length, const SegmentFunction& segment, bool record,
                     const std::vector<SegmentGate>& gates) {
  const Segments all(graph, batch, begin, x, unread, length, drawing::segments);
  std::vector<Var> left(memory.size()), finals = all.started;
  Var of_full, of_rest;
  StepVars vars;
  if (all.full) {
    vars = step(
        graph, batch, memory, {all.tokens()},
        [&](Cell& cell, std::span<const Var> u, std::span<const Var> s) {
          SegmentResult result = segment(cell, s, u[0]);
          std::vector<Var> next = std::move(result.memory);
          next.push_back(result.reads);
          return next;
        },
        all.started);
    left = vars.trajectories;
    finals = vars.finals;
    of_full = vars.reads[0];
  }
  if (all.rest) {
    Cell cell;
    of_rest = segment(cell, finals, all.unfinished()).reads;
  }
  SegmentVars made = all.made(of_full, of_rest, left, finals, vars.memory, record);
  if (gates.empty()) return made;
  // The gates of a full segment, also where there is none yet, so that their names and shapes are known.
  if (!all.full) {
    Cell cell;
    segment(cell, all.started,
            graph.constant({batch, length, x.dim(-1)}, std::vector<double>(static_cast<std::size_t>(batch * length * x.dim(-1)), 0.0)));
    vars.gates = std::move(cell.gates());
  }
  for (const SegmentGate& gate : gates)
    for (CellGate& g : vars.gates) {
      if (g.name != gate.name) continue;
      const Shape shape = all.full ? Shape(g.trajectory.shape().begin() + 1, g.trajectory.shape().end()) : g.inner.shape();
      const Var before = graph.constant(shape, std::vector<double>(static_cast<std::size_t>(count(shape)), gate.before));
      g.trajectory = all.repeated(before, all.full ? g.trajectory : Var{}, true);
      made.gates.push_back(g);
    }
  return made;
}

SegmentVars segment_contexts(Graph& graph, std::int64_t batch, Var begin, Var x, std::int64_t unread, std::int64_t length,
                             const SegmentContext& context, bool record) {
  const Segments all(graph, batch, {begin}, x, unread, length, drawing::contexts);
  const std::int64_t full = all.full, features = x.dim(-1);
  const auto with_first = [](Shape shape, std::int64_t first) {
    shape.front() = first;
    return shape;
  };
  Shape one = begin.shape();
  one.insert(one.begin(), 1);
  Var left, last = all.started[0], of_full, of_rest;
  const Memory* of_left = nullptr;
  if (full) {
    const Var tokens = reshape(all.tokens(), {full * batch, length, features});
    auto operation = std::make_unique<LeftMemories>(graph.real(), full, count(begin.shape()));
    of_left = operation.get();
    left = graph.apply(std::move(operation), {reshape(context.left(tokens), with_first(one, full))},
                       {{with_first(one, full), graph.real()}})[0];
    last = reshape(slice(left, 0, full - 1, full), begin.shape());
    const Var parts[] = {reshape(all.started[0], one), slice(left, 0, 0, full - 1)};
    const Var reads = context.reads(reshape(full > 1 ? concat(parts, 0) : parts[0], with_first(begin.shape(), full * batch)), tokens);
    of_full = reshape(reads, {full, batch, length, -1});
  }
  if (all.rest) {
    const Var zeros = graph.constant({batch, length - all.rest, features},
                                     std::vector<double>(static_cast<std::size_t>(batch * (length - all.rest) * features), 0.0));
    const Var filled[] = {all.unfinished(), zeros};
    of_rest = slice(context.reads(last, concat(filled, 1)), 1, 0, all.rest);
  }
  return all.made(of_full, of_rest, {left}, {last}, of_left, record);
}

namespace {

/// As a part of a layer: `make` has the memories before the first segment [batch, ...], the sequence with the unfinished segment that came
/// before it in front, and how many steps those are.
using Make = std::function<SegmentVars(const std::vector<Var>& begin, Var x, std::int64_t unread)>;
Var as_layer(Layer& layer, const std::vector<StateSpec>& memory, const std::vector<Var>& first, Var x, std::int64_t length,
             const Make& make) {
  layer.require_single_segment();
  Graph& graph = layer.graph();
  const std::int64_t B = layer.batch(), unread = layer.cached_steps() % length, all = unread + layer.steps(), features = x.dim(-1);

  // At the start of the sequence the memory is a parameter, later the carried one: `started` is 0 or 1.
  const Var at = sign(slice(layer.position(), 0, 0, 1));
  std::vector<Var> begin, initial;
  for (std::size_t i = 0; i < memory.size(); ++i) {
    Shape shape = memory[i].shape, ones(memory[i].shape.size() + 1, 1);
    shape.insert(shape.begin(), B);
    ones[0] = B;
    const Var started = reshape(at, ones);
    initial.push_back(graph.leaf(LeafKind::variable, shape, graph.real()));
    begin.push_back(first[i] * (1.0 - started) + initial.back() * started);
  }
  const Var before = graph.leaf(LeafKind::variable, {unread, B, features}, x.dtype());
  if (unread) {
    const Var parts[] = {before, x};
    x = concat(parts, 0);
  }
  SegmentVars vars = make(begin, x, unread);
  vars.initial = initial;
  for (const CellGate& g : vars.gates) layer.gate(g.name, g.trajectory, g.low, g.high, g.text);
  layer.declare(memory, vars);
  layer.add_carried_state({.name = "segment",
                           .text = "The layer's inputs since the start of the unfinished segment.",
                           .shape = {features},
                           .initial = before,
                           .final_state = slice(x, 0, all - all % length, all),
                           .growing = true,
                           .period = length});
  return slice(vars.reads, 0, unread, all);
}

}  // namespace

Var segments(Layer& layer, const std::vector<StateSpec>& memory, const std::vector<Var>& first, Var x, std::int64_t length,
             const SegmentFunction& segment, const std::vector<SegmentGate>& gates) {
  std::vector<StateShape> shapes;
  for (const StateSpec& state : memory) shapes.push_back({state.name, state.shape});
  return as_layer(layer, memory, first, x, length, [&](const std::vector<Var>& begin, Var all, std::int64_t unread) {
    return segments(layer.graph(), layer.batch(), shapes, begin, all, unread, length, segment, layer.records(), gates);
  });
}

Var segment_contexts(Layer& layer, const StateSpec& memory, Var first, Var x, std::int64_t length, const SegmentContext& context) {
  return as_layer(layer, {memory}, {first}, x, length, [&](const std::vector<Var>& begin, Var all, std::int64_t unread) {
    return segment_contexts(layer.graph(), layer.batch(), begin[0], all, unread, length, context, layer.records());
  });
}

}  // namespace reclab
