// SPDX-License-Identifier: GPL-3.0-or-later
// Solvers of ds/dt = f(s) over the time of one step, inside a cell: fixed steps, and the adaptive method of Dormand and Prince.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "models/architecture.h"
#include "recurrence/ode/ode.h"
#include "recurrence/step/step.h"

namespace reclab::parts {

struct OdeSolver {
  std::string method;     ///< "euler", "midpoint", "rk4", "rk4_38" or "dopri5"
  std::int64_t steps;     ///< of a fixed method
  double rtol, atol;      ///< of dopri5
  std::int64_t attempts;  ///< of dopri5: steps that it may try
  OdeGradient gradient = OdeGradient::steps;
};
/// The rows of the hyper-parameter table: solver, unfolds, rtol, atol and max_steps.
std::vector<HyperSpec> solver_hyper(const std::string& method, std::int64_t steps);
/// That of a layer, which is declared to solve its equation by it (recurrence/ode/ode.h); `why_no_adjoint`: what keeps the adjoint method
/// from its steps, beside the solver itself.
OdeSolver solver_of(Layer& layer, const Sentence& why_no_adjoint = {});
/// Equal steps of a method that a model takes by operations of its own, with declare_ode's answer.
OdeSolver fixed_solver(Layer& layer, const std::string& method, std::int64_t steps);
/// The notes on the solver, for the cards of all models with one.
std::vector<std::string> solver_notes();

/// The length of a step: `length`, times the elapsed time [batch, 1] where there is one.
struct OdeSpan {
  double length = 1.0;
  Var elapsed{};
  /// x times a share of it.
  Var times(Var x, double share) const { return elapsed ? (share * length) * elapsed * x : (share * length) * x; }
};

/// s [batch, n] after the span. `after` (may be empty) is applied to s after each step of a fixed method, and after all of dopri5. dopri5
/// names the gate solver_steps: how many steps it tried.
///
/// dopri5 is that of torchdiffeq: 0.9, 10 and 1/5 as safety factor and bounds of a change of the step, Hairer's first step, the root mean
/// square of the error, and where its last step goes beyond the span a polynomial of degree 4. Here each sequence of a batch has steps of
/// its own, no gradient passes through their lengths, and all attempts are computed, of which those after the end change nothing. Where
/// they are not enough the state is not a number, so that the run ends there and says so.
///
/// With a gradient of the adjoint method the steps are one operation (solve_by_adjoint).
Var solve(Cell& cell, const OdeSolver& solver, const std::function<Var(Var)>& f, Var s, const OdeSpan& span,
          const std::function<Var(Var)>& after = {});

}  // namespace reclab::parts
