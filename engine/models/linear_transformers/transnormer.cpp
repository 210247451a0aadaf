// SPDX-License-Identifier: GPL-3.0-or-later
//   S_t = S_{t-1} + φ(k_t) v_t^T,   o_t = W_o norm(S_t^T φ(q_t)), the norm over all heads, in place of a denominator
//   the first layers instead: attention within blocks of c steps, softmax, or relu with that norm
// Z. Qin et al., The devil in linear transformer, EMNLP 2022. Names and conventions of the authors' fairseq-evo (norm_linear_attention.py,
// norm_local_attention.py, norm_attention_layer.py).
#include <cmath>

#include "array/error.h"
#include "models/parts/fairseq.h"
#include "models/parts/features.h"
#include "models/parts/parts.h"
#include "recurrence/attention/attention.h"
#include "recurrence/outer/outer.h"

namespace reclab::architectures {
namespace {

/// The code's norms for the input of attention, over the whole width: x/(|x| d^{-1/2} + ε) but for the layer norm.
Var read_norm(Layer& l, const std::string& name, const std::string& type, Var x) {
  if (type == "layer") return parts::layer_norm(l, name, x);
  const std::int64_t d = x.dim(-1);
  const Var unit = x / (parts::length(x) / std::sqrt(static_cast<double>(d)) + l.hyper.real("norm_eps"));
  if (type == "srms") return unit;
  const Var scaled = unit * l.parameter(name + ".scale", {d}, init::constant(1.0), "Scale of the rms norm; starts at 1.");
  return type == "rms" ? scaled
                       : scaled * sigmoid(x * l.parameter(name + ".gate", {d}, init::constant(1.0),
                                                          "What x is multiplied by in the gate of the norm; starts at 1."));
}

/// Attention within blocks of c steps: each reads its block's steps so far.
Var within_blocks(Layer& l, Var q, Var k, Var v, std::int64_t c, bool softmax) {
  const std::int64_t T = l.steps(), B = l.batch(), heads = k.dim(2), D = k.dim(3);
  const Var keys = l.history({"k", {heads, D}, "The key that each step leaves for the rest of its block."}, k, c - 1);
  const Var values = l.history({"v", {heads, v.dim(3)}, "The value that each step leaves likewise."}, v, c - 1);
  const Var in_block =
      l.position() - floor(l.position() / static_cast<double>(c)) * static_cast<double>(c);  // steps of the block before this one
  if (softmax) {
    std::vector<double> own;
    for (std::int64_t i = 0; i < T; ++i) own.push_back(static_cast<double>(c - 1 + i));
    SoftmaxAttention a;
    a.q = heads_first(q);
    a.k = heads_first(keys);
    a.v = heads_first(values);
    a.window = c;
    a.low = l.graph().constant({T}, own) - reshape(slice(in_block, 1, 0, 1), {T});
    return heads_last(attention(l, a), B, heads);
  }
  Var read;
  for (std::int64_t lag = 0; lag < c; ++lag) {
    const Var score = mean_keep(q * slice(keys, 0, c - 1 - lag, c - 1 - lag + T), -1) * static_cast<double>(D);
    const Var seen = reshape(1.0 - relu(sign(static_cast<double>(lag) - in_block)), {T, B, 1, 1});
    const Var one = relu(score) * seen * slice(values, 0, c - 1 - lag, c - 1 - lag + T);
    read = lag ? read + one : one;
  }
  return read;
}

}  // namespace

Architecture transnormer() {
  Architecture a;
  a.title = "TransNormer";
  a.equations = {
      "NormAttention, in layers local_layers, local_layers + 1, …: S_t = S_{t-1} + φ(k_t) v_tᵀ,  y_t = W_o norm(S_tᵀ φ(q_t)), the norm "
      "over the width, all heads together",
      "DiagAttention, in layers 0 … local_layers − 1: blocks of c steps; p_{ts} = relu(q_t·k_s/√D), s from the start of the block to t,  "
      "y_t = W_o norm(Σ_s p_{ts} v_s)",
      "local_attention=softmax: p_{ts} = softmax over s of q_t·k_s/√D,  y_t = W_o Σ_s p_{ts} v_s",
      "norm: layer;  rms: w ⊙ x/(|x| d^(−½) + ε);  srms: without w;  gated-rms: w ⊙ x/(|x| d^(−½) + ε) ⊙ σ(g ⊙ x)",
      "block: u ← u + y(norm(u)),  u ← u + fc2(f(fc1(norm(u)))) or with glu u + l3(act(l1 v) ⊙ l2 v), v = norm(u), or with the norms after "
      "the residuals"};
  a.notes = {
      "Names and shapes are those of fairseq-evo's NormLinearAttention and NormLocalAttention within its decoder layer: "
      "self_attn.{q,k,v,out}_proj, self_attn.layer_norm of NormAttention and self_attn.gated_rms_norm of a DiagAttention with relu, "
      "whatever the norm's type is, self_attn_layer_norm, fc1, fc2 or glu.l1 to l3, final_layer_norm, and final/layer_norm of the decoder. "
      "Heads are the slow part of rows.",
      "The paper's T1 has relu within blocks, T2 softmax, both in the lower half of the layers and 1 + elu above.",
      "Only DiagAttention has the factor 1/√D; the norm takes any other out. In its last block's rest the code reads zeros that it has "
      "padded with, which come later and are not seen.",
      "There is no denominator, and S only grows: the norm brings the read into range, and with it the gradient, which a denominator does "
      "not bound.",
      "The code's options of positions within attention (LRPE, see lrpe), of weights by a Laplacian or a Gaussian, and of a Toeplitz "
      "matrix beside it are not offered.",
      "The survey of Tiezzi et al. 2024 writes the attention without a feature map: feature_map=identity.",
      "A layer of DiagAttention holds keys and values of its block, which have no transition."};
  a.hyper = {hyper_integer("width", "d", 64, 1, 4096, "Width of the stream.", "channels"),
             hyper_integer("heads", "h", 4, 1, 64, "Heads; must divide the width."),
             hyper_integer("layers", "L", 1, 1, 64, "Layers in a row."),
             hyper_integer("local_layers", "", 0, 0, 64, "How many of them, from the first on, attend within blocks.", "layers"),
             hyper_integer("chunk", "c", 32, 1, 1024, "Steps of a block.", "steps"),
             hyper_choice("local_attention", "relu", {"relu", "softmax"}, "What is within blocks."),
             hyper_choice("feature_map", "elu+1", {"elu+1", "relu", "silu", "identity"}, "φ."),
             hyper_choice("norm", "layer", {"layer", "rms", "srms", "gated-rms"}, "The norm of NormAttention."),
             hyper_choice("local_norm", "gated-rms", {"layer", "rms", "srms", "gated-rms"}, "The norm of DiagAttention with relu."),
             hyper_real("norm_eps", "ε", 1e-8, 1e-12, 1.0, "ε of these norms but for the layer norm, which has 1e-5.", true),
             hyper_choice("block_norm", "layer", {"layer", "srms"}, "The norms of the block."),
             hyper_flag("glu", false, "Whether the feed-forward part is a gated linear unit."),
             hyper_choice("glu_activation", "silu", {"silu", "identity", "relu", "gelu"}, "act of the gated linear unit.")};
  parts::add_fairseq_rows(a.hyper);
  a.spectrum = "the transition of the memory: the identity (none of a layer that attends within blocks)";
  a.source = {"Z. Qin, X. Han, W. Sun, D. Li, L. Kong, N. Barnes, Y. Zhong", "The devil in linear transformer", "EMNLP",
              "https://arxiv.org/abs/2210.10340", 2022};
  a.reference = parts::fairseq_names(false);
  // Later versions of the code call both norms so; softmax has a norm there that it does not use.
  a.reference.push_back({"layers.{n}.self_attn.norm.*", "self_attn.gated_rms_norm.*"});
  for (const char* norm : {"norm", "gated_rms_norm"})
    for (const char* entry : {"weight", "bias", "scale", "gate"})
      a.reference.push_back({"self_attn." + std::string(norm) + "." + entry, ""});
  a.input_width = [](const Hyper& h) { return h.integer("width"); };
  a.check = [](const Hyper& h) { parts::heads_divide_width(h, "transnormer"); };

  a.layer = [](Layer& l, Var u) {
    const Hyper& h = l.hyper;
    const std::int64_t d = h.integer("width"), heads = h.integer("heads"), D = d / heads;
    const bool local = l.index() < h.integer("local_layers"), softmax = h.choice("local_attention") == "softmax";
    return parts::fairseq_layer(l, u, [&](Var x) {
      const double gain = local ? 1.0 : 1.0 / std::sqrt(2.0);
      const std::string starts =
          local ? "starts Xavier uniform, its bias uniform in ±1/√d" : "starts Xavier uniform with gain 1/√2, its bias uniform in ±1/√d";
      const auto project = [&](const std::string& which, const std::string& role) {
        return parts::by_head(l,
                              parts::linear(l, "self_attn." + which + "_proj", x, d,
                                            {parts::xavier_uniform(d, d, gain), parts::torch_uniform(d), role + ", rows by head", starts}),
                              heads);
      };
      const Var q = project("q", "W_q"), k = project("k", "W_k"), v = project("v", "W_v");
      Var o;
      if (local) {
        o = parts::flat(l, within_blocks(l, q / std::sqrt(static_cast<double>(D)), k, v, h.integer("chunk"), softmax));
        if (!softmax) o = read_norm(l, "self_attn.gated_rms_norm", h.choice("local_norm"), o);
      } else {
        const auto features = [&](Var y) { return parts::entrywise(h.choice("feature_map"), y); };
        o = outer(l, {"S", {heads, D, D}, "The sum of φ(k) vᵀ of each head, [key, value]."}, {features(q), features(k), v});
        o = read_norm(l, "self_attn.layer_norm", h.choice("norm"), parts::flat(l, o));
      }
      return parts::linear(
          l, "self_attn.out_proj", o, d,
          {parts::xavier_uniform(d, d), init::constant(0.0), "W_o, columns by head", "starts Xavier uniform, its bias at 0"});
    });
  };
  a.final_layer = parts::fairseq_finish;
  return a;
}

}  // namespace reclab::architectures
