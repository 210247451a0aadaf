// SPDX-License-Identifier: GPL-3.0-or-later
// NumPy's NPZ: the array input [T, d_in], or the only one there is, with names [d_in] those of its columns; time [T], with time_name [1]
// the name of that, "time (s)"; target [T, target_width], with classes [] the numbers of classes; mask [T].
#include <algorithm>
#include <cmath>
#include <tuple>

#include "array/error.h"
#include "files/npz.h"
#include "sequence/arrays.h"
#include "sequence/format.h"

namespace reclab::sequence_formats_by_name {

namespace {

bool holds_sequence(const std::vector<std::string>& arrays) {
  return arrays.size() <= 1 || std::ranges::find(arrays, "input") != arrays.end();
}

/// Of an array that has to have a row for each of the sequence's steps, by its header alone.
void check_rows(const NpzFile& archive, const std::string& key, std::int64_t length) {
  const NpyHeader header = archive.header(key);
  const std::string file = archive.path().string();
  const bool fits =
      header.kind != 'c' && (header.shape.size() == 1 || header.shape.size() == 2) && header.shape[0] == length && header.bytes > 0;
  if (!fits)
    throw Error(file + ": " + key + " has shape " + to_string(header.shape) + " where input has " + std::to_string(length) +
                    " steps: save one real row a step",
                {.file = file, .place = key});
}

/// An array of an archive that has a row for each of the sequence's steps. Its width is returned through width.
std::vector<double> rows_of(const NpzFile& archive, const std::string& key, std::int64_t length, std::int64_t& width, Missing missing) {
  check_rows(archive, key, length);
  const std::string file = archive.path().string();
  NpyArray array = archive.read(key);
  width = array.shape.size() == 2 ? array.shape[1] : 1;
  check_finite(array.real, width, file, " of " + key, missing);
  return std::move(array.real);
}

/// The texts of an array; none where there is no such array, or one of something else than `expected` texts that may be names.
std::vector<std::string> names_in(const NpzFile& archive, const std::string& key, std::size_t expected) {
  if (!archive.has_texts(key)) return {};
  std::vector<std::string> names = archive.texts(key);
  const auto may_be = [](const std::string& name) {
    return !name.empty() && std::ranges::none_of(name, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
  };
  if (names.size() != expected || !std::ranges::all_of(names, may_be)) return {};
  return names;
}

Table load_archive(const std::string& file, const LoadOptions& options) {
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
  // All headers before the first array: a small archive may hold arrays of any size, and is refused where they do not belong together.
  const NpyHeader input = archive.header(key);
  check_table(input.shape, input.kind == 'c', file);
  if (archive.has("time") && !options.time) check_rows(archive, "time", input.shape[0]);
  if (archive.has("target")) check_rows(archive, "target", input.shape[0]);
  if (archive.has("target") && archive.has("mask")) check_rows(archive, "mask", input.shape[0]);
  Table table = table_of(archive.read(key), file, options.missing);
  if (std::vector<std::string> names = names_in(archive, "names", table.names.size()); !names.empty()) {
    table.names = std::move(names);
    table.named = true;
  }
  if (archive.has("time") && !options.time) {
    std::int64_t width = 0;
    table.time = rows_of(archive, "time", table.rows, width, options.missing);
    if (width != 1) throw Error(file + ": time has " + std::to_string(width) + " columns: give it one", {.file = file, .place = "time"});
    table.time_name = "time";
    if (const auto name = names_in(archive, "time_name", 1); !name.empty())
      std::tie(table.time_name, table.time_unit) = name_and_unit(name[0]);
    check_increasing(table.time, file, options.missing);
  }
  if (archive.has("target")) {
    table.target = rows_of(archive, "target", table.rows, table.target_width, options.missing);
    table.target_kind = TargetKind::regress;
    std::int64_t width = 1;
    if (archive.has("mask")) table.mask = rows_of(archive, "mask", table.rows, width, Missing::refuse);
    if (!archive.has("mask")) table.mask.assign(static_cast<std::size_t>(table.rows), 1.0);
    const bool flags = width == 1 && std::all_of(table.mask.begin(), table.mask.end(), [](double value) { return value >= 0.0; });
    if (!flags)
      throw Error(file + ": mask is not one number >= 0 a step: save 1 where the target counts and 0 elsewhere",
                  {.file = file, .place = "mask"});
    if (archive.has("classes")) {
      const NpyArray classes = archive.header("classes").bytes <= sizeof(double) ? archive.read("classes") : NpyArray();
      const double count = classes.real.size() == 1 ? classes.real[0] : 0.0;
      if (!(count >= 2.0 && count <= 1e9))
        throw Error(file + ": classes is not one number from 2 on: save the number of classes", {.file = file, .place = "classes"});
      table.target_kind = TargetKind::classify;
      table.classes = static_cast<std::int64_t>(count);
      const bool numbered =
          table.target_width == 1 && std::all_of(table.target.begin(), table.target.end(), [&](double value) {
            return std::isnan(value) || (value >= 0.0 && value < count && value == std::floor(value));  // one that is missing was let in
          });
      if (!numbered)
        throw Error(
            file + ": target is not one class number from 0 to " + std::to_string(table.classes - 1) + " a step: number the classes from 0",
            {.file = file, .place = "target"});
    }
  }
  choose_columns(table, file, options);
  return table;
}

void save_archive(const Sequence& sequence, AtomicFile& out) {
  const bool target = sequence.target_kind != TargetKind::none;
  NpzWriter archive(out);
  archive.add("input", {sequence.length, sequence.width}, std::span<const double>(sequence.input));
  archive.add("names", std::span<const std::string>(sequence.names));
  archive.add("time", {sequence.length}, std::span<const double>(sequence.time));
  if (sequence.time_name != "step") {
    const std::string name[] = {sequence.time_unit.empty() ? sequence.time_name : sequence.time_name + " (" + sequence.time_unit + ")"};
    archive.add("time_name", std::span<const std::string>(name));
  }
  if (target && sequence.target_kind == TargetKind::classify) {
    const std::vector<std::int64_t> numbers(sequence.target.begin(), sequence.target.end()), classes{sequence.classes};
    archive.add("target", {sequence.length, 1}, std::span<const std::int64_t>(numbers));
    archive.add("classes", {}, std::span<const std::int64_t>(classes));
  } else if (target) {
    archive.add("target", {sequence.length, sequence.target_width}, std::span<const double>(sequence.target));
  }
  if (target) archive.add("mask", {sequence.length}, std::span<const double>(sequence.mask));
  archive.finish();
}

}  // namespace

SequenceFormat npz() {
  return {.names = {"NPZ"},
          .suffixes = {".npz"},
          .sniff = [](std::string_view start) { return start.starts_with("PK"); },
          .load =
              [](std::string bytes, const std::string& file, const LoadOptions& options) {
                bytes = {};  // an archive is read array by array
                return load_archive(file, options);
              },
          .holds_sequence = holds_sequence,
          .save = save_archive,
          .saved_as = ".npz"};
}

}  // namespace reclab::sequence_formats_by_name
