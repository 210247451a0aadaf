// SPDX-License-Identifier: GPL-3.0-or-later
//   layer i of the stack, for a segment X of n rows:   U = LN X;   A = att(U; keys and values of [C_i; M_i; U]);   X ← X + A or GRU(A, X);
//   likewise with W₂ f(W₁ LN X) when the segment is full:   O = the oldest n rows of [M_i; U];   M_i ← the last n_m of [M_i; U];   C_i ←
//   the last n_cm of [C_i; f_c(O)],  f_c: c rows become one
// J. W. Rae et al., Compressive transformers for long-range sequence modelling, ICLR 2020. Names and conventions of
// lucidrains/compressive-transformer-pytorch; the authors' code is not published.
#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <span>
#include <vector>

#include "models/modelling_recurrence/compressive-transformer/parameters.h"
#include "recurrence/attention/attention.h"
#include "recurrence/segments/segments.h"

namespace reclab::architectures {

/// A residual connection, or GRU(input y, state x).
Var compressive::Around::operator()(Var x, Var y) const {
  if (!weight_ih) return y + x;
  for (int i = 0; Q.first && i < 5; ++i)
    if (i % 2)
      x = 2.0 * sigmoid(R(y)) * x;
    else
      y = 2.0 * sigmoid(Q(x)) * y;
  const auto in = split(linear(y, weight_ih, bias_ih), -1, 3), state = split(linear(x, weight_hh, bias_hh), -1, 3);
  const Var r = sigmoid(in[0] + state[0]), z = sigmoid(in[1] + state[1]), n = tanh(in[2] + r * state[2]);
  return (1.0 - z) * n + z * x;
}

namespace {

using namespace compressive;

/// [a; b; …], rows after one another.
Var joined(std::initializer_list<Var> rows) { return concat(std::vector<Var>(rows), 1); }

/// The c rows of `old` [batch, n, d] that become one.
Var compressed(const Sizes& s, const Block& b, Var old, Var usage) {
  const std::int64_t B = old.dim(0), rows = s.n / s.c;
  const Var windows = reshape(old, {B, rows, s.c, s.d});
  if (s.compression == "conv") {
    const int by_row[] = {0, 2, 1};
    return linear(reshape(windows, {B, rows, s.c * s.d}), reshape(permute(b.conv, by_row), {s.d, s.c * s.d}), b.conv_bias);
  }
  if (s.compression == "mean") return mean(windows, 2);
  if (s.compression == "most-used") return most_used(s, old, usage);
  Var most = slice(windows, 2, 0, 1);
  for (std::int64_t i = 1; i < s.c; ++i) most = maximum(most, slice(windows, 2, i, i + 1));
  return reshape(most, {B, rows, s.d});
}

/// X of a segment from its tokens [batch, rows, d] and the memories of the one before, and their next ones when it is full.
SegmentResult segment_of(const Sizes& s, const std::vector<Block>& blocks, Var positions, std::span<const Var> memory, Var tokens) {
  const std::int64_t B = tokens.dim(0), rows = tokens.dim(1);
  const int swap[] = {0, 2, 1, 3};
  Var x = slice(tokens, -1, 0, s.d);
  const Past past = past_of(s, reshape(slice(slice(slice(tokens, 0, 0, 1), 1, 0, 1), -1, s.d, s.d + 1), {1}), rows);
  std::vector<Var> memories, compressions;
  for (const Block& b : blocks) {
    const Var u = layer_norm(x, b.norm1, b.norm1_bias, 1e-5);
    // With the enhanced recurrence a layer reads and continues the memory of the one above it, the last one that of the first.
    const std::int64_t from = std::max<std::int64_t>(s.enhanced ? (b.memory + 1) % s.memories : b.memory, 0);
    const auto part = [&](Var all, std::int64_t length) { return reshape(slice(all, 1, from, from + 1), {B, length, s.d}); };
    const Var M = part(memory[0], s.n_m), C = part(memory[1], s.n_cm);

    const auto kv = split(linear(joined({C, M, u}), b.to_kv), -1, 2);
    const auto by_head = [&](Var v) { return permute(reshape(v, {B, v.dim(1), s.heads, s.D}), swap); };
    const Var q = by_head(linear(u, b.to_q)), k = by_head(kv[0]), v = by_head(kv[1]);
    Var scores = matmul_transposed(q, k);
    if (positions) scores = scores + place_scores(s, past, positions, q);
    scores = scores / std::sqrt(static_cast<double>(s.D)) + past.future;
    const Var hidden = b.memory < 0 ? past.no_memory : past.not_yet;
    if (hidden) scores = scores + unseen * hidden;
    const Var p = softmax_rows(scores);
    const Var read = reshape(permute(matmul(p, v), swap), {B, rows, s.d});
    x = b.attention(x, linear(read, b.to_out, b.to_out_bias));

    const Var inside = linear(layer_norm(x, b.norm2, b.norm2_bias, 1e-5), b.w1, b.w1_bias);
    const auto halves = s.glu ? split(inside, -1, 2) : std::vector<Var>{};
    x = b.feed_forward(x, linear(s.glu ? gelu(halves[0]) * halves[1] : gelu(inside), b.w2, b.w2_bias));
    if (rows < s.n || b.memory < 0) continue;

    const Var queue = joined({M, u}), oldest = slice(queue, 1, 0, s.n);
    const Var usage = s.compression == "most-used" ? reshape(slice(mean(mean(p, 2), 1), -1, s.n_cm, s.n_cm + s.n), {B, s.n}) : Var{};
    Var next = slice(joined({C, compressed(s, b, oldest, usage)}), 1, s.n / s.c, s.n / s.c + s.n_cm);
    if (s.empty) next = next * compressed_rows(s, past);  // rows that stand for no step are zeros
    memories.push_back(reshape(slice(queue, 1, s.n, s.n + s.n_m), {B, 1, s.n_m, s.d}));
    compressions.push_back(reshape(next, {B, 1, s.n_cm, s.d}));
  }
  SegmentResult result{x, {}};
  if (rows == s.n)
    for (const std::vector<Var>& left : {memories, compressions}) {
      const Var all = left.size() == 1 ? left[0] : concat(left, 1);
      result.memory.push_back(s.held ? detach(all) : all);
    }
  return result;
}

}  // namespace

Architecture compressive_transformer() {
  Architecture a = compressive_transformer_card();
  a.layer = [](Layer& l, Var x) {
    const Sizes s = sizes_of(l.hyper);
    const std::vector<Block> blocks = blocks_of(l, s);
    const Var positions = positions_of(l, s);
    const Var none = x.graph->constant({1}, {0.0});
    const Var parts_of_token[] = {x, l.position()};
    return segments(l,
                    {{"memory", {s.memories, s.n_m, s.d}, "M of each layer that has one, oldest row first."},
                     {"compressed", {s.memories, s.n_cm, s.d}, "C of each of these layers, oldest row first."}},
                    {none, none}, concat(parts_of_token, -1), s.n, filled_up(s.n, [=](Cell&, std::span<const Var> memory, Var tokens) {
                      return segment_of(s, blocks, positions, memory, tokens);
                    }));
  };
  return a;
}

}  // namespace reclab::architectures
