// SPDX-License-Identifier: GPL-3.0-or-later
#include "models/parts/solver.h"

#include <array>

namespace reclab::parts {

std::vector<HyperSpec> solver_hyper(const std::string& method, std::int64_t steps) {
  return {
      hyper_choice("solver", method, {"euler", "midpoint", "rk4", "rk4_38", "dopri5"},
                   "How the equation is solved over a step: by Euler's, the midpoint, the classical or the 3/8 Runge–Kutta method with "
                   "equal steps, or by Dormand and Prince's, which chooses them."),
      hyper_integer("unfolds", "", steps, 1, 100, "Equal steps of the solver that a step is divided in.", "steps"),
      hyper_real("rtol", "", 1e-9, 1e-12, 0.1, "dopri5: the error that a step may make, relative to the state.", true),
      hyper_real("atol", "", 1e-11, 1e-14, 0.1, "dopri5: the error that a step may make besides.", true),
      hyper_integer("max_steps", "", 40, 1, 200,
                    "dopri5: how many steps it may try within one step of the sequence. All are computed, so fewer are quicker.", "steps")};
}

OdeSolver solver_of(Layer& layer, const Sentence& why_no_adjoint) {
  const Hyper& h = layer.hyper;
  OdeSolver solver{h.choice("solver"), h.integer("unfolds"), h.real("rtol"), h.real("atol"), h.integer("max_steps")};
  const Sentence adaptive =
      "chooses its steps as it goes, and the adjoint method goes back by equal ones: choose another solver, such as rk4";
  solver.gradient = declare_ode(layer, solver.method == "dopri5" ? adaptive : why_no_adjoint);
  return solver;
}

OdeSolver fixed_solver(Layer& layer, const std::string& method, std::int64_t steps) {
  return {method, steps, 0.0, 0.0, 0, declare_ode(layer)};
}

std::vector<std::string> solver_notes() {
  return {"rk4 is the classical method; rk4_38 is the 3/8 rule, which torchdiffeq calls rk4.",
          "dopri5 is torchdiffeq's, with its factors 0.9, 1/5 and 10, Hairer's first step and its polynomial where the last step goes "
          "beyond the end. Each sequence of a batch chooses its own steps. No gradient passes through their lengths (in torchdiffeq it "
          "passes through the first), so gradients are exact but for what the tolerances allow; float32 cannot keep tolerances under 1e-6.",
          "dopri5 chooses its step anew from the start of each step of the sequence, where one call of torchdiffeq's odeint over all times "
          "carries it on.",
          "Where dopri5 needs more than max_steps, the gate solver_steps and the state are not a number and the run ends there: raise "
          "max_steps, or the tolerances."};
}

namespace {

/// A constant that broadcasts.
Var number(Var like, double value) { return like.graph->constant({1, 1}, {value}); }
/// 1 where x > 0, else 0.
Var above_zero(Var x) { return relu(sign(x)); }
Var root_mean_square(Var x) { return sqrt(mean_keep(square(x), -1)); }
Var smaller(Var x, Var y) { return -maximum(-x, -y); }
/// x^(1/5), x > 0.
Var fifth_root(Var x) { return exp(0.2 * log(x)); }

/// sum_j weights[j] k[j] over the weights that are not 0.
Var combined(std::span<const double> weights, std::span<const Var> k) {
  Var sum;
  for (std::size_t j = 0; j < weights.size(); ++j) {
    if (weights[j] == 0.0) continue;
    const Var term = weights[j] * k[j];
    sum = sum ? sum + term : term;
  }
  return sum;
}

Var fixed(const OdeSolver& solver, const std::function<Var(Var)>& f, Var s, const OdeSpan& span, const std::function<Var(Var)>& after) {
  const double part = 1.0 / static_cast<double>(solver.steps);
  const auto along = [&](Var k, double share) { return span.times(k, share * part); };
  for (std::int64_t i = 0; i < solver.steps; ++i) {
    const Var k1 = f(s);
    if (solver.method == "euler") {
      s = s + along(k1, 1.0);
    } else if (solver.method == "midpoint") {
      s = s + along(f(s + along(k1, 0.5)), 1.0);
    } else if (solver.method == "rk4") {
      const Var k2 = f(s + along(k1, 0.5)), k3 = f(s + along(k2, 0.5)), k4 = f(s + along(k3, 1.0));
      s = s + along(k1 + 2.0 * (k2 + k3) + k4, 1.0 / 6.0);
    } else {
      const Var k2 = f(s + along(k1, 1.0 / 3.0)), k3 = f(s + along(k2 - k1 * (1.0 / 3.0), 1.0)), k4 = f(s + along(k1 - k2 + k3, 1.0));
      s = s + along(k1 + 3.0 * (k2 + k3) + k4, 0.125);
    }
    if (after) s = after(s);
  }
  return s;
}

// The coefficients of J. R. Dormand, P. J. Prince, A family of embedded Runge-Kutta formulae, J. Comput. Appl. Math. 6 (1980), as
// torchdiffeq has them: the stages, the fifth-order step (which is the last stage), its difference from the embedded one (L. Shampine's)
// and the middle of the step.
constexpr std::array<std::array<double, 6>, 6> stages{{{1.0 / 5},
                                                       {3.0 / 40, 9.0 / 40},
                                                       {44.0 / 45, -56.0 / 15, 32.0 / 9},
                                                       {19372.0 / 6561, -25360.0 / 2187, 64448.0 / 6561, -212.0 / 729},
                                                       {9017.0 / 3168, -355.0 / 33, 46732.0 / 5247, 49.0 / 176, -5103.0 / 18656},
                                                       {35.0 / 384, 0, 500.0 / 1113, 125.0 / 192, -2187.0 / 6784, 11.0 / 84}}};
constexpr std::array<double, 7> fifth{35.0 / 384, 0, 500.0 / 1113, 125.0 / 192, -2187.0 / 6784, 11.0 / 84, 0};
constexpr std::array<double, 7> difference{
    35.0 / 384 - 1951.0 / 21600, 0,        500.0 / 1113 - 22642.0 / 50085, 125.0 / 192 - 451.0 / 720, -2187.0 / 6784 + 12231.0 / 42400,
    11.0 / 84 - 649.0 / 6300,    -1.0 / 60};
constexpr std::array<double, 7> middle{6025192743.0 / 30085553152.0 / 2,     0,
                                       51252292925.0 / 65400821598.0 / 2,    -2691868925.0 / 45128329728.0 / 2,
                                       187940372067.0 / 1594534317056.0 / 2, -1776094331.0 / 19743644256.0 / 2,
                                       11237099.0 / 235043384.0 / 2};

/// Hairer's guess of the first step, with f at its end; no gradient. E. Hairer, S. P. Nørsett, G. Wanner, Solving Ordinary Differential
/// Equations I, II.4.
Var first_step(const OdeSolver& solver, const std::function<Var(Var)>& f, Var s, Var k) {
  s = detach(s);
  k = detach(k);
  const Var scale = solver.rtol * abs(s) + solver.atol;
  const Var d0 = root_mean_square(s / scale), d1 = root_mean_square(k / scale);
  const Var tiny = 1.0 - above_zero(smaller(d0, d1) - 1e-5);
  const Var h0 = 1e-6 * tiny + (1.0 - tiny) * (0.01 * d0 / maximum(d1, number(s, 1e-5)));
  const Var d2 = detach(root_mean_square((detach(f(s + h0 * k)) - k) / scale)) / h0;
  const Var most = maximum(d1, d2), still = 1.0 - above_zero(most - 1e-15);
  const Var h1 = still * maximum(number(s, 1e-6), 1e-3 * h0) +
                 (1.0 - still) * minimum(fifth_root(0.01 * reciprocal(maximum(most, number(s, 1e-15)))), 1e6);
  return detach(smaller(100.0 * h0, h1));
}

Var dormand_prince(Cell& cell, const OdeSolver& solver, const std::function<Var(Var)>& f, Var s, const OdeSpan& span) {
  const Var end = span.elapsed ? detach(span.length * span.elapsed) : number(s, span.length);
  Var k1 = f(s), h = first_step(solver, f, s, k1), t = number(s, 0.0), running = number(s, 1.0), tried = number(s, 0.0);
  for (std::int64_t attempt = 0; attempt < solver.attempts; ++attempt) {
    std::vector<Var> k{k1};
    Var next;
    for (std::size_t i = 0; i < stages.size(); ++i) {
      next = s + h * combined(std::span(stages[i]).first(i + 1), k);
      k.push_back(f(next));
    }
    const Var error = detach(h * combined(difference, k));
    const Var ratio = detach(root_mean_square(error / (solver.rtol * maximum(abs(detach(s)), abs(detach(next))) + solver.atol)));
    const Var accepted = running * (1.0 - above_zero(ratio - 1.0));
    const Var there = t + h, crossing = accepted * (1.0 - above_zero(end - there));
    // The solution at the span's end within this step: a polynomial of degree 4 through both ends with their slopes and the middle, as
    // weights of the k.
    const Var x = (end - t) / h, x2 = x * x;
    Var move;
    for (std::size_t j = 0; j < k.size(); ++j) {
      const double first = j == 0 ? 1.0 : 0.0, last = j == 6 ? 1.0 : 0.0, b = fifth[j], m = middle[j];
      if (first == 0.0 && last == 0.0 && b == 0.0 && m == 0.0) continue;
      const double c4 = 2.0 * (last - first) - 8.0 * b + 16.0 * m, c3 = 5.0 * first - 3.0 * last + 14.0 * b - 32.0 * m,
                   c2 = last - 4.0 * first - 5.0 * b + 16.0 * m;
      Var within = x2 * (c2 + x * (c3 + c4 * x));
      if (first != 0.0) within = within + x;
      const Var weight = crossing * within + (accepted - crossing) * b;
      const Var term = weight * k[j];
      move = move ? move + term : term;
    }
    s = s + h * move;
    k1 = k1 + accepted * (k[6] - k1);
    t = t + accepted * h;
    tried = tried + running;
    // At most 10 times as long, at least a fifth as long, and not shorter after a step that was good enough.
    const Var least = 1.0 - 0.8 * (1.0 - above_zero(1.0 - ratio));
    const Var factor = minimum(maximum(0.9 * reciprocal(fifth_root(maximum(ratio, number(s, 1e-10)))), least), 10.0);
    h = h * (1.0 + running * (factor - 1.0));
    running = running - crossing;
  }
  const Var finished = 1.0 - running, known = finished / finished;  // 0/0 where it is not
  cell.gate("solver_steps", tried * known, 0.0, 0.0, "How many steps dopri5 tried within the step.");
  return s * known;
}

}  // namespace

Var solve(Cell& cell, const OdeSolver& solver, const std::function<Var(Var)>& f, Var s, const OdeSpan& span,
          const std::function<Var(Var)>& after) {
  if (solver.gradient != OdeGradient::steps) {
    const double part = 1.0 / static_cast<double>(solver.steps);
    return solve_by_adjoint(solver.method, solver.steps, solver.gradient, [&](Var at) { return span.times(f(at), part); }, s);
  }
  if (solver.method != "dopri5") return fixed(solver, f, s, span, after);
  s = dormand_prince(cell, solver, f, s, span);
  return after ? after(s) : s;
}

}  // namespace reclab::parts
