// SPDX-License-Identifier: GPL-3.0-or-later
//   dh/dt = α A^T h + tanh(W^T h + E x_t + b)                 stepped by ε: Euler, midpoint, or Runge-Kutta of fourth order
//   S(B; β, γ) = β (B - B^T) + (1 - β) (B + B^T) - γ I,   A = S(B; β, γ),   W = S(C; β_W, γ_W)
//   gated: the derivative is multiplied by σ(W^T h + E_g x_t + b_g)
// N. B. Erichson, O. Azencot, A. Queiruga, L. Hodgkinson, M. W. Mahoney, Lipschitz recurrent neural networks, ICLR 2021. Names and
// conventions of the authors' code.
#include "models/parts/matrices.h"
#include "models/parts/parts.h"
#include "models/parts/solver.h"
#include "recurrence/flow.h"
#include "recurrence/step/step.h"

namespace reclab::architectures {

Architecture lipschitz_rnn() {
  Architecture a;
  a.title = "LipschitzRNN";
  a.equations = {"S(B; β, γ) = β (B − Bᵀ) + (1 − β) (B + Bᵀ) − γ I;  A = S(B; β, γ),  W = S(C; β_W, γ_W)",
                 "d(h) = α Aᵀ h + tanh(Wᵀ h + E x_t + b)",
                 "gated: d(h) is multiplied by σ(Wᵀ h + E_gate x_t + b_gate)",
                 "euler: h_t = h_{t-1} + ε d(h_{t-1});  midpoint: h_t = h_{t-1} + ε d(h_{t-1} + ε/2 d(h_{t-1}))",
                 "rk4: the 3/8 rule, k₁ = d(h), k₂ = d(h + ε k₁/3), k₃ = d(h + ε (k₂ − k₁/3)), k₄ = d(h + ε (k₁ − k₂ + k₃)), h_t = h_{t-1} "
                 "+ ε (k₁ + 3 k₂ + 3 k₃ + k₄)/8",
                 "y_t = h_t"};
  a.notes = {
      "Names and shapes are those of the authors' code: E, E_gate, B, C; func.B and func.C of their LipschitzRNN_ODE are B and C, their "
      "read-out D is the head. They multiply rows, h A, hence the transposes.",
      "β and γ of the authors' code are those of A and of W alike; the paper and NoisyRNN have them apart.",
      "midpoint and rk4 are torchdiffeq's, one step of ε a time step with the input held; the authors' have α = 1 and no gate.",
      "A and W are made once a segment."};
  a.hyper = {hyper_integer("width", "N", 64, 1, 4096, "Number of units.", "units"),
             hyper_integer("layers", "L", 1, 1, 64, "Layers, each fed with the one below."),
             hyper_real("epsilon", "ε", 0.01, 1e-4, 10.0, "Time step.", true),
             hyper_real("alpha", "α", 1.0, 0.0, 100.0, "Strength of the linear part."),
             hyper_real("beta", "β", 0.8, 0.0, 1.0, "How skew A is: at 1 skew, at 0 symmetric, at 1/2 simply B."),
             hyper_real("gamma", "γ", 0.01, 0.0, 100.0, "What is taken from A's diagonal."),
             hyper_real("beta_w", "β_W", 0.8, 0.0, 1.0, "How skew W is."),
             hyper_real("gamma_w", "γ_W", 0.01, 0.0, 100.0, "What is taken from W's diagonal."),
             hyper_choice("solver", "euler", {"euler", "midpoint", "rk4"},
                          "How the equation is stepped: Euler, the midpoint rule (RK2), or the 3/8 rule (RK4)."),
             hyper_flag("gated", false, "Whether the derivative of each unit is multiplied by a gate."),
             initialisation_only(hyper_real("init_std", "σ", 1.0, 0.0, 1000.0, "B and C start N(0, (σ/N)²)."))};
  a.spectrum = "eigenvalues of the recurrent Jacobian ∂h_t/∂h_{t-1}, with euler I + ε (α Aᵀ + diag(tanh') Wᵀ)";
  a.source = {"N. B. Erichson, O. Azencot, A. Queiruga, L. Hodgkinson, M. W. Mahoney", "Lipschitz recurrent neural networks", "ICLR",
              "https://arxiv.org/abs/2006.12070", 2021};

  a.input_weights = {{"E.weight"}, {"E_gate.weight"}};
  a.layer = [](Layer& l, Var x) {
    const std::int64_t N = l.hyper.integer("width");
    const double epsilon = l.hyper.real("epsilon"), alpha = l.hyper.real("alpha"),
                 spread = l.hyper.real("init_std") / static_cast<double>(N);
    const bool gated = l.hyper.flag("gated");
    std::vector<Var> tokens{parts::linear(l, "E", x, N, "E, from the input")};
    if (gated) tokens.push_back(parts::linear(l, "E_gate", x, N, "E_gate, from the input to the gate"));
    const Var B = l.parameter("B", {N, N}, init::normal(spread), "B, of which A is made; starts N(0, (σ/N)²).");
    const Var C = l.parameter("C", {N, N}, init::normal(spread), "C, of which W is made; starts N(0, (σ/N)²).");
    const Var A = transpose(parts::mixture(B, l.hyper.real("beta"), l.hyper.real("gamma"))),
              W = transpose(parts::mixture(C, l.hyper.real("beta_w"), l.hyper.real("gamma_w")));
    const std::string solver = l.hyper.choice("solver");
    if (solver == "euler") declare_flow(l, {.rule = Flow::Rule::forward});
    const parts::OdeSolver one_step = parts::fixed_solver(l, solver == "rk4" ? "rk4_38" : solver, 1);
    return step(
        l, {{"h", {N}, "The hidden state: what is read out."}}, tokens, [=](Cell& cell, std::span<const Var> u, std::span<const Var> s) {
          const auto slope = [&](Var h, bool named) {
            const Var turned = linear(h, W);
            Var d = alpha * linear(h, A) + tanh(turned + u[0]);
            if (!gated) return d;
            Var open = sigmoid(turned + u[1]);
            if (named)
              open = cell.gate("gate", open, 0.0, 1.0, "The gate at the start of the step: which share of its derivative a unit follows.");
            return d * open;
          };
          if (one_step.gradient != OdeGradient::steps)
            return std::vector<Var>{parts::solve(cell, one_step, [&](Var h) { return slope(h, false); }, s[0], {epsilon})};
          const Var h = s[0], k1 = slope(h, true);
          if (solver == "euler") return std::vector<Var>{h + epsilon * k1};
          if (solver == "midpoint") return std::vector<Var>{h + epsilon * slope(h + 0.5 * epsilon * k1, false)};
          const Var k2 = slope(h + (epsilon / 3.0) * k1, false), k3 = slope(h + epsilon * (k2 - (1.0 / 3.0) * k1), false),
                    k4 = slope(h + epsilon * (k1 - k2 + k3), false);
          return std::vector<Var>{h + (epsilon / 8.0) * (k1 + 3.0 * (k2 + k3) + k4)};
        })[0];
  };
  return a;
}

}  // namespace reclab::architectures
