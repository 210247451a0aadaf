// SPDX-License-Identifier: GPL-3.0-or-later
#include "learning/online/fixed_point.h"

#include <algorithm>
#include <cmath>

#include "array/demand.h"

namespace reclab {

void AtFixedPoint::start(const Signs& /*signs*/) {
  acting_ = 0;
  later_.clear();
}

void AtFixedPoint::credit(StepMap& step, std::span<const double> output_adjoint, bool acts, std::span<double> gradient) {
  step.pull_back({}, output_adjoint);
  if (acts) add_scaled(gradient, 1.0, step.weight_adjoint());
  std::vector<double> a = step.state_adjoint();
  if (acts && penalty_ > 0.0) penalise(step, gradient, a);
  if (later_.empty() && acts) {
    const std::vector<double> z = solve(step, std::move(a));
    step.pull_back(z, {});
    add_scaled(gradient, 1.0, step.weight_adjoint());
    return;
  }
  // Where the weights do not act at every step, the terms of those at which they do.
  const std::int64_t terms = std::min(furthest(), acting_ + std::ssize(later_));
  for (std::int64_t k = 1; k <= terms; ++k) {
    step.pull_back(a, {});
    if (acted(k)) add_scaled(gradient, 1.0, step.weight_adjoint());
    a = step.state_adjoint();
  }
}

void AtFixedPoint::advance(StepMap& /*step*/, bool acts) {
  if (acts && later_.empty())
    ++acting_;
  else
    later_.push_back(acts);
}

void AtFixedPoint::penalise(StepMap& step, std::span<double> gradient, std::span<double> by_state) const {
  // With v = (1^T J - bound)^+ / its norm the derivative is that of 1^T J v, a central difference of products with 1 along v.
  const std::vector<double> ones(step.states(), 1.0), state = step.at_state(), input = step.at_input();
  std::vector<double> v = back_through(step, ones);
  for (double& x : v) x = std::max(0.0, x - bound_);
  const double size = norm_of(v);
  if (size == 0.0) return;
  const double way = (step.real() == DType::f64 ? 1e-5 : 1e-2) * (1.0 + norm_of(state));
  for (const double side : {1.0, -1.0}) {
    std::vector<double> moved = state;
    add_scaled(moved, side * way / size, v);
    step.evaluate(moved, input);
    step.pull_back(ones, {});
    const double factor = side * penalty_ / (2.0 * way);
    add_scaled(gradient, factor, step.weight_adjoint());
    add_scaled(by_state, factor, step.state_adjoint());
  }
  step.evaluate(state, input);
}

void AtFixedPoint::add_product(std::span<const double> /*adjoint*/, std::span<double> /*gradient*/) const {
  RECLAB_DEMAND(false);  // credit() is this class's own
}

bool AtFixedPoint::acted(std::int64_t steps_before) const {
  const std::int64_t at = acting_ + std::ssize(later_) - steps_before;
  return at < acting_ || later_[static_cast<std::size_t>(at - acting_)];
}

std::vector<double> back_through(StepMap& step, std::span<const double> x) {
  step.pull_back(x, {});
  return step.state_adjoint();
}

double norm_of(std::span<const double> x) {
  double squares = 0.0;
  for (const double value : x) squares += value * value;
  return std::sqrt(squares);
}

}  // namespace reclab
