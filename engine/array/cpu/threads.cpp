// SPDX-License-Identifier: GPL-3.0-or-later
#include "array/cpu/threads.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>
#ifdef __SSE2__
#include <immintrin.h>
#endif

namespace reclab::cpu {
namespace {

/// Calls that follow each other closely, as the steps of a recurrence do, find the threads still awake.
constexpr auto awake_for = std::chrono::microseconds(50);

template <class F>
bool spin_until(const F& ready) {
  const auto end = std::chrono::steady_clock::now() + awake_for;
  do {
    for (int i = 0; i < 64; ++i) {
      if (ready()) return true;
#ifdef __SSE2__
      _mm_pause();
#endif
    }
  } while (std::chrono::steady_clock::now() < end);
  return ready();
}

class Pool {
 public:
  Pool() {
    const unsigned all = std::max(1u, std::thread::hardware_concurrency());
    for (unsigned i = 1; i < all; ++i) threads_.emplace_back([this](const std::stop_token& stop) { serve(stop); });
  }
  ~Pool() {
    for (auto& thread : threads_) thread.request_stop();
    threads_.clear();
  }

  void run(std::int64_t n, const std::function<void(std::int64_t)>& f) {
    const std::unique_lock alone(callers_, std::try_to_lock);
    if (!alone || threads_.empty() || n < 2) {
      for (std::int64_t i = 0; i < n; ++i) f(i);
      return;
    }
    bool asleep = false;
    {
      const std::lock_guard lock(mutex_);
      work_ = &f;
      count_ = n;
      next_ = 0;
      failed_ = nullptr;
      round_.fetch_add(1);
      asleep = asleep_ > 0;
    }
    if (asleep) wake_.notify_all();
    take();
    spin_until([this] { return busy_.load() == 0; });
    // Under the lock under which a thread joins in: after this none is in this round any more.
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return busy_.load() == 0; });
    work_ = nullptr;
    if (failed_) std::rethrow_exception(failed_);
  }

 private:
  std::mutex callers_, mutex_;
  std::condition_variable_any wake_;
  std::condition_variable done_;
  const std::function<void(std::int64_t)>* work_ = nullptr;
  std::int64_t count_ = 0;
  std::atomic<std::int64_t> round_{0}, next_{0};
  std::atomic<int> busy_{0};
  int asleep_ = 0;
  std::exception_ptr failed_;
  std::vector<std::jthread> threads_;  // last: they go before what they use

  void take() {
    for (std::int64_t i; (i = next_.fetch_add(1)) < count_;) {
      try {
        (*work_)(i);
      } catch (...) {
        const std::lock_guard lock(mutex_);
        if (!failed_) failed_ = std::current_exception();
        next_ = count_;
      }
    }
  }
  void serve(const std::stop_token& stop) {
    std::int64_t seen = 0;
    while (!stop.stop_requested()) {
      spin_until([&] { return round_.load() != seen; });
      {
        std::unique_lock lock(mutex_);
        if (round_.load() == seen || !work_) {
          ++asleep_;
          const bool called = wake_.wait(lock, stop, [&] { return work_ && round_.load() != seen; });
          --asleep_;
          if (!called) return;
        }
        seen = round_.load();
        busy_.fetch_add(1);
      }
      take();
      if (busy_.fetch_sub(1) == 1) {
        const std::lock_guard lock(mutex_);
        done_.notify_all();
      }
    }
  }
};

}  // namespace

void parallel(std::int64_t n, const std::function<void(std::int64_t)>& f) {
  static Pool pool;
  pool.run(n, f);
}

}  // namespace reclab::cpu
