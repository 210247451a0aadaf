// SPDX-License-Identifier: GPL-3.0-or-later
#include "array/cpu/processor/threads.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>
#ifdef __SSE2__
#include <immintrin.h>
#endif
#ifdef __linux__
#include <sched.h>
#endif

#include "array/stop.h"

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

/// The processors that this process may run on, which a container or taskset may restrict.
unsigned processors() {
#ifdef __linux__
  cpu_set_t allowed;
  if (sched_getaffinity(0, sizeof allowed, &allowed) == 0) return static_cast<unsigned>(CPU_COUNT(&allowed));
#endif
  return std::thread::hardware_concurrency();
}

int chosen_threads = 0;  // by use_threads(); 0: as many as there are processors

class ThreadPool {
 public:
  ThreadPool() {
    of_ = std::clamp(chosen_threads > 0 ? chosen_threads : static_cast<int>(processors()), 1, most_threads);
    for (int i = 1; i < of_; ++i) try {
        threads_.emplace_back([this, i] { serve(i); });
      } catch (const std::system_error&) {  // a limit on threads or memory: fewer do
        of_ = i;
      }
  }
  ~ThreadPool() {
    ending_ = true;
    round_.fetch_add(1);
    round_.notify_all();
    threads_.clear();
  }

  void run(std::int64_t n, const std::function<void(std::int64_t)>& f) {
    if (run_at_once(n, f, StopScope::current())) return;
    for (std::int64_t i = 0; i < n; ++i) {
      check_stop();
      f(i);
    }
  }

  /// False, with nothing done, where the threads are not free. Calls that have not begun when `stop` (may be null) is asked are left out.
  bool run_at_once(std::int64_t n, const std::function<void(std::int64_t)>& f, const std::stop_token* stop) {
    if (threads_.empty() || n < 2 || taken_.exchange(true, std::memory_order_acquire)) return false;
    const int parts = static_cast<int>(std::min<std::int64_t>(n, std::clamp(4 * of_, of_word, most_parts)));
    work_.store(&f, std::memory_order_relaxed);
    count_.store(n, std::memory_order_relaxed);
    stop_.store(stop, std::memory_order_relaxed);
    parts_.store(parts, std::memory_order_relaxed);
    open_.store(parts, std::memory_order_relaxed);
    failed_ = nullptr;
    const std::uint32_t round = round_.load(std::memory_order_relaxed) + 1;
    for (int word = words_of(parts); word-- > 0;)
      claims_[word].of.store(std::uint64_t{round} << 32 | ~below(parts - word * of_word), std::memory_order_release);
    round_.store(round, std::memory_order_release);
    round_.notify_all();
    take(0, round);
    if (!spin_until([this] { return open_.load(std::memory_order_acquire) == 0; }))
      for (int left; (left = open_.load(std::memory_order_acquire)) != 0;) open_.wait(left);
    const std::exception_ptr failed = std::exchange(failed_, nullptr);
    taken_.store(false, std::memory_order_release);
    if (failed) std::rethrow_exception(failed);
    return true;
  }

  int threads() const { return of_; }

 private:
  static constexpr int of_word = 32, most_parts = most_threads;
  /// The number of the round and a clear bit for each of its parts that no thread has taken, as one word for 32 parts: that of a round that
  /// has ended offers nothing, so a thread that comes late takes nothing, whichever values it reads of the work, count and parts of the
  /// next round.
  struct alignas(64) Claims {
    std::atomic<std::uint64_t> of{0};
  };
  Claims claims_[most_parts / of_word];
  std::atomic<const std::function<void(std::int64_t)>*> work_{nullptr};
  std::atomic<std::int64_t> count_{0};
  std::atomic<const std::stop_token*> stop_{nullptr};  ///< of the thread that called
  std::atomic<int> parts_{0};
  alignas(64) std::atomic<int> open_{0};  ///< parts that have not ended
  alignas(64) std::atomic<std::uint32_t> round_{0};
  std::atomic<bool> taken_{false}, ending_{false};
  std::mutex failing_;
  std::exception_ptr failed_;
  int of_ = 1;
  std::vector<std::jthread> threads_;  // last: they end before the members that they use are destroyed

  /// The lowest `bits` of 32 bits: none of them for numbers below 0, all for those above 32.
  static constexpr std::uint32_t below(int bits) {
    return bits >= of_word ? ~std::uint32_t{0} : bits <= 0 ? 0 : (std::uint32_t{1} << bits) - 1;
  }

