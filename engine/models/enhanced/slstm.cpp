// SPDX-License-Identifier: GPL-3.0-or-later
//   [ĩ f̃ z̃ õ] = W x + R y_{t-1} + b by head,   m_t = max(ĩ, log σ(f̃) + m_{t-1}) (ĩ in the first step)
//   forget=exp: f̃ in place of log σ(f̃)
//   c_t = f c + i tanh z̃,  n_t = f n + i,  y_t = σ(õ) c_t/n_t,   i = min(e^{ĩ-m_t}, 1),  f = min(e^{log σ(f̃)+m_{t-1}-m_t}, 1)
// M. Beck et al., xLSTM: extended long short-term memory, NeurIPS 2024. Names and conventions of the authors' xlstm package (vanilla cell).
#include <cmath>

#include "array/error.h"
#include "models/parts/parts.h"
#include "recurrence/step/step.h"

namespace reclab::architectures {

Architecture slstm() {
  Architecture a;
  a.title = "sLSTM";
  a.equations = {"x_c = silu(conv(x_t));  ĩ, f̃ from x_c and z̃, õ from x_t, each + R y_{t-1} + b, by head",
                 "m_t = max(ĩ, log σ(f̃) + m_{t-1}), in the first step m_t = ĩ",
                 "i = min(e^{ĩ−m_t}, 1),  f = min(e^{log σ(f̃)+m_{t-1}−m_t}, 1)",
                 "forget=exp: f̃ itself in place of log σ(f̃), a forget gate e^f̃ without an upper bound",
                 "c_t = f ⊙ c_{t-1} + i ⊙ tanh(z̃),  n_t = f ⊙ n_{t-1} + i,  y_t = σ(õ) ⊙ c_t/n_t",
                 "layer: norm(y_t) by head (norm=no: y_t itself);  block: u ← u + layer(norm u),  u ← u + W_down (gelu(g) ⊙ w), [g w] = "
                 "W_up norm(u), with ffn_bias + b each"};
  a.notes = {
      "Names and shapes are those of the xlstm package: xlstm.*, xlstm_norm, ffn_norm and ffn.* of a block, final/post_blocks_norm; "
      "weights of norms are stored as w and applied as 1 + w.",
      "As in the package, the weights called fgate feed the input gate and those called igate the forget gate, so that trained weights "
      "load.",
      "_recurrent_kernel_ has rows i, f, z, o of its head; _bias_ is ordered by gate i, f, z, o, then head, then unit.",
      "c and n are divided by e^m; all four states start at 0.",
      "The paper allows σ or exp as the forget gate; the package has σ. Where e^f̃ stays above 1, c and n themselves grow without bound; "
      "c/n does not.",
      "All norms, that by head too, are layer norms without a shift: (x − mean)/√(variance + 10⁻⁵)."};
  a.hyper = {
      hyper_integer("width", "H", 64, 1, 4096, "Cells.", "units"),
      hyper_integer("heads", "h", 4, 1, 64, "Heads: blocks of the recurrent matrix; must divide the width."),
      hyper_integer("layers", "L", 1, 1, 64, "Blocks in a row."),
      hyper_integer("conv", "K", 4, 0, 64, "Taps of the causal convolution; 0: none.", "steps"),
      hyper_choice("forget", "sigmoid", {"sigmoid", "exp"}, "What the forget gate is of f̃: σ(f̃), or e^f̃ as the input gate is."),
      hyper_flag("norm", true, "Whether what is read out is normalised by head."),
      hyper_flag("norm_weight", true, "Whether the norm by head has a weight."),
      hyper_flag("ffn", true, "Whether the block has a feed-forward part."),
      hyper_integer("feed_forward", "F", 0, 0, 65536, "Its hidden width; 0: 1.3 times the width, up to the next multiple of 64.", "units"),
      hyper_choice("activation", "gelu", {"gelu", "relu", "relu^2", "swish", "sigmoid", "selu"}, "Activation of the feed-forward part."),
      hyper_flag("ffn_bias", false, "Whether the matrices of the feed-forward part have biases."),
      hyper_flag("post_norm", true, "Whether a norm follows the last block."),
      initialisation_only(
          hyper_choice("bias_init", "powerlaw_blockdependent", {"powerlaw_blockdependent", "small_init", "standard", "zeros"},
                       "How b starts: the forget gate's from 5 to −7 over the units of a head, bent by the block's number, or from "
                       "3 to 6, the others at 0; all uniform in ±1/√H; or all at 0.")),
      initialisation_only(hyper_choice("recurrent_init", "zeros", {"zeros", "standard"}, "How R starts: at 0, or uniform in ±1/√H.")),
      hyper_choice("block", "residual", {"residual", "none"}, "The block with norms, residuals and feed-forward, or the layer alone.")};
  a.spectrum = "eigenvalues of the recurrent Jacobian ∂(y, c, n, m)_t/∂(y, c, n, m)_{t-1}";
  a.source = {"M. Beck, K. Pöppel, M. Spanring, A. Auer, O. Prudnikova, M. Kopp, G. Klambauer, J. Brandstetter, S. Hochreiter",
              "xLSTM: extended long short-term memory", "NeurIPS", "https://arxiv.org/abs/2405.04517", 2024};
  a.reference = {{"blocks.{n}.*", "*"}, {"post_blocks_norm.*", "final/post_blocks_norm.*"}};
  a.input_width = [](const Hyper& h) { return h.integer("width"); };
  a.check = [](const Hyper& h) {
    if (h.integer("width") % h.integer("heads"))
      throw Error("slstm: heads = " + h.text("heads") + " does not divide width = " + h.text("width") + ": choose a divisor.",
                  {.model = "slstm", .parameter = "heads", .value = h.text("heads"), .range = "a divisor of width"});
  };

  a.layer = [](Layer& l, Var u) {
    const Hyper& h = l.hyper;
    const std::int64_t H = h.integer("width"), heads = h.integer("heads"), D = H / heads, T = l.steps(), B = l.batch(),
                       L = h.integer("layers");
    const double small = std::sqrt(2.0 / (5.0 * static_cast<double>(H))), depth = static_cast<double>(L);
    const bool block = h.choice("block") == "residual", exponential = h.choice("forget") == "exp";
    const Var x = block ? parts::normalised(u, 1e-5) * parts::one_plus(l, "xlstm_norm.weight", H) : u;
    const Var xc = h.integer("conv") ? silu(parts::short_convolution(l, "xlstm.conv1d.conv", "conv", x, h.integer("conv"))) : x;
    const auto by_head = [&](const std::string& name, Var z, const std::string& role) {
      const Var W =
          l.parameter("xlstm." + name + ".weight", {heads, D, D}, init::normal(small), role + ", [head, out, in]; starts N(0, 2/(5H)).");
      return parts::by_block(l, z, W, true);
    };
    const Var i = by_head("fgate", xc, "W of the input gate"), f = by_head("igate", xc, "W of the forget gate"),
              z = by_head("zgate", x, "W of the candidate"), o = by_head("ogate", x, "W of the output gate");
    const Var R = l.parameter("xlstm.slstm_cell._recurrent_kernel_", {heads, 4 * D, D},
                              h.choice("recurrent_init") == "zeros" ? init::constant(0.0) : parts::torch_uniform(H),
                              "R of each head: rows i, f, z, o (D each), columns the head's y; starts at 0 (or uniform in ±1/√H).");
    const double exponent = 0.3 + (L > 1 ? 1.3 * static_cast<double>(l.index()) / static_cast<double>(L - 1) : 0.0);
    const std::string bias_init = h.choice("bias_init");
    const Init start = bias_init == "standard" ? parts::torch_uniform(H) : init::each([=](Rng&, std::int64_t at) {
      if (at / H != 1 || bias_init == "zeros") return 0.0;
      const double unit = D > 1 ? static_cast<double>(at % D) / static_cast<double>(D - 1) : 0.0;
      if (bias_init == "small_init") return 3.0 + 3.0 * unit;
      return D > 1 ? 5.0 - 12.0 * std::pow(unit, exponent) : 5.0;
    });
    const Var bias = l.parameter("xlstm.slstm_cell._bias_", {4 * H}, start,
                                 "b by gate i, f, z, o, then head, then unit; starts at 0, the forget gate's from 5 to −7 over the units "
                                 "of a head (or as bias_init says).");
    const auto states = step(
        l,
        {{"y", {H}, "What is read out and fed back."},
         {"c", {H}, "The cell, divided by e^m."},
         {"n", {H}, "The normaliser, divided by e^m."},
         {"m", {H}, "The stabiliser: the exponent that c and n are divided by."}},
        {i, f, z, o}, [=](Cell& cell, std::span<const Var> t, std::span<const Var> s) {
          const std::int64_t rows = s[0].dim(0);
          const int heads_first[] = {1, 0, 2}, heads_last[] = {1, 0, 2};
          const Var fed =
              permute(matmul_transposed(permute(reshape(s[0], {rows, heads, D}), heads_first), R), heads_last);  // [rows, heads, 4 D]
          const auto raw = [&](std::int64_t gate) {
            return t[static_cast<std::size_t>(gate)] + reshape(slice(fed, -1, gate * D, (gate + 1) * D), {rows, H}) +
                   slice(bias, 0, gate * H, (gate + 1) * H);
          };
          const Var in = raw(0), lf = exponential ? raw(1) : log_sigmoid(raw(1)), standing = lf + s[3];
          // Before anything has been written there is nothing to keep, and m is the input gate's exponent alone.
          const Var written = sign(s[2]);
          const Var m = written * maximum(in, standing) + (1.0 - written) * in;
          const Var write = cell.gate("input", exp(minimum(in - m, 0.0)), 0.0, 1.0, "i: how strongly this step writes, in units of e^m.");
          const Var keep = cell.gate("forget", exp(minimum(standing - m, 0.0)), 0.0, 1.0, "f: what multiplies the stored cell.");
          const Var open = cell.gate("output", sigmoid(raw(3)), 0.0, 1.0, "σ(õ): how much of the cell is shown.");
          const Var c = keep * s[1] + write * tanh(raw(2)), n = keep * s[2] + write;
          return std::vector<Var>{open * c / n, c, n, m};
        });
    Var y = h.flag("norm") ? parts::flat(l, parts::normalised(reshape(states[0], {T, B, heads, D}), 1e-5)) : states[0];
    if (h.flag("norm") && h.flag("norm_weight")) y = y * parts::one_plus(l, "xlstm.group_norm.weight", H);
    if (!block) return y;
    const Var after = u + y;
    if (!h.flag("ffn")) return after;
    const std::int64_t F = h.integer("feed_forward") ? h.integer("feed_forward")
                                                     : 64 * static_cast<std::int64_t>(std::ceil(1.3 * static_cast<double>(H) / 64.0));
    const Init shift = h.flag("ffn_bias") ? init::constant(0.0) : Init{};
    const Var normed = parts::normalised(after, 1e-5) * parts::one_plus(l, "ffn_norm.weight", H);
    const auto both = reclab::split(
        parts::linear(l, "ffn.proj_up", normed, 2 * F,
                      {init::normal(small), shift, "W_up: rows of the activated part, then of the other", "starts N(0, 2/(5H))"}),
        -1, 2);
    const Var active = parts::activation(h.choice("activation"), both[0]);
    return after +
           parts::linear(l, "ffn.proj_down", active * both[1], H,
                         {init::normal(2.0 / (depth * std::sqrt(static_cast<double>(H)))), shift, "W_down", "starts N(0, (2/(L√H))²)"});
  };
  a.final_layer = [](Layer& l, Var x) {
    if (l.hyper.choice("block") == "none" || !l.hyper.flag("post_norm")) return x;
    return parts::normalised(x, 1e-5) * parts::one_plus(l, "post_blocks_norm.weight", x.dim(-1));
  };
  return a;
}

}  // namespace reclab::architectures
