// SPDX-License-Identifier: GPL-3.0-or-later
// The Newton forms of a nonlinear recurrence: all steps at once, as the solution of s_t = f_t(s_{t-1}), t = 1..T, from a guess of the whole
// trajectory, zeros at first. With the residual r_t = f_t(s_{t-1}) - s_t, each iteration evaluates f and its Jacobian J at all steps in
// parallel, and solves the linear recurrence
//   e_t = r_t + A_t e_{t-1},  e_0 = 0,   then s_t <- s_t + d e_t
// by a scan. Any A gives the same solution; the forms differ in A and d:
//   newton         A = J, d = 1. Y. H. Lim et al., Parallelizing non-linear sequential models over the sequence length (DEER), ICLR 2024.
//   quasi-newton   A = diag J, d = 1: no product of matrices, but linear convergence. X. Gonzalez et al., Towards scalable and stable
//                  parallelization of nonlinear RNNs (quasi-DEER), NeurIPS 2024. The diagonal is renewed at iterations 1, 2, 4, 8, ...
//                  only, since a cell's Jacobian costs as many evaluations as it has states, and a good guess of it serves as well.
//   damped-newton  A = J, and d = 1, 1/2, 1/4, ... until the residual is below the largest of the last four (L. Grippo et al., A
//                  nonmonotone line search technique for Newton's method, SIAM J. Numer. Anal. 23, 1986). It stands for Gonzalez et
//                  al.'s ELK, which damps by a trust region instead: a Levenberg-Marquardt step, computed by a Kalman smoother.
// The residual is told relative to the size of the states: max_t |f_t - s_t| / max_t max(|s_t|, |f_t|), of the worst state. A small one
// says that each step is right by itself; e with A = J says how far the trajectory is from the recurrence's own, however much the
// recurrence amplifies errors. So an iteration ends with both small, which for quasi-newton takes one step with A = J at the end. A chaotic
// recurrence amplifies them beyond measure: a form that does not converge is left to the sequential loop, and the report says why.
#pragma once

#include <functional>

#include "recurrence/step/step.h"

namespace reclab {

/// A cell's function as a graph of its own, over some steps at once: [steps * batch, ...].
struct CellGraph {
  std::unique_ptr<Graph> graph;
  std::vector<Var> tokens, states, next, reads;
  std::vector<CellGate> gates;
};

/// Makes the outputs of a stepped recurrence: the trajectories of the states, of the gates and of the reads. Inputs: tokens, initial
/// states, the captures of the cell's graph. `build`: the cell for so many rows (steps times batch), captures frozen. `diagonal`: the
/// Jacobian of the one state is, so that all its rows are one evaluation, and every form takes A = J by a scan. Unless the report says
/// converged, the outputs are not to be used.
NewtonReport run_newton(Form form, const ForwardCall& call, std::int64_t steps, std::int64_t batch,
                        const std::function<CellGraph(std::int64_t)>& build, bool diagonal, const NewtonWatch& watch = {});
/// The steps of a stretch, within which Jacobians are multiplied one after another; stretches run side by side.
inline constexpr std::int64_t newton_stretch = 16;

}  // namespace reclab
