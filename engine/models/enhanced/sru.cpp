// SPDX-License-Identifier: GPL-3.0-or-later
//   [u a b (x')] = x_t W,   x' = α x_t where x_t is as wide as the layer
//   f_t = σ(a + v c_{t-1} + b_f),   r_t = σ(b + w c_{t-1} + b_r)
//   c_t = f_t c_{t-1} + (1 - f_t) u,   y_t = r_t g(c_t) + (1 - r_t) x'        reset_sees=new: r_t = σ(b + b_r + w c_t)
// T. Lei, Y. Zhang, S. I. Wang, H. Dai, Y. Artzi, Simple recurrent units for highly parallelizable recurrence, EMNLP 2018. Parameters of
// asappresearch/sru.
#include <algorithm>
#include <cmath>

#include "array/error.h"
#include "models/parts/parts.h"
#include "recurrence/light/light.h"

namespace reclab::architectures {
namespace {

bool is_pp(const Hyper& h) { return h.choice("custom_m") == "srupp"; }
std::int64_t width_of_pp(const Hyper& h) { return h.integer("projection") ? h.integer("projection") : h.integer("width"); }

/// Whether layer `index` of SRU++ has attention, or the projection alone.
bool attends(const Hyper& h, std::int64_t index) {
  if (const std::int64_t last = h.integer("attention_last"); last >= 0) return h.integer("layers") - index <= last;
  return (index + 1) % h.integer("attention_every") == 0;
}

/// The module of SRU++ in place of W x: columns from .. to - 1 of its output, which has `out` of them.
Var module_of_pp(Layer& l, Var x, std::int64_t out, std::int64_t from, std::int64_t to) {
  const Hyper& h = l.hyper;
  const std::int64_t P = width_of_pp(h), heads = h.integer("heads"), D = P / heads;
  const std::string place = h.choice("attention_norm");
  const auto matrix = [&](const std::string& name, std::int64_t rows, std::int64_t columns, const std::string& role) {
    return l.parameter("transform_module." + name + ".weight", {rows, columns}, parts::xavier_uniform(columns, rows),
                       role + "; starts Xavier uniform.");
  };
  const auto norm = [&](Var z) { return parts::layer_norm(l, "transform_module.layer_norm", z); };
  Var z = linear(x, matrix("linear1", P, x.dim(-1), "W₁, the projection"), {});
  if (!attends(h, l.index())) {
    if (place != "none") z = norm(z);
    return linear(z, slice(matrix("linear2", out, P, "W₂, rows u a b x' of one unit after another"), 0, from, to), {});
  }
  const Var beside = z;
  if (place == "before") z = norm(z);
  const Var both = linear(z, matrix("linear2", 2 * P, P, "W₂, rows of the keys by head, then of the values"), {});
  const Var q = parts::by_head(l, z, heads) / std::sqrt(static_cast<double>(D)), k = parts::by_head(l, slice(both, -1, 0, P), heads),
            v = parts::by_head(l, slice(both, -1, P, 2 * P), heads);
  const Var read =
      h.flag("bidirectional")
          ? parts::heads_last(
                l, matmul(softmax_rows(matmul_transposed(parts::heads_first(q), parts::heads_first(k))), parts::heads_first(v)), heads)
          : attention(l, {.name = "k", .shape = {heads, D}, .text = "The keys so far, or the last window.", .auxiliary = true},
                      {.name = "v", .shape = {heads, D}, .text = "The values so far, or the last window.", .auxiliary = true}, q, k, v,
                      h.integer("window"));
  z = beside + parts::flat(l, read) * l.parameter("transform_module.alpha", {1}, init::constant(h.real("rezero_init_alpha")),
                                                  "α of the attention; starts at rezero_init_alpha.");
  if (place == "after") z = norm(z);
  return linear(z, slice(matrix("linear3", out, P, "W₃, rows u a b x' of one unit after another"), 0, from, to), {});
}

}  // namespace

Architecture sru() {
  Architecture a;
  a.title = "SRU";
  a.equations = {"[u a b] = x_t W, with a fourth map x' where x_t is not as wide as the layer, else x' = α x_t",
                 "f_t = σ(a + v ⊙ c_{t-1} + b_f),  r_t = σ(b + w ⊙ c_{t-1} + b_r);  reset_sees=new: r_t = σ(b + w ⊙ c_t + b_r)",
                 "c_t = f_t ⊙ c_{t-1} + (1 − f_t) ⊙ u",
                 "y_t = r_t ⊙ g(c_t) + (1 − r_t) ⊙ x'",
                 "∂c_t/∂c_{t-1} = diag(f_t + v ⊙ f_t ⊙ (1 − f_t) ⊙ (c_{t-1} − u))",
                 "custom_m=srupp: [u a b x'] = W₃ norm(z_t + α Σ_s softmax_s(z_t·k_s/√D) v_s),  z_t = W₁ x_t,  [k_t v_t] = W₂ z_t, by "
                 "head;  s ≤ t, or all s with bidirectional",
                 "and in layers without attention W₂ norm(W₁ x_t)"};
  a.notes = {
      "Names and shapes are those of SRUCell in the sru package, rnn_lst.0.weight and so on: weight is [in, H × maps], and column j × maps "
      "+ m is map m (u, a, b, x') of unit j.",
      "weight_c holds v, then w; bias holds b_f, then b_r. Both gates see c_{t-1}, as in the paper and the package; reset_sees=new gives "
      "r_t the new cell c_t, as several other implementations and surveys have it.",
      "scale_x is α, a buffer that the package does not train: √(1 + 2e^{b_r}) with rescale, and used only where the input is as wide as "
      "the layer.",
      "state_gates=no is the package's v1: weight_c is zero there and is no parameter here, so leave that entry out of the file, or load "
      "it with state_gates=yes, which gives the same numbers.",
      "bidirectional=yes are the package's bidirectional layers: one array holds both directions, whose units stand side by side, and each "
      "of them passes its own half of an input that is 2H wide. direction=both and both_by_layer have arrays of their own for each "
      "direction.",
      "SRU's own default is rescale=False, that of SRUCell True. Dropout is that of evaluation, none.",
      "custom_m=srupp is SRU++ (T. Lei, When attention meets fast recurrence, EMNLP 2021), whose modules SRUppAttention and "
      "SRUppProjectedLinear the package's version 3 has as transform_module and takes as custom_m before; queries are z itself, its norm "
      "with attention_norm=before. "
      "Their matrices have [out, in], and rows as the columns of weight. Version 3's other layers, which have transform_module.weight so, "
      "or transform_module.0 and .1, are read too.",
      "Its SRUpp has norms in both modules (attn_layer_norm; attention_norm=after), rescale=no, highway_bias=-2 and weight_c_init=1. "
      "window stands for the memory that its language models attend to beside their own segment. "
      "Keys and values are buffers: spectrum and ds_T/ds_t are those of the cell.",
      "custom_m of other code is no weights, and not here."};
  a.hyper = {
      hyper_integer("width", "H", 64, 1, 4096, "Number of units.", "units"),
      hyper_integer("layers", "L", 1, 1, 64, "Layers, each fed with the one below."),
      hyper_flag(
          "state_gates", true,
          "Whether the gates see the state of their own unit through v and w; without, the recurrence is linear and a scan is exact."),
      hyper_choice("reset_sees", "old", {"old", "new"},
                   "Which cell the reset gate sees through w: the one before the step, or the new one."),
      hyper_choice("activation", "identity", {"identity", "tanh"}, "g, what the cell is shown through (use_tanh)."),
      hyper_flag("skip", true, "Whether the input passes beside the cell (has_skip_term)."),
      hyper_flag("rescale", true, "Whether α multiplies the input that passes; without, it is 1."),
      hyper_choice("norm", "none", {"none", "before", "after"},
                   "Layer norm of what W reads, or of the output (layer_norm, normalize_after)."),
      hyper_integer("projection", "P", 0, 0, 4096,
                    "W as a product through so few dimensions (n_proj), where input and layer are wider; 0: a full matrix.", "units"),
      hyper_flag("input_to_hidden", false,
                 "Whether a linear encoder brings an input of another width to the layer's (proj_input_to_hidden_first; the package's has "
                 "no bias: encoder_bias=no)."),
      hyper_flag("bidirectional", false, "Whether each layer runs in both directions, with one array for both."),
      hyper_choice(
          "custom_m", "none", {"none", "srupp"},
          "What makes u, a, b and x': W, or the modules of SRU++, which have projection as their width (proj_size; 0: that of the layer)."),
      hyper_integer("heads", "", 1, 1, 64, "SRU++: heads of the attention; must divide the projection."),
      hyper_integer("attention_every", "", 1, 1, 64, "SRU++: every so many layers one has attention, the others the projection alone.",
                    "layers"),
      hyper_integer("attention_last", "", -1, -1, 64, "SRU++: only the last so many layers have attention; -1: as attention_every says.",
                    "layers"),
      hyper_choice("attention_norm", "after", {"after", "before", "none"},
                   "SRU++: the layer norm of the attention's output, or of what it reads; without attention that of the projection."),
      hyper_integer(
          "window", "", 0, 0, 1000000,
          "SRU++: steps that a step attends to, itself included; 0: all. With bidirectional each step attends to the whole sequence.",
          "steps"),
      initialisation_only(
          hyper_real("rezero_init_alpha", "α", 0.0, -10.0, 10.0, "SRU++: where α starts; at 0 the attention adds nothing yet.")),
      initialisation_only(
          hyper_real("highway_bias", "b_r", 0.0, -10.0, 10.0, "Where the bias of r starts: below 0 more of the input passes.")),
      initialisation_only(hyper_real("weight_c_init", "", 0.0, 0.0, 10.0, "v and w start uniform in ± this; 0: in ±√1.5."))};
  a.spectrum = "∂c_t/∂c_{t-1} of each unit: the forget gate, and with state_gates what v adds to it";
  a.source = {"T. Lei, Y. Zhang, S. I. Wang, H. Dai, Y. Artzi", "Simple recurrent units for highly parallelizable recurrence", "EMNLP",
              "https://arxiv.org/abs/1709.02755", 2018};
  a.reference = {{"rnn_lst.{n}.*", "*"},
                 {"rnn_lst.{n}.custom_m.*", "transform_module.*"},
                 {"rnn_lst.{n}.transform_module.weight", "weight", true},
                 {"rnn_lst.{n}.transform_module.0.weight", "weight_proj", true},
                 {"rnn_lst.{n}.transform_module.1.weight", "weight", true}};
  a.check = [](const Hyper& h) {
    if (!is_pp(h)) return;
    const auto refuse = [&](const std::string& key, const std::string& why, const std::string& range) {
      throw Error("sru: with custom_m=srupp " + key + " = " + h.text(key) + " " + why + ".",
                  {.model = "sru", .parameter = key, .value = h.text(key), .range = range});
    };
    if (width_of_pp(h) % h.integer("heads"))
      refuse("heads", "does not divide the projection's width " + std::to_string(width_of_pp(h)) + ": choose a divisor",
             "a divisor of projection");
    if (h.integer("attention_every") != 1 && h.integer("attention_last") != -1)
      refuse("attention_last",
             "and attention_every = " + h.text("attention_every") +
                 " both say where attention is: leave attention_last at -1 or attention_every at 1",
             "-1");
    if (h.flag("bidirectional") && h.integer("window"))
      refuse("window", "has no meaning where each step attends to the whole sequence: choose 0, or bidirectional=no", "0");
  };
  a.input_width = [](const Hyper& h) { return h.flag("input_to_hidden") ? h.integer("width") * (h.flag("bidirectional") ? 2 : 1) : 0; };
  a.shares_directions = [](const Hyper& h) { return h.flag("bidirectional"); };
  a.combine_directions = [](Layer& l, Var, Var forward, Var backward) {
    const Var both[] = {forward, backward}, y = concat(both, -1);
    return l.hyper.choice("norm") == "after" ? parts::layer_norm(l, "layer_norm", y) : y;
  };

  a.input_weights = {{"weight_proj"}, {"weight", InputWeight::Part::all, "weight_proj"}, {"transform_module.linear1.weight"}};
  a.layer = [](Layer& l, Var x) {
    const Hyper& h = l.hyper;
    const bool bidirectional = h.flag("bidirectional");
    const std::int64_t H = h.integer("width"), in = x.dim(-1), out = bidirectional ? 2 * H : H,
                       own = l.backward() && bidirectional ? H : 0;  // own: the first of this direction's units
    const std::string& norm = h.choice("norm");
    const bool skip = h.flag("skip"), gates = h.flag("state_gates"), wide = in == out;
    const std::int64_t maps = skip && !wide ? 4 : 3;
    const double alpha = skip && h.flag("rescale") ? std::sqrt(1.0 + 2.0 * std::exp(h.real("highway_bias"))) : 1.0;
    const auto of_weight = [&](Var read) {
      const std::int64_t P = h.integer("projection") < std::min(in, out) ? h.integer("projection") : 0;
      if (P) {
        const double k = std::sqrt(3.0 / static_cast<double>(in));
        read =
            matmul(read, l.parameter("weight_proj", {in, P}, init::uniform(-k, k), "The first factor of W; starts uniform in ±√(3/in)."));
      }
      const std::int64_t d = read.dim(-1);
      const double k = std::sqrt(3.0 / static_cast<double>(d)) * (norm == "none" ? 1.0 : 0.1);
      const Var W = l.parameter(
          "weight", {d, out * maps}, init::each([=](Rng& rng, std::int64_t at) {
            const std::int64_t map = at % maps;
            return rng.uniform(-k, k) * (map == 3 ? alpha : map > 0 && gates ? std::sqrt(0.5) : 1.0);
          }),
          maps == 4
              ? "W, columns u a b x' of one unit after another; starts uniform in ±√(3/rows), gates times √½, x' times α, all times 0.1 "
                "with a norm."
              : "W, columns u a b of one unit after another; starts uniform in ±√(3/rows), gates times √½, all times 0.1 with a norm.");
      return matmul(read, bidirectional ? slice(W, 1, own * maps, (own + H) * maps) : W);
    };
    const Var read = norm == "before" ? parts::layer_norm(l, "layer_norm", x) : x;
    const Var U = reshape(is_pp(h) ? module_of_pp(l, read, out * maps, own * maps, (own + H) * maps) : of_weight(read),
                          {l.steps(), l.batch(), H, maps});
    const double c = h.real("weight_c_init") > 0.0 ? h.real("weight_c_init") : std::sqrt(1.5);
    const Var weight_c = gates ? l.parameter("weight_c", {2 * out}, init::uniform(-c, c),
                                             "v of the forget gate, then w of the reset gate; starts uniform in ±√1.5.")
                               : Var{};
    const double highway = h.real("highway_bias");
    const Var bias = l.parameter("bias", {2 * out}, init::each([=](Rng&, std::int64_t at) { return at < out ? 0.0 : highway; }),
                                 "b_f, which starts at 0, then b_r, which starts at highway_bias.");
    const Var scale = l.parameter("scale_x", {1}, init::constant(alpha),
                                  "α, what the input that passes is multiplied by with rescale; starts at √(1 + 2e^{b_r}).");
    const auto map = [&](std::int64_t m) { return reshape(slice(U, -1, m, m + 1), {l.steps(), l.batch(), H}); };
    const auto half = [&](Var both, std::int64_t which) { return both ? slice(both, 0, which * out + own, which * out + own + H) : Var{}; };
    const LightReads cell =
        light(l, {"c", {H}, "The cell: what the forget gate keeps."}, map(0), map(1) + half(bias, 0), map(2) + half(bias, 1),
              half(weight_c, 0), half(weight_c, 1), h.choice("reset_sees") == "new" ? ResetSees::after : ResetSees::before);
    const Var shown = h.choice("activation") == "tanh" ? tanh(cell.state) : cell.state;
    Var y = cell.reset * shown;
    const auto passes = [&] { return bidirectional ? slice(x, -1, own, own + H) : x; };
    if (skip) y = y + (1.0 - cell.reset) * (wide ? h.flag("rescale") ? passes() * scale : passes() : map(3));
    return norm == "after" && !bidirectional ? parts::layer_norm(l, "layer_norm", y) : y;
  };
  return a;
}

}  // namespace reclab::architectures
