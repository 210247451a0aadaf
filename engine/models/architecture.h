// SPDX-License-Identifier: GPL-3.0-or-later
// Architecture: what a file under models/<family>/ defines, once, for every form, device, precision and use: the function `layer`
// written with array operations and one or more memories. Building it lists parameters, states and gates; running it computes.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "autodiff/ops.h"
#include "models/card.h"
#include "models/hyper.h"
#include "models/parts/init.h"
#include "recurrence/memory.h"

namespace reclab {

class Network;
struct LowRankSystem;
struct SoftmaxAttention;

/// A state array as a model declares it; shape without time and batch.
struct StateSpec {
  std::string name;
  Shape shape;
  std::string text;
  bool auxiliary = false;  ///< no part of the layer's transition: a stabiliser that leaves the output as it is
  double start = 0.0;      ///< the value of all its entries before the first step
};

/// How a state whose entries are coefficients of its signal's past on a polynomial basis is read back.
///
/// Step s of the signal is held through the step, so after step t its middle is t - s + 1/2 steps ago; a place in the window is 0 at its
/// oldest end and 1 now, 1 - age / window.
struct PastBasis {
  double window = 0.0;  ///< steps that the state reaches back; 0: the whole past
  double first = 1.0;   ///< the whole past: how many steps long it is after step 0 (each step adds one)
  /// The last step after which the coefficients are those of the window, and what the user is told about later ones.
  std::int64_t last = std::numeric_limits<std::int64_t>::max();
  std::string beyond{};
  std::string inverse_window{};  ///< not empty: the layer's parameter [1] whose reciprocal is the window, whatever `window` says
  std::string coefficient;  ///< what one of them is called: "Legendre coefficient"
  /// values [order, places]: each basis function at each place. signal(place) = sum_n values[n, place] state[n].
  std::function<void(std::span<const double> places, std::span<double> values)> values;
};

/// What a model's layer function builds with. Sequences are [steps, batch, features...]: write for the last axes.
class Layer {
 public:
  /// The layer `index` of the network, whose stack begins with the layer `first`; index = -1: none of them.
  Layer(Network& network, Graph& graph, const Hyper& values, std::string prefix, int index, int first = 0)
      : hyper(values), network_(network), graph_(graph), prefix_(std::move(prefix)), index_(index), first_(first) {}

  const Hyper& hyper;
  int index() const { return index_ < 0 ? -1 : index_ - first_; }  ///< in its stack, 0-based; -1 outside the stack of layers
  std::int64_t steps() const;
  std::int64_t batch() const;
  Form form() const;  ///< that is being built
  std::int64_t past() const;  ///< steps that came before, where a growing state holds them

  /// A trainable array; `text` names its role, the order of its rows and the reference implementation's name for it.
  Var parameter(const std::string& name, Shape shape, const Init& init, const std::string& text);
  /// A parameter that all layers of the stack share: it stands under the first of them.
  Var shared_parameter(const std::string& name, Shape shape, const Init& init, const std::string& text);
  /// Names a sequence as a gate and returns it. low = high = 0: unbounded.
  Var gate(const std::string& name, Var value, double low, double high, const std::string& text);

