// SPDX-License-Identifier: GPL-3.0-or-later
#include "learning/online/influence.h"

#include <cmath>

#include "array/demand.h"
#include "array/host.h"
#include "array/rng.h"

namespace reclab {

void upload_gradients(Model& model, std::span<const double> values, std::span<DeviceArray> into) {
  std::size_t at = 0;
  for (DeviceArray& gradient : into) {
    const auto entries = static_cast<std::size_t>(gradient.entries());
    const auto narrow = narrowed(model.real(), values.subspan(at, entries));
    model.backend().upload(gradient.data(), narrow.data(), narrow.size());
    at += entries;
  }
}

Signs signs_of(std::uint64_t seed, std::int64_t step, std::int64_t sequence) {
  return [rng = Rng(seed).split("signs/" + std::to_string(step) + "/" + std::to_string(sequence)), left = 0,
          bits = std::uint64_t{0}]() mutable {
    if (left-- == 0) {
      bits = rng.bits();
      left = 63;
    }
    const double sign = bits & 1 ? 1.0 : -1.0;
    bits >>= 1;
    return sign;
  };
}

void Influence::credit(StepMap& step, std::span<const double> output_adjoint, bool acts, std::span<double> gradient) {
  step.pull_back({}, output_adjoint);
  if (acts) add_scaled(gradient, 1.0, step.weight_adjoint());
  add_product(step.state_adjoint(), gradient);
}

void join_products(double c0, std::span<double> x0, std::span<double> y0, double c1, std::span<const double> x1,
                   std::span<const double> y1) {
  RECLAB_DEMAND(x0.size() == x1.size() && y0.size() == y1.size());
  const auto norm = [](std::span<const double> x) {
    double squares = 0.0;
    for (const double value : x) squares += value * value;
    return std::sqrt(squares);
  };
  const auto balance = [&](std::span<const double> x, std::span<const double> y) {
    const double of_x = norm(x), of_y = norm(y);
    return of_x > 0.0 && of_y > 0.0 ? std::sqrt(of_y / of_x) : 1.0;
  };
  const double p0 = balance(x0, y0), p1 = balance(x1, y1);
  for (std::size_t i = 0; i < x0.size(); ++i) x0[i] = c0 * p0 * x0[i] + c1 * p1 * x1[i];
  for (std::size_t i = 0; i < y0.size(); ++i) y0[i] = c0 * y0[i] / p0 + c1 * y1[i] / p1;
}

}  // namespace reclab
