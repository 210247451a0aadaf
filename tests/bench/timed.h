// SPDX-License-Identifier: GPL-3.0-or-later
// Seconds of repeated calls.
#pragma once

#include <algorithm>
#include <chrono>
#include <vector>

namespace reclab::bench {

struct Timing {
  double median = 0.0, low = 0.0, high = 0.0;  ///< and quartiles
  int runs = 0;
};

/// Adds the seconds of calls, after one call that is not counted: at least `least` calls, up to `most` as long as they take less than
/// `budget` seconds.
template <class F>
void time_calls(F&& run, int least, int most, double budget, std::vector<double>& seconds) {
  const auto now = [] { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); };
  run();
  const double begin = now();
  for (int calls = 0; calls < least || (calls < most && now() - begin < budget); ++calls) {
    const double start = now();
    run();
    seconds.push_back(now() - start);
  }
}

inline Timing summary(std::vector<double> seconds) {
  std::sort(seconds.begin(), seconds.end());
  const std::size_t n = seconds.size();
  return {seconds[n / 2], seconds[n / 4], seconds[n - 1 - n / 4], static_cast<int>(n)};
}

}  // namespace reclab::bench
