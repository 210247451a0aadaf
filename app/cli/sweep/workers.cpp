// SPDX-License-Identifier: GPL-3.0-or-later
#include "sweep/workers.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <iostream>
#include <limits>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

#include "parameters/typed.h"
#include "sweep/sweep.h"
#include "text.h"

extern char** environ;

namespace reclab::cli {
namespace {

class CellWorker {
 public:
  CellWorker(const std::string& folder, int threads) {
    std::array<int, 2> to{}, from{};
    if (pipe2(to.data(), O_CLOEXEC) != 0) throw std::system_error(errno, std::generic_category(), "pipe");
    to_ = to[1];
    if (pipe2(from.data(), O_CLOEXEC) != 0) {
      close(to[0]);
      close(to_);
      throw std::system_error(errno, std::generic_category(), "pipe");
    }
    from_ = from[0];
    posix_spawn_file_actions_t actions{};
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, to[0], STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, from[1], STDOUT_FILENO);
    std::vector<std::string> words{"reclab", "sweep", "cell", folder, "-", "--threads", std::to_string(threads)};
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);
    const int code = posix_spawn(&pid_, "/proc/self/exe", &actions, nullptr, argv.data(), environ);
    posix_spawn_file_actions_destroy(&actions);
    close(to[0]);
    close(from[1]);
    if (code == 0) return;
    close(to_);
    close(from_);
    throw std::system_error(code, std::generic_category(), "a process");
  }
  ~CellWorker() {
    close(to_);
    close(from_);
    if (pid_ > 0) waitpid(pid_, nullptr, 0);
  }
  CellWorker(const CellWorker&) = delete;
  CellWorker& operator=(const CellWorker&) = delete;

  /// False where it has ended.
  bool give(std::int64_t cell) {
    const std::string line = std::to_string(cell) + "\n";
    if (write(to_, line.data(), line.size()) != static_cast<ssize_t>(line.size())) return false;
    cell_ = cell;
    return true;
  }
  void stop() const { kill(pid_, SIGTERM); }
  int descriptor() const { return from_; }
  const std::optional<std::int64_t>& cell() const { return cell_; }
  void finished() { cell_.reset(); }
  /// Reads once; false where it has ended. Whole lines go to `take`.
  template <class Take>
  bool read_lines(const Take& take) {
    std::array<char, 4096> piece{};
    const ssize_t count = read(from_, piece.data(), piece.size());
    if (count < 0 && errno == EINTR) return true;
    if (count <= 0) return false;
    text_.append(piece.data(), static_cast<std::size_t>(count));
    for (std::size_t end = 0; (end = text_.find('\n')) != std::string::npos; text_.erase(0, end + 1)) take(text_.substr(0, end));
    return true;
  }
  /// "by signal 9", of one that has ended.
  std::string end() {
    int status = 0;
    waitpid(std::exchange(pid_, -1), &status, 0);
    return WIFSIGNALED(status) ? "by signal " + std::to_string(WTERMSIG(status)) : "with status " + std::to_string(WEXITSTATUS(status));
  }

 private:
  pid_t pid_ = -1;
  int to_ = -1, from_ = -1;
  std::optional<std::int64_t> cell_;
  std::string text_;
};

/// A line at the bottom of a terminal.
class SweepProgress {
 public:
  explicit SweepProgress(std::int64_t cells) : cells_(cells), terminal_(isatty(STDERR_FILENO) == 1), begin_(Clock::now()) {}
  void tell(const RunCounts& counts) {
    if (!terminal_ || Clock::now() - last_ < std::chrono::milliseconds(100)) return;
    last_ = Clock::now();
    const std::int64_t failed = counts.mistakes + counts.faults, ended = counts.before + counts.done + failed + counts.taken;
    const double seconds = std::chrono::duration<double>(last_ - begin_).count();
    std::string text = std::to_string(ended) + " of " + counted(cells_, "cell");
    if (failed > 0) text += ", " + std::to_string(failed) + " failed";
    if (counts.done > 0)
      text += ", " + seconds_text(static_cast<double>(cells_ - ended) * seconds / static_cast<double>(counts.done)) + " left";
    std::fprintf(stderr, "\r\033[K%s", text.c_str());
    std::fflush(stderr);
  }
  void clear() const {
    if (terminal_) std::fputs("\r\033[K", stderr);
  }

