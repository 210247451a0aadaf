// SPDX-License-Identifier: GPL-3.0-or-later
// A nonlinear recurrence: a cell, run step by step or by Newton's iteration.
#pragma once

#include "recurrence/layer.h"

namespace reclab {

struct StateShape {
  std::string name;
  Shape shape;  ///< without batch
};

/// The gates that a cell names while it is built.
struct CellGate {
  std::string name, text;
  double low, high;
  Var inner;       ///< in the cell
  Var trajectory;  ///< [steps, batch, ...] in the layer's graph
};
class Cell {
 public:
  /// Names a gate for the record and returns it. low = high = 0: unbounded.
  Var gate(std::string name, Var value, double low, double high, std::string text) {
    gates_.push_back({std::move(name), std::move(text), low, high, value, {}});
    return value;
  }
  std::vector<CellGate>& gates() { return gates_; }

 private:
  std::vector<CellGate> gates_;
};
/// s_t = f(s_{t-1}, u_t): from this step's tokens [batch, ...] and the previous states [batch, ...] to the new states, and after them the
/// reads of this step, which are not fed back.
using CellFunction = std::function<std::vector<Var>(Cell& cell, std::span<const Var> tokens, std::span<const Var> states)>;

struct StepVars : MemoryVars {
  std::vector<CellGate> gates;
  std::vector<Var> reads;  ///< [steps, batch, ...]
};
/// The entries of the previous states that an entry of the next ones depends on: they decide the sparsity and the cost of the transition.
enum class Sees : std::uint8_t {
  all,
  own_column,  ///< the one state is [blocks, size, repeats], and the cell does the same to each column of a block, seeing no other
  own_entry    ///< all states are of one shape, and an entry of the next ones depends on that entry of theirs alone
};
/// A nonlinear recurrence. Forms: sequential, newton, quasi_newton, damped_newton. `initial`: states that the graph has made; empty: leaves
/// of its own. For a single state whose entries see themselves alone, the Newton forms take the whole Jacobian for the price of its
/// diagonal.
StepVars step(Graph& graph, std::int64_t batch, const std::vector<StateShape>& states, const std::vector<Var>& tokens,
              const CellFunction& cell, const std::vector<Var>& initial = {}, Form form = Form::sequential, Sees sees = Sees::all);

/// Declares that the transition of a column is scale I + u v^T, of so low a rank, for a recurrence whose cell sees its own column:
/// Memory::low_rank.
void let_be_low_rank(const StepVars& vars, std::int64_t rank,
                     std::function<void(std::int64_t t, std::span<double> scale, std::span<double> u, std::span<double> v)> parts);

/// A nonlinear recurrence in a layer; returns each state's trajectory [steps, batch, ...]. Newton forms are offered where no state is
/// auxiliary.
std::vector<Var> step(Layer& layer, const std::vector<StateSpec>& states, const std::vector<Var>& tokens, const CellFunction& cell,
                      Sees sees = Sees::all);
/// The same for a cell that returns more than its states: also its reads at each step.
struct Stepped {
  std::vector<Var> states, reads;
};
Stepped step_and_read(Layer& layer, const std::vector<StateSpec>& states, const std::vector<Var>& tokens, const CellFunction& cell,
                      Sees sees = Sees::all);

}  // namespace reclab
