// SPDX-License-Identifier: GPL-3.0-or-later
//   [u a b (x')] = x_t W,   x' = α x_t where x_t is as wide as the layer
//   f_t = σ(a + v c_{t-1} + b_f),   r_t = σ(b + w c_{t-1} + b_r)
//   c_t = f_t c_{t-1} + (1 - f_t) u,   y_t = r_t g(c_t) + (1 - r_t) x'
// T. Lei, Y. Zhang, S. I. Wang, H. Dai, Y. Artzi, Simple recurrent units for highly parallelizable recurrence, EMNLP 2018. Parameters of asappresearch/sru.
#include <algorithm>
#include <cmath>

#include "models/parts/parts.h"
#include "recurrence/light/light.h"

namespace reclab::architectures {

Architecture sru() {
  Architecture a;
  a.title = "SRU";
  a.equations = {"[u a b] = x_t W, with a fourth map x' where x_t is not as wide as the layer, else x' = α x_t", "f_t = σ(a + v ⊙ c_{t-1} + b_f),  r_t = σ(b + w ⊙ c_{t-1} + b_r)",
                 "c_t = f_t ⊙ c_{t-1} + (1 − f_t) ⊙ u", "y_t = r_t ⊙ g(c_t) + (1 − r_t) ⊙ x'", "∂c_t/∂c_{t-1} = diag(f_t + v ⊙ f_t ⊙ (1 − f_t) ⊙ (c_{t-1} − u))"};
  a.notes = {"Names and shapes are those of SRUCell in the sru package, rnn_lst.0.weight and so on: weight is [in, H × maps], and column j × maps + m is map m (u, a, b, x') of unit j.",
             "weight_c holds v, then w; bias holds b_f, then b_r. Both gates see c_{t-1}, as in the package; several other implementations give r_t the new cell.",
             "scale_x is α, a buffer that the package does not train: √(1 + 2e^{b_r}) with rescale, and used only where the input is as wide as the layer.",
             "state_gates=no is the package's v1: weight_c is zero there and is no parameter here, so leave that entry out of the file, or load it with state_gates=yes, which gives the same numbers.",
             "bidirectional=yes are the package's bidirectional layers: one array holds both directions, whose units stand side by side, and each of them passes its own half of an input that is 2H wide. direction=both and both_by_layer have arrays of their own for each direction.",
             "SRU's own default is rescale=False, that of SRUCell True. Dropout is that of evaluation, none. A module in place of W (custom_m) is code and not weights, and not here."};
  a.hyper = {hyper_integer("width", "H", 64, 1, 4096, "Number of units.", "units"),
             hyper_integer("layers", "L", 1, 1, 64, "Layers, each fed with the one below."),
             hyper_flag("state_gates", true, "Whether the gates see the state of their own unit through v and w; without, the recurrence is linear and a scan is exact."),
             hyper_choice("activation", "identity", {"identity", "tanh"}, "g, what the cell is shown through (use_tanh)."),
             hyper_flag("skip", true, "Whether the input passes beside the cell (has_skip_term)."),
             hyper_flag("rescale", true, "Whether α multiplies the input that passes; without, it is 1."),
             hyper_choice("norm", "none", {"none", "before", "after"}, "Layer norm of what W reads, or of the output (layer_norm, normalize_after)."),
             hyper_integer("projection", "P", 0, 0, 4096, "W as a product through so few dimensions (n_proj), where input and layer are wider; 0: a full matrix.", "units"),
             hyper_flag("input_to_hidden", false, "Whether a linear encoder brings an input of another width to the layer's (proj_input_to_hidden_first; the package's has no bias: encoder_bias=no)."),
             hyper_flag("bidirectional", false, "Whether each layer runs in both directions, with one array for both."),
             draws_only(hyper_real("highway_bias", "b_r", 0.0, -10.0, 10.0, "Where the bias of r starts: below 0 more of the input passes.")),
             draws_only(hyper_real("weight_c_init", "", 0.0, 0.0, 10.0, "v and w start uniform in ± this; 0: in ±√1.5."))};
  a.spectrum = "∂c_t/∂c_{t-1} of each unit: the forget gate, and with state_gates what v adds to it";
  a.source = {"T. Lei, Y. Zhang, S. I. Wang, H. Dai, Y. Artzi", "Simple recurrent units for highly parallelizable recurrence", "EMNLP", "https://arxiv.org/abs/1709.02755", 2018};
  a.reference = {{"rnn_lst.{n}.*", "*"}};
  a.input_width = [](const Hyper& h) { return h.flag("input_to_hidden") ? h.integer("width") * (h.flag("bidirectional") ? 2 : 1) : 0; };
  a.joint = [](const Hyper& h) { return h.flag("bidirectional"); };
  a.joined = [](Layer& l, Var, Var forward, Var backward) {
    const Var both[] = {forward, backward}, y = concat(both, -1);
    return l.hyper.choice("norm") == "after" ? parts::layer_norm(l, "layer_norm", y) : y;
  };

  a.layer = [](Layer& l, Var x) {
    const Hyper& h = l.hyper;
    const bool bidirectional = h.flag("bidirectional");
    const std::int64_t H = h.integer("width"), in = x.dim(-1), out = bidirectional ? 2 * H : H, own = l.backward() && bidirectional ? H : 0;  // own: the first of this direction's units
    const std::int64_t P = h.integer("projection") < std::min(in, out) ? h.integer("projection") : 0;
    const std::string& norm = h.choice("norm");
    const bool skip = h.flag("skip"), gates = h.flag("state_gates"), wide = in == out;
    const std::int64_t maps = skip && !wide ? 4 : 3;
    const double alpha = skip && h.flag("rescale") ? std::sqrt(1.0 + 2.0 * std::exp(h.real("highway_bias"))) : 1.0;
    Var read = norm == "before" ? parts::layer_norm(l, "layer_norm", x) : x;
    if (P) {
      const double k = std::sqrt(3.0 / static_cast<double>(in));
      read = matmul(read, l.parameter("weight_proj", {in, P}, init::uniform(-k, k), "The first factor of W; starts uniform in ±√(3/in)."));
    }
    const std::int64_t d = read.dim(-1);
    const double k = std::sqrt(3.0 / static_cast<double>(d)) * (norm == "none" ? 1.0 : 0.1);
    const Var W = l.parameter("weight", {d, out * maps}, init::each([=](Rng& rng, std::int64_t at) {
                                const std::int64_t map = at % maps;
                                return rng.uniform(-k, k) * (map == 3 ? alpha : map > 0 && gates ? std::sqrt(0.5) : 1.0);
                              }),
                              maps == 4 ? "W, columns u a b x' of one unit after another; starts uniform in ±√(3/rows), gates times √½, x' times α, all times 0.1 with a norm."
                                        : "W, columns u a b of one unit after another; starts uniform in ±√(3/rows), gates times √½, all times 0.1 with a norm.");
    const double c = h.real("weight_c_init") > 0.0 ? h.real("weight_c_init") : std::sqrt(1.5);
    const Var weight_c = gates ? l.parameter("weight_c", {2 * out}, init::uniform(-c, c), "v of the forget gate, then w of the reset gate; starts uniform in ±√1.5.") : Var{};
    const double highway = h.real("highway_bias");
    const Var bias = l.parameter("bias", {2 * out}, init::each([=](Rng&, std::int64_t at) { return at < out ? 0.0 : highway; }), "b_f, which starts at 0, then b_r, which starts at highway_bias.");
    const Var scale = l.parameter("scale_x", {1}, init::constant(alpha), "α, what the input that passes is multiplied by with rescale; starts at √(1 + 2e^{b_r}).");
    const Var U = reshape(matmul(read, bidirectional ? slice(W, 1, own * maps, (own + H) * maps) : W), {l.steps(), l.batch(), H, maps});
    const auto map = [&](std::int64_t m) { return reshape(slice(U, -1, m, m + 1), {l.steps(), l.batch(), H}); };
    const auto half = [&](Var both, std::int64_t which) { return both ? slice(both, 0, which * out + own, which * out + own + H) : Var{}; };
    const LightReads cell = light(l, {"c", {H}, "The cell: what the forget gate keeps."}, map(0), map(1) + half(bias, 0), map(2) + half(bias, 1), half(weight_c, 0), half(weight_c, 1));
    const Var shown = h.choice("activation") == "tanh" ? tanh(cell.state) : cell.state;
    Var y = cell.reset * shown;
    const auto passes = [&] { return bidirectional ? slice(x, -1, own, own + H) : x; };
    if (skip) y = y + (1.0 - cell.reset) * (wide ? h.flag("rescale") ? passes() * scale : passes() : map(3));
    return norm == "after" && !bidirectional ? parts::layer_norm(l, "layer_norm", y) : y;
  };
  return a;
}

}  // namespace reclab::architectures
