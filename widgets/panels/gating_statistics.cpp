// SPDX-License-Identifier: GPL-3.0-or-later
#include "panels/gating_statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace reclab {

namespace {
double quantile(std::vector<double>& values, double part) {
  const double at = part * static_cast<double>(values.size() - 1);
  const auto k = static_cast<std::ptrdiff_t>(at);
  std::nth_element(values.begin(), values.begin() + k, values.end());
  const double low = values[static_cast<std::size_t>(k)];
  if (static_cast<std::size_t>(k) + 1 >= values.size()) return low;
  const double high = *std::min_element(values.begin() + k + 1, values.end());
  return low + (high - low) * (at - static_cast<double>(k));
}
}  // namespace

GateStatistics gateStatistics(std::span<const double> row, double low, double high, std::vector<double>& scratch) {
  GateStatistics found;
  scratch.clear();
  const double lower = low + 0.1 * (high - low), upper = low + 0.9 * (high - low);
  double sum = 0.0;
  int below = 0, above = 0;
  for (const double v : row) {
    if (!std::isfinite(v)) continue;
    scratch.push_back(v);
    sum += v;
    below += v < lower;
    above += v > upper;
  }
  if (scratch.empty()) {
    found.mean = found.q10 = found.q90 = std::numeric_limits<double>::quiet_NaN();
    return found;
  }
  const auto count = static_cast<double>(scratch.size());
  found.mean = sum / count;
  found.q10 = quantile(scratch, 0.1);
  found.q90 = quantile(scratch, 0.9);
  if (low < high) {
    found.below = below / count;
    found.above = above / count;
  }
  return found;
}

std::vector<int> gateHistogram(std::span<const double> row, double low, double high, int bins) {
  std::vector<int> counts(static_cast<std::size_t>(bins), 0);
  if (!(high > low)) return counts;
  for (const double v : row) {
    if (!std::isfinite(v)) continue;
    const double at = std::clamp((v - low) / (high - low) * bins, 0.0, bins - 1.0);
    ++counts[static_cast<std::size_t>(at)];
  }
  return counts;
}

}  // namespace reclab
