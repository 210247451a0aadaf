// SPDX-License-Identifier: GPL-3.0-or-later
// Text for a terminal of 100 columns: wrapped paragraphs, tables, numbers that people read.
#pragma once

#include <cstddef>
#include <cstdint>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "trace/trace.h"

namespace reclab::cli {

constexpr std::size_t page_width = 100;

/// Columns that UTF-8 text takes on a terminal; combining marks take none.
std::size_t columns_of(std::string_view utf8);
std::string padded(std::string_view utf8, std::size_t columns);
/// Lines of at most `width` columns, broken at spaces; a longer word stays whole.
std::vector<std::string> wrapped(std::string_view text, std::size_t width);
void paragraph(std::ostream& out, std::string_view text, std::size_t indent = 0);
/// At most so many columns, longer text ends in "...".
std::string shortened(const std::string& utf8, std::size_t columns);
/// A heading, bold where standard output is a terminal that wants it.
std::string heading(std::string_view text);

/// A table without rules: columns as wide as they need, the last one wrapped in the rest of the page's width.
class TextTable {
 public:
  explicit TextTable(std::size_t indent = 0) : indent_(indent) {}
  void row(std::vector<std::string> cells) { rows_.push_back(std::move(cells)); }
  /// A line of its own above the rows that follow, after an empty one.
  void heading(std::string text) { rows_.push_back({std::move(text)}); }
  /// Numbers stand at the right of their column.
  void right_align(std::size_t column) { right_.push_back(column); }
  void print(std::ostream& out) const;

 private:
  std::size_t indent_;
  std::vector<std::size_t> right_;
  std::vector<std::vector<std::string>> rows_;
};

std::string number_text(double value, int digits = 4);  ///< "0.03125", "1.2e-09"
std::string bytes_text(double bytes);                   ///< "31 MiB"
std::string seconds_text(double seconds);               ///< "84 ms"
std::string shape_text(const Shape& shape);             ///< "128 × 32", "1" for a scalar
std::string joined(const std::vector<std::string>& parts, std::string_view between = ", ");
/// "1 step", "20 steps"
std::string counted(std::int64_t count, std::string_view noun);
/// A sentence of the engine's after "reclab: ": its first word without a capital, where that is no name.
std::string sentence_after_colon(std::string sentence);
/// Control characters become spaces: the text is one line.
std::string one_line(std::string text);

}  // namespace reclab::cli
