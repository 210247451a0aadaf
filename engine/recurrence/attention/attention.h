// SPDX-License-Identifier: GPL-3.0-or-later
// Attention over all that came before, in blocks of rows, so that a T x T matrix is never stored. Arrays are [batch, rows, features] with
// the heads in the batch; column j of row i is visible for low_i <= j <= past + i. The quadratic form takes blocks of many rows; the
// streaming form takes the rows one by one, as a decoder with a cache does.
#pragma once

#include "recurrence/layer.h"

namespace reclab {

/// o_i = sum_j p_ij v_j, p_i = softmax_j of q_i . k_j [+ q2_i . rel_{past + i - j}] [+ pair_ij] over the visible columns.
struct SoftmaxAttention {
  Var q;        ///< [batch, steps, key], with its scale
  Var k, v;     ///< [batch, past + steps, key], [batch, past + steps, value]
  Var low;      ///< [steps] real: the first visible column of each row; none: 0
  Var q2, rel;  ///< [batch, steps, d], [batch, distances, d]; none
  Var held;     ///< [steps] real: columns before it pass their gradient to k_held and v_held, which have the values of k and v; none
  Var k_held, v_held;
  Var pair{};             ///< [steps, past + steps]: added to the score of each row and column, the same for all of the batch; none
  bool over_time = true;  ///< rows and columns are the steps of the sequence; else those of a segment, which are not drawn
  std::int64_t window =
      0;  ///< no row sees more than so many columns, its own included (low must say so too); columns further back cost nothing. 0: no limit
};
Var softmax_attention(const SoftmaxAttention& a, bool streaming);

/// The softmax over the last axis, for scores that are few enough to be an array: e^{x_j} / sum_j e^{x_j}. A score of -1e30 is one that is
/// not seen.
Var softmax_rows(Var scores);

/// The function from a score to the weight of a value, in place of a softmax over the scores of a row. laplace: Phi((x -
/// 0.707107)/0.282095), the distribution of Mega's attention, with the digits of its code.
enum class ScoreWeight : std::uint8_t { identity, relu_squared, laplace };
/// o_i = sum_j f(q_i . k_j [+ q2_i . rel_{past + i - j}]) v_j over low_i <= j < high_i; arrays as above, low and high [steps] real, without
/// gradient.
struct PointwiseAttention {
  ScoreWeight weight = ScoreWeight::identity;
  Var q, k, v;
  Var low, high;            ///< none: 0, past + i + 1
  Var q2, rel;              ///< none
  std::int64_t window = 0;  ///< as above
};
Var pointwise_attention(const PointwiseAttention& a, bool streaming);

/// o_i = sum_{j <= i} (q_i . k_j) e^{row_i + column_j} v_j; row and column [batch, steps], their sums never far above 0 for j <= i. The
/// rounding errors of row and column, row_low and column_low, are added to the exponents; gradients go to row and column. `read` is for
/// drawings alone: before, where row i is the read of step i + 1.
Var weighted_attention(Var q, Var k, Var v, Var row, Var column, Var row_low, Var column_low, ReadOrder read = ReadOrder::after);

/// Softmax attention in a layer, over all earlier steps or the last `window` steps (0: all): q [steps, batch, heads, key] with its scale, k
/// and v [steps, batch, kv_heads, d], each kv head serving heads/kv_heads query heads in a row. The rows of k and v are the states that
/// each step appends; where the specs are auxiliary they are buffers, which are not recorded and leave the layer's transition as it is.
/// Returns the reads [steps, batch, heads, value]. Forms: sequential (row by row over the cache), attention (quadratic).
Var attention(Layer& layer, const StateSpec& key, const StateSpec& value, Var q, Var k, Var v, std::int64_t window);
/// softmax_attention, row by row in the sequential form, in blocks of rows in the form attention.
Var attention(Layer& layer, const SoftmaxAttention& a);
/// pointwise_attention in the same two forms.
Var attention(Layer& layer, const PointwiseAttention& a);

/// [steps, batch, heads, d] -> [batch * heads, steps, d] and back.
Var heads_first(Var x);
Var heads_last(Var x, std::int64_t batch, std::int64_t heads);
/// Repeats each head of [rows, batch, heads, d] `times` times in a row.
Var repeated_heads(Var x, std::int64_t times);

}  // namespace reclab
