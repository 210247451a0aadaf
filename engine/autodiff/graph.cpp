// SPDX-License-Identifier: GPL-3.0-or-later
#include "autodiff/graph.h"

#include <algorithm>

#include "array/demand.h"
#include "array/error.h"
#include "autodiff/fresh.h"
#include "autodiff/units.h"

namespace reclab {

struct Graph::Node {
  Shape shape;
  DType dtype;
  int step = -1;  // the operation that makes it; -1: a leaf or an alias
  int base = -1;  // of an alias
  std::int64_t offset = 0;
  bool leaf = false, differentiable = false, varying = false, placed = false;
  std::size_t output = 0;  // of the operation that makes it
  LeafKind kind = LeafKind::constant;
  std::vector<double> constant;
  void* value = nullptr;
  const void* bound = nullptr;
  void* gradient = nullptr;
  mutable bool fresh = false;  // nothing was added to the gradient yet: its memory is uninitialised and stands for zeros

  /// The node whose memory this one's gradient is in.
  static const Node& owner(const Graph& graph, int id) {
    const Node& node = graph.nodes_[static_cast<std::size_t>(id)];
    return node.base >= 0 ? graph.nodes_[static_cast<std::size_t>(node.base)] : node;
  }
  /// The memory of a gradient that is still fresh becomes zeros.
  static void settle(const Graph& graph, int id) {
    const Node& node = owner(graph, id);
    if (!node.fresh) return;
    if (node.gradient) graph.backend_->zero(node.gradient, size_of(node));
    node.fresh = false;
  }
};

struct Graph::Step {
  std::unique_ptr<Operation> operation;
  OverwritesGradient* writes = nullptr;  // the operation, where it is one
  std::vector<int> in, out;
  bool differentiable = false, varying = false;
  std::vector<const void*> in_data, out_const, grad_out;
  std::vector<void*> out_data, grad_in;
  std::vector<char> written, fresh;  // of the inputs: whether the operation can write the gradient where it is fresh, and does now
};

struct Graph::Tangent {
  const void* data = nullptr;  // null: the array stands still
  DeviceArray made;            // where an operation makes it
};

const Shape& Var::shape() const { return graph->shape(*this); }
DType Var::dtype() const { return graph->dtype(*this); }
std::int64_t Var::dim(int axis) const {
  const Shape& s = shape();
  return s[static_cast<std::size_t>(axis < 0 ? axis + static_cast<int>(s.size()) : axis)];
}

Graph::Graph(DType real, Graph* enclosing, bool frozen) : real_(real), enclosing_(enclosing), frozen_(frozen) {
  RECLAB_DEMAND(!is_complex(real));
}

Graph::~Graph() = default;

Var Graph::leaf(LeafKind kind, Shape shape, DType dtype) {
  Node node;
  node.shape = std::move(shape);
  node.dtype = dtype;
  node.leaf = true;
  node.kind = kind;
  node.differentiable = kind == LeafKind::variable || kind == LeafKind::captured;
  node.varying = kind == LeafKind::variable || kind == LeafKind::given;
  nodes_.push_back(std::move(node));
  return {this, static_cast<int>(nodes_.size()) - 1};
}

Var Graph::constant(Shape shape, std::vector<double> values) {
  RECLAB_DEMAND(count(shape) == static_cast<std::int64_t>(values.size()));
  const Var var = leaf(LeafKind::constant, std::move(shape), real_);
  nodes_.back().constant = std::move(values);
  return var;
}

Var Graph::adopt(Var var) {
  RECLAB_DEMAND(var);
  if (var.graph == this) return var;
  RECLAB_DEMAND(enclosing_ && "an array of a graph that does not enclose this one");
  const Var outer = enclosing_->adopt(var);
  for (const auto& capture : captures_)
    if (capture.outer.id == outer.id) return capture.inner;
  const Var inner = leaf(LeafKind::captured, enclosing_->shape(outer), enclosing_->dtype(outer));
  nodes_.back().differentiable = !frozen_ && enclosing_->wants_gradient(outer);
  captures_.push_back({outer, inner});
  return inner;
}

std::vector<Var> Graph::apply(std::unique_ptr<Operation> operation, std::vector<Var> inputs, std::vector<std::pair<Shape, DType>> outputs) {
  Step step;
  step.operation = std::move(operation);
  step.writes = dynamic_cast<OverwritesGradient*>(step.operation.get());
  for (const Var& input : inputs) {
    const Var own = adopt(input);
    step.in.push_back(own.id);
    const Node& node = nodes_[static_cast<std::size_t>(own.id)];
    step.differentiable |= node.differentiable;
    step.varying |= node.varying;
  }
  step.differentiable = step.differentiable && step.operation->passes_gradient();
  std::vector<Var> made;
  for (auto& [shape, dtype] : outputs) {
    Node node;
    node.shape = std::move(shape);
    node.dtype = dtype;
    node.step = static_cast<int>(steps_.size());
    node.differentiable = step.differentiable;
    node.varying = step.varying;
    node.output = made.size();
    nodes_.push_back(std::move(node));
    made.push_back({this, static_cast<int>(nodes_.size()) - 1});
    step.out.push_back(made.back().id);
  }
  steps_.push_back(std::move(step));
  return made;
}

void Graph::visit(const std::function<void(const Operation&, std::span<const Var>, std::span<const Var>)>& f) {
  const auto vars = [this](const std::vector<int>& ids) {
    std::vector<Var> made;
    for (const int id : ids) made.push_back({this, id});
    return made;
  };
  for (const Step& step : steps_) f(*step.operation, vars(step.in), vars(step.out));
}

Var Graph::alias(Var of, Shape shape, std::int64_t offset) {
  const Var own = adopt(of);
  const Node& base = nodes_[static_cast<std::size_t>(own.id)];
  RECLAB_DEMAND(offset >= 0 && offset + count(shape) <= count(base.shape));
  Node node;
  node.shape = std::move(shape);
  node.dtype = base.dtype;
  node.base = base.base >= 0 ? base.base : own.id;
  node.offset = base.offset + offset;
  node.differentiable = base.differentiable;
  node.varying = base.varying;
  nodes_.push_back(std::move(node));
  return {this, static_cast<int>(nodes_.size()) - 1};
}

bool Graph::encloses(const Graph& inner) const {
  for (const Graph* graph = inner.enclosing_; graph; graph = graph->enclosing_)
    if (graph == this) return true;
  return false;
}

const Shape& Graph::shape(Var var) const {
  RECLAB_DEMAND(var.graph == this);
  return nodes_[static_cast<std::size_t>(var.id)].shape;
}
DType Graph::dtype(Var var) const { return nodes_[static_cast<std::size_t>(var.id)].dtype; }
bool Graph::wants_gradient(Var var) const { return nodes_[static_cast<std::size_t>(var.id)].differentiable; }

std::size_t Graph::size_of(const Node& node) { return (static_cast<std::size_t>(count(node.shape)) * bytes_of(node.dtype) + 63) / 64 * 64; }

// Constants and results have memory of their own; variables and captured leaves read the arrays that are bound to them, and what is placed
// is the caller's.
bool Graph::owns_value(const Node& node) { return node.base < 0 && !node.placed && !(node.leaf && node.kind != LeafKind::constant); }

std::int64_t Graph::planned_bytes(bool gradients) const {
  std::size_t bytes = 0;
  for (const Node& node : nodes_) {
    if (owns_value(node)) bytes += size_of(node);
    if (gradients && node.base < 0 && node.differentiable) bytes += size_of(node);
  }
  return static_cast<std::int64_t>(bytes);
}

void Graph::allocate(Backend& backend, bool gradients) {
  RECLAB_DEMAND(!backend_);
  backend_ = &backend;
  with_gradients_ = gradients;
  for (const Node& node : nodes_) {
    if (owns_value(node)) arena_bytes_[0] += size_of(node);
    if (gradients && node.base < 0 && node.differentiable) arena_bytes_[node.varying ? 1 : 2] += size_of(node);
  }
  char* next[3] = {};
  for (int i = 0; i < 3; ++i) {
    if (arena_bytes_[i]) arena_[i] = DeviceArray(backend, arena_bytes_[i]);
    next[i] = static_cast<char*>(arena_[i].data());
  }
  for (Node& node : nodes_) {
    if (owns_value(node)) {
      node.value = next[0];
      next[0] += size_of(node);
      if (!node.constant.empty()) {
        if (node.dtype == DType::f64) {
          backend.upload(node.value, node.constant.data(), node.constant.size() * sizeof(double));
        } else {
          const std::vector<float> narrow(node.constant.begin(), node.constant.end());
          backend.upload(node.value, narrow.data(), narrow.size() * sizeof(float));
        }
      }
    }
    if (gradients && node.base < 0 && node.differentiable) {
      char*& at = next[node.varying ? 1 : 2];
      node.gradient = at;
      at += size_of(node);
    }
    if (node.base >= 0) {
      Node& base = nodes_[static_cast<std::size_t>(node.base)];
      if (base.gradient) node.gradient = static_cast<char*>(base.gradient) + node.offset * static_cast<std::int64_t>(bytes_of(node.dtype));
    }
  }
  for (Step& step : steps_) {
    step.in_data.resize(step.in.size());
    step.grad_in.resize(step.in.size());
    step.out_data.resize(step.out.size());
    step.out_const.resize(step.out.size());
    step.grad_out.resize(step.out.size());
    for (std::size_t i = 0; i < step.out.size(); ++i) {
      const Node& node = nodes_[static_cast<std::size_t>(step.out[i])];
      step.out_data[i] = node.value;
      step.out_const[i] = node.value;
      step.grad_out[i] = node.gradient;
    }
    step.written.resize(step.in.size());
    step.fresh.resize(step.in.size());
    for (std::size_t i = 0; i < step.in.size(); ++i) {
      const Node& node = nodes_[static_cast<std::size_t>(step.in[i])];
      step.grad_in[i] = node.gradient;
      const Node& own = Node::owner(*this, step.in[i]);
      step.written[i] = step.writes && step.writes->writes(i) && own.gradient && count(node.shape) == count(own.shape) &&
                        std::ranges::count_if(step.in, [&](int other) { return &Node::owner(*this, other) == &own; }) == 1;
    }
  }
  lay_out_runs();
}

void* Graph::data(int id) const {
  const Node& node = nodes_[static_cast<std::size_t>(id)];
  if (node.base >= 0) return static_cast<char*>(data(node.base)) + node.offset * static_cast<std::int64_t>(bytes_of(node.dtype));
  if (node.bound) return const_cast<void*>(node.bound);
  return node.value;
}

void Graph::bind(Var leaf, const void* data) {
  Node& node = nodes_[static_cast<std::size_t>(leaf.id)];
  RECLAB_DEMAND(leaf.graph == this && node.leaf);
  node.bound = data;
}
bool Graph::let_be_placed(Var made) {
  Node& node = nodes_[static_cast<std::size_t>(made.id)];
  RECLAB_DEMAND(made.graph == this && !backend_);
  if (node.step < 0 || !node.varying) return false;
  node.placed = true;
  return true;
}
void Graph::place(Var made, void* to) {
  Node& node = nodes_[static_cast<std::size_t>(made.id)];
  Step& step = steps_[static_cast<std::size_t>(node.step)];
  RECLAB_DEMAND(made.graph == this && node.placed);
  node.value = to;
  step.out_data[node.output] = to;
  step.out_const[node.output] = to;
}
const void* Graph::value(Var var) const { return data(var.id); }
void* Graph::gradient(Var var) const {
  Node::settle(*this, var.id);
  return nodes_[static_cast<std::size_t>(var.id)].gradient;
}

struct Graph::Kept {
  int node;
  void* always;        // its memory outside of all runs
  std::size_t offset;  // in a run
};

void Graph::lay_out_runs() {
  std::vector<char> read(nodes_.size(), 0);
  for (const Step& step : steps_) {
    if (!step.varying || !step.differentiable) continue;
    for (std::size_t i = 0; i < step.in.size(); ++i) {
      const Node& node = nodes_[static_cast<std::size_t>(step.in[i])];
      if (step.operation->reads_input(i)) read[static_cast<std::size_t>(node.base >= 0 ? node.base : step.in[i])] = 1;
    }
    for (std::size_t i = 0; i < step.out.size(); ++i)
      if (step.operation->reads_output(i)) read[static_cast<std::size_t>(step.out[i])] = 1;
  }
  for (std::size_t i = 0; i < nodes_.size(); ++i) {
    const Node& node = nodes_[i];
    if (!read[i] || !node.varying || node.step < 0 || node.placed) continue;
    kept_.push_back({static_cast<int>(i), node.value, run_bytes_});
    run_bytes_ += size_of(node);
  }
}

bool Graph::is_pure() const {
  return std::ranges::all_of(steps_, [](const Step& step) { return !step.varying || step.operation->is_pure(); });
}

void Graph::keep_runs(std::int64_t runs) {
  select_run(-1);
  const std::size_t bytes = static_cast<std::size_t>(runs) * run_bytes_;
  if (runs_.bytes() == bytes) return;
  runs_ = {};
  if (bytes) runs_ = DeviceArray(*backend_, bytes);
}

void Graph::select_run(std::int64_t run) {
  if (run == run_ || kept_.empty()) return;
  char* begin = run < 0 ? nullptr : static_cast<char*>(runs_.data()) + static_cast<std::size_t>(run) * run_bytes_;
  for (const Kept& kept : kept_) {
    Node& node = nodes_[static_cast<std::size_t>(kept.node)];
    Step& step = steps_[static_cast<std::size_t>(node.step)];
    node.value = begin ? begin + kept.offset : kept.always;
    step.out_const[node.output] = step.out_data[node.output] = node.value;
  }
  // On the way back the run before comes next, and no processor foresees that.
  constexpr std::size_t line = 64;
  if (run > 0 && run == run_ - 1)
    for (const char* at = begin - run_bytes_; at < begin; at += line) __builtin_prefetch(at, 0, 2);
  run_ = run;
}

void Graph::run_step(Step& step, std::stop_token stop, bool backward_follows) {
  for (std::size_t i = 0; i < step.in.size(); ++i) step.in_data[i] = data(step.in[i]);
  step.operation->forward({*backend_, step.in_data, step.out_data, std::move(stop), backward_follows});
}

void Graph::forward(std::stop_token stop, Part part, bool backward_follows) {
  for (Step& step : steps_) {
    if (part != Part::all && step.varying != (part == Part::varying)) continue;
    if (stop.stop_requested()) throw Cancelled();
    run_step(step, stop, backward_follows);
  }
}

/// An operation of a phase, close together in memory: a step comes back to all of them when the weights have gone through the nearest
/// caches.
struct Graph::UnitStep {
  static constexpr std::size_t most_inputs = 5;
  RunsByUnits* by_units;
  std::int64_t times;  // the output's entries, in units
  std::int64_t work;   // multiply-adds
  std::size_t inputs;
  const void* in[most_inputs];
  void* out;
  int in_ids[most_inputs], out_id;
  bool moves[most_inputs], out_moves;               // from run to run
  std::ptrdiff_t in_apart[most_inputs], out_apart;  // bytes from a run to the next
};

std::size_t Graph::plan_units(std::int64_t units) {
  unit_phases_.assign(1, {});
  units_ = units;
  std::vector<std::ptrdiff_t> phase_of(nodes_.size(), -1);  // of the nodes that operations make here
  const auto none = [&] {
    unit_phases_.clear();
    return std::size_t{0};
  };
  for (Step& step : steps_) {
    if (!step.varying) continue;
    auto* by_units = dynamic_cast<RunsByUnits*>(step.operation.get());
    if (!by_units || by_units->entries() == RunsByUnits::Entries::none) return none();
    if (step.out.size() != 1 || step.in.size() > UnitStep::most_inputs) return none();
    const bool product = by_units->entries() == RunsByUnits::Entries::product;
    const std::int64_t entries = count(nodes_[static_cast<std::size_t>(step.out[0])].shape);
    if (product ? entries % units != 0 : entries != units) return none();
    std::ptrdiff_t phase = std::ssize(unit_phases_) - 1;
    UnitStep own{by_units, entries / units, 0, step.in.size(), {}, nullptr, {}, step.out[0], {}, false, {}, 0};
    own.out_moves = nodes_[static_cast<std::size_t>(step.out[0])].placed;
    for (std::size_t i = 0; i < step.in.size(); ++i) {
      const Node &node = nodes_[static_cast<std::size_t>(step.in[i])], &base = Node::owner(*this, step.in[i]);
      own.in_ids[i] = step.in[i];
      own.moves[i] = base.placed || (base.leaf && base.varying);
      const std::int64_t size = count(node.shape);
      const std::ptrdiff_t made = phase_of[node.base >= 0 ? static_cast<std::size_t>(node.base) : static_cast<std::size_t>(step.in[i])];
      if (product && i == 0) {
        own.work = size * entries;
        if (made == phase) ++phase;
      } else if (made == phase && (size != entries || node.offset % units != 0)) {
        return none();  // entries of other units
      }
    }
    if (phase == std::ssize(unit_phases_)) unit_phases_.emplace_back();
    unit_phases_.back().push_back(own);
    phase_of[static_cast<std::size_t>(step.out[0])] = phase;
  }
  return unit_phases_[0].empty() ? none() : unit_phases_.size();
}
std::int64_t Graph::unit_work(std::size_t phase) const {
  std::int64_t work = 0;
  for (const UnitStep& one : unit_phases_[phase]) work += one.work;
  return work;
}
void Graph::point_units(bool moving) {
  for (auto& phase : unit_phases_)
    for (UnitStep& one : phase) {
      for (std::size_t i = 0; i < one.inputs; ++i)
        if (one.moves[i] == moving) one.in[i] = data(one.in_ids[i]);
      if (one.out_moves == moving) one.out = data(one.out_id);
    }
}
void Graph::prepare_units() { point_units(false); }
void Graph::begin_units(int members) {
  point_units(true);
  unit_members_.resize(static_cast<std::size_t>(members));
  for (UnitMember& own : unit_members_) own = {unit_phases_};
}
void Graph::step_units() {
  point_units(true);
  const auto apart = [](const void* before, const void* now) { return static_cast<const char*>(now) - static_cast<const char*>(before); };
  for (UnitMember& own : unit_members_)
    for (std::size_t phase = 0; phase < own.phases.size(); ++phase)
      for (std::size_t s = 0; s < own.phases[phase].size(); ++s) {
        UnitStep& one = own.phases[phase][s];
        const UnitStep& next = unit_phases_[phase][s];
        for (std::size_t i = 0; i < one.inputs; ++i) one.in_apart[i] = apart(one.in[i], next.in[i]);
        one.out_apart = apart(one.out, next.out);
      }
}
void Graph::advance_units(int member) {
  UnitMember& own = unit_members_[static_cast<std::size_t>(member)];
  own.backwards = !own.backwards;
  for (auto& phase : own.phases)
    for (UnitStep& one : phase) {
      for (std::size_t i = 0; i < one.inputs; ++i) one.in[i] = static_cast<const char*>(one.in[i]) + one.in_apart[i];
      one.out = static_cast<char*>(one.out) + one.out_apart;
    }
}
void Graph::run_units(int member, std::size_t phase, std::int64_t from, std::int64_t to) {
  UnitMember& own = unit_members_[static_cast<std::size_t>(member)];
  for (UnitStep& one : own.phases[phase]) {
    const ForwardCall call{*backend_, {one.in, one.inputs}, {&one.out, 1}, {}, false};
    if (from == 0 && to == units_)
      one.by_units->forward(call, {0, one.times * units_, 1, 0, own.backwards});
    else
      one.by_units->forward(call, {from, to, one.times, units_, own.backwards});
  }
}

void Graph::clear_gradients(Part part) {
  // A device is asked for one call for all of them; in the host's memory each is written when it is first needed.
  const bool at_once = backend_->device() != Device::cpu;
  if (at_once && part != Part::invariant && arena_[1]) backend_->zero(arena_[1].data(), arena_bytes_[1]);
  if (at_once && part != Part::varying && arena_[2]) backend_->zero(arena_[2].data(), arena_bytes_[2]);
  for (const Node& node : nodes_)
    if (node.gradient && node.base < 0 && (part == Part::all || node.varying == (part == Part::varying))) node.fresh = !at_once;
}

void Graph::backward(std::stop_token stop, Part part) {
  RECLAB_DEMAND(with_gradients_);
  for (std::size_t s = steps_.size(); s-- > 0;) {
    Step& step = steps_[s];
    if (!step.differentiable) continue;
    if (part != Part::all && step.varying != (part == Part::varying)) continue;
    if (stop.stop_requested()) throw Cancelled();
    for (const int out : step.out) Node::settle(*this, out);
    for (std::size_t i = 0; i < step.in.size(); ++i) {
      step.in_data[i] = data(step.in[i]);
      const Node& owner = Node::owner(*this, step.in[i]);
      step.fresh[i] = step.written[i] && owner.fresh;
      if (step.fresh[i])
        owner.fresh = false;
      else
        Node::settle(*this, step.in[i]);
    }
    const BackwardCall call{*backend_, step.in_data, step.out_const, step.grad_out, step.grad_in, stop};
    if (step.writes)
      step.writes->backward(call, step.fresh);
    else
      step.operation->backward(call);
  }
}

void Graph::bind_tangent(Var leaf, const void* tangent) {
  RECLAB_DEMAND(leaf.graph == this && nodes_[static_cast<std::size_t>(leaf.id)].leaf);
  if (tangents_.empty()) tangents_.resize(nodes_.size());
  tangents_[static_cast<std::size_t>(leaf.id)].data = tangent;
}

const void* Graph::tangent(int id) const {
  if (tangents_.empty()) return nullptr;
  const Node& node = nodes_[static_cast<std::size_t>(id)];
  const void* data = tangents_[static_cast<std::size_t>(node.base >= 0 ? node.base : id)].data;
  return data ? static_cast<const char*>(data) + node.offset * static_cast<std::int64_t>(bytes_of(node.dtype)) : nullptr;
}
const void* Graph::tangent(Var var) const { return tangent(var.id); }

void Graph::push_step(Step& step, const std::stop_token& stop) {
  std::vector<const void*> in;
  std::vector<void*> out;
  for (const int id : step.in) in.push_back(tangent(id));
  const bool moves = step.operation->passes_tangent() && std::any_of(in.begin(), in.end(), [](const void* x) { return x != nullptr; });
  for (const int id : step.out) {
    Tangent& made = tangents_[static_cast<std::size_t>(id)];
    const Node& node = nodes_[static_cast<std::size_t>(id)];
    if (moves) out.push_back(made.made.resize(*backend_, node.dtype, count(node.shape)));
    made.data = moves ? out.back() : nullptr;
  }
  if (!moves) return;
  for (std::size_t i = 0; i < step.in.size(); ++i) step.in_data[i] = data(step.in[i]);
  step.operation->tangent({*backend_, step.in_data, step.out_const, in, out, tangent_scratch_, stop});
}

void Graph::push_tangents(std::stop_token stop, Part part) {
  if (tangents_.empty()) return;
  for (Step& step : steps_) {
    if (part != Part::all && step.varying != (part == Part::varying)) continue;
    if (stop.stop_requested()) throw Cancelled();
    push_step(step, stop);
  }
}

void Graph::push_tangents(Var from, const void* moves, std::span<const Var> to, std::stop_token stop) {
  const auto base = [this](int id) {
    return static_cast<std::size_t>(nodes_[static_cast<std::size_t>(id)].base >= 0 ? nodes_[static_cast<std::size_t>(id)].base : id);
  };
  RECLAB_DEMAND(from.graph == this && count(shape(from)) == count(nodes_[base(from.id)].shape));
  tangents_.resize(nodes_.size());
  for (Tangent& tangent : tangents_) tangent.data = nullptr;
  tangents_[base(from.id)].data = moves;
  std::vector<char> asked(nodes_.size(), 0), runs(steps_.size(), 0);
  for (const Var var : to) asked[base(var.id)] = 1;
  for (std::size_t s = steps_.size(); s-- > 0;) {
    runs[s] = std::ranges::any_of(steps_[s].out, [&](int id) { return asked[static_cast<std::size_t>(id)] != 0; });
    if (runs[s])
      for (const int id : steps_[s].in) asked[base(id)] = 1;
  }
  const std::size_t first = nodes_[base(from.id)].step < 0 ? 0 : static_cast<std::size_t>(nodes_[base(from.id)].step) + 1;
  for (std::size_t s = first; s < steps_.size(); ++s) {
    if (!runs[s]) continue;
    if (stop.stop_requested()) throw Cancelled();
    push_step(steps_[s], stop);
  }
}

bool Graph::is_same_memory(Var a, Var b) const {
  const auto base = [this](Var var) {
    return nodes_[static_cast<std::size_t>(var.id)].base >= 0 ? nodes_[static_cast<std::size_t>(var.id)].base : var.id;
  };
  return a.graph == b.graph && base(a) == base(b);
}

Cost Graph::cost() const {
  Cost total{0.0, 0.0, 0.0};
  for (const Step& step : steps_) {
    const Cost cost = step.operation->cost();
    total.flops += cost.flops;
    total.bytes += cost.bytes;
    total.launches += cost.launches;
  }
  return total;
}

}  // namespace reclab
