// SPDX-License-Identifier: GPL-3.0-or-later
//   A = -exp(log_A_real) + i A_imag,   h_t = Ā h_{t-1} + B̄ u_t (one bank of N/2 modes a channel),   y_t = 2 Re(C h_t) + D u_t
//   zoh: Ā = exp(ΔA), B̄ = (Ā - 1)/A      bilinear: Ā = (1 + ΔA/2)/(1 - ΔA/2), B̄ = Δ/(1 - ΔA/2)
//   layer: GLU(W gelu(y) + b);   block: norm(x + layer(x)), or x + layer(norm(x))
// A. Gu, A. Gupta, K. Goel, C. Ré, On the parameterization and initialization of diagonal state space models, NeurIPS 2022.
// Conventions of the minimal s4d.py of the authors' repository, or of its full code (kernels/ssm.py, SSMKernelDiag; modules/s4block.py).
#include <algorithm>
#include <cmath>
#include <complex>
#include <numbers>

#include "array/error.h"
#include "models/architecture.h"
#include "models/parts/hippo.h"
#include "models/parts/layers/diagonal_system.h"
#include "recurrence/diagonal/diagonal.h"
#include "recurrence/flow.h"

namespace reclab::architectures {
namespace {

bool full(const Layer& l) { return l.hyper.choice("code") == "full"; }
/// Modes that are stored: half of the state, or all of it where the system is real.
std::int64_t modes_of(const Hyper& h) { return h.flag("is_real") ? h.integer("state") : h.integer("state") / 2; }

/// −Re A and |Im A| of mode n at the start; N counts conjugates.
std::complex<double> start_of(const std::string& init, std::int64_t mode, double N, Rng& rng) {
  const double n = static_cast<double>(mode), pi = std::numbers::pi;
  if (init == "inv") return {0.5, N / pi * (N / (2.0 * n + 1.0) - 1.0)};
  if (init == "inv2") return {0.5, N / pi * (N / (n + 1.0) - 1.0)};
  if (init == "quad") return {0.5, (2.0 * n + 1.0) * (2.0 * n + 1.0) / pi};
  if (init == "real") return {n + 1.0, 0.0};
  if (init == "rand") return {0.5, std::exp(rng.normal())};
  return {0.5, pi * n};
}

/// B of HiPPO-LegS in the phases and with the cut of the reference, for Im A < 0.
std::complex<double> legs_input(const hippo::Normal& legs, std::size_t n) {
  const std::complex<double> theirs = legs.input[n] * (legs.vectors[n] / std::abs(legs.vectors[n]));
  return {theirs.real(), std::clamp(theirs.imag(), -2.0, 2.0)};
}

/// What follows the bank in a layer: y is what it returns, with the skip.
Var finished(Layer& l, Var x, Var y, Var weight, Var bias) {
  const std::int64_t H = l.hyper.integer("width");
  const bool block = l.hyper.choice("block") == "residual", prenorm = l.hyper.flag("prenorm");
  const auto around = [&](Var out) {
    if (!block) return out;
    return prenorm ? x + out : layer_norm(x + out, weight, bias, 1e-5);
  };
  if (l.hyper.choice("output") == "none") return around(y);

  const std::int64_t columns = y.dim(-1);
  const double k = 1.0 / std::sqrt(static_cast<double>(columns));
  const std::string starts = columns == H ? "starts uniform in ±1/√H." : "starts uniform in ±1/√(channels H).";
  const Var W = l.parameter("output_linear.weight", full(l) ? Shape{2 * H, columns} : Shape{2 * H, H, 1}, init::uniform(-k, k),
                            "W of the GLU: value rows, then gate rows; " + starts);
  const Var b = l.parameter("output_linear.bias", {2 * H}, init::uniform(-k, k), "Its bias; " + starts);
  const auto parts = split(linear(gelu(y), reshape(W, {2 * H, columns}), b), -1, 2);
  const Var open = l.gate("glu", sigmoid(parts[1]), 0.0, 1.0, "The GLU after the bank: how much of each channel passes.");
  return around(parts[0] * open);
}
Var norm_scale(Layer& l) {
  return l.hyper.choice("block") == "residual"
             ? l.parameter("norm.weight", {l.hyper.integer("width")}, init::constant(1.0), "Scale of the layer norm; starts at 1.")
             : Var{};
}
Var norm_shift(Layer& l) {
  return l.hyper.choice("block") == "residual"
             ? l.parameter("norm.bias", {l.hyper.integer("width")}, init::constant(0.0), "Shift of the layer norm; starts at 0.")
             : Var{};
}
/// D u of each read, side by side.
Var skipped(Layer& l, Var u) {
  const std::int64_t H = l.hyper.integer("width"), reads = l.hyper.integer("channels");
  const Var D = l.parameter("D", full(l) ? Shape{reads, H} : Shape{H}, init::normal(1.0), "The skip D; starts normal.");
  if (reads == 1) return reshape(D, {H}) * u;
  std::vector<Var> parts;
  for (std::int64_t c = 0; c < reads; ++c) parts.push_back(reshape(slice(D, 0, c, c + 1), {H}) * u);
  return concat(parts, -1);
}

}  // namespace

Architecture s4d() {
  Architecture a;
  a.title = "S4D";
  a.equations = {"A = −exp(log_A_real) + i A_imag, Δ = exp(log_dt), B = 1 (input_matrix=trained: a parameter)",
                 "Ā = exp(ΔA), B̄ = (Ā − 1)/A ⊙ B   (bilinear: (1+ΔA/2)/(1−ΔA/2), Δ/(1−ΔA/2) ⊙ B)",
                 "h_t = Ā ⊙ h_{t-1} + B̄ u_t, N/2 complex modes a channel", "y_t = 2 Re Σ_n C_n h_t,n + D u_t",
                 "layer: v = W gelu(y_t) + b, out = v₁ ⊙ σ(v₂) (output=none: out = y_t)"};
  a.notes = {
      "Shapes are those of the minimal s4d.py, whose names are read too: log_dt, log_A_real, A_imag and C (last axis re, im) are its "
      "kernel.log_dt and so on, output_linear.weight [2H, H, 1] its output_linear.0.weight, and norm.weight is norms.<l>.weight of its "
      "example.py.",
      "Imaginary parts are positive and only one of each conjugate pair is stored, hence the factor 2 in the readout.",
      "gelu is exact and the block's norm a layer norm with epsilon 1e-5, after the residual by default, as in the authors' example.py.",
      "input_matrix=trained adds B [H, N/2, 2] (last axis re, im), which the full code has and the minimal file has not; it starts at 1, "
      "the full code's default.",
      "The first imaginary part of S4D-Lin is 0 here as in the minimal file; the full code starts it at 1e-4, as code=full does.",
      "code=full has the names, shapes and signs of the full code (SSMKernelDiag in an S4Block): inv_dt [H, 1], A_real and A_imag [S, N/2] "
      "with A = −Re − i Im, B [1, S, N/2, 2], C [1, H, N/2, 2], "
      "D [1, H], output_linear without .0; kernel. and layer. are left out. Its disc=dss is the architecture dss.",
      "A number that has to be positive, such as −Re A, is kept as its exp, softplus, sigmoid or relu (plus 1e-4) says; it starts at 1e-4 "
      "or above, and as a sigmoid at 1e-4 below 1 where it would be larger.",
      "init=legs starts B as HiPPO-LegS, cut to imaginary parts of ±2, where B is a parameter; it is not halved, as S4 without its "
      "low-rank part would have it.",
      "is_real: N real modes a channel, A, B and C real, and still the factor 2. bidirectional: C has a second row, for the steps from the "
      "next one on. channels > 1: C has a row a read, those of the backward direction after the others, and D too; the output map takes "
      "the reads side by side, all channels of the first read before those of the second.",
      "bandlimit: modes of more than bandlimit/2 turns a step are not read; no gradient passes through this choice."};
  a.hyper = {
      hyper_integer("width", "H", 64, 1, 4096, "Channels; each has a bank of modes of its own.", "channels"),
      hyper_integer("state", "N", 64, 2, 1024, "State size a channel, conjugates counted: N/2 complex modes are stored.", "states"),
      hyper_choice("code", "minimal", {"minimal", "full"},
                   "Whose names, shapes and signs the parameters have: the minimal file's or the full code's."),
      hyper_integer("layers", "L", 1, 1, 64, "Blocks in a row."),
      draws_only(hyper_choice("init", "lin", {"lin", "inv", "inv2", "quad", "legs", "real", "rand"},
                              "A at the start: Im A of S4D-Lin πn, of S4D-Inv (N/π)(N/(2n+1) − 1), of its variant (N/π)(N/(n+1) − 1), "
                              "(2n+1)²/π, of S4D-LegS those of HiPPO, or exp of normal ones; S4D-Real: A = −(n+1).")),
      hyper_choice("discretisation", "zoh", {"zoh", "bilinear"}, "From continuous to discrete time: zero-order hold or bilinear."),
      hyper_choice("input_matrix", "ones", {"ones", "trained"}, "B: ones, or a parameter; with code=full it always is one."),
      draws_only(hyper_choice(
          "B_init", "constant", {"constant", "random", "alternating", "unit-cw", "unit-ccw"},
          "B at the start, where it is a parameter and init is not legs: 1, normal, 1 and −1 in turn, or once round the unit circle.")),
      hyper_choice("real_transform", "exp", {"exp", "none", "relu", "sigmoid", "softplus"}, "How −Re A comes from its parameter."),
      hyper_choice("imag_transform", "none", {"none", "exp", "relu", "sigmoid", "softplus"}, "How |Im A| comes from its parameter."),
      hyper_choice("dt_transform", "exp", {"exp", "none", "relu", "sigmoid", "softplus"}, "How the time step comes from its parameter."),
      hyper_flag("dt_fast", false, "The time step's parameter passes through sinh first."),
      hyper_flag("dt_tie", true, "Whether all modes of a channel share one time step."),
      hyper_integer("n_ssm", "S", 0, 0, 4096,
                    "Independent copies of A and B, shared by the channels in turn; it divides the width; 0: one a channel."),
      hyper_flag("is_real", false, "A real system: N real modes, no imaginary parts."),
      hyper_integer("channels", "C", 1, 1, 64,
                    "Of the full code: how often each bank is read out, each time with a C and D of its own; the output map takes all "
                    "reads side by side."),
      hyper_flag("bidirectional", false, "A second readout of the same system reads what is still to come, from the next step on."),
      hyper_real("bandlimit", "α", 0.0, 0.0, 100.0, "Modes that turn by α/2 of a turn or more a step are left out; 0: none."),
      draws_only(hyper_real("dt_min", "Δ_min", 0.001, 1e-6, 10.0, "Smallest time step at the start.", true)),
      draws_only(hyper_real("dt_max", "Δ_max", 0.1, 1e-6, 10.0, "Largest time step at the start.", true)),
      hyper_choice("output", "glu", {"glu", "none"}, "After the system: gelu and a gated linear map, or nothing."),
      hyper_choice("block", "residual", {"residual", "none"}, "The block with norm and residual, or the S4D layer alone."),
      hyper_flag("prenorm", false, "Whether the norm comes before the layer (after the residual otherwise).")};
  a.spectrum = "the discretised transition Ā, the same at every step (one of each conjugate pair)";
  a.source = {"A. Gu, A. Gupta, K. Goel, C. Ré", "On the parameterization and initialization of diagonal state space models", "NeurIPS",
              "https://arxiv.org/abs/2206.11893", 2022};
  a.reference = {{"s4_layers.{n}.kernel.*", "*"},
                 {"s4_layers.{n}.D", "D"},
                 {"s4_layers.{n}.output_linear.0.*", "output_linear.*"},
                 {"norms.{n}.*", "norm.*"},
                 {"layers.{n}.layer.layer.kernel.*", "*"},
                 {"layers.{n}.layer.layer.D", "D"},
                 {"layers.{n}.layer.output_linear.0.*", "output_linear.*"},
                 {"layers.{n}.norm.norm.*", "norm.*"},
                 {"layer.kernel.*", "*"},
                 {"layer.D", "D"},
                 {"kernel.*", "*"},
                 {"output_linear.0.*", "output_linear.*"}};
  a.input_width = [](const Hyper& h) { return h.integer("width"); };
  a.check = [](const Hyper& h) {
    if (h.integer("n_ssm") && h.integer("width") % h.integer("n_ssm"))
      throw Error("s4d: n_ssm = " + h.text("n_ssm") + " does not divide width = " + h.text("width") +
                      ": choose a divisor, or 0 for one copy a channel.",
                  {.model = "s4d", .parameter = "n_ssm", .value = h.text("n_ssm"), .range = "a divisor of width"});
    if (h.integer("state") % 2 && !h.flag("is_real"))
      throw Error("s4d: state = " + h.text("state") + " is odd: it counts conjugate pairs, choose an even number.",
                  {.model = "s4d", .parameter = "state", .value = h.text("state"), .range = "even"});
    if (h.integer("channels") > 1 && h.choice("code") != "full")
      throw Error("s4d: channels = " + h.text("channels") + " is an option of the full code: choose code=full, or channels=1.",
                  {.model = "s4d", .parameter = "channels", .value = h.text("channels"), .range = "1 with code = minimal"});
    if (h.integer("channels") > 1 && h.choice("output") == "none" && (h.choice("block") == "residual" || h.integer("layers") > 1))
      throw Error("s4d: output = none leaves channels = " + h.text("channels") +
                      " reads a channel, which no residual and no next layer takes: choose output=glu, or block=none and layers=1.",
                  {.model = "s4d", .parameter = "channels", .value = h.text("channels"), .range = "1 with output = none"});
    if (h.real("dt_min") > h.real("dt_max"))
      throw Error("s4d: dt_min = " + h.text("dt_min") + " is above dt_max = " + h.text("dt_max") + ": choose dt_min at most dt_max.",
                  {.model = "s4d", .parameter = "dt_min", .value = h.text("dt_min"), .range = "at most dt_max"});
  };

  a.layer = [](Layer& l, Var x) {
    const Hyper& h = l.hyper;
    const std::int64_t H = h.integer("width"), modes = modes_of(h), S = h.integer("n_ssm") ? h.integer("n_ssm") : H;
    const bool block = h.choice("block") == "residual", prenorm = h.flag("prenorm"), theirs = full(l), is_real = h.flag("is_real"),
               bidirectional = h.flag("bidirectional");
    const double low = std::log(h.real("dt_min")), high = std::log(h.real("dt_max")),
                 states = static_cast<double>(is_real ? 2 * modes : h.integer("state"));
    const std::string &start = h.choice("init"), &of_dt = h.choice("dt_transform"), &of_real = h.choice("real_transform"),
                      &of_imag = h.choice("imag_transform");
    const Var weight = norm_scale(l), bias = norm_shift(l);

    const bool fast = h.flag("dt_fast"), tied = h.flag("dt_tie");
    const Shape dt_shape = tied ? (theirs ? Shape{H, 1} : Shape{H}) : Shape{H, modes};
    const Var log_dt = l.parameter(theirs ? "inv_dt" : "log_dt", dt_shape, init::each([=](Rng& rng, std::int64_t) {
                                     const double drawn = rng.uniform(low, high),
                                                  value = of_dt == "exp" ? drawn : parts::from_positive(of_dt, std::exp(drawn));
                                     return fast ? std::asinh(value) : value;
                                   }),
                                   of_dt == "exp" && !fast && tied
                                       ? "log Δ a channel; starts uniform between log dt_min and log dt_max."
                                       : "Δ before dt_transform and dt_fast; starts with log Δ uniform between log dt_min and log dt_max.");
    const auto legs = [start, modes] { return start == "legs" ? hippo::legs_normal(2 * modes) : hippo::Normal{}; };
    const auto real_start = [=](Rng& rng, std::int64_t i) {
      return start == "legs" ? 0.5 : start_of(start == "rand" ? "lin" : start, i % modes, states, rng).real();
    };
    const Var log_A_real =
        l.parameter(theirs ? "A_real" : "log_A_real", {S, modes},
                    start == "real" || of_real != "exp"
                        ? init::each([=](Rng& rng, std::int64_t i) { return parts::from_positive(of_real, real_start(rng, i)); })
                        : init::constant(std::log(0.5)),
                    of_real == "exp" ? "log of −Re A; starts at log ½, or at log(n + 1) (real)."
                                     : "−Re A before real_transform; starts at that of ½, or of n + 1 (real).");
    const Var A_imag =
        is_real ? Var{}
                : l.parameter(
                      "A_imag", {S, modes},
                      [=](InitContext& c) {
                        const hippo::Normal of_legs = legs();
                        for (std::size_t i = 0; i < c.values.size(); ++i) {
                          const std::size_t n = i % static_cast<std::size_t>(modes);
                          const double value = start == "legs" ? -of_legs.frequencies[n]
                                                               : start_of(start, static_cast<std::int64_t>(n), states, c.rng).imag();
                          c.values[i] = theirs || of_imag != "none" ? parts::from_positive(of_imag, value) : value;
                        }
                      },
                      theirs ? "−Im A; starts as init says." : "Im A; starts as πn (lin), (N/π)(N/(2n+1) − 1) (inv), or as init says.");
    const std::int64_t reads = h.integer("channels"), ways = bidirectional ? 2 : 1;
    const Shape complex_C = theirs || bidirectional ? Shape{ways * reads, H, modes, 2} : Shape{H, modes, 2};
    const Shape real_C = theirs || bidirectional ? Shape{ways * reads, H, modes} : Shape{H, modes};
    const Var C_given = l.parameter(
        "C", is_real ? real_C : complex_C, init::normal(std::sqrt(0.5)),
        is_real ? "The readout C; starts normal with deviation √½." : "The readout C, last axis re and im; starts complex normal.");
    const bool own_B = theirs || h.choice("input_matrix") == "trained";
    const Var B_given = own_B ? l.parameter(
                                    "B",
                                    is_real  ? (theirs ? Shape{1, S, modes} : Shape{S, modes})
                                    : theirs ? Shape{1, S, modes, 2}
                                             : Shape{S, modes, 2},
                                    [=, kind = h.choice("B_init")](InitContext& c) {
                                      const hippo::Normal of_legs = legs();
                                      const std::size_t each = is_real ? 1 : 2;
                                      for (std::size_t i = 0; i < c.values.size(); i += each) {
                                        const std::size_t n = i / each % static_cast<std::size_t>(modes);
                                        std::complex<double> value = 1.0;
                                        const double angle = 2.0 * std::numbers::pi * static_cast<double>(n) / states;
                                        if (start == "legs")
                                          value = legs_input(of_legs, n);
                                        else if (kind == "random")
                                          value = {c.rng.normal() * std::sqrt(0.5), c.rng.normal() * std::sqrt(0.5)};
                                        else if (kind == "alternating")
                                          value = n % 2 ? -1.0 : 1.0;
                                        else if (kind != "constant")
                                          value = std::polar(1.0, kind == "unit-cw" ? -angle : angle);
                                        c.values[i] = value.real();
                                        if (!is_real) c.values[i + 1] = theirs ? value.imag() : 0.0 - value.imag();
                                      }
                                    },
                                    is_real ? "The input matrix B; starts as its complex one's real part."
                                            : "The input matrix B, last axis re and im; starts at 1, or as init and B_init say.")
                              : Var{};
    const auto skip_of = [&](Var v) { return bidirectional ? Var{} : skipped(l, v); };

    const Var u = block && prenorm ? layer_norm(x, weight, bias, 1e-5) : x;
    const auto for_channels = [&](Var v) {
      std::vector<Var> copies(static_cast<std::size_t>(H / S), v);
      return copies.size() == 1 ? v : concat(copies, 0);
    };
    const auto number = [&](Var v, std::int64_t rows) {
      return is_real ? reshape(v, {rows, modes})
                     : complex(reshape(slice(v, -1, 0, 1), {rows, modes}), reshape(slice(v, -1, 1, 2), {rows, modes}));
    };
    const Var minus_real = parts::positive(of_real, log_A_real), imaginary = is_real ? Var{} : parts::positive(of_imag, A_imag);
    const Var A = for_channels(is_real ? -minus_real : complex(-minus_real, theirs ? -imaginary : imaginary));
    const Var given = fast ? (exp(log_dt) - exp(-log_dt)) * 0.5 : log_dt;
    const Var dt = reshape(of_dt == "exp" ? exp(given) : parts::positive(of_dt, given), tied ? Shape{H, 1} : Shape{H, modes});
    const Var dtA = A * dt;
    Var A_bar, B_bar;
    if (h.choice("discretisation") == "zoh") {
      A_bar = exp(dtA);
      B_bar = mean_exp(dtA) * dt;  // (Ā − 1)/A, which cancels for small steps
    } else {
      const Var inverse_of = reciprocal(1.0 - dtA * 0.5);
      A_bar = (dtA * 0.5 + 1.0) * inverse_of;
      B_bar = inverse_of * dt;
    }
    declare_flow(l, {.rule = flow_rule(h.choice("discretisation")), .exponents = is_real ? Var{} : dtA});
    if (own_B) B_bar = B_bar * for_channels(number(B_given, S));
    const Var C_own = bidirectional ? slice(C_given, 0, l.backward() ? reads : 0, l.backward() ? 2 * reads : reads) : C_given;
    Var C = number(C_own, reads * H);
    if (h.real("bandlimit") > 0.0 && !is_real) {
      const Var turns = dt * for_channels(abs(imaginary)) * (0.5 / std::numbers::pi),
                read_too = detach(relu(sign(0.5 * h.real("bandlimit") - turns)));
      C = reads == 1 ? C * read_too : reshape(reshape(C, {reads, H, modes}) * read_too, {reads * H, modes});
    }
    const Var beside = skip_of(u);  // before the bank: gradients are added up in this order
    const StateSpec state{"h", {H, modes}, is_real ? "The modes of each channel." : "The complex modes of each channel."};
    Var read;
    if (reads == 1) {
      read = diagonal_bank(l, state, A_bar, B_bar, C * 2.0, u);
    } else {
      const Var all = diagonal(l, state, A_bar, B_bar * reshape(u, {u.dim(0), u.dim(1), H, 1}));
      std::vector<Var> outputs;
      for (std::int64_t c = 0; c < reads; ++c) {
        const Var terms = all * (slice(C, 0, c * H, (c + 1) * H) * 2.0);
        outputs.push_back(sum(is_real ? terms : real(terms), -1));
      }
      read = concat(outputs, -1);
    }
    return bidirectional ? read : finished(l, x, read + beside, weight, bias);
  };
  a.joint = [](const Hyper& h) { return h.flag("bidirectional"); };
  a.joined = [](Layer& l, Var below, Var forward, Var backward) {
    const Var weight = norm_scale(l), bias = norm_shift(l);
    const Var u = weight && l.hyper.flag("prenorm") ? layer_norm(below, weight, bias, 1e-5) : below;
    return finished(l, below, forward + parts::from_next_step(backward) + skipped(l, u), weight, bias);
  };
  return a;
}

}  // namespace reclab::architectures
