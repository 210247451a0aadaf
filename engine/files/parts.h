// SPDX-License-Identifier: GPL-3.0-or-later
// Unfinished files and folders: hidden, named ".NAME.PID-N.part", beside their final place. The writer holds a lock (flock) on it, which
// the system takes back when the process ends in any way; so the next writer of NAME can tell an abandoned one, and removes it. A process
// number alone would not tell: it may have been given to another process since.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace reclab::parts {

/// A new file of size 0 beside `path`, or an empty folder in `parent`, that is to become `path`, locked. Errors as fail_writing(path, ...).
struct FilePart {
  std::filesystem::path path;
  int descriptor = -1;  ///< the lock is held until it, and every copy of it, is closed
};
FilePart make_file(const std::filesystem::path& path);
FilePart make_folder(const std::filesystem::path& path, const std::filesystem::path& parent);

/// Removes the parts of `name` in the folder that processes left when they ended; files of every name where it is empty. A part that may
/// still be written (by any process, on any machine) stays, and so does everything that does not look like a part. Only the holder of the
/// Turn of `folder` may remove folders: just after an exchange the old folder lies there without a lock.
void remove_dead_files(const std::filesystem::path& folder, std::string_view name);
void remove_dead_folders(const std::filesystem::path& folder, std::string_view name);

/// Writers of one folder take turns: the lock on a folder. Not held where the folder cannot be read or has no locks, or when another holds
/// it and is not waited for. Waiting ends with an Error after half a minute.
class Turn {
 public:
  enum class Wait : bool { no, yes };
  explicit Turn(const std::filesystem::path& folder, Wait wait = Wait::yes);
  ~Turn();
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  bool held() const { return held_; }

 private:
  int descriptor_ = -1;
  bool held_ = false;
};

/// The sentence for an errno while writing `file`.
[[noreturn]] void fail_writing(const std::filesystem::path& file, int code);
/// Makes renames and removals in a folder last. Not every file system can; written files are whole either way.
void sync_folder(const std::filesystem::path& folder);
/// The names in an open folder, without . and ..; nothing where it cannot be read.
std::vector<std::string> names_in(int descriptor);
/// The folder of a file, "." where its name has none.
std::filesystem::path folder_of(const std::filesystem::path& file);
/// Error where a file of this name cannot come to be: a folder has the name, it is a device, or it is too long.
void check_name(const std::filesystem::path& file);

}  // namespace reclab::parts
