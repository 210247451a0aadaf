// SPDX-License-Identifier: GPL-3.0-or-later
// The matrix memory of the delta rule.
#pragma once

#include "recurrence/outer/outer.h"

namespace reclab {

/// The inputs of a delta rule: S_t = (I - beta_t k_t r_t^T) G_t S_{t-1} + beta_t k_t v_t^T, o_t = S_t^T q_t: the value that r_t recalls is
/// removed at k_t, and v_t is written there, by the share beta_t. q, k [steps, batch, heads, key], v [steps, batch, heads, value].
///
/// The decay G_t = exp(log_decay) comes first, so that the value removed is the decayed one: with beta_t |k_t|^2 = 1 and r = k the memory
/// then answers k_t with v_t, for every G_t. So do S. Yang et al., Gated delta networks, ICLR 2025 (one factor a head, which commutes with
/// the removal), and Kimi Team, Kimi Linear, 2025 (a factor for each key dimension).
struct DeltaInputs {
  Var q, k, v;
  Var beta = {};             ///< [steps, batch, heads, 1]; none: 1
  Var recall = {};           ///< r, of the shape of k; none: k
  Var log_decay = {};        ///< none (G = 1), [steps, batch, heads, 1 or key], or time-invariant [heads, 1 or key]; <= 0
  bool read_before = false;  ///< o_t = S_{t-1}^T q_t, before the decay
};

/// Forms: sequential, chunkwise (the WY representation of the product of a chunk's transitions), and attention (one chunk of all steps,
/// whose triangular inverse takes steps^3 / 3 products) unless the decay differs by key dimension. I. Schlag et al., ICML 2021; S. Yang et
/// al., NeurIPS 2024.
OuterVars delta(Graph& graph, Form form, const DeltaInputs& in);

/// S_t = (I - diag(k_t)) S_{t-1} + k_t v_t^T, o_t = S_t^T q_t: each key dimension has a share k_t[i] of its own and recalls itself alone.
/// Entries of k may be of any sign and size; between 0 and 1 it is `outer` with a decay by key dimension. Forms: sequential, scan,
/// chunkwise.
OuterVars delta_by_entry(Graph& graph, Form form, Var q, Var k, Var v);

/// The delta rule in a layer; returns the reads.
Var delta(Layer& layer, const StateSpec& state, const DeltaInputs& in);
Var delta_by_entry(Layer& layer, const StateSpec& state, Var q, Var k, Var v);

}  // namespace reclab
