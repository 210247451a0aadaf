// SPDX-License-Identifier: GPL-3.0-or-later
#include "sequence/format.h"

#include <algorithm>

#include "files/files.h"

namespace reclab {

void arrange(std::vector<SequenceFormat>& table) {
  std::ranges::stable_partition(table, [](const SequenceFormat& format) { return !format.sniff; });
}

const SequenceFormat& sequence_format_of(std::string_view bytes) {
  const auto& formats = sequence_formats();
  const auto found = std::ranges::find_if(
      formats, [&](const SequenceFormat& format) { return format.sniff && format.sniff(bytes.substr(0, format_start)); });
  return found == formats.end() ? formats.front() : *found;
}

const SequenceFormat& sequence_format_of_file(const std::filesystem::path& path) {
  const InputFile file(path);
  std::string start(std::min<std::uint64_t>(format_start, file.size()), '\0');
  file.read(0, start.data(), start.size());
  return sequence_format_of(start);
}

std::string sequence_format_names(bool with_text) {
  std::vector<std::string> names;
  for (const SequenceFormat& format : sequence_formats())
    if (format.sniff || with_text) names.insert(names.end(), format.names.begin(), format.names.end());
  return listed(names, "or");
}

std::vector<std::string> sequence_suffixes() {
  std::vector<std::string> suffixes;
  for (const SequenceFormat& format : sequence_formats()) suffixes.insert(suffixes.end(), format.suffixes.begin(), format.suffixes.end());
  return suffixes;
}

std::vector<std::string> saved_sequence_suffixes() {
  std::vector<std::string> suffixes;
  for (const SequenceFormat& format : sequence_formats())
    if (format.save) suffixes.push_back(format.saved_as);
  return suffixes;
}

}  // namespace reclab
