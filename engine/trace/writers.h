// SPDX-License-Identifier: GPL-3.0-or-later
// A Trace as files: a manifest in JSON, all arrays in one NPZ, and one CSV an array.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "files/files.h"
#include "trace/trace.h"

namespace reclab {

/// JSON, indented, UTF-8: every field of RunInfo, the time axis, and of each array its key, shape, dtype, axes, unit, range and text. A
/// number that is not finite is null. `files`: the files of the export beside the manifest, each with its size and SHA-256.
std::string manifest_json(const Trace& trace, const std::vector<WrittenFile>& files = {});

/// trace.npz: every array under its key (float64 or complex128), and `time` [T] (float64) and `step` [T] (int64) of the recorded rows. An
/// array whose rows are other steps (TraceArray::steps) has them beside it as `step/<key>` (int64).
void write_trace_npz(const Trace& trace, AtomicFile& file);

/// True when the first axis is time.
bool moves_with_time(const TraceArray& array);

/// One array as CSV: a header, then a line for each position of the first axis. An array that moves with time begins with the columns step
/// and time, the rest with the position on the first axis; the other axes are laid side by side, named by their labels or "unit 3" (counted
/// from 0). Complex numbers take two columns, _re and _im. Numbers are the shortest text that reads back to the same float64; nan, inf and
/// -inf as such.
void write_csv(const Trace& trace, const TraceArray& array, AtomicFile& file);

/// "gate/0/forget" -> "gate_0_forget.csv".
std::string csv_file_name(std::string_view key);

/// A text as a CSV cell: quoted when it must be.
std::string csv_cell(std::string_view text);
/// Appends the shortest text that reads back to the same number, in every locale.
void append_number(std::string& to, double value);

}  // namespace reclab
