// SPDX-License-Identifier: GPL-3.0-or-later
// Layers at several rates in one network: steps wait to be pooled until as many are there as go together, and the result is held until the
// next.
#pragma once

#include <vector>

#include "recurrence/layer.h"

namespace reclab {

/// Windows of `factor` steps of a sequence x [rows, batch, features] at rate.rows(), one after another at the slower rate: [rows', batch,
/// features * factor], feature h of step j at h * factor + j. `held` [factor - 1, batch, features]: the steps before, of which those of an
/// unfinished window count.
struct Pooled {
  Var windows;
  Var held;  ///< the last steps again, for the next segment
};
Pooled pooled(const Rate& rate, std::int64_t factor, Var x, Var held);
/// Back: u [rows', batch, features * factor] at the slower rate is laid out over the `factor` steps after the one that it was made at,
/// since that one has read all its window: [rows, batch, features]. `held` [1, batch, features * factor]: the last row before.
struct Expanded {
  Var x;
  Var held;
};
Expanded expanded(const Rate& rate, std::int64_t factor, Var u, Var held);
/// The whole steps of a sequence, last first.
Var reversed_whole(const Rate& rate, Var x);
/// 0 in the row of a step that is not whole, 1 in the others.
Var only_whole(const Rate& rate, Var x);
/// The row of the last whole step, at each step of the sequence: `before` [1, batch, ...], or one of `x` [rows, batch, ...]. `turned`: rows
/// go from the end of the sequence to its start, and the steps left over come first. Without gradient.
Var held_rows(const Rate& rate, Var before, Var x, bool turned = false);
/// The row of the last step, without gradient.
Var last_row(const Rate& rate, Var before, Var x);

/// A memory at the rate seen at the sequence's steps: its states after each of them, most of which repeat the one before. `before`: each
/// state before the first step once more, a leaf of its own whose gradient is in plain units. Trajectories are made where `record` says so.
MemoryVars strided_memory(const Rate& rate, const MemoryVars& made, const std::vector<Var>& before, bool record, bool turned);

/// The same in a layer at its rate, l.rate() being the finer of the two.
Var pooled(Layer& layer, Var x, std::int64_t factor);
Var expanded(Layer& layer, Var u, std::int64_t factor);

}  // namespace reclab
