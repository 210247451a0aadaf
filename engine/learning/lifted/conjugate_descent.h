// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

namespace reclab {

struct ConjugateDescent {
  std::int64_t iterations = 20;
  double nudge = 1e-6;      ///< the length of the move by which the curvature along a direction is seen
  double first_step = 1.0;  ///< where the curvature is not positive: how far along the direction the search begins
};
/// Conjugate gradients (E. Polak, G. Ribiere) from x on: each step goes as far as the curvature along it says, by a difference of
/// gradients, or less until the value falls; where no digit of the value tells two points apart, the slope along the direction decides.
/// `value` returns the function at a point and writes its gradient. The value at x has then not risen, to rounding.
void conjugate_descent(std::vector<double>& x,
                       const std::function<double(const std::vector<double>& at, std::vector<double>& gradient)>& value,
                       const ConjugateDescent& how);

}  // namespace reclab
