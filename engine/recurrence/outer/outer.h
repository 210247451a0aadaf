// SPDX-License-Identifier: GPL-3.0-or-later
// Matrix memories that outer products are added to.
#pragma once

#include "recurrence/layer.h"

namespace reclab {

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

/// As a part of a layer: the reads.
Var outer(Layer& layer, const StateSpec& state, Var q, Var k, Var v, Var log_decay = {}, Var shown = {});

}  // namespace reclab
