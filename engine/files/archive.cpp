// SPDX-License-Identifier: GPL-3.0-or-later
#include "files/archive.h"

#include <algorithm>

namespace reclab {

namespace {

/// The format that a file begins like; null: none.
const ArchiveFormat* format_of(const std::filesystem::path& path) {
  const InputFile file(path);
  std::string start(std::min<std::uint64_t>(64, file.size()), '\0');
  file.read(0, start.data(), start.size());
  const auto found = std::ranges::find_if(archive_formats(), [&](const ArchiveFormat& format) { return format.sniff(start); });
  return found == archive_formats().end() ? nullptr : &*found;
}

std::unique_ptr<ArrayFile> opened(const std::filesystem::path& path) {
  if (const ArchiveFormat* format = format_of(path)) return format->open(path);
  std::vector<std::string> articles, writers;
  for (const ArchiveFormat& format : archive_formats()) {
    if (path.extension() == format.suffix) return format.open(path);
    articles.push_back(format.article);
    writers.push_back(format.writer);
  }
  throw Error(path.string() + " is neither " + listed(articles, "nor") + ": save it with " + listed(writers, "or"),
              {.file = path.string(), .place = "byte 0"});
}

}  // namespace

std::string archive_format_names() {
  std::vector<std::string> names;
  for (const ArchiveFormat& format : archive_formats()) names.push_back(format.name);
  return listed(names, "or");
}

std::vector<std::string> archive_suffixes() {
  std::vector<std::string> suffixes;
  for (const ArchiveFormat& format : archive_formats()) suffixes.push_back(format.suffix);
  return suffixes;
}

Archive::Archive(const std::filesystem::path& file) : file_(opened(file)) {}

bool Archive::recognises(const std::filesystem::path& file) { return format_of(file) != nullptr; }

}  // namespace reclab
