// SPDX-License-Identifier: GPL-3.0-or-later
//   [x_0 .. x_{O-1} v] = short(W_in u + b)
//   for o = 0 .. O-2:  v ← v ⊙ x_{O-1-o},  v_t ← Σ_{s≤t} k_o(t-s) ⊙ v_s + b_o ⊙ v_t;   y = W_out f(v ⊙ x_0) + b
//   k(t) = W sin(ω(.. sin(ω(W_0 z_t + b_0)))) ⊙ (exp(-|δ| t/(l_max-1)) + shift)
// M. Poli et al., Hyena hierarchy: towards larger convolutional language models, ICML 2023. Names and conventions of HyenaOperator in
// safari's src/models/sequence/hyena.py; block of simple_lm.py.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "array/error.h"
#include "models/parts/layers/read_out.h"
#include "models/parts/parts.h"
#include "recurrence/convolution/convolution.h"

namespace reclab::architectures {
namespace {

/// The filters at 0 .. taps - 1 steps ago, [taps, channels].
Var filter(Layer& l, std::int64_t taps, std::int64_t channels) {
  const Hyper& h = l.hyper;
  const std::int64_t F = h.integer("filter_order"), E = h.integer("emb_dim"), most = h.integer("l_max"),
                     inner = h.integer("num_inner_mlps"), bands = (E - 1) / 2;
  const double last = static_cast<double>(most - 1);
  const auto position = init::each([=](Rng&, std::int64_t i) {
    const double t = static_cast<double>(i / E);
    const std::int64_t column = i % E;
    if (column == 0) return t / last;
    const std::int64_t band = (column - 1) % bands;
    const double f =
        bands == 1 ? 1e-4 : 1e-4 + static_cast<double>(band) * (static_cast<double>(bands - 1) - 1e-4) / static_cast<double>(bands - 1);
    const double angle = f * 2.0 * std::numbers::pi * t / static_cast<double>(most);
    return column <= bands ? std::cos(angle) : -std::sin(angle);
  });
  const Var z = l.parameter("filter_fn.pos_emb.z", {1, most, E}, position,
                            "z_t, what the filter knows of the lag t: t/(l_max−1), then cos(f w_t) and −sin(f w_t), w_t = 2πt/l_max, f "
                            "from 1e-4 to bands − 1; trained as in the reference.");
  const Var omega = l.parameter("filter_fn.implicit_filter.1.freq", {1, F}, init::constant(h.real("w")),
                                "ω, the frequency of every sine, one a unit; starts at w.");
  const auto name = [](std::int64_t i) { return "filter_fn.implicit_filter." + std::to_string(i); };
  Var k = sin(parts::linear(l, name(0), slice(reshape(z, {most, E}), 0, 0, taps), F, "W_0 of the filter") * omega);
  for (std::int64_t i = 1; i <= inner; ++i)
    k = sin(parts::linear(l, name(2 * i), k, F, "W_" + std::to_string(i) + " of the filter") * omega);
  k = parts::linear(l, name(2 * inner + 2), k, channels, "The filter's last matrix: a row a filter, channel-major (d, o)", false);
  if (h.flag("modulate")) {
    const double slow = std::log(h.real("target")) / h.real("slow_decay_pct"), fast = std::log(h.real("target")) / h.real("fast_decay_pct");
    std::vector<double> rates, times;
    for (std::int64_t i = 0; i < channels; ++i)
      rates.push_back(-std::abs(channels == 1 ? slow : slow + static_cast<double>(i) * (fast - slow) / static_cast<double>(channels - 1)));
    if (h.flag("normalized") && h.real("shift") == 0.0) {  // only the windows' ratios count, and all of them may fall below the range
      const double slowest = *std::max_element(rates.begin(), rates.end());
      for (double& rate : rates) rate -= slowest;
    }
    for (std::int64_t t = 0; t < taps; ++t) times.push_back(static_cast<double>(t) / last);
    k = k * (exp(z.graph->constant({taps, 1}, std::move(times)) * z.graph->constant({channels}, std::move(rates))) + h.real("shift"));
  }
  if (h.flag("normalized")) k = k / reshape(sum(abs(k), -1), {taps, 1});
  return k;
}

Var hyena_operator(Layer& l, Var u) {
  const Hyper& h = l.hyper;
  const std::int64_t D = h.integer("width"), O = h.integer("order"), filters = O - 1;
  const std::int64_t taps = std::min(h.integer("l_max"), l.cached_steps() + l.steps());
  const Var p = parts::linear(l, "in_proj", u, (O + 1) * D, "W_in: rows of x_0, x_1, .., x_{O−1}, then v, D each");
  const auto q = split(parts::short_convolution(l, "short_filter", "short_filter", p, h.integer("short_filter_order")), -1, O + 1);
  std::vector<Var> x;
  for (std::int64_t i = 0; i < O; ++i)
    x.push_back(l.gate("x" + std::to_string(i), q[static_cast<std::size_t>(i)], 0.0, 0.0,
                       i ? "A branch that multiplies v before a long convolution." : "The branch that multiplies v after the last one."));
  const Var bias = h.flag("filter_bias")
                       ? reshape(l.parameter("filter_fn.bias", {D * filters}, init::normal(1.0),
                                             "b, the weight of v itself beside its convolution, channel-major (d, o); starts N(0, 1)."),
                                 {D, filters})
                       : Var{};
  const Var k = reshape(transpose(filter(l, taps, D * filters)), {D, filters, taps});
  const bool outer = h.flag("outer_mixing");
  Var scales;
  if (h.flag("post_order_ffn"))
    scales = reshape(
        l.parameter(
            "ord_proj_w", {O, 1, 1}, init::normal(1.0 / std::sqrt(static_cast<double>(D))),
            "What v is multiplied by after each long convolution; the last of them takes no part, as in the reference. Starts N(0, 1/D)."),
        {O});
  Var v = q.back();
  for (std::int64_t o = 0; o < filters; ++o) {
    const Var branch = x[static_cast<std::size_t>(O - 1 - o)];
    v = v * (outer ? mean_keep(branch, -1) * static_cast<double>(D) : branch);
    const Var y = convolution(l, "long_filter" + std::to_string(o), reshape(slice(k, 1, o, o + 1), {D, taps}), v,
                              "All inputs of a long convolution.");
    v = bias ? y + v * reshape(slice(bias, 1, o, o + 1), {D}) : y;
    if (scales) v = v * slice(scales, 0, o, o + 1);
  }
  return parts::linear(l, "out_proj", parts::activation(h.choice("activation"), v * x[0]), D, "W_out");
}

/// x and the embedding of each step's position, as far as there are any.
Var placed(Layer& l, Var x) {
  const std::int64_t D = x.dim(-1), all = l.hyper.integer("max_position_embeddings"), from = std::min(l.cached_steps(), all),
                     to = std::min(l.cached_steps() + l.steps(), all);
  const Var rows =
      l.parameter("position_embeddings.weight", {all, D}, init::normal(0.02),
                  "What is added to the first layer's input, a row a step from the start of the sequence; starts N(0, 0.02²).");
  if (from == to) return x + slice(rows, 0, 0, 1) * 0.0;
  Var added = slice(rows, 0, from, to);
  if (const std::int64_t beyond = l.steps() - (to - from)) {
    const Var both[] = {added, l.graph().constant({beyond, D}, std::vector<double>(static_cast<std::size_t>(beyond * D), 0.0))};
    added = concat(both, 0);
  }
  return x + reshape(added, {l.steps(), 1, D});
}

}  // namespace

Architecture hyena() {
  Architecture a;
  a.title = "Hyena";
  a.equations = {"[x_0 .. x_{O−1} v] = short causal convolution of W_in u_t + b",
                 "o = 0 .. O−2:  v ← v ⊙ x_{O−1−o} (outer_mixing: v Σ_c x_{O−1−o,c}),  v_t ← Σ_{s≤t} k_o(t−s) ⊙ v_s + b_o ⊙ v_t",
                 "y_t = W_out f(v_t ⊙ x_0,t) + b",
                 "k(t) = W sin(ω ⊙ (W_n .. sin(ω ⊙ (W_0 z_t + b_0)) .. + b_n)) ⊙ (exp(−|δ| t/(l_max−1)) + shift)",
                 "block: x ← x + hyena(LN₁ x),  x ← x + W₂ gelu(W₁ LN₂ x);  after the last LN_f"};
  a.notes = {
      "Names and shapes are those of safari's HyenaOperator: in_proj, short_filter, filter_fn.bias, filter_fn.pos_emb.z, "
      "filter_fn.implicit_filter.<i>, out_proj; norm1, norm2 and mlp are those of its Block, final/ln_f that of its backbone.",
      "There is no state of a fixed size: a step reads all inputs before it through the filters, hence no spectrum and no ds_T/ds_t.",
      "The filter has l_max taps; the reference refuses longer sequences, here what is l_max steps ago or more is no longer seen.",
      "The frequencies ω of all sines of a filter are one array, and the time features z are trained, as in the reference.",
      "Linear layers start as PyTorch's; safari's language model draws them anew from N(0, 0.02²).",
      "δ of the i-th of the C = D(O−1) filters, channel-major (d, o), goes evenly from log(target)/slow_decay_pct to "
      "log(target)/fast_decay_pct: δ_i = δ_0 + (δ_{C−1} − δ_0) i/(C−1).",
      "The whole language model (safari's SimpleLMHeadModel) reads one-hot tokens with encoder_bias = no and read_out = tied; "
      "word_embeddings.weight is the encoder's matrix transposed. Steps beyond max_position_embeddings have none; the reference refuses "
      "them.",
      "num_heads, num_blocks and inner_factor are 1: with more heads or a wider inside the reference's arrays do not fit each other, and "
      "its blocks read the filter beyond its end.",
      "norm1, norm2 and ln_f are layer norms with epsilon 1e-5; gelu is the tanh approximation.",
      "The paper writes the window as exp(−α t) and adds the shift outside; here as in the code the sum of both multiplies the filter."};
  a.hyper = {
      hyper_integer("width", "D", 64, 1, 4096, "Channels.", "channels"),
      hyper_integer("layers", "L", 1, 1, 64, "Layers in a row."),
      hyper_integer("order", "O", 2, 2, 16, "Multiplicative branches; one long convolution fewer."),
      hyper_integer("l_max", "", 1024, 2, 1000000, "Taps of the long filters.", "steps"),
      hyper_integer("filter_order", "F", 64, 1, 4096, "Width of the network that makes the filters.", "units"),
      hyper_integer("emb_dim", "E", 3, 3, 257, "Time features of a lag; odd."),
      hyper_integer("num_inner_mlps", "", 2, 0, 16, "Hidden layers of that network after the first."),
      hyper_integer("short_filter_order", "K", 3, 1, 64, "Taps of the short convolution.", "steps"),
      initialisation_only(
          hyper_real("w", "ω", 1.0, 1e-3, 1000.0, "Where the frequency of the sines starts; higher: rougher filters.", true)),
      hyper_flag("filter_bias", true, "Whether v passes beside its convolution, weighted."),
      hyper_flag("modulate", true, "Whether the filters are multiplied with a window that falls exponentially."),
      hyper_real("shift", "", 0.0, 0.0, 10.0, "What is added to the window, so that it does not fall to 0."),
      hyper_real("fast_decay_pct", "", 0.3, 1e-3, 10.0, "Part of l_max after which the fastest window is at the target.", true),
      hyper_real("slow_decay_pct", "", 1.5, 1e-3, 10.0, "The same of the slowest.", true),
      hyper_real("target", "", 0.01, 1e-9, 0.999, "What a window has fallen to by then.", true),
      hyper_flag("outer_mixing", false,
                 "Whether v is multiplied by the sum of a branch over its channels, the outer product summed, or by the branch channel by "
                 "channel."),
      hyper_flag("post_order_ffn", false, "Whether v is multiplied by a number of its own after each long convolution."),
      hyper_flag("normalized", false, "Whether the filters of each lag are divided by the sum of their magnitudes over channels."),
      hyper_choice("activation", "id", {"id", "gelu", "relu", "tanh"}, "f before the output projection."),
      hyper_choice("block", "residual", {"residual", "none"}, "The block with norms, residuals and feed-forward, or the operator alone."),
      hyper_integer("mlp", "", 0, 0, 65536, "Hidden width of the feed-forward part; 0: four times the width.", "units"),
      hyper_integer("max_position_embeddings", "", 0, 0, 65536,
                    "Steps that have an embedding of their position, which is added before the first block; 0: none.", "steps"),
      hyper_flag("final_norm", true, "Whether a norm follows the last block."),
      parts::read_out_row()};
  a.spectrum = "none: a convolution reads the whole past at once, and no matrix takes one state to the next";
  a.source = {"M. Poli, S. Massaroli, E. Nguyen, D. Y. Fu, T. Dao, S. Baccus, Y. Bengio, S. Ermon, C. Ré",
              "Hyena hierarchy: towards larger convolutional language models", "ICML", "https://arxiv.org/abs/2302.10866", 2023};
  a.reference = {{"layers.{n}.mixer.*", "*"},
                 {"layers.{n}.*", "*"},
                 {"ln_f.*", "final/ln_f.*"},
                 {"embeddings.position_embeddings.weight", "position_embeddings.weight"},
                 {"embeddings.word_embeddings.weight", "encoder/weight", true},
                 {"embeddings.word_embeddings.weight", ""},
                 {"lm_head.weight", "head/weight"},
                 {"lm_head.weight", ""}};
  // Constants that a file has, the one ω under the number of every sine, and a bias that filter_bias = no leaves out.
  for (const char* of_no_use : {"filter_fn.pos_emb.t", "filter_fn.modulation.deltas", "filter_fn.bias"})
    a.reference.push_back({std::string("layers.{i}.mixer.") + of_no_use, ""});
  for (int sine = 3; sine <= 33; sine += 2)
    a.reference.push_back({"layers.{i}.mixer.filter_fn.implicit_filter." + std::to_string(sine) + ".freq", ""});
  a.input_width = [](const Hyper& h) { return h.integer("width"); };
  a.check = [](const Hyper& h) {
    if (h.integer("emb_dim") % 2 == 0)
      throw Error(
          "hyena: emb_dim = " + h.text("emb_dim") + " is even: it counts the time and pairs of a cosine and a sine, choose an odd number.",
          {.model = "hyena", .parameter = "emb_dim", .value = h.text("emb_dim"), .range = "odd"});
  };

  a.layer = [](Layer& l, Var x) {
    if (l.hyper.choice("block") == "none") return hyena_operator(l, x);
    if (l.index() == 0 && l.hyper.integer("max_position_embeddings") > 0) x = placed(l, x);
    const std::int64_t D = l.hyper.integer("width"), hidden = l.hyper.integer("mlp") ? l.hyper.integer("mlp") : 4 * D;
    x = x + hyena_operator(l, parts::layer_norm(l, "norm1", x));
    const Var inside = gelu_tanh(parts::linear(l, "mlp.fc1", parts::layer_norm(l, "norm2", x), hidden, "W₁ of the feed-forward part"));
    return x + parts::linear(l, "mlp.fc2", inside, D, "W₂ of the feed-forward part");
  };
  a.final_layer = [](Layer& l, Var x) {
    return l.hyper.choice("block") == "residual" && l.hyper.flag("final_norm") ? parts::layer_norm(l, "ln_f", x) : x;
  };
  return a;
}

}  // namespace reclab::architectures
