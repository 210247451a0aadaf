// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

namespace reclab::cpu {

/// Calls f(i) once for each 0 <= i < n, on all processors and in no order; f's results must not depend on the calling thread. Calls that
/// come while another one has the threads run on their own. The first exception is thrown again here, after all calls that began have
/// ended. When the caller is to stop (StopScope), calls that have not begun are left out, and Cancelled is thrown.
void parallel(std::int64_t n, const std::function<void(std::int64_t)>& f);

/// Threads that take turns of a few hundred nanoseconds together: calling parallel() for each turn would take longer than the turn.
class Team {
 public:
  explicit Team(int size) : places_(static_cast<std::size_t>(size)) {}
  int size() const { return static_cast<int>(places_.size()); }
  /// Comes back once all members have called it as often as this one. Throws where a member has left by an exception.
  void meet(int member);

 private:
  friend void team(int, const std::function<void(Team&, int)>&);
  struct Left {};
  struct alignas(64) Place {
    std::atomic<std::uint32_t> meetings{0};
  };
  std::vector<Place> places_;
  std::atomic<bool> left_{false};
};
/// Calls f(team, member) for each member of a team of at most `most`, at the same time, each on a thread of its own; of one where no other
/// thread is free. All members meet equally often. The first exception is thrown again here, after all have ended.
void team(int most, const std::function<void(Team&, int)>& f);

/// The number of threads, the caller's included.
int thread_count();
inline constexpr int most_threads = 256;
/// As many threads, the caller's included, however many processors there are; before anything is computed. 0, as at first: one a processor.
void use_threads(int count);

}  // namespace reclab::cpu