 private:
  using Clock = std::chrono::steady_clock;
  std::int64_t cells_;
  bool terminal_;
  Clock::time_point begin_, last_;
};

}  // namespace

RunCounts run_cells(const SweepFolder& folder, int jobs, int threads, std::stop_token stop) {
  RunCounts counts;
  SweepProgress progress(folder.size());
  std::vector<std::unique_ptr<CellWorker>> workers;
  CellReader reader(folder);
  const auto next = [&]() -> std::optional<std::int64_t> {
    while (const auto cell = reader.next()) {
      if (!folder.result(*cell)) return cell->index;
      ++counts.before;
      progress.tell(counts);
    }
    return {};
  };
  const auto complain = [&](std::int64_t cell, const std::string& why) {
    progress.clear();
    std::cerr << "reclab: cell " << cell << ": " << one_line(why) << std::endl;
  };
  const auto take = [&](CellWorker& worker, const std::string& line) {
    std::istringstream words(line);
    std::int64_t cell = 0;
    int status = 1;
    std::string why;
    words >> cell >> status;
    std::getline(words >> std::ws, why);
    worker.finished();
    counts.done += status == 0;
    counts.mistakes += status == 2;
    counts.faults += status == 1;
    if (status == try_again_status) ++(stop.stop_requested() ? counts.interrupted : counts.taken);
    if (status != 0 && !stop.stop_requested()) complain(cell, why);
  };

  std::optional<std::int64_t> waiting = stop.stop_requested() ? std::nullopt : next();
  for (bool told = false;;) {
    while (waiting && !stop.stop_requested()) {
      auto idle = std::ranges::find_if(workers, [](const auto& one) { return !one->cell(); });
      if (idle == workers.end()) {
        if (static_cast<int>(workers.size()) == jobs) break;
        workers.push_back(std::make_unique<CellWorker>(folder.path().string(), threads));
        idle = std::prev(workers.end());
      }
      if ((*idle)->give(*waiting))
        waiting = next();
      else
        workers.erase(idle);
    }
    if (std::ranges::none_of(workers, [](const auto& one) { return one->cell().has_value(); })) break;
    if (stop.stop_requested() && !std::exchange(told, true))
      for (const auto& worker : workers) worker->stop();
    std::vector<pollfd> ends;
    for (const auto& worker : workers) ends.push_back({worker->descriptor(), POLLIN, 0});
    poll(ends.data(), ends.size(), 100);
    for (std::size_t i = ends.size(); i-- > 0;) {
      CellWorker& worker = *workers[i];
      if (ends[i].revents == 0 || worker.read_lines([&](const std::string& line) { take(worker, line); })) continue;
      if (worker.cell()) {
        if (stop.stop_requested())
          ++counts.interrupted;
        else {
          ++counts.faults;
          complain(*worker.cell(), "its process was ended " + worker.end() + "; run it again.");
        }
      }
      workers.erase(workers.begin() + static_cast<std::ptrdiff_t>(i));
    }
    progress.tell(counts);
  }
  progress.clear();
  return counts;
}

void serve_cells(const SweepFolder& folder, const PresetLibrary& presets, std::stop_token stop) {
  prctl(PR_SET_PDEATHSIG, SIGTERM);  // when the one that hands out cells is killed, this one keeps what it has
  std::optional<CellReader> reader;  // numbers grow
  for (std::string line; !stop.stop_requested() && std::getline(std::cin, line);) {
    const std::int64_t index = integer("the cell", line, 0, std::numeric_limits<std::int64_t>::max()).value_or(0);
    folder.check(index);
    if (!reader || reader->index() > index) reader.emplace(folder);
    while (reader->index() < index) reader->skip();
    const CellOutcome outcome = compute_cell(folder, *reader->next(), presets, stop);
    std::cout << index << ' ' << status_of(outcome.end) << ' ' << one_line(outcome.sentence) << std::endl;
  }
}

}  // namespace reclab::cli
