// SPDX-License-Identifier: GPL-3.0-or-later
#include "sequence/sequence.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "array/error.h"
#include "files/files.h"
#include "sequence/format.h"
#include "sequence/missing.h"
#include "sequence/standardise.h"
#include "sequence/text/table.h"

namespace reclab {

namespace {

namespace fs = std::filesystem;

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
  table.missing.target_steps = hold_targets(sequence.target, table.targets, sequence.mask, sequence.target_names, sequence.source);
  table.names.resize(inputs);
  table.data = std::move(data);
  table.targets = 0;
}

/// The inputs' own next values; of the last step there is none, and it does not count.
void take_next(Sequence& sequence) {
  if (sequence.length < 2)
    throw Error(sequence.source + " has one row, so there is no next value to be the target: give it more rows, or another target",
                {.file = sequence.source, .parameter = "target", .value = "next"});
  const auto length = static_cast<std::size_t>(sequence.length), width = static_cast<std::size_t>(sequence.width),
             values = width - static_cast<std::size_t>(sequence.flags);
  sequence.target.clear();
  for (std::size_t t = 1; t < length; ++t) {
    const auto row = sequence.input.begin() + static_cast<std::ptrdiff_t>(t * width);
    sequence.target.insert(sequence.target.end(), row, row + static_cast<std::ptrdiff_t>(values));
  }
  sequence.target.resize(length * values, 0.0);
  sequence.target_kind = TargetKind::regress;
  sequence.target_width = static_cast<std::int64_t>(values);
  sequence.classes = 0;
  sequence.mask.assign(length, 1.0);
  sequence.mask.back() = 0.0;
  sequence.missing.target_steps = 0;
  for (std::size_t t = 1; t < sequence.known.size(); ++t)
    if (sequence.known[t] == 0.0) {  // the next value is not known
      sequence.mask[t - 1] = 0.0;
      ++sequence.missing.target_steps;
    }
  sequence.target_names.clear();
  for (std::size_t j = 0; j < values; ++j) sequence.target_names.push_back("next " + sequence.names[j]);
}

/// The subtracted mean and the divisor of a column.
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
  for (std::size_t j = 0; j < sequence.names.size() - static_cast<std::size_t>(sequence.flags); ++j) {
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
  // A file that is known to be too long is refused before it is read; a pipe has no size.
  if (std::error_code none; fs::is_regular_file(path, none))
    if (const SequenceFormat& format = sequence_format_of_file(path); format.too_long)
      if (const std::string why = format.too_long(fs::file_size(path)); !why.empty())
        throw Error(file + " " + why, {.file = file, .place = "header"});
  Sha256 hash;
  std::string bytes = read_file(path, Pipes::read, &hash);
  sequence.sha256 = hash.hex();
  if (bytes.empty()) throw Error(file + " is empty: give it a row of numbers a time step", {.file = file, .place = "line 1"});
  const SequenceFormat& format = sequence_format_of(bytes);
  Table table = format.load(std::move(bytes), file, options);
  treat_missing(table, file, options);
  if (table.target_kind != TargetKind::none && table.targets == 0 && options.missing != Missing::refuse)
    table.missing.target_steps = hold_targets(table.target, table.target_width, table.mask, {}, file);
  sequence.target_kind = table.target_kind;
  sequence.target_width = table.target_width;
  sequence.classes = table.classes;
  sequence.target = std::move(table.target);
  sequence.mask = std::move(table.mask);
  const bool column_targets = table.targets > 0;
  if (column_targets) take_targets(sequence, table);
  sequence.flags = table.flags;
  sequence.known = std::move(table.known);
  sequence.missing = std::move(table.missing);
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
  std::string ending = file.extension().string();
  for (char& c : ending) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  for (const SequenceFormat& format : sequence_formats()) {
    if (!format.save || format.saved_as != ending) continue;
    AtomicFile out(file);
    format.save(sequence, out);
    return out.commit();
  }
  const std::vector<std::string> endings = saved_sequence_suffixes();
  throw Error(file.string() + " has an ending that is not written: name it " + listed(endings, "or"),
              {.file = file.string(), .value = ending, .range = listed(endings, ",")});
}

}  // namespace reclab
