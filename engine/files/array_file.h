// SPDX-License-Identifier: GPL-3.0-or-later
// A file of named arrays that is open for reading, of any format.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "files/npy.h"

namespace reclab {

class ArrayFile {
 public:
  virtual ~ArrayFile() = default;
  virtual const std::filesystem::path& path() const = 0;
  virtual const std::vector<std::string>& names() const = 0;
  virtual bool has(std::string_view name) const = 0;
  /// Type and shape alone: to be looked at before an array of any size is read. Errors as of read.
  virtual NpyHeader header(std::string_view name) const = 0;
  /// Throws Error naming the arrays of the file if there is none of that name.
  virtual NpyArray read(std::string_view name) const = 0;
};

}  // namespace reclab
