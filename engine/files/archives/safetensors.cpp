// SPDX-License-Identifier: GPL-3.0-or-later
#include "files/safetensors.h"

#include "files/archive.h"

namespace reclab::archive_formats_by_name {

ArchiveFormat safetensors() {
  return {.name = "safetensors",
          .article = "a safetensors file",
          .suffix = ".safetensors",
          .writer = "safetensors.numpy.save_file",
          // The size of the header, 8 bytes, does not begin like another format: it would be above this one's limit, or nearly so.
          .sniff = [](std::string_view start) { return start.size() > 8 && start[8] == '{' && !start.starts_with("PK"); },
          .open = [](const std::filesystem::path& file) -> std::unique_ptr<ArrayFile> { return std::make_unique<SafetensorsFile>(file); }};
}

}  // namespace reclab::archive_formats_by_name
