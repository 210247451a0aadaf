// SPDX-License-Identifier: GPL-3.0-or-later
//   S_t = S_{t-1} + φ(k_t) v_t^T,   z_t = z_{t-1} + φ(k_t),   o_t = S_t^T φ(q_t) / (φ(q_t)·z_t + ε),   φ = elu + 1
//   encoder layer: x = norm1(x + W_o o);   x = norm2(x + W_2 f(W_1 x))
// A. Katharopoulos et al., Transformers are RNNs, ICML 2020. Names and conventions of the authors' fast-transformers.
#include <cmath>

#include "array/error.h"
#include "models/architecture.h"
#include "models/parts/features.h"
#include "models/parts/parts.h"
#include "recurrence/outer/normalised.h"

namespace reclab::architectures {

Architecture linear_attention() {
  Architecture a;
  a.title = "Linear attention";
  a.equations = {"φ(x) = elu(x) + 1; feature_map=dpfp: concat over j = 1..ν of r ⊙ roll(r, j), r = [relu(x); relu(−x)]",
                 "S_t = S_{t-1} + φ(k_t) v_tᵀ,  z_t = z_{t-1} + φ(k_t)", "o_t = S_tᵀ φ(q_t) / (φ(q_t)·z_t + 10⁻⁶)",
                 "encoder layer: x ← norm₁(x + W_o o),  x ← norm₂(x + W₂ f(W₁ x + b₁) + b₂)"};
  a.notes = {
      "Names and shapes are those of fast-transformers: attention.{query,key,value,out}_projection, linear1, linear2, norm1, norm2 of a "
      "layer and final/norm.",
      "The memory is updated before it is read; there is no 1/√d; epsilon 1e-6 is added to the denominator. Heads are the slow part of the "
      "rows of the query, key and value projections and of the columns of out_projection.weight.",
      "All norms are layer norms with epsilon 1e-5.",
      "feature_map=dpfp is the map of Schlag et al. 2021, which fast-transformers does not have, under its normaliser.",
      "The transition is the identity: nothing is forgotten, so all eigenvalues and singular values are 1, and the normaliser z grows "
      "instead."};
  a.hyper = {hyper_integer("width", "d", 64, 1, 4096, "Width of the stream.", "channels"),
             hyper_integer("heads", "h", 4, 1, 64, "Heads; must divide the width."),
             hyper_integer("layers", "L", 1, 1, 64, "Encoder layers in a row."),
             hyper_choice("feature_map", "elu", {"elu", "dpfp"}, "φ: elu + 1, or DPFP."),
             hyper_integer("nu", "ν", 1, 1, 8, "Rolls of DPFP: features are 2ν times as long as keys."),
             hyper_integer("feed_forward", "d_ff", 0, 0, 16384, "Hidden width of the feed-forward part; 0: four times the width.", "units"),
             hyper_choice("activation", "relu", {"relu", "gelu"}, "f of the feed-forward part."),
             hyper_choice("block", "residual", {"residual", "none"}, "The encoder layer, or the attention with its projections alone."),
             hyper_flag("final_norm", true, "Whether a layer norm follows the last layer.")};
  a.spectrum = "the transition of the memory: the identity";
  a.source = {"A. Katharopoulos, A. Vyas, N. Pappas, F. Fleuret",
              "Transformers are RNNs: fast autoregressive transformers with linear attention", "ICML", "https://arxiv.org/abs/2006.16236",
              2020};
  a.reference = {{"layers.{n}.*", "*"}, {"norm.*", "final/norm.*"}};
  a.input_width = [](const Hyper& h) { return h.integer("width"); };
  a.check = [](const Hyper& h) {
    if (h.integer("width") % h.integer("heads"))
      throw Error("linear-attention: heads = " + h.text("heads") + " does not divide width = " + h.text("width") + ": choose a divisor.",
                  {.model = "linear-attention", .parameter = "heads", .value = h.text("heads"), .range = "a divisor of width"});
  };

  a.layer = [](Layer& l, Var x) {
    const std::int64_t d = l.hyper.integer("width"), heads = l.hyper.integer("heads"), key = d / heads;
    const double k = 1.0 / std::sqrt(static_cast<double>(d));
    const auto project = [&](const std::string& name, const std::string& role, Var v, const char* heads_lie = "rows") {
      const Var W = l.parameter("attention." + name + "_projection.weight", {d, d}, init::uniform(-k, k),
                                "W of the " + role + ", " + heads_lie + " by head; starts uniform in ±1/√d.");
      const Var b = l.parameter("attention." + name + "_projection.bias", {d}, init::uniform(-k, k), "Its bias; starts uniform in ±1/√d.");
      return linear(v, W, b);
    };
    const Shape by_head{l.steps(), l.batch(), heads, key};
    const bool dpfp = l.hyper.choice("feature_map") == "dpfp";
    const std::int64_t nu = l.hyper.integer("nu"), features = dpfp ? 2 * nu * key : key;
    const auto map = [&](Var z) { return dpfp ? parts::dpfp(z, nu) : elu(z) + 1.0; };
    const Var q = map(reshape(project("query", "queries", x), by_head));
    const Var keys = map(reshape(project("key", "keys", x), by_head));
    const Var v = reshape(project("value", "values", x), by_head);
    const Var read =
        normalised_outer(l, {"S", {heads, features, key}, "The sum of φ(k) vᵀ of each head, [key, value]."},
                         {"z", {heads, features}, "The sum of φ(k) of each head: the normaliser."}, {q, keys, v}, denominator::plus(1e-6));
    const Var out = project("out", "output", reshape(read, {l.steps(), l.batch(), d}), "columns");
    if (l.hyper.choice("block") == "none") return out;

    const auto norm = [&](const std::string& name, Var y) {
      const Var scale = l.parameter(name + ".weight", {d}, init::constant(1.0), "Scale of the layer norm; starts at 1.");
      const Var shift = l.parameter(name + ".bias", {d}, init::constant(0.0), "Shift of the layer norm; starts at 0.");
      return layer_norm(y, scale, shift, 1e-5);
    };
    const std::int64_t F = l.hyper.integer("feed_forward") ? l.hyper.integer("feed_forward") : 4 * d;
    const double f = 1.0 / std::sqrt(static_cast<double>(F));
    const Var y = norm("norm1", x + out);
    const Var W1 = l.parameter("linear1.weight", {F, d}, init::uniform(-k, k), "W₁; starts uniform in ±1/√d.");
    const Var b1 = l.parameter("linear1.bias", {F}, init::uniform(-k, k), "b₁; starts uniform in ±1/√d.");
    const Var W2 = l.parameter("linear2.weight", {d, F}, init::uniform(-f, f), "W₂; starts uniform in ±1/√d_ff.");
    const Var b2 = l.parameter("linear2.bias", {d}, init::uniform(-f, f), "b₂; starts uniform in ±1/√d_ff.");
    const Var hidden = linear(y, W1, b1);
    return norm("norm2", y + linear(parts::activation(l.hyper.choice("activation"), hidden), W2, b2));
  };
  a.final_layer = [](Layer& l, Var x) {
    if (l.hyper.choice("block") == "none" || !l.hyper.flag("final_norm")) return x;
    const Var scale = l.parameter("norm.weight", {x.dim(-1)}, init::constant(1.0), "Scale of the final layer norm; starts at 1.");
    const Var shift = l.parameter("norm.bias", {x.dim(-1)}, init::constant(0.0), "Shift of the final layer norm; starts at 0.");
    return layer_norm(x, scale, shift, 1e-5);
  };
  return a;
}

}  // namespace reclab::architectures
