// SPDX-License-Identifier: GPL-3.0-or-later
//   λ_t = b_l + (1 - b_l) σ(W_λ x + b),   h_t = λ_t e^{iθ} h_{t-1} + (1 - λ_t) c_t,   c_t complex from act(W_in x + b)
//   y_t = W_o (norm([Re h_t; Im h_t]) act(W_g x + b)) + b;   block: u + layer(norm u), u + l3(act(l1 v) l2 v)
// Z. Qin, S. Yang, Y. Zhong, Hierarchically gated recurrent neural network for sequence modeling, NeurIPS 2023. Names and conventions of
// the authors' Hgru1d (hgru-pytorch) and of their layers in fairseq-evo.
#include <cmath>

#include "models/parts/lower_bounds.h"
#include "models/parts/parts.h"
#include "recurrence/diagonal/diagonal.h"

namespace reclab::architectures {
namespace {

std::vector<std::string> activations() { return {"silu", "gelu", "relu", "elu", "sigmoid", "exp", "leak", "1+elu", "2+elu", "none"}; }

/// x / (sqrt(mean x^2) + 1e-8), of zero with slope zero.
Var simple_rms(Var x) { return x / (sqrt(mean_keep(square(x), -1) + 1e-36) + 1e-8); }

/// The norm of the layer's two that fairseq-evo calls `name`: its attn_type is that of the first, and of the second where it has no
/// parameters.
Var normed(Layer& l, const std::string& name, Var x) {
  const std::string& kind = l.hyper.choice("norm");
  if (kind == "simple_rms") return simple_rms(x);
  if (kind == "layer" || name != "self_attn_layer_norm") return parts::layer_norm(l, name, x);
  const Var scaled = l.parameter(name + ".scale", {x.dim(-1)}, init::constant(1.0), "Scale of the rms norm; starts at 1.") * simple_rms(x);
  return kind == "rms" ? scaled
                       : scaled * sigmoid(l.parameter(name + ".gate", {x.dim(-1)}, init::constant(1.0),
                                                      "What x is multiplied by inside the σ that multiplies the norm; starts at 1.") *
                                          x);
}

/// The input of the scans.
Var read_by(Layer& l, Var u) {
  return l.hyper.choice("block") == "residual" && l.hyper.flag("prenorm") ? normed(l, "self_attn_layer_norm", u) : u;
}

/// The block from the state [steps, batch, 2 d], all real parts, then all imaginary ones, to its end.
Var read_out(Layer& l, Var u, Var x, Var state) {
  const Hyper& h = l.hyper;
  const std::int64_t d = h.integer("width");
  const bool block = h.choice("block") == "residual", prenorm = h.flag("prenorm"), bias = h.flag("bias");
  const std::string own = "self_attn.hgru.", act = h.choice("activation");
  const Var open =
      l.gate("output",
             parts::activation(act, parts::linear(l, own + "gate", x, 2 * d,
                                                  "W_g of the output gate, rows of all real parts, then of all imaginary ones", bias)),
             0.0, 0.0, "act(W_g x + b): what multiplies the normalised state; unbounded.");
  const Var y = parts::linear(l, own + "out_proj", parts::layer_norm(l, own + "norm", state) * open, d, "W_o", bias);
  if (!block) return y;
  const auto after = [&](const std::string& norm, Var z) { return prenorm ? z : normed(l, norm, z); };
  const Var between = after("self_attn_layer_norm", u + y), v = prenorm ? normed(l, "final_layer_norm", between) : between;
  const std::int64_t F = h.integer("feed_forward") ? h.integer("feed_forward") : std::max<std::int64_t>(1, 8 * d / 3);
  if (!h.flag("glu"))
    return after(
        "final_layer_norm",
        between + parts::linear(l, "fc2", parts::activation(h.choice("glu_activation"), parts::linear(l, "fc1", v, F, "fc1")), d, "fc2"));
  const Var unit = parts::activation(h.choice("glu_activation"), parts::linear(l, "glu.l1", v, F, "l1, whose activation multiplies")) *
                   parts::linear(l, "glu.l2", v, F, "l2");
  return after("final_layer_norm", between + parts::activation(h.choice("final_activation"), parts::linear(l, "glu.l3", unit, d, "l3")));
}

}  // namespace

Architecture hgru() {
  Architecture a;
  a.title = "HGRU";
  a.equations = {"P = softmax over the layers of lower_bounds,  b_l = P_1 + … + P_l in layer l = 0 … L−1",
                 "λ_t = b_l + (1 − b_l) ⊙ σ(W_λ x_t + b_λ)",
                 "h_t = λ_t e^{iθ} ⊙ h_{t-1} + (1 − λ_t) ⊙ c_t, complex;  Re c, Im c in turn from act(W_in x_t + b_in)",
                 "y_t = W_o (norm([Re h_t; Im h_t]) ⊙ act(W_g x_t + b_g)) + b_o",
                 "block: u ← u + layer(norm(u)),  u ← u + l3(act(l1 v) ⊙ l2 v), v = norm(u)"};
  a.notes = {
      "Names and shapes are those of the authors' code: self_attn.hgru.* are Hgru1d's (input_proj, lambda_proj, gate, out_proj, norm, "
      "theta), self_attn_layer_norm, glu.l1 to l3 and final_layer_norm those of a layer of fairseq-evo, "
      "lower_bounds and final/layer_norm those of its decoder; lower_bounds stands under the first layer here.",
      "θ is the same at every step and trained: it starts at 10000^(−2k/d), so that the first channels turn by a radian a step and the "
      "last by almost nothing.",
      "Rows 2k and 2k + 1 of input_proj are the real and the imaginary part of channel k; columns of out_proj and entries of norm are all "
      "real parts, then all imaginary ones.",
      "The lowest layer has the bound 0 whatever lower_bounds holds.",
      "The model in fairseq-evo has no biases in Hgru1d (bias = no); Hgru1d itself has them.",
      "All norms are layer norms with epsilon 1e-5. scans=both adds a second scan from the end to the first, in front of the norm: Hgru1d "
      "with causal=False; scans=both_apart lets each of the two turn by its own angles: BiHgru1d's theta_forward and theta_reverse. "
      "direction=both has weights of its own for each direction.",
      "norm is fairseq-evo's attn_type: rms, gated_rms and simple_rms divide by √(mean x²) + 10⁻⁸, and the second norm of a layer and the "
      "last one are layer norms but for simple_rms. Its scale norm is not here. glu=no is use_glu=False, whose activation_fn is "
      "glu_activation."};
  a.hyper = {
      hyper_integer("width", "d", 64, 1, 4096, "Width of the stream, and complex states.", "channels"),
      hyper_integer("layers", "L", 1, 1, 64, "Blocks in a row, whose bounds rise."),
      hyper_flag("lower_bound", true, "Whether forget gates are bounded below, the more the higher the layer."),
      hyper_flag("bias", true, "Whether the layer's projections have biases."),
      hyper_choice("activation", "silu", activations(), "act of the layer's input and output gate."),
      hyper_integer("feed_forward", "F", 0, 0, 65536, "Hidden width of the gated linear unit; 0: 8/3 of the width, rounded down.", "units"),
      hyper_choice("glu_activation", "silu", activations(), "act of the gated linear unit."),
      hyper_choice("final_activation", "none", activations(), "What the gated linear unit returns goes through this."),
      hyper_flag("prenorm", true, "Whether the norms come before the two parts of a block, or after their residuals."),
      hyper_flag("final_norm", true, "Whether a norm follows the last block, with prenorm."),
      hyper_flag("glu", true, "Whether the feed-forward part is a gated linear unit, or two linear maps with glu_activation between them."),
      hyper_choice("norm", "layer", {"layer", "rms", "gated_rms", "simple_rms"},
                   "The norms of a block: layer norms; in front of the layer an rms norm with a scale, or with a scale and a gate; or rms "
                   "norms without parameters."),
      hyper_choice(
          "scans", "one", {"one", "both", "both_apart"},
          "One scan, from the first step; or the sum of it and of one from the last step, which turns by the same angles or by its own."),
      hyper_choice("block", "residual", {"residual", "none"},
                   "The block with norms, residuals and gated linear unit, or the layer alone.")};
  a.spectrum = "the transition λ_t exp(iθ)";
  a.source = {"Z. Qin, S. Yang, Y. Zhong", "Hierarchically gated recurrent neural network for sequence modeling", "NeurIPS",
              "https://arxiv.org/abs/2311.04823", 2023};
  a.reference = {
      {"layers.{n}.*", "*"}, {"lower_bounds", "lower_bounds"}, {"layer_norm.*", "final/layer_norm.*"}, {"*", "self_attn.hgru.*"}};
  a.input_width = [](const Hyper& h) { return h.integer("width"); };
  a.shares_directions = [](const Hyper& h) { return h.choice("scans") != "one"; };
  a.combine_directions = [](Layer& l, Var u, Var forward, Var backward) { return read_out(l, u, read_by(l, u), forward + backward); };
  a.layer = [](Layer& l, Var u) {
    const Hyper& h = l.hyper;
    const std::int64_t d = h.integer("width"), T = l.steps(), B = l.batch();
    const bool bias = h.flag("bias");
    const std::string own = "self_attn.hgru.", act = h.choice("activation");
    const Var x = read_by(l, u);
    const Var c =
        reshape(parts::activation(act, parts::linear(l, own + "input_proj", x, 2 * d, "W_in, rows Re, Im of each channel in turn", bias)),
                {T, B, d, 2});
    const auto gates = parts::bounded_gate(parts::linear(l, own + "lambda_proj", x, d, "W_λ of the forget gate", bias),
                                           h.flag("lower_bound") ? parts::lower_bound(l, d, 1.0) : Var{});
    const Var forget = l.gate("forget", gates.forget, 0.0, 1.0,
                              "λ: the modulus of what multiplies the state; from the second layer on not below that layer's bound.");
    const std::string apart = h.choice("scans") != "both_apart" ? "" : l.backward() ? "_reverse" : "_forward";
    const Var theta = reshape(l.parameter(own + "theta" + apart, {1, 1, d}, init::each([=](Rng&, std::int64_t k) {
                                            return std::pow(10000.0, -2.0 * static_cast<double>(k) / static_cast<double>(d));
                                          }),
                                          "θ, by how much each channel turns a step; starts at 10000^(−2k/d)."),
                              {d});
    const Var part[] = {reshape(slice(c, -1, 0, 1), {T, B, d}), reshape(slice(c, -1, 1, 2), {T, B, d})};
    const Var state = diagonal(l, {"h", {d}, "The complex state."}, complex(forget * cos(theta), forget * sin(theta)),
                               complex(gates.write * part[0], gates.write * part[1]));
    const Var both[] = {real(state), imag(state)};
    return h.choice("scans") == "one" ? read_out(l, u, x, concat(both, -1)) : concat(both, -1);
  };
  a.final_layer = [](Layer& l, Var x) {
    const Hyper& h = l.hyper;
    return h.choice("block") == "residual" && h.flag("prenorm") && h.flag("final_norm") ? normed(l, "layer_norm", x) : x;
  };
  return a;
}

}  // namespace reclab::architectures
