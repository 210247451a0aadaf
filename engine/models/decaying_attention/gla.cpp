// SPDX-License-Identifier: GPL-3.0-or-later
//   a_t = log σ(W₁ W₀ x + b)/τ,   S_t = diag(e^{a_t}) S_{t-1} + k_t v_t^T,   o_t = S_t^T q_t / √d_k
//   or a_t fixed, with q and k turned by the position: RetNet of the same code
//   y = W_o (norm(o) silu(W_g x));   block: u + attention(rms u), u + W_down(silu(W_gate u) W_up u)
// S. Yang, B. Wang, Y. Shen, R. Panda, Y. Kim, Gated linear attention transformers with hardware-efficient training, ICML 2024. Names and
// conventions of flash-linear-attention's GatedLinearAttention and GLABlock, and of its MultiScaleRetention and RetNetBlock.
#include <cmath>

#include "array/error.h"
#include "models/parts/layers/hybrid_attention.h"
#include "models/parts/parts.h"
#include "recurrence/outer/outer.h"

namespace reclab::architectures {
namespace {

struct GlaSizes {
  std::int64_t width, heads, kv_heads, key, value;  // key and value: of all heads
  explicit GlaSizes(const Hyper& h)
      : width(h.integer("width")),
        heads(h.integer("heads")),
        kv_heads(h.integer("kv_heads") ? h.integer("kv_heads") : heads),
        key(static_cast<std::int64_t>(static_cast<double>(width) * h.real("expand_k"))),
        value(static_cast<std::int64_t>(static_cast<double>(width) * h.real("expand_v"))) {}
};

/// The activations of flash-linear-attention; its gelu is the tanh approximation, but for retention, which has them from transformers.
Var fla_activation(const Hyper& h, const std::string& name, Var x) {
  if (name == "gelu" && h.choice("decay") == "input") return gelu_tanh(x);
  if (name == "sqrelu") return square(relu(x));
  if (name == "logsigmoid") return log_sigmoid(x);
  return parts::activation(name, x);
}

Var project(Layer& l, const std::string& name, Var x, std::int64_t out, const std::string& role, bool bias = false) {
  return parts::linear(l, name, x, out, {init::normal(0.02), bias ? init::constant(0.0) : Init{}, role, "starts N(0, 0.02²)"});
}

/// GatedLinearAttention, or MultiScaleRetention.
Var mixer(Layer& l, Var x) {
  const Hyper& h = l.hyper;
  const GlaSizes s(h);
  const std::int64_t T = l.steps(), B = l.batch(), shared = s.heads / s.kv_heads, dk = s.key / s.heads, dv = s.value / s.heads;
  const double eps = h.real("norm_eps");
  const bool gated = h.flag("output_gate");
  Var q = project(l, "attn.q_proj", x, s.key, "W_q, rows by head"), k = project(l, "attn.k_proj", x, s.key / shared, "W_k, rows by head"),
      v = project(l, "attn.v_proj", x, s.value / shared, "W_v, rows by head");
  if (const std::int64_t taps = h.integer("conv")) {
    const auto convolved = [&](const std::string& letter, Var z) {
      const std::string name = "attn." + letter + "_conv1d";
      const Var W =
          l.parameter(name + ".weight", {z.dim(-1), 1, taps}, init::normal(0.02), "Taps of each channel, oldest first; start N(0, 0.02²).");
      Var y = depthwise(l.history("conv_" + letter, z, taps - 1, "The convolution's last inputs, oldest first."),
                        reshape(W, {z.dim(-1), taps}));
      if (h.flag("conv_bias")) y = y + l.parameter(name + ".bias", {z.dim(-1)}, init::constant(0.0), "Its bias; starts at 0.");
      return silu(y);
    };
    q = convolved("q", q);
    k = convolved("k", k);
    v = convolved("v", v);
  }
  Var decay;
  if (h.choice("decay") == "input") {
    const Init wide = init::normal(h.real("gate_std"));
    const Var low =
        parts::linear(l, "attn.gk_proj.0", x, h.integer("gate_rank"), {wide, Init{}, "W₀ of the decay", "starts N(0, gate_std²)"});
    decay = log_sigmoid(parts::linear(l, "attn.gk_proj.1", low, s.key / shared,
                                      {wide, init::constant(0.0), "W₁ of the decay, rows by head", "starts N(0, gate_std²)"})) /
            h.real("gate_normaliser");
    if (h.real("clamp_min") < 0.0) decay = -minimum(-decay, -h.real("clamp_min"));
  }
  const auto mapped = [&](Var z) { return fla_activation(h, h.choice("feature_map"), z); };
  const auto heads = [&](Var z, std::int64_t d) { return parts::repeated_heads(reshape(z, {T, B, s.kv_heads, d}), shared); };
  if (decay) {
    decay = heads(decay, dk);
    l.gate("forget", exp(decay), 0.0, 1.0, "exp(a): how much of each key dimension of the memory is kept.");
  } else {
    std::vector<double> fixed;
    for (std::int64_t i = 0; i < s.heads; ++i) fixed.push_back(std::log1p(-std::pow(2.0, -5.0 - static_cast<double>(i))));
    decay = l.graph().constant({s.heads, 1}, std::move(fixed));
  }
  Var queries = reshape(mapped(q), {T, B, s.heads, dk}), keys = heads(mapped(k), dk);
  if (const std::int64_t paired = dk / 2 * 2; h.flag("rotation") && paired) {
    std::vector<double> frequencies;
    for (std::int64_t j = 0; j < dk / 2; ++j)
      frequencies.push_back(std::pow(10000.0, -2.0 * static_cast<double>(j) / static_cast<double>(dk)));
    const Var angles = parts::angles(l, frequencies);
    const auto turned = [&](Var z) {
      if (paired == dk) return parts::rotated(z, angles, false);
      const Var both[] = {parts::rotated(slice(z, -1, 0, paired), angles, false), slice(z, -1, paired, dk)};
      return concat(both, -1);
    };
    queries = turned(queries);
    keys = turned(keys);
  }
  const Var read = outer(l, {"S", {s.heads, dk, dv}, "The memory of each head, [key, value]."},
                         {queries / std::sqrt(static_cast<double>(dk)), keys, heads(v, dv), decay});
  Var o = h.flag("norm") ? parts::unit_rms(read, eps) : read;
  if (h.flag("norm") && h.flag("norm_affine"))
    o = o * l.parameter(gated && h.choice("gate_fn") == "swish" ? "attn.g_norm_swish_gate.weight" : "attn.g_norm.weight", {dv},
                        init::constant(1.0), "Scale of the norm by head, the same for all heads; starts at 1.");
  o = parts::flat(l, o);
  if (gated)
    o = o * l.gate("output",
                   fla_activation(h, h.choice("gate_fn"), project(l, "attn.g_proj", x, s.value, "W_g of the output gate, rows by head")),
                   0.0, h.choice("gate_fn") == "sigmoid" ? 1.0 : 0.0,
                   h.choice("gate_fn") == "sigmoid"      ? "σ(W_g x): what multiplies the output."
                   : h.choice("gate_fn") == "logsigmoid" ? "log σ(W_g x): what multiplies the output; below 0 and unbounded."
                   : h.text("gate_fn") == "swish" || h.text("gate_fn") == "silu"
                       ? "silu(W_g x): what multiplies the output; unbounded above."
                       : h.text("gate_fn") + "(W_g x): what multiplies the output; unbounded above.");
  return project(l, "attn.o_proj", o, s.width, "W_o");
}

}  // namespace

Architecture gla() {
  Architecture a;
  a.title = "Gated linear attention";
  a.equations = {"a_t = log σ(W₁ W₀ x_t + b)/τ  (decay=fixed: log(1 − 2^(−5−h)) of head h = 0, 1, …)",
                 "S_t = diag(exp a_t) S_{t-1} + k_t v_tᵀ,  o_t = S_tᵀ q_t/√d_k",
                 "y_t = W_o (norm(o_t) ⊙ f(W_g x_t)), the norm by head (norm=no: o_t itself), f = gate_fn, silu where it is swish",
                 "rotation=yes: pairs (j, j + d_k/2) of each head's q_t and k_t turned by t·10000^(−2j/d_k)",
                 "block: u ← u + attention(rms(u)),  u ← u + W_down(silu(W_gate z) ⊙ W_up z), z = rms(u)"};
  a.notes = {"Names and shapes are those of flash-linear-attention: attn.*, attn_norm, mlp_norm and mlp.* of a GLABlock, and final/norm.",
             "The memory is updated before it is read; the decay acts on the key axis and the scale 1/√d_k on the query, d_k being the key "
             "size of a head.",
             "Epsilon is 1e-6, as the model's configuration passes it; the layer class alone has 1e-5.",
             "decay=fixed with rotation=yes, expand_k=1, expand_v=2 is the RetNet of flash-linear-attention, names and all; that of "
             "torchscale is the architecture retnet. Convolution and feature map come before the rotation.",
             "The norm by head is attn.g_norm_swish_gate where gate_fn is swish, else attn.g_norm; gate_fn=silu is the same function under "
             "that name, as with fuse_norm=False. gelu is the tanh approximation, with decay=fixed gelu itself, and sqrelu the square of "
             "relu, as in the two layers of flash-linear-attention.",
             "Its residual mixing over depth (attnres_block_size) is not here.",
             "With kv_heads fewer than heads, each key, value and decay head serves heads/kv_heads query heads in a row."};
  a.hyper = {
      hyper_integer("width", "d", 64, 1, 4096, "Width of the stream.", "channels"),
      hyper_integer("heads", "h", 4, 1, 64, "Heads; must divide the key and the value size."),
      hyper_integer("layers", "L", 1, 1, 64, "Blocks in a row."),
      hyper_real("expand_k", "", 0.5, 0.01, 16.0, "Key size of all heads, as a share of the width."),
      hyper_real("expand_v", "", 1.0, 0.01, 16.0, "Value size of all heads, as a share of the width."),
      hyper_integer("kv_heads", "", 0, 0, 64, "Heads of keys, values and decays, which query heads share; 0: as many as heads."),
      hyper_choice("decay", "input", {"input", "fixed"}, "Whether the decay comes from the input, or is one number a head."),
      hyper_flag("rotation", false,
                 "Whether queries and keys are turned by the position; where the key size of a head is odd the last entry is not."),
      hyper_integer("gate_rank", "", 16, 1, 4096, "Rank of the decay's projection."),
      hyper_real("gate_normaliser", "τ", 16.0, 1e-3, 1e4, "The decay's logarithm is divided by it: larger forgets more slowly.", true),
      hyper_real("clamp_min", "", 0.0, -100.0, 0.0, "Least logarithm of the decay; 0: none."),
      hyper_choice("feature_map", "none", {"none", "relu", "silu", "gelu", "sigmoid", "sqrelu", "logsigmoid"},
                   "Applied to queries and keys."),
      hyper_integer("conv", "K", 0, 0, 64, "Taps of causal convolutions of queries, keys and values; 0: none.", "steps"),
      hyper_flag("conv_bias", false, "Whether the convolutions have biases."),
      hyper_flag("output_gate", true, "Whether f(W_g x) multiplies the output."),
      hyper_choice("gate_fn", "swish", {"swish", "silu", "gelu", "relu", "sigmoid", "sqrelu", "logsigmoid"}, "f of the output gate."),
      hyper_flag("norm", true, "Whether the read is normalised by head."),
      hyper_flag("norm_affine", true, "Whether the norm by head has a scale."),
      hyper_real("norm_eps", "ε", 1e-6, 1e-12, 1.0, "Epsilon of all norms.", true),
      hyper_integer("feed_forward", "F", 0, 0, 65536,
                    "Hidden width of the feed-forward part; 0: 8/3 of the width, up to the next multiple of 256.", "units"),
      initialisation_only(
          hyper_real("gate_std", "", 0.02, 1e-6, 10.0,
                     "Deviation that W₀ and W₁ of the decay start with; 0.02 is that of all other matrices. Larger lets the input "
                     "move the gate further.",
                     true)),
      hyper_choice("block", "residual", {"residual", "none"},
                   "The block with norms, residuals and feed-forward, or the attention layer alone.")};
  a.spectrum = "the decay exp(a_t) of each entry of S (with rotation in the frame that turns)";
  a.source = {"S. Yang, B. Wang, Y. Shen, R. Panda, Y. Kim", "Gated linear attention transformers with hardware-efficient training", "ICML",
              "https://arxiv.org/abs/2312.06635", 2024};
  a.reference = {{"layers.{n}.*", "*"}, {"norm.*", "final/norm.*"}};
  a.input_width = [](const Hyper& h) { return h.integer("width"); };
  a.check = [](const Hyper& h) {
    const GlaSizes s(h);
    if (s.key < 1 || s.value < 1 || s.key % s.heads || s.value % s.heads)
      throw Error("gla: heads = " + h.text("heads") + " does not divide the key size " + std::to_string(s.key) + " and the value size " +
                      std::to_string(s.value) + ": choose a common divisor, or other expand_k and expand_v.",
                  {.model = "gla", .parameter = "heads", .value = h.text("heads"), .range = "a divisor of key and value size"});
    if (s.heads % s.kv_heads)
      throw Error("gla: kv_heads = " + h.text("kv_heads") + " does not divide heads = " + h.text("heads") + ": choose a divisor.",
                  {.model = "gla", .parameter = "kv_heads", .value = h.text("kv_heads"), .range = "a divisor of heads"});
  };

  a.layer = [](Layer& l, Var u) {
    const Hyper& h = l.hyper;
    const std::int64_t d = h.integer("width");
    const double eps = h.real("norm_eps");
    const bool block = h.choice("block") == "residual";
    const Var x = block ? parts::rms_norm(l, "attn_norm", u, eps) : u;
    const Var y = parts::has_attention(l) ? parts::hybrid_attention(l, "attn.", x, 0.02) : mixer(l, x);
    if (!block) return y;
    const Var after = u + y, z = parts::rms_norm(l, "mlp_norm", after, eps);
    const std::int64_t F = h.integer("feed_forward") ? h.integer("feed_forward") : 256 * ((d * 8 / 3 + 255) / 256);
    const Var open = silu(project(l, "mlp.gate_proj", z, F, "W_gate of the feed-forward part"));
    return after + project(l, "mlp.down_proj", open * project(l, "mlp.up_proj", z, F, "W_up of the feed-forward part"), d,
                           "W_down of the feed-forward part");
  };
  a.final_layer = [](Layer& l, Var x) {
    return l.hyper.choice("block") == "none" ? x : parts::rms_norm(l, "norm", x, l.hyper.real("norm_eps"));
  };
  parts::add_hybrid_attention(a, "gla");
  return a;
}

}  // namespace reclab::architectures
