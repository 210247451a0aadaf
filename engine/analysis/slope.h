// SPDX-License-Identifier: GPL-3.0-or-later
// The slope of a curve in decades a step, for verdicts about vanishing and exploding.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "array/demand.h"

namespace reclab {

/// Least-squares slope of values (log10 of something) against their steps, decades a step. Values that are not finite are left out
/// (-infinity is an exact zero, NaN was not computed); NaN when fewer than two steps remain.
inline double slope_per_step(std::span<const std::int64_t> steps, std::span<const double> values) {
  RECLAB_DEMAND(steps.size() == values.size());
  double count = 0.0, step_mean = 0.0, mean = 0.0, spread = 0.0, together = 0.0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (!std::isfinite(values[i])) continue;
    count += 1.0;
    const double step = static_cast<double>(steps[i]) - step_mean;  // from the means so far, so that nothing cancels
    step_mean += step / count;
    const double rest = static_cast<double>(steps[i]) - step_mean;
    together += rest * (values[i] - mean);
    mean += (values[i] - mean) / count;
    spread += step * rest;
  }
  return spread > 0.0 ? together / spread : std::numeric_limits<double>::quiet_NaN();
}

}  // namespace reclab
