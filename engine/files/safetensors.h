// SPDX-License-Identifier: GPL-3.0-or-later
// The safetensors format (github.com/huggingface/safetensors, "Format"): the size of a header, 8 bytes, little-endian; the header, JSON
// {"name": {"dtype": "F32", "shape": [2, 3], "data_offsets": [from, to]}, ...}; the data, little-endian and row-major.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "files/array_file.h"
#include "files/files.h"
#include "files/npy.h"

namespace reclab {

/// A file open for reading. Its header is checked whole before anything is read: every byte of the data belongs to one entry, and every
/// entry has the bytes of its shape; "__metadata__" is not looked at. Errors name the file, the entry and the cure.
class SafetensorsFile final : public ArrayFile {
 public:
  explicit SafetensorsFile(const std::filesystem::path& file);
  const std::filesystem::path& path() const override { return file_.path(); }
  /// The names in the order of the data.
  const std::vector<std::string>& names() const override { return names_; }
  bool has(std::string_view name) const override { return entries_.find(name) != entries_.end(); }
  /// F64, F32, F16, BF16, I8 to I64, U8 to U64 and BOOL. The dtype of the result is NumPy's, "bfloat16" for BF16. Throws Error naming the
  /// entries of the file if there is none of that name.
  NpyArray read(std::string_view name) const override;
  /// Type and shape alone.
  NpyHeader header(std::string_view name) const override;

 private:
  struct Entry {
    std::string dtype;
    Shape shape;
    std::uint64_t from = 0, to = 0;  ///< in the data
  };
  const Entry& entry(std::string_view name) const;
  [[noreturn]] void fail(const std::string& what, const std::string& place = "header") const;
  InputFile file_;
  std::uint64_t data_ = 0;  ///< where the data begins
  std::vector<std::string> names_;
  std::map<std::string, Entry, std::less<>> entries_;
};

/// Writes an archive into a file under construction, which the caller commits. Real arrays alone, as F64, or as F32 where they are
/// float32's. The order is the caller's; the same arrays give the same bytes.
struct SafetensorsEntry {
  std::string name;
  Shape shape;
  std::span<const double> values;
};
void write_safetensors(AtomicFile& file, const std::vector<SafetensorsEntry>& entries, bool single = false);

}  // namespace reclab
