// SPDX-License-Identifier: GPL-3.0-or-later
// Recurrent matrices that are made of a parameter, once a segment, and nonlinearities that go with them.
#pragma once

#include <cstdint>
#include <string>

#include "models/architecture.h"
#include "recurrence/step/step.h"

namespace reclab::parts {

/// I, [n, n], a constant.
Var identity(Graph& graph, std::int64_t n);
/// The part of a [n, n] above the diagonal, zeros elsewhere.
Var upper(Var a);
/// U - U^T with U the part of a [n, n] above the diagonal; the rest of a is not read.
Var skew_of_upper(Var a);
/// beta (B - B^T) + (1 - beta) (B + B^T) - gamma I: B [n, n] split into its skew and symmetric parts, shifted.
Var mixture(Var B, double beta, double gamma);

/// sign(x) relu(|x| + b).
Var modrelu(Var x, Var b);
/// The names that `nonlinearity` knows.
std::vector<std::string> nonlinearities();
/// The nonlinearity of that name; b is that of modrelu, else none.
Var nonlinearity(const std::string& name, Var x, Var b);

/// [n, n] of zeros but for 2 x 2 skew blocks (0, s; -s, 0) along the diagonal, each with a draw s of its own.
Init skew_blocks(std::function<double(Rng&)> draw);
/// Such blocks with s uniform in low..high (Henaff et al. 2016).
Init henaff(double low, double high);
/// Such blocks with s = -sqrt((1 - cos u)/(1 + cos u)), u uniform in 0..pi/2 (Helfrich et al. 2018).
Init cayley();

/// A cell whose step is linear in its state, h_t = A h_{t-1} + u_t with u [steps, batch, n]: in the form scan through A, which is asked for
/// in that form alone, in all others as `step` has it. The trajectory.
Var linear_step(Layer& l, const StateSpec& state, const std::function<Var()>& A, Var u, const std::vector<Var>& tokens,
                const CellFunction& cell);

}  // namespace reclab::parts
