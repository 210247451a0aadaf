// SPDX-License-Identifier: GPL-3.0-or-later
#include "learning/lifted/conjugate_descent.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

namespace reclab {
namespace {

double product(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace

void conjugate_descent(std::vector<double>& x, const std::function<double(const std::vector<double>&, std::vector<double>&)>& value,
                       const ConjugateDescent& how) {
  constexpr double digits = 8.0 * std::numeric_limits<double>::epsilon();
  std::vector<double> gradient, other, next, direction, moved(x.size());
  double now = value(x, gradient);
  const auto move = [&](double by) {
    for (std::size_t i = 0; i < x.size(); ++i) moved[i] = x[i] + by * direction[i];
  };
  for (std::int64_t k = 0; k < how.iterations; ++k) {
    if (direction.empty())
      for (const double g : gradient) direction.push_back(-g);
    double along = product(gradient, direction);
    if (along >= 0.0) {
      for (std::size_t i = 0; i < direction.size(); ++i) direction[i] = -gradient[i];
      along = product(gradient, direction);
    }
    const double size = std::sqrt(product(direction, direction));
    if (size == 0.0) break;
    const double little = how.nudge / size;
    move(little);
    value(moved, other);
    const double curvature = (product(other, direction) - along) / little;
    double by = curvature > 0.0 ? -along / curvature : how.first_step;
    double then = 0.0;
    const auto falls = [&] { return then <= now || (then - now <= digits * std::abs(now) && std::abs(product(next, direction)) < -along); };
    for (int tries = 0;; ++tries) {
      move(by);
      then = value(moved, next);
      if (falls() || tries == 40) break;
      by *= 0.5;
    }
    if (!falls()) break;  // no digit is left
    x = moved;
    now = then;
    double turn = 0.0;
    for (std::size_t i = 0; i < next.size(); ++i) turn += next[i] * (next[i] - gradient[i]);
    const double before = product(gradient, gradient);
    gradient = std::move(next);
    turn = before > 0.0 ? std::max(0.0, turn / before) : 0.0;
    for (std::size_t i = 0; i < direction.size(); ++i) direction[i] = turn * direction[i] - gradient[i];
  }
}

}  // namespace reclab
