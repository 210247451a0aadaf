// SPDX-License-Identifier: GPL-3.0-or-later
// Matrix memories that outer products are added to.
#pragma once

#include "recurrence/layer.h"

namespace reclab {

/// What a memory is made of: S_t = G_t * S_{t-1} + k_t v_t^T per head, read by o_t = S_t^T q_t, or before its update:
/// o_t = (S_{t-1} + u * k_t v_t^T)^T q_t, u the bonus of the step's own token (none: 0). Sequences are [steps, batch, heads, ...].
struct OuterInputs {
  Var q, k, v;                        ///< [.., key], [.., key] and [.., value]
  Var key_decay{};                    ///< log G, <= 0, by key dimension or one for all: [steps, batch, heads, 1 or key], or time-invariant [heads, 1 or key]; none: G = 1
  ReadOrder read = ReadOrder::after;  ///< whether a step reads the memory after its update, or before
  Var bonus{};                        ///< u, [heads, key] or [.., key], of a memory that is read before its update
  Var shown{};                        ///< as for diagonal
};

/// Forms: sequential, scan (with a decay), chunkwise; attention (o_t = sum_{s <= t} (q_t . k_s) v_s decayed, quadratic) unless the decay
/// differs by key dimension. `record`: the sequential form keeps every S_t; without, a memory that decays is one operation that knows no
/// transition and no norms of adjoints.
struct OuterVars : MemoryVars {
  Var output;  ///< [steps, batch, heads, value]
};
OuterVars outer(Graph& graph, Form form, const OuterInputs& in, bool record);

/// As a part of a layer: the reads.
Var outer(Layer& layer, const StateSpec& state, const OuterInputs& in);

}  // namespace reclab
