// SPDX-License-Identifier: GPL-3.0-or-later
// Matrix memories that outer products are added to.
#pragma once

#include "recurrence/layer.h"

namespace reclab {

/// The inputs of a matrix memory: S_t = G_t * S_{t-1} + k_t v_t^T per head, read by o_t = S_t^T q_t, or before its update: o_t = (S_{t-1} +
/// u * k_t v_t^T)^T q_t, u the bonus of the step's own token (none: 0). G_t = exp(a_t + i theta_t) exp(b_t)^T: decays of the key
/// dimensions, which may turn too, and of the value dimensions. Sequences are [steps, batch, heads, ...]; time-invariant arrays have no
/// steps and batch.
struct OuterInputs {
  Var q, k, v;                        ///< [.., key], [.., key] and [.., value]
  Var key_decay{};                    ///< a <= 0, a logarithm: [.., 1 or key] or [heads, 1 or key]; none: 0
  ReadOrder read = ReadOrder::after;  ///< whether a step reads the memory after its update, or before
  Var bonus{};                        ///< u, [heads, key] or [.., key], of a memory that is read before its update
  Var value_decay{};                  ///< b <= 0, a logarithm: [.., value] or [heads, value]; none: 0
  /// theta in radians, [.., 1 or key] or [heads, 1 or key], or as the complex number e^{i theta}: the memory is complex, and its real part
  /// is read, so that a key of step s is met with the cosine of all phases after s. q and k may be complex then. None: nothing turns.
  Var phase{};
  Var shown{};  ///< as for diagonal
};

/// Forms: sequential, scan (with a decay or a phase), chunkwise; attention (o_t = sum_{s <= t} (q_t . k_s) v_s decayed, quadratic) unless a
/// decay differs by key or value dimension. `record`: the sequential form keeps every S_t; without, a memory that decays by key or head
/// alone is one operation that knows no transition and no norms of adjoints.
struct OuterVars : MemoryVars {
  Var output;  ///< [steps, batch, heads, value]
};
OuterVars outer(Graph& graph, Form form, const OuterInputs& in, bool record);

/// A matrix memory in a layer; returns the reads. `told`: its weights of the steps are declared as the layer's (recurrence/mixing).
Var outer(Layer& layer, const StateSpec& state, const OuterInputs& in, bool told = true);

}  // namespace reclab
