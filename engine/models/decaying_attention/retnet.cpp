// SPDX-License-Identifier: GPL-3.0-or-later
//   S_t = γ S_{t-1} + k_t v_t^T,   o_t = S_t^T q_t / √c_t,   c_t = γ c_{t-1} + 1;   q and k turned by the position, γ_h = 1 - 2^{-5-h}
//   y = W_out (swish(W_g x) norm(o));   block: u + retention(rms u), u + ffn(rms u), ffn(z) = W₂ (gelu(W₁ z) W_gate z)
// Y. Sun et al., Retentive network: a successor to Transformer for large language models, 2023. Names and conventions of torchscale.
#include <cmath>

#include "array/error.h"
#include "models/parts/parts.h"
#include "recurrence/outer/outer.h"

namespace reclab::architectures {
namespace {

/// sum_{s <= t} |gamma^(t-s) q_t.k_s|, held: [steps, batch, heads, 1]. It is no recurrence, so it takes all keys that came before.
Var absolute_weights(Layer& l, Var q, Var k, const std::vector<double>& log_gamma) {
  const std::int64_t T = l.steps(), B = l.batch(), heads = q.dim(2);
  const Var keys = l.cache("keys", k, "All keys so far, for the sum of the absolute weights.");
  const std::int64_t all = keys.dim(0);
  std::vector<double> decays;
  for (const double rate : log_gamma)
    for (std::int64_t t = all - T; t < all; ++t)
      for (std::int64_t s = 0; s < all; ++s) decays.push_back(s > t ? 0.0 : std::exp(rate * static_cast<double>(t - s)));
  const Var scores = abs(matmul_transposed(parts::heads_first(detach(q)), parts::heads_first(keys)));
  const Var sums = sum(reshape(scores, {B, heads, T, all}) * q.graph->constant({heads, T, all}, std::move(decays)), -1);
  const int steps_first[] = {2, 0, 1};
  return reshape(permute(sums, steps_first), {T, B, heads, 1});
}

}  // namespace

Architecture retnet() {
  Architecture a;
  a.title = "RetNet";
  a.equations = {
      "γ_h = 1 − 2^(−5−h); each pair of q_t and k_t/√d_k turned by t·10000^(−j/(n−1)), j = 0..n−1, n = d_k/2, d_k = width/heads",
      "S_t = γ S_{t-1} + k_t v_tᵀ,  o_t = S_tᵀ q_t/√c_t,  c_t = γ c_{t-1} + 1",
      "normaliser=absolute: o_t is also divided by min(max(Σ_{s≤t} |γ^(t−s) q_t·k_s|/√c_t, 1), 5·10⁴), which counts as a constant",
      "y_t = W_out (swish(W_g x_t) ⊙ norm(o_t)), the norm by head",
      "block: u ← u + retention(rms(u)),  u ← u + W₂(gelu(W₁ z) ⊙ W_gate z), z = rms(u)"};
  a.notes = {
      "Names and shapes are those of torchscale's RetNet decoder layer: retention.*, retention_layer_norm, ffn.*, final_layer_norm, and "
      "final/layer_norm of the stack.",
      "flash-linear-attention's RetNet, under its names and with its rotation of halves, is the architecture gla with decay=fixed, "
      "rotation=yes, expand_k=1, expand_v=2.",
      "The read is divided by √c_t as in torchscale's recurrent form; normaliser=none leaves it raw, as flash-linear-attention does. "
      "normaliser=absolute is that of its parallel form, which reads all keys again, so the layer then keeps them; the norm takes either "
      "out up to its epsilon.",
      "The state S_t is the raw sum whatever the normaliser is; torchscale's prev_key_value is S_t/√c_t.",
      "Pairs are neighbours (2j, 2j+1); the angles are the same in all heads; the position counts from 0. With rotation=no nothing is "
      "turned."};
  a.hyper = {
      hyper_integer("width", "d", 64, 2, 4096, "Width of the stream.", "channels"),
      hyper_integer("heads", "h", 4, 1, 64, "Heads; width/heads must be even."),
      hyper_integer("layers", "L", 1, 1, 64, "Blocks in a row."),
      hyper_integer("value_width", "V", 0, 0, 16384, "Values of all heads; 0: twice the width.", "channels"),
      hyper_integer("feed_forward", "F", 0, 0, 65536, "Hidden width of the feed-forward part; 0: twice the width.", "units"),
      hyper_flag("rotation", true, "Whether queries and keys are turned by the position."),
      hyper_choice("normaliser", "row", {"row", "none", "absolute"},
                   "What divides the read: √c_t, nothing, or √c_t and then the sum of the absolute weights."),
      hyper_flag("norm", true, "Whether an rms norm by head follows."),
      hyper_choice("gate", "swish", {"swish", "gelu", "none"}, "Activation of the gate that multiplies the output."),
      hyper_choice("activation", "gelu", {"gelu", "swish", "relu"}, "Activation of the feed-forward part, on W₁ z."),
      hyper_flag("prenorm", true, "Whether norms come before retention and feed-forward (after the residual otherwise)."),
      hyper_flag("deepnorm", false, "Whether residuals are multiplied with (2 layers)^¼ and some weights start smaller."),
      hyper_real("norm_eps", "ε", 1e-6, 1e-12, 1.0, "Epsilon of all norms.", true),
      hyper_choice("block", "residual", {"residual", "none"}, "The block with norms, residuals and feed-forward, or the retention alone.")};
  a.spectrum = "the decay γ of each head, the same at every step (in the frame that turns with the position, γ e^{iθ})";
  a.source = {"Y. Sun, L. Dong, S. Huang, S. Ma, Y. Xia, J. Xue, J. Wang, F. Wei",
              "Retentive network: a successor to Transformer for large language models", "", "https://arxiv.org/abs/2307.08621", 2023};
  a.reference = {{"layers.{n}.*", "*"}, {"layer_norm.*", "final/layer_norm.*"}};
  a.input_width = [](const Hyper& h) { return h.integer("width"); };
  a.check = [](const Hyper& h) {
    const std::int64_t d = h.integer("width"), heads = h.integer("heads"), V = h.integer("value_width") ? h.integer("value_width") : 2 * d;
    if (d % (2 * heads))
      throw Error("retnet: width = " + h.text("width") + " is not an even multiple of heads = " + h.text("heads") +
                      ": choose width as 2 heads times a whole number.",
                  {.model = "retnet", .parameter = "width", .value = h.text("width"), .range = "a multiple of 2 heads"});
    if (V % heads)
      throw Error("retnet: heads = " + h.text("heads") + " does not divide value_width = " + std::to_string(V) + ": choose a divisor.",
                  {.model = "retnet", .parameter = "heads", .value = h.text("heads"), .range = "a divisor of value_width"});
  };

  a.layer = [](Layer& l, Var u) {
    const Hyper& h = l.hyper;
    const std::int64_t d = h.integer("width"), heads = h.integer("heads"), V = h.integer("value_width") ? h.integer("value_width") : 2 * d,
                       dk = d / heads, n = dk / 2;
    const double eps = h.real("norm_eps"), depth = static_cast<double>(h.integer("layers")),
                 key_scale = 1.0 / std::sqrt(static_cast<double>(dk));
    const bool block = h.choice("block") == "residual", prenorm = h.flag("prenorm"), deep = h.flag("deepnorm");
    const double alpha = deep ? std::pow(2.0 * depth, 0.25) : 1.0, shrink = deep ? std::pow(8.0 * depth, -0.25) : 1.0;
    const std::string less = deep ? ", divided by (8 layers)^¼" : "";
    const auto project = [&](const std::string& name, Var z, std::int64_t out, const std::string& role, double gain,
                             const std::string& text) {
      return parts::linear(l, name, z, out,
                           {parts::xavier_uniform(z.dim(-1), out, gain), {}, role, "starts Xavier uniform with gain " + text});
    };
    const Var x = block && prenorm ? parts::rms_norm(l, "retention_layer_norm", u, eps) : u;
    const double gain = std::pow(2.0, -2.5);
    Var q = parts::by_head(l, project("retention.q_proj", x, d, "W_q, rows by head", gain, "2^−2.5"), heads);
    Var k = parts::by_head(l, project("retention.k_proj", x, d, "W_k, rows by head", gain, "2^−2.5") * key_scale, heads);
    const Var v = parts::by_head(l, project("retention.v_proj", x, V, "W_v, rows by head", gain * shrink, "2^−2.5" + less), heads);
    std::vector<double> frequencies, log_gamma;
    for (std::int64_t j = 0; j < n; ++j)
      frequencies.push_back(n == 1 ? 1.0 : std::pow(10000.0, -static_cast<double>(j) / static_cast<double>(n - 1)));
    for (std::int64_t j = 0; j < heads; ++j) log_gamma.push_back(std::log1p(-std::pow(2.0, -5.0 - static_cast<double>(j))));
    if (h.flag("rotation")) {
      const Var angles = parts::angles(l, frequencies);
      q = parts::rotated(q, angles, true);
      k = parts::rotated(k, angles, true);
    }
    const Var decay = u.graph->constant({heads, 1}, log_gamma);
    Var o = outer(l, {"S", {heads, dk, V / heads}, "The decayed sum of k vᵀ of each head, [key, value]."}, {q, k, v, decay});
    if (h.choice("normaliser") != "none") {  // c_t = (1 - γ^{t+1})/(1 - γ), which is 0/0 in numbers where γ is next to 1
      const Var passed = reshape(l.position(), {l.steps(), l.batch(), 1, 1}) + 1.0;
      const Var row = sqrt(mean_exp(decay) / (passed * mean_exp(passed * decay)));
      o = o * row;
      if (h.choice("normaliser") == "absolute") {
        const Var size = minimum(absolute_weights(l, q, k, log_gamma) * row, 5e4);
        o = o / maximum(size, affine(size, 0.0, 1.0));
      }
    }
    if (h.flag("norm")) o = parts::unit_rms(o, eps);
    o = parts::flat(l, o);
    if (h.choice("gate") != "none") {
      const Var g = project("retention.g_proj", x, V, "W_g of the output gate, rows by head", gain, "2^−2.5");
      o = l.gate("output", parts::activation(h.choice("gate"), g), 0.0, 0.0,
                 "The activated W_g x that multiplies the output; unbounded above.") *
          o;
    }
    const Var y = project("retention.out_proj", o, d, "W_out", 0.5 * shrink, "½" + less);
    if (!block) return y;
    Var after = u * alpha + y;
    if (!prenorm) after = parts::rms_norm(l, "retention_layer_norm", after, eps);
    const std::int64_t F = h.integer("feed_forward") ? h.integer("feed_forward") : 2 * d;
    const Var z = prenorm ? parts::rms_norm(l, "final_layer_norm", after, eps) : after;
    const auto feed = [&](const std::string& name, Var w, std::int64_t out, const std::string& role, bool shrunk) {
      const double bound = (shrunk ? shrink : 1.0) / std::sqrt(static_cast<double>(w.dim(-1)));
      return parts::linear(l, name, w, out, {init::uniform(-bound, bound), {}, role, "starts uniform in ±1/√in" + (shrunk ? less : "")});
    };
    const Var first = feed("ffn.fc1", z, F, "W₁ of the feed-forward part", true);
    const Var active = parts::activation(h.choice("activation"), first);
    const Var out = after * alpha + feed("ffn.fc2", active * feed("ffn.gate", z, F, "W_gate of the feed-forward part", false), d,
                                         "W₂ of the feed-forward part", true);
    return prenorm ? out : parts::rms_norm(l, "final_layer_norm", out, eps);
  };
  a.final_layer = [](Layer& l, Var x) {
    return l.hyper.choice("block") == "none" || !l.hyper.flag("prenorm") ? x
                                                                         : parts::rms_norm(l, "layer_norm", x, l.hyper.real("norm_eps"));
  };
  return a;
}

}  // namespace reclab::architectures
