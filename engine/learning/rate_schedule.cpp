// SPDX-License-Identifier: GPL-3.0-or-later
#include "learning/rate_schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "array/error.h"

namespace reclab {

constexpr RateSchedule::Shape shapes[] = {RateSchedule::Shape::constant, RateSchedule::Shape::cosine, RateSchedule::Shape::inverse_sqrt};

const char* to_string(RateSchedule::Shape shape) {
  static constexpr const char* names[] = {"constant", "cosine", "inverse-sqrt"};
  return names[static_cast<std::size_t>(shape)];
}

RateSchedule::Shape schedule_shape(std::string_view name) {
  std::string known;
  for (const auto shape : shapes) {
    if (name == to_string(shape)) return shape;
    known += (known.empty() ? "" : ", ") + std::string(to_string(shape));
  }
  throw Error("there is no schedule \"" + std::string(name) + "\": choose " + known + ".",
              {.parameter = "schedule", .value = std::string(name), .range = known});
}

double RateSchedule::at(std::int64_t step) const {
  if (step < warm_up) return rate * static_cast<double>(step + 1) / static_cast<double>(warm_up);
  if (shape == Shape::constant) return rate;
  if (shape == Shape::inverse_sqrt)
    return rate * std::sqrt(static_cast<double>(std::max<std::int64_t>(warm_up, 1)) / static_cast<double>(step + 1));
  if (step >= steps) return least;
  const double share = static_cast<double>(step - warm_up) / static_cast<double>(steps - warm_up);
  return least + (rate - least) * (1.0 + std::cos(std::numbers::pi * share)) / 2.0;
}

}  // namespace reclab
