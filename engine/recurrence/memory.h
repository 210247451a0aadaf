// SPDX-License-Identifier: GPL-3.0-or-later
// Memory: what carries a model from one time step to the next. Every architecture's memory is one of a few kinds; each kind knows its
// exact execution forms, its adjoint, and its transition (for spectra and for products of ds_t/ds_{t-1}).
#pragma once

#include <complex>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "autodiff/graph.h"

namespace reclab {

/// An execution form: for the same weights and input all exact forms agree to rounding.
enum class Form : std::uint8_t { sequential, scan, chunkwise, convolution, attention, newton, quasi_newton, damped_newton };
inline constexpr Form all_forms[] = {Form::sequential,  Form::scan,   Form::chunkwise,    Form::convolution,
                                     Form::attention,   Form::newton, Form::quasi_newton, Form::damped_newton};
inline bool is_newton(Form form) { return form == Form::newton || form == Form::quasi_newton || form == Form::damped_newton; }
/// Whether the form makes the state of every step; one that does not leaves what is inside to be recorded by the sequential form.
inline bool forms_states(Form form) { return form == Form::sequential || form == Form::scan || is_newton(form); }
std::string_view to_string(Form form);
/// Throws Error that names the known forms.
Form form_from(std::string_view text);

/// How a Newton form went (recurrence/newton.h).
struct NewtonReport {
  Form form = Form::newton;
  /// max_t |s_t - f(s_{t-1})| relative to the states' size, the worst of the states: of the first guess, then after each iteration.
  std::vector<double> residuals;
  bool converged = false;
  std::string reason;   ///< why it did not converge, after "because"; the sequential form was then run instead
  int evaluations = 0;  ///< of the cell, each at all steps
  int jacobians = 0;    ///< likewise
  int iterations() const { return residuals.empty() ? 0 : static_cast<int>(residuals.size()) - 1; }
};

/// Sees the guesses of a Newton form, the first one and that after each iteration: of each state [steps, batch, size]. `diagonal`: the
/// iteration took the diagonal of the Jacobian alone.
using NewtonWatch = std::function<void(int iteration, bool diagonal, const std::vector<std::vector<double>>& states)>;

/// What ds_t/ds_{t-1} is made of, for one sequence of the batch: square blocks for parts of the state that do not see each other, each of them
/// acting alike on so many columns of the state.
struct Transition {
  enum class Kind : std::uint8_t { none, diagonal, blocks };
  Kind kind = Kind::none;
  std::int64_t count = 0;    ///< blocks that differ; of a diagonal transition its entries
  std::int64_t size = 1;     ///< rows of a block
  std::int64_t repeats = 1;  ///< columns that a block acts on
  bool varies = false;       ///< from step to step
  std::string why;           ///< of none: why no step maps the state to the next, after "because"

  static Transition none(std::string why) { return {Kind::none, 0, 1, 1, false, std::move(why)}; }
  static Transition diagonal(std::int64_t entries, bool varies) { return {Kind::diagonal, entries, 1, 1, varies, {}}; }
  static Transition blocks(std::int64_t count, std::int64_t size, std::int64_t repeats, bool varies) { return {Kind::blocks, count, size, repeats, varies, {}}; }

  /// Eigenvalues, which is entries of the state; 0 where there is no transition.
  std::int64_t width() const { return count * size * repeats; }
  /// Entries of what tells a step's transition: its diagonal, or its blocks.
  std::int64_t entries() const { return count * size * size; }
};

/// The operation of a memory inside a Graph that covers `steps` time steps. Sequences are [steps, batch, ...], states [batch, ...].
class Memory : public Operation {
 public:
  virtual Transition transition() const = 0;
  /// Of a diagonal transition: ds_t/ds_{t-1} at step t of the segment last run forward, of the first sequence of the batch; [entries()].
  virtual void factors(std::int64_t t, std::span<std::complex<double>> factors) const;
  /// Of one in blocks: each of them row-major, one after another; [entries()]. Entry (i, j) is d s_t[i] / d s_{t-1}[j], states in the order of
  /// their declaration.
  virtual void jacobian(std::int64_t t, std::span<double> matrices);

  /// Of the last forward in a Newton form; null in every other form.
  virtual const NewtonReport* newton() const { return nullptr; }
  /// Of the next forwards in a Newton form; costs nothing where it is not called.
  virtual void watch(NewtonWatch) {}

  /// The adjoint of the final state that comes from later segments, one array a state (null: none), times 2^exponent. For the next backward.
  void carry(std::vector<const void*> adjoints, int exponent) {
    carried_ = std::move(adjoints);
    exponent_ = exponent;
  }
  /// After backward: the power of two that the gradients of the initial states are to be multiplied with.
  int exponent() const { return exponent_; }
  /// log2 |dL/ds_t|_2 of each state at each step of the last backward (of the whole batch); empty in a form that does not form it.
  const std::vector<std::vector<double>>& log2_norms() const { return log2_norms_; }

