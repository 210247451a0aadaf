// SPDX-License-Identifier: GPL-3.0-or-later
// Gradient flossing (R. Engelken, NeurIPS 2023): before a training, weights are changed by gradients of the mean of squared Lyapunov
// exponents, sum_i lambda_i^2 / k, so that the leading exponents come near 0 and gradients neither vanish nor explode over long sequences.
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <vector>

#include "execution/model.h"
#include "execution/step_map.h"
#include "learning/examples.h"
#include "sequence/sequence.h"

namespace reclab {

struct FlossOptions {
  std::int64_t steps = 0;      ///< of Adam, each with the gradient along one sequence
  std::int64_t exponents = 4;  ///< k, the leading ones of the whole state; at most as many as it has entries
  double rate = 1e-2;
  bool operator==(const FlossOptions&) const = default;
};

struct FlossLoss {
  double value = 0.0;
  std::vector<double> exponents{};  ///< [k], natural logarithm a step: the mean of ln R[t][i][i] over all steps, J[t] Q[t-1] = Q[t] R[t]
  std::vector<double> gradient{};   ///< d value / d theta, of all weights one after another; empty where it was not asked for
};

/// The loss along a sequence, from the state at rest and k directions drawn from a fixed seed. The gradient goes back through Q[t] R[t] and
/// the states; derivatives of the Jacobian along a direction q are central differences of vector-Jacobian products at s +- h q, h = 1e-5,
/// so that it is right to about 1e-9 for a smooth step in float64. Throws Error where an exponent is not finite, and Cancelled.
FlossLoss floss_loss(StepMap& step, const Sequence& sequence, std::int64_t exponents, bool with_gradient, std::stop_token stop);

struct FlossReport {
  std::vector<double> before{}, after{};  ///< exponents along the first training sequence
};

/// Flosses the weights, those that are `frozen` (empty: none) apart, on the CPU in float64 whatever the model's precision. On any exception
/// they are unchanged. Throws Error for a model whose step cannot be taken alone, and Cancelled.
FlossReport floss(Model& model, const Examples& examples, std::int64_t outputs, const FlossOptions& options,
                  const std::vector<bool>& frozen, std::stop_token stop);

}  // namespace reclab
