// SPDX-License-Identifier: GPL-3.0-or-later
#include "sequence/missing.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "array/error.h"
#include "files/files.h"

namespace reclab {
namespace {

constexpr std::array<std::pair<Missing, std::string_view>, 5> words{{{Missing::refuse, "refuse"},
                                                                     {Missing::leave_out, "leave-out"},
                                                                     {Missing::hold, "hold"},
                                                                     {Missing::interpolate, "interpolate"},
                                                                     {Missing::mask, "mask"}}};

/// Keeps of a row-major array the rows that are told to be kept.
void keep_rows(std::vector<double>& data, std::size_t width, const std::vector<bool>& keep) {
  if (data.empty()) return;
  std::size_t to = 0;
  for (std::size_t row = 0; row < keep.size(); ++row)
    if (keep[row]) {
      std::copy_n(data.begin() + static_cast<std::ptrdiff_t>(row * width), width, data.begin() + static_cast<std::ptrdiff_t>(to * width));
      ++to;
    }
  data.resize(to * width);
}

/// Whether a column has a number.
bool has_number(const std::vector<double>& data, std::size_t width, std::size_t column) {
  for (std::size_t at = column; at < data.size(); at += width)
    if (!std::isnan(data[at])) return true;
  return false;
}

/// The last value before, or the first where there is none before.
void hold(std::vector<double>& data, std::size_t width, std::size_t column) {
  std::size_t first = column;
  while (std::isnan(data[first])) first += width;
  double value = data[first];
  for (std::size_t at = column; at < data.size(); at += width)
    if (std::isnan(data[at]))
      data[at] = value;
    else
      value = data[at];
}

/// Fills gaps linearly in time between neighbours; before the first and after the last value, with that value.
void interpolate(std::vector<double>& data, std::size_t width, std::size_t column, const std::vector<double>& time) {
  const std::size_t rows = data.size() / width;
  const auto when = [&](std::size_t row) { return time.empty() ? static_cast<double>(row) : time[row]; };
  const auto at = [&](std::size_t row) -> double& { return data[row * width + column]; };
  std::size_t before = rows;  // none yet
  for (std::size_t row = 0; row < rows; ++row) {
    if (!std::isnan(at(row))) {
      before = row;
      continue;
    }
    std::size_t after = row;
    while (after < rows && std::isnan(at(after))) ++after;
    for (; row < after; ++row) {
      if (before == rows)
        at(row) = at(after);
      else if (after == rows)
        at(row) = at(before);
      else
        at(row) = std::lerp(at(before), at(after), (when(row) - when(before)) / (when(after) - when(before)));
    }
    before = after;  // rows, where the file ends
  }
}

void leave_rows_out(Table& table, std::size_t inputs, const std::string& file) {
  const std::size_t width = table.names.size(), rows = static_cast<std::size_t>(table.rows);
  std::vector<bool> keep(rows, true);
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t j = 0; j < inputs; ++j) keep[row] = keep[row] && !std::isnan(table.data[row * width + j]);
    if (!table.time.empty()) keep[row] = keep[row] && !std::isnan(table.time[row]);
  }
  const auto left = static_cast<std::size_t>(std::ranges::count(keep, true));
  if (left == rows) return;
  if (left == 0)
    throw Error(file + ": every row has a missing cell, so all would be left out: choose other columns, or hold or interpolate them",
                {.file = file, .parameter = "missing", .value = "leave-out"});
  if (table.time.empty()) {  // steps keep their numbers, so that a gap stays one
    for (std::size_t row = 0; row < rows; ++row) table.time.push_back(static_cast<double>(row));
    table.time_name = "step";
  }
  keep_rows(table.data, width, keep);
  keep_rows(table.time, 1, keep);
  keep_rows(table.target, static_cast<std::size_t>(std::max<std::int64_t>(1, table.target_width)), keep);
  keep_rows(table.mask, 1, keep);
  table.missing.rows_left_out = static_cast<std::int64_t>(rows - left);
  table.rows = static_cast<std::int64_t>(left);
}

void take_column_out(Table& table, std::size_t column) {
  const std::size_t width = table.names.size();
  std::size_t to = 0;
  for (std::size_t at = 0; at < table.data.size(); ++at)
    if (at % width != column) table.data[to++] = table.data[at];
  table.data.resize(to);
  table.names.erase(table.names.begin() + static_cast<std::ptrdiff_t>(column));
}

}  // namespace

Remedy missing_cure() {
  return {", or ", "say with ", {"missing"}, " what becomes of missing cells: leave-out, hold, interpolate or mask"};
}
const char* const missing_cures = "leave-out,hold,interpolate,mask";

std::string_view to_string(Missing missing) {
  return std::ranges::find(words, missing, &std::pair<Missing, std::string_view>::first)->second;
}

