// SPDX-License-Identifier: GPL-3.0-or-later
//   S_t = diag(w) S_{t-1} + k_t v_t^T,   y_t = (S_{t-1} + diag(u) k_t v_t^T)^T r_t,   w = exp(-exp(time_decay))
//   TimeMix: W_o (norm(y/8) silu(W_g x_g));   block: x + TimeMix(ln₁ x), x + ChannelMix(ln₂ x)
// B. Peng et al., Eagle and Finch: RWKV with matrix-valued states and dynamic recurrence, COLM 2024. Names and conventions of RWKV-LM's
// RWKV-v5, x052.
#include <cmath>

#include "models/low_rank/rwkv.h"
#include "recurrence/outer/outer.h"

namespace reclab::architectures {

Architecture rwkv_5() {
  namespace rwkv = parts::rwkv;
  Architecture a;
  a.title = "RWKV-5";
  a.equations = {"x_k = x_t ⊙ μ_k + x_{t-1} ⊙ (1 − μ_k), k = W_k x_k; r, v and g alike;  w = exp(−exp(time_decay)), u = time_faaaa",
                 "y_t = (S_{t-1} + diag(u) k_t v_tᵀ)ᵀ r_t,  S_t = diag(w) S_{t-1} + k_t v_tᵀ, by head",
                 "TimeMix = W_o (norm(y_t/divisor) ⊙ silu(g_t)), the norm by head",
                 "ChannelMix = σ(W_r x_r) ⊙ W_v relu(W_k x_k)²;  MishGLU = W_v (W_a x_k ⊙ mish(W_b x_r))",
                 "block: x ← x + TimeMix(ln₁ x),  x ← x + ChannelMix(ln₂ x)"};
  a.notes = {
      "Names and shapes are those of RWKV-LM's RWKV-v5 (x052): att.*, ffn.* and ln0 (first block only), ln1, ln2 of a block, and "
      "final/ln_out.",
      "The memory is read before it is written; the current token enters by u instead. There is no 1/√N. S is [key, value] here and in the "
      "reference's Python, [value, key] in its kernel.",
      "Reads are divided by divisor and then normalised with epsilon 1e-5; all norms are layer norms with epsilon 1e-5. silu of the gate "
      "is the reference's.",
      "Left out are the reference's pre_ffn (which names a class that it does not have), my_pos_emb and tiny_att, experiments that no "
      "published model uses.",
      "The reference starts att.output, ffn.value and ffn.receptance at 0, where the output is that of the norms alone: zero_init=yes does "
      "so, otherwise they start uniform in ±1/√in."};
  a.hyper = rwkv::hyper();
  a.spectrum = "w = exp(−exp(time_decay)) of each key dimension, once for each value; the same at every step";
  a.source = {"B. Peng et al.", "Eagle and Finch: RWKV with matrix-valued states and dynamic recurrence", "COLM",
              "https://arxiv.org/abs/2404.05892", 2024};
  a.reference = {{"blocks.{n}.*", "*"}, {"ln_out.*", "final/ln_out.*"}};
  a.input_width = [](const Hyper& h) { return h.integer("width"); };
  a.check = [](const Hyper& h) { rwkv::check("rwkv-5", h); };

  a.layer = [](Layer& l, Var x) {
    const Hyper& h = l.hyper;
    const std::int64_t C = h.integer("width"), A = rwkv::attention_width(h), N = h.integer("head_size"), H = A / N;
    const rwkv::Depth depth(l);
    return rwkv::block(l, x, false, [&](Var z) {
      const Var before = rwkv::shifted(l, "att_x", z);
      const auto mixed = [&](const std::string& which, double power, double shift) {
        const Var mu = rwkv::share(l, "att.time_mix_" + which, false, [=](double part) { return std::pow(part, power) + shift; }, C);
        return z * mu + before * (1.0 - mu);
      };
      const Var xk = mixed("k", depth.down, 0.0), xv = mixed("v", depth.down, 0.3 * depth.up), xr = mixed("r", 0.5 * depth.down, 0.0),
                xg = mixed("g", 0.5 * depth.down, 0.0);
      const Var decay =
          l.parameter("att.time_decay", {H, N}, init::each([=](Rng&, std::int64_t i) { return rwkv::decay_start(depth, i, A); }),
                      "log of −log w of each key dimension; starts from −6 to −1 over those of all heads.");
      const Var bonus = l.parameter(
          "att.time_faaaa", {H, N}, init::each([=](Rng&, std::int64_t i) { return rwkv::bonus_start(depth, i, A); }),
          "u, the bonus of the current token; starts near 0 in the first layer, from 1 to 0 in the last, with {−0.1, 0, 0.1} in turn.");
      const Var r = parts::by_head(l, rwkv::matrix(l, "att.receptance", xr, A, "W_r, rows by head", 1.0), H),
                k = parts::by_head(l, rwkv::matrix(l, "att.key", xk, A, "W_k, rows by head", 0.1), H),
                v = parts::by_head(l, rwkv::matrix(l, "att.value", xv, A, "W_v, rows by head", 1.0), H);
      const Var read = outer(l, {"S", {H, N, N}, "The memory of each head, [key, value]."},
                             {.q = r, .k = k, .v = v, .key_decay = -exp_in_range(decay), .read = ReadOrder::before, .bonus = bonus});
      return rwkv::output(l, read, xg, h.real("divisor"), 1e-5);
    });
  };
  a.final_layer = rwkv::finish;
  return a;
}

}  // namespace reclab::architectures
