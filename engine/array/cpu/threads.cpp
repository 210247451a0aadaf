// SPDX-License-Identifier: GPL-3.0-or-later
#include "array/cpu/threads.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <stop_token>
#include <thread>
#include <vector>

namespace reclab::cpu {
namespace {

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
    {
      const std::lock_guard lock(mutex_);
      work_ = &f;
      count_ = n;
      next_ = 0;
      failed_ = nullptr;
      ++round_;
    }
    wake_.notify_all();
    take();
    std::unique_lock lock(mutex_);
    done_.wait(lock, [this] { return busy_ == 0; });
    work_ = nullptr;
    if (failed_) std::rethrow_exception(failed_);
  }

 private:
  std::mutex callers_, mutex_;
  std::condition_variable_any wake_;
  std::condition_variable done_;
  const std::function<void(std::int64_t)>* work_ = nullptr;
  std::int64_t count_ = 0, round_ = 0;
  std::atomic<std::int64_t> next_{0};
  int busy_ = 0;
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
    std::unique_lock lock(mutex_);
    while (wake_.wait(lock, stop, [&] { return work_ && round_ != seen; })) {
      seen = round_;
      ++busy_;
      lock.unlock();
      take();
      lock.lock();
      if (--busy_ == 0) done_.notify_all();
    }
  }
};

}  // namespace

void parallel(std::int64_t n, const std::function<void(std::int64_t)>& f) {
  static Pool pool;
  pool.run(n, f);
}

}  // namespace reclab::cpu
