// SPDX-License-Identifier: GPL-3.0-or-later
// A mixing matrix of two heads, and the arrays of a gradient lab, by formulas that a test can recompute.
#pragma once

#include <cmath>
#include <limits>

#include "synthetic_trace.h"

namespace reclab::test {

/// Head 0 forgets with both signs, head 1 shares evenly over the last ten steps.
inline double synthetic_weight(double t, double s, int head) {
  if (s > t) return 0.0;
  return head == 0 ? std::pow(0.9, t - s) * (std::fmod(s, 20.0) < 10.0 ? 1.0 : -1.0) : t - s < 10.0 ? 1.0 / std::min(t + 1.0, 10.0) : 0.0;
}

inline void put_mixing(Trace& trace, const std::string& kind = "mixing", double times = 1.0) {
  std::vector<std::string> labels;
  std::vector<std::int64_t> columns;
  for (std::int64_t s = 0; s < trace.info.length; s += 2) columns.push_back(s), labels.push_back(std::to_string(s));
  std::vector<double> values;
  for (const std::int64_t t : trace.steps)
    for (const std::int64_t s : columns)
      for (const int head : {0, 1}) values.push_back(times * synthetic_weight(static_cast<double>(t), static_cast<double>(s), head));
  trace.put(real_array(kind + "/0/S", {std::ssize(trace.steps), std::ssize(columns), 2},
                       {{"time", "", {}}, {"step written", "", labels}, {"head", "", {"0", "1"}}}, std::move(values)));
}

/// log10 |ds_t/ds_s| of 0.95 a step, bounds of 1 and 0.97, factors that multiply to it, and gradients that turn by 0.02 a step; of every
/// fourth step where it is a map.
inline double synthetic_pair(double t, double s) { return s > t ? -std::numeric_limits<double>::infinity() : (t - s) * std::log10(0.95); }

/// `products`: ds_T/ds_t too; `gated`: a gate keeps 0.6 of the adjoint that passes a step.
inline void put_lab(Trace& trace, bool products = true, bool gated = false) {
  const double last = static_cast<double>(trace.info.length - 1);
  const std::vector<std::int64_t>& all = trace.steps;
  const auto of_time = [&](const char* key, std::int64_t width, std::vector<Axis> axes, const auto& value) {
    std::vector<double> values;
    for (const std::int64_t t : all)
      for (std::int64_t j = 0; j < width; ++j) values.push_back(value(static_cast<double>(t), j));
    Shape shape{std::ssize(all), width};
    axes.insert(axes.begin(), Axis{"time", "", {}});
    trace.put(real_array(key, shape, std::move(axes), std::move(values)));
  };
  if (products) of_time("jacobian/0", 1, {{"rank", "", {}}}, [&](double t, std::int64_t) { return synthetic_pair(last, t); });
  of_time("jacobian_bound/0", 2, {{"bound", "", {"singular value", "eigenvalue"}}},
          [&](double t, std::int64_t j) { return j == 0 ? 0.0 : (last - t) * std::log10(0.97); });
  // In a network with gates a part passes beside the matrix, in the same direction.
  const double slope = 0.97, matrix = (gated ? 0.35 : 0.95) / slope, gate = gated ? 0.6 : 0.0;
  of_time("jacobian_factor/0", 4, {{"factor", "", {"gate", "slope", "matrix", "step"}}}, [&](double, std::int64_t j) {
    return std::log10(j == 0 ? gate : j == 1 ? slope : j == 2 ? matrix : gate + slope * matrix);
  });
  of_time("jacobian_share/0", 2, {{"factor", "", {"gate", "matrix"}}},
          [&](double, std::int64_t j) { return (j == 0 ? gate : slope * matrix) / (gate + slope * matrix); });
  std::vector<std::int64_t> some;
  std::vector<std::string> labels;
  for (std::int64_t t = 0; t < trace.info.length; t += 4) some.push_back(t), labels.push_back(std::to_string(t));
  std::vector<double> pairs, aligned;
  for (const std::int64_t t : some)
    for (const std::int64_t s : some)
      pairs.push_back(synthetic_pair(static_cast<double>(t), static_cast<double>(s))),
          aligned.push_back(std::cos(0.02 * static_cast<double>(t - s)));
  const auto map = [&](const char* key, std::vector<double> values) {
    TraceArray array =
        real_array(key, {std::ssize(some), std::ssize(some)}, {{"time", "", {}}, {"earlier step", "", labels}}, std::move(values));
    array.steps = some;
    trace.put(std::move(array));
  };
  map("jacobian_pairs/0", std::move(pairs));
  map("alignment/0", std::move(aligned));
}

}  // namespace reclab::test