 protected:
  std::vector<const void*> carried_;
  int exponent_ = 0;
  std::vector<std::vector<double>> log2_norms_;
};

/// What a memory gives to the graph. Trajectories hold the state after each step; empty Vars in a form that does not form the state.
struct MemoryVars {
  Memory* memory = nullptr;
  std::vector<Var> initial;       ///< leaves [batch, ...]
  std::vector<Var> trajectories;  ///< [steps, batch, ...]
  std::vector<Var> finals;        ///< [batch, ...]; empty Vars likewise
};

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
/// s_t = f(s_{t-1}, u_t): from this step's tokens [batch, ...] and the previous states [batch, ...] to the new states, and after them
/// what is read out at this step and not fed back.
using CellFunction = std::function<std::vector<Var>(Cell& cell, std::span<const Var> tokens, std::span<const Var> states)>;

struct StepVars : MemoryVars {
  std::vector<CellGate> gates;
  std::vector<Var> reads;  ///< [steps, batch, ...]
};
/// A nonlinear recurrence. Forms: sequential, newton, quasi_newton, damped_newton. `initial`: states that the graph has made; empty: leaves
/// of its own. `by_columns`: the one state is [blocks, size, repeats], and the cell does the same to each column of a block, seeing no other.
StepVars step(Graph& graph, std::int64_t batch, const std::vector<StateShape>& states, const std::vector<Var>& tokens, const CellFunction& cell,
              const std::vector<Var>& initial = {}, Form form = Form::sequential, bool by_columns = false);

/// s_t = a_t * s_{t-1} + b_t. b [steps, batch, ...] real or complex; a of b's shape, or time-invariant of b's shape without steps and
/// batch. Forms: sequential, scan; convolution (through FFT, channel by channel) when time-invariant and complex.
/// `shown`: the factors that stand for the transition in spectra and in ds_T/ds_t where a is one in units that change from step to step (a
/// stabilised memory): [steps, batch, groups] or time-invariant [groups], each group's factor for as many entries of the state in a row.
MemoryVars diagonal(Graph& graph, Form form, Var a, Var b, Var shown = {});
/// The same from an initial state that the graph has made.
MemoryVars diagonal_from(Graph& graph, Form form, Var a, Var b, Var initial, Var shown = {});

/// The time-invariant diagonal system of a bank of single-input single-output channels, read out:
///   s_t[c, n] = a[c, n] s_{t-1}[c, n] + b[c, n] u_t[c],   y_t[c] = Re sum_n w[c, n] s_t[c, n]
/// u [steps, batch, C] real; a, b, w [C, N] complex; y [steps, batch, C]. In the convolution form the kernel sum_n w b a^k is collapsed
/// over the modes first, and no state is formed.
struct BankVars : MemoryVars {
  Var output;
};
BankVars diagonal_bank(Graph& graph, Form form, Var a, Var b, Var w, Var u);

/// h_t[c, n] = exp(dt_t[c] a[c, n]) h_{t-1}[c, n] + dt_t[c] x_t[c] b_t[n], y_t[c] = sum_n h_t[c, n] c_t[n]: Mamba's selective recurrence with its
/// discretisation and its readout. dt, x [steps, batch, C]; b, c [steps, batch, N]; a [C, N]; all real. Forms: sequential (one operation, which
/// keeps every h_t with `record`), scan, chunkwise. A. Gu, T. Dao, 2023, algorithm 2.
struct SelectiveVars : MemoryVars {
  Var output;  ///< [steps, batch, C]
};
SelectiveVars selective(Graph& graph, Form form, Var dt, Var a, Var x, Var b, Var c, bool record);

/// S_t = G_t * S_{t-1} + k_t v_t^T, o_t = S_t^T q_t, update before read, per head. q, k [steps, batch, heads, key], v [steps, batch, heads,
/// value]. G_t = exp(log_decay): none (ones), [steps, batch, heads, 1 or key], or time-invariant [heads, 1 or key]; log_decay <= 0.
/// Forms: sequential, scan (with a decay), chunkwise; attention (o_t = sum_{s <= t} (q_t . k_s) v_s decayed, quadratic) unless the decay
/// differs by key dimension. `record`: the sequential form keeps every S_t; without, a memory that decays is one operation that knows no
/// transition and no norms of adjoints.
struct OuterVars : MemoryVars {
  Var output;  ///< [steps, batch, heads, value]
};
/// `shown` as for diagonal.
OuterVars outer(Graph& graph, Form form, Var q, Var k, Var v, Var log_decay, bool record, Var shown = {});

/// S_t = (I - beta_t k_t k_t^T) S_{t-1} + beta_t k_t v_t^T, o_t = S_t^T q_t: what k_t recalls is replaced by v_t, by the share beta_t.
/// Shapes as for outer, beta [steps, batch, heads, 1]. Forms: sequential, chunkwise (the WY representation of the product of a chunk's
/// transitions). I. Schlag et al., ICML 2021; S. Yang et al., NeurIPS 2024.
OuterVars delta(Graph& graph, Form form, Var q, Var k, Var v, Var beta);

}  // namespace reclab
