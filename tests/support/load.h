// SPDX-License-Identifier: GPL-3.0-or-later
// Time limits on a machine that does other things too: a limit of wall time, scaled by a load that is measured meanwhile.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <ctime>
#include <fstream>
#include <string>
#include <thread>

namespace reclab::test {

/// A thread that computes from begin to end and measures its share of a processor, and how long it is kept from any. The computation that a
/// test waits for runs on the same processors and gets no more. Its waits on a lock, a sleep or a disk are no load: the limit stays where
/// it was.
class Load {
 public:
  using Clock = std::chrono::steady_clock;
  /// However loaded the machine seems, a limit becomes no longer than so many times itself.
  static constexpr double most = 10.0;

  Load() : thread_([this] { measure(); }) {
    while (!running_) std::this_thread::yield();
    begin_ = Clock::now();
    computed_at_begin_ = computed_.load();
    longest_ = 0;
  }
  ~Load() { end(); }
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;

  /// Ends the measurement. Seconds since it began.
  double end() {
    if (!thread_.joinable()) return seconds_;
    seconds_ = std::chrono::duration<double>(Clock::now() - begin_).count();
    ending_ = true;
    thread_.join();
    const double computed = static_cast<double>(computed_.load() - computed_at_begin_) * 1e-9;
    share_ = std::clamp(computed / std::max(seconds_, 1e-9), 1e-9, 1.0);
    return seconds_;
  }
  /// The limit here for a computation that may take `seconds` where nothing else runs: longer as the processors are shared, and by the
  /// longest time that a thread was kept from all of them. After end().
  double allowed(double seconds) const { return std::min(most * seconds, seconds / share_ + static_cast<double>(longest_.load()) * 1e-9); }
  std::string text(double seconds) const {
    return std::to_string(seconds_) + " s, where " + std::to_string(allowed(seconds)) + " s are allowed (a share of " +
           std::to_string(share_) + " of a processor, kept from it for at most " +
           std::to_string(static_cast<double>(longest_.load()) * 1e-6) + " ms)";
  }

 private:
  static std::int64_t own_time() {
    timespec time{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
  }
  void measure() {
    const std::int64_t first = own_time();
    auto last = Clock::now();
    while (!ending_) {
      const auto now = Clock::now();
      const std::int64_t gap = std::chrono::duration_cast<std::chrono::nanoseconds>(now - last).count();
      last = now;
      longest_ = std::max(longest_.load(), gap);
      computed_ = own_time() - first;
      running_ = true;
    }
  }

  std::atomic<bool> running_{false}, ending_{false};
  std::atomic<std::int64_t> computed_{0}, longest_{0};  // nanoseconds
  std::int64_t computed_at_begin_ = 0;
  double seconds_ = 0.0, share_ = 1.0;
  Clock::time_point begin_;
  std::thread thread_;
};

/// Seconds for which the calling thread was ready to compute and had no processor, since it began. 0 where the system keeps no account.
inline double kept_waiting() {
  std::ifstream account("/proc/thread-self/schedstat");  // nanoseconds computing, nanoseconds waiting for a processor, turns
  std::int64_t computed = 0, waited = 0;
  return account >> computed >> waited ? static_cast<double>(waited) * 1e-9 : 0.0;
}

}  // namespace reclab::test
