// SPDX-License-Identifier: GPL-3.0-or-later
//   h(x) = sign(A (K(x̂) - μ)),  K(x̂)_j = e^{-|x̂ - a_j|²/2σ},  x̂ = x/|x|:  a code of n signs, the same for query and key
//   S_t = S_{t-1} + h_t v_t^T,  z_t = z_{t-1} + h_t,   o_t = (S_t^T h_t + (n + 1) v_t) / (z_t·h_t + (n + 1) t)
// J. Liu et al., EcoFormer: energy-saving attention with linear complexity, NeurIPS 2022. Names and conventions of the authors'
// performer.py and hashing/ksh.py, run from the past to the present.
#include <cmath>

#include "models/parts/fairseq.h"
#include "models/parts/features.h"
#include "models/parts/parts.h"
#include "recurrence/diagonal/diagonal.h"
#include "recurrence/outer/outer.h"

namespace reclab::architectures {

Architecture ecoformer() {
  Architecture a;
  a.title = "EcoFormer";
  a.equations = {
      "x̂ = W_qk x/|W_qk x| of each head;  K_j = exp(−|x̂ − a_j|²/(2σ)), j = 1 … m anchors;  h = sign(A (K − μ)), n signs, for query and key "
      "alike",
      "bandwidth=running: σ_t = the mean of |x̂_s − a_j|² over s ≤ t and j;  fixed: σ is a parameter",
      "S_t = S_{t-1} + h_t v_tᵀ,  z_t = z_{t-1} + h_t,  o_t = (S_tᵀ h_t + (n + 1) v_t)/(z_t·h_t + (n + 1)(t + 1)),  t = 0, 1, …",
      "offset=all: (n + 1) V_t in place of (n + 1) v_t, V_t = V_{t-1} + v_t, so that step s weighs h_t·h_s + n + 1, which is from 1 to 2n "
      "+ 1",
      "block: x ← x + attn(norm1(x)),  x ← x + mlp.fc2(gelu(mlp.fc1(norm2(x))))"};
  a.notes = {
      "Names and shapes are those of the authors' EcoformerSelfAttention and of the blocks of Twins: attn.{to_qk,to_v,proj}, "
      "attn.fast_attention.ksh.{A,mvec,anchor}, norm1, mlp.fc1, mlp.fc2, norm2. Heads are the slow part of rows.",
      "EcoFormer is made for images and is not causal: every token reads all others, and σ is the mean over all tokens. Here a step reads "
      "what came before, and σ is that mean so far, each code with the σ of its own step. bandwidth=fixed takes σ from a parameter: put "
      "the mean over a whole sequence there, and the codes are the authors'.",
      "A, μ and the anchors are buffers there: anchors are drawn from the first batch's x̂, μ is the mean of K over it, and A is fitted so "
      "that codes agree where x̂ do (supervised hashing). None of that is done here: anchors start as random unit vectors, μ at 0, A as "
      "N(0, 1); load what was fitted.",
      "The slope of a sign is 0, so nothing reaches W_qk. With straight_through it is passed as it is where |A (K − μ)| < 1 and not "
      "otherwise, as the authors train; A itself is held there, and its gradient is then no slope of theirs. Their σ is made of the "
      "distances, through which a part of the gradient of W_qk passes: with bandwidth=fixed that part is missing, with running it is that "
      "of the mean so far.",
      "n + 1 keeps the denominator above 0. In the code's numerator it multiplies the step's own value alone, while in the denominator it "
      "counts for every step (offset=own); a kernel h·h + n + 1 would have it for all values (all).",
      "Codes take products of n signs: sums and no multiplications, which is what is saved. nb_features and projection_matrix of the code "
      "are never used.",
      "All norms are layer norms with epsilon 1e-6. The convolutions of PVT's feed-forward part and patch embeddings are not part of the "
      "layer."};
  a.hyper = {hyper_integer("width", "d", 64, 1, 4096, "Width of the stream.", "channels"),
             hyper_integer("heads", "h", 4, 1, 64, "Heads; must divide the width."),
             hyper_integer("layers", "L", 1, 1, 64, "Blocks in a row."),
             hyper_integer("bits", "n", 16, 1, 4096, "Signs of a code (nbits).", "bits"),
             hyper_integer("anchors", "m", 20, 1, 4096, "Anchors of a head.", "anchors"),
             hyper_choice("bandwidth", "running", {"running", "fixed"}, "Whether σ is the mean squared distance so far or a parameter."),
             hyper_choice("offset", "own", {"own", "all"}, "Which values n + 1 multiplies: the step's own, or all so far."),
             hyper_flag("straight_through", false, "Whether the gradient passes the signs as if they were the identity within ±1."),
             hyper_flag("qkv_bias", true, "Whether to_qk and to_v have biases."),
             hyper_integer("feed_forward", "d_ff", 0, 0, 65536, "Hidden width of the feed-forward part; 0: four times the width.", "units"),
             hyper_choice("block", "residual", {"residual", "none"},
                          "The block with norms, residuals and feed-forward, or the attention with its projections alone."),
             hyper_flag("final_norm", true, "Whether a layer norm follows the last block.")};
  a.spectrum = "the transition of the memory: the identity";
  a.source = {"J. Liu, Z. Pan, H. He, J. Cai, B. Zhuang", "EcoFormer: energy-saving attention with linear complexity", "NeurIPS",
              "https://arxiv.org/abs/2209.09004", 2022};
  a.reference = {{"blocks.{n}.*", "*"}, {"norm.*", "final/norm.*"}, {"projection_matrix", ""}, {"*", "attn.*"}};
  a.input_width = [](const Hyper& h) { return h.integer("width"); };
  a.check = [](const Hyper& h) { parts::heads_divide_width(h, "ecoformer"); };

  a.layer = [](Layer& l, Var u) {
    const Hyper& h = l.hyper;
    const std::int64_t d = h.integer("width"), heads = h.integer("heads"), D = d / heads, n = h.integer("bits"), m = h.integer("anchors"),
                       T = l.steps(), B = l.batch();
    const bool block = h.choice("block") == "residual";
    const auto dense = [&](const std::string& name, Var x, std::int64_t out, const std::string& role, bool bias = true) {
      return parts::linear(l, name, x, out,
                           {init::normal(0.02), bias ? init::constant(0.0) : Init{}, role, "starts N(0, 0.02²), its bias at 0"});
    };
    const Var x = block ? parts::layer_norm(l, "norm1", u, 1e-6) : u;
    const Var qk = parts::by_head(l, dense("attn.to_qk", x, d, "W_qk of queries and keys, rows by head", h.flag("qkv_bias")), heads);
    const Var v = parts::by_head(l, dense("attn.to_v", x, d, "W_v, rows by head", h.flag("qkv_bias")), heads);
    const Var unit = qk / parts::length(qk);

    const std::string own = "attn.fast_attention.ksh.";
    const Init directions = [D](InitContext& c) {
      init::normal(1.0)(c);
      for (std::size_t from = 0; from < c.values.size(); from += static_cast<std::size_t>(D)) {
        double sum = 0.0;
        for (const double value : c.values.subspan(from, static_cast<std::size_t>(D))) sum += value * value;
        for (double& value : c.values.subspan(from, static_cast<std::size_t>(D))) value /= std::sqrt(sum);
      }
    };
    const Var anchors = l.parameter(own + "anchor", {1, heads, m, D}, directions,
                                    "The anchors a of each head, a buffer in the code; start as random unit vectors.");
    const Var centre =
        l.parameter(own + "mvec", {1, heads, 1, m}, init::constant(0.0), "μ, the mean of K, a buffer in the code; starts at 0.");
    const Var A = l.parameter(own + "A", {heads, n, m}, init::normal(1.0), "A of each head, a buffer in the code; starts N(0, 1).");
    const Var distances =
        reshape(parts::squared_norm(reshape(unit, {T, B, heads, 1, D}) - reshape(anchors, {heads, m, D})), {T, B, heads, m});
    Var sigma;
    if (h.choice("bandwidth") == "fixed") {
      sigma = reshape(l.parameter("attn.bandwidth", {heads}, init::constant(2.0),
                                  "σ of each head, ours; starts at 2, the mean for unit vectors without a common direction."),
                      {heads, 1});
    } else {
      const Var ones = u.graph->constant({heads}, std::vector<double>(static_cast<std::size_t>(heads), 1.0));
      const Var sums = diagonal(l, {"distances", {heads}, "The sum over the steps of the mean squared distance to the anchors."}, ones,
                                mean(distances, -1));
      sigma = reshape(sums / (l.position() + 1.0), {T, B, heads, 1});
    }
    const Var kernel = exp(-distances / (sigma * 2.0)) - reshape(centre, {heads, m});
    const Var raw = reshape(parts::by_block(l, parts::flat(l, kernel), A, true), {T, B, heads, n});
    Var codes = sign(raw);
    if (h.flag("straight_through")) {  // no value of its own, and the slope of a line that is cut at ±1
      const Var cut = relu(raw + 1.0) - relu(raw - 1.0);
      codes = codes + (cut - detach(cut));
    }
    const double floor = static_cast<double>(n + 1);
    const auto [read, weight] =
        parts::linear_read(l, codes, codes, v, "The sum of h vᵀ of each head, [bit, value].", "The sum of the codes of each head.");
    Var values = v;
    if (h.choice("offset") == "all") {
      const Var one = affine(slice(v, -1, 0, 1), 0.0, 1.0);
      values = outer(l, {"V", {heads, D}, "The sum of all values of each head."}, {one, one, v});
    }
    const Var o = (read + values * floor) / (weight + reshape(l.position() + 1.0, {T, B, 1, 1}) * floor);
    const Var y = dense("attn.proj", parts::flat(l, o), d, "W_o, columns by head");
    if (!block) return y;
    const Var after = u + y;
    const std::int64_t F = h.integer("feed_forward") ? h.integer("feed_forward") : 4 * d;
    return after + dense("mlp.fc2", gelu(dense("mlp.fc1", parts::layer_norm(l, "norm2", after, 1e-6), F, "W₁ of the feed-forward part")), d,
                         "W₂ of the feed-forward part");
  };
  a.final_layer = [](Layer& l, Var x) {
    return l.hyper.choice("block") == "none" || !l.hyper.flag("final_norm") ? x : parts::layer_norm(l, "norm", x, 1e-6);
  };
  return a;
}

}  // namespace reclab::architectures
