// SPDX-License-Identifier: GPL-3.0-or-later
//   A = -exp(log_A_real) + i A_imag,   h_t = Ā h_{t-1} + B̄ u_t (one bank of N/2 modes a channel),   y_t = 2 Re(C h_t) + D u_t
//   zoh: Ā = exp(ΔA), B̄ = (Ā - 1)/A      bilinear: Ā = (1 + ΔA/2)/(1 - ΔA/2), B̄ = Δ/(1 - ΔA/2)
//   layer: GLU(W gelu(y) + b);   block: norm(x + layer(x)), or x + layer(norm(x))
// A. Gu, A. Gupta, K. Goel, C. Ré, On the parameterization and initialization of diagonal state space models, NeurIPS 2022.
// Conventions of the minimal s4d.py of the authors' repository.
#include <cmath>
#include <numbers>

#include "array/error.h"
#include "models/architecture.h"
#include "recurrence/diagonal/diagonal.h"

namespace reclab::architectures {

Architecture s4d() {
  Architecture a;
  a.title = "S4D";
  a.equations = {"A = −exp(log_A_real) + i A_imag, Δ = exp(log_dt), B = 1 (input_matrix=trained: a parameter)", "Ā = exp(ΔA), B̄ = (Ā − 1)/A ⊙ B   (bilinear: (1+ΔA/2)/(1−ΔA/2), Δ/(1−ΔA/2) ⊙ B)",
                 "h_t = Ā ⊙ h_{t-1} + B̄ u_t, N/2 complex modes a channel", "y_t = 2 Re Σ_n C_n h_t,n + D u_t", "layer: v = W gelu(y_t) + b, out = v₁ ⊙ σ(v₂) (output=none: out = y_t)"};
  a.notes = {"Shapes are those of the minimal s4d.py, whose names are read too: log_dt, log_A_real, A_imag and C (last axis re, im) are its kernel.log_dt and so on, output_linear.weight [2H, H, 1] its output_linear.0.weight, and norm.weight is norms.<l>.weight of its example.py.",
             "Imaginary parts are positive and only one of each conjugate pair is stored, hence the factor 2 in the readout.",
             "gelu is exact and the block's norm a layer norm with epsilon 1e-5, after the residual by default, as in the authors' example.py.",
             "input_matrix=trained adds B [H, N/2, 2] (last axis re, im), which the full code has and the minimal file has not; it starts at 1, the full code's default.",
             "The first imaginary part of S4D-Lin is 0 here as in the minimal file; the full code starts it at 1e-4."};
  a.hyper = {hyper_integer("width", "H", 64, 1, 4096, "Channels; each has a bank of modes of its own.", "channels"),
             hyper_integer("state", "N", 64, 2, 1024, "State size a channel, conjugates counted: N/2 complex modes are stored.", "states"),
             hyper_integer("layers", "L", 1, 1, 64, "Blocks in a row."),
             draws_only(hyper_choice("init", "lin", {"lin", "inv"}, "Imaginary parts of A at the start: S4D-Lin πn, or S4D-Inv (N/π)(N/(2n+1) − 1).")),
             hyper_choice("discretisation", "zoh", {"zoh", "bilinear"}, "From continuous to discrete time: zero-order hold or bilinear."),
             hyper_choice("input_matrix", "ones", {"ones", "trained"}, "B: ones, or a parameter."),
             draws_only(hyper_real("dt_min", "Δ_min", 0.001, 1e-6, 10.0, "Smallest time step at the start.", true)), draws_only(hyper_real("dt_max", "Δ_max", 0.1, 1e-6, 10.0, "Largest time step at the start.", true)),
             hyper_choice("output", "glu", {"glu", "none"}, "After the system: gelu and a gated linear map, or nothing."),
             hyper_choice("block", "residual", {"residual", "none"}, "The block with norm and residual, or the S4D layer alone."),
             hyper_flag("prenorm", false, "Whether the norm comes before the layer (after the residual otherwise).")};
  a.spectrum = "the discretised transition Ā, the same at every step (one of each conjugate pair)";
  a.source = {"A. Gu, A. Gupta, K. Goel, C. Ré", "On the parameterization and initialization of diagonal state space models", "NeurIPS", "https://arxiv.org/abs/2206.11893", 2022};
  a.reference = {{"s4_layers.{n}.kernel.*", "*"}, {"s4_layers.{n}.D", "D"}, {"s4_layers.{n}.output_linear.0.*", "output_linear.*"}, {"norms.{n}.*", "norm.*"}};
  a.input_width = [](const Hyper& h) { return h.integer("width"); };
  a.check = [](const Hyper& h) {
    if (h.integer("state") % 2)
      throw Error("s4d: state = " + h.text("state") + " is odd: it counts conjugate pairs, choose an even number.",
                  {.model = "s4d", .parameter = "state", .value = h.text("state"), .range = "even"});
    if (h.real("dt_min") > h.real("dt_max"))
      throw Error("s4d: dt_min = " + h.text("dt_min") + " is above dt_max = " + h.text("dt_max") + ": choose dt_min at most dt_max.",
                  {.model = "s4d", .parameter = "dt_min", .value = h.text("dt_min"), .range = "at most dt_max"});
  };

  a.layer = [](Layer& l, Var x) {
    const std::int64_t H = l.hyper.integer("width"), N = l.hyper.integer("state"), modes = N / 2;
    const bool block = l.hyper.choice("block") == "residual", prenorm = l.hyper.flag("prenorm");
    const double low = std::log(l.hyper.real("dt_min")), high = std::log(l.hyper.real("dt_max")), states = static_cast<double>(N);
    const bool inverse = l.hyper.choice("init") == "inv";
    const Var weight = block ? l.parameter("norm.weight", {H}, init::constant(1.0), "Scale of the layer norm; starts at 1.") : Var{};
    const Var bias = block ? l.parameter("norm.bias", {H}, init::constant(0.0), "Shift of the layer norm; starts at 0.") : Var{};

    const Var log_dt = l.parameter("log_dt", {H}, init::uniform(low, high), "log Δ a channel; starts uniform between log dt_min and log dt_max.");
    const Var log_A_real = l.parameter("log_A_real", {H, modes}, init::constant(std::log(0.5)), "log of −Re A; starts at log ½.");
    const Var A_imag = l.parameter("A_imag", {H, modes}, init::each([=](Rng&, std::int64_t i) {
                                     const double n = static_cast<double>(i % modes);
                                     return inverse ? states / std::numbers::pi * (states / (2.0 * n + 1.0) - 1.0) : std::numbers::pi * n;
                                   }),
                                   "Im A; starts as πn (lin) or (N/π)(N/(2n+1) − 1) (inv).");
    const Var C = l.parameter("C", {H, modes, 2}, init::normal(std::sqrt(0.5)), "The readout C, last axis re and im; starts complex normal.");
    const bool own_B = l.hyper.choice("input_matrix") == "trained";
    const Var B = own_B ? l.parameter("B", {H, modes, 2}, init::each([](Rng&, std::int64_t i) { return i % 2 ? 0.0 : 1.0; }), "The input matrix B, last axis re and im; starts at 1.") : Var{};
    const Var D = l.parameter("D", {H}, init::normal(1.0), "The skip D; starts normal.");

    const Var u = block && prenorm ? layer_norm(x, weight, bias, 1e-5) : x;
    const Var A = complex(-exp_in_range(log_A_real), A_imag);
    const Var dt = reshape(exp(log_dt), {H, 1});
    const Var dtA = A * dt;
    Var A_bar, B_bar;
    if (l.hyper.choice("discretisation") == "zoh") {
      A_bar = exp(dtA);
      B_bar = mean_exp(dtA) * dt;  // (Ā − 1)/A, which cancels for small steps
    } else {
      const Var inverse_of = reciprocal(1.0 - dtA * 0.5);
      A_bar = (dtA * 0.5 + 1.0) * inverse_of;
      B_bar = inverse_of * dt;
    }
    const auto number = [&](Var v) { return complex(reshape(slice(v, -1, 0, 1), {H, modes}), reshape(slice(v, -1, 1, 2), {H, modes})); };
    if (own_B) B_bar = B_bar * number(B);
    const Var y = diagonal_bank(l, {"h", {H, modes}, "The complex modes of each channel."}, A_bar, B_bar, number(C) * 2.0, u) + D * u;
    const auto around = [&](Var out) {
      if (!block) return out;
      return prenorm ? x + out : layer_norm(x + out, weight, bias, 1e-5);
    };
    if (l.hyper.choice("output") == "none") return around(y);

    const double k = 1.0 / std::sqrt(static_cast<double>(H));
    const Var W = l.parameter("output_linear.weight", {2 * H, H, 1}, init::uniform(-k, k), "W of the GLU: value rows, then gate rows; starts uniform in ±1/√H.");
    const Var b = l.parameter("output_linear.bias", {2 * H}, init::uniform(-k, k), "Its bias; starts uniform in ±1/√H.");
    const auto parts = split(linear(gelu(y), reshape(W, {2 * H, H}), b), -1, 2);
    const Var open = l.gate("glu", sigmoid(parts[1]), 0.0, 1.0, "The GLU after the bank: how much of each channel passes.");
    return around(parts[0] * open);
  };
  return a;
}

}  // namespace reclab::architectures
