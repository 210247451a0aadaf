// SPDX-License-Identifier: GPL-3.0-or-later
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <optional>

#include "array/demand.h"
#include "files/files.h"
#include "files/parts.h"

namespace reclab {

namespace fs = std::filesystem;

namespace {

/// More files of others than this are not linked across: such a folder is no folder of an export.
constexpr std::size_t most_others = 1000;

bool same(const struct stat& a, const struct stat& b) { return a.st_dev == b.st_dev && a.st_ino == b.st_ino; }

/// Access lists and other attributes would stay with the old folder. Attributes of security modules are given to every new file by rule.
bool has_attributes(int folder) {
  std::string names(4096, '\0');
  const ssize_t size = ::flistxattr(folder, names.data(), names.size());
  if (size < 0) return errno != ENOTSUP;
  names.resize(static_cast<std::size_t>(size));
  for (std::size_t at = 0; at < names.size(); at = names.find('\0', at) + 1)
    if (names.compare(at, 9, "security.") != 0) return true;
  return false;
}

/// Whether a process works in the folder (of those that this one may look at): a shell, say. It would find itself in a folder that is gone.
bool is_current_folder(const struct stat& status) {
  struct stat current{};
  if (::stat(".", &current) == 0 && same(current, status)) return true;
  const int processes = ::open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (processes < 0) return false;
  const std::vector<std::string> names = parts::names_in(processes);
  const bool found = std::ranges::any_of(names, [&](const std::string& name) {
    return name[0] >= '0' && name[0] <= '9' && ::fstatat(processes, (name + "/cwd").c_str(), &current, 0) == 0 && same(current, status);
  });
  ::close(processes);
  return found;
}

/// Whether a folder may be replaced by another one of its name: not if it is in use, or holds more than files.
bool replaceable(const fs::path& folder, struct stat& status) {
  if (folder == folder.root_path()) return false;
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (descriptor < 0) return false;
  struct stat above{};
  struct statx mount{};
  const fs::path parent = parts::folder_of(folder);
  const auto writable = [](const fs::path& path) { return ::faccessat(AT_FDCWD, path.c_str(), W_OK | X_OK, AT_EACCESS) == 0; };
  bool can = ::fstat(descriptor, &status) == 0 && ::stat(parent.c_str(), &above) == 0 && above.st_dev == status.st_dev &&
             !is_current_folder(status) && ::statx(descriptor, "", AT_EMPTY_PATH, 0, &mount) == 0 &&
             (mount.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT) != 0 && (mount.stx_attributes & STATX_ATTR_MOUNT_ROOT) == 0 &&
             writable(folder) && writable(parent) && !has_attributes(descriptor);
  const std::vector<std::string> names = can ? parts::names_in(descriptor) : std::vector<std::string>();
  can = can && names.size() <= most_others;
  for (auto name = names.begin(); can && name != names.end(); ++name) {
    struct stat entry{};
    can = ::fstatat(descriptor, name->c_str(), &entry, AT_SYMLINK_NOFOLLOW) == 0 && (S_ISREG(entry.st_mode) || S_ISLNK(entry.st_mode));
  }
  ::close(descriptor);
  return can;
}

int rename_to_free_name(const fs::path& from, const fs::path& to) {
  return ::renameat2(AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), RENAME_NOREPLACE);
}

}  // namespace

