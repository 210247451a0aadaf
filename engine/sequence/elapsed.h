// SPDX-License-Identifier: GPL-3.0-or-later
// The time between the steps of a sequence, for models that know it.
#pragma once

#include <optional>
#include <span>
#include <vector>

namespace reclab {

/// The median of the differences of a time column; 1 where there is one step alone.
double typical_step(std::span<const double> times);

/// Whether the steps of a time column are unequal: some time is further than a hundredth of a step from an even grid, which is more than
/// the rounding of times that are written with few digits.
bool uneven(std::span<const double> times);

/// The clock of a run that is continued: the time of the last step that has passed, and the unit that it counted in, its typical step or
/// another.
struct TimeMark {
  double last = 0.0;
  double typical = 0.0;  ///< the unit; 0: not known
};

/// The time from each step to the one before, in units of `unit` (in the unit of the time column), or where that is 0 of the typical step:
/// the clock's, where there is one, else the sequence's own. The first step comes after the clock's, or where there is none, or one that is
/// not before it, is `first` units long. `reversed`: in the order from the last step to the first, each to the step after it, and the first
/// of them `first` units long.
std::vector<double> elapsed(std::span<const double> times, double unit, const std::optional<TimeMark>& clock, bool reversed,
                            double first = 1.0);

}  // namespace reclab