std::optional<Missing> missing_choice(std::string_view word) {
  const auto found = std::ranges::find(words, word, &std::pair<Missing, std::string_view>::second);
  return found == words.end() ? std::nullopt : std::optional(found->first);
}

std::vector<std::string> missing_choices() {
  std::vector<std::string> all;
  for (const auto& [missing, word] : words) all.emplace_back(word);
  return all;
}

std::int64_t hold_targets(std::vector<double>& target, std::int64_t width, std::vector<double>& mask, const std::vector<std::string>& names,
                          const std::string& file) {
  const auto columns = static_cast<std::size_t>(width);
  std::int64_t gone = 0;
  for (std::size_t row = 0; row * columns < target.size(); ++row) {
    const auto begin = target.begin() + static_cast<std::ptrdiff_t>(row * columns);
    if (std::none_of(begin, begin + width, [](double value) { return std::isnan(value); })) continue;
    ++gone;
    mask[row] = 0.0;
  }
  for (std::size_t j = 0; j < columns && gone > 0; ++j) {
    if (!has_number(target, columns, j))
      throw Error(file + ": the target " + (j < names.size() ? printable(names[j]) : "column " + std::to_string(j + 1)) +
                      " has no number: choose another target",
                  {.file = file, .place = j < names.size() ? names[j] : "target", .parameter = "target"});
    hold(target, columns, j);
  }
  return gone;
}

void treat_missing(Table& table, const std::string& file, const LoadOptions& options) {
  if (options.missing == Missing::refuse) return;
  MissingCells& missing = table.missing;
  missing.treated = to_string(options.missing);
  std::size_t inputs = table.names.size() - static_cast<std::size_t>(table.targets);
  for (std::size_t j = inputs; j-- > 0;) {
    if (has_number(table.data, table.names.size(), j)) continue;
    const std::string name = table.names[j];
    if (!options.columns.empty())
      throw Error(file + ": column " + printable(name) + " has no number: leave it out of the columns",
                  {.file = file, .place = name, .parameter = "columns", .value = name});
    if (inputs == 1)
      throw Error(file + ": no column that could be an input has a number: give it a column of numbers", {.file = file, .place = "header"});
    missing.columns_left_out.insert(missing.columns_left_out.begin(), name);
    take_column_out(table, j);
    --inputs;
  }
  const std::size_t width = table.names.size(), rows = static_cast<std::size_t>(table.rows);
  missing.of = static_cast<std::int64_t>(rows * inputs);
  std::vector<std::size_t> with_gaps;
  for (std::size_t j = 0; j < inputs; ++j) {
    std::int64_t here = 0;
    for (std::size_t row = 0; row < rows; ++row) here += std::isnan(table.data[row * width + j]);
    if (here == 0) continue;
    missing.cells += here;
    missing.columns.push_back(table.names[j]);
    with_gaps.push_back(j);
  }
  if (options.missing == Missing::leave_out) return leave_rows_out(table, inputs, file);
  if (with_gaps.empty()) return;

  table.known.assign(rows, 1.0);
  std::vector<double> there(rows * with_gaps.size(), 1.0);
  for (std::size_t k = 0; k < with_gaps.size(); ++k)
    for (std::size_t row = 0; row < rows; ++row)
      if (std::isnan(table.data[row * width + with_gaps[k]])) there[row * with_gaps.size() + k] = table.known[row] = 0.0;
  for (const std::size_t j : with_gaps)
    if (options.missing == Missing::interpolate)
      interpolate(table.data, width, j, table.time);
    else
      hold(table.data, width, j);
  if (options.missing != Missing::mask) return;

  // Behind the inputs, before the targets.
  std::vector<double> wider;
  wider.reserve(rows * (width + with_gaps.size()));
  for (std::size_t row = 0; row < rows; ++row) {
    const auto begin = table.data.begin() + static_cast<std::ptrdiff_t>(row * width), own = begin + static_cast<std::ptrdiff_t>(inputs);
    wider.insert(wider.end(), begin, own);
    const auto flags = there.begin() + static_cast<std::ptrdiff_t>(row * with_gaps.size());
    wider.insert(wider.end(), flags, flags + static_cast<std::ptrdiff_t>(with_gaps.size()));
    wider.insert(wider.end(), own, begin + static_cast<std::ptrdiff_t>(width));
  }
  table.data = std::move(wider);
  std::vector<std::string> names;
  for (const std::string& name : missing.columns) names.push_back(name + " known");
  table.names.insert(table.names.begin() + static_cast<std::ptrdiff_t>(inputs), names.begin(), names.end());
  table.flags = static_cast<std::int64_t>(with_gaps.size());
}

}  // namespace reclab
