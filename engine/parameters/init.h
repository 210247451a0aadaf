// SPDX-License-Identifier: GPL-3.0-or-later
// Initial values of parameters: functions that fill an array from a stream of random numbers of its own. They throw Cancelled where the
// thread that draws is to stop (StopScope).
#pragma once

#include <functional>
#include <span>
#include <string_view>

#include "array/rng.h"
#include "array/shape.h"

namespace reclab {

struct InitContext {
  Rng& rng;  ///< of this parameter alone: another parameter more or less changes nothing here
  const Shape& shape;
  std::span<double> values;  ///< row-major, zeros
  /// A parameter of the same layer that was declared before.
  std::function<std::span<const double>(std::string_view name)> other;
};
using Init = std::function<void(InitContext&)>;

namespace init {
Init constant(double value);
Init uniform(double low, double high);
Init normal(double deviation);
/// N(0, deviation^2) cut at two deviations, the deviation being that after the cut (flax' LeCun normal for deviation = fan_in^-1/2).
Init truncated_normal(double deviation);
/// scale times a random orthogonal matrix (Haar, by Gram-Schmidt of a Gaussian one with the signs of R); for a non-square array the rows or
/// columns , the fewer of the two, are orthonormal.
Init orthogonal(double scale);
/// A function of the entry's row-major index.
Init each(std::function<double(Rng&, std::int64_t index)> value);
}  // namespace init

}  // namespace reclab
