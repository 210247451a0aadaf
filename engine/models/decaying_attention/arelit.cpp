// SPDX-License-Identifier: GPL-3.0-or-later
//   K_t = (1 - γ_t) ∘ K_{t-1} + cos(ω_i (t+2)) γ_t ∘ k_t,   V_t = (1 - β_t) ∘ V_{t-1} + cos(ω_i (t+2)) β_t ∘ v_t for i = 1 .. r,   s_t = (1
//   - γ_t) ∘ s_{t-1} + γ_t ∘ k_t a_t = Σ_i V_t (K_t·q_t) / (2 r s_t·q_t + ε);   k, q, γ: outer products of two parts, by head;   block: x ←
//   gru(x, relu(W a)), x ← gru(x, relu(ffc(LN x)))
// S. Pramanik, E. Elelimy, M. C. Machado, A. White, AGaLiTe: approximate gated linear transformers for online reinforcement learning, TMLR
// 2024 (AReLiT in its first version). Names and conventions of agalite.py in subho406/agalite.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "array/error.h"
#include "models/decaying_attention/gtrxl.h"
#include "models/parts/parts.h"
#include "recurrence/diagonal/diagonal.h"

namespace reclab::architectures {

using gtrxl::dense, gtrxl::gated, gtrxl::norm;

namespace {

Var attention(Layer& l, Var x) {
  const Hyper& h = l.hyper;
  const std::int64_t T = l.steps(), B = l.batch(), heads = h.integer("heads"), D = h.integer("head_dim"), eta = h.integer("eta"),
                     r = h.integer("r"), E = eta * D;
  const std::string name = "AttentionORLiTLayer_0.";
  const auto five = split(
      reshape(dense(l, name + "linear_kqvbetagammas", x, heads * D * 5, "By head: columns of k, q, v, β, γ"), {T, B, heads, 5 * D}), -1, 5);
  const auto three =
      split(reshape(dense(l, name + "linear_p1p2p3", x, heads * eta * 3, "By head: columns of p₁, p₂, p₃"), {T, B, heads, 3 * eta}), -1, 3);
  const auto product = [&](Var part, Var p) {
    return reshape(reshape(part, {T, B, heads, 1, D}) * reshape(p, {T, B, heads, eta, 1}), {T, B, heads, E});
  };
  const Var k = product(relu(five[0]), relu(three[0])), q = product(relu(five[1]), relu(three[1]));
  const Var gamma = l.gate("gamma", product(sigmoid(five[4]), sigmoid(three[2])), 0.0, 1.0,
                           "γ: how much of each entry of the keys' memories is replaced.");
  const Var beta = l.gate("beta", sigmoid(five[3]), 0.0, 1.0, "β: how much of each entry of the values' memories is replaced.");
  Var keep_k = 1.0 - gamma, keep_v = sigmoid(-five[3]);
  if (h.integer("reset_column")) {
    const Var goes_on = reshape(1.0 - l.document_starts(h.integer("reset_column")), {T, B, 1, 1});
    keep_k = keep_k * goes_on;
    keep_v = keep_v * goes_on;
  }
  // The frequencies from -π to π have a common period, so the step's number is taken within it.
  std::vector<double> frequencies;
  for (std::int64_t i = 0; i < r; ++i)
    frequencies.push_back(r == 1 ? -std::numbers::pi
                                 : -std::numbers::pi + 2.0 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(r - 1));
  const double period = static_cast<double>(std::max<std::int64_t>(2, 2 * (r - 1)));
  const Var n = l.position() + 2.0, within = n - floor((n + 0.5) / period) * period;
  const Var wave = reshape(cos(within * l.graph().constant({r}, std::move(frequencies))), {T, B, r, 1, 1});
  const Var ones = l.graph().constant({r, 1, 1}, std::vector<double>(static_cast<std::size_t>(r), 1.0));
  const auto memory = [&](const std::string& state, Var keep, Var write, std::int64_t width, const std::string& text) {
    const Shape one{T, B, 1, heads, width};
    return diagonal(l, {state, {r, heads, width}, text}, reshape(keep, one) * ones, reshape(write, one) * wave);
  };
  const Var K = memory("tilde_k", keep_k, gamma * k, E, "The r memories of keys, each written with a wave of its own."),
            V = memory("tilde_v", keep_v, beta * five[2], D, "The r memories of values.");
  const Var s = diagonal(l, {"s", {heads, E}, "The memory of keys without a wave, which the read is divided by."}, keep_k, gamma * k);
  const Var match = sum(K * reshape(q, {T, B, 1, heads, E}), -1);
  const Var read = sum(V * reshape(match, {T, B, r, heads, 1}), 2), size = reshape(sum(s * q, -1), {T, B, heads, 1});
  return dense(l, name + "project", reshape(read / (size * (2.0 * static_cast<double>(r)) + h.real("eps")), {T, B, heads * D}),
               h.integer("width"), "W of the heads' reads");
}

}  // namespace

Architecture arelit() {
  Architecture a;
  a.title = "AReLiT";
  a.equations = {
      "by head: [k q v β γ] = W x, [p₁ p₂ p₃] = W' x;  k ← relu(k) ⊗ relu(p₁), q ← relu(q) ⊗ relu(p₂), γ ← σ(γ) ⊗ σ(p₃), each [η·D];  β ← "
      "σ(β)",
      "K_i ← (1 − γ_t) ⊙ K_i + cos(ω_i (t+2)) γ_t ⊙ k_t,  V_i ← (1 − β_t) ⊙ V_i + cos(ω_i (t+2)) β_t ⊙ v_t,  i = 1..r;  ω from −π to π "
      "evenly",
      "s_t = (1 − γ_t) ⊙ s_{t-1} + γ_t ⊙ k_t;  a_t = Σ_i V_i (K_i·q_t)/(2 r s_t·q_t + ε)",
      "x ← gru(x, relu(W_o a(LN x))),  x ← gru(x, relu(W₂ relu(W₁ LN x)))",
      "gru(x, y): r = σ(W_r y + U_r x), z = σ(W_z y + U_z x − b), x + z ⊙ (tanh(W_g y + U_g (r ⊙ x)) − x)"};
  a.notes = {
      "Names and shapes are those of subho406/agalite, src/models/agalite/agalite.py, below its layer<n>, n from 1: kernels are [in, out]; "
      "with a dot here where flax has a slash.",
      "The exact memory of ReLiT is the matrix Σ of all γ- and β-decayed v kᵀ; the sum of r products V_i K_iᵀ stands for it, and is exact "
      "where the waves of different steps are orthogonal.",
      "The waves count from 2 at the first step. The frequencies are those of the code, evenly spaced with both ends, so that the first "
      "and the last wave are alike: with r = 2 both memories are.",
      "The first layer maps its input to the width itself (emb_layer), so there is no encoder.",
      "reset_column: where a document begins, all three memories are multiplied with 0 before they are written, as at the reference's "
      "terminations; waves go on.",
      "All norms are layer norms with epsilon 1e-6."};
  a.hyper = {hyper_integer("width", "d", 32, 1, 4096, "Width of the stream.", "channels"),
             hyper_integer("layers", "L", 1, 1, 64, "Layers in a row."),
             hyper_integer("heads", "h", 4, 1, 64, "Heads."),
             hyper_integer("head_dim", "D", 8, 1, 1024, "Width of a head.", "channels"),
             hyper_integer("eta", "η", 4, 1, 64, "How many times wider than a head keys and queries are."),
             hyper_integer("r", "r", 2, 1, 256, "Products that stand for the matrix memory."),
             hyper_integer("feed_forward", "d_ffc", 32, 1, 65536, "Hidden width of the feed-forward part.", "units"),
             hyper_flag("embedding_act", true, "Whether a ReLU follows the first layer's map of the input."),
             hyper_real("eps", "ε", 1e-5, 1e-12, 1.0, "What is added to the divisor.", true),
             initialisation_only(hyper_real("gru_bias", "b", 2.0, -20.0, 20.0,
                                            "Where the biases of the two gates start; higher: nearer to passing the input on.")),
             hyper_integer("reset_column", "", 0, 0, 100000, "The input column that is above 0 where a document begins; 0: none.")};
  a.spectrum = "1 − γ_t of the r memories of keys, then 1 − β_t of those of values, then 1 − γ_t of s";
  a.source = {"S. Pramanik, E. Elelimy, M. C. Machado, A. White",
              "AGaLiTe: approximate gated linear transformers for online reinforcement learning", "TMLR",
              "https://arxiv.org/abs/2310.15719", 2023};
  a.reference = {{"layer{n+1}.*", "*"}};
  a.document_column = "reset_column";

  a.layer = [](Layer& l, Var x) {
    const std::int64_t d = l.hyper.integer("width");
    if (l.index() == 0) {
      x = dense(l, "emb_layer", x, d, "The map of the input to the width");
      if (l.hyper.flag("embedding_act")) x = relu(x);
    }
    x = gated(l, "GRUGatingUnit_0", "update_0", x, relu(attention(l, norm(l, "LayerNorm_0", x))));
    const Var hidden = relu(dense(l, "Dense_0", norm(l, "LayerNorm_1", x), l.hyper.integer("feed_forward"), "W₁ of the feed-forward part"));
    return gated(l, "GRUGatingUnit_1", "update_1", x, relu(dense(l, "Dense_1", hidden, d, "W₂ of the feed-forward part")));
  };
  return a;
}

}  // namespace reclab::architectures
