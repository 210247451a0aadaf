// SPDX-License-Identifier: GPL-3.0-or-later
// What this machine can do at most, measured in the same run as what is held against it.
#pragma once

#include <cstddef>
#include <vector>

namespace reclab::bench {

struct Roof {
  double triad_bytes = 0.0;   ///< a second: a = b + s c over memory, stores past the caches, all threads, 3 arrays counted
  double cached_bytes = 0.0;  ///< a second: reading an array of half a megabyte a thread again and again
  double flops = 0.0;         ///< a second: float32 fused multiply-adds, each as two, all threads
};
/// The best of several tries of each, on all processors.
Roof measure_roof();

/// Seconds of repeated calls, after one that is not counted: at least `least` calls, up to `most` as long as they take less than `budget` seconds.
struct Timing {
  double median = 0.0, low = 0.0, high = 0.0;  ///< and quartiles
  int runs = 0;
};
template <class F>
Timing timed(F&& run, int least, int most, double budget);
Timing summary(std::vector<double> seconds);
double now();

template <class F>
Timing timed(F&& run, int least, int most, double budget) {
  run();
  std::vector<double> seconds;
  const double begin = now();
  while (static_cast<int>(seconds.size()) < least || (static_cast<int>(seconds.size()) < most && now() - begin < budget)) {
    const double start = now();
    run();
    seconds.push_back(now() - start);
  }
  return summary(std::move(seconds));
}

}  // namespace reclab::bench
