// SPDX-License-Identifier: GPL-3.0-or-later
// A recurrence whose step is a segment of time.
#pragma once

#include <functional>

#include "recurrence/layer.h"

namespace reclab {

struct SegmentResult {
  Var reads, memory;
};
/// From `memory` [batch, ...] and the tokens of one segment [batch, n, features] (n = length, fewer in the last one) to the reads
/// [batch, n, out] and, when the segment is full, the new memory.
using SegmentFunction = std::function<SegmentResult(Var memory, Var tokens)>;
/// `first`: the memory at the start of the sequence, without batch. Returns the reads [steps, batch, out]. The sequence is then run as one.
Var segments(Layer& layer, const StateSpec& memory, Var first, Var x, std::int64_t length, const SegmentFunction& segment);

}  // namespace reclab
