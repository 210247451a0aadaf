// SPDX-License-Identifier: GPL-3.0-or-later
#include "files/npz.h"

#include "files/archive.h"

namespace reclab::archive_formats_by_name {

ArchiveFormat npz() {
  return {.name = "NPZ",
          .article = "an NPZ archive",
          .suffix = ".npz",
          .writer = "numpy.savez",
          .sniff = [](std::string_view start) { return start.starts_with("PK"); },
          .open = [](const std::filesystem::path& file) -> std::unique_ptr<ArrayFile> { return std::make_unique<NpzFile>(file); }};
}

}  // namespace reclab::archive_formats_by_name
