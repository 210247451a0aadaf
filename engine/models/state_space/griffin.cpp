// SPDX-License-Identifier: GPL-3.0-or-later
//   a stack of residual blocks, each with the RG-LRU's recurrent block (see rg-lru) or with local attention that has one key and value head
//   and turns the first half of each head by the position:
//   x + mixing(rms x), then x + mlp(rms x)
// S. De, S. Smith et al., Griffin: mixing gated linear recurrences with local attention for efficient language models, 2024.
#include <cmath>
#include <string>
#include <utility>

#include "array/error.h"
#include "models/parts/hawk.h"
#include "models/parts/parts.h"
#include "recurrence/attention/attention.h"

namespace reclab::architectures {

Architecture rg_lru();

namespace {

Var local_attention(Layer& l, const hawk::Block& b, Var u) {
  const std::int64_t D = b.width / b.heads;
  const std::string name = "attention_block.";
  std::vector<double> frequencies;
  for (std::int64_t i = 0; i < D / 4; ++i)
    frequencies.push_back(std::pow(10000.0, -2.0 * static_cast<double>(i) / static_cast<double>(D / 2)));
  const Var angle = parts::angles(l, frequencies);
  const auto half_turned = [&](Var z) {
    const Var both[] = {parts::rotated(slice(z, -1, 0, D / 2), angle, false), slice(z, -1, D / 2, D)};
    return concat(both, -1);
  };
  const Var q =
      half_turned(parts::by_head(l, hawk::normal_linear(l, name + "proj_q", u, b.width, 1.0, false, "W_q, rows by head"), b.heads));
  const Var k = half_turned(parts::by_head(l, hawk::normal_linear(l, name + "proj_k", u, D, 1.0, false, "W_k of the one key head"), 1));
  const Var v = parts::by_head(l, hawk::normal_linear(l, name + "proj_v", u, D, 1.0, false, "W_v of the one value head"), 1);
  const Var read = attention(l, {"k", {1, D}, "The key that each step appends to the cache."},
                             {"v", {1, D}, "The value that each step appends to the cache."}, q / std::sqrt(static_cast<double>(D)), k, v,
                             l.hyper.integer("window") + 1);
  return hawk::normal_linear(l, name + "proj_final", parts::flat(l, read), b.width, b.variance, true, "W_o");
}

/// The rows that both kinds of block read, after which each has its own.
std::vector<HyperSpec> table() {
  std::vector<HyperSpec> rows = {
      hyper_integer("width", "d", 64, 1, 4096, "Width of the stream.", "channels"),
      hyper_integer("layers", "L", 3, 1, 64, "Residual blocks in a row, of both kinds."),
      hyper_integer("heads", "n", 4, 1, 64, "Heads of the attention and blocks of the gates; width/heads must be a multiple of 4."),
      hyper_integer("attention_every", "", 3, 0, 64, "Each so many blocks there is one with attention; 0: none.", "blocks"),
      hyper_integer("attention_first", "", 2, 0, 63, "The number of the first of them, from 0.")};
  for (auto& row : hawk::hyper(true)) rows.push_back(std::move(row));
  for (auto& row : hawk::hyper_after()) rows.push_back(std::move(row));
  rows.push_back(hyper_choice("block", "pattern", {"pattern", "none"}, "The residual blocks, or the temporal mixing of each alone."));
  return rows;
}

bool is_attention(const Hyper& h, std::int64_t block) {
  const std::int64_t every = h.integer("attention_every"), first = h.integer("attention_first");
  return every > 0 && block >= first && (block - first) % every == 0;
}

const Architecture& part(bool of_attention) {
  static const Architecture recurrent = [] {
    Architecture a = rg_lru();
    a.id = "rg-lru";
    return a;
  }();
  static const Architecture attention = [] {
    Architecture a;
    a.id = "attention";
    a.hyper = table();
    a.spectrum = "none: attention reads all stored steps at once, and no matrix takes one state to the next";
    a.reference = hawk::reference();
    a.layer = [](Layer& l, Var x) {
      const auto block = hawk::block_of(l.hyper);
      const auto mixing = [&](Var u) { return local_attention(l, block, u); };
      return l.hyper.choice("block") == "none" ? mixing(x) : hawk::residual(l, block, x, mixing);
    };
    return a;
  }();
  return of_attention ? attention : recurrent;
}

/// The values of one kind of block, which has no head of its own.
Hyper hyper_of_part(const Hyper& h, bool of_attention) {
  if (of_attention) return h;
  const Architecture& own = part(false);
  Hyper values(own.hyper);
  for (const HyperSpec& row : own.hyper)
    if (row.key == "block")
      values.set("block", h.choice("block") == "none" ? "recurrent" : "residual", own.id);
    else if (h.has(row.key))
      values.set(row.key, h.value(row.key), own.id);
  return values;
}

}  // namespace

Architecture griffin() {
  Architecture a;
  a.title = "Griffin";
  a.equations = {"block b = 0 … L−1 mixes by attention where attention_every and attention_first say so, else by an RG-LRU",
                 "residual(f): x ← x + f(rms(x)),  x ← x + W_down (gelu(v W₀) ⊙ v W₁), v = rms(x)",
                 "RG-LRU: a_t = exp(−c r softplus(Λ)),  h_t = a_t ⊙ h_{t-1} + √(1 − a_t²) ⊙ (i ⊙ x_t)",
                 "attention: o_t = Σ_{t−w ≤ s ≤ t} softmax_s(q_t·k_s/√D) v_s, one k and v for all heads; q, k turned in their first half"};
  a.notes = {"Names and shapes are those of recurrentgemma's torch modules below blocks.<l>.; final/final_norm is that of the stack.",
             "The default is the paper's pattern: two recurrent blocks, then one with attention, again and again, broken off where the "
             "blocks end.",
             "The window w counts the steps before the current one, as in the reference: w + 1 steps are seen.",
             "Only the first half of each head is turned, as pairs (i, i + D/4) by the angle t·10000^(−2i/(D/2)).",
             "k and v are the rows that a step appends to the cache, k after its rotation. A block with a cache has no single transition, "
             "hence no spectrum and no ds_T/ds_t; a recurrent block has both.",
             "The whole sequence is one document. For the recurrent blocks, and for the language model around the blocks, see the card of "
             "rg-lru."};
  a.hyper = table();
  a.spectrum = "of a recurrent block " + part(false).spectrum + "; of a block of attention none";
  a.source = {"S. De, S. L. Smith, A. Fernando, A. Botev et al.",
              "Griffin: mixing gated linear recurrences with local attention for efficient language models", "",
              "https://arxiv.org/abs/2402.19427", 2024};
  a.reference = hawk::reference();
  a.input_width = [](const Hyper& h) { return h.integer("width"); };
  a.check = [](const Hyper& h) {
    hawk::check(h, "griffin");
    if (h.integer("width") % (4 * h.integer("heads")))
      throw Error("griffin: width = " + h.text("width") + " is not a multiple of 4 heads = " + std::to_string(4 * h.integer("heads")) +
                      ": choose one that is.",
                  {.model = "griffin", .parameter = "width", .value = h.text("width"), .range = "a multiple of 4 heads"});
  };
  a.kind = [](const Hyper& h, std::int64_t block) {
    return LayerKind{&part(is_attention(h, block)), hyper_of_part(h, is_attention(h, block))};
  };
  a.final_layer = [](Layer& l, Var x) {
    return l.hyper.choice("block") == "pattern" && l.hyper.flag("final_norm") ? hawk::final_norm(l, x) : x;
  };
  return a;
}

}  // namespace reclab::architectures
