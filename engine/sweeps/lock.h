// SPDX-License-Identifier: GPL-3.0-or-later
// The lock of a cell: a file that says which process of which host has it, and since when; on any file system that has links. The process
// renews its time while it lives.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>

namespace reclab {

class CellLock {
 public:
  /// A lock of another host that was not renewed for so long is of none.
  static constexpr std::chrono::minutes stale{15};

  /// Takes the lock, also where it is stale: where its process is gone on this host, or its time is old. Throws Error where the folder
  /// cannot be written.
  explicit CellLock(std::filesystem::path file);
  ~CellLock();
  CellLock(const CellLock&) = delete;
  CellLock& operator=(const CellLock&) = delete;
  bool held() const { return held_; }
  /// The process that has it, where it is not held: "process 17 on node3".
  const std::string& holder() const { return holder_; }

  /// Whether a living process has the lock of this file.
  static bool is_taken(const std::filesystem::path& file);

 private:
  bool take();
  void renew();
  std::filesystem::path file_;
  std::string holder_;
  bool held_ = false;
  std::mutex guard_;
  std::condition_variable_any wake_;
  std::jthread renewing_;
};

}  // namespace reclab
