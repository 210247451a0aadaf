// SPDX-License-Identifier: GPL-3.0-or-later
// The folder of a training while it trains: the files that it may replace, the times of its writes, and another folder where a write fails.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <string>

#include "experiment/training/training.h"

namespace reclab::cli {

/// Throws Error where a folder holds a training, or files of its names that are none, so that none is lost to a command that is given
/// again.
void refuse_to_replace(const std::filesystem::path& folder);

class KeptTraining {
 public:
  /// `seconds` pass between two checkpoints at least. `folder` may be empty: then nothing is written.
  KeptTraining(const Training& training, std::filesystem::path folder, double seconds);

  /// Throws Error where the folder cannot be written.
  void check() const;
  /// After a step: whether the next checkpoint is due.
  bool due() const;
  /// Writes the training as it stands, unless it is there already. Where the folder cannot be written, another one, and problem() says why
  /// and where; where none can be, problem() says so. Throws nothing.
  void write() noexcept;
  /// Of the last write().
  const std::string& problem() const { return problem_; }
  bool written() const { return written_ == training_.trainer().steps(); }
  /// The folder of the newest checkpoint; empty: none.
  const std::filesystem::path& place() const { return place_; }
  bool is_beside() const { return !beside_.empty() && place_ == beside_; }  ///< since folder has a training that is further
  std::int64_t steps() const { return written_; }                           ///< of the checkpoint at place(); -1: there is none

 private:
  using Clock = std::chrono::steady_clock;
  std::filesystem::path target();
  bool write_to(const std::filesystem::path& folder, std::string& why);
  void write_elsewhere(std::string why);
  void remove_copy(std::filesystem::path& folder);

  const Training& training_;
  std::filesystem::path folder_, place_, beside_, elsewhere_;
  std::string problem_;
  double seconds_, cost_ = 0.0;
  std::int64_t written_ = -1;
  Clock::time_point last_ = Clock::now();
};

}  // namespace reclab::cli
