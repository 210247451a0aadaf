// SPDX-License-Identifier: GPL-3.0-or-later
#include "interrupt.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

#include <string_view>

namespace reclab::cli {
namespace {

sigset_t watched() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGINT);
  sigaddset(&set, SIGTERM);
  struct sigaction hangup {};
  if (sigaction(SIGHUP, nullptr, &hangup) != 0 || hangup.sa_handler != SIG_IGN) sigaddset(&set, SIGHUP);
  sigaddset(&set, SIGUSR1);  // ends the watcher
  return set;
}

}  // namespace

void Interrupt::watch() {
  const sigset_t set = watched();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  watcher_ = std::thread([this, set] {
    for (;;) {
      int signal = 0;
      if (sigwait(&set, &signal) != 0) continue;
      if (ending_) return;
      if (signal == SIGUSR1) continue;
      const bool again = stop_.stop_requested();
      stop_.request_stop();
      const Phase phase = phase_;
      if (phase == Phase::preparing || (phase == Phase::running && again)) {
        constexpr std::string_view line = "cancelled before the run began; nothing was exported\n";
        if (phase == Phase::preparing && write(STDERR_FILENO, line.data(), line.size()) < 0) _exit(interrupted_status);
        _exit(interrupted_status);
      }
    }
  });
}

Interrupt::~Interrupt() {
  if (!watcher_.joinable()) return;
  ending_ = true;
  pthread_kill(watcher_.native_handle(), SIGUSR1);
  watcher_.join();
}

}  // namespace reclab::cli
