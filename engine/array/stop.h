// SPDX-License-Identifier: GPL-3.0-or-later
// Stopping a long computation, however deep in a kernel it is.
#pragma once

#include <algorithm>
#include <cstddef>
#include <stop_token>

#include "array/error.h"

namespace reclab {

/// While it lives, computations of this thread look at the token, in kernels too and in the parts of them that other threads take
/// (cpu::parallel), and throw Cancelled. Their output is then unfinished. Scopes may lie in each other; the innermost counts.
class StopScope {
 public:
  explicit StopScope(std::stop_token stop);
  /// A scope with the token of another thread, which outlives this one.
  explicit StopScope(const std::stop_token* of_other);
  ~StopScope();
  StopScope(const StopScope&) = delete;
  StopScope& operator=(const StopScope&) = delete;

  /// The token of this thread's scope; null outside of any.
  static const std::stop_token* current();

 private:
  std::stop_token own_;
  const std::stop_token* before_;
};

/// Throws Cancelled when this thread is to stop. A few nanoseconds: for loops whose turns take microseconds.
inline void check_stop() {
  if (const std::stop_token* stop = StopScope::current(); stop && stop->stop_requested()) throw Cancelled();
}

/// f(from, how many) over `all` things of so many bytes each, some at a time, with a look for a stop before each: copies and first touches
/// of memory take up to a millisecond a megabyte, and small copies come by the thousand.
template <class F>
void piece_by_piece(std::size_t all, std::size_t bytes_each, const F& f) {
  const std::size_t some = std::max<std::size_t>(1, (std::size_t{4} << 20) / bytes_each);
  for (std::size_t from = 0; from < all; from += some) {
    check_stop();
    f(from, std::min(some, all - from));
  }
}

}  // namespace reclab
