// SPDX-License-Identifier: GPL-3.0-or-later
// Files that are read whole or refused, and written whole or not at all. Every failure is an Error of one sentence with file and cure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "array/error.h"

namespace reclab {

/// The bytes of a file (a regular one, or a pipe). Errors: no such file, is a folder, a device, not permitted, a failing disk.
std::string read_file(const std::filesystem::path& file);

/// SHA-256 (FIPS 180-4), lower-case hexadecimal.
class Sha256 {
 public:
  Sha256();
  void update(const void* data, std::size_t size);
  std::string hex();  ///< ends the message; call it once

 private:
  void block(const unsigned char* data);
  std::uint32_t state_[8];
  std::uint64_t length_ = 0;
  unsigned char pending_[64];
};
std::string sha256_hex(std::string_view bytes);
std::string sha256_of_file(const std::filesystem::path& file);

/// A file open for reading at any place.
class InputFile {
 public:
  explicit InputFile(std::filesystem::path file);  ///< Errors as read_file
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;
  const std::filesystem::path& path() const { return path_; }
  std::uint64_t size() const { return size_; }
  /// Exactly so many bytes from an offset; Error "... is cut short" when the file ends before.
  void read(std::uint64_t offset, void* data, std::size_t count) const;

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
};

/// A file under construction: written under a temporary name in the folder of its final name, which it takes with commit(). Without
/// commit() nothing remains of it. Not for two threads at a time.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path file);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(const void* data, std::size_t size);
  void write(std::string_view text) { write(text.data(), text.size()); }
  std::uint64_t size() const { return written_; }  ///< bytes so far
  const std::filesystem::path& path() const { return path_; }
  void commit();  ///< flushes to the disk and renames

 private:
  friend class AtomicFolder;
  void finish();  ///< everything on the disk, descriptor closed, still under the temporary name
  void flush();
  void put(const char* data, std::size_t size);
  [[noreturn]] void fail(int code) const;

  std::filesystem::path path_, temporary_;
  int descriptor_ = -1;
  std::uint64_t written_ = 0;
  std::string buffer_;
};

/// Several files that appear in a folder together: all are written under temporary names, then all renamed. When anything fails, or
/// commit() is never called, the folder is as it was: files that were replaced are back, folders that were made are gone.
class AtomicFolder {
 public:
  explicit AtomicFolder(std::filesystem::path folder);  ///< makes the folder, with its parents, if needed
  ~AtomicFolder();
  AtomicFolder(const AtomicFolder&) = delete;
  AtomicFolder& operator=(const AtomicFolder&) = delete;

  /// A new file of the folder, named relative to it. The reference holds until commit().
  AtomicFile& file(const std::string& name);
  /// Closes what file() returned, so that many files do not hold many descriptors; it can no longer be written.
  void finish(AtomicFile& file) { file.finish(); }
  void commit();

 private:
  void remove_made() noexcept;
  std::filesystem::path folder_;
  std::vector<std::filesystem::path> made_;  ///< folders that did not exist, outermost first
  std::vector<std::unique_ptr<AtomicFile>> files_;
  bool committed_ = false;
};

/// Writes one small file through AtomicFile.
void write_file(const std::filesystem::path& file, std::string_view bytes);

}  // namespace reclab
