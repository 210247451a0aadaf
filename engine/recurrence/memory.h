// SPDX-License-Identifier: GPL-3.0-or-later
// Memory: the part that carries a model from one time step to the next. Every architecture's memory is one of a few primitives, each a
// folder beside this file; each knows its exact execution forms, its adjoint, and its transition (for spectra and for products of
// ds_t/ds_{t-1}).
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
inline constexpr Form all_forms[] = {Form::sequential, Form::scan,   Form::chunkwise,    Form::convolution,
                                     Form::attention,  Form::newton, Form::quasi_newton, Form::damped_newton};
inline bool is_newton(Form form) { return form == Form::newton || form == Form::quasi_newton || form == Form::damped_newton; }
/// Whether the form makes the state of every step; one that does not leaves the recording of states to the sequential form.
inline bool forms_states(Form form) { return form == Form::sequential || form == Form::scan || is_newton(form); }
std::string_view to_string(Form form);
/// Throws Error that names the known forms.
Form form_from(std::string_view text);

/// The course of a Newton form (recurrence/step/newton.h).
struct NewtonReport {
  Form form = Form::newton;
  /// max_t |s_t - f(s_{t-1})| relative to the states' size, the worst of the states: of the first guess, then after each iteration.
  std::vector<double> residuals;
  bool converged = false;
  std::string reason;   ///< why it did not converge, after "because"; the sequential form was then run instead
  int evaluations = 0;  ///< of the cell, each at all steps
  int jacobians = 0;    ///< of the cell, each at all steps
  int iterations() const { return residuals.empty() ? 0 : static_cast<int>(residuals.size()) - 1; }
};

/// Sees the guesses of a Newton form, the first one and that after each iteration: of each state [steps, batch, size]. `diagonal`: the
/// iteration took the diagonal of the Jacobian alone.
using NewtonWatch = std::function<void(int iteration, bool diagonal, const std::vector<std::vector<double>>& states)>;

/// The structure of ds_t/ds_{t-1} for one sequence of the batch: square blocks for parts of the state that do not see each other, each of
/// them acting alike on so many columns of the state. One block of the whole state is a dense transition.
struct Transition {
  enum class Kind : std::uint8_t {
    none,
    diagonal,
    blocks,
    low_rank  ///< blocks, each of them a multiple of the identity plus a matrix of low rank
  };
  Kind kind = Kind::none;
  std::int64_t count = 0;    ///< blocks that differ; of a diagonal transition its entries
  std::int64_t size = 1;     ///< rows of a block
  std::int64_t repeats = 1;  ///< columns that a block acts on
  bool varies = false;       ///< from step to step
  std::int64_t rank = 0;     ///< of low_rank
  std::string why{};         ///< of none: why no step maps the state to the next, after "because"
  std::int64_t every =
      1;  ///< the state moves at every so many steps alone (Memory::next_move); at the others ds_t/ds_{t-1} is the identity

  static Transition none(std::string why) { return {.why = std::move(why)}; }
  static Transition diagonal(std::int64_t entries, bool varies) { return {.kind = Kind::diagonal, .count = entries, .varies = varies}; }
  static Transition blocks(std::int64_t count, std::int64_t size, std::int64_t repeats, bool varies) {
    return {.kind = Kind::blocks, .count = count, .size = size, .repeats = repeats, .varies = varies};
  }
  static Transition low_rank(std::int64_t count, std::int64_t size, std::int64_t repeats, std::int64_t rank, bool varies) {
    return {.kind = Kind::low_rank, .count = count, .size = size, .repeats = repeats, .varies = varies, .rank = rank};
  }
  /// Whether jacobian() tells it: it is neither none nor diagonal.
  bool in_blocks() const { return kind == Kind::blocks || kind == Kind::low_rank; }

  /// Eigenvalues, which is entries of the state; 0 where there is no transition.
  std::int64_t width() const { return count * size * repeats; }
  /// The number of entries of a step's transition: its diagonal, or its blocks.
  std::int64_t entries() const { return count * size * size; }
};

/// The operation of a memory inside a Graph that covers `steps` time steps. Sequences are [steps, batch, ...], states [batch, ...].
class Memory : public Operation {
 public:
  virtual Transition transition() const = 0;
  /// The factors of a diagonal transition: ds_t/ds_{t-1} at step t of the segment last run forward, of the first sequence of the batch;
  /// [entries()].
  virtual void factors(std::int64_t t, std::span<std::complex<double>> factors);
  /// The blocks of a transition in blocks, at the same step: each row-major, one after another; [entries()]. Entry (i, j) is d s_t[i] / d
  /// s_{t-1}[j], states in the order of their declaration: all of the states' entries, or, of states whose entries do not see each other,
  /// one of each.
  virtual void jacobian(std::int64_t t, std::span<double> matrices);
  /// The parts of a transition of low rank: each block is scale I + u v^T; scale [count], u and v [count, size, rank].
  virtual void low_rank(std::int64_t t, std::span<double> scale, std::span<double> u, std::span<double> v);

  /// The first step from t on at which the state moves, of the last forward. The transition of a step that does not move it is the
  /// identity.
  virtual std::int64_t next_move(std::int64_t t) const { return t; }

  /// The report of the last forward in a Newton form; null in every other form.
  virtual const NewtonReport* newton() const { return nullptr; }
  /// Watches the next forwards in a Newton form; costs nothing where it is not called.
  virtual void watch(NewtonWatch) {}

  /// The adjoint of the final state that comes from later segments, one array a state (null: none), times 2^exponent. For the next
  /// backward. Not for a memory that covers the whole sequence (carries()).
  void set_final_adjoint(std::vector<const void*> adjoints, int exponent) {
    carried_ = std::move(adjoints);
    exponent_ = exponent;
  }
  virtual bool carries() const { return true; }
  /// The power of two that the gradients of the initial states are to be multiplied with, after backward.
  virtual int exponent() const { return exponent_; }
  /// log2 |dL/ds_t|_2 of each state at each step of the last backward (of the whole batch); empty in a form that does not form it.
  virtual const std::vector<std::vector<double>>& log2_norms() const { return log2_norms_; }
  /// Asks the next backwards for log2 |(ds_t/ds_{t-1})^T dL/ds_t|_2 of each state at each step too: dL/ds_{t-1} without the other readers
  /// of s_{t-1}. Empty in a memory or form that does not form it.
  void record_backpropagated_norms() { records_backpropagated_ = true; }
  const std::vector<std::vector<double>>& log2_backpropagated() const { return log2_backpropagated_; }

 protected:
  std::vector<const void*> carried_;
  int exponent_ = 0;
  std::vector<std::vector<double>> log2_norms_, log2_backpropagated_;
  bool records_backpropagated_ = false;
};

/// The variables of a memory in the graph. Trajectories hold the state after each step; empty Vars in a form that does not form the state.
struct MemoryVars {
  Memory* memory = nullptr;
  std::vector<Var> initial;       ///< leaves [batch, ...]
  std::vector<Var> trajectories;  ///< [steps, batch, ...]
  std::vector<Var> finals;        ///< [batch, ...]; empty Vars where trajectories are
};

}  // namespace reclab
