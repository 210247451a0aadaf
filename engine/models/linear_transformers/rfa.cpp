// SPDX-License-Identifier: GPL-3.0-or-later
//   φ(x) = s [sin(W x̂); cos(W x̂)],  x̂ = x/(|x| + ε),  W = σ W₀/τ
//   S_t = S_{t-1} + φ(k_t) v_t^T,   z_t = z_{t-1} + φ(k_t),   o_t = S_t^T φ(q_t) / max(φ(q_t)·z_t, 1)
//   gated: S_t = g_t S_{t-1} + (1 - g_t) φ(k_t) v_t^T,   g_t = σ(w_g·x_t + b_g)
// H. Peng et al., Random feature attention, ICLR 2021. Names and conventions of the authors' RFA; the gate is the paper's, of which there
// is no code of theirs.
#include <cmath>

#include "array/error.h"
#include "models/parts/fairseq.h"
#include "models/parts/features.h"
#include "models/parts/parts.h"

namespace reclab::architectures {
namespace {

/// The authors' orf: orthonormal columns, each row then as long as a Gaussian vector of as many entries as there are rows.
Init orthonormal_columns() {
  return [](InitContext& c) {
    const std::int64_t heads = c.shape[0], rows = c.shape[1], columns = c.shape[2];
    const Shape one{rows, columns};
    const Init draw = init::orthogonal(1.0);
    for (std::int64_t h = 0; h < heads; ++h) {
      const auto values = c.values.subspan(static_cast<std::size_t>(h * rows * columns), static_cast<std::size_t>(rows * columns));
      InitContext head{c.rng, one, values, c.other};
      draw(head);
      for (std::int64_t r = 0; r < rows; ++r) {
        double sum = 0.0;
        for (std::int64_t j = 0; j < rows; ++j) {
          const double x = c.rng.normal();
          sum += x * x;
        }
        for (std::int64_t j = 0; j < columns; ++j) values[static_cast<std::size_t>(r * columns + j)] *= std::sqrt(sum);
      }
    }
  };
}

}  // namespace

Architecture rfa() {
  Architecture a;
  a.title = "Random feature attention";
  a.equations = {"x̂ = x/(|x| + ε) for queries and keys of each head;  W = σ ⊙ W₀/τ, W₀: random_matrices of the head",
                 "φ(x) = s [sin(W x̂); cos(W x̂)], or s relu(W x̂) with kernel=arccos;  s = scale, or 1/√m where that is 0",
                 "S_t = S_{t-1} + φ(k_t) v_tᵀ,  z_t = z_{t-1} + φ(k_t)",
                 "gate=keeps: S_t = g S_{t-1} + (1 − g) φ(k_t) v_tᵀ, z_t likewise, g = σ(w_g·x_t + b_g) of each head;  gate=writes: with 1 "
                 "− g in place of g",
                 "o_t = S_tᵀ φ(q_t)/max(w, ε_w), w = φ(q_t)·z_t;  normaliser=absolute: /max(|w|, ε_w);  plain: /w",
                 "block: u ← u + W_o o(norm(u)),  u ← u + fc2(f(fc1(norm(u)))), or with the norms after the residuals"};
  a.notes = {
      "Names and shapes are those of the authors' CausalAttention within fairseq's decoder layer: self_attn.{q,k,v,out}_proj, sigma "
      "[heads, 1, head size], self_attn_layer_norm, fc1, fc2, final_layer_norm, and final/layer_norm of the decoder. Heads are the slow "
      "part of rows.",
      "random_matrices [heads, m, head size] are the W₀ of a layer, which the code hands to it from a file of 500 and draws anew in "
      "training; in evaluation it takes the first ones in all layers.",
      "The code's two ways disagree: step by step and in its kernel the sum of weights is kept at 1 or above (normaliser=clamped, ε_w = "
      "1), with a mask its modulus at 1e-3 or above (absolute, ε_w = 1e-3). Features are waves, so the sum may be negative; the paper "
      "divides by it as it is (plain).",
      "The code's s is 0.1, the paper's 1/√m; with a clamped sum the output depends on it.",
      "The gate is the paper's: one number a head and step, that of the memory and of the sum of keys alike. gate=writes is the polarity "
      "of AGaLiTe's gated_peng, where the gate multiplies what is new. Its names are ours, for there is no code of the authors'.",
      "The memory is updated before it is read. Without a gate nothing is forgotten."};
  a.hyper = {
      hyper_integer("width", "d", 64, 1, 4096, "Width of the stream.", "channels"),
      hyper_integer("heads", "h", 4, 1, 64, "Heads; must divide the width."),
      hyper_integer("layers", "L", 1, 1, 64, "Layers in a row."),
      hyper_integer("features", "m", 64, 1, 65536, "Random rows of a head; each has a sine and a cosine.", "features"),
      hyper_choice("kernel", "gaussian", {"gaussian", "arccos"}, "Waves, for the Gaussian kernel, or relu, for the arc-cosine kernel."),
      initialisation_only(hyper_choice("rows", "independent", {"independent", "orthogonal"},
                                       "How W₀ is drawn: Gaussian, or the authors' orf, which needs m no less than the head size.")),
      hyper_real("temperature", "τ", 1.0, 1e-6, 1e6, "What W is divided by.", true),
      hyper_flag("sigma", true, "Whether σ is a parameter (reparam_proj)."),
      hyper_real("scale", "s", 0.1, 0.0, 1e6, "What features are multiplied by; 0: 1/√m."),
      hyper_real("unit_eps", "ε", 1e-3, 0.0, 1.0, "Added to the length of queries and keys.", true),
      hyper_choice("normaliser", "clamped", {"clamped", "absolute", "plain"},
                   "What the read is divided by: the sum of its weights or 1, its modulus, or the sum as it is."),
      hyper_real("least", "ε_w", 1.0, 0.0, 1e6, "The least that the read is divided by.", true),
      hyper_choice("gate", "none", {"none", "keeps", "writes"},
                   "Whether a gate forgets, and whether it is what is kept or what is written."),
      initialisation_only(hyper_real("gate_bias", "", 0.0, -20.0, 20.0, "What the gate's bias starts at.")),
      initialisation_only(hyper_real("gate_std", "", 0.02, 1e-6, 10.0, "Deviation that the gate's weights start with.", true))};
  parts::add_fairseq_rows(a.hyper);
  a.spectrum = "the transition of the memory: the identity, or g of each head";
  a.source = {"H. Peng, N. Pappas, D. Yogatama, R. Schwartz, N. A. Smith, L. Kong", "Random feature attention", "ICLR",
              "https://arxiv.org/abs/2103.02143", 2021};
  a.reference = parts::fairseq_names(true);
  a.input_width = [](const Hyper& h) { return h.integer("width"); };
  a.check = [](const Hyper& h) {
    parts::heads_divide_width(h, "rfa");
    if (h.choice("rows") == "orthogonal" && h.integer("features") < h.integer("width") / h.integer("heads"))
      throw Error("rfa: features = " + h.text("features") +
                      " is less than the head size, which rows = orthogonal cannot have: choose more features, or rows = independent.",
                  {.model = "rfa", .parameter = "features", .value = h.text("features"), .range = "the head size or more"});
  };

  a.layer = [](Layer& l, Var u) {
    const Hyper& h = l.hyper;
    const std::int64_t d = h.integer("width"), heads = h.integer("heads"), D = d / heads, m = h.integer("features"), T = l.steps(),
                       B = l.batch();
    return parts::fairseq_layer(l, u, [&](Var x) {
      const std::string own = "self_attn.";
      const auto project = [&](const std::string& which, const std::string& role) {
        return parts::by_head(l,
                              parts::linear(l, own + which + "_proj", x, d,
                                            {parts::xavier_uniform(d, d, 1.0 / std::sqrt(2.0)), parts::torch_uniform(d),
                                             role + ", rows by head", "starts Xavier uniform with gain 1/√2, its bias uniform in ±1/√d"}),
                              heads);
      };
      const Var q = project("q", "W_q"), k = project("k", "W_k"), v = project("v", "W_v");
      Var W =
          l.parameter(own + "random_matrices", {heads, m, D}, h.choice("rows") == "orthogonal" ? orthonormal_columns() : init::normal(1.0),
                      "W₀ of each head, drawn as rows says; no parameter in the code.");
      if (h.flag("sigma"))
        W = W *
            l.parameter(own + "sigma", {heads, 1, D}, init::constant(1.0), "σ, which the columns of W₀ are multiplied by; starts at 1.");
      W = W / h.real("temperature");
      const double scale = h.real("scale") > 0.0 ? h.real("scale") : 1.0 / std::sqrt(static_cast<double>(m));
      const auto features = [&](Var y) {
        const Var unit = y / (parts::length(y) + h.real("unit_eps"));
        const Var projected = reshape(parts::by_block(l, parts::flat(l, unit), W, true), {T, B, heads, m});
        if (h.choice("kernel") == "arccos") return relu(projected) * scale;
        const Var both[] = {sin(projected), cos(projected)};
        return concat(both, -1) * scale;
      };
      Var keys = features(k), kept;
      if (h.choice("gate") != "none") {
        const Var raw = parts::linear(l, own + "gate", x, heads,
                                      {init::normal(h.real("gate_std")), init::constant(h.real("gate_bias")),
                                       "w_g of the gate, a row a head", "starts N(0, gate_std²), its bias at gate_bias"});
        const Var keep = reshape(h.choice("gate") == "keeps" ? raw : -raw, {T, B, heads, 1});
        l.gate("forget", sigmoid(keep), 0.0, 1.0, "What is kept of a head's memory: g, or with gate=writes 1 − g.");
        kept = log_sigmoid(keep);
        keys = keys * sigmoid(-keep);
      }
      const auto [read, weight] = parts::linear_read(l, features(q), keys, v, "The sum of φ(k) vᵀ of each head, [feature, value].",
                                                     "The sum of φ(k) of each head: the normaliser.", kept);
      const std::string& by = h.choice("normaliser");
      const Var o = read / (by == "plain" ? weight : parts::at_least(by == "absolute" ? abs(weight) : weight, h.real("least")));
      return parts::linear(l, own + "out_proj", parts::flat(l, o), d,
                           {parts::xavier_uniform(d, d, 1.0 / std::sqrt(2.0)), init::constant(0.0), "W_o, columns by head",
                            "starts Xavier uniform with gain 1/√2, its bias at 0"});
    });
  };
  a.final_layer = parts::fairseq_finish;
  return a;
}

}  // namespace reclab::architectures
