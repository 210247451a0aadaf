// SPDX-License-Identifier: GPL-3.0-or-later
// Recursive least squares: ridge regression on the last inputs that is updated with each target.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "streams/state.h"

namespace reclab {

/// With λ = 1 W makes Σ |y - W z|² + δ |W|² least after each step, where z is the inputs of the last `past` steps and a 1, and P is the
/// inverse of Σ z zᵀ + δ I, which is kept symmetric. With λ < 1 the past is forgotten in the direction of z alone (R. Kulhavý, Automatica
/// 23(5), 1987): P^-1 grows by (λ - (1 - λ) / zᵀ P z) z zᵀ, so that P stays bounded where inputs leave directions out.
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
  std::size_t inputs_, outputs_, features_;
  double forget_;
  std::vector<double> z_, p_, gain_, weights_, prediction_;
};

}  // namespace reclab
