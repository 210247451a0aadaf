// SPDX-License-Identifier: GPL-3.0-or-later
//   Z = summary_P [m_{t-1}; x_t],   o_t = process(Z),   m_t = summary_M [m_{t-1}; x_t; o_t],   x_t the n tokens of a step
//   summary_k of tokens y: k weighted means, softmax over the tokens of W₂ gelu(W₁ LN y + b₁); or k learned queries attend to y
//   memory_mode=TL-AddErase writes m_t = m_{t-1} ∘ Π_i (1 - s_i e_i^T) + mean_i (1 - s_i a_i^T), s = softmax over rows of W₂ gelu(W₁ LN m),
//   e and a made of o_t
// M. S. Ryoo, K. Gopalakrishnan, K. Kahatapitiya, T. Xiao, K. Rao, A. Stone, Y. Lu, J. Ibarz, A. Arnab, Token Turing machines, CVPR 2023.
// Names and conventions of google-research/scenic, projects/token_turing/model.py.
#include <cmath>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "models/modelling_recurrence/token-turing-machine/parameters.h"
#include "recurrence/attention/attention.h"
#include "recurrence/chunks.h"
#include "recurrence/step/step.h"

namespace reclab::architectures {
namespace {

using namespace token_turing;

/// [a; b; …], tokens after one another.
Var joined(std::initializer_list<Var> tokens) { return concat(std::vector<Var>(tokens), 1); }

/// x [batch, rows, d] attends to y; the weights [batch, heads, rows, columns] go to `weights`.
Var attend(const HeadedAttention& a, Var x, Var y, Var& weights) {
  const std::int64_t d = x.dim(-1), heads = a.query.dim(1), D = a.query.dim(2), B = y.dim(0);
  const int swap[] = {0, 2, 1, 3};
  const auto projected = [&](Var from, Var kernel, Var bias) {
    const Var made = matmul(from, reshape(kernel, {d, d}));
    return permute(reshape(bias ? made + reshape(bias, {d}) : made, {B, from.dim(1), heads, D}), swap);
  };
  const Var q = projected(x, a.query, a.query_bias) / std::sqrt(static_cast<double>(D));
  weights = softmax_rows(matmul_transposed(q, projected(y, a.key, {})));
  const Var read = reshape(permute(matmul(weights, projected(y, a.value, a.value_bias)), swap), {B, x.dim(1), d});
  return matmul(read, reshape(a.out, {d, d})) + a.out_bias;
}

Var process(const Processor& p, Var z) {
  if (p.positions) z = z + p.positions;
  Var unused;
  for (const EncoderBlock& b : p.blocks) {
    const Var x = b.before_attention(z);
    z = z + attend(b.attention, x, x, unused);
    z = z + b.mlp(b.before_mlp(z));
  }
  for (const MixerBlock& b : p.mixers) {
    z = z + transpose(b.tokens(transpose(b.before_tokens(z))));
    z = z + b.channels(b.before_channels(z));
  }
  for (const MlpStage& s : p.stages) z = s.mlp(s.norm(z));
  return p.last(z);
}

Var summarised(Cell& cell, const Summary& s, Var y, const std::string& gate, const std::string& text) {
  Var weights, made;
  if (s.tokens) {
    made = attend(s.attention, s.tokens + chunks::zeros(*y.graph, {y.dim(0), 1, 1}), y, weights);
  } else {
    weights = softmax_rows(transpose(s.mask(s.norm(y))));
    made = matmul(weights, y);
  }
  cell.gate(gate, weights, 0.0, 1.0, text);
  return made;
}

Var added_and_erased(Cell& cell, const AddErase& w, Var memory, Var outputs) {
  const Var selected = cell.gate("select", softmax_rows(transpose(w.select(w.memory(memory)))), 0.0, 1.0,
                                 "s: how far each of the tokens that are written goes to each row of the memory; sums to 1 over the rows.");
  const auto made = [&](const Norm& norm, const Mlp& over_tokens, const Mlp& over_channels) {
    const Var tokens = over_channels(transpose(over_tokens(transpose(norm(outputs)))));
    return 1.0 - chunks::with_axis(selected, -1) * chunks::with_axis(tokens, -2);  // [batch, tokens, rows, d]
  };
  const Var erased = made(w.erased, w.erased_tokens, w.erased_channels);
  Var kept;
  for (std::int64_t i = 0; i < erased.dim(1); ++i) {
    const Var one = reshape(slice(erased, 1, i, i + 1), memory.shape());
    kept = kept ? kept * one : one;
  }
  return memory * kept + mean(made(w.added, w.added_tokens, w.added_channels), 1);
}

}  // namespace

Architecture token_turing_machine() {
  Architecture a = token_turing_machine_card();
  a.layer = [](Layer& l, Var x) {
    const Hyper& h = l.hyper;
    const std::int64_t d = h.integer("width"), n = h.integer("tokens"), M = h.integer("memory"), P = h.integer("process"), T = l.steps(),
                       B = l.batch();
    const std::vector<StateSpec> states{{"memory", {M, d}, "The memory's tokens, which are rows."}};
    const std::vector<Var> in{reshape(x, {T, B, n, d})};
    if (h.choice("unit") == "simple") {
      const Summary read = reading(l);
      const Processor unit = processor(l, M + P);
      const Stepped stepped = step_and_read(l, states, in, [=](Cell& cell, std::span<const Var> tokens, std::span<const Var> before) {
        const Var z = summarised(cell, read, tokens[0], "read",
                                 "How much of each token of the input each token that is processed is made of."),
                  out = process(unit, joined({before[0], z}));
        return std::vector<Var>{slice(out, 1, P, P + M), slice(out, 1, 0, P)};
      });
      return reshape(stepped.reads[0], {T, B, P * d});
    }
    const bool erases = h.choice("memory_mode") == "TL-AddErase";
    const Var read_places = read_positions(l);
    const Summary read = reading(l);
    const Processor unit = processor(l, P);
    const Var write_places = write_positions(l);
    const Summary write = erases ? Summary{} : writing(l);
    const AddErase edit = erases ? add_erase(l) : AddErase{};
    const auto placed = [](Var tokens, Var places) { return places ? tokens + places : tokens; };
    const Stepped stepped = step_and_read(l, states, in, [=](Cell& cell, std::span<const Var> tokens, std::span<const Var> before) {
      const Var memory = before[0];
      const Var z = summarised(cell, read, placed(joined({memory, tokens[0]}), read_places), "read",
                               "How much of each token of the memory and the input each token that is processed is made of.");
      const Var out = process(unit, z);
      if (erases) return std::vector<Var>{added_and_erased(cell, edit, memory, out), out};
      const Var next =
          summarised(cell, write, placed(joined({memory, tokens[0], out}), write_places), "write",
                     "How much of each token of the old memory, the input and the output each token of the new memory is made of.");
      return std::vector<Var>{next, out};
    });
    return reshape(stepped.reads[0], {T, B, P * d});
  };
  return a;
}

}  // namespace reclab::architectures
