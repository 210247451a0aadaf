// SPDX-License-Identifier: GPL-3.0-or-later
//   f_t = b_l + (1 - b_l) σ(W_f x),   h_t = f_t h_{t-1} + (1 - f_t) silu(W_i x),   y_t = W_o (rms(h_t) silu(W_g x))
//   b_l = P_1 + .. + P_l with P the softmax over the layers;   block: u + layer(rms u), u + W_down(silu(W_gate v) W_up v)
// Z. Qin, S. Yang, Y. Zhong, Hierarchically gated recurrent neural network for sequence modeling, NeurIPS 2023, with a real state. Names
// and conventions of flash-linear-attention's HGRNAttention and HGRNBlock.
#include <cmath>

#include "array/error.h"
#include "models/parts/layers/hybrid_attention.h"
#include "models/parts/lower_bounds.h"
#include "models/parts/parts.h"
#include "recurrence/diagonal/diagonal.h"

namespace reclab::architectures {
namespace {

std::int64_t inner_of(const Hyper& h) { return static_cast<std::int64_t>(static_cast<double>(h.integer("width")) * h.real("expand")); }

Var project(Layer& l, const std::string& name, Var x, std::int64_t out, const std::string& role) {
  return parts::linear(l, name, x, out, {init::normal(0.02), Init{}, role, "starts N(0, 0.02²)"});
}

/// HGRNAttention, whose forget gates are not below `bound`; none: 0.
Var mixer(Layer& l, Var x, Var bound) {
  const Hyper& h = l.hyper;
  const std::int64_t I = inner_of(h);
  const double eps = h.real("norm_eps");
  Var i = project(l, "attn.i_proj", x, I, "W_i"), f = project(l, "attn.f_proj", x, I, "W_f");
  if (const std::int64_t taps = h.integer("conv")) {
    const auto convolved = [&](const std::string& letter, Var z) {
      const std::string name = "attn." + letter + "_conv1d";
      const Var W =
          l.parameter(name + ".weight", {I, 1, taps}, init::normal(0.02), "Taps of each channel, oldest first; start N(0, 0.02²).");
      const Var y =
          depthwise(l.history("conv_" + letter, z, taps - 1, "The convolution's last inputs, oldest first."), reshape(W, {I, taps}));
      return h.flag("conv_bias") ? y + l.parameter(name + ".bias", {I}, init::constant(0.0), "Its bias; starts at 0.") : y;
    };
    i = convolved("i", i);
    f = convolved("f", f);
  }
  const auto gates = parts::bounded_gate(f, bound);
  l.gate("forget", gates.forget, 0.0, 1.0, "f: what multiplies the state; from the second layer on not below that layer's bound.");
  const Var state = diagonal(l, {"h", {I}, "The state."}, gates.forget, gates.write * silu(i));
  Var o = parts::unit_rms(state, eps);
  if (h.flag("norm_affine")) o = o * l.parameter("attn.g_norm.weight", {I}, init::constant(1.0), "Scale of the rms norm; starts at 1.");
  o = o * l.gate("output", silu(project(l, "attn.g_proj", x, I, "W_g of the output gate")), 0.0, 0.0,
                 "silu(W_g x): what multiplies the normalised state; unbounded above.");
  return project(l, "attn.o_proj", o, h.integer("width"), "W_o");
}

}  // namespace

Architecture hgrn() {
  Architecture a;
  a.title = "HGRN (real)";
  a.equations = {"P = softmax over the layers of lower_bounds,  b_l = P_1 + … + P_l in layer l = 0 … L−1",
                 "f_t = b_l + (1 − b_l) ⊙ σ(W_f x_t)", "h_t = f_t ⊙ h_{t-1} + (1 − f_t) ⊙ silu(W_i x_t)",
                 "y_t = W_o (rms(h_t) ⊙ silu(W_g x_t))",
                 "block: u ← u + layer(rms(u)),  u ← u + W_down(silu(W_gate v) ⊙ W_up v), v = rms(u)"};
  a.notes = {
      "Names and shapes are those of flash-linear-attention: attn.*, attn_norm, mlp_norm and mlp.* of a HGRNBlock, lower_bounds of the "
      "model, which stands under the first layer here, and final/norm.",
      "This is the real variant of that library; the paper's complex one, which turns its state, is the architecture hgru.",
      "The lowest layer has the bound 0 whatever lower_bounds holds.",
      "Epsilon is 1e-6, as the model's configuration passes it; the layer class alone has 1e-5.",
      "Where the inner width is not that of the stream the reference's bounds do not fit from the second layer on; here they have the "
      "inner width.",
      "The convolutions have no activation, as in the reference."};
  a.hyper = {
      hyper_integer("width", "d", 64, 1, 4096, "Width of the stream.", "channels"),
      hyper_integer("layers", "L", 1, 1, 64, "Blocks in a row, whose bounds rise."),
      hyper_real("expand", "", 1.0, 0.01, 16.0, "Inner width, as a multiple of the stream's."),
      hyper_flag("lower_bound", true, "Whether forget gates are bounded below, the more the higher the layer."),
      hyper_integer("conv", "K", 0, 0, 64, "Taps of causal convolutions of the inputs of state and forget gate; 0: none.", "steps"),
      hyper_flag("conv_bias", false, "Whether the convolutions have biases."),
      hyper_flag("norm_affine", true, "Whether the norm of the state has a scale."),
      hyper_real("norm_eps", "ε", 1e-6, 1e-12, 1.0, "Epsilon of all norms.", true),
      hyper_integer("feed_forward", "F", 0, 0, 65536,
                    "Hidden width of the feed-forward part; 0: 8/3 of the width, up to the next multiple of 256.", "units"),
      hyper_choice("block", "residual", {"residual", "none"}, "The block with norms, residuals and feed-forward, or the layer alone.")};
  a.spectrum = "the forget gate f_t";
  a.source = {"Z. Qin, S. Yang, Y. Zhong", "Hierarchically gated recurrent neural network for sequence modeling", "NeurIPS",
              "https://arxiv.org/abs/2311.04823", 2023};
  a.reference = {{"layers.{n}.*", "*"}, {"lower_bounds", "lower_bounds"}, {"norm.*", "final/norm.*"}};
  a.input_width = [](const Hyper& h) { return h.integer("width"); };
  a.check = [](const Hyper& h) {
    if (inner_of(h) < 1)
      throw Error("hgrn: expand = " + h.text("expand") + " leaves no unit of width = " + h.text("width") + ": choose at least 1/width.",
                  {.model = "hgrn", .parameter = "expand", .value = h.text("expand"), .range = "at least 1/width"});
  };
  a.layer = [](Layer& l, Var u) {
    const Hyper& h = l.hyper;
    const std::int64_t d = h.integer("width");
    const double eps = h.real("norm_eps");
    const bool block = h.choice("block") == "residual";
    const Var x = block ? parts::rms_norm(l, "attn_norm", u, eps) : u;
    const Var bound = h.flag("lower_bound") ? parts::lower_bound(l, inner_of(h), 0.0) : Var{};
    const Var y = parts::has_attention(l) ? parts::hybrid_attention(l, "attn.", x, 0.02) : mixer(l, x, bound);
    if (!block) return y;
    const Var after = u + y, v = parts::rms_norm(l, "mlp_norm", after, eps);
    const std::int64_t F = h.integer("feed_forward") ? h.integer("feed_forward") : 256 * ((d * 8 / 3 + 255) / 256);
    const Var open = silu(project(l, "mlp.gate_proj", v, F, "W_gate of the feed-forward part"));
    return after + project(l, "mlp.down_proj", open * project(l, "mlp.up_proj", v, F, "W_up of the feed-forward part"), d,
                           "W_down of the feed-forward part");
  };
  a.final_layer = [](Layer& l, Var x) {
    return l.hyper.choice("block") == "none" ? x : parts::rms_norm(l, "norm", x, l.hyper.real("norm_eps"));
  };
  parts::add_hybrid_attention(a, "hgrn");
  return a;
}

}  // namespace reclab::architectures
