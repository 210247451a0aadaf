// SPDX-License-Identifier: GPL-3.0-or-later
// Layer: the services that a model's layer is built with, and that a primitive adds itself to the layer with. It knows no primitive: each
// is a function of its own in a folder beside this file, called with the layer. Sequences are [steps, batch, features...]: write for the
// last axes.
#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "autodiff/ops.h"
#include "parameters/hyper.h"
#include "parameters/init.h"
#include "recurrence/memory.h"
#include "recurrence/rate.h"

namespace reclab {

/// A state array as a model declares it; shape without time and batch.
struct StateSpec {
  std::string name;
  Shape shape;
  std::string text;
  bool auxiliary = false;  ///< no part of the layer's transition: a stabiliser that leaves the output as it is
  double start = 0.0;      ///< the value of all its entries before the first step
  bool pairs = false;      ///< real numbers that are complex ones: along the last axis all real parts, then all imaginary ones
};

/// An array that is carried over from segment to segment and is no memory's state: recorded only where it has a trajectory.
struct Buffer {
  std::string name, text;
  Shape shape;  ///< without time and batch
  Var initial{}, trajectory{}, final_state{};
  bool growing = false;     ///< the first axis is as long as the steps that have passed
  Shape recorded_shape{};   ///< of a trajectory's row where it is not that of the state
  std::int64_t period = 0;  ///< growing: it holds the steps since the last multiple of so many; 0: all steps
};

/// The polynomial basis on which a state's entries are coefficients of its signal's past.
///
/// Step s of the signal is held through the step, so after step t its middle is t - s + 1/2 steps ago; a place in the window is 0 at its
/// oldest end and 1 now, 1 - age / window.
struct PastBasis {
  double window = 0.0;  ///< steps that the state reaches back; 0: the whole past
  double first = 1.0;   ///< the whole past: how many steps long it is after step 0 (each step adds one)
  /// The last step after which the coefficients are those of the window, and the note for the user about later ones.
  std::int64_t last = std::numeric_limits<std::int64_t>::max();
  std::string beyond{};
  std::string inverse_window{};  ///< not empty: the layer's parameter [1] whose reciprocal is the window, in place of `window`
  std::string coefficient;       ///< the name of one entry: "Legendre coefficient"
  /// values [order, places]: each basis function at each place. signal(place) = sum_n values[n, place] state[n].
  std::function<void(std::span<const double> places, std::span<double> values)> values;
};

class Layer {
 public:
  Layer(Graph& graph, const Hyper& values) : hyper(values), graph_(graph) {}
  Layer(const Layer&) = delete;
  Layer& operator=(const Layer&) = delete;
  virtual ~Layer() = default;

  const Hyper& hyper;
  Graph& graph() const { return graph_; }
  virtual int index() const = 0;           ///< in its stack, 0-based; -1 outside the stack of layers
  virtual std::int64_t steps() const = 0;  ///< of the layer: rate().rows()
  virtual std::int64_t batch() const = 0;
  virtual Form form() const = 0;                  ///< that is being built
  virtual std::int64_t cached_steps() const = 0;  ///< steps that came before, where a growing state holds them
  virtual bool records() const = 0;               ///< whether memories keep every state, also those they could do without

  /// A trainable array; `text` names its role, the order of its rows and the reference implementation's name for it.
  virtual Var parameter(const std::string& name, Shape shape, const Init& init, const std::string& text) = 0;
  /// A parameter that all layers of the stack share: it stands under the first of them.
  virtual Var shared_parameter(const std::string& name, Shape shape, const Init& init, const std::string& text) = 0;
  /// The layer's rate, where its steps are several steps of the sequence long.
  virtual Rate rate() const { return {1, steps()}; }
  /// Whether this layer runs from the end of the sequence to its start.
  virtual bool backward() const { return false; }
  /// Names a sequence as a gate and returns it. low = high = 0: unbounded.
  virtual Var gate(const std::string& name, Var value, double low, double high, const std::string& text) = 0;

  /// Says that the layer being built has these exact forms beside the sequential one.
  virtual void declare_forms(std::initializer_list<Form> forms) = 0;
  /// The states of a memory, in the memory's order.
  virtual void declare(const std::vector<StateSpec>& states, const MemoryVars& vars) = 0;
  virtual void add_carried_state(Buffer buffer) = 0;
  /// Says that the sequence must be run as one segment.
  virtual void require_single_segment() = 0;

  /// The state before each step: a trajectory that a memory of this layer made, one step later, its first row the initial state.
  virtual Var previous_state(Var trajectory) = 0;
  /// Says that this layer's state `state` [copies, order], declared before, holds the past of `signal` [steps, batch, copies], the sequence
  /// that it was written with. The graph that the function builds should be detached; it is called only where states are recorded.
  virtual void reconstruction(const std::string& state, const std::function<Var()>& signal, PastBasis basis) = 0;
  /// The input of a layer that feeds outputs back, while a read-out is fitted: the target of the step before in place of the output,
  /// [steps, batch, outputs], without gradient. None in a run.
  virtual Var teacher_forcing_input() { return {}; }
  /// The number of each step, counted from the start of the sequence, 0 first; [steps, batch, 1], without gradient.
  virtual Var position() = 0;
  /// The time from each step to the one before it in the direction of this layer, in units of the hyper-parameter time_unit, which an
  /// architecture that knows time has; [steps, batch, 1], without gradient. None where all steps count as one unit.
  virtual Var elapsed() = 0;
  /// 1 where a document begins in the direction of this layer, that is where the network's input column `column` (the first is 1) is above
  /// 0, and 0 elsewhere; [steps, batch, 1], without gradient. Run backward, a document begins with the step before the next one's mark.
  virtual Var document_starts(std::int64_t column) = 0;

  /// The last `count` entries of a sequence, carried over: returns x with them in front, [count + steps, batch, ...].
  Var history(const std::string& name, Var x, std::int64_t count, const std::string& text);
  /// The same, x recorded as the state that each step appends: the gradient of the state is that of the result.
  Var history(const StateSpec& state, Var x, std::int64_t count);
  /// A sequence with all of its earlier steps in front: [past + steps, batch, ...]. `x` is recorded as the state that each step appends.
  /// The sequence is then run as one segment.
  Var cache(const StateSpec& state, Var x);
  /// The same as a buffer: carried over, not recorded, and without effect on the layer's transition. No gradient passes.
  Var cache(const std::string& name, Var x, const std::string& text);

 private:
  Graph& graph_;
};

}  // namespace reclab
