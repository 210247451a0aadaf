// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>

#include "array/error.h"
#include "commands.h"

namespace reclab::cli {

/// The line at the bottom of a terminal while something runs; nothing where standard error is none.
class ProgressLine {
 public:
  ~ProgressLine() { clear(); }
  Progress callback() {
    if (!isatty(STDERR_FILENO)) return {};
    return [this](double fraction, std::string_view stage) {
      const auto now = std::chrono::steady_clock::now();
      if (now - last_ < std::chrono::milliseconds(50)) return;
      last_ = now;
      shown_ = true;
      std::fprintf(stderr, "\r\033[K%3.0f %%  %.*s", 100.0 * fraction, static_cast<int>(stage.size()), stage.data());
      std::fflush(stderr);
    };
  }
  void clear() {
    if (shown_) std::fputs("\r\033[K", stderr);
    shown_ = false;
  }

 private:
  std::chrono::steady_clock::time_point last_;
  bool shown_ = false;
};

/// The result of compute(progress), with such a line; a computation that is stopped ends the program, which says where.
template <class Compute>
auto computed(Interrupt& interrupt, const std::string& where, const Compute& compute) {
  ProgressLine line;
  interrupt.enter(Interrupt::Phase::running);
  try {
    return compute(line.callback());
  } catch (const Cancelled&) {
    line.clear();
    cancelled(where);
  }
}

}  // namespace reclab::cli
