// SPDX-License-Identifier: GPL-3.0-or-later
//   m_t = max(lf + m_{t-1}, ĩ),   C_t = e^{lf+m_{t-1}-m_t} C_{t-1} + e^{ĩ-m_t} k v^T,   n_t alike with k,   lf = log σ(f̃), or f̃ with
//   forget=exp h_t = C_t^T q / (max(|n_t·q|, e^{-m_t}) + ε);   layer: W_down ((norm(h) + skip c) silu(z)), [x z] = W_up u, c = silu(conv
//   x);   cell=plain: σ(W_o u) h
// M. Beck et al., xLSTM: extended long short-term memory, NeurIPS 2024. Names and conventions of the authors' xlstm package.
#include <cmath>

#include "array/error.h"
#include "models/parts/parts.h"
#include "recurrence/outer/normalised.h"

namespace reclab::architectures {
namespace {

bool is_plain_mlstm(const Hyper& h) { return h.choice("cell") == "plain"; }
std::int64_t inner_width(const Hyper& h) {
  if (is_plain_mlstm(h)) return h.integer("width");
  return h.integer("inner") ? h.integer("inner") : 64 * ((2 * h.integer("width") + 63) / 64);
}

/// Keys, values and queries of the memory, [steps, batch, inner] each, and the gates before their nonlinearities, a number a head.
struct MlstmInputs {
  Var q, k, v, i, f;
};

/// h_t of each head, [steps, batch, heads, entries].
Var mlstm_memory(Layer& l, const MlstmInputs& c) {
  const Hyper& h = l.hyper;
  const std::int64_t heads = h.integer("heads"), D = c.q.dim(-1) / heads, T = l.steps(), B = l.batch();
  const bool exponential = h.choice("forget") == "exp";
  const Var lf = exponential ? c.f : log_sigmoid(c.f);
  const StabilisedGates gates = stabilised(l,
                                           {"m",
                                            {heads},
                                            "The stabiliser: the exponent that C and n are divided by.",
                                            true,
                                            h.choice("stabiliser_start") == "zero" ? 0.0 : -1e30},
                                           lf, c.i);
  const Var write = l.gate("input", gates.write, 0.0, 1.0, "exp(ĩ − m): how strongly this step writes, in units of e^m.");
  l.gate("forget", exp(gates.keep), 0.0, 1.0, "exp(log σ(f̃) + m_{t-1} − m_t): what multiplies the stored memory.");
  const auto by_head = [&](Var z) { return reshape(z, {T, B, heads, D}); };
  const Var each = reshape(write, {T, B, heads, 1}), K = by_head(c.k) * each / std::sqrt(static_cast<double>(D)), Q = by_head(c.q),
            decay = reshape(gates.keep, {T, B, heads, 1}), shown = exponential ? exp_in_range(c.f) : sigmoid(c.f);
  return normalised_outer(l, {"C", {heads, D, D}, "The matrix memory of each head, [key, value], divided by e^m."},
                          {"n", {heads, D}, "The normaliser of each head, divided by e^m."},
                          {.q = Q, .k = K, .v = by_head(c.v), .key_decay = decay, .shown = shown},
                          denominator::size_at_least(reshape(gates.unit(), {T, B, heads, 1}), h.real("eps")));
}

/// The initial biases of the forget gates: from 3 to 6 over the heads.
Init mlstm_forget_bias(std::int64_t heads) {
  const double most = heads > 1 ? 3.0 / static_cast<double>(heads - 1) : 0.0;
  return init::each([=](Rng&, std::int64_t j) { return 3.0 + most * static_cast<double>(j); });
}

/// The cell by itself: all that it takes is a linear map of u.
Var plain_mlstm(Layer& l, Var u) {
  const std::int64_t d = l.hyper.integer("width"), heads = l.hyper.integer("heads");
  const double small = std::sqrt(2.0 / (5.0 * static_cast<double>(d)));
  const Init none = l.hyper.flag("bias") ? init::constant(0.0) : Init{};
  const auto map = [&](const std::string& letter) {
    return parts::linear(l, letter + "_proj", u, d, {init::normal(small), none, "W_" + letter + ", rows by head", "starts N(0, 2/(5d))"});
  };
  const Var q = map("q"), k = map("k"), v = map("v");
  const Var i = parts::linear(l, "igate", u, heads,
                              {init::constant(0.0), init::normal(0.1), "w_i, a row a head", "starts at 0, its bias N(0, 0.1²)"});
  const Var f = parts::linear(
      l, "fgate", u, heads,
      {init::constant(0.0), mlstm_forget_bias(heads), "w_f, a row a head", "starts at 0, its bias from 3 to 6 over the heads"});
  const Var o = l.gate(
      "output",
      sigmoid(parts::linear(l, "ogate", u, d,
                            {init::normal(small), init::constant(0.0), "W_o of the output gate", "starts N(0, 2/(5d)), its bias at 0"})),
      0.0, 1.0, "σ(W_o u + b_o): what multiplies the read.");
  return o * parts::flat(l, mlstm_memory(l, {q, k, v, i, f}));
}

}  // namespace

Architecture mlstm() {
  Architecture a;
  a.title = "mLSTM";
  a.equations = {"[x z] = W_up u_t,  c = silu(conv(x));  q, k from c and v from x by blocks;  ĩ, f̃ from [q k v]",
                 "m_t = max(log σ(f̃) + m_{t-1}, ĩ)",
                 "forget=exp: f̃ itself in place of log σ(f̃), a forget gate e^f̃ without an upper bound",
                 "C_t = e^{log σ(f̃) + m_{t-1} − m_t} C_{t-1} + e^{ĩ − m_t} k vᵀ/√D,  n_t alike with k/√D",
                 "h_t = C_tᵀ q/(max(|n_t·q|, e^{−m_t}) + ε)",
                 "y_t = W_down ((norm(h_t) + skip ⊙ c) ⊙ silu(z)), the norm by head (norm=no: h_t itself);  block: u ← u + y",
                 "cell=plain: q, k, v = W_q u, W_k u, W_v u;  ĩ = w_i·u + b_i, f̃ = w_f·u + b_f a head;  y_t = σ(W_o u + b_o) ⊙ h_t"};
  a.notes = {
      "Names and shapes are those of the xlstm package: xlstm.* and xlstm_norm of a block, final/post_blocks_norm of the stack; weights of "
      "norms are stored as w and applied as 1 + w.",
      "C and n are the memory divided by e^m; spectrum and ds_T/ds_t are those of the memory itself, whose units do not change.",
      "The paper allows σ or exp as the forget gate; the package has σ.",
      "cell=plain is the cell that the paper and surveys write, without what its block has around it: max(|n_t·q|, e^{−m_t}) is then their "
      "max(|n_t·q|, 1) of a memory that is not divided by e^m (a survey prints it without the size), exactly so with eps=0. k is divided "
      "by √D with its bias. Its names are q_proj, k_proj, v_proj, igate, fgate and ogate; inner, qkv_block, conv and norm are of the block "
      "alone.",
      "The gates read k before it is divided by √D; m starts at 0 as in the package's recurrent step. Its forward pass, which takes all "
      "steps at once, has no m before the first: stabiliser_start=none is what that computes, which differs by what ε counts, about 1e-6.",
      "ε (eps) is added after the maximum.",
      "All norms, that by head too, are layer norms without a shift: (x − mean)/√(variance + 10⁻⁵)."};
  a.hyper = {
      hyper_integer("width", "d", 64, 1, 4096, "Width of the stream.", "channels"),
      hyper_integer("heads", "h", 4, 1, 64, "Heads; must divide the inner width."),
      hyper_integer("layers", "L", 1, 1, 64, "Blocks in a row."),
      hyper_choice("cell", "block", {"block", "plain"},
                   "The cell within its block's maps, or by itself, with all gates from u and σ(W_o u) at its output."),
      hyper_integer("inner", "I", 0, 0, 16384, "Inner width; 0: twice the width, up to the next multiple of 64.", "channels"),
      hyper_integer("qkv_block", "", 4, 1, 4096, "Size of the blocks of the projections to q, k and v; must divide the inner width."),
      hyper_integer("conv", "K", 4, 0, 64, "Taps of the causal convolution; 0: none, and c is x itself.", "steps"),
      hyper_flag("bias", false, "Whether the projections have biases."),
      hyper_choice("forget", "sigmoid", {"sigmoid", "exp"}, "What the forget gate is of f̃: σ(f̃), or e^f̃ as the input gate is."),
      hyper_real("eps", "ε", 1e-6, 0.0, 1.0, "Added to the denominator."),
      hyper_flag("norm", true, "Whether the read is normalised by head."),
      hyper_flag("post_norm", true, "Whether a norm follows the last block."),
      hyper_choice("stabiliser_start", "zero", {"zero", "none"},
                   "Where m starts: at 0, as in the package's steps, or below all numbers, as in its forward pass. It tells by ε alone."),
      hyper_choice("block", "residual", {"residual", "none"}, "The block with norm and residual, or the layer alone.")};
  a.spectrum = "the forget gate, σ(f̃) or e^f̃, of each entry of the memory C e^m, then of n e^m";
  a.source = {"M. Beck, K. Pöppel, M. Spanring, A. Auer, O. Prudnikova, M. Kopp, G. Klambauer, J. Brandstetter, S. Hochreiter",
              "xLSTM: extended long short-term memory", "NeurIPS", "https://arxiv.org/abs/2405.04517", 2024};
  a.reference = {{"blocks.{n}.*", "*"}, {"post_blocks_norm.*", "final/post_blocks_norm.*"}};
  a.input_width = [](const Hyper& h) { return h.integer("width"); };
  a.check = [](const Hyper& h) {
    for (const char* key : {"heads", "qkv_block"})
      if ((key == std::string("heads") || !is_plain_mlstm(h)) && inner_width(h) % h.integer(key))
        throw Error("mlstm: " + std::string(key) + " = " + h.text(key) + " does not divide the inner width " +
                        std::to_string(inner_width(h)) + ": choose a divisor, or another inner.",
                    {.model = "mlstm", .parameter = key, .value = h.text(key), .range = "a divisor of the inner width"});
  };

  a.layer = [](Layer& l, Var u) {
    const Hyper& h = l.hyper;
    const std::int64_t d = h.integer("width"), heads = h.integer("heads"), I = inner_width(h), block_size = h.integer("qkv_block");
    const bool block = h.choice("block") == "residual", bias = h.flag("bias");
    const double small = std::sqrt(2.0 / (5.0 * static_cast<double>(d))), width = static_cast<double>(d);
    const Init none = bias ? init::constant(0.0) : Init{};
    const Var x_in = block ? parts::normalised(u, 1e-5) * parts::one_plus(l, "xlstm_norm.weight", d) : u;
    if (is_plain_mlstm(h)) return block ? u + plain_mlstm(l, x_in) : plain_mlstm(l, x_in);
    const auto both = reclab::split(
        parts::linear(l, "xlstm.proj_up", x_in, 2 * I, {init::normal(small), none, "W_up: rows of x, then of z", "starts N(0, 2/(5d))"}),
        -1, 2);
    const Var c = h.integer("conv") ? silu(parts::short_convolution(l, "xlstm.conv1d.conv", "conv", both[0], h.integer("conv"))) : both[0];
    const auto blocks = [&](const std::string& letter, Var z) {
      const std::int64_t n = I / block_size;
      const Var W = l.parameter("xlstm." + letter + "_proj.weight", {n, block_size, block_size}, init::normal(small),
                                "W_" + letter + " by blocks [block, out, in]; starts N(0, 2/(5d)).");
      Var y = parts::by_block(l, z, W, true);
      if (bias) y = y + l.parameter("xlstm." + letter + "_proj.bias", {I}, init::constant(0.0), "Its bias; starts at 0.");
      return y;
    };
    const Var q = blocks("q", c), k = blocks("k", c), v = blocks("v", both[0]);
    const Var all[] = {q, k, v};
    const Var qkv = concat(all, -1);
    const Var i = parts::linear(l, "xlstm.mlstm_cell.igate", qkv, heads,
                                {init::constant(0.0), init::normal(0.1), "W_i, columns q, k, v", "starts at 0, its bias N(0, 0.1²)"});
    const Var f = parts::linear(
        l, "xlstm.mlstm_cell.fgate", qkv, heads,
        {init::constant(0.0), mlstm_forget_bias(heads), "W_f, columns q, k, v", "starts at 0, its bias from 3 to 6 over the heads"});
    const Var hidden = mlstm_memory(l, {q, k, v, i, f});
    const Var normed = h.flag("norm")
                           ? parts::flat(l, parts::normalised(hidden, 1e-5)) * parts::one_plus(l, "xlstm.mlstm_cell.outnorm.weight", I)
                           : parts::flat(l, hidden);
    const Var skip =
        l.parameter("xlstm.learnable_skip", {I}, init::constant(1.0), "What of the convolution's output is added; starts at 1.");
    const Var open = l.gate("output", silu(both[1]), 0.0, 0.0, "silu(z): what multiplies the output; unbounded above.");
    const double last = 2.0 / (static_cast<double>(h.integer("layers")) * std::sqrt(width));
    const Var y =
        parts::linear(l, "xlstm.proj_down", (normed + skip * c) * open, d, {init::normal(last), none, "W_down", "starts N(0, (2/(L√d))²)"});
    return block ? u + y : y;
  };
  a.final_layer = [](Layer& l, Var x) {
    if (l.hyper.choice("block") == "none" || !l.hyper.flag("post_norm")) return x;
    return parts::normalised(x, 1e-5) * parts::one_plus(l, "post_blocks_norm.weight", x.dim(-1));
  };
  return a;
}

}  // namespace reclab::architectures
