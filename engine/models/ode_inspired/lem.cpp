// SPDX-License-Identifier: GPL-3.0-or-later
//   Δ1 = Δt σ(W_1 y_{t-1} + V_1 x + b_1),   Δ2 = Δt σ(W_2 y_{t-1} + V_2 x + b_2)
//   z_t = (1 - Δ2) z_{t-1} + Δ2 tanh(W_z y_{t-1} + V_z x + b_z),   y_t = (1 - Δ1) y_{t-1} + Δ1 tanh(W_y z_t + V_y x + b_y)
// T. K. Rusch, S. Mishra, N. B. Erichson, M. W. Mahoney, Long expressive memory for sequence modeling, ICLR 2022. Names and conventions of
// the authors' LEMCell.
#include "models/parts/parts.h"
#include "recurrence/step/step.h"

namespace reclab::architectures {

Architecture lem() {
  Architecture a;
  a.title = "LEM";
  a.equations = {"Δ1 = Δt σ(W₁ y_{t-1} + V₁ x_t + b₁),  Δ2 = Δt σ(W₂ y_{t-1} + V₂ x_t + b₂)",
                 "z_t = (1 − Δ2) ⊙ z_{t-1} + Δ2 ⊙ tanh(W_z y_{t-1} + V_z x_t + b_z)",
                 "y_t = (1 − Δ1) ⊙ y_{t-1} + Δ1 ⊙ tanh(W_y z_t + V_y x_t + b_y)", "the output is y_t"};
  a.notes = {
      "Names and shapes are those of the authors' LEMCell: inp2hid with rows 1, 2, y, z in that order, hid2hid with rows 1, 2, z, "
      "transform_z, which is W_y.",
      "The code calls the rows of inp2hid i_dt1, i_dt2, i_z, i_y: its i_z goes into y and its i_y into z. Δ1 is the paper's second time "
      "step, with the bar, and Δ2 its first.",
      "y is moved by the new z; both time steps and z see the old y.",
      "There are two biases for each of 1, 2 and z, and for y those of inp2hid and of transform_z; only their sums matter.",
      "The authors' CUDA extension stacks the same matrices otherwise: weights has rows 1, 2, z and columns y and x in one, weights_lin_z "
      "those of y.",
      "dL/dz_t is without z_t's way into y_t of the same step: the states after a step are independent coordinates."};
  a.hyper = {hyper_integer("width", "H", 64, 1, 4096, "Units, each with a fast and a slow state.", "units"),
             hyper_integer("layers", "L", 1, 1, 64, "Layers, each fed with the one below."),
             hyper_real("dt", "Δt", 1.0, 1e-6, 10.0, "Largest time step; up to 1 both states stay within ±1.", true)};
  a.spectrum = "eigenvalues of the recurrent Jacobian ∂(y, z)_t/∂(y, z)_{t-1}";
  a.source = {"T. K. Rusch, S. Mishra, N. B. Erichson, M. W. Mahoney", "Long expressive memory for sequence modeling", "ICLR",
              "https://arxiv.org/abs/2110.04744", 2022};
  a.input_weights = {{"inp2hid.weight"}};
  a.layer = [](Layer& l, Var x) {
    const std::int64_t H = l.hyper.integer("width"), in = x.dim(-1);
    const double dt = l.hyper.real("dt");
    const Init start = parts::torch_uniform(H);
    const std::string starts = "; starts uniform in ±1/√H.";
    const auto matrix = [&](const std::string& name, Shape shape, const std::string& role) {
      return l.parameter(name + ".weight", std::move(shape), start, role + starts);
    };
    const auto shift = [&](const std::string& name, std::int64_t n, const std::string& rows) {
      return l.parameter(name + ".bias", {n}, start, "Its bias" + rows + starts);
    };
    const Var V = matrix("inp2hid", {4 * H, in}, "V by rows: of Δ1, of Δ2, of y (the code's i_z), of z (its i_y)");
    const Var b = shift("inp2hid", 4 * H, ", rows alike");
    const Var W = matrix("hid2hid", {3 * H, H}, "W by rows: of Δ1, of Δ2, of z");
    const Var c = shift("hid2hid", 3 * H, ", rows alike");
    const Var W_y = matrix("transform_z", {H, H}, "W_y, from z to y");
    const Var d = shift("transform_z", H, "");
    const Var u = linear(x, V, b);
    const auto rows = [H](Var all, std::int64_t i) { return slice(all, -1, i * H, (i + 1) * H); };
    const std::vector<Var> tokens{rows(u, 0), rows(u, 1), rows(u, 2), rows(u, 3)};
    return step(l, {{"y", {H}, "The state that is read out and fed back."}, {"z", {H}, "The state that moves y."}}, tokens,
                [=](Cell& cell, std::span<const Var> t, std::span<const Var> s) {
                  const Var fed = linear(s[0], W, c);
                  const Var fast = cell.gate("dt1", dt * sigmoid(t[0] + rows(fed, 0)), 0.0, dt,
                                             "Δ1: the time step of y, and how much of y is replaced.");
                  const Var slow = cell.gate("dt2", dt * sigmoid(t[1] + rows(fed, 1)), 0.0, dt,
                                             "Δ2: the time step of z, and how much of z is replaced.");
                  const Var z = (1.0 - slow) * s[1] + slow * tanh(t[3] + rows(fed, 2));
                  const Var y = (1.0 - fast) * s[0] + fast * tanh(linear(z, W_y, d) + t[2]);
                  return std::vector<Var>{y, z};
                })[0];
  };
  return a;
}

}  // namespace reclab::architectures
