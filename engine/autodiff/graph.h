// SPDX-License-Identifier: GPL-3.0-or-later
// Graph: a computation over arrays of fixed shapes, built once and run many times, with its reverse-mode adjoint.
//
// Building a Graph computes nothing: it only records operations and shapes, so the same code that runs a model also lists its
// parameters. Values live in the memory of a Backend; leaves may be bound to memory of the caller's. A Graph may have an enclosing one
// (the cell of a stepped recurrence inside a layer): a Var of the enclosing graph used inside is captured as a leaf.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "array/backend.h"
#include "array/device_array.h"
#include "array/shape.h"

namespace reclab {

class Graph;

/// A handle to one array of a Graph; cheap to copy. Default-constructed: no array.
struct Var {
  Graph* graph = nullptr;
  int id = -1;
  explicit operator bool() const { return graph != nullptr; }
  const Shape& shape() const;
  std::int64_t dim(int axis) const;  ///< negative counts from the last
  DType dtype() const;
};

/// The arguments of an operation's forward. Pointers are in the order of its inputs and outputs.
struct ForwardCall {
  Backend& backend;
  std::span<const void* const> in;
  std::span<void* const> out;
  std::stop_token stop;
  bool backward_follows = false;  ///< for these arrays: intermediate results may be kept for it
};
struct BackwardCall {
  Backend& backend;
  std::span<const void* const> in, out;
  std::span<const void* const> grad_out;
  std::span<void* const> grad_in;  ///< null where no gradient is wanted; adjoints are added
  std::stop_token stop;
};

/// The derivative in one direction (forward mode): how the outputs move when the inputs move. For a holomorphic operation on complex arrays
/// it is f'(z) dz, where the adjoint has the conjugate.
struct TangentCall {
  Backend& backend;
  std::span<const void* const> in, out;
  std::span<const void* const> tangent_in;  ///< null where an input stands still; never all of them
  std::span<void* const> tangent_out;       ///< to be written, every entry
  std::vector<DeviceArray>& scratch;        ///< shared by the operations of a graph, so none keeps its contents
  std::stop_token stop;
  /// Memory for n entries, until the end of the call; different numbers are different arrays.
  void* temporary(std::size_t number, DType type, std::int64_t n) const {
    if (scratch.size() <= number) scratch.resize(number + 1);
    return scratch[number].resize(backend, type, n);
  }
};

/// Work by formula, for the costs of the forms.
struct Cost {
  double flops = 0.0, bytes = 0.0;
  double launches = 1.0;  ///< calls of the backend, one after the other
};

class Operation {
 public:
  virtual ~Operation() = default;
  virtual void forward(const ForwardCall& call) = 0;
  virtual void backward(const BackwardCall& call) = 0;
  virtual void tangent(const TangentCall& call) = 0;
  virtual Cost cost() const = 0;  ///< of one forward call
  /// Whether backward() depends on its arguments alone, and on nothing that the last forward() left in the operation.
  virtual bool is_pure() const { return false; }
  /// Whether backward() of a pure operation reads the values of this input, or of this output.
  virtual bool reads_input(std::size_t) const { return true; }
  virtual bool reads_output(std::size_t) const { return true; }
  virtual bool passes_gradient() const { return true; }
  /// Whether the outputs move with the inputs at all, for callers that differentiate.
  virtual bool passes_tangent() const { return passes_gradient(); }
};

enum class LeafKind : std::uint8_t {
  constant,  ///< no gradient
  variable,  ///< has a gradient: inputs, parameters, states carried in
  given,     ///< has none, and differs from run to run as a variable does: an input whose gradient nobody reads
  captured   ///< an array of the enclosing graph
};

class Graph {
 public:
  /// real: f32 or f64, of all real arrays; complex arrays are of the same precision. If `frozen`, captured values have no gradient.
  explicit Graph(DType real, Graph* enclosing = nullptr, bool frozen = false);
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph();

  DType real() const { return real_; }
  DType complex() const { return complex_of(real_); }

  Var leaf(LeafKind kind, Shape shape, DType dtype);
  /// A constant with values, row-major.
  Var constant(Shape shape, std::vector<double> values);
  /// An operation's outputs.
  std::vector<Var> apply(std::unique_ptr<Operation> operation, std::vector<Var> inputs, std::vector<std::pair<Shape, DType>> outputs);
  /// The same memory seen with another shape, from an element offset on: reshapes and leading-axis slices.
  Var alias(Var of, Shape shape, std::int64_t offset = 0);
  /// This graph's handle for a Var of it or of an enclosing graph (captured on first use).
  Var adopt(Var var);

  /// Whether `inner` is a graph inside this one, at any depth.
  bool encloses(const Graph& inner) const;

  const Shape& shape(Var var) const;
  DType dtype(Var var) const;

  /// The memory that allocate() will take.
  std::int64_t planned_bytes(bool gradients) const;
  /// Takes memory for all values (and gradients). Must be called once, after building.
  void allocate(Backend& backend, bool gradients);
  bool is_allocated() const { return backend_ != nullptr; }
  Backend& backend() const { return *backend_; }

