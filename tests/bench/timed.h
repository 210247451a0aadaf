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

/// After one call that is not counted: at least `least` calls, up to `most` as long as they take less than `budget` seconds.
template <class F>
Timing timed(F&& run, int least, int most, double budget) {
  const auto now = [] { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); };
  run();
  std::vector<double> seconds;
  const double begin = now();
  while (static_cast<int>(seconds.size()) < least || (static_cast<int>(seconds.size()) < most && now() - begin < budget)) {
    const double start = now();
    run();
    seconds.push_back(now() - start);
  }
  std::sort(seconds.begin(), seconds.end());
  const std::size_t n = seconds.size();
  return {seconds[n / 2], seconds[n / 4], seconds[n - 1 - n / 4], static_cast<int>(n)};
}

}  // namespace reclab::bench
