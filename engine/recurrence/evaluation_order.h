// SPDX-License-Identifier: GPL-3.0-or-later
// The evaluation order of an operation over time, for drawings (schedule/schedule.h). Computing does not read it.
#pragma once

#include "recurrence/memory.h"

namespace reclab {

class Plan;
struct Drawn;

struct EvaluationOrder {
  /// Adds the pieces of work to the plan (recurrence/plan.h); the meaning of the operation's inputs and outputs depends on it.
  using Draw = void (*)(Plan& plan, const Drawn& drawn);
  Form form = Form::sequential;
  Draw draw = nullptr;
  std::int64_t steps = 0;         ///< 0: nothing of its own to be drawn
  std::int64_t chunk = 1;         ///< steps of a chunk, or of a segment
  std::int64_t cached_steps = 0;  ///< of the keys and values that were appended before the first step
  std::int64_t window = 0;        ///< steps back that a step reads; 0: to the start
  enum class Weights : std::uint8_t {
    plain,
    softmax,
    decayed,
    other
  } weights = Weights::plain;         ///< of reads of earlier steps: `other` needs more than q and k
  bool bounded = false;               ///< of the same: the fourth input is the first that each step reads
  ReadOrder read = ReadOrder::after;  ///< before: a step does not see its own write
  std::int64_t groups = 1;            ///< of matrices: how many sequences one after another the arrays hold
  bool diagonal_scan = false;         ///< a scan or chunkwise pass of s_t = a_t s_{t-1} + b_t, which are one kernel on a CUDA device
  std::vector<Var> in = {};           ///< q, k, v, ... of a form that is made of several operations
};

/// An interface beside Operation, for operations that run over time.
class HasEvaluationOrder {
 public:
  virtual ~HasEvaluationOrder() = default;
  virtual EvaluationOrder evaluation_order() const = 0;
};

}  // namespace reclab