  /// Makes a leaf read from the caller's memory (kept until bound again).
  void bind(Var leaf, const void* data);
  /// Makes an operation write this output to the caller's memory, at each run to where place() said last; before allocate(). Such a value
  /// is not kept with keep_runs(): the caller places it again. False, and nothing changes, for leaves, parts of other arrays and what does
  /// not vary.
  bool let_be_placed(Var made);
  void place(Var made, void* to);
  const void* value(Var var) const;
  void* gradient(Var var) const;  ///< null without one

  /// The part of a graph that is run: all of it, the values that depend on a variable or given leaf, or the rest (captured leaves,
  /// constants and values made of them alone), which a stepped recurrence computes once and not at every step.
  enum class Part : std::uint8_t { all, varying, invariant };
  void forward(std::stop_token stop = {}, Part part = Part::all, bool backward_follows = false);
  /// Sets gradients to zero.
  void clear_gradients(Part part = Part::all);
  /// Adds the adjoints, last operation first, to the gradients that the caller put in place.
  void backward(std::stop_token stop = {}, Part part = Part::all);

  /// Keeps the varying values that backward() reads of several runs side by side, so that the adjoint of each can be had without running it
  /// again. keep_runs() allocates run_bytes() for each. After select_run() forward and backward are of that run; all other values are of
  /// the last run. -1: the run whose values all are there.
  std::int64_t run_bytes() const { return static_cast<std::int64_t>(run_bytes_); }
  void keep_runs(std::int64_t runs);
  void select_run(std::int64_t run);
  /// Whether all operations that vary are.
  bool is_pure() const;

  /// Plans the varying operations for vectors of so many units: in phases, one after the other, within which the entries of any units can
  /// be computed beside those of others. The number of phases; 0 where there is no such plan. On a host's memory.
  std::size_t plan_units(std::int64_t units);
  /// The multiply-adds of the products of a phase.
  std::int64_t unit_work(std::size_t phase) const;
  /// forward() of what varies, but by units and by several members at once, each a thread: prepare_units() after the forward of what does
  /// not vary; begin_units() with the first of some runs bound and placed, and step_units() with the second, where there is one; the arrays
  /// of further runs lie as far apart. Then each member calls run_units() for the phases, and advance_units() between the runs.
  void prepare_units();
  void begin_units(int members);
  void step_units();
  void advance_units(int member);
  void run_units(int member, std::size_t phase, std::int64_t from, std::int64_t to);

  /// Forward mode, after forward(): how all arrays move when leaves do. A leaf moves as the caller's memory says, which is kept until bound
  /// again; null, as at first: it stands still. Memory is taken at the first push, for the arrays that move alone.
  void bind_tangent(Var leaf, const void* tangent);
  /// Carries the leaves' tangents through the operations, first operation first.
  void push_tangents(std::stop_token stop = {}, Part part = Part::all);
  /// The same from an array on the way: how `to` move when `from`, all of its memory, moves as told and everything that it is not part of
  /// stands still. The bindings of leaves are forgotten.
  void push_tangents(Var from, const void* moves, std::span<const Var> to, std::stop_token stop = {});
  const void* tangent(Var var) const;  ///< null: it stands still

  struct Capture {
    Var outer, inner;
  };
  const std::vector<Capture>& captures() const { return captures_; }
  Cost cost() const;
  /// Calls f for all operations, in the order that they run in.
  void visit(const std::function<void(const Operation& operation, std::span<const Var> in, std::span<const Var> out)>& f);
  bool wants_gradient(Var var) const;
  /// Whether both are the memory of one array, or parts of it.
  bool is_same_memory(Var a, Var b) const;

 private:
  struct Node;
  struct Step;
  struct UnitStep;
  struct Tangent;
  DType real_;
  Graph* enclosing_;
  bool frozen_;
  Backend* backend_ = nullptr;
  std::vector<Node> nodes_;
  std::vector<Step> steps_;
  std::vector<Capture> captures_;
  DeviceArray arena_[3];  // values, gradients of varying arrays, gradients of the others
  std::size_t arena_bytes_[3] = {};
  struct Kept;
  std::vector<Kept> kept_;  // the arrays of which each run has its own
  std::size_t run_bytes_ = 0;
  DeviceArray runs_;
  std::int64_t run_ = -1;
  bool with_gradients_ = false;
  using UnitPhases = std::vector<std::vector<UnitStep>>;
  UnitPhases unit_phases_;
  /// Of each member its own, which no other thread writes beside.
  struct UnitMember {
    UnitPhases phases;
    bool backwards = false;  ///< turns with each run
  };
  std::vector<UnitMember> unit_members_;
  std::int64_t units_ = 0;
  std::vector<Tangent> tangents_;  // of the nodes; empty until a leaf moves
  std::vector<DeviceArray> tangent_scratch_;

  void lay_out_runs();
  void point_units(bool moving);
  static std::size_t size_of(const Node& node);
  static bool owns_value(const Node& node);
  void* data(int id) const;
  const void* tangent(int id) const;
  void run_step(Step& step, std::stop_token stop, bool backward_follows);
  void push_step(Step& step, const std::stop_token& stop);
};

}  // namespace reclab
