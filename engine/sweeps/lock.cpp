// SPDX-License-Identifier: GPL-3.0-or-later
#include "sweeps/lock.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>

#include "array/error.h"
#include "files/files.h"
#include "files/parts.h"

namespace reclab {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

std::string host_name() {
  std::string name(256, '\0');
  if (gethostname(name.data(), name.size() - 1) != 0) return "?";
  return name.c_str();
}

/// The time at which a process began, in the system's ticks, so that a number that was given again is told from it; "" where there is no
/// such process.
std::string begin_of(std::int64_t pid) {
  std::string stat;
  try {
    stat = read_file("/proc/" + std::to_string(pid) + "/stat");
  } catch (const Error&) {
    return {};
  }
  std::size_t at = stat.rfind(')');  // the name of the program may have blanks
  for (int field = 2; field < 22 && at != std::string::npos; ++field) at = stat.find(' ', at + 1);
  return at == std::string::npos ? "?" : stat.substr(at + 1, stat.find(' ', at + 1) - at - 1);
}

std::string content() {
  const std::time_t now = std::time(nullptr);
  std::string time(32, '\0');
  std::tm parts{};
  time.resize(std::strftime(time.data(), time.size(), "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &parts)));
  Json json = {{"host", host_name()}, {"pid", getpid()}, {"begin", begin_of(getpid())}, {"time", time}};
  if (const char* job = std::getenv("SLURM_JOB_ID")) json["job"] = job;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

struct LockOwner {
  std::string host;
  std::int64_t pid = 0;
  bool alive = true;
};
/// Nothing where there is no lock.
std::optional<LockOwner> owner_of(const fs::path& file) {
  struct stat status{};
  if (::stat(file.c_str(), &status) != 0) return {};
  LockOwner owner;
  Json json;
  try {
    json = Json::parse(read_file(file), nullptr, false);
  } catch (const Error&) {  // it was given back meanwhile
    return {};
  }
  if (json.is_object()) {
    const Json host = json.value("host", Json());
    owner.host = host.is_string() ? printable(host.get<std::string>()) : "?";
    owner.pid = json.value("pid", Json(0)).is_number_integer() ? json["pid"].get<std::int64_t>() : 0;
  }
  if (owner.pid > 0 && owner.host == printable(host_name()))
    owner.alive = json.value("begin", Json()) == begin_of(owner.pid);
  else
    owner.alive = std::chrono::seconds(std::time(nullptr) - status.st_mtime) < CellLock::stale;
  return owner;
}

}  // namespace

bool CellLock::is_taken(const fs::path& file) {
  const auto owner = owner_of(file);
  return owner && owner->alive;
}

CellLock::CellLock(fs::path file) : file_(std::move(file)) {
  std::error_code code;
  fs::create_directories(file_.parent_path(), code);
  if (code) parts::fail_writing(file_, code.value());
  held_ = take();
  if (!held_) return;
  renewing_ = std::jthread([this](std::stop_token stop) {
    std::unique_lock lock(guard_);
    const auto period = std::chrono::duration_cast<std::chrono::seconds>(stale) / 15;
    while (!stop.stop_requested()) {
      wake_.wait_for(lock, stop, period, [] { return false; });
      utimensat(AT_FDCWD, file_.c_str(), nullptr, 0);
    }
  });
}

bool CellLock::take() {
  // A file that is whole takes the name, or does not where another one has it.
  const parts::FilePart own = parts::make_file(file_);
  struct Gone {
    const parts::FilePart& part;
    ~Gone() {
      ::unlink(part.path.c_str());
      ::close(part.descriptor);
    }
  } const gone{own};
  const std::string text = content();
  if (::write(own.descriptor, text.data(), text.size()) != static_cast<ssize_t>(text.size())) parts::fail_writing(file_, errno);
  for (int attempt = 0; attempt < 3; ++attempt) {
    if (::link(own.path.c_str(), file_.c_str()) == 0) return true;
    if (errno != EEXIST) parts::fail_writing(file_, errno);
    // One at a time takes away what is stale, so that nobody takes away the lock that came after it.
    const parts::Turn turn(file_.parent_path());
    const auto owner = owner_of(file_);
    if (!owner) continue;
    holder_ = "process " + std::to_string(owner->pid) + " on " + owner->host;
    if (owner->alive) return false;
    ::unlink(file_.c_str());
    if (::link(own.path.c_str(), file_.c_str()) == 0) return true;
  }
  return false;
}

CellLock::~CellLock() {
  renewing_ = {};
  if (held_) ::unlink(file_.c_str());
}

}  // namespace reclab
