// SPDX-License-Identifier: GPL-3.0-or-later
// A file of named arrays of any format that is read, told by its content. Each format is one file under files/archives/, which the build
// lists; the formats in file dialogs, help and errors follow from this table.
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "files/array_file.h"
#include "files/files.h"

namespace reclab {

struct ArchiveFormat {
  std::string name;                                 ///< "NPZ"
  std::string article;                              ///< "an NPZ archive", for sentences
  std::string suffix;                               ///< ".npz"
  std::string writer;                               ///< "numpy.savez", for the cure
  bool (*sniff)(std::string_view start) = nullptr;  ///< whether a file that begins like this is one
  std::unique_ptr<ArrayFile> (*open)(const std::filesystem::path& file) = nullptr;
};
/// All formats, by the names of their files.
const std::vector<ArchiveFormat>& archive_formats();
/// "NPZ or safetensors"
std::string archive_format_names();
/// The endings of those that are read, ".npz".
std::vector<std::string> archive_suffixes();

class Archive {
 public:
  /// Errors as of the formats; for a file of none of them its extension tells which one is missed.
  explicit Archive(const std::filesystem::path& file);
  /// Whether a file begins like one of the formats; Errors of files that cannot be read.
  static bool recognises(const std::filesystem::path& file);

  const std::filesystem::path& path() const { return file_->path(); }
  const std::vector<std::string>& names() const { return file_->names(); }
  bool has(std::string_view name) const { return file_->has(name); }
  NpyHeader header(std::string_view name) const { return file_->header(name); }
  Shape shape(std::string_view name) const { return header(name).shape; }
  NpyArray read(std::string_view name) const { return file_->read(name); }

 private:
  std::unique_ptr<ArrayFile> file_;
};

}  // namespace reclab
