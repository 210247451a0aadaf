// SPDX-License-Identifier: GPL-3.0-or-later
#include "files/parts.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "array/error.h"

namespace reclab::parts {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view ending = ".part";
constexpr std::size_t longest_stem = 80;  // so that the longest allowed name can still be written
constexpr auto patience = std::chrono::seconds(30);

std::string stem_of(const fs::path& path) { return path.filename().string().substr(0, longest_stem); }

/// A name that no other part of this process has.
std::string new_name(const fs::path& path) {
  static std::atomic<unsigned> counter{0};
  return "." + stem_of(path) + "." + std::to_string(::getpid()) + "-" + std::to_string(counter++) + std::string(ending);
}

/// The final name of a part; empty for other names.
std::string_view becomes(std::string_view name) {
  if (!name.starts_with('.') || !name.ends_with(ending)) return {};
  name = name.substr(1, name.size() - 1 - ending.size());
  const std::size_t dot = name.rfind('.');
  if (dot == std::string_view::npos || dot == 0) return {};
  const std::string_view who = name.substr(dot + 1);
  const std::size_t minus = who.find('-');
  const auto number = [](std::string_view text) {
    return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
  };
  return minus != std::string_view::npos && number(who.substr(0, minus)) && number(who.substr(minus + 1)) ? name.substr(0, dot)
                                                                                                          : std::string_view();
}

enum class Lock { taken, refused, none };
Lock try_lock(int descriptor) {
  for (;;) {
    if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0) return Lock::taken;
    if (errno == EINTR) continue;
    return errno == EWOULDBLOCK ? Lock::refused : Lock::none;
  }
}

/// On a network file system a lock may be this machine's alone, and says nothing of processes on others.
bool locks_tell(int descriptor) {
  struct statfs system{};
  if (::fstatfs(descriptor, &system) != 0) return false;
  constexpr unsigned long network[] = {
      0x6969 /* NFS */,        0xff534d42 /* CIFS */, 0xfe534d42 /* SMB2 */,   0x65735546 /* FUSE */, 0x00c36400 /* Ceph */,
      0x0bd00bd0 /* Lustre */, 0x47504653 /* GPFS */, 0x19830326 /* BeeGFS */, 0x5346414f /* AFS */,  0x01021997 /* 9P */};
  return std::ranges::find(network, static_cast<unsigned long>(system.f_type) & 0xffffffffUL) == std::end(network);
}

/// Whether a cleaner was quicker: the part was removed between making and locking it.
bool is_gone(int descriptor) {
  struct stat status{};
  return ::fstat(descriptor, &status) != 0 || status.st_nlink == 0;
}

/// Removes a folder under construction with its files. One that holds folders is not ours.
void remove_folder(int descriptor, const fs::path& path) {
  const std::vector<std::string> names = names_in(descriptor);
  for (const std::string& name : names) {
    struct stat status{};
    if (::fstatat(descriptor, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(status.st_mode)) return;
  }
  for (const std::string& name : names) ::unlink((path / name).c_str());
  ::rmdir(path.c_str());
}

void remove_dead(const fs::path& folder, std::string_view name, mode_t kind) {
  const int above = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (above < 0) return;
  const std::vector<std::string> names = locks_tell(above) ? names_in(above) : std::vector<std::string>();
  ::close(above);
  for (const std::string& entry : names) {
    const std::string_view whole = becomes(entry);
    if (whole.empty() || (!name.empty() && whole != name.substr(0, longest_stem))) continue;
    const fs::path path = folder / entry;
    const int part = ::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (part < 0) continue;
    struct stat opened{}, named{};
    if (::fstat(part, &opened) == 0 && (opened.st_mode & S_IFMT) == kind && try_lock(part) == Lock::taken &&
        ::lstat(path.c_str(), &named) == 0 && opened.st_ino == named.st_ino && opened.st_dev == named.st_dev) {
      if (kind == S_IFREG) ::unlink(path.c_str());
      if (kind == S_IFDIR) remove_folder(part, path);
    }
    ::close(part);
  }
}

}  // namespace

