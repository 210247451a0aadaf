// SPDX-License-Identifier: GPL-3.0-or-later
//   s = tanh(o_{t-1}),   q = softmax(W_q x + R_q^T s),   k alike,   v = W_v x + R_v^T s,   β = σ(w x + r·s)
//   S_t = S_{t-1} + k_t (β_t (v_t - S_{t-1}^T k_t))^T,   o_t = S_t^T q_t        output_feedback: + R_y^T s
//   delta RNN: z_t = the read of a delta memory that sees the input alone,   o_t = z_t + R_t^T softmax(o_{t-1}),   R_t a second delta
//   memory
// K. Irie, I. Schlag, R. Csordás, J. Schmidhuber, Going beyond linear transformers with recurrent fast weight programmers, NeurIPS 2021.
// Names and conventions of the authors' recurrent-fwp and lmtool-fwp.
#include <cmath>

#include "array/error.h"
#include "models/linear_transformers/fast_weights.h"
#include "recurrence/chunks.h"
#include "recurrence/step/step.h"

namespace reclab::architectures {
namespace {

/// S + k (β (v - S^T k))^T, rows and columns as the last axes.
Var rewritten(Var S, Var k, Var v, Var beta) {
  const Var missing = v - sum(chunks::with_axis(k, -1) * S, -2);
  return S + chunks::with_axis(k, -1) * chunks::with_axis(beta * missing, -2);
}
/// S^T q.
Var read(Var S, Var q) { return sum(chunks::with_axis(q, -1) * S, -2); }

}  // namespace

Architecture recurrent_deltanet() {
  Architecture a;
  a.title = "Recurrent DeltaNet";
  a.equations = {
      "[q̂ k̂ v̂ b̂] = W x_t,  s = tanh(o_{t-1})", "q = softmax(q̂ + R_qᵀ s),  k = softmax(k̂ + R_kᵀ s),  v = v̂ + R_vᵀ s,  β = σ(b̂ + r_b·s)",
      "S_t = S_{t-1} + k_t (β (v_t − S_{t-1}ᵀ k_t))ᵀ,  o_t = S_tᵀ q_t;  output_feedback: o_t = S_tᵀ q_t + R_yᵀ s",
      "variant=rnn: [q̂ k̂ v̂ k̃ ṽ b̂ b̃] = W x_t;  z_t is the read of S_t, written with q, k = φ(q̂), φ(k̂), v̂ and σ(b̂), φ = elu + 1 (sum_norm: "
      "divided by its sum);  R_t = R_{t-1} + k_t (σ(b̃) (ṽ − R_{t-1}ᵀ k_t))ᵀ, k_t = softmax(k̃);  o_t = z_t + R_tᵀ softmax(o_{t-1})",
      "block: x ← norm(x + W_o o_t/√D),  x ← norm(x + W₂ relu(W₁ x + b₁) + b₂)"};
  a.notes = {
      "Names and shapes are those of lmtool-fwp: dec_attn.{slow_net,R_q,R_k,R_v,r_b,o_net,layer_norm} (variant=rnn: qkvb_net for slow_net "
      "and no R), pos_ff.{CoreNet.0,CoreNet.3,layer_norm}; rows of slow_net are q, k, v, β of the first head, then of the next.",
      "output_feedback adds R_yᵀ tanh(o_{t-1}) to what is read, and share=plain leaves β without σ: surveys write the recurrent delta "
      "network so; the authors' code has neither. With a β outside 0..2 the memory may grow without bound.",
      "R_q, R_k, R_v, R_y [1, heads, D, D] act on rows, s R; r_b is [1, heads, 1, D].",
      "What is fed back is each head's read before the output projection and before it is divided by √D. o starts at 0, so the first step "
      "of variant=rnn reads the mean of R's rows.",
      "In variant=rnn the softmax of o_{t-1} has 1e-6 added to its denominator, the largest exponential being 1, as in the authors' "
      "kernel.",
      "Weights of recurrent-fwp's models of algorithmic tasks are read too: layers.{2n} with slow_net, R_q, R_k, R_v, r_b, out_linear and "
      "layer_norm, layers.{2n+1} with ff_layers and layer_norm. They have prenorm and no output_scale.",
      "With prenorm the residual is the input itself, as in recurrent-fwp; with normalised_residual it is the normalised input, as in "
      "lmtool-fwp. All norms are layer norms with epsilon 1e-5.",
      "Heads do not see each other, and the step is one Jacobian of all of them, so spectra cost the cube of the number of all entries. "
      "Where D is above 2 the eigenvalue 1 has fewer eigenvectors than its multiplicity: what is computed about it is right to 1e-8. "
      "lmtool-fwp's attention normaliser of variant=rnn is left out."};
  a.hyper = {
      hyper_integer("width", "d", 16, 1, 4096, "Width of the stream.", "channels"),
      hyper_integer("heads", "h", 2, 1, 64, "Heads."),
      hyper_integer("head_dim", "D", 0, 0, 4096, "Size of a head's queries, keys and values; 0: width/heads.", "channels"),
      hyper_integer("layers", "L", 1, 1, 64, "Layers in a row."),
      hyper_choice("variant", "deltanet", {"deltanet", "rnn"},
                   "Where the last output goes: into queries, keys, values and shares, or through a second fast matrix into the output "
                   "(delta RNN)."),
      hyper_flag("output_feedback", false, "variant=deltanet: whether the output also has the last one through a matrix R_y of its own."),
      hyper_choice("share", "sigmoid", {"sigmoid", "plain"}, "variant=deltanet: whether β goes through σ or is taken as it is."),
      hyper_flag("sum_norm", true, "variant=rnn: whether queries and keys are divided by their sum."),
      hyper_flag("output_scale", true, "Whether the read is divided by √D."),
      hyper_flag("prenorm", false, "Whether norms come first (after the residual otherwise)."),
      hyper_flag("normalised_residual", false, "prenorm: whether the fast weights' output is added to the normalised input."),
      hyper_integer("feed_forward", "d_ff", 0, 0, 65536, "Hidden width of the feed-forward part; 0: four times the width.", "units"),
      initialisation_only(
          hyper_real("init_std", "", 0.02, 1e-6, 10.0, "Deviation that the matrices of the slow network start with.", true)),
      hyper_choice("block", "residual", {"residual", "none"},
                   "The layer with norms, residuals and feed-forward, or the fast weights with their projections alone.")};
  a.spectrum =
      "eigenvalues of ∂(S, o)_t/∂(S, o)_{t-1}: about those of I − β k kᵀ, and what S_t owes to o_{t-1}; with variant=rnn of ∂(S, R, "
      "o)_t/∂(S, R, o)_{t-1}, where those of S and R are 1 and 1 − β|k|², and those of o come from R";
  a.source = {"K. Irie, I. Schlag, R. Csordás, J. Schmidhuber", "Going beyond linear transformers with recurrent fast weight programmers",
              "NeurIPS", "https://arxiv.org/abs/2106.06295", 2021};
  a.reference = {{"layers.{n}.*", "*"},
                 {"layers.{2n}.R_q", "dec_attn.R_q"},
                 {"layers.{2n}.R_k", "dec_attn.R_k"},
                 {"layers.{2n}.R_v", "dec_attn.R_v"},
                 {"layers.{2n}.r_b", "dec_attn.r_b"},
                 {"layers.{2n}.slow_net.*", "dec_attn.slow_net.*"},
                 {"layers.{2n}.slow_net.*", "dec_attn.qkvb_net.*"},
                 {"layers.{2n}.out_linear.*", "dec_attn.o_net.*"},
                 {"layers.{2n}.layer_norm.*", "dec_attn.layer_norm.*"},
                 {"layers.{2n+1}.ff_layers.*", "pos_ff.CoreNet.*"},
                 {"layers.{2n+1}.layer_norm.*", "pos_ff.layer_norm.*"}};
  a.input_width = [](const Hyper& h) { return h.integer("width"); };
  a.check = [](const Hyper& h) {
    if (!h.integer("head_dim") && h.integer("width") % h.integer("heads"))
      throw Error("recurrent-deltanet: heads = " + h.text("heads") + " does not divide width = " + h.text("width") +
                      ": choose a divisor, or a head_dim.",
                  {.model = "recurrent-deltanet", .parameter = "heads", .value = h.text("heads"), .range = "a divisor of width"});
  };

  a.layer = [](Layer& l, Var u) {
    const Hyper& h = l.hyper;
    const std::int64_t d = h.integer("width"), heads = h.integer("heads"), D = h.integer("head_dim") ? h.integer("head_dim") : d / heads;
    const bool rnn = h.choice("variant") == "rnn";
    const Init small = init::normal(h.real("init_std"));
    return parts::programmer_block(
        l, u,
        [&](Var x) {
          const std::int64_t rows = rnn ? 5 * D + 2 : 3 * D + 1;
          const Var all =
              parts::by_head(l,
                             parts::linear(l, rnn ? "dec_attn.qkvb_net" : "dec_attn.slow_net", x, heads * rows,
                                           {small,
                                            {},
                                            rnn ? "rows q, k, v, the recurrent matrix's k and v (D each), and both β of each head in turn"
                                                : "rows q, k, v (D each) and β of each head in turn",
                                            "starts N(0, init_std²)"}),
                             heads);
          const auto part = [&](std::int64_t i) { return slice(all, -1, i * D, (i + 1) * D); };
          const char* said = "β: which share of what the key recalls is replaced.";
          Var o;
          if (rnn) {
            const auto features = [&](Var z) {
              const Var f = elu(z) + 1.0;
              return h.flag("sum_norm") ? f / (mean_keep(f, -1) * static_cast<double>(D)) : f;
            };
            const Var beta = l.gate("beta", sigmoid(slice(all, -1, 5 * D, 5 * D + 1)), 0.0, 1.0, said);
            const Var recurrent_beta = l.gate("recurrent_beta", sigmoid(slice(all, -1, 5 * D + 1, 5 * D + 2)), 0.0, 1.0,
                                              "β of R: which share of what its key recalls is replaced.");
            const std::vector<StateSpec> states{{"S", {heads, D, D}, "The fast weights that see the input alone, [head, key, value]."},
                                                {"R", {heads, D, D}, "The recurrent fast weights, [head, key, value]."},
                                                {"o", {heads, D}, "Each head's output, which is fed back."}};
            o = step(l, states, {features(part(0)), features(part(1)), part(2), beta, parts::softmax(part(3)), part(4), recurrent_beta},
                     [](Cell&, std::span<const Var> t, std::span<const Var> s) {
                       const Var S = rewritten(s[0], t[1], t[2], t[3]), R = rewritten(s[1], t[4], t[5], t[6]);
                       return std::vector<Var>{S, R, read(S, t[0]) + read(R, parts::softmax(s[2], 1e-6))};
                     })[2];
          } else {
            const Init start = init::normal(1.0 / std::sqrt(static_cast<double>(D)));
            const auto matrix = [&](const char* name, const char* what) {
              return reshape(l.parameter(std::string("dec_attn.") + name, {1, heads, D, D}, start,
                                         std::string("What the ") + what + " owes to the last output, rows the output; starts N(0, 1/D)."),
                             {heads, D, D});
            };
            const Var R_q = matrix("R_q", "query"), R_k = matrix("R_k", "key"), R_v = matrix("R_v", "value");
            const bool feedback = h.flag("output_feedback"), plain = h.choice("share") == "plain";
            const Var R_y = feedback ? matrix("R_y", "output") : Var{};
            const Var r_b = reshape(
                l.parameter("dec_attn.r_b", {1, heads, 1, D}, start, "What β owes to the last output; starts N(0, 1/D)."), {heads, D});
            const std::vector<StateSpec> states{{"S", {heads, D, D}, "The fast weights of each head, [key, value]."},
                                                {"o", {heads, D}, "Each head's read, which is fed back."}};
            o = step(l, states, {part(0), part(1), part(2), slice(all, -1, 3 * D, 3 * D + 1)},
                     [=](Cell& cell, std::span<const Var> t, std::span<const Var> s) {
                       const Var last = tanh(s[1]);
                       const Var q = parts::softmax(t[0] + read(R_q, last)), k = parts::softmax(t[1] + read(R_k, last)),
                                 v = t[2] + read(R_v, last);
                       const Var raw = t[3] + chunks::with_axis(sum(last * r_b, -1), -1);
                       const Var beta =
                           plain ? cell.gate("beta", raw, 0.0, 0.0, "β: which share of what the key recalls is replaced; unbounded.")
                                 : cell.gate("beta", sigmoid(raw), 0.0, 1.0, said);
                       const Var S = rewritten(s[0], k, v, beta);
                       return std::vector<Var>{S, feedback ? read(S, q) + read(R_y, last) : read(S, q)};
                     })[1];
          }
          o = parts::flat(l, h.flag("output_scale") ? o / std::sqrt(static_cast<double>(D)) : o);
          return parts::linear(l, "dec_attn.o_net", o, d, {small, {}, "W_o", "starts N(0, init_std²)"});
        },
        h.flag("normalised_residual"));
  };
  return a;
}

}  // namespace reclab::architectures
