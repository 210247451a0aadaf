// SPDX-License-Identifier: GPL-3.0-or-later
//   q̃_t = Λ^t P φ(q_t),  k̃_t = Λ^t P φ(k_t),  Λ = diag(e^{iθ}), P unitary:   q̃_t·k̃_s depends on t - s alone
//   S_t = S_{t-1} + k̃_t v_t^T,  o_t = norm(Re S_t^H q̃_t);   in the frame that turns with the position: S_t = Λ S_{t-1} + conj(P φ(k_t))
//   v_t^T
// Z. Qin et al., Linearized relative positional encoding, TMLR 2023. Names and conventions of the authors' fairseq-evo (urpe.py,
// linear_kernel_attention.py).
#include <cmath>

#include "models/parts/fairseq.h"
#include "models/parts/features.h"
#include "models/parts/parts.h"
#include "recurrence/outer/outer.h"

namespace reclab::architectures {

Architecture lrpe() {
  Architecture a;
  a.title = "LRPE";
  a.equations = {
      "q̂ = P φ(q), k̂ = P φ(k) for queries and keys of each head, as complex numbers: entries with rotation=complex, neighbours 2j and 2j + "
      "1 as x_{2j} + i x_{2j+1} with pairs, of the first half alone with half",
      "the weight of step s at step t is Σ_j Re(q̂_{t,j} conj(k̂_{s,j}) e^{iθ_j (t−s)}): Σ_j cos(θ_j (t−s)) q̂_{t,j} k̂_{s,j} where P is real "
      "and rotation=complex",
      "frame=fixed: S_t = S_{t-1} + k̃_t v_tᵀ, o_t = S_tᵀ q̃_t, x̃_t = [Re; Im] of e^{iθt} x̂_t, t = 0, 1, … (pairs stay neighbours)",
      "frame=turning: S_t = e^{iθ} S_{t-1} + conj(k̂_t) v_tᵀ, o_t = Re(S_tᵀ q̂_t): the same numbers",
      "normaliser=norm: the layer norm of all heads' o_t;  sum: o_t/max(w_t, 10⁻⁶), w_t: the sum of the weights;  none: o_t",
      "block: u ← u + W_o o(norm(u)),  u ← u + fc2(f(fc1(norm(u)))), or with the norms after the residuals"};
  a.notes = {
      "Names and shapes are those of fairseq-evo's LinearKernelAttention within its decoder layer: self_attn.{q,k,v,out}_proj, "
      "self_attn.urpe.{theta,v}, self_attn.layer_norm, self_attn_layer_norm, fc1, fc2, final_layer_norm, and final/layer_norm of the "
      "decoder. Heads are the slow part of rows; θ and P are the same for all heads.",
      "rotation is core_matrix: complex 4, pairs 1, half 2 (of heads of D entries the first D/2, made even). Its permutation, core_matrix "
      "3, whose powers are drawn and stored for 512 positions, is not offered. basis is p_matrix: identity 1, dct 2, householder 3, "
      "fourier 4, odd-even 5.",
      "fourier takes the first D/2 + 1 numbers of the unitary transform (rfft), each of which counts once. The code casts them to single "
      "precision elsewhere than here.",
      "Positions count from 0. The angles b and c take the length of the sequence at hand in the code, here M; of rotation=complex they "
      "are ours.",
      "The code has the layer norm wherever there is a position; sum is what it does without one. There is no 1/√d. The memory is updated "
      "before it is read.",
      "The recurrence of the code is the fixed frame, which does not turn, so that its transition is the identity; the turning frame has "
      "the eigenvalues e^{iθ}, and the output is the same. Its memory is the conjugate of the fixed one's, turned by t."};
  a.hyper = {hyper_integer("width", "d", 64, 1, 4096, "Width of the stream.", "channels"),
             hyper_integer("heads", "h", 4, 1, 64, "Heads; must divide the width."),
             hyper_integer("layers", "L", 1, 1, 64, "Layers in a row."),
             hyper_choice("feature_map", "elu+1", {"elu+1", "relu", "silu", "identity"}, "φ.")};
  parts::add_lrpe_rows(a.hyper);
  a.hyper.push_back(
      hyper_choice("frame", "fixed", {"fixed", "turning"},
                   "Whether the memory stands still and queries and keys are turned by their positions, or the memory turns."));
  a.hyper.push_back(hyper_choice("normaliser", "norm", {"norm", "sum", "none"},
                                 "What brings the read into range: a layer norm, the sum of its weights, or nothing."));
  parts::add_fairseq_rows(a.hyper);
  a.spectrum = "the transition of the memory: the identity, or with frame=turning e^{iθ}";
  a.source = {"Z. Qin, W. Sun, K. Lu, H. Deng, D. Li, X. Han, Y. Dai, L. Kong, Y. Zhong", "Linearized relative positional encoding", "TMLR",
              "https://arxiv.org/abs/2307.09270", 2023};
  a.reference = parts::fairseq_names(false);
  a.input_width = [](const Hyper& h) { return h.integer("width"); };
  a.check = [](const Hyper& h) {
    parts::heads_divide_width(h, "lrpe");
    parts::check_lrpe(h, h.integer("width") / h.integer("heads"), "lrpe");
  };

  a.layer = [](Layer& l, Var u) {
    const Hyper& h = l.hyper;
    const std::int64_t d = h.integer("width"), heads = h.integer("heads"), D = d / heads;
    return parts::fairseq_layer(l, u, [&](Var x) {
      const auto project = [&](const std::string& which, const std::string& role) {
        return parts::by_head(l,
                              parts::linear(l, "self_attn." + which + "_proj", x, d,
                                            {parts::xavier_uniform(d, d, 1.0 / std::sqrt(2.0)), parts::torch_uniform(d),
                                             role + ", rows by head", "starts Xavier uniform with gain 1/√2, its bias uniform in ±1/√d"}),
                              heads);
      };
      const Var q = parts::entrywise(h.choice("feature_map"), project("q", "W_q")),
                k = parts::entrywise(h.choice("feature_map"), project("k", "W_k")), v = project("v", "W_v");
      const parts::Lrpe position(l, "self_attn.", D);
      const bool weighed = h.choice("normaliser") == "sum";
      Var o, weight;
      if (h.choice("frame") == "turning") {
        const auto of_q = position.phasors(q), of_k = position.phasors(k);
        const std::int64_t n = of_k.theta.dim(0);
        const Var turn = of_k.theta + u.graph->constant({heads, n}, std::vector<double>(static_cast<std::size_t>(heads * n), 0.0));
        const Var queries = complex(of_q.re, of_q.im), keys = complex(of_k.re, -of_k.im), one = affine(slice(v, -1, 0, 1), 0.0, 1.0);
        o = outer(l, {"S", {heads, n, D}, "The memory of each head in the frame that turns, [key, value]."},
                  {.q = queries, .k = keys, .v = v, .phase = turn});
        if (weighed)
          weight = outer(l, {"z", {heads, n, 1}, "The sum of the keys of each head in that frame, [key, 1]."},
                         {.q = queries, .k = keys, .v = one, .phase = turn});
      } else if (weighed) {
        const auto made = parts::linear_read(l, position.at_position(q), position.at_position(k), v,
                                             "The sum of turned keys times values of each head, [key, value].",
                                             "The sum of turned keys of each head: the normaliser.");
        o = made.read;
        weight = made.weight;
      } else {
        const Var keys = position.at_position(k);
        o = outer(l, {"S", {heads, keys.dim(-1), D}, "The sum of turned keys times values of each head, [key, value]."},
                  {position.at_position(q), keys, v});
      }
      if (weighed) o = o / parts::at_least(weight, 1e-6);
      o = parts::flat(l, o);
      if (h.choice("normaliser") == "norm") o = parts::layer_norm(l, "self_attn.layer_norm", o);
      return parts::linear(
          l, "self_attn.out_proj", o, d,
          {parts::xavier_uniform(d, d), init::constant(0.0), "W_o, columns by head", "starts Xavier uniform, its bias at 0"});
    });
  };
  a.final_layer = parts::fairseq_finish;
  return a;
}

}  // namespace reclab::architectures
