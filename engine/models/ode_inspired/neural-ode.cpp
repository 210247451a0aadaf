// SPDX-License-Identifier: GPL-3.0-or-later
//   ds/dt = f(x_t, s),   s_t = s(Δ_t) from s(0) = s_{t-1} by a solver;   f a network of some layers
// R. T. Q. Chen, Y. Rubanova, J. Bettencourt, D. Duvenaud, Neural ordinary differential equations, NeurIPS 2018. As a recurrent cell: NODE
// of raminmh/liquid_time_constant_networks; f as in YuliaRubanova/latent_ode, solvers as in rtqichen/torchdiffeq.
#include "models/parts/derivative.h"
#include "models/parts/parts.h"
#include "models/parts/solver.h"

namespace reclab::architectures {

Architecture neural_ode() {
  Architecture a;
  a.title = "Neural ODE";
  a.equations = {"ds/dt = f(x_t, s), with x_t held over the step",
                 "f(x, s) = W_k φ(… φ(W_0 [x; s] + b_0) …) + b_k, and tanh of it where final_activation says so",
                 "drive=added: f(x, s) = g(s) + W_u x, where g is that network without x",
                 "s_t = s(span · Δ_t) from s(0) = s_{t-1}, by the solver", "y_t = s_t"};
  a.notes = {
      "gradient_net.{0,2,…} are the linear maps of a torch Sequential, as latent_ode names them; the first reads x in front of s, as NODE "
      "of ctrnn_model.py does with one layer and tanh (hidden_layers=0, final_activation=tanh, solver=rk4, unfolds=6, span=0.6; its W_step "
      "is the transpose).",
      "f does not depend on the time itself. A network that reads the state alone is drive=added: without an input.weight of its own, give "
      "zeros.",
      "Gradients are those of the solver's steps (torchdiffeq's odeint); the learning rule adjoint has those of odeint_adjoint."};
  a.hyper = {hyper_integer("width", "H", 64, 1, 1024, "Size of the state.", "units"),
             hyper_integer("layers", "L", 1, 1, 64, "Layers, each fed with the one below."),
             hyper_choice("drive", "joined", {"joined", "added"},
                          "How the input enters f: beside the state, or added to f(s) by a map of its own.")};
  for (HyperSpec& row : parts::derivative_hyper(1, 64, "identity")) a.hyper.push_back(std::move(row));
  a.hyper.push_back(hyper_real("span", "", 1.0, 1e-4, 1e3, "How long the equation is solved over where Δ_t = 1.", true, "time"));
  for (HyperSpec& row : parts::solver_hyper("rk4", 2)) a.hyper.push_back(std::move(row));
  for (std::string& note : parts::solver_notes()) a.notes.push_back(std::move(note));
  a.knows_time = true;
  a.spectrum =
      "eigenvalues of the recurrent Jacobian ∂s_t/∂s_{t-1} over the whole step; with the solver's exact solution those of the flow";
  a.source = {"R. T. Q. Chen, Y. Rubanova, J. Bettencourt, D. Duvenaud", "Neural ordinary differential equations", "NeurIPS",
              "https://arxiv.org/abs/1806.07366", 2018};
  a.input_weights = {{"input.weight"}, {"gradient_net.0.weight", InputWeight::Part::first_columns, "input.weight"}};
  a.layer = [](Layer& l, Var x) {
    const std::int64_t H = l.hyper.integer("width");
    const bool joined = l.hyper.choice("drive") == "joined";
    const parts::Derivative f(l, "gradient_net", joined ? x : Var{}, H);
    const double length = l.hyper.real("span");
    const Var drive = joined ? f.token()
                             : linear(x, l.parameter("input.weight", {H, x.dim(-1)}, init::normal(l.hyper.real("deviation")),
                                                     "W_u, from the input; starts as the weights of f."));
    const Var elapsed = l.elapsed();
    std::vector<Var> tokens{drive};
    if (elapsed) tokens.push_back(elapsed);
    return step(l, {{"s", {H}, "The state: what is read out."}}, tokens,
                [=, solver = parts::solver_of(l)](Cell& cell, std::span<const Var> u, std::span<const Var> s) {
                  const auto slope = [&](Var v) { return joined ? f(v, u[0]) : f(v) + u[0]; };
                  return std::vector<Var>{parts::solve(cell, solver, slope, s[0], {length, elapsed ? u[1] : Var{}})};
                })[0];
  };
  return a;
}

}  // namespace reclab::architectures