  /// A nonlinear recurrence; returns each state's trajectory [steps, batch, ...].
  std::vector<Var> step(const std::vector<StateSpec>& states, const std::vector<Var>& tokens, const CellFunction& cell);
  /// The same for a cell that returns more than its states: also what it reads out at each step.
  struct Stepped {
    std::vector<Var> states, reads;
  };
  Stepped step_and_read(const std::vector<StateSpec>& states, const std::vector<Var>& tokens, const CellFunction& cell);
  /// s_t = a_t * s_{t-1} + b_t; returns the trajectory. `shown` stands for a in spectra where a is in changing units (recurrence/memory.h).
  Var diagonal(const StateSpec& state, Var a, Var b, Var shown = {});
  /// A bank of time-invariant single-input single-output diagonal systems (recurrence/memory.h); returns Re sum_n w s.
  Var diagonal_bank(const StateSpec& state, Var a, Var b, Var w, Var u);
  /// h_t = exp(dt_t a) h_{t-1} + dt_t x_t b_t read with c_t (recurrence/memory.h); returns the reads.
  Var selective(const StateSpec& state, Var dt, Var a, Var x, Var b, Var c);
  /// S_t = exp(log_decay) S_{t-1} + k_t v_t^T read with q_t (recurrence/memory.h); returns the reads.
  Var outer(const StateSpec& state, Var q, Var k, Var v, Var log_decay = {}, Var shown = {});
  /// S_t = (I - beta_t k_t k_t^T) S_{t-1} + beta_t k_t v_t^T read with q_t; returns the reads.
  Var delta(const StateSpec& state, Var q, Var k, Var v, Var beta);
  /// s_t = A_t s_{t-1} + b_t with dense real matrices: b [steps, batch, copies, n]; A time-invariant [n, n] or [copies, n, n], or
  /// [steps, 1, n, n] for all copies. Returns the trajectory.
  Var linear(const StateSpec& state, Var A, Var b);
  /// s_t[c] = A s_{t-1}[c] + B u_t[c], time-invariant: A [n, n], B [n], u [steps, batch, copies]. Returns the trajectory.
  Var linear_driven(const StateSpec& state, Var A, Var B, Var u);
  /// Softmax attention over all that came before, or the last `window` steps (0: all): q [steps, batch, heads, key] with its scale, k and v
  /// [steps, batch, kv_heads, d], each kv head serving heads/kv_heads query heads in a row. The rows of k and v are the states that each step
  /// appends. Returns the reads [steps, batch, heads, value]. Forms: sequential (row by row over the cache), attention (quadratic).
  Var attention(const StateSpec& key, const StateSpec& value, Var q, Var k, Var v, std::int64_t window);
  /// A bank of time-invariant systems whose continuous A is diagonal less a product of two vectors (recurrence/linear.h); returns the reads.
  Var low_rank_bank(const StateSpec& state, const LowRankSystem& system, Var u);
  /// y_t[c] = sum_{j < taps} kernel[c, j] u_{t-j}[c]: kernel [channels, taps], u [steps, batch, channels]. All inputs that came before are
  /// the growing buffer `name`, and the sequence is then run as one segment. Forms: sequential (the sum itself), convolution (by FFT).
  Var convolution(const std::string& name, Var kernel, Var u, const std::string& text);
  /// A recurrence over segments of time: `memory` [batch, ...] and the tokens of one segment [batch, n, features] (n = length, fewer in the
  /// last one) to the reads [batch, n, out] and, when the segment is full, the new memory. `first`: the memory at the start of the
  /// sequence, without batch. Returns the reads [steps, batch, out]. The sequence is then run as one.
  struct SegmentResult {
    Var reads, memory;
  };
  using SegmentFunction = std::function<SegmentResult(Var memory, Var tokens)>;
  Var segments(const StateSpec& memory, Var first, Var x, std::int64_t length, const SegmentFunction& segment);
  /// The last `count` entries of a sequence, carried over: returns x with them in front, [count + steps, batch, ...].
  Var history(const std::string& name, Var x, std::int64_t count, const std::string& text);
  /// The same, x recorded as the state that each step appends: the gradient of the state is that of what reads the result.
  Var history(const StateSpec& state, Var x, std::int64_t count);
  /// All of a sequence that came before, and it: [past + steps, batch, ...]. `x` is recorded as the state that each step appends. The
  /// sequence is then run as one segment.
  Var cache(const StateSpec& state, Var x);
  /// The same as a buffer: carried over, but neither recorded nor what takes the layer's transition away. No gradient passes.
  Var cache(const std::string& name, Var x, const std::string& text);
  /// recurrence/attention.h: row by row in the sequential form, in blocks of rows in the form attention.
  Var attention(const SoftmaxAttention& a);
  /// The state before each step: a trajectory that a memory of this layer made, one step later, its first row the initial state.
  Var before(Var trajectory);
  /// Says that this layer's state `state` [copies, order], declared before, holds the past of `signal` [steps, batch, copies], the sequence
  /// that it was written with. What the function builds should be detached; it is called only where states are recorded.
  void reconstruction(const std::string& state, const std::function<Var()>& signal, PastBasis basis);
  /// The number of each step, counted from the start of the sequence, 0 first; [steps, batch, 1], without gradient.
  Var position();
  /// 1 where a document begins in the direction of this layer, that is where the network's input column `column` (the first is 1) is above
  /// 0, and 0 elsewhere; [steps, batch, 1], without gradient. Run backward, a document begins with the step before the next one's mark.
  Var document_starts(std::int64_t column);

 private:
  void offer(std::initializer_list<Form> forms);
  void put(const std::vector<StateSpec>& states, const MemoryVars& vars);
  Network& network_;
  Graph& graph_;
  std::string prefix_;
  int index_, first_;
};

/// What a reference implementation calls a parameter that it has in the same shape, with the same order of rows.
struct ReferenceName {
  /// "weight_ih_l{n}{_reverse}": {n} is the layer's number from 0, counted in its direction; {_reverse} is "_reverse" for a layer that runs
  /// backward beside one that runs forward, else nothing; * stands for the same in both names. What stands in front ("model.rnn.") is found.
  std::string theirs;
  std::string ours;  ///< "weight_ih"; of what comes after the last layer "final/norm.weight"
};

struct Architecture {
  std::string id, family;  ///< set by the registry from the file's name and folder
  std::string title;
  std::vector<std::string> equations;  ///< plain Unicode, one line each
  std::vector<std::string> notes;      ///< conventions, one sentence each
  std::vector<HyperSpec> hyper;
  std::string spectrum;  ///< what spectrum/<layer> holds
  Reference source;
  std::vector<ReferenceName> reference;  ///< weights files are read with these names too

  /// The width that the first layer needs its input to have; 0: any. A linear encoder is put in front where they differ.
  std::function<std::int64_t(const Hyper&)> input_width;
  /// Not empty: the integer hyper-parameter that names an input column, the first being 1, which only marks where documents begin. The
  /// network takes that column out before the first layer. 0: none.
  std::string marker;
  /// Throws Error for values that do not go together.
  std::function<void(const Hyper&)> check;
  /// One layer: [steps, batch, in] -> [steps, batch, out].
  std::function<Var(Layer&, Var)> layer;
  /// After the last layer (a final norm); may be empty.
  std::function<Var(Layer&, Var)> finish;

  /// Not empty: no layer of its own but these architectures' stacks, one above the other (models/stack.h).
  std::vector<const Architecture*> stack;
};

}  // namespace reclab
