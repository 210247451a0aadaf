// SPDX-License-Identifier: GPL-3.0-or-later
// A recurrence whose step is a segment of time.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "recurrence/layer.h"
#include "recurrence/step/step.h"

namespace reclab {

struct SegmentResult {
  Var reads;
  std::vector<Var> memory;  ///< one a state; none where the segment is not full
};
/// The map of one segment: from the `memory` [batch, ...], one a state, and its tokens [batch, n, features] (n = length, fewer in the last
/// one) to the reads [batch, n, out] and, when the segment is full, the new memory. A gate that it names with the cell is one of the whole
/// segment, [batch, ...].
using SegmentFunction = std::function<SegmentResult(Cell& cell, std::span<const Var> memory, Var tokens)>;

/// A causal function of full segments alone: an unfinished one is filled up with zeros, so that sums over its columns are those of a full
/// one to the bit.
SegmentFunction filled_up(std::int64_t length, SegmentFunction full);

/// The gates of a segment's function at each step: those of the last full segment, `before` where there was none.
struct SegmentGate {
  std::string name;
  double before = 1.0;
};

/// A memory that is made of its segment's tokens alone: no segment waits for another, and all are computed at once.
struct SegmentContext {
  std::function<Var(Var tokens)> left;               ///< from [segments, length, features] to [segments, ...]
  std::function<Var(Var memory, Var tokens)> reads;  ///< causal, to [segments, length, out]; an unfinished segment is filled up with zeros
};

struct SegmentVars : MemoryVars {
  Var reads;                    ///< [unread + steps, batch, out]
  std::vector<CellGate> gates;  ///< trajectories [steps, batch, ...], of those that were asked for
};
/// Runs segments in a graph, from the memory `begin` [batch, ...] over `x` [unread + steps, batch, features], whose first `unread` steps
/// are those of the unfinished segment before. Trajectories, of the `steps` alone, are made where `record` says so; `initial` is left
/// empty.
SegmentVars segments(Graph& graph, std::int64_t batch, const std::vector<StateShape>& memory, const std::vector<Var>& begin, Var x,
                     std::int64_t unread, std::int64_t length, const SegmentFunction& segment, bool record,
                     const std::vector<SegmentGate>& gates = {});
SegmentVars segment_contexts(Graph& graph, std::int64_t batch, Var begin, Var x, std::int64_t unread, std::int64_t length,
                             const SegmentContext& context, bool record);

/// Segments in a layer. `first`: each memory at the start of the sequence, without batch. Returns the reads [steps, batch, out]. The
/// sequence is then run as one. The gates that `segment` names are those of `gates`.
Var segments(Layer& layer, const std::vector<StateSpec>& memory, const std::vector<Var>& first, Var x, std::int64_t length,
             const SegmentFunction& segment, const std::vector<SegmentGate>& gates = {});
Var segment_contexts(Layer& layer, const StateSpec& memory, Var first, Var x, std::int64_t length, const SegmentContext& context);

}  // namespace reclab
