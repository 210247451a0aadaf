// SPDX-License-Identifier: GPL-3.0-or-later
// Sensitivities of a hand-made model that is causal, fades by `decay` decades a step, and does not see inputs more than `reach` steps back.
#pragma once

#include <cmath>
#include <limits>
#include <string>

#include "synthetic_trace.h"

namespace reclab::test {

inline double synthetic_sensitivity(double t, double s, double decay = 0.05, double reach = 200.0) {
  return s > t || t - s > reach ? -std::numeric_limits<double>::infinity() : 0.4 * std::sin(0.05 * s) - decay * (t - s);
}

/// Puts the sensitivity to every `every`-th input.
inline void put_sensitivity(Trace& trace, double decay = 0.05, double reach = 200.0, std::int64_t every = 4) {
  std::vector<std::string> labels;
  std::vector<std::int64_t> columns;
  for (std::int64_t s = 0; s < trace.info.length; s += every) columns.push_back(s), labels.push_back(std::to_string(s));
  std::vector<double> values;
  for (const std::int64_t t : trace.steps)
    for (const std::int64_t s : columns)
      values.push_back(synthetic_sensitivity(static_cast<double>(t), static_cast<double>(s), decay, reach));
  TraceArray array = real_array("sensitivity", {std::ssize(trace.steps), std::ssize(columns)},
                                {{"time", "", {}}, {"input step", "", labels}}, std::move(values), "log10 of |dy_t/du_s|.");
  array.unit = "log10";
  trace.put(std::move(array));
}

}  // namespace reclab::test
