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
  struct sigaction hangup{};
  if (sigaction(SIGHUP, nullptr, &hangup) != 0 || hangup.sa_handler != SIG_IGN) sigaddset(&set, SIGHUP);
  sigaddset(&set, SIGUSR1);  // ends the watcher
  return set;
}

}  // namespace

void Interrupt::watch(bool user_signal) {
  if (watcher_.joinable()) return;
  const sigset_t set = watched();
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
  watcher_ = std::thread([this, set, user_signal] {
    const auto tell = [](std::string_view line) { static_cast<void>(!write(STDERR_FILENO, line.data(), line.size())); };
    for (int signals = 0;;) {
      int signal = 0;
      if (sigwait(&set, &signal) != 0) continue;
      if (ending_) return;
      if (signal == SIGUSR1 && !user_signal) continue;
      ++signals;
      stop_.request_stop();
      const Phase phase = phase_;
      if (phase == Phase::preparing) tell("cancelled before the run began; nothing was exported\n");
      if (phase == Phase::preparing || (phase == Phase::running && signals > 1)) _exit(interrupted_status);
      if (!training_) continue;
      if (signals == 2) tell("\nwhat is whole is being written; once more ends without it\n");
      if (signals > 2) {
        tell("\nended before it was written; the folder is as it was when it was last written\n");
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
