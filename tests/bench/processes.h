// SPDX-License-Identifier: GPL-3.0-or-later
// Other processes: the peers, which answer questions, and this program again, for what needs memory or threads of its own.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "rows.h"

namespace reclab::bench {

/// A child that reads lines and writes lines; its standard error is this process's. Throws Error where it cannot be started.
class Child {
 public:
  explicit Child(std::vector<std::string> command);
  ~Child();
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  void say(const std::string& line);
  std::string hear();  ///< the next line; empty where it has ended

 private:
  pid_t process_ = -1;
  std::FILE *to_ = nullptr, *from_ = nullptr;
};

/// The peers' script, one process for all rows, since it takes seconds to begin.
class Peers {
 public:
  explicit Peers(const std::string& python);
  /// The peers of a row, compiled, checked and warm: {"part": [{"name", "version", "error", "seconds", "number"}]}.
  nlohmann::ordered_json prepare(const Row& row, const std::filesystem::path& folder);
  /// The mean seconds of so many calls of one. Its threads are at rest again when this returns. Throws Error where it fails.
  double time(int number, std::int64_t calls);

 private:
  nlohmann::ordered_json answer(const std::string& line);
  Child child_;
};

/// The line that this program prints with these words, as JSON. Throws Error where it fails.
nlohmann::ordered_json itself(const std::vector<std::string>& words);

/// Restricts this process, before it has computed anything, and those that it starts to so many of the processors that it may run on.
/// 0: to all. Returns how many there are now. Throws Error where there are fewer.
int restrict_to(int threads);

/// The share of this process's processors that others use while it and its peers rest; it takes half a second.
double others_share();

}  // namespace reclab::bench
