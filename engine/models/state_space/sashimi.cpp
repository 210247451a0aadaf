// SPDX-License-Identifier: GPL-3.0-or-later
//   down:   x^l = W (x^{l-1}_{kp}, …, x^{l-1}_{kp+p-1}) + b, p steps of rate l-1 to one of rate l, E times as wide
//   blocks at each rate: u ← u + S4(norm u), u ← u + W₂ gelu(W₁ norm u)
//   up:     x^{l-1}_{kp+j} + the part j of W x^l_{k-1} + b: one step of rate l later, when all of its window has been read
// K. Goel, A. Gu, C. Donahue, C. Ré, It's raw! Audio generation with state-space models, ICML 2022.
// Names and conventions of state-spaces/s4: models/sashimi/sashimi.py, and the full code's backbones/sashimi.py with modules/pool.py.
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "array/error.h"
#include "models/parts/layers/low_rank_layer.h"
#include "models/parts/parts.h"
#include "recurrence/pooling/pooling.h"

namespace reclab::architectures {

Architecture s4d();

namespace {

/// S4D has a row `code` of its own: its blocks are told apart by `around`.
bool is_full(const Hyper& h) { return h.choice(h.has("around") ? "around" : "code") == "full"; }

/// W x + b over channels, as the standalone code keeps it, a convolution of one tap.
Var mapped(Layer& l, const std::string& name, Var x, std::int64_t out, const std::string& role) {
  const std::int64_t in = x.dim(-1);
  const Init start = parts::torch_uniform(in);
  if (is_full(l.hyper)) return parts::linear(l, name, x, out, role);
  const Var W = l.parameter(name + ".weight", {out, in, 1}, start, role + "; starts uniform in ±1/√in, as its bias.");
  return reclab::linear(x, reshape(W, {out, in}), l.parameter(name + ".bias", {out}, start, "The bias of " + name + "."));
}

/// The map of a pooling stage, and what may follow it.
Var of_stage(Layer& l, Var x, std::int64_t out, const std::string& role) {
  const std::string& act = l.hyper.choice("act_pool");
  const std::int64_t made = act == "glu" ? 2 * out : out;
  const Init start = parts::torch_uniform(x.dim(-1));
  const Var y = is_full(l.hyper) ? parts::weight_normed(l, "linear", x, made, {start, start, role, "starts uniform in ±1/√in"})
                                 : mapped(l, "linear", x, made, role);
  if (act != "glu") return parts::activation(act, y);
  const auto halves = split(y, -1, 2);
  return halves[0] * sigmoid(halves[1]);
}

/// The norm of a block: a layer norm, or the full code's for transposed arrays, whose scale and shift are one number each and which has no
/// epsilon.
Var normed(Layer& l, Var x) {
  if (!is_full(l.hyper) || !l.hyper.flag("transposed")) return parts::layer_norm(l, "norm", x);
  const Var m = l.parameter("norm.m", {1}, init::constant(0.0), "What is added to the channels less their mean; starts at 0.");
  const Var s = l.parameter("norm.s", {1}, init::constant(1.0), "The deviation that the norm gives them; starts at 1.");
  const Var centred = x - mean_keep(x, -1);
  return (centred + m) * s / sqrt(mean_keep(square(centred), -1));
}

/// x + f(norm x), or norm(x + f(x)).
template <class F>
Var residual(Layer& l, Var x, F&& f) {
  if (l.hyper.flag("prenorm")) return x + f(normed(l, x));
  const Var sum = x + f(x);
  return normed(l, sum);
}

std::vector<HyperSpec> common_rows() {
  return {hyper_choice("code", "standalone", {"standalone", "full"},
                       "Whose parameters: standalone keeps maps as convolutions of one tap, [out, in, 1]; full has no tap, weight norm in "
                       "the pooling stages and, with transposed, block norms with one scale and one shift."),
          hyper_flag("transposed", true,
                     "Of the full code: whether its blocks have the norm of arrays that are kept transposed, (x − mean + m) s/deviation."),
          hyper_flag("prenorm", true, "Whether the norm of a block comes before its layer (after the residual otherwise)."),
          hyper_choice("act_pool", "none", {"none", "gelu", "relu", "tanh", "elu", "silu", "sigmoid", "softplus", "glu"},
                       "What follows the map of a pooling stage.")};
}
std::vector<HyperSpec> rows_of_layer(std::vector<HyperSpec> own) {
  for (HyperSpec& row : common_rows()) own.push_back(std::move(row));
  return own;
}
/// The names of a layer's own parameters in the reference, and those of what any of them may have: its norm, and the norm after the last
/// layer.
std::vector<ReferenceName> with_norms(std::vector<ReferenceName> own) {
  for (const ReferenceName& row :
       {ReferenceName{"{path}.norm.*", "norm.*"}, ReferenceName{"{path}.norm.norm.*", "norm.*"}, ReferenceName{"norm.*", "final/norm.*"}})
    own.push_back(row);
  return own;
}

bool is_diagonal(const Hyper& h) { return h.choice("mode") == "diag"; }

/// The rows of S4's own layer that are asked for here, and those that S4D's has beside them.
std::vector<HyperSpec> system_rows() {
  std::vector<HyperSpec> rows = parts::low_rank_layer_hyper(false);
  const std::vector<HyperSpec> of_diagonal = s4d().hyper;
  for (const char* key : {"discretisation", "imag_transform", "dt_fast", "bandlimit", "B_init"}) {
    rows.push_back(*std::ranges::find(of_diagonal, key, &HyperSpec::key));
    rows.back().text = "Of mode = diag: " + rows.back().text;
  }
  for (HyperSpec& row : rows) {
    if (row.key == "init") {
      for (const char* more : {"lin", "inv", "inv2", "quad", "real", "rand"}) row.choices.push_back(more);
      row.text =
          "What A and B start as: the measure legs, legt, lagt or fourier of HiPPO (see s4), with mode = diag legs or one of the others "
          "(see s4d).";
    }
  }
  std::erase_if(rows, [](const HyperSpec& row) {
    return row.key == "width" || row.key == "layers" || row.key == "output" || row.key == "block" || row.key == "prenorm";
  });
  for (HyperSpec& row : rows) {
    if (row.key == "state") row.standard = std::int64_t{16};
    if (row.key == "l_kernel")
      row.text =
          "Length that the reference's kernels were made for at the rate of the sequence, where C is its C̃; at slower rates it is divided "
          "by their steps; 0: C is the readout itself.";
  }
  return rows;
}

const Architecture& s4_layer() {
  static const Architecture made = [] {
    Architecture a;
    parts::make_low_rank_layer(a, {.id = "sashimi", .read = parts::low_rank_modes});
    return a;
  }();
  return made;
}

const Architecture& s4_block() {
  static const Architecture made = [] {
    Architecture a;
    a.id = "s4";
    a.hyper = rows_of_layer(parts::low_rank_layer_hyper(false));
    std::erase_if(a.hyper, [](const HyperSpec& row) { return row.key == "prenorm"; });
    for (const HyperSpec& row : common_rows())
      if (row.key == "prenorm") a.hyper.push_back(row);
    a.spectrum = "eigenvalues of the discretised transition Ā of every channel, all N of them, the same at every step of the layer";
    a.reference = with_norms({{"{path}.layer.layer.kernel.l_kernel", ""},
                              {"{path}.layer.kernel.kernel.l_kernel", ""},
                              {"kernel.l_kernel", ""},
                              {"{path}.layer.layer.kernel.*", "*"},
                              {"{path}.layer.layer.D", "D"},
                              {"{path}.layer.kernel.kernel.*", "*"},
                              {"{path}.layer.D", "D"},
                              {"{path}.layer.output_linear.0.*", "output_linear.*"}});
    // Run both ways the residual is that of both together.
    a.layer = [](Layer& l, Var x) {
      if (l.hyper.flag("bidirectional")) return s4_layer().layer(l, l.hyper.flag("prenorm") ? normed(l, x) : x);
      return residual(l, x, [&](Var u) { return s4_layer().layer(l, u); });
    };
    a.joint = s4_layer().joint;
    a.joined = [](Layer& l, Var below, Var forward, Var backward) {
      return residual(l, below, [&](Var u) { return s4_layer().joined(l, u, forward, backward); });
    };
    return a;
  }();
  return made;
}

const Architecture& s4d_layer() {
  static const Architecture made = s4d();
  return made;
}

const Architecture& s4d_block() {
  static const Architecture made = [] {
    Architecture a = s4_block();
    a.id = "s4d";
    a.hyper = s4d_layer().hyper;
    for (HyperSpec row : common_rows()) {
      if (row.key == "prenorm") continue;
      if (row.key == "code") row.key = "around";
      a.hyper.push_back(row);
    }
    a.spectrum = "the discretised transition Ā of every channel (one of each conjugate pair), the same at every step of the layer";
    a.layer = [](Layer& l, Var x) {
      if (l.hyper.flag("bidirectional")) return s4d_layer().layer(l, l.hyper.flag("prenorm") ? normed(l, x) : x);
      return residual(l, x, [&](Var u) { return s4d_layer().layer(l, u); });
    };
    a.joint = s4d_layer().joint;
    a.joined = [](Layer& l, Var below, Var forward, Var backward) {
      return residual(l, below, [&](Var u) { return s4d_layer().joined(l, u, forward, backward); });
    };
    return a;
  }();
  return made;
}

const Architecture& feed_forward() {
  static const Architecture made = [] {
    Architecture a;
    a.id = "feed-forward";
    a.hyper = rows_of_layer({hyper_integer("ff", "", 2, 1, 64, "")});
    a.spectrum = "none: a feed-forward block carries nothing from step to step";
    a.reference = with_norms({{"{path}.layer.ff.0.0.*", "ff.0.*"}, {"{path}.layer.ff.2.*", "ff.2.*"}});
    a.layer = [](Layer& l, Var x) {
      return residual(l, x, [&](Var u) {
        return mapped(l, "ff.2", gelu(mapped(l, "ff.0", u, l.hyper.integer("ff") * x.dim(-1), "W₁ of the feed-forward block")), x.dim(-1),
                      "W₂ of the feed-forward block");
      });
    };
    return a;
  }();
  return made;
}

Architecture stage(const char* id) {
  Architecture a;
  a.id = id;
  a.hyper = rows_of_layer({hyper_integer("pool", "", 4, 1, 32, ""), hyper_integer("out", "", 1, 1, 1 << 30, "")});
  a.spectrum = "none: a pooling stage waits for its window and holds its value, and no matrix takes one state to the next";
  a.reference = with_norms({{"{path}.linear.*", "linear.*"}, {"{path}.linear.0.*", "linear.*"}});
  return a;
}
const Architecture& down_pool() {
  static const Architecture made = [] {
    Architecture a = stage("down-pool");
    a.layer = [](Layer& l, Var x) {
      return of_stage(l, pooled(l, x, l.hyper.integer("pool")), l.hyper.integer("out"),
                      "The map of a window's steps to one, column h p + j channel h of step j");
    };
    return a;
  }();
  return made;
}
const Architecture& up_pool() {
  static const Architecture made = [] {
    Architecture a = stage("up-pool");
    a.layer = [](Layer& l, Var x) {
      const std::int64_t p = l.hyper.integer("pool");
      return expanded(
          l, of_stage(l, x, l.hyper.integer("out") * p, "The map of a step to the p that follow, row h p + j channel h of step j"), p);
    };
    return a;
  }();
  return made;
}

std::vector<std::int64_t> pools(const Hyper& h) {
  std::vector<std::int64_t> found;
  for (const char* key : {"pool1", "pool2", "pool3", "pool4"})
    if (const std::int64_t p = h.integer(key)) found.push_back(p);
  return found;
}

/// The values of one of the parts, from all that it shares with the whole.
Hyper hyper_of(const Hyper& h, const Architecture& part, const std::vector<std::pair<const char*, HyperValue>>& own) {
  Hyper values(part.hyper);
  for (const HyperSpec& row : part.hyper)
    if (h.has(row.key) && std::ranges::none_of(own, [&](const auto& one) { return row.key == one.first; }))
      values.set(row.key, h.value(row.key), "sashimi");
  for (const auto& [key, value] : own) values.set(key, value, "sashimi");
  return values;
}
Hyper hyper_of_s4(const Hyper& h, std::int64_t width, std::int64_t stride) {
  const std::string none = "none", glu = "glu", full = "full";
  if (is_diagonal(h))
    return hyper_of(
        h, s4d_block(),
        {{"width", width}, {"layers", std::int64_t{1}}, {"block", none}, {"output", glu}, {"code", full}, {"around", h.choice("code")}});
  return hyper_of(
      h, s4_block(),
      {{"width", width}, {"layers", std::int64_t{1}}, {"block", none}, {"output", glu}, {"l_kernel", h.integer("l_kernel") / stride}});
}

/// The layers of the reference in its order, on the way down, in the middle and up again.
Var body(Body& b, Var x) {
  const Hyper& h = b.hyper;
  const std::int64_t blocks = h.integer("n_layers"), expand = h.integer("expand"), ff = h.integer("ff");
  const bool unet = h.flag("unet");
  std::int64_t width = h.integer("width"), stride = 1;
  std::vector<Var> skips{x};
  /// The blocks of a rate; `after` sees what each of them made.
  const auto run_blocks = [&](const std::string& path, std::int64_t number, const auto& after) {
    for (std::int64_t i = 0; i < blocks; ++i) {
      x = b.layer({is_diagonal(h) ? &s4d_block() : &s4_block(), hyper_of_s4(h, width, stride)}, stride, path + std::to_string(number++), x);
      after();
      if (!ff) continue;
      x = b.layer({&feed_forward(), hyper_of(h, feed_forward(), {})}, stride, path + std::to_string(number++), x);
      after();
    }
    return number;
  };
  const auto skip = [&] {
    x = x + skips.back();
    skips.pop_back();
  };
  const std::vector<std::int64_t> stages = pools(h);
  std::int64_t number = 0;
  for (const std::int64_t p : stages) {
    if (unet) number = run_blocks("d_layers.", number, [&] { skips.push_back(x); });
    x = b.layer({&down_pool(), hyper_of(h, down_pool(), {{"pool", p}, {"out", width * expand}})}, stride,
                "d_layers." + std::to_string(number++), x);
    skips.push_back(x);
    width *= expand;
    stride *= p;
  }
  run_blocks("c_layers.", 0, [] {});
  skip();
  for (std::size_t i = 0; i < stages.size(); ++i) {
    const std::int64_t p = stages[stages.size() - 1 - i];
    const std::string path = "u_layers." + std::to_string(i) + ".";
    width /= expand;
    stride /= p;
    x = b.layer({&up_pool(), hyper_of(h, up_pool(), {{"pool", p}, {"out", width}})}, stride, path + "0", x);
    skip();
    if (unet) {
      run_blocks(path, 1, skip);
    } else {
      skips.push_back(x);
      run_blocks(path, 1, [] {});
      skip();
    }
  }
  return x;
}

}  // namespace

Architecture sashimi() {
  Architecture a;
  a.title = "SaShiMi";
  a.equations = {"rate 0 is that of the sequence; pool1, pool2, … steps of a rate make one step of the next, which is E times as wide",
                 "down: x_k = W (u_{kp}, …, u_{kp+p−1}) + b",
                 "blocks: u ← u + S4(norm u), u ← u + W₂ gelu(W₁ norm u), at the slowest rate and, after each way up, at that rate (unet: "
                 "before each way down too)",
                 "up: y_{kp+j} = part j of W x_{k−1} + b, one step of the slower rate later, so that nothing is read before it is there",
                 "skips: the slowest rate adds what it was given, each rate on the way up adds what was there on the way down and what its "
                 "own blocks were given; at the end norm(u)",
                 "S4: h_k = Ā h_{k−1} + B̄ u_k, v = W gelu(2 Re(C h_k) + D u_k) + b, out = v₁ ⊙ σ(v₂), A = Λ − P P* with Re Λ < 0 (see s4)"};
  a.notes = {
      "Names and shapes are those of the reference's parts without layer. and kernel.: of a pooling stage linear, of a feed-forward block "
      "norm, ff.0 and ff.2, of an S4 block norm and those of s4; output_linear and ff.0 are without .0. Layers are numbered in the order "
      "of d_layers, c_layers and u_layers, and final/norm comes last.",
      "A layer at a slower rate has a step when the last of its steps of the sequence has come. Its rows in a run are those of the "
      "sequence: its states and gates stand still in between, and before its first step are 0. Its spectrum is that of one step of its "
      "own, and ds_T/ds_t is made of the steps that there were.",
      "The states inputs and held of the pooling stages are the steps that wait and what was made of the last that went: a run may be cut "
      "anywhere.",
      "The reference asks for a length that is a multiple of all pooling factors. Here the steps after the last whole window are read at "
      "the rates that they have reached, as the reference's own steps do.",
      "A pooling factor of 1 keeps the rate and shifts by one step all the same, as the reference's does; 0 leaves the stage out.",
      "bidirectional: S4 blocks read what is still to come too (see s4); the pooling stages stay as they are.",
      "unet: a skip ends at each layer on the way up.",
      "n_ssm, dt_min, dt_max and the other hyper-parameters of s4 are those of all rates.",
      "mode = diag: the blocks' systems are those of s4d, code=full; rank, low_rank, l_kernel and B_clip are then of no use, and of mode = "
      "dplr are discretisation, imag_transform, dt_fast, bandlimit and B_init.",
      "Of the full code residual = R and norm = layer are here; center_layer and interp are not. Dropout does nothing in a run."};
  a.hyper = {hyper_integer("width", "H", 16, 1, 4096, "Width at the rate of the sequence.", "channels"),
             hyper_integer("n_layers", "L", 1, 1, 64, "S4 blocks at each rate, each with a feed-forward block."),
             hyper_integer("pool1", "p₁", 4, 0, 32, "How many steps the first pooling stage makes one; 0: there is none.", "steps"),
             hyper_integer("pool2", "p₂", 4, 0, 32, "Likewise of the second, which begins at the first one's rate.", "steps"),
             hyper_integer("pool3", "p₃", 0, 0, 32, "Of the third.", "steps"),
             hyper_integer("pool4", "p₄", 0, 0, 32, "Of the fourth.", "steps"),
             hyper_integer("expand", "E", 2, 1, 16, "How many times as wide each slower rate is."),
             hyper_integer("ff", "", 2, 0, 16, "How many times as wide as its block a feed-forward block is inside; 0: there are none."),
             hyper_flag("unet", false, "Blocks before each pooling stage too, and a skip for each layer.")};
  a.hyper.push_back(
      hyper_choice("mode", "dplr", {"dplr", "diag"},
                   "The systems of its S4 blocks: diagonal plus low rank, those of s4, or diagonal, those of s4d with code = full."));
  for (HyperSpec& row : system_rows()) a.hyper.push_back(std::move(row));
  for (HyperSpec& row : common_rows()) a.hyper.push_back(std::move(row));
  a.spectrum = s4_block().spectrum;
  a.source = {"K. Goel, A. Gu, C. Donahue, C. Ré", "It's raw! Audio generation with state-space models", "ICML",
              "https://arxiv.org/abs/2202.09729", 2022};
  a.input_width = [](const Hyper& h) { return h.integer("width"); };
  a.check = [](const Hyper& h) {
    if (h.flag("bidirectional") && h.has("direction") && h.choice("direction") != "forward")
      throw Error("sashimi: its S4 blocks run in both directions as it is set, and direction = " + h.choice("direction") +
                      ": choose direction=forward.",
                  {.model = "sashimi", .parameter = "direction", .value = h.choice("direction"), .range = "forward"});
    std::int64_t stride = 1;
    double width = static_cast<double>(h.integer("width"));
    for (const std::int64_t p : pools(h)) {
      stride *= p;
      width *= static_cast<double>(h.integer("expand"));
    }
    if (width > 4096.0)
      throw Error("sashimi: width = " + h.text("width") + " would be " + std::to_string(static_cast<std::int64_t>(width)) +
                      " at the slowest rate: choose one that is at most 4096 there.",
                  {.model = "sashimi", .parameter = "width", .value = h.text("width"), .range = "at most 4096 at the slowest rate"});
    if (h.integer("l_kernel") % stride)
      throw Error(
          "sashimi: l_kernel = " + h.text("l_kernel") + " is not a multiple of the " + std::to_string(stride) +
              " steps of the slowest rate: choose one that is, or 0.",
          {.model = "sashimi", .parameter = "l_kernel", .value = h.text("l_kernel"), .range = "a multiple of " + std::to_string(stride)});
    const std::string& init = h.choice("init");
    const bool of_HiPPO = init == "legs" || init == "legt" || init == "lagt" || init == "fourier";
    if (is_diagonal(h) ? of_HiPPO && init != "legs" : !of_HiPPO)
      throw Error("sashimi: init = " + init + " is none of mode = " + h.choice("mode") + ": choose " +
                      (is_diagonal(h) ? "legs, lin, inv, inv2, quad, real or rand." : "legs, legt, lagt or fourier."),
                  {.model = "sashimi",
                   .parameter = "init",
                   .value = init,
                   .range = is_diagonal(h) ? "legs, lin, inv, inv2, quad, real, rand" : "legs, legt, lagt, fourier"});
    (is_diagonal(h) ? s4d_layer() : s4_layer()).check(hyper_of_s4(h, h.integer("width"), 1));
  };
  a.period = [](const Hyper& h) {
    std::int64_t period = 1;
    for (const std::int64_t p : pools(h)) period *= p;
    return period;
  };
  a.body = body;
  a.finish = [](Layer& l, Var x) { return parts::layer_norm(l, "norm", x); };
  return a;
}

}  // namespace reclab::architectures
