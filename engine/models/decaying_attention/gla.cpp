// SPDX-License-Identifier: GPL-3.0-or-later
//   a_t = log σ(W₁ W₀ x + b)/τ,   S_t = diag(e^{a_t}) S_{t-1} + k_t v_t^T,   o_t = S_t^T q_t / √d_k
//   y = W_o (norm(o) silu(W_g x));   block: u + attention(rms u), u + W_down(silu(W_gate u) W_up u)
// S. Yang, B. Wang, Y. Shen, R. Panda, Y. Kim, Gated linear attention transformers with hardware-efficient training, ICML 2024. Names and
// conventions of flash-linear-attention's GatedLinearAttention and GLABlock.
#include <cmath>

#include "array/error.h"
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

}  // namespace

Architecture gla() {
  Architecture a;
  a.title = "Gated linear attention";
  a.equations = {"a_t = log σ(W₁ W₀ x_t + b)/τ", "S_t = diag(exp a_t) S_{t-1} + k_t v_tᵀ,  o_t = S_tᵀ q_t/√d_k", "y_t = W_o (norm(o_t) ⊙ silu(W_g x_t)), the norm by head (norm=no: o_t itself)",
                 "block: u ← u + attention(rms(u)),  u ← u + W_down(silu(W_gate z) ⊙ W_up z), z = rms(u)"};
  a.notes = {"Names and shapes are those of flash-linear-attention: attn.*, attn_norm, mlp_norm and mlp.* of a GLABlock, and final/norm.",
             "The memory is updated before it is read; the decay acts on the key axis and the scale 1/√d_k on the query, d_k being the key size of a head.",
             "Epsilon is 1e-6, as the model's configuration passes it; the layer class alone has 1e-5.",
             "With kv_heads fewer than heads, each key, value and decay head serves heads/kv_heads query heads in a row."};
  a.hyper = {hyper_integer("width", "d", 64, 1, 4096, "Width of the stream.", "channels"), hyper_integer("heads", "h", 4, 1, 64, "Heads; must divide the key and the value size."),
             hyper_integer("layers", "L", 1, 1, 64, "Blocks in a row."),
             hyper_real("expand_k", "", 0.5, 0.01, 16.0, "Key size of all heads, as a share of the width."), hyper_real("expand_v", "", 1.0, 0.01, 16.0, "Value size of all heads, as a share of the width."),
             hyper_integer("kv_heads", "", 0, 0, 64, "Heads of keys, values and decays, which query heads share; 0: as many as heads."),
             hyper_integer("gate_rank", "", 16, 1, 4096, "Rank of the decay's projection."),
             hyper_real("gate_normaliser", "τ", 16.0, 1e-3, 1e4, "The decay's logarithm is divided by it: larger forgets more slowly.", true),
             hyper_real("clamp_min", "", 0.0, -100.0, 0.0, "Least logarithm of the decay; 0: none."),
             hyper_choice("feature_map", "none", {"none", "relu", "silu"}, "Applied to queries and keys."),
             hyper_integer("conv", "K", 0, 0, 64, "Taps of causal convolutions of queries, keys and values; 0: none.", "steps"), hyper_flag("conv_bias", false, "Whether the convolutions have biases."),
             hyper_flag("output_gate", true, "Whether silu(W_g x) multiplies the output."), hyper_flag("norm", true, "Whether the read is normalised by head."), hyper_flag("norm_affine", true, "Whether the norm by head has a scale."),
             hyper_real("norm_eps", "ε", 1e-6, 1e-12, 1.0, "Epsilon of all norms.", true),
             hyper_integer("feed_forward", "F", 0, 0, 65536, "Hidden width of the feed-forward part; 0: 8/3 of the width, up to the next multiple of 256.", "units"),
             draws_only(hyper_real("gate_std", "", 0.02, 1e-6, 10.0, "Deviation that W₀ and W₁ of the decay start with; 0.02 is that of all other matrices. Larger lets the input move the gate further.", true)),
             hyper_choice("block", "residual", {"residual", "none"}, "The block with norms, residuals and feed-forward, or the attention layer alone.")};
  a.spectrum = "the decay exp(a_t) of each entry of S";
  a.source = {"S. Yang, B. Wang, Y. Shen, R. Panda, Y. Kim", "Gated linear attention transformers with hardware-efficient training", "ICML", "https://arxiv.org/abs/2312.06635", 2024};
  a.reference = {{"layers.{n}.*", "*"}, {"norm.*", "final/norm.*"}};
  a.input_width = [](const Hyper& h) { return h.integer("width"); };
  a.check = [](const Hyper& h) {
    const GlaSizes s(h);
    if (s.key < 1 || s.value < 1 || s.key % s.heads || s.value % s.heads)
      throw Error("gla: heads = " + h.text("heads") + " does not divide the key size " + std::to_string(s.key) + " and the value size " + std::to_string(s.value) +
                      ": choose a common divisor, or other expand_k and expand_v.",
                  {.model = "gla", .parameter = "heads", .value = h.text("heads"), .range = "a divisor of key and value size"});
    if (s.heads % s.kv_heads)
      throw Error("gla: kv_heads = " + h.text("kv_heads") + " does not divide heads = " + h.text("heads") + ": choose a divisor.",
                  {.model = "gla", .parameter = "kv_heads", .value = h.text("kv_heads"), .range = "a divisor of heads"});
  };

  a.layer = [](Layer& l, Var u) {
    const Hyper& h = l.hyper;
    const GlaSizes s(h);
    const std::int64_t T = l.steps(), B = l.batch(), shared = s.heads / s.kv_heads, dk = s.key / s.heads, dv = s.value / s.heads;
    const double eps = h.real("norm_eps");
    const bool block = h.choice("block") == "residual", gated = h.flag("output_gate");
    const auto project = [&](const std::string& name, Var x, std::int64_t out, const std::string& role, bool bias = false) {
      return parts::linear(l, name, x, out, {init::normal(0.02), bias ? init::constant(0.0) : Init{}, role, "starts N(0, 0.02²)"});
    };
    const Var x = block ? parts::rms_norm(l, "attn_norm", u, eps) : u;
    Var q = project("attn.q_proj", x, s.key, "W_q, rows by head"), k = project("attn.k_proj", x, s.key / shared, "W_k, rows by head"),
        v = project("attn.v_proj", x, s.value / shared, "W_v, rows by head");
    if (const std::int64_t taps = h.integer("conv")) {
      const auto convolved = [&](const std::string& letter, Var z) {
        const std::string name = "attn." + letter + "_conv1d";
        const Var W = l.parameter(name + ".weight", {z.dim(-1), 1, taps}, init::normal(0.02), "Taps of each channel, oldest first; start N(0, 0.02²).");
        Var y = depthwise(l.history("conv_" + letter, z, taps - 1, "The convolution's last inputs, oldest first."), reshape(W, {z.dim(-1), taps}));
        if (h.flag("conv_bias")) y = y + l.parameter(name + ".bias", {z.dim(-1)}, init::constant(0.0), "Its bias; starts at 0.");
        return silu(y);
      };
      q = convolved("q", q);
      k = convolved("k", k);
      v = convolved("v", v);
    }
    const Init wide = init::normal(h.real("gate_std"));
    const Var low = parts::linear(l, "attn.gk_proj.0", x, h.integer("gate_rank"), {wide, Init{}, "W₀ of the decay", "starts N(0, gate_std²)"});
    Var decay = log_sigmoid(parts::linear(l, "attn.gk_proj.1", low, s.key / shared, {wide, init::constant(0.0), "W₁ of the decay, rows by head", "starts N(0, gate_std²)"})) / h.real("gate_normaliser");
    if (h.real("clamp_min") < 0.0) decay = -minimum(-decay, -h.real("clamp_min"));
    const auto mapped = [&](Var z) { return parts::activation(h.choice("feature_map"), z); };
    const auto heads = [&](Var z, std::int64_t d) { return parts::repeated_heads(reshape(z, {T, B, s.kv_heads, d}), shared); };
    const Var by_head = heads(decay, dk);
    l.gate("forget", exp(by_head), 0.0, 1.0, "exp(a): how much of each key dimension of the memory is kept.");
    const Var read = outer(l, {"S", {s.heads, dk, dv}, "The memory of each head, [key, value]."}, {reshape(mapped(q), {T, B, s.heads, dk}) / std::sqrt(static_cast<double>(dk)),
                             heads(mapped(k), dk), heads(v, dv), by_head});
    Var o = h.flag("norm") ? parts::unit_rms(read, eps) : read;
    if (h.flag("norm") && h.flag("norm_affine"))
      o = o * l.parameter(gated ? "attn.g_norm_swish_gate.weight" : "attn.g_norm.weight", {dv}, init::constant(1.0), "Scale of the norm by head, the same for all heads; starts at 1.");
    o = parts::flat(l, o);
    if (gated) o = o * l.gate("output", silu(project("attn.g_proj", x, s.value, "W_g of the output gate, rows by head")), 0.0, 0.0, "silu(W_g x): what multiplies the output; unbounded above.");
    const Var y = project("attn.o_proj", o, s.width, "W_o");
    if (!block) return y;
    const Var after = u + y, z = parts::rms_norm(l, "mlp_norm", after, eps);
    const std::int64_t F = h.integer("feed_forward") ? h.integer("feed_forward") : 256 * ((s.width * 8 / 3 + 255) / 256);
    const Var open = silu(project("mlp.gate_proj", z, F, "W_gate of the feed-forward part"));
    return after + project("mlp.down_proj", open * project("mlp.up_proj", z, F, "W_up of the feed-forward part"), s.width, "W_down of the feed-forward part");
  };
  a.finish = [](Layer& l, Var x) { return l.hyper.choice("block") == "none" ? x : parts::rms_norm(l, "norm", x, l.hyper.real("norm_eps")); };
  return a;
}

}  // namespace reclab::architectures
