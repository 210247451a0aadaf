// SPDX-License-Identifier: GPL-3.0-or-later
#include "files/files.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <future>

#include "array/demand.h"
#include "files/parts.h"

namespace reclab {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t buffer_size = std::size_t{1} << 16;

[[noreturn]] void fail_reading(const fs::path& file, int code) {
  const std::string name = file.string();
  std::string sentence;
  switch (code) {
    case ENOENT: sentence = "there is no file " + name + ": check the path"; break;
    case ENOTDIR: sentence = "there is no file " + name + ": a part of its path is a file, not a folder; check the path"; break;
    case EISDIR: sentence = name + " is a folder: give a file in it"; break;
    case EACCES:
    case EPERM: sentence = name + " may not be read: give yourself permission to read it, or copy it elsewhere"; break;
    case EMFILE:
    case ENFILE: sentence = name + " cannot be opened because too many files are open: close some programs"; break;
    default: sentence = name + " cannot be read: " + std::strerror(code) + "; copy it to another disk and try again";
  }
  throw Error(sentence, {.file = name});
}

/// Opens without waiting: for the writer of a pipe, say, which may never come.
int open_for_reading(const fs::path& file, struct stat& status) {
  int descriptor = ::open(file.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  // A program that has a lease on the file is asked to give it up, for which one has to wait.
  if (descriptor < 0 && errno == EWOULDBLOCK) descriptor = ::open(file.c_str(), O_RDONLY | O_NOCTTY | O_CLOEXEC);
  if (descriptor < 0) fail_reading(file, errno);
  int code = 0;
  if (::fstat(descriptor, &status) != 0)
    code = errno;
  else if (S_ISDIR(status.st_mode))
    code = EISDIR;
  else if ((S_ISREG(status.st_mode) || S_ISFIFO(status.st_mode)) && ::fcntl(descriptor, F_SETFL, O_RDONLY) != 0)
    code = errno;
  if (code == 0 && (S_ISREG(status.st_mode) || S_ISFIFO(status.st_mode))) return descriptor;
  ::close(descriptor);
  if (code != 0) fail_reading(file, code);
  throw Error(file.string() + " is a device, not a file: copy its data into a file first", {.file = file.string()});
}

[[noreturn]] void refuse_pipe(const fs::path& file) {
  throw Error(file.string() + " is a pipe: save its data in a file first", {.file = file.string()});
}

/// Until somebody writes into a pipe, or has closed it. Without this, a pipe that nobody has opened yet reads as empty.
void wait_for_writer(int descriptor, const fs::path& file) {
  pollfd pipe{descriptor, POLLIN, 0};
  while (::poll(&pipe, 1, -1) < 0)
    if (errno != EINTR) fail_reading(file, errno);
}

}  // namespace

std::string printable(std::string_view text) {
  constexpr std::size_t most = 80;
  if (text.size() <= most) return visible(text);
  std::size_t size = most;
  while (size < std::min(text.size(), most + 3) && (static_cast<unsigned char>(text[size]) & 0xc0) == 0x80)
    ++size;  // whole characters of UTF-8
  return visible(text.substr(0, size)) + (size < text.size() ? "..." : "");
}

std::string listed(const std::vector<std::string>& names, std::string_view last) {
  std::string text;
  for (std::size_t i = 0; i < names.size(); ++i)
    text += (i == 0 ? "" : i + 1 < names.size() || last == "," ? ", " : " " + std::string(last) + " ") + names[i];
  return text;
}

std::string read_file(const fs::path& file, Pipes pipes, Sha256* hash) {
  struct stat status{};
  const int descriptor = open_for_reading(file, status);
  std::string bytes;
  std::size_t used = 0;
  try {
    constexpr std::size_t piece = std::size_t{16} << 20;
    std::future<void> hashing;  // of the last piece, while the next one is read
    const auto hashed = [&hashing] {
      if (hashing.valid()) hashing.get();
    };
    if (S_ISFIFO(status.st_mode) && pipes == Pipes::refused) refuse_pipe(file);
    if (S_ISFIFO(status.st_mode)) wait_for_writer(descriptor, file);
    // One byte more than the file has, so that its end is seen without growing.
    bytes.resize(S_ISREG(status.st_mode) ? static_cast<std::size_t>(status.st_size) + 1 : buffer_size);
    for (;;) {
      if (used == bytes.size()) {
        hashed();  // it may move
        bytes.resize(bytes.size() * 2);
      }
      const ssize_t count = ::read(descriptor, bytes.data() + used, std::min(bytes.size() - used, piece));
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) fail_reading(file, errno);
      if (count == 0) break;
      if (hash) {
        hashed();
        // Of a small file there is nothing to wait for.
        const auto how = static_cast<std::size_t>(count) < piece ? std::launch::deferred : std::launch::async | std::launch::deferred;
        hashing = std::async(how, [hash, from = bytes.data() + used, count] { hash->update(from, static_cast<std::size_t>(count)); });
      }
      used += static_cast<std::size_t>(count);
    }
    hashed();
    bytes.resize(used);
  } catch (const std::bad_alloc&) {
    ::close(descriptor);
    throw Error(file.string() + " does not fit into memory: cut it into smaller files", {.file = file.string()});
  } catch (...) {
    ::close(descriptor);
    throw;
  }
  ::close(descriptor);
  return bytes;
}

