// SPDX-License-Identifier: GPL-3.0-or-later
// The adjoint of one step, told apart at the matrices that it passes (products, and sums over units that have weights of their own), for
// analyses of the part that gates keep and of the part that passes the recurrent weights. Computing does not read it.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace reclab {

/// (ds_t/ds_{t-1})^T x = kept + returned, each [n], n the entries of all states in the order of their declaration. Every way from s_{t-1}
/// to s_t either passes a matrix or it does not, so the chain rule is this sum: for an LSTM kept is f (x_c + o tanh'(c) x_h), for a GRU z
/// x, for h + ε tanh(W h + ...) it is x.
struct PassedBack {
  std::vector<double>
      kept;  ///< along the ways without one, from each unit to itself: gates, leaks, identities, weights that a unit has for itself alone
  std::vector<double>
      sloped;  ///< at the results of the last matrices of the step, all of them one after another: slopes of activations, times gates
  std::vector<double> returned;  ///< from there through the matrices
};

/// The Euclidean norm of numbers that may be as small as there are: no entry is squared.
template <class T>
double length_of(const std::vector<T>& x) {
  double length = 0.0;
  for (const T& entry : x) length = std::hypot(length, std::abs(entry));
  return length;
}

/// An interface beside Memory, for a memory whose step is a cell. Its transition is one block of the whole state.
class TellsApart {
 public:
  virtual ~TellsApart() = default;
  /// The adjoint at step t of the segment last run forward, for the first sequence of the batch; x [n]. None where units see others without
  /// a matrix, as their neighbours by the taps of a kernel.
  virtual std::optional<PassedBack> pass_back(std::int64_t t, std::span<const double> x) = 0;
};

}  // namespace reclab
