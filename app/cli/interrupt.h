// SPDX-License-Identifier: GPL-3.0-or-later
// Ctrl-C and a polite kill as a stop token, without work in a signal handler: a thread of its own waits for the signals.
#pragma once

#include <atomic>
#include <stop_token>
#include <thread>

namespace reclab::cli {

class Interrupt {
 public:
  Interrupt() = default;
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  /// From now on SIGINT, SIGTERM and SIGHUP (unless it is ignored, as under nohup) set the token. They are blocked for this thread and all
  /// that it starts: call it before any other thread is started. Throws std::system_error where no thread can be started. `user_signal`:
  /// SIGUSR1 is heard too, by which schedulers say that the time is nearly over. Nothing where it watches already.
  void watch(bool user_signal = false);
  std::stop_token token() const { return stop_.get_token(); }
  /// The response to a signal. Before a run there is nothing to keep, so the process ends at once; a run is asked to stop, and a second
  /// signal ends it; an export is let finish, because half of one is worth nothing. A training has more to lose: the first signal has the
  /// last whole state written, the second one says so, and the third ends the process, which leaves the folder as it was before.
  enum class Phase { preparing, running, training, writing };
  void enter(Phase phase) {
    if (phase == Phase::training) training_ = true;
    phase_ = phase;
  }

 private:
  std::stop_source stop_;
  std::atomic<Phase> phase_{Phase::preparing};
  std::atomic<bool> ending_{false}, training_{false};
  std::thread watcher_;
};

constexpr int interrupted_status = 130;

}  // namespace reclab::cli
