// SPDX-License-Identifier: GPL-3.0-or-later
//   h_t = h_{t-1} + d m_t (α A^T h_{t-1} + tanh(W^T h_{t-1} + E x_t + b)) + σ_a ξ_t,   ξ_t ~ N(0, 1),   m_t ~ U(1 - σ_m, 1)
//   A = β (B - B^T) + (1 - β) (B + B^T) - γ_A I,   W alike of C with γ_W
// S. H. Lim, N. B. Erichson, L. Hodgkinson, M. W. Mahoney, Noisy recurrent neural networks, NeurIPS 2021. Names and conventions of the
// authors' code.
#include "models/parts/matrices.h"
#include "models/parts/parts.h"
#include "models/parts/solver.h"
#include "recurrence/noise.h"
#include "recurrence/step/step.h"

namespace reclab::architectures {

Architecture noisy_rnn() {
  Architecture a;
  a.title = "NoisyRNN";
  a.equations = {"A = β (B − Bᵀ) + (1 − β) (B + Bᵀ) − γ_A I;  W alike of C with γ_W", "δ_t = α Aᵀ h_{t-1} + tanh(Wᵀ h_{t-1} + E x_t + b)",
                 "noisy: h_t = h_{t-1} + d ⊙ m_t ⊙ δ_t + σ_a ξ_t,  ξ_t ~ N(0, 1),  m_t ~ U(1 − σ_m, 1)", "base: h_t = h_{t-1} + ε δ_t",
                 "y_t = h_t"};
  a.notes = {
      "Names and shapes are those of the authors' code: E, B, C and the learned steps d, which the solver base does not use; their "
      "read-out D is the head. They multiply rows, h A, hence the transposes.",
      "The noise enters here whenever add_noise or mult_noise is above 0, forward and backward; the authors' enters in training alone: set "
      "both to 0 for their test mode.",
      "The additive noise is not multiplied by √ε, as in the code: the step of the paper's Euler–Maruyama scheme is part of its level.",
      "Row t of the noise comes from noise_seed, the layer and t alone, the same for all sequences of a batch; the gates add and mult are "
      "what was drawn, for who wants to repeat a run elsewhere."};
  a.hyper = {hyper_integer("width", "N", 64, 1, 4096, "Number of units.", "units"),
             hyper_integer("layers", "L", 1, 1, 64, "Layers, each fed with the one below."),
             hyper_choice("solver", "noisy", {"noisy", "base"}, "noisy: steps d and noise; base: the step ε and none."),
             hyper_real("epsilon", "ε", 0.01, 1e-4, 10.0, "Time step: of the solver base, and where d starts.", true),
             hyper_real("add_noise", "σ_a", 0.02, 0.0, 10.0, "Deviation of what is added to the state at each step."),
             hyper_real("mult_noise", "σ_m", 0.02, 0.0, 1.0, "By how much at most a step is shortened."),
             hyper_integer("noise_seed", "", 1, 0, 2147483647, "Seed of the noise."),
             hyper_real("alpha", "α", 1.0, 0.0, 100.0, "Strength of the linear part."),
             hyper_real("beta", "β", 0.8, 0.0, 1.0, "How skew A and W are: at 1 skew, at 0 symmetric."),
             hyper_real("gamma_a", "γ_A", 0.01, 0.0, 100.0, "What is taken from A's diagonal."),
             hyper_real("gamma_w", "γ_W", 0.01, 0.0, 100.0, "What is taken from W's diagonal."),
             initialisation_only(hyper_real("init_std", "σ", 1.0, 0.0, 1000.0, "B and C start N(0, (σ/N)²)."))};
  a.spectrum = "eigenvalues of the recurrent Jacobian ∂h_t/∂h_{t-1} with the noise that was drawn";
  a.source = {"S. H. Lim, N. B. Erichson, L. Hodgkinson, M. W. Mahoney", "Noisy recurrent neural networks", "NeurIPS",
              "https://arxiv.org/abs/2102.04877", 2021};

  a.input_weights = {{"E.weight"}};
  a.layer = [](Layer& l, Var x) {
    const std::int64_t N = l.hyper.integer("width"), seed = l.hyper.integer("noise_seed");
    const double epsilon = l.hyper.real("epsilon"), alpha = l.hyper.real("alpha"), beta = l.hyper.real("beta"),
                 spread = l.hyper.real("init_std") / static_cast<double>(N);
    const Var z = parts::linear(l, "E", x, N, "E, from the input");
    const Var C = l.parameter("C", {N, N}, init::normal(spread), "C, of which W is made; starts N(0, (σ/N)²).");
    const Var B = l.parameter("B", {N, N}, init::normal(spread), "B, of which A is made; starts N(0, (σ/N)²).");
    const Var d = l.parameter("d", {N}, init::constant(epsilon), "d, the step of each unit; starts at ε. Not used by the solver base.");
    const Var A = transpose(parts::mixture(B, beta, l.hyper.real("gamma_a"))),
              W = transpose(parts::mixture(C, beta, l.hyper.real("gamma_w")));
    const bool noisy = l.hyper.choice("solver") == "noisy";
    const double add = noisy ? l.hyper.real("add_noise") : 0.0, mult = noisy ? l.hyper.real("mult_noise") : 0.0;
    parts::OdeSolver one_step{"euler", 1, 0.0, 0.0, 0};
    one_step.gradient = declare_ode(
        l, noisy ? "takes steps of random lengths and noise, which is a stochastic differential equation: choose solver=base" : "");
    std::vector<Var> tokens{z};
    if (mult > 0.0)
      tokens.push_back(l.gate("mult", uniform_noise(l, "mult", N, 1.0 - mult, 1.0, seed), 1.0 - mult, 1.0,
                              "The multiplicative noise m that was drawn."));
    if (add > 0.0)
      tokens.push_back(l.gate("add", noise(l, "add", N, add, seed), 0.0, 0.0, "The additive noise σ_a ξ that was drawn, unbounded."));
    return step(l, {{"h", {N}, "The hidden state: what is read out."}}, tokens,
                [=](Cell& cell, std::span<const Var> u, std::span<const Var> s) {
                  if (one_step.gradient != OdeGradient::steps) {
                    const auto slope = [&](Var h) { return alpha * linear(h, A) + tanh(linear(h, W) + u[0]); };
                    return std::vector<Var>{parts::solve(cell, one_step, slope, s[0], {epsilon})};
                  }
                  const Var change = alpha * linear(s[0], A) + tanh(linear(s[0], W) + u[0]);
                  if (!noisy) return std::vector<Var>{s[0] + epsilon * change};
                  Var h = s[0] + (mult > 0.0 ? d * u[1] : d) * change;
                  if (add > 0.0) h = h + u.back();
                  return std::vector<Var>{h};
                })[0];
  };
  return a;
}

}  // namespace reclab::architectures
