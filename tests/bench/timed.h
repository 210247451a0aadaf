// SPDX-License-Identifier: GPL-3.0-or-later
// Seconds of repeated calls.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

namespace reclab::bench {

inline double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

/// The half-sample mode (D. R. Bickel, R. Frühwirth, Computational Statistics & Data Analysis 50(12), 2006): of the sorted samples the half
/// that lies closest together, of that half the same again, and so on to at most three; of three the mean of the closer two. Samples that
/// something else made longer, however many up to a half and however much longer, do not move it. NaN of none.
inline double half_sample_mode(std::vector<double> samples) {
  std::ranges::sort(samples);
  std::span<const double> left = samples;
  while (left.size() > 3) {
    const std::size_t half = (left.size() + 1) / 2;
    std::size_t best = 0;
    for (std::size_t i = 1; i + half <= left.size(); ++i)
      if (left[i + half - 1] - left[i] < left[best + half - 1] - left[best]) best = i;
    left = left.subspan(best, half);
  }
  if (left.empty()) return std::nan("");
  if (left.size() == 3) {
    if (left[1] - left[0] == left[2] - left[1]) return left[1];
    left = left.subspan(left[1] - left[0] < left[2] - left[1] ? 0 : 1, 2);
  }
  return (left.front() + left.back()) / 2.0;
}

/// A figure of samples: their half-sample mode, and the median absolute deviation from it.
struct Timing {
  double seconds = 0.0, spread = 0.0;
  int runs = 0;
};
inline Timing timing_of(const std::vector<double>& samples) {
  Timing timing{.seconds = half_sample_mode(samples), .runs = static_cast<int>(samples.size())};
  std::vector<double> away;
  for (const double sample : samples) away.push_back(std::abs(sample - timing.seconds));
  if (away.empty()) return timing;
  const auto middle = away.begin() + std::ssize(away) / 2;
  std::ranges::nth_element(away, middle);
  timing.spread = *middle;
  return timing;
}

/// A sample is the mean of a burst of calls that takes about so long.
constexpr double burst_seconds = 0.02;
/// The calls of a burst, where one takes so long.
inline std::int64_t burst_of(double seconds) {
  return static_cast<std::int64_t>(std::clamp(std::ceil(burst_seconds / std::max(seconds, 1e-9)), 1.0, 1e6));
}
/// The mean seconds of so many calls.
template <class F>
double burst(F&& run, std::int64_t calls) {
  const double begin = now();
  for (std::int64_t i = 0; i < calls; ++i) run();
  return (now() - begin) / static_cast<double>(calls);
}
/// Samples after one call that is not counted: at least `least`, up to `most` as long as they take less than `budget` seconds.
template <class F>
Timing timed(F&& run, int least, int most, double budget) {
  const std::int64_t calls = burst_of(burst(run, 1));
  std::vector<double> samples;
  const double begin = now();
  while (std::ssize(samples) < least || (std::ssize(samples) < most && now() - begin < budget)) samples.push_back(burst(run, calls));
  return timing_of(samples);
}

}  // namespace reclab::bench
