// SPDX-License-Identifier: GPL-3.0-or-later
// The parts of attention within chunks, or within a window, in Mega, GAU and FLASH: how far a step sees, and a bias by distance.
#pragma once

#include <cmath>
#include <string>

#include "models/architecture.h"
#include "recurrence/attention/attention.h"

namespace reclab::parts {

/// The steps that a step sees: those of its chunk that are not later, chunks being `length` steps, or the last `length`.
struct Reach {
  std::int64_t length;
  Var low;    ///< [steps]: the first visible column of each row, where length - 1 rows came before the first
  Var count;  ///< [steps, 1, 1]: how many steps it sees
};
inline Reach reach(Layer& l, std::int64_t length, bool chunks) {
  const std::int64_t steps = l.steps();
  std::vector<double> own;
  for (std::int64_t i = 0; i < steps; ++i) own.push_back(static_cast<double>(length - 1 + i));
  const Var column = l.graph().constant({steps}, std::move(own)), t = reshape(slice(l.position(), 1, 0, 1), {steps});
  const double n = static_cast<double>(length);
  const Var age = chunks ? t - floor((t + 0.5) / n) * n : minimum(t, n - 1.0);
  return {length, column - age, reshape(age + 1.0, {steps, 1, 1})};
}
/// [steps, batch, d] <-> [batch, steps, d].
inline Var batch_first(Var x) {
  const int axes[] = {1, 0, 2};
  return permute(x, axes);
}
/// x [steps, batch, d] with the length - 1 rows before it in front, batch first: [batch, length - 1 + steps, d].
inline Var reached(Layer& l, const Reach& r, const std::string& name, Var x, const std::string& text) {
  return batch_first(l.history(name, x, r.length - 1, text));
}
/// Each row is the state that its step appends.
inline Var reached(Layer& l, const Reach& r, const StateSpec& state, Var x) { return batch_first(l.history(state, x, r.length - 1)); }

/// The parameter `name` [2 positions - 1] and the numbers b_n of it for the distances n = t - s = 0 .. count - 1, [count]: b_n =
/// w[positions - 1 - n].
inline Var toeplitz_bias(Layer& l, const std::string& name, std::int64_t positions, std::int64_t count) {
  const Var w = l.parameter(name, {2 * positions - 1}, init::normal(0.02),
                            "The bias of each distance n = t − s in entry positions − 1 − n; the later entries, of steps to come, are not "
                            "read; starts N(0, 0.02²).");
  return reversed(slice(w, 0, positions - count, positions));
}
/// The parameters `alpha` and `beta` [1, d] and the products b_n = R(t) alpha . R(t - n) beta, R(t) turning pairs (i, i + d/2) by t
/// 10000^(-2i/d); [count].
inline Var rotary_bias(Layer& l, const std::string& alpha, const std::string& beta, std::int64_t d, std::int64_t count) {
  const auto vector = [&](const std::string& name) {
    const Var both = l.parameter(name, {1, d}, init::normal(0.02),
                                 "What is turned by the positions for a bias of each distance, pairs (i, i + d/2); starts N(0, 0.02²).");
    return split(both, 1, 2);
  };
  const auto a = vector(alpha), b = vector(beta);
  std::vector<double> cosines, sines;
  for (std::int64_t n = 0; n < count; ++n)
    for (std::int64_t i = 0; i < d / 2; ++i) {
      const double angle = static_cast<double>(n) * std::pow(10000.0, -2.0 * static_cast<double>(i) / static_cast<double>(d));
      cosines.push_back(std::cos(angle));
      sines.push_back(std::sin(angle));
    }
  const Var even = a[0] * b[0] + a[1] * b[1], odd = a[0] * b[1] - a[1] * b[0];
  return sum(even * l.graph().constant({count, d / 2}, std::move(cosines)) + odd * l.graph().constant({count, d / 2}, std::move(sines)),
             -1);
}

/// Puts q, k and v, batch first, the reach and the bias [count] of each distance into an attention.
template <class Attention>
void fill(Attention& a, Var q, Var k, Var v, const Reach& r, Var bias) {
  const std::int64_t batch = q.dim(0), steps = q.dim(1), count = bias.dim(0);
  a.q = q;
  a.k = k;
  a.v = v;
  a.low = r.low;
  a.window = r.length;
  a.q2 = q.graph->constant({batch, steps, 1}, std::vector<double>(static_cast<std::size_t>(batch * steps), 1.0));
  a.rel = reshape(bias, {1, count, 1}) * q.graph->constant({batch, 1, 1}, std::vector<double>(static_cast<std::size_t>(batch), 1.0));
}

}  // namespace reclab::parts