std::string sha256_of_file(const fs::path& file) {
  InputFile input(file);
  Sha256 hash;
  std::string buffer(std::size_t{1} << 20, '\0');
  for (std::uint64_t at = 0; at < input.size();) {
    const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(buffer.size(), input.size() - at));
    input.read(at, buffer.data(), count);
    hash.update(buffer.data(), count);
    at += count;
  }
  return hash.hex();
}

// ---- reading at any place

InputFile::InputFile(fs::path file) : path_(std::move(file)) {
  struct stat status{};
  descriptor_ = open_for_reading(path_, status);
  if (!S_ISREG(status.st_mode)) {
    ::close(descriptor_);
    refuse_pipe(path_);
  }
  size_ = static_cast<std::uint64_t>(status.st_size);
}

InputFile::~InputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void InputFile::read(std::uint64_t offset, void* data, std::size_t count) const {
  auto to = static_cast<char*>(data);
  while (count > 0) {
    const ssize_t got = ::pread(descriptor_, to, count, static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) fail_reading(path_, errno);
    if (got == 0)
      throw Error(path_.string() + " is cut short: it ends at byte " + std::to_string(offset) + " where " + std::to_string(count) +
                      " more are needed; copy or save it again",
                  {.file = path_.string(), .place = "byte " + std::to_string(offset)});
    to += got;
    offset += static_cast<std::uint64_t>(got);
    count -= static_cast<std::size_t>(got);
  }
}

// ---- writing one file

AtomicFile::AtomicFile(fs::path file) : path_(std::move(file)) {
  parts::check_name(path_);
  parts::remove_dead_files(parts::folder_of(path_), path_.filename().string());
  parts::FilePart part = parts::make_file(path_);
  temporary_ = std::move(part.path);
  descriptor_ = part.descriptor;
  lock_ = ::fcntl(descriptor_, F_DUPFD_CLOEXEC, 0);
}

AtomicFile::AtomicFile(fs::path file, fs::path temporary) : path_(std::move(file)) {
  parts::check_name(path_);
  descriptor_ = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (descriptor_ < 0) parts::fail_writing(path_, errno);
  temporary_ = std::move(temporary);
  hash_.emplace();
}

AtomicFile::~AtomicFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
  if (lock_ >= 0) ::close(lock_);
}

void AtomicFile::fail(int code) const { parts::fail_writing(path_, code); }

void AtomicFile::put(const char* data, std::size_t size) {
  while (size > 0) {
    const ssize_t count = ::write(descriptor_, data, std::min(size, std::size_t{1} << 30));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) fail(errno);
    data += count;
    size -= static_cast<std::size_t>(count);
  }
}

void AtomicFile::flush() {
  put(buffer_.data(), buffer_.size());
  buffer_.clear();
}

void AtomicFile::write(const void* data, std::size_t size) {
  RECLAB_DEMAND(descriptor_ >= 0);
  written_ += size;
  if (hash_) hash_->update(data, size);
  if (buffer_.size() + size > buffer_size) flush();
  if (size >= buffer_size)
    put(static_cast<const char*>(data), size);
  else
    buffer_.append(static_cast<const char*>(data), size);
}

void AtomicFile::finish() {
  if (descriptor_ < 0) return;
  flush();
  // EINVAL and ENOTSUP: the file system has nothing to flush to.
  if (::fsync(descriptor_) != 0 && errno != EINVAL && errno != ENOTSUP) fail(errno);
  const int descriptor = descriptor_;
  descriptor_ = -1;
  if (::close(descriptor) != 0 && errno != EINTR) fail(errno);
}

void AtomicFile::commit() {
  finish();
  if (::rename(temporary_.c_str(), path_.c_str()) != 0) fail(errno);
  temporary_.clear();
  parts::sync_folder(parts::folder_of(path_));
}

void write_file(const fs::path& file, std::string_view bytes) {
  AtomicFile out(file);
  out.write(bytes);
  out.commit();
}

}  // namespace reclab
