// SPDX-License-Identifier: GPL-3.0-or-later
// NumPy's NPY: an array [T] or [T, d], one row a step.
#include "sequence/arrays.h"
#include "sequence/format.h"

namespace reclab::sequence_formats_by_name {

SequenceFormat npy() {
  return {.names = {"NPY"},
          .suffixes = {".npy"},
          .sniff = [](std::string_view start) { return start.starts_with('\x93'); },
          .load =
              [](std::string bytes, const std::string& file, const LoadOptions& options) {
                Table table = table_of(parse_npy(bytes, file), file, options.missing);
                choose_columns(table, file, options);
                return table;
              }};
}

}  // namespace reclab::sequence_formats_by_name
