// SPDX-License-Identifier: GPL-3.0-or-later
// A file of named arrays of either kind that is read, told by its content: NPZ or safetensors.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "files/npz.h"
#include "files/safetensors.h"

namespace reclab {

class Archive {
 public:
  /// Errors as of the two kinds; for a file that is neither, its extension tells which one is missed.
  explicit Archive(const std::filesystem::path& file);
  /// Whether a file begins like one of the two; Errors of files that cannot be read.
  static bool recognises(const std::filesystem::path& file);

  bool is_npz() const { return std::holds_alternative<NpzFile>(file_); }
  const std::filesystem::path& path() const {
    return std::visit([](const auto& file) -> const std::filesystem::path& { return file.path(); }, file_);
  }
  const std::vector<std::string>& names() const {
    return std::visit([](const auto& file) -> const std::vector<std::string>& { return file.names(); }, file_);
  }
  bool has(std::string_view name) const {
    return std::visit([&](const auto& file) { return file.has(name); }, file_);
  }
  /// Type and shape alone: to be looked at before an array of any size is read.
  NpyHeader header(std::string_view name) const {
    return std::visit([&](const auto& file) { return file.header(name); }, file_);
  }
  Shape shape(std::string_view name) const { return header(name).shape; }
  NpyArray read(std::string_view name) const {
    return std::visit([&](const auto& file) { return file.read(name); }, file_);
  }

 private:
  std::variant<NpzFile, SafetensorsFile> file_;
};

}  // namespace reclab
