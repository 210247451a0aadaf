// SPDX-License-Identifier: GPL-3.0-or-later
// Linear recurrences whose transition is a dense real matrix, or a diagonal less a product of two vectors.
#pragma once

#include "recurrence/layer.h"

namespace reclab {

/// s_t[c] = A_t s_{t-1}[c] + b_t[c] for a number of copies. b [steps, batch, copies, n] real; A time-invariant, [n, n] for all copies or
/// [copies, n, n], or [steps, 1, n, n] for all copies. Forms: sequential; scan: chunks of about sqrt(steps) steps are run all at once, the
/// products of their matrices carry from chunk to chunk, then all chunks are run again from where they start.
MemoryVars dense(Graph& graph, Form form, Var A, Var b);
/// The same from an initial state [batch, copies, n] that the graph has made.
MemoryVars dense_from(Graph& graph, Form form, Var A, Var b, Var initial);

/// s_t[c] = A s_{t-1}[c] + B u_t[c], time-invariant: A [n, n], B [n], u [steps, batch, copies]. Forms: sequential, scan; convolution: the
/// kernels (A^k B)_n, k < steps, by doubling, then FFTs.
MemoryVars dense_driven(Graph& graph, Form form, Var A, Var B, Var u);

/// One half of the conjugate pairs of the time-invariant system h_t = (diag(a) - p q^T) h_{t-1} + b u_t, y_t = c^T h_t:
///   h_n <- a_n h_n - p_n 2 Re(sum_m q_m h_m) + b_n u,   y = 2 Re sum_n c_n h_n
/// All complex, [channels, modes].
struct LowRankSystem {
  Var a, p, q, b, c;
};

/// A bank of such systems, u [steps, batch, channels] real. Its transition is that of the whole set of pairs, which is the real map of (Re
/// h, Im h) in other coordinates; that of one half alone is not complex-linear. Forms: sequential, in O(modes) a step and channel; scan,
/// through the real matrices; convolution. The kernel c^T A^k b, k < steps, is the product of about sqrt(steps) rows c^T A^(iK) and columns
/// A^j b, exact at every length, where the published one goes through the values of its generating function at the roots of unity.
struct LowRankVars : MemoryVars {
  Var output;  ///< [steps, batch, channels]
};
LowRankVars low_rank_bank(Graph& graph, Form form, const LowRankSystem& system, Var u);

/// A bank of time-invariant systems read out several times: h_t[c] = A[c] h_{t-1}[c] + B[c] u_t[c], y_t[c] = C[c] h_t[c]. A [channels, n,
/// n], B [channels, n], C [channels, reads, n] and u [steps, batch, channels] real; y [steps, batch, channels, reads]. Forms: sequential,
/// scan; convolution: the kernels C A^k B, k < steps, as those of the low-rank bank, and no state is formed.
struct DenseBankVars : MemoryVars {
  Var output;
};
DenseBankVars dense_bank(Graph& graph, Form form, Var A, Var B, Var C, Var u);

/// The same in a layer; the first two return the trajectory, the others the reads. `driven` [steps, batch, copies], where b is made of it:
/// the one number that drives all of a copy's entries at a step, and whose weights are the memory's mixing matrix.
Var linear(Layer& layer, const StateSpec& state, Var A, Var b, Var driven = {});
Var linear_driven(Layer& layer, const StateSpec& state, Var A, Var B, Var u);
Var low_rank_bank(Layer& layer, const StateSpec& state, const LowRankSystem& system, Var u);
Var dense_bank(Layer& layer, const StateSpec& state, Var A, Var B, Var C, Var u);

}  // namespace reclab
