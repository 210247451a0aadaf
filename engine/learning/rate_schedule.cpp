// SPDX-License-Identifier: GPL-3.0-or-later
#include "learning/rate_schedule.h"

#include <cmath>
#include <numbers>
#include <string>

#include "array/error.h"

namespace reclab {

const char* to_string(RateSchedule::Shape shape) { return shape == RateSchedule::Shape::constant ? "constant" : "cosine"; }

RateSchedule::Shape schedule_shape(std::string_view name) {
  for (const auto shape : {RateSchedule::Shape::constant, RateSchedule::Shape::cosine})
    if (name == to_string(shape)) return shape;
  throw Error("there is no schedule \"" + std::string(name) + "\": choose constant, cosine.",
              {.parameter = "schedule", .value = std::string(name), .range = "constant, cosine"});
}

double RateSchedule::at(std::int64_t step) const {
  if (step < warm_up) return rate * static_cast<double>(step + 1) / static_cast<double>(warm_up);
  if (shape == Shape::constant) return rate;
  if (step >= steps) return least;
  const double share = static_cast<double>(step - warm_up) / static_cast<double>(steps - warm_up);
  return least + (rate - least) * (1.0 + std::cos(std::numbers::pi * share)) / 2.0;
}

}  // namespace reclab