AtomicFolder::AtomicFolder(fs::path folder) : folder_(std::move(folder)) {
  if (folder_.empty()) folder_ = ".";
  std::error_code code;
  if (fs::exists(folder_, code)) {
    if (!fs::is_directory(folder_, code))
      throw Error(folder_.string() + " cannot be written into because it is a file: choose a folder", {.file = folder_.string()});
    target_ = fs::canonical(folder_, code);
    if (code) parts::fail_writing(folder_, code.value());
  } else {
    target_ = folder_.lexically_normal();
    if (target_.filename().empty() && target_.has_relative_path()) target_ = target_.parent_path();  // "out/" is "out"
    std::vector<fs::path> missing;
    for (fs::path above = parts::folder_of(target_); !fs::exists(above, code); above = parts::folder_of(above)) {
      missing.push_back(above);
      if (!above.has_parent_path() || above.parent_path() == above) break;
    }
    for (auto it = missing.rbegin(); it != missing.rend(); ++it) {
      if (::mkdir(it->c_str(), 0777) == 0) {
        made_.push_back(*it);
      } else if (errno != EEXIST) {
        const int failed = errno;
        remove_made();
        parts::fail_writing(folder_, failed);
      }
    }
  }

  const bool there = fs::is_directory(target_, code);
  const fs::path above = parts::folder_of(target_);
  const std::string name = target_.filename().string();
  if (const parts::Turn turn(above, parts::Turn::Wait::no); turn.held()) parts::remove_dead_folders(above, name);
  if (there) {
    parts::remove_dead_files(target_, "");
    if (const parts::Turn turn(target_, parts::Turn::Wait::no); turn.held()) parts::remove_dead_folders(target_, name);
  }
  try {
    struct stat ignored{};
    const parts::FilePart part = parts::make_folder(folder_, !there || replaceable(target_, ignored) ? above : target_);
    part_ = part.path;
    lock_ = part.descriptor;
  } catch (...) {
    remove_made();
    throw;
  }
}

AtomicFolder::~AtomicFolder() {
  remove_part();
  if (!committed_) remove_made();
}

void AtomicFolder::remove_part() noexcept {
  files_.clear();  // each with its file
  if (!part_.empty()) ::rmdir(part_.c_str());
  part_.clear();
  if (lock_ >= 0) ::close(lock_);
  lock_ = -1;
}

void AtomicFolder::remove_made() noexcept {
  for (auto it = made_.rbegin(); it != made_.rend(); ++it) ::rmdir(it->c_str());  // only if empty: files that others put there stay
  made_.clear();
}

AtomicFile& AtomicFolder::file(const std::string& name) {
  const bool fresh = names_.insert(name).second;
  RECLAB_DEMAND(fresh);
  static_cast<void>(fresh);
  return *files_.emplace_back(new AtomicFile(folder_ / name, part_ / name));
}

WrittenFile AtomicFolder::finish(AtomicFile& file) {
  file.finish();
  return {.name = file.path_.filename().string(), .bytes = file.written_, .sha256 = file.hash_.value().hex()};
}

void AtomicFolder::commit() {
  if (files_.empty()) return;
  for (auto& file : files_) {
    file->finish();
    // A folder is exchanged without a check of its files, so each is checked here.
    struct stat status{};
    if (::lstat(file->temporary_.c_str(), &status) != 0) file->fail(errno);
  }
  ::fsync(lock_);
  const parts::Turn turn(parts::folder_of(target_));
  std::optional<parts::Turn> own;
  if (!turn.held()) own.emplace(target_);
  if (!appear() && !exchange()) rename_each();
  remove_part();
  committed_ = true;
}

/// A folder that is not there yet.
bool AtomicFolder::appear() {
  struct stat status{};
  if (::lstat(target_.c_str(), &status) == 0) return false;
  if (rename_to_free_name(part_, target_) != 0) {
    if (errno == EEXIST) return false;
    // Not every file system knows the flag. Without it an empty folder that has come up meanwhile would be replaced, and no other.
    if ((errno != EINVAL && errno != ENOSYS && errno != ENOTSUP) || ::rename(part_.c_str(), target_.c_str()) != 0) {
      if (errno == EEXIST || errno == ENOTEMPTY) return false;
      parts::fail_writing(folder_, errno);
    }
  }
  for (auto& file : files_) file->temporary_.clear();
  part_.clear();
  parts::sync_folder(parts::folder_of(target_));
  return true;
}

