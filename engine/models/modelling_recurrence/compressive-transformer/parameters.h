// SPDX-License-Identifier: GPL-3.0-or-later
// The card of the compressive transformer, its parameters, and the masks and places of its attention.
#pragma once

#include <string>
#include <vector>

#include "models/architecture.h"

namespace reclab::architectures {

Architecture compressive_transformer_card();

namespace compressive {

/// The sizes and switches that follow from the table.
struct Sizes {
  std::int64_t d, heads, D;         ///< of a head
  std::int64_t n, n_m, n_cm, c;     ///< rows of a segment, of M and of C, and those that become one
  std::int64_t memories;            ///< layers that have one
  bool glu, empty, held, enhanced;  ///< empty: at first there are no rows; held: no gradient passes into the memories
  std::string compression;          ///< f_c
  std::int64_t M() const { return n_cm + n_m; }
};

Sizes sizes_of(const Hyper& h);

/// A residual connection, or a GRU whose state goes round the part and whose input is the part's output.
struct Around {
  Var weight_ih, weight_hh, bias_ih, bias_hh;
  struct Factors {
    Var first, first_bias, second, second_bias;
    Var operator()(Var v) const { return linear(linear(v, first, first_bias), second, second_bias); }
  };
  Factors Q, R;  ///< of the mogrifier; none: it is left out
  /// x goes round, y comes out.
  Var operator()(Var x, Var y) const;
};
/// A layer of the stack.
struct Block {
  Var norm1, norm1_bias, to_q, to_kv, to_out, to_out_bias;
  Var conv, conv_bias;  ///< f_c: [d, c d], columns row by row of the c, and [d]
  Var norm2, norm2_bias, w1, w1_bias, w2, w2_bias;
  Around attention, feed_forward;
  std::int64_t memory = -1;  ///< the number of the memory that it writes; -1: none
};
std::vector<Block> blocks_of(Layer& l, const Sizes& s);
/// e of each head [heads, n_cm + n_m + n, D]; none: distances have no vectors.
Var positions_of(Layer& l, const Sizes& s);

/// The masks and places for the scores of a segment's `rows` with the K = n_cm + n_m + rows rows that they may read.
struct Past {
  Var start;               ///< steps before the segment [1]
  Var missing;             ///< rows of [C; M] that there are not yet, in front [1]
  Var future;              ///< [rows, K]: added to the scores of rows that are to come
  Var no_memory, not_yet;  ///< [K]: 1 for rows of a memory, and for missing ones (start=empty), else 0
  Var moved;               ///< [L, L], L = n_cm + n_m + n: places begin with the first row that there is; none: all are there
};
constexpr double unseen = -1e30;  ///< added to a score
Past past_of(const Sizes& s, Var start, std::int64_t rows);
/// The scores [batch, heads, rows, K] of distances: q·e of the place of each, q [batch, heads, rows, D].
Var place_scores(const Sizes& s, const Past& past, Var positions, Var q);
/// 1 for the rows of a new C that stand for a step, else 0: [n_cm, 1].
Var compressed_rows(const Sizes& s, const Past& past);
/// The rows of `old` [batch, n, d] that were read most, n/c of them in their order: of rows read alike the older ones. `usage` [batch, n].
Var most_used(const Sizes& s, Var old, Var usage);

}  // namespace compressive
}  // namespace reclab::architectures
