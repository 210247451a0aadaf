// SPDX-License-Identifier: GPL-3.0-or-later
// The card of the LMU, its parameters as the equations use them, and the delay line of its memory.
#pragma once

#include <utility>
#include <vector>

#include "models/architecture.h"

namespace reclab::architectures {

Architecture lmu_card();

/// M memories of order q, and H hidden units; matrices are kept [in, out], and m counts as [M q], memory by memory.
struct LmuParameters {
  Var A, B;      ///< Ā [q, q] and B̄ [q]
  Var e_x;       ///< [in, M]
  Var e_h, e_m;  ///< [H, M] and [M q, M]; none: not fed back
  Var b_u;       ///< [M]; none: 0
  // None of these with hidden=none.
  Var W_x;       ///< [in, H]; none: the input does not reach h
  Var W_h, W_m;  ///< [H, H] and [M q, H]
  Var b;         ///< [1, H]; none: 0
};
LmuParameters lmu_parameters(Layer& l, std::int64_t in);

/// Ā [order, order] and B̄ [order], row by row: of the Legendre delay line over theta steps, moved on by one of them, exactly or by Euler's
/// step.
struct Delay {
  std::vector<double> A, B;
};
Delay delay_line(std::size_t order, double theta, bool euler);
/// The delay line with theta a parameter [1], given as 1/theta.
std::pair<Var, Var> delay_line(std::int64_t order, Var theta_inv, bool euler);
/// The basis on which m holds the last theta steps.
PastBasis legendre_past(const Hyper& h);

}  // namespace reclab::architectures