/// A folder in the place of another. False, and nothing is changed, where that cannot be.
bool AtomicFolder::exchange() {
  struct stat old{}, part{};
  if (!replaceable(target_, old) || ::fstat(lock_, &part) != 0 || part.st_dev != old.st_dev || part.st_uid != old.st_uid) return false;
  // Within the same owner's files: the group, and then the mode, which a change of group may have taken from.
  if ((part.st_gid != old.st_gid && ::fchown(lock_, static_cast<uid_t>(-1), old.st_gid) != 0) || ::fchmod(lock_, old.st_mode & 07777) != 0)
    return false;
  const int target = ::open(target_.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (target < 0) return false;
  std::vector<std::string> others;
  bool can = true;
  for (const std::string& name : parts::names_in(target)) {
    if (names_.contains(name)) continue;
    can = ::linkat(target, name.c_str(), lock_, name.c_str(), 0) == 0;
    if (!can) break;
    others.push_back(name);
  }
  if (can) ::fsync(lock_);
  can = can && ::renameat2(AT_FDCWD, part_.c_str(), AT_FDCWD, target_.c_str(), RENAME_EXCHANGE) == 0;
  if (!can) {
    for (const std::string& name : others) ::unlink((part_ / name).c_str());
    ::close(target);
    return false;
  }
  parts::sync_folder(parts::folder_of(target_));
  // The old folder lies where the new one was made. Files that were added or replaced in it since the listing are moved over.
  for (const std::string& name : parts::names_in(target)) {
    struct stat before{}, now{};
    if (names_.contains(name))
      ::unlink((part_ / name).c_str());
    else if (std::ranges::find(others, name) == others.end())
      rename_to_free_name(part_ / name, target_ / name);
    else if (::fstatat(target, name.c_str(), &before, AT_SYMLINK_NOFOLLOW) != 0 ||
             ::fstatat(lock_, name.c_str(), &now, AT_SYMLINK_NOFOLLOW) != 0 || same(before, now))
      ::unlink((part_ / name).c_str());
    else
      ::rename((part_ / name).c_str(), (target_ / name).c_str());
  }
  for (auto& file : files_) file->temporary_.clear();
  ::close(target);
  return true;
}

/// File by file.
void AtomicFolder::rename_each() {
  struct Placed {
    fs::path kept;  ///< where the old file of the name waits
    bool placed = false;
  };
  std::vector<Placed> state(files_.size());
  std::size_t culprit = 0;
  int code = 0;
  const auto keep = [&](std::size_t i) {
    struct stat status{};
    const fs::path path = target_ / files_[i]->path_.filename();
    if (::lstat(path.c_str(), &status) != 0) return true;
    fs::path kept = part_ / (std::to_string(i) + ".old");
    if (::rename(path.c_str(), kept.c_str()) == 0) {
      state[i].kept = std::move(kept);
      return true;
    }
    code = errno;
    culprit = i;
    return false;
  };
  const auto place = [&](std::size_t i) {
    AtomicFile& file = *files_[i];
    state[i].placed = ::rename(file.temporary_.c_str(), (target_ / file.path_.filename()).c_str()) == 0;
    if (state[i].placed) return true;
    code = errno;
    culprit = i;
    return false;
  };
  const std::size_t last = files_.size() - 1;
  bool good = keep(last);
  parts::sync_folder(target_);
  for (std::size_t i = 0; good && i < last; ++i) good = keep(i) && place(i);
  parts::sync_folder(target_);
  good = good && place(last);
  if (!good) {
    for (std::size_t i = 0; i < files_.size(); ++i) {
      const fs::path path = target_ / files_[i]->path_.filename();
      if (state[i].placed) ::rename(path.c_str(), files_[i]->temporary_.c_str());
      if (!state[i].kept.empty()) ::rename(state[i].kept.c_str(), path.c_str());
    }
    files_[culprit]->fail(code);
  }
  for (const Placed& file : state)
    if (!file.kept.empty()) ::unlink(file.kept.c_str());
  for (auto& file : files_) file->temporary_.clear();
  parts::sync_folder(target_);
}

}  // namespace reclab
