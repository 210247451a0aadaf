// SPDX-License-Identifier: GPL-3.0-or-later
// Statistics of a gate at a step, over its units: pure functions of a row of numbers.
#pragma once

#include <span>
#include <vector>

namespace reclab {

struct GateStatistics {
  double mean = 0.0, q10 = 0.0, q90 = 0.0;  ///< NaN when no entry is finite
  double below = 0.0, above = 0.0;          ///< share of units below 0.1 and above 0.9 of the range; 0 for an unbounded gate
};

/// The statistics of one row; quantiles are interpolated between order statistics (type 7 of Hyndman and Fan, NumPy's default). `scratch`
/// is overwritten.
GateStatistics gateStatistics(std::span<const double> row, double low, double high, std::vector<double>& scratch);

/// The number of entries in each of `bins` equal bins of [low, high]; entries outside count to the first or the last.
std::vector<int> gateHistogram(std::span<const double> row, double low, double high, int bins);

}  // namespace reclab
