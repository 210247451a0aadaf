// SPDX-License-Identifier: GPL-3.0-or-later
#include "panels/gating/gating_statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace reclab {

namespace {
using Where = std::vector<double>::iterator;

/// The part-quantile of [begin, end), whose order statistics up to the next after `at` lie before `sorted_end`.
double quantile(Where begin, Where sorted_end, double at) {
  const auto k = static_cast<std::ptrdiff_t>(at);
  std::nth_element(begin, begin + k, sorted_end);
  const double low = begin[k];
  if (begin + k + 1 >= sorted_end) return low;
  const double high = *std::min_element(begin + k + 1, sorted_end);
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
  // Behind the upper one, the lower one has only the part under it to search.
  const double last = count - 1.0;
  found.q90 = quantile(scratch.begin(), scratch.end(), 0.9 * last);
  const auto under = std::min<std::ptrdiff_t>(static_cast<std::ptrdiff_t>(0.9 * last) + 1, static_cast<std::ptrdiff_t>(scratch.size()));
  const bool next_is_under = static_cast<std::ptrdiff_t>(0.1 * last) + 1 < under;
  found.q10 = quantile(scratch.begin(), next_is_under ? scratch.begin() + under : scratch.end(), 0.1 * last);
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
