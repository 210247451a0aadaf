// SPDX-License-Identifier: GPL-3.0-or-later
//   φ(x)_r = m^{-1/2} (e^{w_r·x̃ - |x̃|²/2 - M} + ε),  x̃ = x D^{-1/4},  r = 1..m:  the mean of φ(q)·φ(k) over Gaussian w is e^{q·k/√D}
//   S_t = S_{t-1} + φ(k_t) v_t^T,   z_t = z_{t-1} + φ(k_t),   o_t = S_t^T φ(q_t) / (φ(q_t)·z_t)
//   block: x + W_o o(norm x), x + W₂ gelu(W₁ norm x)
// K. Choromanski et al., Rethinking attention with performers, ICLR 2021. The feature maps of google-research's fast_attention.py, names
// and shapes of performer-pytorch.
#include <algorithm>
#include <cmath>
#include <tuple>

#include "array/error.h"
#include "models/parts/features.h"
#include "models/parts/parts.h"
#include "recurrence/outer/outer.h"
#include "recurrence/step/step.h"

namespace reclab::architectures {
namespace {

struct PerformerSizes {
  std::int64_t width, heads, key, features;
  bool projected;
  explicit PerformerSizes(const Hyper& h)
      : width(h.integer("width")),
        heads(h.integer("heads")),
        key(h.integer("head_dim") ? h.integer("head_dim") : width / heads),
        features(h.integer("features")),
        projected(h.choice("projection") != "none" && h.choice("kernel") != "separate") {
    if (!features)
      features = std::max<std::int64_t>(1, static_cast<std::int64_t>(static_cast<double>(key) * std::log(static_cast<double>(key))));
    if (!projected) features = key;
  }
};

}  // namespace

Architecture performer() {
  Architecture a;
  a.title = "Performer";
  a.equations = {
      "x̃ = x/D^¼ for queries and keys of each head of D entries, which rotary turns first by t·10000^(−2j/D), neighbours 2j and 2j + 1 as "
      "a pair;  w₁ … w_m: rows of projection_matrix",
      "kernel=positive: φ(x)_r = m^(−½) (exp(w_r·x̃ − |x̃|²/2 − M) + ε);  kernel=trigonometric: φ(x) = m^(−½) exp(|x̃|²/2 − M) [cos(W x̃); "
      "sin(W x̃)];  kernel=generalised: φ(x)_r = f(w_r·x̃) + ε;  kernel=separate: φ(q) = softmax of q's entries, φ(k) = exp(k)",
      "S_t = S_{t-1} + φ(k_t) v_tᵀ,  z_t = z_{t-1} + φ(k_t),  o_t = S_tᵀ φ(q_t)/(φ(q_t)·(z_t + ε_z))",
      "stabiliser=none: M = 0;  fixed: M is key_stabiliser for keys;  running: M_t = max over s ≤ t, r of w_r·k̃_s (of |k̃_s|²/2 where "
      "trigonometric) for keys, and S_t, z_t are those of M_t",
      "with fixed or running, of a query M = max over r of w_r·q̃ (|q̃|²/2 where trigonometric, so that it has no exponential)",
      "block: x ← x + W_o o(norm(x)),  x ← x + w2(gelu(w1 norm(x)))"};
  a.notes = {
      "Names and shapes are those of performer-pytorch: performer.net.layers.{n}.0 is attention here, performer.net.layers.{n}.1 "
      "feed_forward, norm of the language model final/norm. Heads are the slow part of the rows of to_q, to_k and to_v and of the columns "
      "of to_out.weight; projection_matrix is the same for all heads, a buffer in PyTorch.",
      "The reference takes M of the keys over the whole sequence, so that a step sees later ones; it cancels in o_t but for ε. running "
      "takes the largest so far and rescales what was stored, so its last output is the reference's of the sequence up to there; what ε "
      "adds to the keys is kept apart, as the sum V of all values. "
      "With fixed, put a sequence's own largest into key_stabiliser to have the reference's numbers at every step.",
      "performer-pytorch up to 0.x takes one M over all heads and sequences of a batch; google-research, and performer-pytorch since, one "
      "a head. Its later versions hold the maxima (hold_maximum); google-research's pass their slope.",
      "ε is 1e-4 in performer-pytorch and in the kernel function itself, 1e-6 through google-research's make_fast_softmax_attention, and "
      "1e-3 in both for the generalised kernel, where google-research does not divide by D^¼ (normalise_data=no) and a head without "
      "projection is its default.",
      "normaliser=guarded is google-research's, R + 2ε_z where |R| ≤ ε_z; sum adds ε_z to each entry of z, 1e-6 in later versions of "
      "performer-pytorch and 0 before. Without ε and with normaliser=none the output is the unbiased estimate of Σ exp(q·k/√D) v.",
      "The memory is updated before it is read. Nothing is forgotten: all eigenvalues are 1. Drawn anew in training there; here it is "
      "drawn once, by the seed.",
      "Entries below proj_updater are the same arrays once more. Local heads, shifted tokens and the reversible stack of performer-pytorch "
      "are not offered; its rotary positions are sines in single precision. Token and position embeddings are not part of the layer."};
  a.hyper = {
      hyper_integer("width", "d", 64, 1, 4096, "Width of the stream.", "channels"),
      hyper_integer("heads", "h", 4, 1, 64, "Heads; must divide the width where head_dim is 0."),
      hyper_integer("head_dim", "D", 0, 0, 4096, "Size of a head's queries, keys and values; 0: width/heads.", "channels"),
      hyper_integer("layers", "L", 1, 1, 64, "Blocks in a row."),
      hyper_integer("features", "m", 64, 0, 65536,
                    "Random features of a head (kernel=trigonometric has a cosine and a sine of each); 0: D log D, rounded down.",
                    "features"),
      hyper_choice("kernel", "positive", {"positive", "trigonometric", "generalised", "separate"},
                   "Which features: positive ones or waves, whose mean is the softmax kernel, any function of the projection, or without "
                   "one a softmax of each query and exponentials of keys (no_projection)."),
      hyper_choice("function", "relu", {"relu", "requ", "gelu", "exp", "elu+1", "sigmoid", "identity"}, "f of the generalised kernel."),
      hyper_choice("projection", "orthogonal", {"orthogonal", "orthogonal-root", "independent", "none"},
                   "How the rows w are drawn: orthogonal in blocks of D with the lengths of Gaussian ones, or all of length √D, or "
                   "independent; or no projection (generalised kernel alone)."),
      hyper_choice("stabiliser", "running", {"none", "fixed", "running"},
                   "What is taken from the exponents: nothing, the parameter key_stabiliser, or the largest so far."),
      hyper_flag("hold_maximum", false, "Whether the largest exponents count as constants."),
      hyper_real("feature_eps", "ε", 1e-4, 0.0, 1.0, "Added to each positive feature.", true),
      hyper_flag("rotary", false, "Whether queries and keys are turned by the position first."),
      hyper_flag("normalise_data", true, "Whether queries and keys are divided by D^¼."),
      hyper_choice("normaliser", "sum", {"sum", "guarded", "none"},
                   "What the read is divided by: the sum of its weights, that sum kept away from 0, or nothing."),
      hyper_real("sum_eps", "ε_z", 0.0, 0.0, 1.0, "Added to each entry of z, or the guard.", true),
      hyper_flag("qkv_bias", true, "Whether to_q, to_k and to_v have biases."),
      hyper_flag("out_bias", true, "Whether to_out has a bias."),
      hyper_choice("norm", "layer", {"layer", "scale"}, "The block's norm: layer norm, or x g/|x|."),
      hyper_flag("glu", false, "Whether the feed-forward part is gated: gelu of the first half of w1 times the other."),
      hyper_integer("feed_forward", "d_ff", 0, 0, 65536, "Hidden width of the feed-forward part; 0: four times the width.", "units"),
      hyper_choice("block", "residual", {"residual", "none"},
                   "The block with norms, residuals and feed-forward, or the attention with its projections alone."),
      hyper_flag("final_norm", true, "Whether a layer norm follows the last block.")};
  a.spectrum = "the transition of the memory: the identity (of S and z undivided by e^M)";
  a.source = {
      "K. Choromanski, V. Likhosherstov, D. Dohan, X. Song, A. Gane, T. Sarlos, P. Hawkins, J. Davis, A. Mohiuddin, L. Kaiser, D. "
      "Belanger, L. Colwell, A. Weller",
      "Rethinking attention with performers", "ICLR", "https://arxiv.org/abs/2009.14794", 2020};
  a.reference = {
      {"norm.*", "final/norm.*"}, {"calls_since_last_redraw", ""}, {"proj_updater.*", ""}, {"fast_attention.projection_matrix", ""}};
  for (const std::string model : {"performer.", ""})  // the language model, and the stack alone
    for (const auto& [theirs, ours] :
         {std::pair("net.layers.{n}.0.fn.*", "attention.*"), std::pair("net.layers.{n}.0.*", "attention.*"),
          std::pair("net.layers.{n}.1.fn.fn.*", "feed_forward.*"), std::pair("net.layers.{n}.1.*", "feed_forward.*")})
      a.reference.push_back({model + theirs, ours});
  a.input_width = [](const Hyper& h) { return h.integer("width"); };
  a.check = [](const Hyper& h) {
    if (!h.integer("head_dim") && h.integer("width") % h.integer("heads"))
      throw Error("performer: heads = " + h.text("heads") + " does not divide width = " + h.text("width") + ": choose a divisor.",
                  {.model = "performer", .parameter = "heads", .value = h.text("heads"), .range = "a divisor of width"});
    if (h.flag("rotary") && PerformerSizes(h).key % 2)
      throw Error("performer: rotary = true needs heads of an even size, not " + std::to_string(PerformerSizes(h).key) +
                      ": choose another width or head_dim.",
                  {.model = "performer", .parameter = "rotary", .value = "true", .range = "false"});
    if (h.choice("projection") == "none" && h.choice("kernel") != "generalised" && h.choice("kernel") != "separate")
      throw Error(
          "performer: projection = none leaves kernel = " + h.choice("kernel") +
              " without random features: choose another projection, or kernel = generalised.",
          {.model = "performer", .parameter = "projection", .value = "none", .range = "orthogonal, orthogonal-root or independent"});
  };

  a.layer = [](Layer& l, Var u) {
    const Hyper& h = l.hyper;
    const PerformerSizes s(h);
    const std::int64_t T = l.steps(), B = l.batch();
    const bool block = h.choice("block") == "residual", separate = h.choice("kernel") == "separate",
               generalised = h.choice("kernel") == "generalised", waves = h.choice("kernel") == "trigonometric";
    const std::string& stabiliser = h.choice("stabiliser");
    const double eps = h.real("feature_eps"), ratio = 1.0 / std::sqrt(static_cast<double>(s.features));
    const auto norm = [&](const std::string& name, Var x) {
      if (h.choice("norm") == "layer") return parts::layer_norm(l, name + ".norm", x);
      const Var g = l.parameter(name + ".g", {1}, init::constant(1.0), "g of the scale norm; starts at 1.");
      return x / parts::at_least(parts::length(x), 1e-5) * g;
    };
    const Var x = block ? norm("attention", u) : u;
    const auto project = [&](const std::string& which, const std::string& role) {
      return parts::by_head(l, parts::linear(l, "attention.to_" + which, x, s.heads * s.key, role + ", rows by head", h.flag("qkv_bias")),
                            s.heads);
    };
    const double scale = h.flag("normalise_data") && !separate ? std::pow(static_cast<double>(s.key), -0.25) : 1.0;
    Var q = project("q", "W_q") * scale, k = project("k", "W_k") * scale;
    const Var v = project("v", "W_v");
    if (h.flag("rotary")) {
      std::vector<double> frequencies;
      for (std::int64_t j = 0; j < s.key / 2; ++j)
        frequencies.push_back(std::pow(10000.0, -2.0 * static_cast<double>(j) / static_cast<double>(s.key)));
      const Var angles = parts::angles(l, frequencies);
      q = parts::rotated(q, angles, true);
      k = parts::rotated(k, angles, true);
    }
    const std::string& how = h.choice("projection");
    const Init start = how == "independent"
                           ? init::normal(1.0)
                           : parts::orthogonal_rows(how == "orthogonal" ? parts::RowLength::gaussian : parts::RowLength::root);
    const Var W = s.projected ? l.parameter("attention.fast_attention.projection_matrix", {s.features, s.key}, start,
                                            "The rows w, the same for all heads, a buffer in PyTorch; drawn as projection says.")
                              : Var{};
    const std::string memory = "The sum of φ(k) vᵀ of each head, [feature, value]", sums = "The sum of φ(k) of each head: the normaliser",
                      divided = "; with a running stabiliser divided by e^m and without ε.";
    const auto total = [](Var features) { return mean_keep(features, -1) * static_cast<double>(features.dim(-1)); };

    const auto with_function = [&] {
      const auto features = [&](Var y) { return parts::entrywise(h.choice("function"), W ? linear(y, W) : y) + eps; };
      const auto softmax = [&](Var y) {
        const Var raised = exp(y - detach(parts::largest(y)));
        return raised / total(raised);
      };
      const Var of_q = separate ? softmax(q) : features(q);
      const auto made = parts::linear_read(l, of_q, separate ? exp(k) : features(k), v, memory + ".", sums + ".");
      return std::tuple(made.read, made.weight, total(of_q));
    };
    const auto with_softmax = [&] {
      const auto half = [](Var y) { return parts::squared_norm(y) * 0.5; };
      // Where nothing is added to features or to their sums, the stabiliser cancels: detached, it leaves the gradients unchanged.
      const bool cancels = h.choice("normaliser") == "sum" && h.real("sum_eps") == 0.0 && (waves || eps == 0.0);
      const auto hold = [&](Var y) { return cancels || h.flag("hold_maximum") ? detach(y) : y; };
      // The exponents without the squares that all features share. A stabiliser is the largest of them.
      const Var of_q = waves ? Var{} : linear(q, W), of_k = waves ? half(k) : linear(k, W);
      Var M, kept;
      if (stabiliser == "fixed") {
        M = reshape(
            l.parameter("attention.key_stabiliser", {s.heads}, init::constant(0.0), "M of the keys of each head, ours; starts at 0."),
            {1, 1, s.heads, 1});
      } else if (stabiliser == "running") {
        const Var most = hold(reshape(parts::largest(of_k), {T, B, s.heads}));
        const Var m = step(
            l, {{"m", {s.heads}, "The largest exponent of all keys so far, which S and z are divided by.", true, -1e30}}, {most},
            [](Cell&, std::span<const Var> now, std::span<const Var> before) { return std::vector<Var>{maximum(before[0], now[0])}; },
            Sees::own_entry)[0];
        // Before the first step nothing is stored, so nothing is rescaled.
        kept = reshape((hold(l.previous_state(m)) - hold(m)) * sign(l.position()), {T, B, s.heads, 1});
        M = reshape(hold(m), {T, B, s.heads, 1});
      }
      const Var in_k = waves ? of_k : of_k - half(k), powers = M ? in_k - M : in_k;
      Var features_q, features_k;
      if (waves) {
        features_q = parts::waves(q, W, false) * ratio;
        if (stabiliser == "none") features_q = features_q * exp(half(q));
        features_k = parts::waves(k, W, false) * exp(powers) * ratio;
      } else {
        const Var in_q = of_q - half(q);
        features_q = (exp(stabiliser == "none" ? in_q : in_q - hold(parts::largest(of_q))) + eps) * ratio;
        features_k = (kept ? exp(powers) : exp(powers) + eps) * ratio;
      }
      const Var shown = kept ? u.graph->constant({s.heads}, std::vector<double>(static_cast<std::size_t>(s.heads), 1.0)) : Var{};
      auto [read, weight] = parts::linear_read(l, features_q, features_k, v, memory + divided, sums + divided, kept, shown);
      if (kept && !waves && eps > 0.0) {
        const Var one = affine(slice(v, -1, 0, 1), 0.0, 1.0), of_eps = total(features_q) * (ratio * eps);
        read = read + outer(l, {"V", {s.heads, s.key}, "The sum of all values of each head, which ε multiplies."}, {one, one, v}) * of_eps;
        weight = weight + reshape(l.position() + 1.0, {T, B, 1, 1}) * of_eps;
      }
      return std::tuple(read, weight, total(features_q));
    };
    auto [o, weight, of_query] = generalised || separate ? with_function() : with_softmax();
    if (h.choice("normaliser") == "sum") o = o / (weight + of_query * h.real("sum_eps"));
    if (h.choice("normaliser") == "guarded")
      o = o / (weight + (1.0 - relu(sign(abs(weight) - h.real("sum_eps")))) * (2.0 * h.real("sum_eps")));
    const Var y = parts::linear(l, "attention.to_out", parts::flat(l, o), s.width, "W_o, columns by head", h.flag("out_bias"));
    if (!block) return y;
    const Var after = u + y;
    const std::int64_t F = h.integer("feed_forward") ? h.integer("feed_forward") : 4 * s.width;
    Var hidden = parts::linear(l, "feed_forward.w1", norm("feed_forward", after), h.flag("glu") ? 2 * F : F,
                               h.flag("glu") ? "w1, rows of what is activated, then of what it multiplies" : "w1");
    if (h.flag("glu")) {
      const auto both = reclab::split(hidden, -1, 2);
      hidden = gelu(both[0]) * both[1];
    } else {
      hidden = gelu(hidden);
    }
    return after + parts::linear(l, "feed_forward.w2", hidden, s.width, "w2");
  };
  a.final_layer = [](Layer& l, Var x) {
    return l.hyper.choice("block") == "none" || !l.hyper.flag("final_norm") ? x : parts::layer_norm(l, "norm", x);
  };
  return a;
}

}  // namespace reclab::architectures
