// SPDX-License-Identifier: GPL-3.0-or-later
// Tables of text: CSV, TSV and their like (sequence/text/table.h). A file that no other format recognises is read as one, or refused.
#include "files/files.h"
#include "sequence/format.h"
#include "sequence/text/table.h"
#include "trace/writers.h"

namespace reclab::sequence_formats_by_name {

namespace {

/// Time, inputs, targets and mask as columns.
void save_csv(const Sequence& sequence, AtomicFile& out) {
  const auto length = static_cast<std::size_t>(sequence.length), width = static_cast<std::size_t>(sequence.width),
             target_width = static_cast<std::size_t>(sequence.target_width);
  const bool target = sequence.target_kind != TargetKind::none;
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
}

}  // namespace

SequenceFormat text() {
  return {
      .names = {"CSV", "TSV"}, .suffixes = {".csv", ".tsv", ".txt", ".dat"}, .load = read_text_table, .save = save_csv, .saved_as = ".csv"};
}

}  // namespace reclab::sequence_formats_by_name