  static constexpr int words_of(int parts) { return (parts + of_word - 1) / of_word; }

  /// Parts of a round until none is left, the words of claims one after the other, from that of this thread's own parts on.
  void take(int thread, std::uint32_t round) {
    // The first word is written last: where it is of this round, so are the others.
    if (claims_[0].of.load(std::memory_order_acquire) >> 32 != round) return;
    const int parts = parts_.load(std::memory_order_relaxed), words = words_of(parts), own = parts * thread / of_ / of_word;
    for (int i = 0; i < words; ++i) take_of(claims_[(own + i) % words].of, (own + i) % words * of_word, thread, round);
  }
  /// Those of a word, which has the parts from `base` on: first those of this thread, which are the same ones from call to call, so that
  /// their data are in its caches; then those that others have not begun.
  void take_of(std::atomic<std::uint64_t>& word, int base, int thread, std::uint32_t round) {
    for (;;) {
      std::uint64_t claims = word.load(std::memory_order_acquire);
      if (claims >> 32 != round) return;
      const auto* work = work_.load(std::memory_order_relaxed);
      const std::int64_t n = count_.load(std::memory_order_relaxed);
      const int parts = parts_.load(std::memory_order_relaxed);
      const auto* stop = stop_.load(std::memory_order_relaxed);
      const std::uint32_t left = ~static_cast<std::uint32_t>(claims);
      if (left == 0) return;
      const std::uint32_t own = left & below(parts * (thread + 1) / of_ - base) & ~below(parts * thread / of_ - base);
      const int bit = own ? std::countr_zero(own) : 31 - std::countl_zero(left), part = base + bit;
      if (!word.compare_exchange_weak(claims, claims | std::uint64_t{1} << bit, std::memory_order_acq_rel)) continue;
      try {
        const StopScope scope(stop);
        for (std::int64_t i = n * part / parts; i < n * (part + 1) / parts; ++i) {
          check_stop();
          (*work)(i);
        }
      } catch (...) {
        const std::lock_guard lock(failing_);
        if (!failed_) failed_ = std::current_exception();
      }
      if (open_.fetch_sub(1, std::memory_order_acq_rel) == 1 && thread > 0) open_.notify_one();
    }
  }
  void serve(int thread) {
    std::uint32_t seen = 0;
    while (!ending_) {
      if (!spin_until([&] { return round_.load(std::memory_order_acquire) != seen; })) round_.wait(seen, std::memory_order_acquire);
      seen = round_.load(std::memory_order_acquire);
      take(thread, seen);
    }
  }
};

}  // namespace

namespace {
ThreadPool& pool() {
  static ThreadPool only;
  return only;
}
}  // namespace

int thread_count() { return pool().threads(); }
void use_threads(int count) { chosen_threads = count; }
void parallel(std::int64_t n, const std::function<void(std::int64_t)>& f) { pool().run(n, f); }

void Team::meet(int member) {
  auto& own = places_[static_cast<std::size_t>(member)].meetings;
  const std::uint32_t meeting = own.load(std::memory_order_relaxed) + 1;
  own.store(meeting, std::memory_order_release);
  // The others come within a turn, unless the system has given their processors away.
  constexpr int soon = 512, late = 1 << 14;
  for (const Place& other : places_)
    for (int look = 0; static_cast<std::int32_t>(other.meetings.load(std::memory_order_acquire) - meeting) < 0; ++look) {
      if (left_.load(std::memory_order_relaxed)) throw Left();
      if (look > late) std::this_thread::yield();
#ifdef __SSE2__
      if (look > soon) _mm_pause();
#endif
    }
}

void team(int most, const std::function<void(Team&, int)>& f) {
  const int size = std::min(most, thread_count());
  Team all(size);
  const std::stop_token* stop = StopScope::current();
  const std::function<void(std::int64_t)> member = [&](std::int64_t number) {
    try {
      const StopScope scope(stop);
      f(all, static_cast<int>(number));
    } catch (const Team::Left&) {  // what another member threw is thrown
    } catch (...) {
      all.left_ = true;
      throw;
    }
  };
  // No member may be left out, since the others wait for it: each looks for a stop itself.
  if (pool().run_at_once(size, member, nullptr)) return;
  Team alone(1);
  f(alone, 0);
}

}  // namespace reclab::cpu
