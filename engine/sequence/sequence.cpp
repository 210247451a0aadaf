// SPDX-License-Identifier: GPL-3.0-or-later
#include "sequence/sequence.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "array/error.h"
#include "files/files.h"
#include "files/npz.h"
#include "sequence/standardise.h"
#include "sequence/table.h"
#include "trace/writers.h"

namespace reclab {

namespace {

namespace fs = std::filesystem;

/// Refuses NaN and infinities, with their place.
void check_finite(const std::vector<double>& data, std::int64_t width, const std::string& file, const std::string& what) {
  const auto bad = std::find_if(data.begin(), data.end(), [](double value) { return !std::isfinite(value); });
  if (bad == data.end()) return;
  const std::int64_t at = bad - data.begin();
  const std::string place = "row " + std::to_string(at / width + 1) + ", column " + std::to_string(at % width + 1);
  throw Error(file + ": " + place + what + (std::isnan(*bad) ? " is NaN" : " is infinite") + ": correct it or leave the row out",
              {.file = file, .place = place});
}

/// [T] or [T, d] of real numbers as a table, before columns are chosen.
Table table_of(NpyArray array, const std::string& file) {
  const std::string shape = to_string(array.shape);
  const auto fail = [&](const std::string& what) { throw Error(file + " " + what, {.file = file, .place = "header"}); };
  if (array.is_complex()) fail("holds complex numbers: save their real and imaginary parts as two columns");
  if (array.shape.empty()) fail("holds a single number: save an array of shape [T] or [T, d], one row a time step");
  if (array.shape.size() > 2)
    fail("holds an array of shape " + shape + ", and a sequence has one or two dimensions: save one sample of shape [T, d]");
  if (array.real.empty()) fail("holds an array of shape " + shape + ", which has no numbers: save at least one row");
  Table table;
  table.rows = array.shape[0];
  table.data = std::move(array.real);
  const std::size_t width = array.shape.size() == 2 ? static_cast<std::size_t>(array.shape[1]) : 1;
  for (std::size_t j = 0; j < width; ++j) table.names.push_back(default_column_name(j, width, file));
  check_finite(table.data, static_cast<std::int64_t>(width), file, "");
  return table;
}

void check_increasing(const std::vector<double>& time, const std::string& file) {
  const auto fall = std::adjacent_find(time.begin(), time.end(), [](double a, double b) { return !(a < b); });
  if (fall == time.end()) return;
  const std::string place = "row " + std::to_string(fall - time.begin() + 2);
  throw Error(file + ": the time at " + place + " is not later than that above: sort the rows by time, or set the time column to none",
              {.file = file, .place = place});
}

/// Takes the chosen columns, and the time if a column is to be it.
void choose_columns(Table& table, const std::string& file, const LoadOptions& options) {
  const std::size_t width = table.names.size();
  std::vector<std::string> names(width);
  for (std::size_t j = 0; j < width; ++j) names[j] = "column " + std::to_string(j + 1);
  const ChosenColumns asked = resolve_columns(options, names, file);
  std::vector<std::size_t> wanted = asked.inputs;
  std::optional<std::size_t> time;
  if (options.time && *options.time != "none") time = resolve_column(*options.time, names, file);
  const auto is_target = [&](std::size_t j) { return std::ranges::find(asked.targets, j) != asked.targets.end(); };
  for (std::size_t j = 0; j < width && options.columns.empty(); ++j)
    if ((!time || j != *time) && !is_target(j)) wanted.push_back(j);
  if (wanted.empty())
    throw Error(file + (asked.targets.empty() ? " has no column beside its time: set the time column to none" : " has no column beside its target: choose another target"),
                {.file = file, .parameter = asked.targets.empty() ? "time" : "target"});
  if (!time && wanted.size() == width && std::is_sorted(wanted.begin(), wanted.end())) return;
  const std::size_t inputs = wanted.size();
  wanted.insert(wanted.end(), asked.targets.begin(), asked.targets.end());
  Table chosen;
  chosen.rows = table.rows;
  chosen.targets = std::ssize(asked.targets);
  for (const std::size_t j : wanted) chosen.names.push_back(inputs == 1 && wanted.size() == 1 ? default_column_name(j, 1, file) : table.names[j]);
  for (std::size_t t = 0; t < static_cast<std::size_t>(table.rows); ++t) {
    for (const std::size_t j : wanted) chosen.data.push_back(table.data[t * width + j]);
    if (time) chosen.time.push_back(table.data[t * width + *time]);
  }
  if (time) {
    chosen.time_name = names[*time];
    check_increasing(chosen.time, file);
  }
  table = std::move(chosen);
}

/// An array of an archive that has a row for each of the sequence's steps. Its width is returned through width.
std::vector<double> rows_of(const NpzFile& archive, const std::string& key, std::int64_t length, std::int64_t& width) {
  const NpyHeader header = archive.header(key);  // before the array, which may be of any size
  const std::string file = archive.path().string();
  const bool fits = header.kind != 'c' && (header.shape.size() == 1 || header.shape.size() == 2) && header.shape[0] == length && header.bytes > 0;
  if (!fits)
    throw Error(file + ": " + key + " has shape " + to_string(header.shape) + " where input has " + std::to_string(length) +
                    " steps: save one real row a step",
                {.file = file, .place = key});
  NpyArray array = archive.read(key);
  width = array.shape.size() == 2 ? array.shape[1] : 1;
  check_finite(array.real, width, file, " of " + key);
  return std::move(array.real);
}

Table from_archive(Sequence& sequence, const std::string& file, const LoadOptions& options) {
  const NpzFile archive(file);
  std::string key = "input";
  if (!archive.has(key)) {
    if (archive.names().size() != 1) {
      std::string known;
      for (std::size_t i = 0; i < archive.names().size() && i < 8; ++i) known += (i ? ", " : "") + shown(archive.names()[i]);
      if (archive.names().empty())
        throw Error(file + " is a ZIP archive without arrays (an Excel workbook, perhaps): save the series as CSV or NPY", {.file = file});
      throw Error(file + " holds several arrays (" + known + ") and none is named input: name the sequence input",
                  {.file = file, .place = "input"});
    }
    key = archive.names().front();
  }
  Table table = table_of(archive.read(key), file);
  if (archive.has("time") && !options.time) {
    std::int64_t width = 0;
    table.time = rows_of(archive, "time", table.rows, width);
    if (width != 1) throw Error(file + ": time has " + std::to_string(width) + " columns: give it one", {.file = file, .place = "time"});
    table.time_name = "time";
    check_increasing(table.time, file);
  }
  if (archive.has("target")) {
    sequence.target = rows_of(archive, "target", table.rows, sequence.target_width);
    sequence.target_kind = TargetKind::regress;
    if (archive.has("classes")) {
      const NpyArray classes = archive.header("classes").bytes <= sizeof(double) ? archive.read("classes") : NpyArray();
      const double count = classes.real.size() == 1 ? classes.real[0] : 0.0;
      if (!(count >= 2.0 && count <= 1e9))
        throw Error(file + ": classes is not one number from 2 on: save the number of classes", {.file = file, .place = "classes"});
      sequence.target_kind = TargetKind::classify;
      sequence.classes = static_cast<std::int64_t>(count);
      const bool numbered = sequence.target_width == 1 && std::all_of(sequence.target.begin(), sequence.target.end(), [&](double value) {
                              return value >= 0.0 && value < count && value == std::floor(value);
                            });
      if (!numbered)
        throw Error(file + ": target is not one class number from 0 to " + std::to_string(sequence.classes - 1) +
                        " a step: number the classes from 0",
                    {.file = file, .place = "target"});
    }
    std::int64_t width = 1;
    if (archive.has("mask")) sequence.mask = rows_of(archive, "mask", table.rows, width);
    if (!archive.has("mask")) sequence.mask.assign(static_cast<std::size_t>(table.rows), 1.0);
    const bool flags = width == 1 && std::all_of(sequence.mask.begin(), sequence.mask.end(), [](double value) { return value >= 0.0; });
    if (!flags)
      throw Error(file + ": mask is not one number >= 0 a step: save 1 where the target counts and 0 elsewhere",
                  {.file = file, .place = "mask"});
  }
  return table;
}

/// The last columns of a table as the target of every step.
void take_targets(Sequence& sequence, Table& table) {
  const auto targets = static_cast<std::size_t>(table.targets), all = table.names.size(), inputs = all - targets;
  std::vector<double> data;
  data.reserve(static_cast<std::size_t>(table.rows) * inputs);
  sequence.target.clear();
  for (auto row = table.data.begin(); row != table.data.end(); row += static_cast<std::ptrdiff_t>(all)) {
    const auto end = row + static_cast<std::ptrdiff_t>(inputs);
    data.insert(data.end(), row, end);
    sequence.target.insert(sequence.target.end(), end, end + table.targets);
  }
  sequence.target_kind = TargetKind::regress;
  sequence.target_width = table.targets;
  sequence.classes = 0;
  sequence.mask.assign(static_cast<std::size_t>(table.rows), 1.0);
  sequence.target_names.assign(table.names.begin() + static_cast<std::ptrdiff_t>(inputs), table.names.end());
  table.names.resize(inputs);
  table.data = std::move(data);
  table.targets = 0;
}

/// The inputs' own next values; of the last step there is none, and it does not count.
void take_next(Sequence& sequence) {
  if (sequence.length < 2)
    throw Error(sequence.source + " has one row, so there is no next value to be the target: give it more rows, or another target",
                {.file = sequence.source, .parameter = "target", .value = "next"});
  sequence.target.assign(sequence.input.begin() + sequence.width, sequence.input.end());
  sequence.target.resize(sequence.input.size(), 0.0);
  sequence.target_kind = TargetKind::regress;
  sequence.target_width = sequence.width;
  sequence.classes = 0;
  sequence.mask.assign(static_cast<std::size_t>(sequence.length), 1.0);
  sequence.mask.back() = 0.0;
  sequence.target_names.clear();
  for (const std::string& name : sequence.names) sequence.target_names.push_back("next " + name);
}

/// What was subtracted from a column and divided by.
struct Scale {
  double mean, deviation;
};
/// Makes one column of a row-major [length, width] array standard.
Scale standardise_column(std::vector<double>& data, std::size_t width, std::size_t j, const std::string& name, const std::string& source) {
  const std::size_t length = data.size() / width;
  double mean = 0.0, squares = 0.0, low = data[j], high = low;
  for (std::size_t t = 0; t < length; ++t) {
    const double value = data[t * width + j], step = value - mean;
    mean += step / static_cast<double>(t + 1);
    squares += step * (value - mean);
    low = std::min(low, value);
    high = std::max(high, value);
  }
  // Told by its range, because rounding leaves a constant a deviation of 1e-17 that would make noise of it.
  const bool constant = low == high;
  if (constant) mean = low;
  const double deviation = constant ? 1.0 : std::sqrt(squares / static_cast<double>(length));
  if (!std::isfinite(mean) || !std::isfinite(deviation) || deviation == 0.0)
    throw Error(source + ": channel " + name + " spans values too " + (deviation == 0.0 ? "close" : "far apart") +
                    " to standardise: rescale it, or do not standardise",
                {.file = source, .place = name, .parameter = "standardise"});
  for (std::size_t t = 0; t < length; ++t) {
    double& value = data[t * width + j];
    value = (value - mean) / deviation;
  }
  return {mean, deviation};
}

}  // namespace

void standardise(Sequence& sequence) {
  for (std::size_t j = 0; j < sequence.names.size(); ++j) {
    const Scale scale = standardise_column(sequence.input, sequence.names.size(), j, sequence.names[j], sequence.source);
    sequence.mean[j] = scale.mean;
    sequence.deviation[j] = scale.deviation;
  }
  sequence.standardised = true;
}

Sequence load_sequence(const fs::path& path, const LoadOptions& options) {
  Sequence sequence;
  const std::string file = path.string();
  sequence.name = path.filename().string();
  sequence.source = file;
  sequence.load = options;
  std::string bytes = read_file(path, Pipes::read);
  sequence.sha256 = sha256_hex(bytes);
  Table table;
  if (bytes.empty()) {
    throw Error(file + " is empty: give it a row of numbers a time step", {.file = file, .place = "line 1"});
  } else if (bytes[0] == '\x93') {
    table = table_of(parse_npy(bytes, file), file);
    choose_columns(table, file, options);
  } else if (bytes.starts_with("PK")) {
    bytes = {};
    table = from_archive(sequence, file, options);
    choose_columns(table, file, options);
  } else {
    table = read_text_table(std::move(bytes), file, options);
  }
  const bool column_targets = table.targets > 0;
  if (column_targets) take_targets(sequence, table);
  sequence.length = table.rows;
  sequence.width = static_cast<std::int64_t>(table.names.size());
  sequence.input = std::move(table.data);
  sequence.names = std::move(table.names);
  sequence.mean.assign(sequence.names.size(), 0.0);
  sequence.deviation.assign(sequence.names.size(), 1.0);
  if (table.time.empty()) {
    sequence.time.resize(static_cast<std::size_t>(table.rows));
    std::iota(sequence.time.begin(), sequence.time.end(), 0.0);
  } else {
    sequence.time = std::move(table.time);
    sequence.time_name = table.time_name;
    sequence.time_unit = table.time_unit;
  }
  if (options.standardise) standardise(sequence);
  // A column of the file is treated alike as input and as target; the target array of an archive stays as it is.
  for (std::size_t j = 0; column_targets && options.standardise && j < sequence.target_names.size(); ++j)
    standardise_column(sequence.target, sequence.target_names.size(), j, sequence.target_names[j], file);
  if (next_is_target(options)) take_next(sequence);
  return sequence;
}

void save_sequence(const Sequence& sequence, const fs::path& file) {
  const auto length = static_cast<std::size_t>(sequence.length), width = static_cast<std::size_t>(sequence.width),
             target_width = static_cast<std::size_t>(sequence.target_width);
  const bool target = sequence.target_kind != TargetKind::none;
  std::string ending = file.extension().string();
  for (char& c : ending) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  if (ending == ".npz") {
    AtomicFile out(file);
    NpzWriter archive(out);
    archive.add("input", {sequence.length, sequence.width}, std::span<const double>(sequence.input));
    archive.add("time", {sequence.length}, std::span<const double>(sequence.time));
    if (target && sequence.target_kind == TargetKind::classify) {
      const std::vector<std::int64_t> numbers(sequence.target.begin(), sequence.target.end()), classes{sequence.classes};
      archive.add("target", {sequence.length, 1}, std::span<const std::int64_t>(numbers));
      archive.add("classes", {}, std::span<const std::int64_t>(classes));
    } else if (target) {
      archive.add("target", {sequence.length, sequence.target_width}, std::span<const double>(sequence.target));
    }
    if (target) archive.add("mask", {sequence.length}, std::span<const double>(sequence.mask));
    archive.finish();
    out.commit();
    return;
  }
  if (ending != ".csv")
    throw Error(file.string() + " has an ending that is not written: name it .csv or .npz",
                {.file = file.string(), .value = ending, .range = ".csv, .npz"});
  AtomicFile out(file);
  std::string text = csv_cell(sequence.time_unit.empty() ? sequence.time_name : sequence.time_name + " (" + sequence.time_unit + ")");
  for (const std::string& name : sequence.names) text += "," + csv_cell(name);
  if (target) {
    for (std::size_t j = 0; j < target_width; ++j) text += target_width == 1 ? std::string(",target") : ",target " + std::to_string(j + 1);
    text += ",mask";
  }
  text += '\n';
  for (std::size_t t = 0; t < length; ++t) {
    append_number(text, sequence.time[t]);
    for (std::size_t j = 0; j < width; ++j) append_number(text += ',', sequence.input[t * width + j]);
    if (target) {
      for (std::size_t j = 0; j < target_width; ++j) append_number(text += ',', sequence.target[t * target_width + j]);
      append_number(text += ',', sequence.mask[t]);
    }
    text += '\n';
    out.write(text);
    text.clear();
  }
  out.commit();
}

}  // namespace reclab
