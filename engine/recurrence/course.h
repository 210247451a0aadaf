// SPDX-License-Identifier: GPL-3.0-or-later
// How an operation goes over time, for who draws it (schedule/schedule.h). Computing does not read it.
#pragma once

#include "recurrence/memory.h"

namespace reclab {

struct Course {
  /// What an operation's inputs and outputs are depends on the way.
  enum class Way : std::uint8_t {
    steps,     ///< state after state; the first output is the state's trajectory, or its reads
    diagonal,  ///< the same of s_t = a_t s_{t-1} + b_t: inputs a, b and the initial state
    tree,      ///< likewise, all at once (array/order.h)
    chunks,    ///< likewise, chunk by chunk (array/order.h)
    matrices,  ///< s_t = A_t s_{t-1} + b_t in chunks that are run twice; inputs A^T, b and the initial state
    blocks,    ///< a matrix memory: scores within a chunk, the memory from chunk to chunk; q, k, v and perhaps log_decay
    rewrites,  ///< likewise where a chunk's steps write over each other; q, k, v, beta
    pairs,     ///< each step reads all that came before: inputs q, k, v
    rows,      ///< the same, one step after another
    transforms,  ///< by Fourier transforms: inputs the kernel and what it meets, output their convolution
    iterations,  ///< of a Newton form
    segments     ///< memory of one segment after another
  };
  Form form = Form::sequential;
  Way way = Way::steps;
  std::int64_t steps = 0;
  std::int64_t chunk = 1;   ///< steps of a chunk, or of a segment
  std::int64_t past = 0;    ///< what is read came before the first step
  std::int64_t window = 0;  ///< how far back a step reads; 0: to the start
  enum class Weights : std::uint8_t { plain, softmax, decayed, other } weights = Weights::plain;  ///< of pairs: `other` needs more than q and k
  bool bounded = false;     ///< of pairs and rows: the fourth input is the first that each step reads
  std::int64_t groups = 1;  ///< of matrices: how many sequences one after another the arrays hold
  std::vector<Var> in = {};  ///< q, k, v, ... of a form that is made of several operations
};

/// What an operation that goes over time is, beside an Operation.
class OverTime {
 public:
  virtual ~OverTime() = default;
  /// The way `steps` of none: nothing of its own to be drawn.
  virtual Course course() const = 0;
};

}  // namespace reclab
