// SPDX-License-Identifier: GPL-3.0-or-later
//   fast stream, for a chunk X of n steps:  X ← block(X; X) in each layer, causal, and every r-th time also X ← block(X; s)
//   slow stream, when the chunk is full:  s ← block(s; X);   block(x; y) = z + W₂ gelu(W₁ LN z),  z = x + att(LN_q x; LN_k y, LN_v y)
// A. Didolkar et al., Temporal latent bottleneck: synthesis of fast and slow processing mechanisms in sequence learning, NeurIPS 2022.
// Names and conventions of keras-team/keras-io, examples/vision/temporal_latent_bottleneck.py; the authors published no code.
#include <cmath>

#include "array/error.h"
#include "models/parts/parts.h"
#include "recurrence/attention/attention.h"
#include "recurrence/segments/segments.h"

namespace reclab::architectures {
namespace {

struct Block {
  Var norm[3][2], kernel[4], bias[4], norm_ff[2], w1, b1, w2, b2;
};

Block declare(Layer& l, const std::string& name) {
  const Hyper& h = l.hyper;
  const std::int64_t d = h.integer("width"), H = h.integer("heads"), D = h.integer("head_dim") ? h.integer("head_dim") : d,
                     F = h.integer("feed_forward") ? h.integer("feed_forward") : 4 * d;
  // Glorot's bound as Keras has it for arrays of three axes, the first of which counts as a field.
  const auto glorot = [](std::int64_t field, std::int64_t in, std::int64_t out) { return parts::xavier_uniform(field * in, field * out); };
  const Init one = init::constant(1.0), zero = init::constant(0.0);
  Block b;
  const char* which[] = {"q", "k", "v"};
  const char* full[] = {"query", "key", "value"};
  for (int i = 0; i < 3; ++i) {
    const std::string norm = name + ".base_attn." + which[i] + "_layernorm", role = full[i];
    b.norm[i][0] = l.parameter(norm + ".gamma", {d}, one, "Scale of the norm before the " + role + "; starts at 1.");
    b.norm[i][1] = l.parameter(norm + ".beta", {d}, zero, "Its shift; starts at 0.");
    b.kernel[i] = l.parameter(name + ".base_attn.mha." + role + ".kernel", {d, H, D}, glorot(d, H, D),
                              "W of the " + role + " [in, head, entry]; starts Glorot uniform.");
    b.bias[i] = l.parameter(name + ".base_attn.mha." + role + ".bias", {H, D}, zero, "Its bias; starts at 0.");
  }
  b.kernel[3] = l.parameter(name + ".base_attn.mha.attention_output.kernel", {H, D, d}, glorot(H, D, d),
                            "W_o [head, entry, out]; starts Glorot uniform.");
  b.bias[3] = l.parameter(name + ".base_attn.mha.attention_output.bias", {d}, zero, "Its bias; starts at 0.");
  b.norm_ff[0] = l.parameter(name + ".ffn.layernorm.gamma", {d}, one, "Scale of the norm before the feed-forward part; starts at 1.");
  b.norm_ff[1] = l.parameter(name + ".ffn.layernorm.beta", {d}, zero, "Its shift; starts at 0.");
  b.w1 = l.parameter(name + ".ffn.ffn.dense.kernel", {d, F}, parts::xavier_uniform(d, F), "W₁ [in, out]; starts Glorot uniform.");
  b.b1 = l.parameter(name + ".ffn.ffn.dense.bias", {F}, zero, "Its bias; starts at 0.");
  b.w2 = l.parameter(name + ".ffn.ffn.dense_1.kernel", {F, d}, parts::xavier_uniform(F, d), "W₂ [in, out]; starts Glorot uniform.");
  b.b2 = l.parameter(name + ".ffn.ffn.dense_1.bias", {d}, zero, "Its bias; starts at 0.");
  return b;
}

/// x [batch, rows, d] attends to y, row i to the first i + 1 rows where `causal`.
Var apply(const Block& b, Var x, Var y, bool causal) {
  const std::int64_t B = x.dim(0), H = b.kernel[0].dim(1), D = b.kernel[0].dim(2), d = x.dim(2);
  const int swap[] = {0, 2, 1, 3};
  const auto projected = [&](int i, Var from) {
    const bool of_key = i == 1;  // a bias on all keys adds the same to all scores of a row, and the softmax is invariant to that
    const Var u = layer_norm(from, b.norm[i][0], of_key ? Var{} : b.norm[i][1], 1e-5), made = matmul(u, reshape(b.kernel[i], {d, H * D}));
    return permute(reshape(of_key ? made : made + reshape(b.bias[i], {H * D}), {B, from.dim(1), H, D}), swap);
  };
  Var scores = matmul_transposed(projected(0, x) / std::sqrt(static_cast<double>(D)), projected(1, y));
  if (causal) {
    std::vector<double> mask;
    for (std::int64_t i = 0; i < x.dim(1); ++i)
      for (std::int64_t j = 0; j < y.dim(1); ++j) mask.push_back(j <= i ? 0.0 : -1e30);
    scores = scores + x.graph->constant({x.dim(1), y.dim(1)}, std::move(mask));
  }
  const Var read = reshape(permute(matmul(softmax_rows(scores), projected(2, y)), swap), {B, x.dim(1), H * D});
  const Var z = x + (matmul(read, reshape(b.kernel[3], {H * D, d})) + b.bias[3]);
  return z + (matmul(gelu(matmul(layer_norm(z, b.norm_ff[0], b.norm_ff[1], 1e-5), b.w1) + b.b1), b.w2) + b.b2);
}

struct FastStep {
  Block block;
  bool to_itself, to_slow;
};

}  // namespace

Architecture temporal_latent_bottleneck() {
  Architecture a;
  a.title = "Temporal latent bottleneck";
  a.equations = {
      "fast, for each chunk X of n steps:  X ← block(X; X) for each layer, causal;  X ← block(X; s) for every r-th;  y = X",
      "slow, when the chunk is full:  s ← block(s; X)",
      "block(x; y) = z + W₂ gelu(W₁ LN z + b₁) + b₂,  z = x + W_o Σ_j softmax_j((W_q LN_q x)·(W_k LN_k y_j)/√D) W_v LN_v y_j, with biases"};
  a.notes = {
      "Names and shapes are those of Keras' example, joined by points; the two dense layers of a feed-forward part are dense and dense_1 "
      "in each, where Keras counts them through. Kernels are stored [in, heads, D], [heads, D, out] and [in, out].",
      "In the example the steps of a chunk see all of it, since it reads images: here a step sees itself and those before it in its chunk, "
      "or no step could be computed before its chunk is over. The slow stream reads the whole chunk.",
      "schedule=code: as in the example, the blocks pm_self_attn_0, pm_cross_attn_ffn_0, pm_self_attn_1, .. all attend to the chunk, and "
      "every r-th of this row attends to s with the same weights after that. schedule=paper: pm_self_attn_i attends to the chunk and "
      "pm_cross_attn_ffn_i, behind every r-th of them, to s.",
      "The bias of the keys and the shift of their norm add the same to all scores of a row and change nothing: they are read, and their "
      "gradients are exactly 0.",
      "start=zeros is the example's, start=learned the paper's. All norms are layer norms with epsilon 1e-5.",
      "The state of a step is the s that its chunk reads; at the last step of a full chunk it is already the next one. It changes once a "
      "chunk, hence no spectrum and no ds_T/ds_t."};
  a.hyper = {
      hyper_integer("width", "d", 64, 1, 4096, "Width of both streams.", "channels"),
      hyper_integer("heads", "h", 1, 1, 64, "Heads."),
      hyper_integer("head_dim", "D", 0, 0, 4096, "Width of a head (key_dim); 0: the width.", "channels"),
      hyper_integer("depth", "L", 2, 1, 64, "Layers of the fast stream; the example has 4."),
      hyper_integer("every", "r", 2, 1, 64, "Every so many layers the fast stream reads the slow one."),
      hyper_integer("chunk", "n", 8, 1, 65536, "Steps of a chunk.", "steps"),
      hyper_integer("slots", "N", 8, 1, 65536, "Rows of the slow state; the example has as many as a chunk has steps.", "rows"),
      hyper_integer("feed_forward", "d_ff", 0, 0, 65536, "Hidden width of the feed-forward parts; 0: four times the width.", "units"),
      hyper_choice("schedule", "code", {"code", "paper"}, "Which blocks read the slow state."),
      hyper_choice("start", "zeros", {"zeros", "learned"}, "The slow state at the start.")};
  a.spectrum = "none: the slow state changes once a chunk, and no matrix takes it from one step to the next";
  a.source = {"A. Didolkar, K. Gupta, A. Goyal, N. B. Gundavarapu, A. Lamb, N. R. Ke, Y. Bengio",
              "Temporal latent bottleneck: synthesis of fast and slow processing mechanisms in sequence learning", "NeurIPS",
              "https://arxiv.org/abs/2205.14794", 2022};
  a.input_width = [](const Hyper& h) { return h.integer("width"); };

  a.layer = [](Layer& l, Var x) {
    const Hyper& h = l.hyper;
    const std::int64_t d = h.integer("width"), N = h.integer("slots"), n = h.integer("chunk"), r = h.integer("every");
    const bool code = h.choice("schedule") == "code";
    std::vector<FastStep> fast;
    for (std::int64_t i = 0; i < h.integer("depth"); ++i) {
      const auto add = [&](const std::string& name, bool crosses) {
        const bool every = static_cast<std::int64_t>(fast.size()) % r == 0;
        fast.push_back({declare(l, name + std::to_string(i)), code || !crosses, code ? every : crosses});
      };
      add("pm_self_attn_", false);
      if (i % r == 0) add("pm_cross_attn_ffn_", true);
    }
    const Block slow = declare(l, "tlb_cross_attn_ffn");
    const Var first = h.choice("start") == "learned"
                          ? l.parameter("initial_state", {N, d}, init::normal(1.0), "s at the start; starts N(0, 1).")
                          : x.graph->constant({1}, {0.0});
    return segments(l, {{"slow", {N, d}, "The slow stream s."}}, {first}, x, n,
                    filled_up(n, [=](Cell&, std::span<const Var> memory, Var tokens) {
                      Var y = tokens;
                      for (const FastStep& one : fast) {
                        if (one.to_itself) y = apply(one.block, y, y, true);
                        if (one.to_slow) y = apply(one.block, y, memory[0], false);
                      }
                      return SegmentResult{y, tokens.dim(1) == n ? std::vector<Var>{apply(slow, memory[0], y, false)} : std::vector<Var>{}};
                    }));
  };
  return a;
}

}  // namespace reclab::architectures
