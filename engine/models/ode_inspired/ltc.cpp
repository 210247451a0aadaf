// SPDX-License-Identifier: GPL-3.0-or-later
//   dv/dt = (g_l (v_l - v) + Σ_j a_jk (e_jk - v) + Σ_j s_jk (e^s_jk - v))/c_m,   a_jk = w_jk σ(σ_jk (v_j - μ_jk)), s_jk alike from the
//   input fused solver, `unfolds` times: v ← (c_m v + g_l v_l + Σ a e + Σ s e^s)/(c_m + g_l + Σ a + Σ s)
// R. Hasani, M. Lechner, A. Amini, D. Rus, R. Grosu, Liquid time-constant networks, AAAI 2021. Names and conventions of the authors'
// LTCCell.
#include <optional>

#include "array/error.h"
#include "models/parts/parts.h"
#include "models/parts/solver.h"
#include "models/parts/wiring/wiring.h"
#include "recurrence/step/step.h"

namespace reclab::architectures {

Architecture ltc() {
  Architecture a;
  a.title = "LTC";
  a.equations = {
      "x ← x ⊙ input_w + input_b;  s_jk = W^s_jk σ(σ^s_jk (x_j − μ^s_jk)),  a_jk = W_jk σ(σ_jk (v_j − μ_jk))",
      "semi-implicit: v_k ← (c_k v_k + g_k v^l_k + Σ_j a_jk e_jk + Σ_j s_jk e^s_jk)/(c_k + g_k + Σ_j a_jk + Σ_j s_jk), ode_unfolds times",
      "explicit: v ← v + 0.1 f(v);  Runge–Kutta: its fourth-order step of 0.1",
      "f(v)_k = (g_k (v^l_k − v_k) + Σ_j s_jk (e^s_jk − v_k) + Σ_j a_jk (e_jk − v_k))/c_k",
      "y_t = (v_1 … v_M) ⊙ output_w + output_b of the M motor neurons"};
  a.notes = {
      "Names and shapes are those of the authors' LTCCell: input_w, input_b, sensory_{mu,sigma,W,erev}, {mu,sigma,W,erev}, vleak, gleak, "
      "cm_t; row j is where a synapse comes from, column k where it goes.",
      "The output map is that of ncps' LTCCell, output_w and output_b [M]; the authors' LTCCell returns v itself, as do "
      "output_mapping=identity and motor=0.",
      "The time step is part of cm_t, as in the authors' code; where Δ_t is not 1, c_k is divided by it, as in ncps' LTCCell, and the "
      "other solvers' step of 0.1 is multiplied by it.",
      "The reference clips cm_t, gleak and the weights to positive ranges after an optimiser's step, not here.",
      "ncps' LTC is capacitance=whole (cm, which c_k = cm · ode_unfolds/Δ_t is made of), epsilon=1e-8, mapping=affine, "
      "output_mapping=affine and constraints=softplus (implicit_param_constraints, its default; its LTCCell's is none), with a wiring, of "
      "which wiring=full is all synapses: its files hold sparsity_mask and sensory_sparsity_mask. Its names rnn_cell.w and "
      "rnn_cell.sensory_w are W and sensory_W here.",
      "Masks are numbers here, with a gradient that ncps does not have. An NCP's masks and signs are drawn as ncps draws them, of the same "
      "seed; those of wiring=full and random are not, but are in its files."};
  a.hyper = {
      hyper_integer("width", "H", 64, 1, 1024, "Neurons.", "units"),
      hyper_integer("layers", "L", 1, 1, 64, "Layers, each fed with the one below."),
      hyper_integer("ode_unfolds", "", 6, 1, 100, "Solver steps a time step."),
      hyper_choice("solver", "semi_implicit", {"semi_implicit", "explicit", "runge_kutta"}, "How the equation is solved."),
      hyper_choice("mapping", "affine", {"affine", "linear", "identity"},
                   "How the input is scaled: with input_w and input_b, input_w alone, or not."),
      hyper_integer("motor", "M", 0, 0, 1024,
                    "Motor neurons: the first ones, which alone are read out; 0: all, or of an NCP a quarter of the width.", "units"),
      hyper_choice("output_mapping", "identity", {"identity", "linear", "affine"},
                   "How what is read out is scaled: not, with output_w alone, or with output_w and output_b."),
      hyper_choice("constraints", "none", {"none", "softplus"},
                   "Whether weights, capacitance and leak conductance go through a softplus, which keeps them positive "
                   "(implicit_param_constraints)."),
      hyper_choice("capacitance", "per_step", {"per_step", "whole"},
                   "Which capacitance is a parameter: cm_t, divided by the solver's time step, or cm, which is divided by it here."),
      hyper_real("epsilon", "ε", 0.0, 0.0, 1.0, "Semi-implicit: what is added to the denominator."),
      hyper_flag("mixed_memory", false, "Whether an LSTM cell stands in front, whose output takes the place of v.")};
  for (HyperSpec& row : parts::wiring_hyper(false)) a.hyper.push_back(std::move(row));
  a.reference = {{"rnn_cell.w", "W"}, {"rnn_cell.sensory_w", "sensory_W"}, {"rnn_cell.*", "*"}, {"lstm.*", "lstm.*"},
                 {"w", "W"},          {"sensory_w", "sensory_W"},          {"*", "*"}};
  a.spectrum = "eigenvalues of the recurrent Jacobian ∂v_t/∂v_{t-1} over all solver steps";
  a.source = {"R. Hasani, M. Lechner, A. Amini, D. Rus, R. Grosu", "Liquid time-constant networks", "AAAI",
              "https://arxiv.org/abs/2006.04439", 2021};
  a.knows_time = true;
  a.check = [](const Hyper& h) { parts::check_wiring(h, "ltc"); };
  a.input_weights = {{"input_w"}};
  a.layer = [](Layer& l, Var x) {
    const std::int64_t H = l.hyper.integer("width"), in = x.dim(-1), T = l.steps(), B = l.batch(), unfolds = l.hyper.integer("ode_unfolds");
    const std::string &mapping = l.hyper.choice("mapping"), solver = l.hyper.choice("solver");
    const Var x_given = x;
    if (mapping != "identity") x = x * l.parameter("input_w", {in}, init::constant(1.0), "Scale of the input; starts at 1.");
    if (mapping == "affine") x = x + l.parameter("input_b", {in}, init::constant(0.0), "Shift of the input; starts at 0.");
    struct Synapses {
      Var mu, sigma, weight, reversal;
    };
    const bool wired = parts::is_wired(l.hyper), softened = l.hyper.choice("constraints") == "softplus",
               whole_capacitance = l.hyper.choice("capacitance") == "whole", mixed = l.hyper.flag("mixed_memory");
    const double epsilon = l.hyper.real("epsilon");
    const parts::Wiring wiring = wired ? parts::wiring_of(l.hyper, in) : parts::Wiring{};
    const auto positive = [softened](Var of) { return softened ? softplus(of) : of; };
    const auto synapses = [&](const std::string& prefix, std::int64_t from, const std::string& what) {
      const Shape shape{from, H};
      const std::vector<int>& present = prefix.empty() ? wiring.synapses : wiring.sensory;
      Synapses made{
          l.parameter(prefix + "mu", shape, init::uniform(0.3, 0.8),
                      "μ of the synapses " + what + ", [from, to]; starts uniform in 0.3..0.8."),
          l.parameter(prefix + "sigma", shape, init::uniform(3.0, 8.0),
                      "σ, the steepness of the synapses " + what + "; starts uniform in 3..8."),
          l.parameter(prefix + "W", shape, init::uniform(0.01, 1.0), "Weights of the synapses " + what + "; start uniform in 0.01..1."),
          l.parameter(prefix + "erev", shape, wired ? parts::signs_of(present) : init::each([](Rng& rng, std::int64_t) {
                        return rng.uniform(0.0, 1.0) < 0.5 ? -1.0 : 1.0;
                      }),
                      "Reversal potentials of the synapses " + what + "; start at ±1.")};
      made.weight = positive(made.weight);
      if (wired)
        made.weight = made.weight * l.parameter(prefix + "sparsity_mask", shape, parts::mask_of(present),
                                                "1 where there is a synapse " + what + ", else 0; starts as the wiring says.");
      return made;
    };
    const Synapses sensory = synapses("sensory_", in, "from the input"), inner = synapses("", H, "between neurons");
    const Var vleak = l.parameter("vleak", {H}, init::uniform(-0.2, 0.2), "Leak potential; starts uniform in ±0.2.");
    const Var gleak = positive(l.parameter("gleak", {H}, init::constant(1.0), "Leak conductance; starts at 1."));
    const Var cm = whole_capacitance
                       ? positive(l.parameter("cm", {H}, init::constant(0.5), "Capacitance; starts at 0.5.")) * static_cast<double>(unfolds)
                       : positive(l.parameter("cm_t", {H}, init::constant(0.5), "Capacitance divided by the time step; starts at 0.5."));
    const auto conductance = [](const Synapses& s, Var column) {
      return s.weight * sigmoid(s.sigma * (column - s.mu));
    };  // [..., from, to]
    const Var s = conductance(sensory, reshape(x, {T, B, in, 1}));
    const Var current = sum(s * sensory.reversal, -2),
              total = l.gate("sensory", sum(s, -2), 0.0, 0.0, "The sensory conductance of each neuron, unbounded above.");
    const Var at_rest = gleak * vleak, standing = cm + gleak, elapsed = l.elapsed();
    std::vector<Var> tokens{current, total};
    if (elapsed) tokens.push_back(elapsed);
    parts::OdeSolver explicit_steps{solver == "explicit" ? "euler" : "rk4", unfolds, 0.0, 0.0, 0};
    explicit_steps.gradient = declare_ode(l, solver == "semi_implicit" ? "takes semi-implicit steps, and the adjoint method goes back by "
                                                                         "explicit ones: choose solver=runge_kutta"
                                                                       : "");
    std::vector<StateSpec> states{{"v", {H}, "The membrane potentials: what is read out."}};
    std::optional<parts::MixedMemory> memory;
    if (mixed) {
      tokens.push_back(memory.emplace(l, x_given, H).token());
      states.push_back({"c", {H}, "The cell of the LSTM in front."});
    }
    Var y = step(l, states, tokens, [=](Cell& cell, std::span<const Var> u, std::span<const Var> state) {
      Var v = state[0], c;
      if (mixed) {
        const auto shown = (*memory)(cell, u.back(), v, state[1]);
        v = shown.h;
        c = shown.c;
      }
      const std::int64_t rows = v.dim(0);
      const Var capacitance = elapsed ? cm / u[2] : cm, resting = elapsed ? capacitance + gleak : standing;
      const auto times = [&](double h, Var k) { return elapsed ? h * u[2] * k : h * k; };
      const auto currents = [&](Var at) {
        const Var open = conductance(inner, reshape(at, {rows, H, 1}));
        return std::pair(sum(open * inner.reversal, -2), sum(open, -2));
      };
      const auto slope = [&](Var at) {
        const auto [driven, conducted] = currents(at);
        return (at_rest - gleak * at + u[0] - at * u[1] + driven - at * conducted) / cm;
      };
      if (explicit_steps.gradient != OdeGradient::steps)
        v = parts::solve(cell, explicit_steps, slope, v, {0.1 * static_cast<double>(unfolds), elapsed ? u[2] : Var{}});
      for (std::int64_t i = 0; explicit_steps.gradient == OdeGradient::steps && i < unfolds; ++i) {
        if (solver == "semi_implicit") {
          const auto [driven, conducted] = currents(v);
          const Var sum_of = resting + conducted + u[1], whole = epsilon > 0.0 ? sum_of + epsilon : sum_of;
          if (i + 1 == unfolds) cell.gate("keep", capacitance / whole, 0.0, 1.0, "How much of v the last solver step keeps.");
          v = (capacitance * v + at_rest + driven + u[0]) / whole;
        } else if (solver == "explicit") {
          v = v + times(0.1, slope(v));
        } else {
          const Var k1 = slope(v), k2 = slope(v + times(0.05, k1)), k3 = slope(v + times(0.05, k2)), k4 = slope(v + times(0.1, k3));
          v = v + times(0.1 / 6.0, k1 + 2.0 * k2 + 2.0 * k3 + k4);
        }
      }
      return mixed ? std::vector<Var>{v, c} : std::vector<Var>{v};
    })[0];
    const std::int64_t M = parts::motors_of(l.hyper);
    const std::string& output = l.hyper.choice("output_mapping");
    if (M < H) y = slice(y, -1, 0, M);
    if (output != "identity") y = y * l.parameter("output_w", {M}, init::constant(1.0), "Scale of what is read out; starts at 1.");
    if (output == "affine") y = y + l.parameter("output_b", {M}, init::constant(0.0), "Shift of what is read out; starts at 0.");
    return y;
  };
  return a;
}

}  // namespace reclab::architectures
