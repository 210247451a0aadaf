// SPDX-License-Identifier: GPL-3.0-or-later
#include "sequence/elapsed.h"

#include <algorithm>
#include <cmath>

namespace reclab {

double typical_step(std::span<const double> times) {
  if (times.size() < 2) return 1.0;
  std::vector<double> steps;
  for (std::size_t t = 1; t < times.size(); ++t) steps.push_back(times[t] - times[t - 1]);
  const auto middle = steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 2);
  std::ranges::nth_element(steps, middle);
  return *middle;
}

bool uneven(std::span<const double> times) {
  if (times.size() < 3) return false;
  const double step = (times.back() - times.front()) / static_cast<double>(times.size() - 1);
  for (std::size_t t = 0; t < times.size(); ++t)
    if (!(std::abs(times[t] - times.front() - step * static_cast<double>(t)) <= 0.01 * std::abs(step))) return true;
  return false;
}

std::vector<double> elapsed(std::span<const double> times, double unit, const std::optional<TimeMark>& clock, bool reversed, double first) {
  const double typical = clock && clock->typical > 0.0 ? clock->typical : typical_step(times), one = unit > 0.0 ? unit : typical;
  std::vector<double> result;
  if (times.empty()) return result;
  if (reversed) {
    result.push_back(first);
    for (std::size_t t = times.size() - 1; t > 0; --t) result.push_back((times[t] - times[t - 1]) / one);
    return result;
  }
  result.push_back(clock && times[0] > clock->last ? (times[0] - clock->last) / one : first);
  for (std::size_t t = 1; t < times.size(); ++t) result.push_back((times[t] - times[t - 1]) / one);
  return result;
}

}  // namespace reclab
