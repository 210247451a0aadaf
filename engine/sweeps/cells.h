// SPDX-License-Identifier: GPL-3.0-or-later
// The cells of a sweep as a folder has them: plan.json, as it was given; cells.jsonl, a line a cell, {"cell": NAME, "argv": [...]}, which
// is written and read in constant memory; cells/NAME/result.json, which is there when the cell is done; and work/, what is not done yet:
// NAME.lock, NAME.failed, and the checkpoint NAME/ of a training.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "experiment/experiment.h"
#include "sweeps/plan.h"

namespace reclab {

constexpr std::size_t digits_of_name = 16;
struct SweepCell {
  std::int64_t index = 0;
  /// 16 hexadecimal digits: the hash of its canonical line, of its preset's file and of the files that it reads. Lines that ask for the
  /// same have one name, so that what is done is used again by a plan with another axis.
  std::string name;
  std::vector<std::string> words{};  ///< the canonical line, "reclab", "train", ...
};

/// Makes cells of lines; each file is hashed once.
class CellNames {
 public:
  explicit CellNames(const PresetLibrary& presets) : presets_(presets) {}
  /// Throws Error for a line that asks for what there is not.
  SweepCell cell(const TypedRun& run);

 private:
  const std::string& hash_of(const std::string& file);
  const Hyper& own_hyper(const Preset& preset);
  void shorten(RunRequest& request);
  const PresetLibrary& presets_;
  std::map<std::string, std::string> hashes_;
  std::map<std::pair<std::string, bool>, Hyper> hypers_;  ///< of presets as they are and as they were trained
};

/// A whole result. The measures of a training that diverged are NaN.
struct CellResult {
  bool diverged = false;
  std::map<std::string, double> measures;
  double seconds = 0.0;  ///< of the process that ended it
};

class SweepFolder {
 public:
  /// Writes plan.json and cells.jsonl into a folder that is new, or that of a sweep. Throws Error, for a cell that cannot be too.
  static void write(const std::filesystem::path& folder, const SweepPlan& plan, const PresetLibrary& presets);
  /// Throws Error for a folder that is none of a sweep.
  explicit SweepFolder(std::filesystem::path folder);

  const std::filesystem::path& path() const { return folder_; }
  const SweepPlan& plan() const { return plan_; }
  std::int64_t size() const { return plan_.cells(); }
  /// Throws Error for a number that is none of a cell's.
  SweepCell cell(std::int64_t index) const;
  void check(std::int64_t index) const;

  std::filesystem::path place(const SweepCell& cell) const { return folder_ / "cells" / cell.name; }
  std::filesystem::path work(const SweepCell& cell) const { return folder_ / "work" / cell.name; }
  std::filesystem::path lock(const SweepCell& cell) const { return folder_ / "work" / (cell.name + ".lock"); }
  std::filesystem::path failure(const SweepCell& cell) const { return folder_ / "work" / (cell.name + ".failed"); }
  /// The result, where it is whole, of this cell, and has all measures of the plan.
  std::optional<CellResult> result(const SweepCell& cell) const;

 private:
  std::filesystem::path folder_;
  SweepPlan plan_;
};

/// The cells of a folder in their order.
class CellReader {
 public:
  explicit CellReader(const SweepFolder& folder);
  /// Throws Error for a line that is none, and for a file that ends too early.
  std::optional<SweepCell> next();
  void skip();                                   ///< a line, which is not looked at
  std::int64_t index() const { return index_; }  ///< of the next cell

 private:
  [[noreturn]] void damaged(const std::string& why) const;
  std::filesystem::path file_;
  std::ifstream stream_;
  std::int64_t index_ = 0, size_;
};

}  // namespace reclab
