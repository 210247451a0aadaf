// SPDX-License-Identifier: GPL-3.0-or-later
// The formats that a sequence comes in. Each is one file under sequence/formats/, which the build lists: the recognition of files, file
// dialogs, and the formats in help and errors follow from this table.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "sequence/sequence.h"

namespace reclab {

class AtomicFile;
struct Table;

struct SequenceFormat {
  std::vector<std::string> names;     ///< as people call it, "CSV" and "TSV"
  std::vector<std::string> suffixes;  ///< ".csv", lower-case, for file dialogs. A file is told by its content
  /// Whether a file is of this format that begins like this, with format_start bytes or all there are. Null for text, the format of files
  /// that no other recognises.
  bool (*sniff)(std::string_view start) = nullptr;
  /// Reads a file that is not empty, from its bytes. Throws Error naming file, place and cure.
  Table (*load)(std::string bytes, const std::string& file, const LoadOptions& options) = nullptr;
  /// For a format of named arrays, which may hold weights as well: whether arrays of such names are a sequence.
  bool (*holds_sequence)(const std::vector<std::string>& arrays) = nullptr;
  void (*save)(const Sequence& sequence, AtomicFile& file) = nullptr;  ///< null: it is read alone
  std::string saved_as = {};                                           ///< the ending under which save_sequence writes it
  /// Refuses a file by its size, before it is read into memory: a sentence without the name of the file, empty where it may be read. Null:
  /// none is refused.
  std::string (*too_long)(std::uint64_t bytes) = nullptr;
};
inline constexpr std::size_t format_start = 64;

/// Text first, then by the names of their files.
const std::vector<SequenceFormat>& sequence_formats();
void arrange(std::vector<SequenceFormat>& table);
/// The format of a file, by its bytes or by its beginning.
const SequenceFormat& sequence_format_of(std::string_view bytes);
/// The format of a file on disk. Errors as InputFile throws them.
const SequenceFormat& sequence_format_of_file(const std::filesystem::path& file);
/// The names of those that are read, "CSV, TSV, NPY or NPZ"; without text those that are told by how they begin.
std::string sequence_format_names(bool with_text = true);
/// The endings of those that are read, ".csv".
std::vector<std::string> sequence_suffixes();
/// The endings of those that are written.
std::vector<std::string> saved_sequence_suffixes();

}  // namespace reclab
