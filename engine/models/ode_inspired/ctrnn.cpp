// SPDX-License-Identifier: GPL-3.0-or-later
//   ds/dt = -s/τ + φ(W [x_t; s] + b)   or   τ ds/dt = -s + W_x x_t + W_s φ(s + b),   solved over Δt · Δ_t at each step
// K. Funahashi, Y. Nakamura, Approximation of dynamical systems by continuous time recurrent neural networks, Neural Networks 6 (1993).
// Names and conventions of raminmh/liquid_time_constant_networks, ctrnn_model.py.
#include "array/error.h"
#include "models/parts/parts.h"
#include "models/parts/solver.h"
#include "recurrence/flow.h"

namespace reclab::architectures {

Architecture ctrnn() {
  Architecture a;
  a.title = "CT-RNN";
  a.equations = {"of_sum: ds/dt = −s/τ + φ(W_xᵀ x_t + W_sᵀ s + b)", "of_state: ds/dt = (−s + W_xᵀ x_t + W_sᵀ φ(s + b))/τ",
                 "W = [W_x; W_s], rows x, s; x_t is held over the step, which is unfolds · Δt · Δ_t long",
                 "Euler's step: s ← s + Δt Δ_t ds/dt, unfolds times, and then clipped to ±clip where that is not 0", "y_t = s_t"};
  a.notes = {
      "Names and shapes are those of the authors of LTC in ctrnn_model.py: W_step [in + H, H], rows x, s, and bias_step [H]; a row is "
      "where a weight comes from.",
      "There global_feedback is false by default: f sees the input alone and the state only leaks. That is feedback=false, where W_step "
      "has the rows of x alone.",
      "There a trainable time constant (fix_tau=False, one softplus(tau) for all units) is made and not used; tau=shared uses it, tau=each "
      "has one a unit.",
      "of_state is the form of R. D. Beer, Adaptive Behavior 3 (1995), whose bias θ is b; his output φ(s + b) is not the output here."};
  a.hyper = {hyper_integer("width", "H", 64, 1, 4096, "Units.", "units"),
             hyper_integer("layers", "L", 1, 1, 64, "Layers, each fed with the one below."),
             hyper_choice("form", "of_sum", {"of_sum", "of_state"},
                          "What the nonlinearity is of: of the whole sum that drives a unit, or of each unit's state."),
             hyper_choice("activation", "tanh", {"tanh", "sigmoid", "relu", "identity"}, "The nonlinearity φ."),
             hyper_flag("feedback", true, "Whether the units drive one another (global_feedback)."),
             hyper_choice("tau", "fixed", {"fixed", "shared", "each"},
                          "The time constant τ: time_constant for all, one trained softplus(tau), or one a unit."),
             hyper_real("time_constant", "τ", 1.0, 1e-3, 1e4, "The time constant; a trained one starts as softplus of it.", true, "time"),
             hyper_real("delta_t", "Δt", 0.1, 1e-4, 10.0, "How long each of the unfolds is, where Δ_t = 1.", true, "time"),
             hyper_real("clip", "", 0.0, 0.0, 1e3, "The state is clipped to ± this after each of the unfolds; 0: not (cell_clip).")};
  for (HyperSpec& row : parts::solver_hyper("euler", 6)) a.hyper.push_back(std::move(row));
  for (std::string& note : parts::solver_notes()) a.notes.push_back(std::move(note));
  a.knows_time = true;
  a.spectrum = "eigenvalues of the recurrent Jacobian ∂s_t/∂s_{t-1} over all solver steps";
  a.source = {"K. Funahashi, Y. Nakamura", "Approximation of dynamical systems by continuous time recurrent neural networks",
              "Neural Networks 6", "https://doi.org/10.1016/S0893-6080(05)80125-X", 1993};
  a.input_weights = {{"W_step", InputWeight::Part::first_rows}};
  a.layer = [](Layer& l, Var x) {
    const std::int64_t H = l.hyper.integer("width"), in = x.dim(-1);
    const bool feedback = l.hyper.flag("feedback"), of_sum = l.hyper.choice("form") == "of_sum";
    const std::string f = l.hyper.choice("activation"), tau = l.hyper.choice("tau");
    const double constant = l.hyper.real("time_constant"), clip = l.hyper.real("clip");
    const std::int64_t rows = feedback ? in + H : in;
    const Var W = l.parameter(
        "W_step", {rows, H}, parts::xavier_uniform(rows, H),
        feedback ? "W, rows x, s; starts uniform in ±√(6/(in + 2H)) (Xavier)." : "W, rows x; starts uniform in ±√(6/(in + H)) (Xavier).");
    const Var b = !of_sum && !feedback ? Var{}
                                       : l.parameter("bias_step", {H}, init::constant(0.0),
                                                     of_sum ? "b; starts at 0." : "b, the bias θ inside φ; starts at 0.");
    const Var time = tau == "fixed" ? Var{}
                                    : softplus(l.parameter("tau", {tau == "shared" ? 1 : H}, init::constant(constant),
                                                           "tau, of which τ is the softplus; starts at time_constant."));
    const Var drive = matmul(x, slice(W, 0, 0, in)), elapsed = l.elapsed();
    const Var W_s = feedback ? slice(W, 0, in, rows) : Var{};
    const auto phi = [f](Var v) { return parts::activation(f, v); };
    std::vector<Var> tokens{of_sum ? drive + b : drive};
    if (elapsed) tokens.push_back(elapsed);
    const parts::OdeSolver solver =
        parts::solver_of(l, clip > 0.0 ? "clips its state, so that it solves no differential equation where it does: choose clip=0" : "");
    if (solver.method == "euler" && solver.steps == 1 && clip == 0.0) declare_flow(l, {.rule = Flow::Rule::forward});
    const double length = l.hyper.real("delta_t") * static_cast<double>(solver.steps);
    return step(
        l, {{"s", {H}, "The state: what is read out."}}, tokens,
        [=](Cell& cell, std::span<const Var> u, std::span<const Var> s) {
          const auto leaking = [&](Var v) { return time ? v / time : v * (1.0 / constant); };
          const Var alone = feedback || !of_sum ? Var{} : phi(u[0]);
          const auto slope = [&](Var v) {
            if (of_sum) return (alone ? alone : phi(u[0] + matmul(v, W_s))) - leaking(v);
            return leaking((feedback ? u[0] + matmul(phi(v + b), W_s) : u[0]) - v);
          };
          const auto clipped = [&](Var v) { return -minimum(-minimum(v, clip), clip); };
          return std::vector<Var>{parts::solve(cell, solver, slope, s[0], {length, elapsed ? u[1] : Var{}},
                                               clip > 0.0 ? std::function<Var(Var)>(clipped) : std::function<Var(Var)>())};
        },
        feedback ? Sees::all : Sees::own_entry)[0];
  };
  return a;
}

}  // namespace reclab::architectures
