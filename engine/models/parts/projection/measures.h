// SPDX-License-Identifier: GPL-3.0-or-later
// HiPPO: systems x' = A x + B u whose state holds the coefficients of u's past on the orthogonal functions of a measure of that past.
// A. Gu, T. Dao, S. Ermon, A. Rudra, C. Ré, NeurIPS 2020; with the normalisations of state-spaces/s4 (src/models/hippo/hippo.py).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "models/architecture.h"

namespace reclab::hippo {

/// A linear system, in continuous time or as one step x_t = A x_{t-1} + B u_t.
struct System {
  std::int64_t order = 0;
  std::vector<double> A, B;  // [order, order], [order]
};

/// The measure of a time-invariant system:
///   legt   uniform over a window of 2 units of time;     lmu    the same functions over 1 unit, scaled otherwise
///   lagt   uniform over all of the past, on Laguerre functions, times beta;     glagt  with the weight t^-alpha e^(-beta t) on generalised
///   ones legst  e^-t, the scaled Legendre matrices of LegS with time held
struct Measure {
  std::string name;
  double alpha = 0.0, beta = 1.0;  ///< of lagt (beta) and glagt (both)
};
System continuous(const Measure& measure, std::int64_t order);

/// A rule of discretisation: forward, backward, bilinear, zoh, generalised. The share of the new state in the step's slope is `share` for
/// generalised and 0, 1, 1/2 for the first three.
struct Rule {
  std::string name;
  double share = 0.5;
};
double share_of(const Rule& rule);
System discrete(const System& flow, double dt, const Rule& rule);
/// The polynomial basis of the state, for a step of dt units.
PastBasis past(const Measure& measure, std::int64_t order, double dt, const Rule& rule);

/// Ā and B̄ of LegS, c' = (A c + B f)/t, of the steps at times tau [steps, 1], whole numbers; at time 0 the state is replaced by the input.
/// From `longest` on t stays.
struct LegsStep {
  Var A, B;  // [steps, N, N] and [steps, N]
};
LegsStep legs_step(const Rule& rule, std::int64_t order, Var tau, double longest);
/// The basis of LegS, for inputs at the times init_t, init_t + 1, ...
PastBasis legs_past(const Rule& rule, std::int64_t init_t, std::int64_t longest);

}  // namespace reclab::hippo
