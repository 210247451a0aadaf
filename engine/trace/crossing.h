// SPDX-License-Identifier: GPL-3.0-or-later
// Crossings, the lengths at which one form overtakes another: the window and reclab read them from measured curves with bands.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace reclab {

/// A cost of a form at rising lengths, less is better; NaN where there is none. Ends of a band that are NaN are the value itself.
struct Curve {
  std::string name;
  std::vector<double> length, value, low, high;
};

/// The length at which `later` overtakes `earlier` for good: between the last length at which it costs more and the next, on straight lines
/// in logarithms; 0 where no length before or none after shows it beyond the bands.
double overtakes(const Curve& later, const Curve& earlier);

/// The curve that costs least at the longest length of all, and the length at which it overtook the one that did before, if the bands show
/// that.
struct Leader {
  std::string best, overtaken;  ///< overtaken: empty where nothing is
  double length;                ///< of the crossing, or the longest
};
std::optional<Leader> leader(std::span<const Curve> curves);

}  // namespace reclab
