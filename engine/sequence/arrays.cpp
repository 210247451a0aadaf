// SPDX-License-Identifier: GPL-3.0-or-later
#include "sequence/arrays.h"

#include <algorithm>
#include <cmath>

#include "array/error.h"
#include "sequence/missing.h"

namespace reclab {

void check_finite(const std::vector<double>& data, std::int64_t width, const std::string& file, const std::string& what, Missing missing) {
  const auto bad = std::find_if(data.begin(), data.end(),
                                [&](double value) { return !std::isfinite(value) && (missing == Missing::refuse || !std::isnan(value)); });
  if (bad == data.end()) return;
  const std::int64_t at = bad - data.begin();
  const std::string place = "row " + std::to_string(at / width + 1) + ", column " + std::to_string(at % width + 1);
  if (std::isnan(*bad))
    throw MissingCellError(file + ": " + place + what + " is NaN: correct it, leave the row out" + missing_cure(),
                           {.file = file, .place = place, .parameter = "missing", .range = missing_cures});
  throw Error(file + ": " + place + what + " is infinite: correct it or leave the row out", {.file = file, .place = place});
}

void check_table(const Shape& shape, bool complex, const std::string& file) {
  const auto fail = [&](const std::string& what) { throw Error(file + " " + what, {.file = file, .place = "header"}); };
  if (complex) fail("holds complex numbers: save their real and imaginary parts as two columns");
  if (shape.empty()) fail("holds a single number: save an array of shape [T] or [T, d], one row a time step");
  if (shape.size() > 2)
    fail("holds an array of shape " + to_string(shape) + ", and a sequence has one or two dimensions: save one sample of shape [T, d]");
  if (count(shape) == 0) fail("holds an array of shape " + to_string(shape) + ", which has no numbers: save at least one row");
}

Table table_of(NpyArray array, const std::string& file, Missing missing) {
  check_table(array.shape, array.is_complex(), file);
  Table table;
  table.rows = array.shape[0];
  table.data = std::move(array.real);
  const std::size_t width = array.shape.size() == 2 ? static_cast<std::size_t>(array.shape[1]) : 1;
  for (std::size_t j = 0; j < width; ++j) table.names.push_back(default_column_name(j, width, file));
  check_finite(table.data, static_cast<std::int64_t>(width), file, "", missing);
  return table;
}

void check_increasing(const std::vector<double>& time, const std::string& file, Missing missing) {
  std::size_t before = time.size(), fall = 0;
  for (; fall < time.size(); ++fall) {
    if (std::isnan(time[fall])) {
      if (missing == Missing::leave_out) continue;
      const std::string place = "row " + std::to_string(fall + 1);
      throw MissingCellError(file + ": the time at " + place + " is missing" +
                                 Remedy{": ", "leave such rows out (", {"missing", "leave-out"}, ")"} + ", or set the time column to none",
                             {.file = file, .place = place, .parameter = "missing", .range = "leave-out"});
    }
    if (before < time.size() && !(time[before] < time[fall])) break;
    before = fall;
  }
  if (fall == time.size()) return;
  const std::string place = "row " + std::to_string(fall + 1);
  throw Error(file + ": the time at " + place + " is not later than that above: sort the rows by time, or set the time column to none",
              {.file = file, .place = place});
}

void choose_columns(Table& table, const std::string& file, const LoadOptions& options) {
  const std::size_t width = table.names.size();
  std::vector<std::string> names(width);
  const auto number = [](std::size_t j) { return "column " + std::to_string(j + 1); };
  for (std::size_t j = 0; j < width; ++j) names[j] = width == 1 && !table.named ? number(j) : table.names[j];
  const ChosenColumns asked = resolve_columns(options, names, file);
  std::vector<std::size_t> wanted = asked.inputs;
  std::optional<std::size_t> time;
  if (options.time && *options.time != "none") time = resolve_column(*options.time, names, file);
  const auto is_target = [&](std::size_t j) { return std::ranges::find(asked.targets, j) != asked.targets.end(); };
  for (std::size_t j = 0; j < width && options.columns.empty(); ++j)
    if ((!time || j != *time) && !is_target(j)) wanted.push_back(j);
  if (wanted.empty())
    throw Error(file + (asked.targets.empty() ? " has no column beside its time: set the time column to none"
                                              : " has no column beside its target: choose another target"),
                {.file = file, .parameter = asked.targets.empty() ? "time" : "target"});
  if (!time && asked.targets.empty() && wanted.size() == width && std::is_sorted(wanted.begin(), wanted.end())) return;
  wanted.insert(wanted.end(), asked.targets.begin(), asked.targets.end());
  Table chosen;
  chosen.rows = table.rows;
  chosen.targets = std::ssize(asked.targets);
  for (const std::size_t j : wanted)
    chosen.names.push_back(wanted.size() == 1 && table.names[j] == number(j) ? default_column_name(j, 1, file) : table.names[j]);
  for (std::size_t t = 0; t < static_cast<std::size_t>(table.rows); ++t) {
    for (const std::size_t j : wanted) chosen.data.push_back(table.data[t * width + j]);
    if (time) chosen.time.push_back(table.data[t * width + *time]);
  }
  chosen.target_kind = table.target_kind;
  chosen.target_width = table.target_width;
  chosen.classes = table.classes;
  chosen.target = std::move(table.target);
  chosen.mask = std::move(table.mask);
  chosen.missing = std::move(table.missing);
  if (!time) {  // that of the file, where it has one beside its columns
    chosen.time = std::move(table.time);
    chosen.time_name = std::move(table.time_name);
    chosen.time_unit = std::move(table.time_unit);
  } else {
    chosen.time_name = names[*time];
    check_increasing(chosen.time, file, options.missing);
  }
  table = std::move(chosen);
}

}  // namespace reclab
