// SPDX-License-Identifier: GPL-3.0-or-later
//   state-space model, over the whole sequence, channel by channel:   h_t = Ā h_{t-1} + B̄ x_t,   c_t = 2 Re(C h_t) + D x_t
//   block transformer, for a block X of n rows with the context of the block before:   X + W_o [att(Q; K V), causal; att(Q₂; K_c V_c)],
//   then X + W₂ f(W₁ LN X) context: single-head c of its n steps;  multi-head a c of each head, with a C of its own;  multi-filter S of
//   them, after its last step alone
// J. Pilault, M. Fathi, O. Firat, C. Pal, P.-L. Bacon, R. Goroshin, Block-state transformers, NeurIPS 2023. The authors' code is not
// published: the block transformer is that of google-research/meliad, on which they built, and the state-space model that of s4d.
#include <numbers>

#include "models/modelling_recurrence/meliad.h"
#include "models/parts/layers/state_space.h"
#include "recurrence/diagonal/diagonal.h"
#include "recurrence/flow.h"
#include "recurrence/segments/segments.h"

namespace reclab::architectures {
namespace {

/// The weights that make keys and values of the context.
struct ContextWeights {
  meliad::Norm norm;
  meliad::Dense keys, values;
  Var scale, ids;
};

/// The read-outs [steps, batch, read-outs * d] of one bank of modes a channel.
Var state_space(Layer& l, Var x, std::int64_t readouts) {
  const Hyper& h = l.hyper;
  const std::int64_t d = h.integer("width"), N = h.integer("state"), modes = N / 2;
  const double states = static_cast<double>(N);
  const bool inverse = h.choice("init") == "inv";
  const Var log_dt = l.parameter("ssm.log_dt", {d}, init::uniform(std::log(h.real("dt_min")), std::log(h.real("dt_max"))),
                                 "log Δ a channel; starts uniform between log dt_min and log dt_max.");
  const Var log_A_real = l.parameter("ssm.log_A_real", {d, modes}, init::constant(std::log(0.5)), "log of −Re A; starts at log ½.");
  const Var A_imag = l.parameter("ssm.A_imag", {d, modes}, init::each([=](Rng&, std::int64_t i) {
                                   const double n = static_cast<double>(i % modes);
                                   return inverse ? states / std::numbers::pi * (states / (2.0 * n + 1.0) - 1.0) : std::numbers::pi * n;
                                 }),
                                 "Im A; starts as πn (lin) or (N/π)(N/(2n+1) − 1) (inv).");
  const Var C = l.parameter("ssm.C", {readouts, d, modes, 2}, init::normal(std::sqrt(0.5)),
                            "C of each read-out, last axis re and im; starts complex normal.");
  const Var D = l.parameter("ssm.D", {readouts, d}, init::normal(1.0), "The skip D of each read-out; starts normal.");

  const Var A = complex(-exp_in_range(log_A_real), A_imag), dt = reshape(exp(log_dt), {d, 1}), dtA = A * dt;
  declare_flow(l, {.rule = flow_rule(h.choice("discretisation")), .exponents = dtA});
  Var A_bar, B_bar;
  if (h.choice("discretisation") == "zoh") {
    A_bar = exp(dtA);
    B_bar = mean_exp(dtA) * dt;  // (Ā − 1)/A, which cancels for small steps
  } else {
    const Var inverse_of = reciprocal(1.0 - dtA * 0.5);
    A_bar = (dtA * 0.5 + 1.0) * inverse_of;
    B_bar = inverse_of * dt;
  }
  const auto readout = [&](std::int64_t r) {
    const Var own = slice(C, 0, r, r + 1);
    return complex(reshape(slice(own, -1, 0, 1), {d, modes}), reshape(slice(own, -1, 1, 2), {d, modes})) * 2.0;
  };
  const auto skip = [&](std::int64_t r) { return reshape(slice(D, 0, r, r + 1), {d}) * x; };
  const StateSpec spec{"h", {d, modes}, "The complex modes of each channel."};
  if (readouts == 1) return diagonal_bank(l, spec, A_bar, B_bar, readout(0), x) + skip(0);
  const Var all = diagonal(l, spec, A_bar, B_bar * reshape(x, {l.steps(), l.batch(), d, 1}));
  std::vector<Var> reads;
  for (std::int64_t r = 0; r < readouts; ++r) reads.push_back(real(sum(all * readout(r), -1)) + skip(r));
  return concat(reads, -1);
}

}  // namespace

Architecture block_state_transformer() {
  Architecture a;
  a.title = "Block-state transformer";
  a.equations = {
      "h_t = Ā ⊙ h_{t-1} + B̄ x_t, N/2 complex modes a channel, A = −exp(log_A_real) + i A_imag, Δ = exp(log_dt);  Ā = exp(ΔA), B̄ = (Ā − "
      "1)/A   (bilinear: (1+ΔA/2)/(1−ΔA/2), Δ/(1−ΔA/2))",
      "c^r_t = 2 Re Σ_n C^r_n h_{t,n} + D^r x_t for each read-out r",
      "context of a block of n steps, from the block before, zeros before the first:  single-head: c_t of its steps;  multi-head: c^r_t of "
      "its steps for head r;  multi-filter: c^1 .. c^S after its last step",
      "for each block X:  A = [Σ_{j≤i} softmax_j(c (q_i·k_j + b_{i−j})) v_j;  softmax(c₂ Q₂ K_cᵀ) V_c],  X ← X + W_o A,  X ← X + W₂ f(W₁ "
      "LN X)",
      "Q, Q₂, K = unit rows of W LN X, V of W_v LN X;  K_c = unit rows of U_k (LN context + e), V_c = U_v (LN context + e)"};
  a.notes = {
      "The paper draws its three contexts and its code is not published. What it leaves open is here as in google-research/meliad, on "
      "which the authors built: the block transformer has the names and conventions of its layer without a cache, the context those of its "
      "cross-attention (_cross_kv), e the learned positions there (context_ids).",
      "The state-space model is that of S4D, whose names stand under ssm; the paper takes S4, or kernels without a state. It reads the "
      "layer's input as it is; its norm is the one before the keys of the context.",
      "Read-outs share the modes: of a multi-head or multi-filter context each has a C and a D of its own, so that filters differ by what "
      "they read and N bounds how many of them are independent.",
      "A step sees itself and the steps before it in its block; meliad's mask leaves the step itself out, and the first of a block then "
      "sees nothing (sees_itself=false).",
      "Keys and queries are divided by √(|x|² + 1e-6) and scores multiplied by c of each head; with normalise_keys=no queries are divided "
      "by √D instead. The norms are x/√(mean x² + 1e-6) times a scale; norm_mean subtracts the mean first.",
      "t5 has 32 buckets of distances: the first 16 one each, then logarithmic up to 128. fourier adds Σ_m a_m cos(ω_m δ) − b_m sin(ω_m δ) "
      "at the distance δ, ω_m = π/(2n)^{m/M}, with the a of each head before its b. Rotary angles are π p/10000^{2m/D}, entries m and m + "
      "D/2 a pair.",
      "No block waits for another: what it reads of the one before is made of the inputs alone, and all blocks of a run are computed at "
      "once.",
      "Only one of each conjugate pair of modes is stored, hence the factor 2. Spectrum and ds_T/ds_t are those of h. The state context "
      "holds what a step's block attends to; at the last step of a block it is already the next one's."};
  a.hyper = {hyper_integer("width", "d", 64, 1, 4096, "Width of the stream, and channels of the state-space model.", "channels"),
             hyper_integer("heads", "h", 4, 1, 64, "Heads."),
             hyper_integer("head_dim", "D", 0, 0, 1024, "Width of a head; 0: width/heads.", "channels"),
             hyper_integer("layers", "L", 1, 1, 64, "Layers in a row, each with a state-space model."),
             hyper_integer("segment", "n", 16, 1, 65536, "Steps of a block (window length).", "steps"),
             hyper_choice("context", "single-head", {"single-head", "multi-head", "multi-filter"},
                          "What a block sees of those before: BST:SH, BST:MH or BST:MF."),
             hyper_integer("filters", "S", 8, 1, 1024, "With multi-filter: rows of the context.", "rows"),
             hyper_flag("context_ids", true, "Whether each row of the context has a learned vector of its own added."),
             hyper_integer("state", "N", 16, 2, 1024, "State size a channel, conjugates counted: N/2 complex modes are stored.", "states"),
             initialisation_only(hyper_choice("init", "lin", {"lin", "inv"},
                                              "Imaginary parts of A at the start: S4D-Lin πn, or S4D-Inv (N/π)(N/(2n+1) − 1).")),
             hyper_choice("discretisation", "zoh", {"zoh", "bilinear"}, "From continuous to discrete time: zero-order hold or bilinear."),
             initialisation_only(hyper_real("dt_min", "Δ_min", 0.001, 1e-6, 10.0, "Smallest time step at the start.", true)),
             initialisation_only(hyper_real("dt_max", "Δ_max", 0.1, 1e-6, 10.0, "Largest time step at the start.", true)),
             hyper_integer("feed_forward", "d_ff", 0, 0, 65536, "Hidden width of the feed-forward part; 0: four times the width.", "units"),
             hyper_flag("sees_itself", true, "Whether a step attends to itself.")};
  for (HyperSpec& spec : meliad::hyper()) a.hyper.push_back(std::move(spec));
  a.spectrum = "the discretised transition Ā of the state-space model, the same at every step (one of each conjugate pair)";
  a.source = {"J. Pilault, M. Fathi, O. Firat, C. Pal, P.-L. Bacon, R. Goroshin", "Block-state transformers", "NeurIPS",
              "https://arxiv.org/abs/2306.09539", 2023};
  a.input_width = [](const Hyper& h) { return h.integer("width"); };
  a.check = [](const Hyper& h) {
    meliad::check("block-state-transformer", h);
    if (h.integer("state") % 2)
      throw Error("block-state-transformer: state = " + h.text("state") + " is odd: it counts conjugate pairs, choose an even number.",
                  {.model = "block-state-transformer", .parameter = "state", .value = h.text("state"), .range = "even"});
    parts::check_time_steps(h, "block-state-transformer");
  };

  a.layer = [](Layer& l, Var x) {
    const Hyper& h = l.hyper;
    const meliad::Sizes s(h);
    const meliad::Declare declare{l, s};
    const bool by_head = h.choice("context") == "multi-head", filters = h.choice("context") == "multi-filter",
               itself = h.flag("sees_itself");
    const std::int64_t readouts = by_head ? s.heads : filters ? h.integer("filters") : 1, rows = filters ? readouts : s.n;
    const Var reads = state_space(l, x, readouts);
    const meliad::StreamWeights tokens = declare.base("tbase", meliad::Crosses::context, 0, "residual", "dual");
    ContextWeights context;
    context.norm = declare.norm("tbase._cross_kv.pre_attn_layernorm");
    context.keys = declare.dense("tbase._cross_kv.keys_layer", s.d, s.heads * s.D, "W_k of the context, columns by head,");
    context.values = declare.dense("tbase._cross_kv.values_layer", s.d, s.heads * s.D, "W_v of the context, columns by head,");
    if (s.normalised)
      context.scale = l.parameter("tbase._cross_kv.attention_scale", {s.heads}, init::constant(1.0),
                                  "Scale of the scores of the context; starts at 1.");
    if (h.flag("context_ids"))
      context.ids = l.parameter("tbase._cross_kv.position_embeddings", {rows, s.d}, init::normal(1.0),
                                "e, what is added to each row of the context; starts N(0, 1).");
    const Var rel = declare.rel("");

    const Var none = x.graph->constant({1}, {0.0}), both[] = {x, reads};
    const Shape shape = by_head ? Shape{s.heads, s.n, s.d} : Shape{rows, s.d};
    SegmentContext blocks;
    blocks.left = [=](Var block) {
      const std::int64_t B = block.dim(0);
      const Var left = slice(block, -1, s.d, s.d + readouts * s.d);
      const int head_first[] = {0, 2, 1, 3};
      if (by_head) return permute(reshape(left, {B, s.n, s.heads, s.d}), head_first);
      return filters ? reshape(slice(left, 1, s.n - 1, s.n), {B, rows, s.d}) : left;
    };
    blocks.reads = [=](Var before, Var block) {
      const meliad::Stream stream(s);
      const std::int64_t B = block.dim(0);
      const Var X = slice(block, -1, 0, s.d);
      const meliad::Projected p = stream.projected(tokens, X);
      Var own = stream.attend(stream.turned(p.queries, 0), stream.turned(p.keys, 0), p.values, tokens.scale,
                              stream.biases(*X.graph, rel, s.n, 0), stream.causal(*X.graph, s.n, 0, itself));
      if (!itself) {  // the first step sees nothing
        std::vector<double> seeing(static_cast<std::size_t>(s.n), 1.0);
        seeing[0] = 0.0;
        own = own * X.graph->constant({s.n, 1}, std::move(seeing));
      }
      Var u = context.norm(before);
      if (context.ids) u = u + context.ids;
      Var keys, values;
      if (by_head) {
        std::vector<Var> k, v;
        for (std::int64_t i = 0; i < s.heads; ++i) {
          const Var of_head = reshape(slice(u, 1, i, i + 1), {B, s.n, s.d});
          const auto columns = [&](Var kernel) {
            return reshape(matmul(of_head, slice(kernel, 1, i * s.D, (i + 1) * s.D)), {B, 1, s.n, s.D});
          };
          k.push_back(columns(context.keys.kernel));
          v.push_back(columns(context.values.kernel));
        }
        keys = k.size() == 1 ? k[0] : concat(k, 1);
        values = v.size() == 1 ? v[0] : concat(v, 1);
      } else {
        keys = stream.by_head(context.keys(u));
        values = stream.by_head(context.values(u));
      }
      const Var reads_of_both[] = {own, stream.attend(p.queries2, stream.unit(keys), values, context.scale, {}, {})};
      return stream.after_attention(tokens, X, concat(reads_of_both, 1));
    };
    return segment_contexts(l,
                            {.name = "context",
                             .shape = shape,
                             .text = by_head ? "What the block attends to, of each head." : "The rows that the block attends to.",
                             .auxiliary = true},
                            none, concat(both, -1), s.n, blocks);
  };
  a.final_layer = [](Layer& l, Var x) {
    if (!l.hyper.flag("final_norm")) return x;
    const meliad::Sizes s(l.hyper);
    return meliad::Declare{l, s}.norm("final_layernorm")(x);
  };
  return a;
}

}  // namespace reclab::architectures
