// SPDX-License-Identifier: GPL-3.0-or-later
#include "array/files.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cassert>
#include <cerrno>
#include <cstring>

#include "array/parts.h"

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
  std::string result;
  for (const char c : text) {
    if (result.size() >= most && (static_cast<unsigned char>(c) & 0xc0) != 0x80) return result + "...";  // whole characters of UTF-8
    if (result.size() >= most + 3) return result + "...";
    result += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
  }
  return result;
}

std::string read_file(const fs::path& file, Pipes pipes) {
  struct stat status {};
  const int descriptor = open_for_reading(file, status);
  std::string bytes;
  std::size_t used = 0;
  try {
    if (S_ISFIFO(status.st_mode) && pipes == Pipes::refused) refuse_pipe(file);
    if (S_ISFIFO(status.st_mode)) wait_for_writer(descriptor, file);
    // One byte more than the file has, so that its end is seen without growing.
    bytes.resize(S_ISREG(status.st_mode) ? static_cast<std::size_t>(status.st_size) + 1 : buffer_size);
    for (;;) {
      if (used == bytes.size()) bytes.resize(bytes.size() * 2);
      const ssize_t count = ::read(descriptor, bytes.data() + used, bytes.size() - used);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) fail_reading(file, errno);
      if (count == 0) break;
      used += static_cast<std::size_t>(count);
    }
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

// ---- SHA-256

namespace {
constexpr std::uint32_t round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01, 0x243185be,
    0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa,
    0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967, 0x27b70a85,
    0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85, 0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3,
    0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f,
    0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};
}  // namespace

Sha256::Sha256() : state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}, pending_{} {}

void Sha256::block(const unsigned char* data) {
  std::uint32_t w[64];
  for (int i = 0; i < 16; ++i)
    w[i] = static_cast<std::uint32_t>(data[4 * i]) << 24 | static_cast<std::uint32_t>(data[4 * i + 1]) << 16 |
           static_cast<std::uint32_t>(data[4 * i + 2]) << 8 | data[4 * i + 3];
  for (int i = 16; i < 64; ++i) {
    const std::uint32_t s0 = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ (w[i - 15] >> 3);
    const std::uint32_t s1 = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ (w[i - 2] >> 10);
    w[i] = w[i - 16] + s0 + w[i - 7] + s1;
  }
  auto [a, b, c, d, e, f, g, h] = state_;
  for (int i = 0; i < 64; ++i) {
    const std::uint32_t t1 = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) + ((e & f) ^ (~e & g)) + round_constants[i] + w[i];
    const std::uint32_t t2 = (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
    h = g, g = f, f = e, e = d + t1, d = c, c = b, b = a, a = t1 + t2;
  }
  const std::uint32_t sum[8] = {a, b, c, d, e, f, g, h};
  for (int i = 0; i < 8; ++i) state_[i] += sum[i];
}

void Sha256::update(const void* data, std::size_t size) {
  if (size == 0) return;  // data may be null
  auto bytes = static_cast<const unsigned char*>(data);
  const std::size_t held = length_ % 64;
  length_ += size;
  if (held != 0) {
    const std::size_t taken = std::min(size, 64 - held);
    std::memcpy(pending_ + held, bytes, taken);
    bytes += taken;
    size -= taken;
    if (held + taken < 64) return;
    block(pending_);
  }
  for (; size >= 64; bytes += 64, size -= 64) block(bytes);
  if (size > 0) std::memcpy(pending_, bytes, size);
}

std::string Sha256::hex() {
  const std::uint64_t bits = length_ * 8;
  const unsigned char end = 0x80, zero = 0;
  update(&end, 1);
  while (length_ % 64 != 56) update(&zero, 1);
  unsigned char count[8];
  for (int i = 0; i < 8; ++i) count[i] = static_cast<unsigned char>(bits >> (56 - 8 * i));
  update(count, 8);
  std::string text;
  for (const std::uint32_t word : state_)
    for (int shift = 28; shift >= 0; shift -= 4) text += "0123456789abcdef"[word >> shift & 15];
  return text;
}

std::string sha256_hex(std::string_view bytes) {
  Sha256 hash;
  hash.update(bytes.data(), bytes.size());
  return hash.hex();
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
  struct stat status {};
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
  parts::Part part = parts::make_file(path_);
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
  assert(descriptor_ >= 0);
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
