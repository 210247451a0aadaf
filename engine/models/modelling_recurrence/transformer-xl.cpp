// SPDX-License-Identifier: GPL-3.0-or-later
//   c_j = h_j (prenorm: LN h_j), visible j: max(0, t_0 - memory) <= j <= t, t_0 = segment ⌊t/segment⌋; no gradient through j < t_0
//   score_tj = ((W_q c_t + u)·W_k c_j + (W_q c_t + v)·W_r R_{t-j})/√D,   att_t = W_o concat_h Σ_j softmax_j(score) W_v c_j
// Z. Dai et al., Transformer-XL: attentive language models beyond a fixed-length context, ACL 2019. Names and conventions of
// RelPartialLearnableDecoderLayer in kimiyoung/transformer-xl, pytorch/mem_transformer.py.
#include <cmath>

#include "array/error.h"
#include "models/parts/parts.h"
#include "recurrence/attention/attention.h"

namespace reclab::architectures {
namespace {

/// Sines, then cosines, of the distances 0 .. count - 1, [count, d].
Var distances(Graph& graph, std::int64_t count, std::int64_t d, std::int64_t clamp) {
  std::vector<double> values;
  for (std::int64_t n = 0; n < count; ++n)
    for (const bool sine : {true, false})
      for (std::int64_t i = 0; i < d / 2; ++i) {
        const double angle =
            static_cast<double>(clamp ? std::min(n, clamp) : n) * std::pow(10000.0, -2.0 * static_cast<double>(i) / static_cast<double>(d));
        values.push_back(sine ? std::sin(angle) : std::cos(angle));
      }
  return graph.constant({count, d}, std::move(values));
}

Var relative_attention(Layer& l, Var x) {
  const Hyper& h = l.hyper;
  const std::int64_t d = h.integer("width"), heads = h.integer("heads"), D = h.integer("head_dim") ? h.integer("head_dim") : d / heads,
                     T = l.steps(), B = l.batch();
  const std::int64_t segment = h.integer("segment"), memory = h.integer("memory"),
                     reach = memory + segment - 1;  // how far back a step may see
  const Init small = init::normal(0.02);
  auto norm = [&, weight = Var{}, bias = Var{}](Var rows) mutable {
    if (h.choice("block") == "none" || !h.flag("prenorm")) return rows;
    if (!weight) {
      weight = l.parameter("dec_attn.layer_norm.weight", {d}, init::each([](Rng& rng, std::int64_t) { return 1.0 + 0.02 * rng.normal(); }),
                           "Scale of the attention's layer norm; starts N(1, 0.02²).");
      bias = l.parameter("dec_attn.layer_norm.bias", {d}, init::constant(0.0), "Its shift; starts at 0.");
    }
    return layer_norm(rows, weight, bias, 1e-5);
  };
  const auto weights = split(l.parameter("dec_attn.qkv_net.weight", {3 * heads * D, d}, small,
                                         "W_q, W_k, W_v: rows of q, k, v, each by head; starts N(0, 0.02²)."),
                             0, 3);
  const Var W_r = l.parameter("dec_attn.r_net.weight", {heads * D, d}, small, "W_r, of the distances; rows by head; starts N(0, 0.02²).");
  const Var W_o = l.parameter("dec_attn.o_net.weight", {d, heads * D}, small, "W_o; starts N(0, 0.02²).");
  const bool shared = h.flag("shared_biases");
  const auto bias = [&](const std::string& name, const std::string& role) {
    const std::string text = role + (shared ? ", the same in all layers" : "") + "; starts N(0, 0.02²).";
    return shared ? l.shared_parameter(name, {heads, D}, small, text) : l.parameter(name, {heads, D}, small, text);
  };
  const Var u = bias("r_w_bias", "u, added to the query where it meets keys"),
            v = bias("r_r_bias", "v, added to the query where it meets distances");

  const Var rows = l.history(
      {"h", {d}, "The layer's input, which each step appends to the memory and which later steps read as a key and a value."}, x, reach);
  const auto projected = [&](Var from, Var W) { return parts::heads_first(reshape(linear(norm(from), W), {from.dim(0), B, heads, D})); };
  const Var q = reshape(linear(norm(x), weights[0]), {T, B, heads, D});
  const double scale = 1.0 / std::sqrt(static_cast<double>(D));
  SoftmaxAttention a;
  a.q = parts::heads_first((q + u) * scale);
  a.q2 = parts::heads_first((q + v) * scale);
  a.k = projected(rows, weights[1]);
  a.v = projected(rows, weights[2]);
  const int by_head[] = {1, 0, 2};
  const Var R = linear(distances(*x.graph, reach + 1, d, h.integer("clamp_length")), W_r);
  const Var r = permute(reshape(R, {reach + 1, heads, D}), by_head);
  a.rel = concat(std::vector<Var>(static_cast<std::size_t>(B), r), 0);

  // Row i is step t = position_i and stands in column reach + i.
  std::vector<double> own;
  for (std::int64_t i = 0; i < T; ++i) own.push_back(static_cast<double>(reach + i));
  const Var column = x.graph->constant({T}, std::move(own)), t = reshape(slice(l.position(), 1, 0, 1), {T});
  const Var start = floor((t + 0.5) / static_cast<double>(segment)) * static_cast<double>(segment);
  Var age = t - relu(start - static_cast<double>(memory));
  if (h.flag("same_length") && memory) age = minimum(age, static_cast<double>(memory - 1));
  a.low = column - age;
  a.window = reach + 1;
  if (h.flag("stop_gradient") && memory) {
    a.held = column - (t - start);
    const Var still = detach(rows);
    a.k_held = projected(still, weights[1]);
    a.v_held = projected(still, weights[2]);
  }
  return linear(reshape(parts::heads_last(l, attention(l, a), heads), {T, B, heads * D}), W_o);
}

}  // namespace

Architecture transformer_xl() {
  Architecture a;
  a.title = "Transformer-XL";
  a.equations = {"t₀ = segment·⌊t/segment⌋; step t sees the steps j with max(0, t₀ − memory) ≤ j ≤ t (same_length: also t − j < memory)",
                 "q_t = W_q c_t, k_j = W_k c_j, v_j = W_v c_j;  c = h, or LN h with prenorm",
                 "score_tj = ((q_t + u)·k_j + (q_t + v)·W_r R_{t−j})/√D,  R_n = [sin(n w); cos(n w)], w_i = 10000^{−2i/d}",
                 "att_t = W_o concat_h Σ_j softmax_j(score_tj) v_j, without gradient to h_j where j < t₀",
                 "x ← LN(x + att),  x ← LN(x + W₂ relu(W₁ x + b₁) + b₂);  prenorm: x ← x + att,  x ← x + FF(LN x)"};
  a.notes = {
      "Names and shapes are those of RelPartialLearnableDecoderLayer: dec_attn.qkv_net, r_net and o_net without biases, pos_ff.CoreNet.0 "
      "and .3, and the two layer norms.",
      "Each layer has a u (r_w_bias) and a v (r_r_bias) of its own, as with untie_r in the authors' TensorFlow code. With shared_biases, "
      "as in the PyTorch code, the first layer's are those of all layers.",
      "The state h is the row that step t appends to the layer's memory; dL/dh_t counts every read of it as a key and a value, those of "
      "later segments only with stop_gradient=no.",
      "The memory is a buffer that slides at each segment's start; there is no transition, hence no spectrum and no ds_T/ds_t.",
      "All norms are layer norms with epsilon 1e-5.",
      "With block=none the layer is W_o times the attention, without norm, residual and feed-forward, whatever prenorm says."};
  a.hyper = {
      hyper_integer("width", "d", 64, 2, 4096, "Width of the stream; even.", "channels"),
      hyper_integer("heads", "h", 4, 1, 64, "Heads.", ""),
      hyper_integer("head_dim", "D", 0, 0, 1024, "Width of a head; 0: width/heads.", "channels"),
      hyper_integer("layers", "L", 1, 1, 64, "Layers in a row."),
      hyper_integer("feed_forward", "d_ff", 0, 0, 65536, "Hidden width of the feed-forward part; 0: four times the width.", "units"),
      hyper_integer("segment", "", 16, 1, 65536, "Steps of a segment (tgt_len).", "steps"),
      hyper_integer("memory", "", 16, 0, 65536, "Steps before the segment that are remembered (mem_len).", "steps"),
      hyper_integer("clamp_length", "", 0, 0, 65536, "Distances are cut here; 0: not at all.", "steps"),
      hyper_flag("same_length", false, "Whether each step sees as many steps as the memory has, however far it is into its segment."),
      hyper_flag("stop_gradient", true, "Whether no gradient passes from a segment into the memory."),
      hyper_flag("prenorm", false, "Whether norms come first."),
      hyper_flag("shared_biases", false, "Whether all layers have the same u and v."),
      hyper_choice("block", "residual", {"residual", "none"},
                   "The layer with norms, residuals and feed-forward, or the attention with its projections alone.")};
  a.spectrum = "none: attention reads all stored steps at once, and no matrix takes one state to the next";
  a.source = {"Z. Dai, Z. Yang, Y. Yang, J. Carbonell, Q. V. Le, R. Salakhutdinov",
              "Transformer-XL: attentive language models beyond a fixed-length context", "ACL", "https://arxiv.org/abs/1901.02860", 2019};
  a.input_width = [](const Hyper& h) { return h.integer("width"); };
  a.check = [](const Hyper& h) {
    if (h.integer("width") % 2)
      throw Error(
          "transformer-xl: width = " + h.text("width") + " is odd: the distances have a sine and a cosine each, choose an even number.",
          {.model = "transformer-xl", .parameter = "width", .value = h.text("width"), .range = "even"});
    if (!h.integer("head_dim") && h.integer("width") % h.integer("heads"))
      throw Error("transformer-xl: heads = " + h.text("heads") + " does not divide width = " + h.text("width") +
                      ": choose a divisor, or give head_dim.",
                  {.model = "transformer-xl", .parameter = "heads", .value = h.text("heads"), .range = "a divisor of width"});
  };

  a.layer = [](Layer& l, Var x) {
    const Var att = relative_attention(l, x);
    if (l.hyper.choice("block") == "none") return att;
    const std::int64_t d = l.hyper.integer("width"), F = l.hyper.integer("feed_forward") ? l.hyper.integer("feed_forward") : 4 * d;
    const auto norm = [&](const std::string& name, Var z) {
      const Var weight = l.parameter(name + ".weight", {d}, init::each([](Rng& rng, std::int64_t) { return 1.0 + 0.02 * rng.normal(); }),
                                     "Scale of the layer norm; starts N(1, 0.02²).");
      return layer_norm(z, weight, l.parameter(name + ".bias", {d}, init::constant(0.0), "Shift of the layer norm; starts at 0."), 1e-5);
    };
    const auto feed = [&](Var z) {
      const Init small = init::normal(0.02), zero = init::constant(0.0);
      const Var inside =
          relu(parts::linear(l, "pos_ff.CoreNet.0", z, F, parts::Linear{small, zero, "W₁", "starts N(0, 0.02²), its bias at 0"}));
      return parts::linear(l, "pos_ff.CoreNet.3", inside, d, parts::Linear{small, zero, "W₂", "starts N(0, 0.02²), its bias at 0"});
    };
    if (l.hyper.flag("prenorm")) {
      const Var after = x + att;
      return after + feed(norm("pos_ff.layer_norm", after));
    }
    const Var after = norm("dec_attn.layer_norm", x + att);
    return norm("pos_ff.layer_norm", after + feed(after));
  };
  return a;
}

}  // namespace reclab::architectures
