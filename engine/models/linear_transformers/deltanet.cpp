// SPDX-License-Identifier: GPL-3.0-or-later
//   [q k v b] = W x,   q, k ← φ/Σφ,   S_t = S_{t-1} + k_t (σ(b_t) (v_t - S_{t-1}^T k_t))^T,   o_t = S_t^T q_t/√D
//   block: x ← norm(x + W_o o), x ← norm(x + W₂ relu(W₁ x))
// I. Schlag, K. Irie, J. Schmidhuber, Linear transformers are secretly fast weight programmers, ICML 2021. Names and conventions of the
// authors' lmtool-fwp.
#include <cmath>

#include "array/error.h"
#include "models/parts/parts.h"
#include "recurrence/delta/delta.h"
#include "recurrence/diagonal/diagonal.h"

namespace reclab::architectures {

Architecture deltanet() {
  Architecture a;
  a.title = "DeltaNet";
  a.equations = {"[q k v b] = W x_t,  β = σ(b), or 2σ(b) with negative_eigenvalues", "φ(z) = concat over j = 1..ν of r ⊙ roll(r, j), r = [relu(z); relu(−z)], roll(r, j)_i = r_{(i−j) mod 2D};  q, k ← φ/(Σφ + ε)",
                 "S_t = S_{t-1} + k_t (β (v_t − S_{t-1}ᵀ k_t))ᵀ,  o_t = S_tᵀ q_t/√D",
                 "attention_normaliser=output: z_t = z_{t-1} + k_t,  o_t = S_tᵀ q_t/((z_t·q_t + 10⁻⁵) √D)", "attention_normaliser=both: also β ← β n, k ← k/(n + 10⁻⁵) in S_t,  n = z_{t-1}·k_t (1 in the first step)", "block: x ← norm(x + W_o o_t),  x ← norm(x + W₂ relu(W₁ x + b₁) + b₂)"};
  a.notes = {"Names and shapes are those of lmtool-fwp: dec_attn.{qkvb_net,o_net,layer_norm} and pos_ff.{CoreNet.0,CoreNet.3,layer_norm}; rows of qkvb_net are q, k, v, β of the first head, then of the next.",
             "What the key recalls is replaced by the value, by the share β, before the memory is read.",
             "The attention normaliser is that of lmtool-fwp without skip_attn_normalization: output divides what is read for the query, both also what is recalled for the key. Spectrum and ds_T/ds_t are those of S, with z held.",
             "With negative_eigenvalues β is twice the sigmoid, as flash-linear-attention's allow_neg_eigval, so that 1 − β|k|² may be negative.",
             "sum_eps is 0 in the paper's code, where an all-zero input is 0/0 under DPFP; 1e-5 as in recurrent-fwp.",
             "All norms are layer norms with epsilon 1e-5.",
             "With prenorm the residual is the input itself, as in recurrent-fwp; lmtool-fwp adds the normalised input back."};
  a.hyper = {hyper_integer("width", "d", 64, 1, 4096, "Width of the stream.", "channels"), hyper_integer("heads", "h", 4, 1, 64, "Heads."),
             hyper_integer("head_dim", "D", 0, 0, 4096, "Size of a head's queries, keys and values; 0: width/heads.", "channels"), hyper_integer("layers", "L", 1, 1, 64, "Layers in a row."),
             hyper_choice("feature_map", "dpfp", {"dpfp", "elu", "none"}, "φ: DPFP, elu + 1, or none."), hyper_integer("nu", "ν", 2, 1, 8, "Rolls of DPFP: keys are 2νD long."),
             hyper_choice("normalise", "sum", {"sum", "none"}, "Whether queries and keys are divided by their sum."), hyper_real("sum_eps", "ε", 1e-5, 0.0, 1.0, "Added to that sum."),
             hyper_choice("attention_normaliser", "none", {"none", "output", "both"}, "What is divided by its overlap with the sum of all keys: nothing, the read, or the read and what a key recalls."),
             hyper_flag("negative_eigenvalues", false, "Whether β goes from 0 to 2, not to 1."),
             hyper_flag("output_scale", true, "Whether the read is divided by √D."), hyper_flag("prenorm", false, "Whether norms come first (after the residual otherwise)."),
             hyper_integer("feed_forward", "d_ff", 0, 0, 65536, "Hidden width of the feed-forward part; 0: four times the width.", "units"),
             draws_only(hyper_real("init_std", "", 0.02, 1e-6, 10.0, "Deviation that the matrices start with: larger lets the input move β further.", true)),
             hyper_choice("block", "residual", {"residual", "none"}, "The layer with norms, residuals and feed-forward, or the fast weights with their projections alone.")};
  a.spectrum = "eigenvalues of ∂S_t/∂S_{t-1} = (I − β k kᵀ) ⊗ I: 1, and 1 − β|k|² once for each value dimension of a head";
  a.source = {"I. Schlag, K. Irie, J. Schmidhuber", "Linear transformers are secretly fast weight programmers", "ICML", "https://arxiv.org/abs/2102.11174", 2021};
  a.reference = {{"layers.{n}.*", "*"}};
  a.input_width = [](const Hyper& h) { return h.integer("width"); };
  a.check = [](const Hyper& h) {
    if (!h.integer("head_dim") && h.integer("width") % h.integer("heads"))
      throw Error("deltanet: heads = " + h.text("heads") + " does not divide width = " + h.text("width") + ": choose a divisor, or a head_dim.",
                  {.model = "deltanet", .parameter = "heads", .value = h.text("heads"), .range = "a divisor of width"});
  };

  a.layer = [](Layer& l, Var u) {
    const Hyper& h = l.hyper;
    const std::int64_t d = h.integer("width"), heads = h.integer("heads"), D = h.integer("head_dim") ? h.integer("head_dim") : d / heads, nu = h.integer("nu");
    const bool block = h.choice("block") == "residual", prenorm = h.flag("prenorm"), dpfp = h.choice("feature_map") == "dpfp";
    const Init small = init::normal(h.real("init_std"));
    const auto norm = [&](const std::string& name, Var x) {
      const Var scale = l.parameter(name + ".weight", {d}, init::each([](Rng& rng, std::int64_t) { return 1.0 + 0.02 * rng.normal(); }), "Scale of the layer norm; starts N(1, 0.02²).");
      return layer_norm(x, scale, l.parameter(name + ".bias", {d}, init::constant(0.0), "Shift of the layer norm; starts at 0."), 1e-5);
    };
    const Var x = block && prenorm ? norm("dec_attn.layer_norm", u) : u;
    const Var all = parts::by_head(l, parts::linear(l, "dec_attn.qkvb_net", x, heads * (3 * D + 1), {small, {}, "rows q, k, v (D each) and β of each head in turn", "starts N(0, init_std²)"}), heads);
    const auto features = [&](Var z) {
      if (dpfp) {
        const Var both[] = {relu(z), relu(-z)};
        const Var r = concat(both, -1);
        std::vector<Var> products;
        for (std::int64_t j = 1; j <= nu; ++j) {
          const std::int64_t by = j % (2 * D);
          const Var parts_of[] = {slice(r, -1, 2 * D - by, 2 * D), slice(r, -1, 0, 2 * D - by)};
          products.push_back(r * (by ? concat(parts_of, -1) : r));
        }
        z = concat(products, -1);
      } else if (h.choice("feature_map") == "elu") {
        if (h.choice("normalise") == "sum" && h.real("sum_eps") == 0.0) {
          // elu + 1 is e^z below 0, and may underflow in all entries: only their ratios count, so the largest of them is taken as 1.
          Var most = detach(minimum(z, 0.0));
          for (std::int64_t n = most.dim(-1); n > 1; n = most.dim(-1)) most = maximum(slice(most, -1, 0, (n + 1) / 2), slice(most, -1, n / 2, n));
          z = exp(minimum(z, 0.0) - most) + relu(z);
        } else {
          z = elu(z) + 1.0;
        }
      }
      return h.choice("normalise") == "sum" ? z / (mean_keep(z, -1) * static_cast<double>(z.dim(-1)) + h.real("sum_eps")) : z;
    };
    const double most = h.flag("negative_eigenvalues") ? 2.0 : 1.0;
    const Var share = sigmoid(slice(all, -1, 3 * D, 3 * D + 1));
    Var beta = l.gate("beta", most == 1.0 ? share : share * most, 0.0, most, "β: which share of what the key recalls is replaced.");
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
        const Var recalled = reshape(sum(l.before(z) * k, -1), one) + first;
        beta = beta * recalled;
        k = k / (recalled + 1e-5);
      }
    }
    Var read = delta(l, {"S", {heads, E, D}, "The fast weights of each head, [key, value]."}, {q, k, slice(all, -1, 2 * D, 3 * D), beta});
    if (overlap) read = read / overlap;
    const Var o = parts::flat(l, h.flag("output_scale") ? read / std::sqrt(static_cast<double>(D)) : read);
    const Var y = parts::linear(l, "dec_attn.o_net", o, d, {small, {}, "W_o", "starts N(0, init_std²)"});
    if (!block) return y;
    const std::int64_t F = h.integer("feed_forward") ? h.integer("feed_forward") : 4 * d;
    const auto feed = [&](Var z) {
      const Var hidden = relu(parts::linear(l, "pos_ff.CoreNet.0", z, F, {small, init::constant(0.0), "W₁", "starts N(0, init_std²), its bias at 0"}));
      return parts::linear(l, "pos_ff.CoreNet.3", hidden, d, {small, init::constant(0.0), "W₂", "starts N(0, init_std²), its bias at 0"});
    };
    if (prenorm) {
      const Var after = u + y;
      return after + feed(norm("pos_ff.layer_norm", after));
    }
    const Var after = norm("dec_attn.layer_norm", u + y);
    return norm("pos_ff.layer_norm", after + feed(after));
  };
  return a;
}

}  // namespace reclab::architectures
