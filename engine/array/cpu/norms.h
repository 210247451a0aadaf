// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <vector>

namespace reclab::cpu {

/// log2 of the norm at step t of what consists of parts whose norms have these logarithms.
inline double joined_norm(const std::vector<std::vector<double>>& parts, std::size_t t) {
  if (parts.size() == 1) return parts[0][t];
  double largest = -std::numeric_limits<double>::infinity(), sum = 0.0;
  for (const auto& part : parts) {
    if (std::isnan(part[t])) return part[t];
    largest = std::max(largest, part[t]);
  }
  if (std::isinf(largest)) return largest;
  for (const auto& part : parts) sum += std::exp2(2.0 * (part[t] - largest));
  return largest + 0.5 * std::log2(sum);
}

}  // namespace reclab::cpu
