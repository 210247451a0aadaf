// SPDX-License-Identifier: GPL-3.0-or-later
//   x_t = Ā x_{t-1} + B̄ u_t, y_t = C x_t + D u_t for each channel, read out M times; Ā = (1 - Δ/2 A)⁻¹(1 + Δ/2 A), B̄ = (1 - Δ/2 A)⁻¹ Δ B
//   layer: W f(y) + b over all channels and reads, block: u + layer(norm(u)), or norm(u + layer(u))
// A. Gu, I. Johnson, K. Goel, K. Saab, T. Dao, A. Rudra, C. Ré, Combining recurrent, convolutional, and continuous-time models with linear
// state-space layers, NeurIPS 2021. Names and conventions of state-spaces/s4 (modules/lssl.py, hippo/transition.py).
#include <cmath>
#include <string>

#include "array/error.h"
#include "autodiff/inverse.h"
#include "models/architecture.h"
#include "models/parts/layers/modal_filter.h"
#include "models/parts/matrices.h"
#include "models/parts/parts.h"
#include "recurrence/flow.h"
#include "recurrence/linear/linear.h"

namespace reclab::architectures {
namespace {

struct Continuous {
  Var A, B;  // [N, N] and [N], or one of each a channel
};

/// Of what a parameter is made at the start: a number for each entry of its last axis, plus normal noise.
Init along(std::int64_t n, const std::function<double(std::int64_t)>& value, double noise = 0.0) {
  return init::each([=](Rng& rng, std::int64_t i) {
    const double start = value(i % n);
    return noise > 0.0 ? start + noise * rng.normal() : start;
  });
}
Init all(double value) { return init::constant(value); }

/// A = -diag(pl) (T⁻¹ + diag(c)) diag(pr), B = pl b, T tridiagonal: dl below, d on and du above its diagonal.
Continuous tridiagonal(Layer& l, std::int64_t N, const Shape& of_channels) {
  const std::string& measure = l.hyper.choice("measure");
  const auto shape = [&](std::int64_t n) {
    Shape all_axes = of_channels;
    all_axes.push_back(n);
    return all_axes;
  };
  const bool legs = measure == "legs", legt = measure == "legt", jac = measure == "jac", cheb = measure == "cheb" || measure == "chebii";
  const std::int64_t scale = l.hyper.integer("diag_scale"), corners = l.hyper.integer("corners");
  const bool diag_add = l.hyper.flag("diag_add"), halve = l.hyper.flag("halve"), double_B = l.hyper.flag("double_B"), even = legt || cheb;
  const auto root = [=](std::int64_t i) {
    const double n = static_cast<double>(i);
    if (legt) return std::sqrt(2.0 * n + 1.0);
    if (jac) return std::sqrt(2.0 * n + 2.0);
    if (legs) return scale == 2 ? std::sqrt(2.0 * n + 1.0) : scale == 1 ? std::sqrt(n + 1.0) : 1.0;
    return 1.0;
  };
  const auto inside = [N](double value) { return along(N + 1, [=](std::int64_t i) { return i == 0 || i == N ? 0.0 : value; }); };
  const Var dl = l.parameter("transition.dl", shape(N + 1), inside(even ? -0.5 : -1.0),
                             "Below T's diagonal: entry i stands in row i, those at both ends nowhere; starts as the measure's.");
  const Var d =
      l.parameter("transition.d", shape(N),
                  along(
                      N,
                      [=](std::int64_t i) {
                        return !even ? 1.0 : legt ? (i == 0 && corners % 2 ? 0.5 : 0.0) + (i == N - 1 && corners / 2 ? 0.5 : 0.0) : 0.0;
                      },
                      legt   ? 1e-2
                      : cheb ? 1e-3
                             : 0.0),
                  std::string("T's diagonal; starts as the measure's") + (legt   ? ", plus N(0, 0.01²)."
                                                                          : cheb ? ", plus N(0, 0.001²)."
                                                                                 : "."));
  const Var du = l.parameter("transition.du", shape(N + 1), inside(even ? 0.5 : 0.0),
                             "Above T's diagonal: entry i + 1 stands in row i; starts as the measure's.");
  const Var pl = l.parameter("transition.pl", shape(N), along(N, root), "Scales of A's rows and of B; starts as the measure's.");
  const Var pr = l.parameter("transition.pr", shape(N), along(N, root), "Scales of A's columns; starts as the measure's.");
  const Var c = l.parameter("transition.c", shape(N),
                            along(N,
                                  [=](std::int64_t i) {
                                    const double n = static_cast<double>(i);
                                    if (legs) return diag_add ? -n / (2.0 * n + 1.0) : -0.5;
                                    return measure == "lagt" || (jac && halve) ? -0.5 : 0.0;
                                  }),
                            "What is added to T⁻¹ on the diagonal; starts as the measure's.");
  const Var b = l.parameter("transition.b", shape(N), all(jac && double_B ? 2.0 : 1.0), "B over pl; starts as the measure's.");

  std::vector<double> below(static_cast<std::size_t>(N * N), 0.0), above = below;
  for (std::int64_t i = 1; i < N; ++i)
    below[static_cast<std::size_t>(i * N + i - 1)] = above[static_cast<std::size_t>((i - 1) * N + i)] = 1.0;
  const Var one = parts::identity(l.graph(), N);
  const auto column = [&](Var v) {
    Shape as = v.shape();
    as.push_back(1);
    return reshape(v, as);
  };
  const auto row = [&](Var v) {
    Shape as = v.shape();
    as.insert(as.end() - 1, 1);
    return reshape(v, as);
  };
  const Var T = column(d) * one + column(slice(dl, -1, 0, N)) * l.graph().constant({N, N}, below) +
                column(slice(du, -1, 1, N + 1)) * l.graph().constant({N, N}, above);
  return {-(column(pl) * (matrix_inverse(T) + column(c) * one) * row(pr)), pl * b};
}

/// A = -diag(c) L diag(c)⁻¹, L_ij = a_(i-j) from the diagonal down, B = c b.
Continuous toeplitz(Layer& l, std::int64_t N, const Shape& of_channels) {
  Shape shape = of_channels;
  shape.push_back(N);
  const bool generalised = l.hyper.choice("measure") == "glagt";
  const double alpha = generalised ? l.hyper.real("alpha") : 0.0, beta = generalised ? l.hyper.real("beta") : 0.0;
  const Var a = l.parameter("transition.a", shape, along(N, [=](std::int64_t i) { return i ? 1.0 : 0.5 * (1.0 + beta); }),
                            "A's diagonals, from the main one down; starts as the measure's.");
  const Var c = l.parameter("transition.c", shape,
                            along(N,
                                  [=](std::int64_t i) {
                                    const double n = static_cast<double>(i);
                                    return generalised ? std::exp(-0.5 * (std::lgamma(n + alpha + 1.0) - std::lgamma(n + 1.0))) : 1.0;
                                  }),
                            "The basis' scales; starts as the measure's.");
  const Var b = l.parameter("transition.b", shape,
                            along(N,
                                  [=](std::int64_t i) {
                                    const double n = static_cast<double>(i);
                                    if (!generalised) return 1.0;
                                    return std::exp(std::lgamma(alpha + n + 1.0) - std::lgamma(n + 1.0) - std::lgamma(alpha + 1.0) -
                                                    0.5 * std::lgamma(1.0 - alpha)) *
                                           std::pow(beta, 0.5 * (1.0 - alpha));
                                  }),
                            "B over c; starts as the measure's.");
  // Rows of N copies of (a, 0), read with a row length of one less, begin one entry further to the right each.
  const std::int64_t copies = count(shape) / N;
  const Var zeros = l.graph().constant({copies, N}, std::vector<double>(static_cast<std::size_t>(copies * N), 0.0));
  const Var parts[] = {reshape(a, {copies, N}), zeros};
  const Var ones = l.graph().constant({1, N, 1}, std::vector<double>(static_cast<std::size_t>(N), 1.0));
  const Var repeated = reshape(reshape(concat(parts, -1), {copies, 1, 2 * N}) * ones, {copies, 2 * N * N});
  const Var lower = transpose(slice(reshape(slice(repeated, -1, 0, N * (2 * N - 1)), {copies, N, 2 * N - 1}), -1, 0, N));
  const Var scales = reshape(c, {copies, N});
  const Var A = -(reshape(scales, {copies, N, 1}) * lower * reshape(reciprocal(scales), {copies, 1, N}));
  return {of_channels.empty() ? reshape(A, {N, N}) : A, c * b};
}

Continuous system(Layer& l, std::int64_t N, const Shape& of_channels) {
  const std::string& measure = l.hyper.choice("measure");
  if (measure == "random") {
    Shape matrix = of_channels, vector = of_channels;
    matrix.insert(matrix.end(), {N, N});
    vector.push_back(N);
    const Var A = l.parameter("transition.a", matrix, init::normal(1.0 / static_cast<double>(N)), "A; starts N(0, 1/N²).");
    return {A, l.parameter("transition.b", vector, all(1.0), "B; starts at 1.")};
  }
  if (measure == "lagt" && l.hyper.choice("learn") == "0") {  // A = -(L + a), L of ones from the diagonal down
    std::vector<double> L;
    for (std::int64_t i = 0; i < N * N; ++i) L.push_back(i / N >= i % N ? 1.0 : 0.0);
    const Var shift = l.parameter("transition.a", {}, all(-0.5), "What is added to A's diagonal of −1, less its sign; starts at −½.");
    const Var b = l.parameter("transition.b", {}, all(l.hyper.real("beta")), "Every entry of B; starts at beta.");
    return {-(l.graph().constant({N, N}, std::move(L)) + parts::identity(l.graph(), N) * shift),
            l.graph().constant({N}, std::vector<double>(static_cast<std::size_t>(N), 1.0)) * b};
  }
  return measure == "glagt" || measure == "toep" ? toeplitz(l, N, of_channels) : tridiagonal(l, N, of_channels);
}

}  // namespace

Architecture lssl() {
  Architecture a;
  a.title = "LSSL";
  a.equations = {"x_t = Ā x_{t-1} + B̄ u_t,  y_t,m = C_m x_t + D_m u_t + E_m,  for each channel, m = 1 … M",
                 "Ā = (1 − αΔA)⁻¹ (1 + (1 − α)ΔA), B̄ = (1 − αΔA)⁻¹ ΔB, Δ = exp(log_dt) of each channel, α = ½",
                 "legs, legt, lagt, cheb, chebii, jac: A = −diag(pl)(T⁻¹ + diag(c))diag(pr), B = pl ⊙ b, T tridiagonal: dl, d, du",
                 "glagt, toep: A = −diag(c) L diag(c)⁻¹, L_ij = a_(i−j) for i ≥ j, B = c ⊙ b;  random: A = a, B = b",
                 "layer: W f([y_1; …; y_M]) + b"};
  a.notes = {
      "Names and shapes are those of the reference's Platypus (modules/lssl.py); y counts channel by channel, then read by read. Block and "
      "norm "
      "are the network's round it.",
      "dl and du have N + 1 entries, as in the reference, of which the first and the last stand nowhere: row i of T has dl_i, d_i, "
      "du_(i+1).",
      "learn: 0 and 1 share A and B among the channels, 2 has one of each a channel. With 0 the reference keeps them, and log_dt unless "
      "dt.learn, "
      "as buffers that it does not train; lagt is then A = −(L + a), L of ones from the diagonal down, and B = b, a and b single numbers.",
      "The start of LegS is exactly its matrix, A_nk = −√(2n+1)√(2k+1) below and −(n+1) on the diagonal; those of legt, cheb and chebii "
      "have "
      "noise on d.",
      "rate multiplies Δ in Ā and not in B̄, as where the reference meets a length other than its l_max.",
      "Noise and dropout act in training alone and are left out; weight_norm splits output_linear.weight into weight_g and weight_v.",
      "filter_modes: each read of the system is a sum of exponentials, h_t = p ⊙ h_{t−1} + u_t, read by Re Σ r_n h_t,n + direct u_t, "
      "channels counted as y is; a pole beyond the unit circle counts as p/|p|.",
      "gelu is exact and the block's norm a layer norm with epsilon 1e-5, before the layer by default."};
  a.hyper = {
      hyper_integer("width", "H", 64, 1, 4096, "Channels; each is a system of its own.", "channels"),
      hyper_integer("layers", "L", 1, 1, 64, "Blocks in a row."),
      hyper_integer("order", "N", 0, 0, 512, "State size a channel; 0: as many as the width.", "states"),
      hyper_integer("channels", "M", 1, 1, 64, "How often each system is read out.", "reads"),
      hyper_choice("measure", "legs", {"legs", "legt", "lagt", "glagt", "cheb", "chebii", "jac", "toep", "random"},
                   "What A and B are at the start, and which parameters they are made of."),
      hyper_choice("learn", "1", {"0", "1", "2"}, "Whether A and B are fixed (0), trained for all channels together (1), or for each (2)."),
      hyper_real("gbt_alpha", "α", 0.5, 0.0, 1.0, "The share of the new state in a step's slope: 0 is forward, ½ bilinear, 1 backward."),
      hyper_integer("rate", "", 1, 1, 1000, "How many steps of the training's sampling one step here is, in Ā alone."),
      draws_only(hyper_real("dt_min", "Δ_min", 0.001, 1e-6, 10.0, "Smallest time step at the start.", true)),
      draws_only(hyper_real("dt_max", "Δ_max", 0.1, 1e-6, 10.0, "Largest time step at the start.", true)),
      draws_only(
          hyper_choice("dt_init", "random", {"random", "uniform"}, "Whether log Δ starts at random, or evenly from channel to channel.")),
      draws_only(hyper_choice("init", "normal", {"normal", "constant", "uniform"}, "How C starts, and D, which is normal for uniform.")),
      hyper_flag("bias", false, "Whether each read has a bias E."),
      hyper_choice("activation", "gelu", {"gelu", "id", "relu", "tanh", "sigmoid", "silu", "elu", "softplus"}, "f, after the system."),
      hyper_flag("ff", true, "Whether a linear map joins all channels and reads."),
      hyper_flag("weight_norm", false, "Whether that map's rows are a length times a direction."),
      draws_only(hyper_integer("diag_scale", "", 2, 0, 2, "Of legs: pl and pr start at √(2n+1) (2), √(n+1) (1) or 1 (0).")),
      draws_only(hyper_flag("diag_add", true, "Of legs: whether c starts at −n/(2n+1), or at −½.")),
      draws_only(
          hyper_integer("corners", "", 3, 0, 3, "Of legt: which corners of d start a half higher, the first (1), the last (2), both (3).")),
      draws_only(hyper_flag("halve", false, "Of jac: whether c starts at −½, or at 0.")),
      draws_only(hyper_flag("double_B", true, "Of jac: whether b starts at 2, or at 1.")),
      draws_only(hyper_real("alpha", "", 0.0, -0.9, 0.9, "Of glagt: the polynomials' exponent.")),
      draws_only(hyper_real("beta", "β", 1.0, 1e-4, 10.0,
                            "Of glagt: how fast the weight falls (0.01 in the reference); of lagt with learn = 0: b.", true)),
      hyper_choice("block", "residual", {"residual", "none"}, "The block with norm and residual, or the layer alone."),
      hyper_flag("prenorm", true, "Whether the norm comes before the layer (after the residual otherwise)."),
      parts::modal_filter_row()};
  a.spectrum = "eigenvalues of the discretised transition Ā of every channel, the same at every step";
  a.source = {"A. Gu, I. Johnson, K. Goel, K. Saab, T. Dao, A. Rudra, C. Ré",
              "Combining recurrent, convolutional, and continuous-time models with linear state-space layers", "NeurIPS",
              "https://arxiv.org/abs/2110.13985", 2021};
  a.reference = {{"transition.I", ""}, {"transition.ones", ""}, {"transition.arange", ""}, {"transition.e", ""}};
  a.input_width = [](const Hyper& h) { return h.integer("width"); };
  a.check = [](const Hyper& h) {
    if (h.real("dt_min") > h.real("dt_max"))
      throw Error("lssl: dt_min = " + h.text("dt_min") + " is above dt_max = " + h.text("dt_max") + ": choose dt_min at most dt_max.",
                  {.model = "lssl", .parameter = "dt_min", .value = h.text("dt_min"), .range = "at most dt_max"});
    if (!h.flag("ff") && h.integer("channels") > 1 && (h.choice("block") == "residual" || h.integer("layers") > 1))
      throw Error("lssl: ff = false leaves channels = " + h.text("channels") +
                      " reads a channel, which no residual and no next layer takes: choose ff = true, or block = none and layers = 1.",
                  {.model = "lssl", .parameter = "channels", .value = h.text("channels"), .range = "1 with ff = false"});
  };

  a.layer = [](Layer& l, Var x) {
    const std::int64_t H = l.hyper.integer("width"), N = l.hyper.integer("order") ? l.hyper.integer("order") : H,
                       M = l.hyper.integer("channels"), T = l.steps(), batch = l.batch();
    const bool block = l.hyper.choice("block") == "residual", prenorm = l.hyper.flag("prenorm"), apart = l.hyper.choice("learn") == "2";
    const Var scale = block ? l.parameter("norm.weight", {H}, init::constant(1.0), "Scale of the layer norm; starts at 1.") : Var{};
    const Var shift = block ? l.parameter("norm.bias", {H}, init::constant(0.0), "Shift of the layer norm; starts at 0.") : Var{};

    const bool modal = parts::has_modal_filter(l.hyper);
    const Continuous flow = modal ? Continuous{} : system(l, N, apart ? Shape{H} : Shape{});
    const std::string& start = l.hyper.choice("init");
    const Init of_C = start == "constant" ? init::constant(1.0) : start == "uniform" ? init::uniform(0.0, 1.732) : init::normal(1.0);
    const Var C = modal ? Var{}
                        : l.parameter("C", {H, M, N}, of_C,
                                      "The reads C; starts " + std::string(start == "constant"  ? "at 1."
                                                                           : start == "uniform" ? "uniform between 0 and 1.732."
                                                                                                : "normal."));
    const Var D = l.parameter("D", {H, M}, start == "constant" ? init::constant(1.0) : init::normal(1.0),
                              "The skips D; starts " + std::string(start == "constant" ? "at 1." : "normal."));
    const double low = std::log(l.hyper.real("dt_min")), high = std::log(l.hyper.real("dt_max"));
    const bool evenly = l.hyper.choice("dt_init") == "uniform";
    const Var log_dt = modal
                           ? Var{}
                           : l.parameter("log_dt", {H}, init::each([=](Rng& rng, std::int64_t i) {
                                           if (!evenly) return rng.uniform(low, high);
                                           return H > 1 ? low + (high - low) * static_cast<double>(i) / static_cast<double>(H - 1) : low;
                                         }),
                                         std::string("log Δ a channel; starts ") + (evenly ? "evenly from log dt_min to log dt_max."
                                                                                           : "uniform between log dt_min and log dt_max."));

    const auto by_system = [&](Var u) {
      const double share = l.hyper.real("gbt_alpha");
      const Var one = parts::identity(l.graph(), N), dt = reshape(exp_in_range(log_dt), {H, 1, 1});
      declare_flow(l, {.rule = Flow::Rule::generalised, .share = share});
      const auto left = [&](Var step) { return matrix_inverse(one - flow.A * step * share); };
      const auto rate = static_cast<double>(l.hyper.integer("rate"));
      const Var inverse = left(dt), sampled = rate == 1.0 ? dt : dt * rate;
      const Var A = matmul(rate == 1.0 ? inverse : left(sampled), one + flow.A * sampled * (1.0 - share));
      const Var B = reshape(matmul(inverse, reshape(flow.B, {apart ? H : 1, N, 1}) * dt), {H, N});
      return dense_bank(l, {"x", {H, N}, "The state of each channel."}, A, B, C, u);
    };
    const auto by_modes = [&](Var u) {
      const Var ones = l.graph().constant({M}, std::vector<double>(static_cast<std::size_t>(M), 1.0));
      return reshape(parts::modal_filter(l, reshape(reshape(u, {T, batch, H, 1}) * ones, {T, batch, H * M})), {T, batch, H, M});
    };

    const Var u = block && prenorm ? layer_norm(x, scale, shift, 1e-5) : x;
    Var y = (modal ? by_modes(u) : by_system(u)) + reshape(u, {T, batch, H, 1}) * D;
    if (l.hyper.flag("bias")) y = y + l.parameter("E", {H, M}, init::constant(0.0), "The reads' biases E; starts at 0.");
    y = reshape(parts::activation(l.hyper.choice("activation"), y), {T, batch, H * M});
    if (l.hyper.flag("ff")) {
      const double k = 1.0 / std::sqrt(static_cast<double>(H * M));
      const Var b = l.parameter("output_linear.bias", {H}, init::uniform(-k, k), "Bias of W; starts uniform in ±1/√(H M).");
      Var W;
      if (l.hyper.flag("weight_norm")) {
        const Var v = l.parameter("output_linear.weight_v", {H, H * M}, init::uniform(-k, k),
                                  "Directions of W's rows, columns channel by channel; starts uniform in ±1/√(H M).");
        const Var g = l.parameter(
            "output_linear.weight_g", {H, 1},
            [=](InitContext& c) {
              const auto directions = c.other("output_linear.weight_v");
              for (std::size_t i = 0; i < c.values.size(); ++i) {
                double squares = 0.0;
                for (std::size_t j = 0; j < static_cast<std::size_t>(H * M); ++j)
                  squares += directions[i * static_cast<std::size_t>(H * M) + j] * directions[i * static_cast<std::size_t>(H * M) + j];
                c.values[i] = std::sqrt(squares);
              }
            },
            "Lengths of W's rows; starts as those of weight_v.");
        W = v * (g / reshape(sqrt(sum(square(v), -1)), {H, 1}));
      } else {
        W = l.parameter("output_linear.weight", {H, H * M}, init::uniform(-k, k),
                        "W, columns channel by channel; starts uniform in ±1/√(H M).");
      }
      y = linear(y, W, b);
    }
    if (!block) return y;
    return prenorm ? x + y : layer_norm(x + y, scale, shift, 1e-5);
  };
  return a;
}

}  // namespace reclab::architectures
