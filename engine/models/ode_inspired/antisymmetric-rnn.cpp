// SPDX-License-Identifier: GPL-3.0-or-later
//   h_t = h_{t-1} + ε f(a_t + V_h x_t + b_h),   a_t = (W - W^T - γ I) h_{t-1}
//   gated: h_t = h_{t-1} + ε z_t f(a_t + V_h x_t + b_h),   z_t = σ(a_t + V_z x_t + b_z)
// B. Chang, M. Chen, E. Haber, E. H. Chi, AntisymmetricRNN: a dynamical system view on recurrent neural networks, ICLR 2019. Names and
// conventions of torchrecurrent's AntisymmetricRNNCell and GatedAntisymmetricRNNCell.
#include <cmath>

#include "models/parts/matrices.h"
#include "models/parts/parts.h"
#include "models/parts/solver.h"
#include "recurrence/flow.h"
#include "recurrence/mixing/mixing.h"
#include "recurrence/step/step.h"

namespace reclab::architectures {

Architecture antisymmetric_rnn() {
  Architecture a;
  a.title = "AntisymmetricRNN";
  a.equations = {"a_t = (W_hh − W_hhᵀ − γ I) h_{t-1}", "h_t = h_{t-1} + ε f(a_t + W_ih x_t + b_ih + b_hh)",
                 "gated: h_t = h_{t-1} + ε z_t ⊙ f(a_t + W^h_ih x_t + b^h_ih + b_hh),  z_t = σ(a_t + W^z_ih x_t + b^z_ih)", "y_t = h_t",
                 "∂h_t/∂h_{t-1} = I + ε diag(f') (W_hh − W_hhᵀ − γ I) without a gate"};
  a.notes = {
      "Names and shapes are those of torchrecurrent's cells: cells.0.weight_ih and so on are read too. With a gate the rows of weight_ih "
      "and bias_ih are gate, candidate.",
      "bias_hh enters the candidate alone, as in torchrecurrent's code; its documentation, unlike its code, has it in the gate too. The "
      "paper has one bias for each.",
      "The paper's V_h, b_h, V_z, b_z are the halves of weight_ih and bias_ih. The asymRNN of the authors of LipschitzRNN multiplies rows, "
      "h W: its C is −W_hh.",
      "torchrecurrent starts weight_hh N(0, 1) and the gate's bias at 0, and has ε = 1, γ = 0; here they start as in the paper."};
  a.hyper = {hyper_integer("width", "H", 64, 1, 4096, "Number of units.", "units"),
             hyper_integer("layers", "L", 1, 1, 64, "Layers, each fed with the one below."),
             hyper_real("epsilon", "ε", 0.01, 1e-4, 10.0, "Step of the Euler method.", true),
             hyper_real("gamma", "γ", 0.01, 0.0, 100.0, "Diffusion: what is taken from the diagonal, so that the step is stable."),
             hyper_flag("gated", false, "Whether an input gate, which shares the recurrent matrix, scales each unit's step."),
             hyper_choice("activation", "tanh", {"tanh", "relu", "identity"},
                          "The nonlinearity f; identity makes the network without a gate linear."),
             hyper_flag("bias", true, "Whether bias_ih exists."),
             hyper_flag("recurrent_bias", true, "Whether bias_hh exists."),
             initialisation_only(hyper_real("sigma_w", "σ_w", 1.0, 0.0, 100.0, "weight_hh starts N(0, σ_w²/H)."))};
  a.spectrum = "eigenvalues of the recurrent Jacobian ∂h_t/∂h_{t-1}";
  a.source = {"B. Chang, M. Chen, E. Haber, E. H. Chi", "AntisymmetricRNN: a dynamical system view on recurrent neural networks", "ICLR",
              "https://arxiv.org/abs/1902.09689", 2019};
  a.reference = {{"cells.{n}.weight_ih", "weight_ih"},
                 {"cells.{n}.weight_hh", "weight_hh"},
                 {"cells.{n}.bias_ih", "bias_ih"},
                 {"cells.{n}.bias_hh", "bias_hh"}};

  a.input_weights = {{"weight_ih"}};
  a.layer = [](Layer& l, Var x) {
    const std::int64_t H = l.hyper.integer("width"), in = x.dim(-1);
    const double epsilon = l.hyper.real("epsilon");
    const bool gated = l.hyper.flag("gated");
    const std::int64_t rows = gated ? 2 * H : H;
    const Var W_ih =
        l.parameter("weight_ih", {rows, in}, init::normal(1.0 / std::sqrt(static_cast<double>(in))),
                    gated ? "W_ih, rows gate, candidate; starts N(0, 1/inputs)." : "W_ih, from the input; starts N(0, 1/inputs).");
    const Var W_hh = l.parameter("weight_hh", {H, H}, init::normal(l.hyper.real("sigma_w") / std::sqrt(static_cast<double>(H))),
                                 "W_hh, of which W_hh − W_hhᵀ − γ I acts on the state; starts N(0, σ_w²/H).");
    Var u = linear(x, W_ih);
    if (l.hyper.flag("bias"))
      u = u + l.parameter(
                  "bias_ih", {rows}, init::each([=](Rng&, std::int64_t i) { return gated && i < H ? 1.0 : 0.0; }),
                  gated ? "b_ih, rows gate, candidate; the gate's start at 1, so that it is open, the others at 0." : "b_ih; starts at 0.");
    Var b_hh;
    if (l.hyper.flag("recurrent_bias")) b_hh = l.parameter("bias_hh", {H}, init::constant(0.0), "b_hh, of the candidate; starts at 0.");
    const Var R = W_hh - transpose(W_hh) - l.hyper.real("gamma") * parts::identity(l.graph(), H);
    Var candidate = gated ? slice(u, -1, H, 2 * H) : u;
    if (b_hh) candidate = candidate + b_hh;
    std::vector<Var> tokens{candidate};
    if (gated) tokens.push_back(slice(u, -1, 0, H));
    const std::string f = l.hyper.choice("activation");
    declare_flow(l, {.rule = Flow::Rule::forward});
    declare_matrix(l, {.matrix = R});
    const StateSpec state{"h", {H}, "The hidden state."};
    const parts::OdeSolver one_step = parts::fixed_solver(l, "euler", 1);
    if (one_step.gradient != OdeGradient::steps)
      return step(l, {state}, tokens, [=](Cell& named, std::span<const Var> u_t, std::span<const Var> s) {
        const auto slope = [&](Var h) {
          const Var turned = linear(h, R), change = parts::activation(f, turned + u_t[0]);
          return gated ? sigmoid(turned + u_t[1]) * change : change;
        };
        return std::vector<Var>{parts::solve(named, one_step, slope, s[0], {epsilon})};
      })[0];
    const CellFunction cell = [=](Cell& named, std::span<const Var> u_t, std::span<const Var> s) {
      const Var turned = linear(s[0], R), sum = turned + u_t[0];
      Var change = parts::activation(f, sum);
      if (gated)
        change = named.gate("gate", sigmoid(turned + u_t[1]), 0.0, 1.0, "The input gate z: which share of its step a unit takes.") * change;
      return std::vector<Var>{s[0] + epsilon * change};
    };
    if (f != "identity" || gated) return step(l, {state}, tokens, cell)[0];
    return parts::linear_step(l, state, [&] { return parts::identity(l.graph(), H) + epsilon * R; }, candidate * epsilon, tokens, cell);
  };
  return a;
}

}  // namespace reclab::architectures
