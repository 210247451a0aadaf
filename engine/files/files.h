// SPDX-License-Identifier: GPL-3.0-or-later
// Files that are read whole or refused, and written whole or not at all. Every failure is an Error of one sentence with file and cure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "array/error.h"

namespace reclab {

/// A name out of a file as it can stand in a sentence: short, its control characters written out.
std::string printable(std::string_view text);

/// "a, b or c": names as a sentence has them. If the last word is ",", all are separated alike.
std::string listed(const std::vector<std::string>& names, std::string_view last);

class Sha256;

/// A pipe is read to its end, which may be never: only where the user named it as the data.
enum class Pipes : std::uint8_t { refused, read };

/// The bytes of a file, of which `hash` is made meanwhile. Errors: no such file, is a folder, a device, a pipe, not permitted, a failing
/// disk.
std::string read_file(const std::filesystem::path& file, Pipes pipes = Pipes::refused, Sha256* hash = nullptr);

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

/// A file under construction: written under a temporary name in the folder of its final name (array/parts.h), which it takes with commit().
/// Without commit() nothing remains of it. Not for two threads at a time.
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
  AtomicFile(std::filesystem::path file, std::filesystem::path temporary);  ///< of a folder under construction
  void finish();  ///< everything on the disk, descriptor closed, still under the temporary name
  void flush();
  void put(const char* data, std::size_t size);
  [[noreturn]] void fail(int code) const;

  std::filesystem::path path_, temporary_;
  int descriptor_ = -1;
  int lock_ = -1;  ///< held until the file has its name: see array/parts.h
  std::uint64_t written_ = 0;
  std::string buffer_;
  std::optional<Sha256> hash_;  ///< files of a folder are vouched for by another
};

/// A file of a folder, as another one vouches for it.
struct WrittenFile {
  std::string name;
  std::uint64_t bytes = 0;
  std::string sha256;
};

/// Several files that appear in a folder together, written in a folder under construction. Where the folder does not exist yet it appears
/// with one rename. Where it holds plain files only, its other files are linked into the new folder, and the two are exchanged with one
/// call (renameat2): a process that ends at any moment leaves the old files or the new ones. Where that cannot be (a mount point, a folder
/// that a process works in or that holds folders, another's folder, a file system that does not exchange) the files are renamed one by one,
/// and the one that was begun last is taken away before all others and put in place after them: a folder without it is unfinished. When
/// anything fails, or commit() is never called, the folder is as it was. Writers of one folder take turns.
class AtomicFolder {
 public:
  explicit AtomicFolder(std::filesystem::path folder);  ///< makes the folders above it if needed
  ~AtomicFolder();
  AtomicFolder(const AtomicFolder&) = delete;
  AtomicFolder& operator=(const AtomicFolder&) = delete;

  /// A new file of the folder, named relative to it. The reference holds until commit().
  AtomicFile& file(const std::string& name);
  /// Closes the file that file() returned, so that many files do not hold many descriptors; it can no longer be written. Size and hash of
  /// it.
  WrittenFile finish(AtomicFile& file);
  void commit();

 private:
  bool appear();
  bool exchange();
  void rename_each();
  void remove_part() noexcept;
  void remove_made() noexcept;

  std::filesystem::path folder_;             ///< as the user named it
  std::filesystem::path target_;             ///< the same without symbolic links, where it exists
  std::filesystem::path part_;               ///< the folder under construction
  int lock_ = -1;                            ///< says that this process lives (array/parts.h)
  std::vector<std::filesystem::path> made_;  ///< folders above it that did not exist, outermost first
  std::vector<std::unique_ptr<AtomicFile>> files_;
  std::set<std::string, std::less<>> names_;
  bool committed_ = false;
};

/// Writes one small file through AtomicFile.
void write_file(const std::filesystem::path& file, std::string_view bytes);

}  // namespace reclab
