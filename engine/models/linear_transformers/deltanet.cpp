// SPDX-License-Identifier: GPL-3.0-or-later
//   [q k v b] = W x,   q, k ← φ/Σφ,   S_t = S_{t-1} + k_t (σ(b_t) (v_t - S_{t-1}^T k_t))^T,   o_t = S_t^T q_t/√D
//   block: x ← norm(x + W_o o), x ← norm(x + W₂ relu(W₁ x))
// I. Schlag, K. Irie, J. Schmidhuber, Linear transformers are secretly fast weight programmers, ICML 2021. Names and conventions of the
// authors' lmtool-fwp, or of flash-linear-attention: S. Yang et al., Parallelizing linear transformers with the delta rule over sequence
// length, NeurIPS 2024.
#include <cmath>

#include "array/error.h"
#include "models/linear_transformers/fast_weights.h"
#include "models/parts/layers/hybrid_attention.h"
#include "recurrence/delta/delta.h"
#include "recurrence/diagonal/diagonal.h"

namespace reclab::architectures {
namespace {

bool of_fla(const Hyper& h) { return h.choice("code") == "flash-linear-attention" || h.flag("attn"); }
std::int64_t share_of(const Hyper& h, const char* expand) {
  return static_cast<std::int64_t>(static_cast<double>(h.integer("width")) * h.real(expand));
}

Var fla_project(Layer& l, const std::string& name, Var x, std::int64_t out, const std::string& role) {
  return parts::linear(l, name, x, out, {init::normal(l.hyper.real("init_std")), {}, role, "starts N(0, init_std²)"});
}

/// The DeltaNet of flash-linear-attention.
Var fla_mixer(Layer& l, Var x) {
  const Hyper& h = l.hyper;
  const std::int64_t d = h.integer("width"), heads = h.integer("heads"), K = share_of(h, "expand_k"), V = share_of(h, "expand_v"),
                     dk = K / heads, dv = V / heads;
  const double eps = h.real("norm_eps");
  const std::string& act = h.choice("qk_activation");
  const auto convolved = [&](const std::string& letter, Var z) {
    const std::int64_t taps = h.integer("conv");
    if (!taps) return z;
    const std::string name = "attn." + letter + "_conv1d";
    const Var W = l.parameter(name + ".weight", {z.dim(-1), 1, taps}, init::normal(h.real("init_std")),
                              "Taps of each channel, oldest first; start N(0, init_std²).");
    const Var y =
        depthwise(l.history("conv_" + letter, z, taps - 1, "The convolution's last inputs, oldest first."), reshape(W, {z.dim(-1), taps}));
    return h.flag("conv_bias") ? y + l.parameter(name + ".bias", {z.dim(-1)}, init::constant(0.0), "Its bias; starts at 0.") : y;
  };
  const auto features = [&](Var z) {
    z = parts::by_head(l, act == "silu" ? silu(z) : act == "relu" ? relu(z) : act == "elu" ? elu(z) + 1.0 : z, heads);
    if (h.choice("qk_norm") == "sum") return z / (mean_keep(z, -1) * static_cast<double>(dk) + h.real("sum_eps"));
    return parts::unit_rms(z, 1e-6 / static_cast<double>(dk)) / std::sqrt(static_cast<double>(dk));  // z/√(|z|² + 10⁻⁶)
  };
  const Var q = features(convolved("q", fla_project(l, "attn.q_proj", x, K, "W_q, rows by head"))),
            k = features(convolved("k", fla_project(l, "attn.k_proj", x, K, "W_k, rows by head")));
  const Var v = parts::by_head(l, silu(convolved("v", fla_project(l, "attn.v_proj", x, V, "W_v, rows by head"))), heads);
  const double most = h.flag("negative_eigenvalues") ? 2.0 : 1.0;
  const Shape one{l.steps(), l.batch(), heads, 1};
  Var beta;
  if (h.flag("use_beta")) {
    beta = reshape(sigmoid(fla_project(l, "attn.b_proj", x, heads, "W_β, a row a head")) * most, one);
    l.gate("beta", beta, 0.0, most, "β: which share of what the key recalls is replaced.");
  } else if (most != 1.0) {
    beta = l.graph().constant(one, std::vector<double>(static_cast<std::size_t>(count(one)), most));
  }
  const Var read = delta(l, {"S", {heads, dk, dv}, "The fast weights of each head, [key, value]."},
                         {q / std::sqrt(static_cast<double>(dk)), k, v, beta});
  Var o = parts::flat(l, reclab::rms_norm(read,
                                          l.parameter("attn.o_norm.weight", {dv}, init::constant(1.0),
                                                      "Scale of the norm by head, the same for all heads; starts at 1."),
                                          eps));
  if (h.flag("output_gate"))
    o = o * l.gate("output", silu(fla_project(l, "attn.g_proj", x, V, "W_g of the output gate, rows by head")), 0.0, 0.0,
                   "silu(W_g x): what multiplies the output; unbounded above.");
  return fla_project(l, "attn.o_proj", o, d, "W_o");
}

/// Its DeltaNetBlock.
Var fla_block(Layer& l, Var u) {
  const Hyper& h = l.hyper;
  const std::int64_t d = h.integer("width");
  const double eps = h.real("norm_eps");
  const bool block = h.choice("block") == "residual";
  const Var x = block ? parts::rms_norm(l, "attn_norm", u, eps) : u;
  const Var y = parts::has_attention(l) ? parts::hybrid_attention(l, "attn.", x, h.real("init_std")) : fla_mixer(l, x);
  if (!block) return y;
  const Var after = u + y, z = parts::rms_norm(l, "mlp_norm", after, eps);
  const std::int64_t F = h.integer("feed_forward") ? h.integer("feed_forward") : 256 * ((d * 8 / 3 + 255) / 256);
  const Var open = silu(fla_project(l, "mlp.gate_proj", z, F, "W_gate of the feed-forward part"));
  return after + fla_project(l, "mlp.down_proj", open * fla_project(l, "mlp.up_proj", z, F, "W_up of the feed-forward part"), d,
                             "W_down of the feed-forward part");
}

}  // namespace

Architecture deltanet() {
  Architecture a;
  a.title = "DeltaNet";
  a.equations = {
      "[q k v b] = W x_t,  β = σ(b), or 2σ(b) with negative_eigenvalues",
      "φ(z) = concat over j = 1..ν of r ⊙ roll(r, j), r = [relu(z); relu(−z)], roll(r, j)_i = r_{(i−j) mod 2D};  q, k ← φ/(Σφ + ε)",
      "S_t = S_{t-1} + k_t (β (v_t − S_{t-1}ᵀ k_t))ᵀ,  o_t = S_tᵀ q_t/√D",
      "attention_normaliser=output: z_t = z_{t-1} + k_t,  o_t = S_tᵀ q_t/((z_t·q_t + 10⁻⁵) √D)",
      "attention_normaliser=both: also β ← β n, k ← k/(n + 10⁻⁵) in S_t,  n = z_{t-1}·k_t (1 in the first step)",
      "update=sum: [q k v] = W x_t,  S_t = S_{t-1} + k_t v_tᵀ",
      "block: x ← norm(x + W_o o_t),  x ← norm(x + W₂ relu(W₁ x + b₁) + b₂)",
      "code=flash-linear-attention: q, k = φ(conv(W_q x)), φ(conv(W_k x)), each /√(|·|² + 10⁻⁶) or /Σ, v = silu(conv(W_v x)), β = σ(W_β "
      "x);  y = W_o (norm(o_t) ⊙ silu(W_g x)), norm by head, gate where output_gate",
      "its block: x ← x + y(rms x),  x ← x + W_down(silu(W_gate z) ⊙ W_up z), z = rms(x)"};
  a.notes = {
      "Names and shapes are those of lmtool-fwp: dec_attn.{qkvb_net,o_net,layer_norm} and pos_ff.{CoreNet.0,CoreNet.3,layer_norm}; rows of "
      "qkvb_net are q, k, v, β of the first head, then of the next.",
      "What the key recalls is replaced by the value, by the share β, before the memory is read.",
      "The attention normaliser is that of lmtool-fwp without skip_attn_normalization: output divides what is read for the query, both "
      "also what is recalled for the key. Spectrum and ds_T/ds_t are those of S, with z held.",
      "With negative_eigenvalues β is twice the sigmoid, as flash-linear-attention's allow_neg_eigval, so that 1 − β|k|² may be negative.",
      "sum_eps is 0 in the paper's code, where an all-zero input is 0/0 under DPFP; 1e-5 as in recurrent-fwp.",
      "All norms are layer norms with epsilon 1e-5.",
      "update=sum is the fast weight programmer that only adds, lmtool-fwp's CudaFastWeightSum layers: qkv_net has no rows of β. There "
      "attention_normaliser is output, normalise none.",
      "With prenorm the residual is the input itself, as in recurrent-fwp; with normalised_residual it is the normalised input, as in "
      "lmtool-fwp.",
      "Weights of recurrent-fwp's models of algorithmic tasks are read too: layers.{2n} with slow_net, out_linear and layer_norm, "
      "layers.{2n+1} with ff_layers and layer_norm. They have prenorm, elu and no output_scale.",
      "code=flash-linear-attention is DeltaNet and DeltaNetBlock of that code, with its names attn.*, attn_norm, mlp_norm, mlp.* and "
      "final/norm. It reads width, heads, negative_eigenvalues, sum_eps (0 there), feed_forward (0: 8/3 of the width, up to the next "
      "multiple of 256), init_std, block and the rows from expand_k on; the other code reads none of these last.",
      "There φ is applied after the convolution, elu is elu + 1, and use_beta=no is β = 1, or 2 with negative_eigenvalues. Its residual "
      "mixing over depth is not here."};
  a.hyper = {
      hyper_integer("width", "d", 64, 1, 4096, "Width of the stream.", "channels"),
      hyper_integer("heads", "h", 4, 1, 64, "Heads."),
      hyper_integer("head_dim", "D", 0, 0, 4096, "Size of a head's queries, keys and values; 0: width/heads.", "channels"),
      hyper_integer("layers", "L", 1, 1, 64, "Layers in a row."),
      hyper_choice("update", "delta", {"delta", "sum"}, "What is written: what is missing of the value, or the value itself."),
      hyper_choice("feature_map", "dpfp", {"dpfp", "elu", "none"}, "φ: DPFP, elu + 1, or none."),
      hyper_integer("nu", "ν", 2, 1, 8, "Rolls of DPFP: keys are 2νD long."),
      hyper_choice("normalise", "sum", {"sum", "none"}, "Whether queries and keys are divided by their sum."),
      hyper_real("sum_eps", "ε", 1e-5, 0.0, 1.0, "Added to that sum."),
      hyper_choice("attention_normaliser", "none", {"none", "output", "both"},
                   "What is divided by its overlap with the sum of all keys: nothing, the read, or the read and what a key recalls."),
      hyper_flag("negative_eigenvalues", false, "Whether β goes from 0 to 2, not to 1."),
      hyper_flag("output_scale", true, "Whether the read is divided by √D."),
      hyper_flag("prenorm", false, "Whether norms come first (after the residual otherwise)."),
      hyper_flag("normalised_residual", false, "prenorm: whether the fast weights' output is added to the normalised input."),
      hyper_integer("feed_forward", "d_ff", 0, 0, 65536, "Hidden width of the feed-forward part; 0: four times the width.", "units"),
      initialisation_only(hyper_real("init_std", "", 0.02, 1e-6, 10.0,
                                     "Deviation that the matrices start with: larger lets the input move β further.", true)),
      hyper_choice("block", "residual", {"residual", "none"},
                   "The layer with norms, residuals and feed-forward, or the fast weights with their projections alone."),
      hyper_choice("code", "lmtool-fwp", {"lmtool-fwp", "flash-linear-attention"}, "Whose layer it is."),
      hyper_real("expand_k", "", 1.0, 0.01, 16.0, "Key size of all heads, as a share of the width."),
      hyper_real("expand_v", "", 1.0, 0.01, 16.0, "Value size of all heads, as a share of the width."),
      hyper_choice("qk_activation", "silu", {"silu", "relu", "elu", "identity"}, "φ of flash-linear-attention."),
      hyper_choice("qk_norm", "l2", {"l2", "sum"}, "Whether queries and keys there are divided by their length or their sum."),
      hyper_flag("use_beta", true, "Whether β comes from the input there."),
      hyper_flag("output_gate", false, "Whether silu(W_g x) multiplies the output there."),
      hyper_integer("conv", "K", 4, 0, 64, "Taps of causal convolutions of queries, keys and values there; 0: none.", "steps"),
      hyper_flag("conv_bias", false, "Whether the convolutions have biases."),
      hyper_real("norm_eps", "ε", 1e-6, 1e-12, 1.0, "Epsilon of the rms norms there.", true)};
  a.spectrum =
      "eigenvalues of ∂S_t/∂S_{t-1} = (I − β k kᵀ) ⊗ I: 1, and 1 − β|k|² once for each value dimension of a head; with update=sum all are "
      "1";
  a.source = {"I. Schlag, K. Irie, J. Schmidhuber", "Linear transformers are secretly fast weight programmers", "ICML",
              "https://arxiv.org/abs/2102.11174", 2021};
  a.reference = {{"layers.{n}.*", "*"},
                 {"layers.{2n}.slow_net.*", "dec_attn.qkvb_net.*"},
                 {"layers.{2n}.slow_net.*", "dec_attn.qkv_net.*"},
                 {"layers.{2n}.out_linear.*", "dec_attn.o_net.*"},
                 {"layers.{2n}.layer_norm.*", "dec_attn.layer_norm.*"},
                 {"layers.{2n+1}.ff_layers.*", "pos_ff.CoreNet.*"},
                 {"layers.{2n+1}.layer_norm.*", "pos_ff.layer_norm.*"},
                 {"norm.*", "final/norm.*"}};
  a.input_width = [](const Hyper& h) { return h.integer("width"); };
  a.check = [](const Hyper& h) {
    if (of_fla(h)) {
      for (const char* key : {"expand_k", "expand_v"})
        if (const std::int64_t size = share_of(h, key); size < 1 || size % h.integer("heads"))
          throw Error("deltanet: heads = " + h.text("heads") + " does not divide the size " + std::to_string(size) + " that " + key +
                          " = " + h.text(key) + " gives: choose a divisor, or another " + key + ".",
                      {.model = "deltanet", .parameter = "heads", .value = h.text("heads"), .range = "a divisor of key and value size"});
      return;
    }
    if (!h.integer("head_dim") && h.integer("width") % h.integer("heads"))
      throw Error(
          "deltanet: heads = " + h.text("heads") + " does not divide width = " + h.text("width") + ": choose a divisor, or a head_dim.",
          {.model = "deltanet", .parameter = "heads", .value = h.text("heads"), .range = "a divisor of width"});
    if (h.choice("update") == "sum" && h.choice("attention_normaliser") == "both")
      throw Error("deltanet: with update=sum nothing is recalled that attention_normaliser=both could divide: choose output or none.",
                  {.model = "deltanet", .parameter = "attention_normaliser", .value = "both", .range = "none or output with update=sum"});
  };

  a.layer = [](Layer& l, Var u) {
    const Hyper& h = l.hyper;
    if (of_fla(h)) return fla_block(l, u);
    const std::int64_t d = h.integer("width"), heads = h.integer("heads"), D = h.integer("head_dim") ? h.integer("head_dim") : d / heads,
                       nu = h.integer("nu");
    const bool dpfp = h.choice("feature_map") == "dpfp";
    const Init small = init::normal(h.real("init_std"));
    return parts::programmer_block(
        l, u,
        [&](Var x) {
          const bool adds = h.choice("update") == "sum";
          const Var all = parts::by_head(
              l,
              adds ? parts::linear(l, "dec_attn.qkv_net", x, heads * 3 * D,
                                   {small, {}, "rows q, k, v (D each) of each head in turn", "starts N(0, init_std²)"})
                   : parts::linear(l, "dec_attn.qkvb_net", x, heads * (3 * D + 1),
                                   {small, {}, "rows q, k, v (D each) and β of each head in turn", "starts N(0, init_std²)"}),
              heads);
          const auto features = [&](Var z) {
            if (dpfp) {
              z = parts::dpfp(z, nu);
            } else if (h.choice("feature_map") == "elu") {
              if (h.choice("normalise") == "sum" && h.real("sum_eps") == 0.0) {
                // elu + 1 is e^z below 0, and may underflow in all entries: only their ratios count, so the largest of them is taken as 1.
                Var most = detach(minimum(z, 0.0));
                for (std::int64_t n = most.dim(-1); n > 1; n = most.dim(-1))
                  most = maximum(slice(most, -1, 0, (n + 1) / 2), slice(most, -1, n / 2, n));
                z = exp(minimum(z, 0.0) - most) + relu(z);
              } else {
                z = elu(z) + 1.0;
              }
            }
            return h.choice("normalise") == "sum" ? z / (mean_keep(z, -1) * static_cast<double>(z.dim(-1)) + h.real("sum_eps")) : z;
          };
          Var beta;
          if (!adds) {
            const double most = h.flag("negative_eigenvalues") ? 2.0 : 1.0;
            const Var share = sigmoid(slice(all, -1, 3 * D, 3 * D + 1));
            beta = l.gate("beta", most == 1.0 ? share : share * most, 0.0, most, "β: which share of what the key recalls is replaced.");
          }
          const std::int64_t E = dpfp ? 2 * nu * D : D;
          const Var q = features(slice(all, -1, 0, D));
          Var k = features(slice(all, -1, D, 2 * D)), overlap;
          if (const std::string& normaliser = h.choice("attention_normaliser"); normaliser != "none") {
            const Var ones = u.graph->constant({heads, E}, std::vector<double>(static_cast<std::size_t>(heads * E), 1.0));
            const Var z = diagonal(l, {"z", {heads, E}, "The sum of each head's keys: the normaliser.", true}, ones, k);
            const Shape one{l.steps(), l.batch(), heads, 1};
            overlap = reshape(sum(z * q, -1), one) + 1e-5;
            if (normaliser == "both") {
              const Var first = 1.0 - reshape(sign(l.position()), {l.steps(), l.batch(), 1, 1});
              const Var recalled = reshape(sum(l.previous_state(z) * k, -1), one) + first;
              beta = beta * recalled;
              k = k / (recalled + 1e-5);
            }
          }
          const StateSpec fast{"S", {heads, E, D}, "The fast weights of each head, [key, value]."};
          const Var v = slice(all, -1, 2 * D, 3 * D);
          Var read = adds ? outer(l, fast, {q, k, v}) : delta(l, fast, {q, k, v, beta});
          if (overlap) read = read / overlap;
          const Var o = parts::flat(l, h.flag("output_scale") ? read / std::sqrt(static_cast<double>(D)) : read);
          return parts::linear(l, "dec_attn.o_net", o, d, {small, {}, "W_o", "starts N(0, init_std²)"});
        },
        h.flag("normalised_residual"));
  };
  a.final_layer = [](Layer& l, Var x) {
    return of_fla(l.hyper) && l.hyper.choice("block") == "residual" ? parts::rms_norm(l, "norm", x, l.hyper.real("norm_eps")) : x;
  };
  parts::add_hybrid_attention(a, "deltanet");
  a.notes.back() += " All blocks are those of flash-linear-attention then, whatever code says.";
  return a;
}

}  // namespace reclab::architectures
