// SPDX-License-Identifier: GPL-3.0-or-later
// The matrix memory of the delta rule.
#pragma once

#include "recurrence/outer/outer.h"

namespace reclab {

/// S_t = (I - beta_t k_t k_t^T) S_{t-1} + beta_t k_t v_t^T, o_t = S_t^T q_t: what k_t recalls is replaced by v_t, by the share beta_t.
/// Shapes as for outer, beta [steps, batch, heads, 1]. Forms: sequential, chunkwise (the WY representation of the product of a chunk's
/// transitions). I. Schlag et al., ICML 2021; S. Yang et al., NeurIPS 2024.
OuterVars delta(Graph& graph, Form form, Var q, Var k, Var v, Var beta);

/// As a part of a layer: the reads.
Var delta(Layer& layer, const StateSpec& state, Var q, Var k, Var v, Var beta);

}  // namespace reclab
