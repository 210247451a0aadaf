// SPDX-License-Identifier: GPL-3.0-or-later
// Helpers that the chunkwise forms of matrix memories share.
#pragma once

#include "autodiff/ops.h"
#include "recurrence/evaluation_order.h"

namespace reclab::chunks {

/// Stands for the memory of a form that goes over chunks of time: nothing is known of its single steps.
class OpaqueMemory final : public Memory, public HasEvaluationOrder {
 public:
  OpaqueMemory(DType type, std::int64_t n) : type_(type), n_(n) {}
  void follow(const Memory* inner) { inner_ = inner; }  ///< the memory whose exponent scales the initial state's adjoint
  Transition transition() const override { return Transition::none("this form goes over chunks of time and makes no single steps"); }
  void forward(const ForwardCall& c) override;
  void backward(const BackwardCall& c) override;
  void tangent(const TangentCall& c) override;
  Cost cost() const override { return {}; }
  bool carries() const override { return false; }
  void goes(EvaluationOrder course) { course_ = std::move(course); }
  EvaluationOrder evaluation_order() const override { return course_; }

 private:
  EvaluationOrder course_;
  DType type_;
  std::int64_t n_;
  const Memory* inner_ = nullptr;
};

/// An initial state, and the variables through which the graph of the form reads it: `state` goes into the memory that is carried from
/// chunk to chunk, whose adjoint may come in units of its own, `read` everywhere else.
struct Start {
  Var leaf, state, read;
  OpaqueMemory* memory;
};
Start start(Graph& graph, const Shape& shape, DType type);

Var zeros(Graph& graph, const Shape& shape);
/// [steps, batch, heads, d] -> [chunks, batch, heads, chunk, d], zeros after the end.
Var split(Var x, std::int64_t chunk);
/// [chunks, batch, heads, chunk, d] -> [steps, batch, heads, d], the zeros left out.
Var join(Var x, std::int64_t steps);
/// [chunk, chunk]: `inside` where column < row + (strictly ? 0 : 1), `outside` elsewhere.
Var triangle(Graph& graph, std::int64_t chunk, double inside, double outside, bool strictly = false);
/// The states before each chunk or step: the initial one and all but the last of those after.
Var previous_state(Var initial, Var after);
/// Sums of the entries up to and with each along an axis, high + low: a difference of two is exact to the rounding of the entries between,
/// however many came before. The gradient goes through high.
struct Sums {
  Var high, low;
};
Sums sums(Var x, int axis);
/// An axis of one entry more; negative counts from behind the last.
Var with_axis(Var x, int axis);

}  // namespace reclab::chunks
