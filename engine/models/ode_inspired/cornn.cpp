// SPDX-License-Identifier: GPL-3.0-or-later
//   z_t = z_{t-1} + Δt (tanh(W [x; z; y] + b) - γ y_{t-1} - ε z_n̄),   y_t = y_{t-1} + Δt z_t,   n̄ = t-1 (explicit damping) or t (implicit)
// T. K. Rusch, S. Mishra, Coupled oscillatory recurrent neural network (coRNN), ICLR 2021. Names and conventions of the authors' coRNNCell.
#include "models/parts/parts.h"
#include "recurrence/step/step.h"

namespace reclab::architectures {

Architecture cornn() {
  Architecture a;
  a.title = "coRNN";
  a.equations = {"z_t = z_{t-1} + Δt (tanh(W [x_t; z_{t-1}; y_{t-1}] + b) − γ y_{t-1} − ε z_{t-1})", "y_t = y_{t-1} + Δt z_t",
                 "the output is y_t",
                 "damping=implicit: ε z_t in place of ε z_{t-1}, so z_t = (z_{t-1} + Δt (tanh(W [x_t; z_{t-1}; y_{t-1}] + b) − γ y_{t-1})) "
                 "/ (1 + Δt ε)"};
  a.notes = {
      "Names and shapes are those of the authors' code: i2h.weight with columns x, hz, hy in that order, i2h.bias; the states hy and hz "
      "are y and z.",
      "The paper leaves the damping ε z open: of the velocity before the step (explicit), as in the authors' code, or of the new one "
      "(implicit). y is moved by the new z.",
      "dL/dhz_t is without hz_t's way into hy_t of the same step: the states after a step are independent coordinates."};
  a.hyper = {hyper_integer("width", "H", 64, 1, 4096, "Oscillators.", "units"),
             hyper_integer("layers", "L", 1, 1, 64, "Layers, each fed with the one below."),
             hyper_real("dt", "Δt", 0.042, 1e-4, 1.0, "Time step.", true),
             hyper_real("gamma", "γ", 2.7, 0.0, 1000.0, "Stiffness: the square of each oscillator's own angular frequency."),
             hyper_real("epsilon", "ε", 4.7, 0.0, 1000.0, "Damping."),
             hyper_choice("damping", "explicit", {"explicit", "implicit"},
                          "Which velocity the damping acts on: the one before the step, or the new one.")};
  a.spectrum = "eigenvalues of the recurrent Jacobian ∂(y, z)_t/∂(y, z)_{t-1}";
  a.source = {"T. K. Rusch, S. Mishra",
              "Coupled oscillatory recurrent neural network (coRNN): an accurate and (gradient) stable architecture for learning long time "
              "dependencies",
              "ICLR", "https://arxiv.org/abs/2010.00951", 2021};
  a.input_weights = {{"i2h.weight", InputWeight::Part::first_columns}};
  a.layer = [](Layer& l, Var x) {
    const std::int64_t H = l.hyper.integer("width"), in = x.dim(-1);
    const double dt = l.hyper.real("dt"), gamma = l.hyper.real("gamma"), epsilon = l.hyper.real("epsilon");
    const bool implicit = l.hyper.choice("damping") == "implicit";
    const Var W = l.parameter("i2h.weight", {H, in + 2 * H}, parts::torch_uniform(in + 2 * H),
                              "W, columns x, hz, hy; starts uniform in ±1/√(in + 2H).");
    const Var b = l.parameter("i2h.bias", {H}, parts::torch_uniform(in + 2 * H), "b; starts uniform in ±1/√(in + 2H).");
    const Var W_z = slice(W, 1, in, in + H), W_y = slice(W, 1, in + H, in + 2 * H);
    return step(l, {{"hy", {H}, "The positions: what is read out."}, {"hz", {H}, "The velocities."}}, {linear(x, slice(W, 1, 0, in), b)},
                [=](Cell& cell, std::span<const Var> u, std::span<const Var> s) {
                  const Var force = cell.gate("force", tanh(linear(s[1], W_z, u[0]) + linear(s[0], W_y)), -1.0, 1.0,
                                              "tanh(W [x; z; y] + b): what drives the oscillators.");
                  const Var pushed = s[1] + dt * (force - gamma * s[0]);
                  const Var z = implicit ? pushed / (1.0 + dt * epsilon) : pushed - dt * epsilon * s[1];
                  return std::vector<Var>{s[0] + dt * z, z};
                })[0];
  };
  return a;
}

}  // namespace reclab::architectures
