// SPDX-License-Identifier: GPL-3.0-or-later
// Recursive least squares: ridge regression on the last inputs that is updated with each target.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "streams/state.h"

namespace reclab {

/// After each step W makes Σ_i λ^(n-i) |y_i - W z_i|² + δ |W|² least, where z is the inputs of the last `past` steps and a 1. P, the
/// inverse of Σ_i λ^(n-i) z zᵀ + δ I, is updated by a matrix of rank one. With λ < 1 the part δ I would fade too, and P grow without bound
/// where inputs leave directions out: at each step one of its entries on the diagonal, in turn, is given back what all of them lose.
class OnlineRidge {
 public:
  OnlineRidge(std::int64_t inputs, std::int64_t outputs, std::int64_t past, double ridge, double forget);
  /// Takes the inputs of the next step, and writes the prediction.
  void predict(std::span<const double> input, std::span<double> prediction);
  /// The target of the step that was predicted.
  void learn(std::span<const double> target);
  const std::vector<double>& weights() const { return weights_; }  ///< [outputs, features]; the last feature is the 1
  void keep(StreamState& state);

 private:
  /// One more row z with its target, weighed so.
  void update(std::span<const double> z, std::span<const double> target, double weight);
  std::size_t inputs_, outputs_, features_;
  double forget_, ridge_;
  std::int64_t turn_ = 0;
  std::vector<double> z_, p_, gain_, weights_;
};

}  // namespace reclab
