// SPDX-License-Identifier: GPL-3.0-or-later
// Table, the content of a file as its format reads it, and the reader of text, where delimiter, header, quotes and decimal sign are found
// by looking. Inside the floor only.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sequence/sequence.h"

namespace reclab {

/// The content of a file: chosen channels only, row-major, every number finite, or NaN where a cell is missing and is not refused.
struct Table {
  std::vector<std::string> names;  ///< one a channel, those of the target last
  bool named = false;              ///< the file has names of its own for its columns
  std::int64_t targets = 0;        ///< so many columns are the target
  std::vector<double> data;
  std::int64_t rows = 0;
  std::vector<double> time;  ///< one a row, or empty; NaN where it is missing and its row is to be left out
  std::string time_name, time_unit;
  /// A target that the file has of its own, beside its columns; as in Sequence.
  TargetKind target_kind = TargetKind::none;
  std::int64_t target_width = 0, classes = 0;
  std::vector<double> target, mask;
  // The result of treat_missing (sequence/missing.h); as in Sequence. The flags stand between inputs and targets.
  std::int64_t flags = 0;
  std::vector<double> known;
  MissingCells missing;
};

/// Reads CSV, TSV and their like from the bytes of a file.
Table read_text_table(std::string bytes, const std::string& file, const LoadOptions& options);

/// The 0-based column that a user means by a header name or a 1-based number. Error naming the columns there are.
std::size_t resolve_column(const std::string& wanted, const std::vector<std::string>& names, const std::string& file);

/// Whether the target is the inputs' next value, so that no column is.
inline bool next_is_target(const LoadOptions& options) { return options.target.size() == 1 && options.target[0] == "next"; }
/// The 0-based columns that are input, target, or both. Error for one that is chosen twice.
struct ChosenColumns {
  std::vector<std::size_t> inputs, targets;
};
ChosenColumns resolve_columns(const LoadOptions& options, const std::vector<std::string>& names, const std::string& file);

/// Names for columns without one: "column 3", and the file's own name when it is the only one.
std::string default_column_name(std::size_t column, std::size_t columns, const std::string& file);

/// "time (s)" or "time [s]" as name and unit; without a unit it is empty.
std::pair<std::string, std::string> name_and_unit(const std::string& name);

/// A piece of a file as it can stand in a sentence: short, printable, valid UTF-8.
std::string shown(std::string_view text);

}  // namespace reclab
