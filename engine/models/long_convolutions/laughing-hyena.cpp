// SPDX-License-Identifier: GPL-3.0-or-later
//   [x_0 .. x_{O-1} v] = short(W_in u + b)
//   for o = 0 .. O-2:  v ← v ⊙ x_{O-1-o},  s_t = p s_{t-1} + v_t,  v_t ← Re Σ_n r_n s_t,n + D ⊙ v_t;   y = W_out f(v ⊙ x_0) + b
//   the filter: h_k = Re Σ_n r_n p_n^k, and D more at k = 0
// S. Massaroli, M. Poli, D. Y. Fu, et al., Laughing hyena distillery: extracting compact recurrences from convolutions, NeurIPS 2023. Names
// and conventions of togethercomputer/stripedhyena (ParallelGatedConvBlock of model.py, engine.py); the other block is that of Hyena's
// language model.
#include <algorithm>
#include <cmath>
#include <numbers>

#include "array/error.h"
#include "models/parts/parts.h"
#include "recurrence/diagonal/diagonal.h"

namespace reclab::architectures {
namespace {

std::int64_t systems_of(const Hyper& h) { return h.integer("width") / h.integer("group"); }

struct Filters {
  std::int64_t count;
  Var poles, residues, D;
};

Filters filters_of(Layer& l, std::int64_t filters) {
  const Hyper& h = l.hyper;
  const std::int64_t C = h.integer("width"), N = h.integer("state"), S = systems_of(h);
  const bool ring = h.choice("poles_start") == "ring";
  const double low = h.real("r_min") * h.real("r_min"), high = h.real("r_max") * h.real("r_max");
  const Var poles = l.parameter(
      "filter_fn.poles", {S * filters, N, 1, 2},
      [=](InitContext& c) {
        for (std::size_t i = 0; i + 1 < c.values.size(); i += 2) {
          const double radius = std::sqrt(c.rng.uniform(low, high)), phase = c.rng.uniform(0.0, std::numbers::pi);
          c.values[i] = ring ? radius * std::cos(phase) : 1e-2 * c.rng.normal();
          c.values[i + 1] = ring ? radius * std::sin(phase) : 1e-3 * c.rng.normal();
        }
      },
      "The poles p, system-major (d, o), last axis re and im; start as poles_start says.");
  const Var residues = l.parameter(
      "filter_fn.residues", {S * filters, N, 1, 2},
      [=](InitContext& c) {
        const auto p = c.other("filter_fn.poles");
        for (std::size_t i = 0; i < c.values.size(); ++i) {
          const double squared = p[i & ~std::size_t{1}] * p[i & ~std::size_t{1}] + p[i | 1] * p[i | 1];
          c.values[i] = c.rng.normal() * (ring ? std::sqrt(std::max(1.0 - squared, 0.0) / static_cast<double>(N)) : 1.0);
        }
      },
      "The residues r, likewise; start N(0, (1 − |p|²)/N), with poles_start=near-zero normal.");
  const Var D = l.parameter("filter_fn.bias", {C * filters}, init::constant(0.0),
                            "D, the weight of v itself beside its modes, channel-major (d, o); starts at 0.");
  return {filters, poles, residues, D};
}

/// v through the filters of branch o, [steps, batch, width].
Var filtered(Layer& l, const Filters& f, Var v, std::int64_t o) {
  const std::int64_t C = l.hyper.integer("width"), N = l.hyper.integer("state"), S = systems_of(l.hyper), each = C / S;
  const auto part = [&](Var x, std::int64_t which) {  // [width, modes]
    const Var own = reshape(slice(slice(reshape(x, {S, f.count, N, 2}), 1, o, o + 1), -1, which, which + 1), {S, 1, N});
    if (each == 1) return reshape(own, {C, N});
    return reshape(own * l.graph().constant({1, each, 1}, std::vector<double>(static_cast<std::size_t>(each), 1.0)), {C, N});
  };
  const bool bounded = l.hyper.flag("bounded");
  Var re = part(f.poles, 0), im = part(f.poles, 1);
  if (bounded) {
    const Var outside = reciprocal(sqrt(-minimum(-(square(re) + square(im)), -1.0)));
    re = re * outside;
    im = im * outside;
  }
  const Var p = complex(re, im), r = complex(part(f.residues, 0), part(f.residues, 1));
  const StateSpec spec{
      f.count == 1 ? "s" : "s" + std::to_string(o), {C, N}, "The modes of each channel, which all inputs of the filter drive alike."};
  const Var direct = v * reshape(slice(reshape(f.D, {C, f.count}), 1, o, o + 1), {C});
  if (bounded) return diagonal_bank(l, spec, p, p * 0.0 + 1.0, r, v) + direct;
  const BankVars vars =
      diagonal_bank(l.graph(), l.form(), p, p * 0.0 + 1.0, r, v);  // an FFT rounds all of an output as it does its largest entry
  l.declare_forms({Form::scan, Form::chunkwise});
  l.declare({spec}, vars);
  return vars.output + direct;
}

Var hyena_operator(Layer& l, Var u) {
  const Hyper& h = l.hyper;
  const std::int64_t D = h.integer("width"), O = h.integer("order"), heads = h.integer("heads"), T = u.dim(0), batch = u.dim(1);
  const Var p = parts::linear(
      l, "in_proj", u, (O + 1) * D,
      heads > 1 ? "W_in: by head the rows of x_0, x_1, .., x_{O−1}, then v" : "W_in: rows of x_0, x_1, .., x_{O−1}, then v, D each");
  const Var q = parts::short_convolution(l, "short_filter", "short_filter", p, h.integer("short_filter_order"));
  const auto branch = [&](std::int64_t i) {
    if (heads == 1) return slice(q, -1, i * D, (i + 1) * D);
    return reshape(slice(reshape(q, {T, batch, heads, O + 1, D / heads}), 3, i, i + 1), {T, batch, D});
  };
  std::vector<Var> x;
  for (std::int64_t i = 0; i < O; ++i)
    x.push_back(l.gate("x" + std::to_string(i), branch(i), 0.0, 0.0,
                       i ? "A branch that multiplies v before a filter." : "The branch that multiplies v after the last one."));
  const Filters f = filters_of(l, O - 1);
  Var v = branch(O);
  for (std::int64_t o = 0; o < O - 1; ++o) v = filtered(l, f, v * x[static_cast<std::size_t>(O - 1 - o)], o);
  return parts::linear(l, "out_proj", parts::activation(h.choice("activation"), v * x[0]), D, "W_out");
}

/// Every channel's filter alone; channel c reads input c, or c less the inputs that there are, as often as it takes.
Var filter_alone(Layer& l, Var x) {
  const std::int64_t D = l.hyper.integer("width"), inputs = x.dim(-1);
  const std::vector<Var> copies(static_cast<std::size_t>((D + inputs - 1) / inputs), x);
  const Var repeated = copies.size() == 1 ? x : concat(copies, -1);
  return filtered(l, filters_of(l, 1), repeated.dim(-1) == D ? repeated : slice(repeated, -1, 0, D), 0);
}

Var striped_norm(Layer& l, const std::string& name, Var x) {
  const Var scale = l.parameter(name + ".scale", {x.dim(-1)}, init::constant(1.0), "Scale of the rms norm; starts at 1.");
  return x * reciprocal(sqrt(mean_keep(square(x), -1) + 1e-36) + l.hyper.real("eps")) * scale;
}

std::int64_t striped_hidden(const Hyper& h) {
  if (h.integer("mlp")) return h.integer("mlp");
  return (2 * h.integer("width") * 4 / 3 + 63) / 64 * 64;
}

}  // namespace

Architecture laughing_hyena() {
  Architecture a;
  a.title = "Laughing Hyena";
  a.equations = {
      "[x_0 .. x_{O−1} v] = short causal convolution of W_in u_t + b",
      "o = 0 .. O−2:  v ← v ⊙ x_{O−1−o},  s_t = p ⊙ s_{t−1} + v_t,  v_t ← Re Σ_n r_n s_t,n + D ⊙ v_t,  N complex modes a channel",
      "y_t = W_out f(v_t ⊙ x_0,t) + b;   the filter of a channel: h_k = Re Σ_n r_n p_nᵏ, and D more at k = 0",
      "block=residual: x ← x + operator(LN₁ x),  x ← x + W₂ gelu(W₁ LN₂ x);  after the last LN_f",
      "block=striped: x ← x + operator(RMS₁ x),  x ← x + l3(act(l1 z) ⊙ l2 z), z = RMS₂ x;  after the last an rms norm;   block=filter: "
      "v_t = u_t, y_t = v_t behind the filter"};
  a.notes = {
      "Names are Hyena's, with filter_fn.poles and filter_fn.residues in place of the network that makes its filters. Shapes are those of "
      "StripedHyena's ParallelGatedConvBlock too, whose projections is in_proj here, filter.{poles,residues} filter_fn.{poles,residues}, "
      "filter.D filter_fn.bias, filter.short_filter_{weight,bias} short_filter.{weight,bias}, and out_filter_dense out_proj; with "
      "block=striped pre_norm, post_norm, mlp.l1 to l3 and final/norm are its own.",
      "A mode is read by its real part, without a factor 2: of a conjugate pair one is stored, with twice its residue. Powers begin at 0, "
      "so that s_t holds v_t itself; the paper counts them from 1 and has h_0 apart, which is the same filter with residues r p and h_0 = "
      "D + Re Σ r.",
      "The rows of in_proj are x_0 (the reference's x2), x_1, v; with more than one head, head by head (column_split_hyena). The reference "
      "has order 2.",
      "group channels in a row share their poles and residues, as hyena_filter_groups means to; the reference's forward pass repeats them "
      "correctly only where there are as many groups as channels in each. D is one a channel.",
      "A pole beyond the unit circle counts as p/|p|, so that no filter grows; with bounded=no it is what it is, as in the reference, and "
      "there is no convolution form. Poles and residues of a trained filter are found by distillation (reclab distill), and are then "
      "weights of this model; poles_start is for one that is trained from nothing.",
      "block=filter is what is left of a filter of another model: channel c reads input c, and where there are fewer inputs they are read "
      "in turn.",
      "The rms norm is x/(√(mean x²) + eps) scale. mlp=0: four times the width, with block=striped 8/3 of it, rounded up to a multiple of "
      "64; l1 to l3 have no bias. norm1, norm2 and ln_f are layer norms with epsilon 1e-5 beside gelu's tanh approximation; with "
      "block=striped gelu is exact.",
      "The layers of attention that StripedHyena has between these are a part of a stack. Short filters start as PyTorch's convolutions."};
  a.hyper = {
      hyper_integer("width", "D", 64, 1, 4096, "Channels.", "channels"),
      hyper_integer("state", "N", 16, 1, 4096, "Complex modes a channel.", "modes"),
      hyper_integer("layers", "L", 1, 1, 64, "Layers in a row."),
      hyper_integer("order", "O", 2, 2, 16, "Multiplicative branches; one filter fewer."),
      hyper_integer("short_filter_order", "K", 3, 1, 64, "Taps of the short convolution.", "steps"),
      hyper_integer("heads", "", 1, 1, 64, "Heads, by which the rows of in_proj stand; divides the width."),
      hyper_integer("group", "", 1, 1, 4096, "Channels that share a filter; divides the width.", "channels"),
      hyper_flag("bounded", true, "Whether poles beyond the unit circle count as on it."),
      hyper_choice("activation", "id", {"id", "gelu", "relu", "tanh"}, "f before the output projection."),
      hyper_choice("block", "residual", {"residual", "striped", "none", "filter"},
                   "Hyena's block, StripedHyena's, the operator alone, or the filter alone."),
      hyper_integer("mlp", "", 0, 0, 65536, "Hidden width of the feed-forward part; 0: as its block has it.", "units"),
      hyper_choice("mlp_activation", "silu", {"silu", "gelu"}, "act of StripedHyena's feed-forward part."),
      hyper_real("eps", "ε", 1e-5, 1e-12, 1.0, "Of StripedHyena's norms.", true),
      hyper_flag("final_norm", true, "Whether a norm follows the last block."),
      initialisation_only(hyper_choice(
          "poles_start", "ring", {"ring", "near-zero"},
          "Where poles start: in a ring of the upper half-plane, or near 0 as in StripedHyena's code, whose poles come from a file.")),
      initialisation_only(hyper_real("r_min", "r_min", 0.9, 0.0, 0.9999, "Smallest |p| at the start.")),
      initialisation_only(hyper_real("r_max", "r_max", 0.999, 0.0001, 1.0, "Largest |p| at the start."))};
  a.spectrum = "the poles p of every channel, the same at every step";
  a.source = {
      "S. Massaroli, M. Poli, D. Y. Fu, H. Kumbong, R. N. Parnichkun, D. W. Romero, A. Timalsina, Q. McIntyre, B. Chen, A. Rudra, C. "
      "Zhang, C. Ré, S. Ermon, Y. Bengio",
      "Laughing hyena distillery: extracting compact recurrences from convolutions", "NeurIPS", "https://arxiv.org/abs/2310.18780", 2023};
  a.reference = {{"blocks.{n}.projections.*", "in_proj.*"},
                 {"blocks.{n}.filter.short_filter_weight", "short_filter.weight"},
                 {"blocks.{n}.filter.short_filter_bias", "short_filter.bias"},
                 {"blocks.{n}.filter.D", "filter_fn.bias"},
                 {"blocks.{n}.filter.*", "filter_fn.*"},
                 {"blocks.{n}.out_filter_dense.*", "out_proj.*"},
                 {"blocks.{n}.*", "*"},
                 {"layers.{n}.mixer.*", "*"},
                 {"layers.{n}.*", "*"},
                 {"norm.*", "final/norm.*"},
                 {"ln_f.*", "final/ln_f.*"}};
  a.input_width = [](const Hyper& h) { return h.choice("block") == "filter" ? std::int64_t{0} : h.integer("width"); };
  a.check = [](const Hyper& h) {
    for (const char* key : {"heads", "group"})
      if (h.integer("width") % h.integer(key))
        throw Error("laughing-hyena: " + std::string(key) + " = " + h.text(key) + " does not divide width = " + h.text("width") +
                        ": choose a divisor.",
                    {.model = "laughing-hyena", .parameter = key, .value = h.text(key), .range = "a divisor of width"});
    if (h.real("r_min") > h.real("r_max"))
      throw Error("laughing-hyena: r_min = " + h.text("r_min") + " is above r_max = " + h.text("r_max") + ": choose r_min at most r_max.",
                  {.model = "laughing-hyena", .parameter = "r_min", .value = h.text("r_min"), .range = "at most r_max"});
  };

  a.layer = [](Layer& l, Var x) {
    const Hyper& h = l.hyper;
    const std::string& block = h.choice("block");
    const std::int64_t D = h.integer("width");
    if (block == "filter") return filter_alone(l, x);
    if (block == "none") return hyena_operator(l, x);
    if (block == "striped") {
      x = x + hyena_operator(l, striped_norm(l, "pre_norm", x));
      const std::int64_t hidden = striped_hidden(h);
      const Var z = striped_norm(l, "post_norm", x);
      const Var factor =
          parts::activation(h.choice("mlp_activation"), parts::linear(l, "mlp.l1", z, hidden, "l1, whose activation multiplies", false));
      return x + parts::linear(l, "mlp.l3", factor * parts::linear(l, "mlp.l2", z, hidden, "l2", false), D, "l3", false);
    }
    x = x + hyena_operator(l, parts::layer_norm(l, "norm1", x));
    const Var inside = gelu_tanh(parts::linear(l, "mlp.fc1", parts::layer_norm(l, "norm2", x), h.integer("mlp") ? h.integer("mlp") : 4 * D,
                                               "W₁ of the feed-forward part"));
    return x + parts::linear(l, "mlp.fc2", inside, D, "W₂ of the feed-forward part");
  };
  a.final_layer = [](Layer& l, Var x) {
    const std::string& block = l.hyper.choice("block");
    if (!l.hyper.flag("final_norm") || block == "none" || block == "filter") return x;
    return block == "striped" ? striped_norm(l, "norm", x) : parts::layer_norm(l, "ln_f", x);
  };
  return a;
}

}  // namespace reclab::architectures
