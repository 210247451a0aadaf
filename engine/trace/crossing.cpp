// SPDX-License-Identifier: GPL-3.0-or-later
#include "trace/crossing.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace reclab {

double overtakes(const Curve& later, const Curve& earlier) {
  bool before = false, after = false;
  double at = 0.0, last_length = 0.0, last_lead = 0.0;
  const auto end = [](const std::vector<double>& ends, const Curve& of, std::size_t i) {
    return i >= ends.size() || std::isnan(ends[i]) ? of.value[i] : ends[i];
  };
  for (std::size_t i = 0; i < later.length.size(); ++i) {
    const auto same = std::ranges::find(earlier.length, later.length[i]);
    if (same == earlier.length.end()) continue;
    const auto j = static_cast<std::size_t>(same - earlier.length.begin());
    const double lead = std::log(earlier.value[j] / later.value[i]);
    if (std::isnan(lead)) continue;
    if (lead <= 0.0) {
      before = before || end(earlier.high, earlier, j) < end(later.low, later, i);
      at = 0.0;
      after = false;
    } else {
      after = after || end(later.high, later, i) < end(earlier.low, earlier, j);
      if (at == 0.0 && last_length > 0.0) at = last_length * std::pow(later.length[i] / last_length, -last_lead / (lead - last_lead));
    }
    last_length = later.length[i];
    last_lead = lead;
  }
  return before && after ? at : 0.0;
}

std::optional<Leader> leader(std::span<const Curve> curves) {
  std::map<double, std::pair<const Curve*, double>> least;  // at each length, the lowest curve and its value
  for (const Curve& curve : curves)
    for (std::size_t i = 0; i < curve.length.size(); ++i) {
      const double value = curve.value[i];
      if (!(value > 0.0)) continue;
      auto& there = least.try_emplace(curve.length[i], &curve, value).first->second;
      if (value < there.second) there = {&curve, value};
    }
  if (least.empty()) return std::nullopt;
  const Curve* winner = least.rbegin()->second.first;
  const auto other = std::find_if(least.rbegin(), least.rend(), [&](const auto& entry) { return entry.second.first != winner; });
  if (other != least.rend())
    if (const double at = overtakes(*winner, *other->second.first); at > 0.0) return Leader{winner->name, other->second.first->name, at};
  return Leader{winner->name, {}, least.rbegin()->first};
}

}  // namespace reclab
