// SPDX-License-Identifier: GPL-3.0-or-later
//   S_t = diag(w_t) S_{t-1} + k_t v_t^T,   y_t = (S_{t-1} + diag(u) k_t v_t^T)^T r_t,   w_t = exp(-exp(d + tanh(x_w D₁) D₂))
//   x_i = x_t + (x_{t-1} - x_t) (μ_i + m_i),  m = tanh((x_t + (x_{t-1} - x_t) μ_x) M₁) M₂;   TimeMix: W_o (norm(y) silu(W_g x_g))
// B. Peng et al., Eagle and Finch: RWKV with matrix-valued states and dynamic recurrence, COLM 2024. Names and conventions of RWKV-LM's
// RWKV-v5, x060.
#include <cmath>

#include "models/low_rank/rwkv.h"
#include "models/parts/layers/hybrid_attention.h"
#include "recurrence/outer/outer.h"

namespace reclab::architectures {

Architecture rwkv_6() {
  namespace rwkv = parts::rwkv;
  Architecture a;
  a.title = "RWKV-6";
  a.equations = {"m = tanh((x_t + Δ ⊙ μ_x) M₁) M₂,  Δ = x_{t-1} − x_t;  x_i = x_t + Δ ⊙ (μ_i + m_i) for i of w, k, v, r, g",
                 "w_t = exp(−exp(time_decay + tanh(x_w D₁) D₂)),  u = time_faaaa",
                 "y_t = (S_{t-1} + diag(u) k_t v_tᵀ)ᵀ r_t,  S_t = diag(w_t) S_{t-1} + k_t v_tᵀ, by head",
                 "TimeMix = W_o (norm(y_t) ⊙ silu(g_t)), the norm by head with epsilon 10⁻⁵ divisor²",
                 "ChannelMix = σ(W_r x_r) ⊙ W_v relu(W_k x_k)²;  MishGLU = W_v (W_a x_k ⊙ mish(W_b x_r))",
                 "block: x ← x + TimeMix(ln₁ x),  x ← x + ChannelMix(ln₂ x)"};
  a.notes = {
      "Names and shapes are those of RWKV-LM's RWKV-v5 (x060): att.*, ffn.* and ln0 (first block only), ln1, ln2 of a block, and "
      "final/ln_out. time_maa_w1 and w2, time_decay_w1 and w2 are [in, out].",
      "The five mixtures of tokens stand in the order w, k, v, r, g in the columns of time_maa_w1 and the first axis of time_maa_w2.",
      "w_t comes from token t and acts on what was written before it, after token t has read; the current token enters by u instead. There "
      "is no 1/√N, which flash-linear-attention has by default.",
      "All other norms are layer norms with epsilon 1e-5.",
      "Left out are the reference's pre_ffn (which names a class that it does not have), my_pos_emb and tiny_att, experiments that no "
      "published model uses.",
      "The reference starts att.output, ffn.value and ffn.receptance at 0, where the output is that of the norms alone: zero_init=yes does "
      "so, otherwise they start uniform in ±1/√in."};
  a.hyper = rwkv::hyper();
  a.hyper.push_back(hyper_integer("mix_rank", "", 32, 1, 4096, "Rank of what moves the mixtures of tokens (the reference's D_MIX_LORA)."));
  a.hyper.push_back(hyper_integer("decay_rank", "", 64, 1, 4096, "Rank of what moves the decays (the reference's D_DECAY_LORA)."));
  a.hyper.push_back(
      initialisation_only(hyper_real("low_rank_std", "", 0.0, 0.0, 10.0,
                                     "Deviation that M₁, M₂, D₁ and D₂ start with; 0: as in the reference, where M₁ and D₁ are 0, so "
                                     "that decays and mixtures do not move before they are trained.")));
  a.spectrum = "w_t of each key dimension, once for each value";
  a.source = {"B. Peng et al.", "Eagle and Finch: RWKV with matrix-valued states and dynamic recurrence", "COLM",
              "https://arxiv.org/abs/2404.05892", 2024};
  a.reference = {{"blocks.{n}.*", "*"}, {"ln_out.*", "final/ln_out.*"}};
  a.input_width = [](const Hyper& h) { return h.integer("width"); };
  a.check = [](const Hyper& h) { rwkv::check("rwkv-6", h); };

  a.layer = [](Layer& l, Var x) {
    const Hyper& h = l.hyper;
    const std::int64_t C = h.integer("width"), A = rwkv::attention_width(h), N = h.integer("head_size"), H = A / N,
                       M = h.integer("mix_rank"), D = h.integer("decay_rank");
    const rwkv::Depth depth(l);
    const double deviation = h.real("low_rank_std");
    const Init first = deviation > 0.0 ? init::normal(deviation) : init::constant(0.0),
               second = deviation > 0.0 ? init::normal(deviation) : init::uniform(-0.01, 0.01);
    return rwkv::block(l, x, true, [&](Var z) {
      if (parts::has_attention(l)) return parts::hybrid_attention(l, "attn.", z, 0.02);
      const Var step = rwkv::shifted(l, "att_x", z) - z;
      const auto mu = [&](const std::string& which, double power, double shift) {
        return rwkv::share(l, "att.time_maa_" + which, true, [=](double part) { return std::pow(part, power) + shift; }, C);
      };
      const Var mu_x = mu("x", depth.down, 0.0);
      const Var shares[] = {mu("w", depth.down, 0.0), mu("k", depth.down, 0.0), mu("v", depth.down, 0.3 * depth.up),
                            mu("r", 0.5 * depth.down, 0.0), mu("g", 0.5 * depth.down, 0.0)};
      const Var M1 =
          l.parameter("att.time_maa_w1", {C, 5 * M}, first, "M₁, columns in the order w, k, v, r, g; starts at 0, or N(0, low_rank_std²).");
      const Var M2 =
          l.parameter("att.time_maa_w2", {5, M, C}, second, "M₂ of w, k, v, r, g; starts uniform in ±0.01, or N(0, low_rank_std²).");
      const auto low = split(tanh(matmul(z + step * mu_x, M1)), -1, 5);
      Var mixed[5];
      for (std::size_t i = 0; i < 5; ++i) {
        const auto at = static_cast<std::int64_t>(i);
        mixed[i] = z + step * (shares[i] + matmul(low[i], reshape(slice(M2, 0, at, at + 1), {M, C})));
      }
      const auto& [xw, xk, xv, xr, xg] = mixed;
      const Var decay =
          l.parameter("att.time_decay", {1, 1, A}, init::each([=](Rng&, std::int64_t i) { return rwkv::decay_start(depth, i, A); }),
                      "log of −log w where nothing moves it, by head; starts from −6 to −1.");
      const Var D1 = l.parameter("att.time_decay_w1", {C, D}, first, "D₁; starts at 0, or N(0, low_rank_std²).");
      const Var D2 =
          l.parameter("att.time_decay_w2", {D, A}, second, "D₂, columns by head; starts uniform in ±0.01, or N(0, low_rank_std²).");
      const Var log_w = parts::by_head(l, -exp_in_range(decay + matmul(tanh(matmul(xw, D1)), D2)), H);
      l.gate("forget", exp(log_w), 0.0, 1.0, "w_t: how much of each key dimension of the memory is kept.");
      const Var bonus = l.parameter(
          "att.time_faaaa", {H, N}, init::each([=](Rng&, std::int64_t i) { return rwkv::bonus_start(depth, i, A); }),
          "u, the bonus of the current token; starts near 0 in the first layer, from 1 to 0 in the last, with {−0.1, 0, 0.1} in turn.");
      const Var r = parts::by_head(l, rwkv::matrix(l, "att.receptance", xr, A, "W_r, rows by head", 1.0), H),
                k = parts::by_head(l, rwkv::matrix(l, "att.key", xk, A, "W_k, rows by head", 0.1), H),
                v = parts::by_head(l, rwkv::matrix(l, "att.value", xv, A, "W_v, rows by head", 1.0), H);
      const Var read = outer(l, {"S", {H, N, N}, "The memory of each head, [key, value]."},
                             {.q = r, .k = k, .v = v, .key_decay = log_w, .read = ReadOrder::before, .bonus = bonus});
      return rwkv::output(l, read, xg, 1.0, 1e-5 * h.real("divisor") * h.real("divisor"));
    });
  };
  a.final_layer = rwkv::finish;
  parts::add_hybrid_attention(a, "rwkv-6");
  a.notes.back() += " The block round it is RWKV-LM's, which has no such setting.";
  return a;
}

}  // namespace reclab::architectures