std::vector<std::string> names_in(int descriptor) {
  std::vector<std::string> names;
  // Of its own, since a copy of the descriptor would share its place in the folder.
  const int own = ::openat(descriptor, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* folder = own < 0 ? nullptr : ::fdopendir(own);
  if (!folder) {
    if (own >= 0) ::close(own);
    return names;
  }
  while (const dirent* entry = ::readdir(folder))
    if (const std::string_view name = entry->d_name; name != "." && name != "..") names.emplace_back(name);
  ::closedir(folder);
  return names;
}

FilePart make_file(const fs::path& path) {
  for (;;) {
    FilePart part{folder_of(path) / new_name(path), -1};
    part.descriptor = ::open(part.path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (part.descriptor < 0 && errno == EEXIST) continue;  // left by a process that had this number
    if (part.descriptor < 0) fail_writing(path, errno);
    if (try_lock(part.descriptor) != Lock::refused && !is_gone(part.descriptor)) return part;
    ::close(part.descriptor);
    ::unlink(part.path.c_str());
  }
}

FilePart make_folder(const fs::path& path, const fs::path& parent) {
  for (;;) {
    FilePart part{parent / new_name(path), -1};
    if (::mkdir(part.path.c_str(), 0777) != 0) {
      if (errno == EEXIST) continue;
      fail_writing(path, errno);
    }
    part.descriptor = ::open(part.path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (part.descriptor < 0) {
      const int code = errno;
      if (code == ENOENT) continue;
      ::rmdir(part.path.c_str());
      fail_writing(path, code);
    }
    if (try_lock(part.descriptor) != Lock::refused && !is_gone(part.descriptor)) return part;
    ::close(part.descriptor);
    ::rmdir(part.path.c_str());
  }
}

void remove_dead_files(const fs::path& folder, std::string_view name) { remove_dead(folder, name, S_IFREG); }

void remove_dead_folders(const fs::path& folder, std::string_view name) {
  if (!name.empty()) remove_dead(folder, name, S_IFDIR);
}

Turn::Turn(const fs::path& folder, Wait wait) : descriptor_(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC)) {
  if (descriptor_ < 0) return;
  const auto until = std::chrono::steady_clock::now() + patience;
  for (;;) {
    const Lock lock = try_lock(descriptor_);
    held_ = lock == Lock::taken;
    if (lock != Lock::refused || wait == Wait::no) return;
    if (std::chrono::steady_clock::now() > until) {
      ::close(descriptor_);
      throw Error(folder.string() + " has been locked by another program for " + std::to_string(patience.count()) +
                      " seconds: end that program, or choose another folder",
                  {.file = folder.string()});
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

Turn::~Turn() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void fail_writing(const fs::path& file, int code) {
  const std::string name = file.string();
  std::string sentence;
  switch (code) {
    case ENOSPC: sentence = name + " cannot be written because the disk is full: free some space or export elsewhere"; break;
    case EDQUOT: sentence = name + " cannot be written because your disk quota is used up: free some space or export elsewhere"; break;
    case EFBIG:
      sentence = name + " cannot be written because it is larger than this disk or account allows: export elsewhere, or record less";
      break;
    case EACCES:
    case EPERM: sentence = name + " cannot be written because its folder does not permit it: choose a folder of your own"; break;
    case EROFS: sentence = name + " cannot be written because its disk is read-only: choose another folder"; break;
    case ENOENT: sentence = name + " cannot be written because its folder does not exist: make the folder first or choose another"; break;
    case ENOTDIR: sentence = name + " cannot be written because a part of its path is a file: choose another folder"; break;
    case EISDIR: sentence = name + " cannot be written because a folder has that name: choose another name"; break;
    case ENAMETOOLONG: sentence = name + " cannot be written because its name is too long: choose a shorter one"; break;
    default: sentence = name + " cannot be written: " + std::strerror(code) + "; choose another folder";
  }
  throw Error(sentence, {.file = name});
}

void sync_folder(const fs::path& folder) {
  const int descriptor = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);
  ::close(descriptor);
}

fs::path folder_of(const fs::path& file) { return file.has_parent_path() ? file.parent_path() : fs::path("."); }

void check_name(const fs::path& file) {
  std::error_code ignored;
  if (file.filename().empty() || fs::is_directory(file, ignored)) fail_writing(file, EISDIR);
  if (fs::exists(file, ignored) && !fs::is_regular_file(file, ignored))  // a rename would replace the device itself
    throw Error(file.string() + " cannot be written because it is a device or a pipe: give the name of a file", {.file = file.string()});
  if (file.filename().string().size() > 255) fail_writing(file, ENAMETOOLONG);
}

}  // namespace reclab::parts
