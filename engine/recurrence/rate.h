// SPDX-License-Identifier: GPL-3.0-or-later
// The rate of a layer whose steps are several steps of the sequence long (recurrence/pooling/).
#pragma once

#include <cstdint>

#include "autodiff/graph.h"

namespace reclab {

/// A step of the layer is `stride` steps of the sequence, and is made with the last of them. A graph covers a number of steps of the
/// sequence that need be no multiple of the stride, from any place on, so it has a row for each step of the layer that may end in it, and
/// its caller tells how many do: the last row may be of a step that is not whole yet, whose values are neither carried on nor read by a row
/// that is.
struct Rate {
  std::int64_t stride = 1;
  std::int64_t sequence = 1;  ///< steps of the sequence that the graph covers
  Var phase{};  ///< [1, batch, 1]: how many steps of the sequence came before, or their rest by a multiple of the stride; none
                ///< where that is 1

  std::int64_t rows() const { return (sequence + stride - 1) / stride; }
  bool is_ragged() const { return sequence % stride != 0; }  ///< the last row may be of a step that is not whole
  /// The number of the layer's steps that end within the first t of the sequence here, `before` steps after its start.
  std::int64_t whole(std::int64_t before, std::int64_t t) const { return (before % stride + t) / stride; }
  std::int64_t whole(std::int64_t before) const { return whole(before, sequence); }
  Rate slower(std::int64_t factor) const { return {stride * factor, sequence, phase}; }
  bool operator==(const Rate& other) const { return stride == other.stride && sequence == other.sequence; }
};

}  // namespace reclab
