// SPDX-License-Identifier: GPL-3.0-or-later
// A child process whose output is read: what the tests of reclab are written with.
#pragma once

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace reclab::test {

class Process {
 public:
  struct Options {
    std::vector<std::pair<std::string, std::string>> environment;
    bool terminal = false;            ///< standard error is a pseudo-terminal, as for a person
    bool no_output = false;           ///< standard output is closed
    std::string input = "/dev/null";  ///< the file that is standard input
    std::size_t largest_file = 0;     ///< bytes; a write beyond fails as on a full disk; 0: no limit
  };

  Process(const std::string& program, const std::vector<std::string>& arguments, const Options& options) {
    std::array<int, 2> out{}, err{};
    if (pipe2(out.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe");
    if (options.terminal) {
      err[0] = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
      if (err[0] < 0 || grantpt(err[0]) != 0 || unlockpt(err[0]) != 0) throw std::runtime_error("pseudo-terminal");
      err[1] = open(ptsname(err[0]), O_RDWR | O_NOCTTY | O_CLOEXEC);
    } else if (pipe2(err.data(), O_CLOEXEC) != 0) {
      throw std::runtime_error("pipe");
    }
    std::vector<std::string> words{program};
    words.insert(words.end(), arguments.begin(), arguments.end());
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);

    // A signal that comes before the program does is not for the handlers of the test.
    sigset_t all{}, before{};
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pid_ = fork();
    if (pid_ != 0) pthread_sigmask(SIG_SETMASK, &before, nullptr);
    if (pid_ < 0) throw std::runtime_error("fork");
    if (pid_ == 0) {
      const int none = open(options.input.c_str(), O_RDONLY);
      dup2(none, STDIN_FILENO);
      dup2(out[1], STDOUT_FILENO);
      dup2(err[1], STDERR_FILENO);
      if (options.no_output) close(STDOUT_FILENO);
      for (int number = 1; number < NSIG; ++number) signal(number, SIG_DFL);  // a test runner may have been started under nohup, too
      for (const auto& [name, value] : options.environment) setenv(name.c_str(), value.c_str(), 1);
      if (options.largest_file > 0) {
        const rlimit limit{options.largest_file, options.largest_file};
        setrlimit(RLIMIT_FSIZE, &limit);
      }
      sigset_t none_blocked{};
      sigemptyset(&none_blocked);
      sigprocmask(SIG_SETMASK, &none_blocked, nullptr);
      execv(argv[0], argv.data());
      _exit(127);
    }
    close(out[1]);
    close(err[1]);
    out_ = out[0];
    err_ = err[0];
  }
  ~Process() {
    if (pid_ > 0 && !waited_) {
      ::kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
    if (out_ >= 0) close(out_);
    close(err_);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  /// Reads until both ends are closed, then the exit status (128 + signal for one that was killed).
  int wait() {
    while (read_some()) {
    }
    int status = 0;
    rusage used{};
    wait4(pid_, &status, 0, &used);
    peak_bytes = std::int64_t{used.ru_maxrss} * 1024;
    waited_ = true;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  /// Reads until standard error holds the text; false when the process ends before.
  bool wait_for_error_text(const std::string& text) {
    while (error.find(text) == std::string::npos)
      if (!read_some()) return false;
    return true;
  }
  void send(int signal) const { ::kill(pid_, signal); }
  /// Closes its standard output, as a reader that has seen enough.
  void stop_reading() {
    close(out_);
    out_ = -1;
    out_open_ = false;
  }

  std::string output, error;
  std::int64_t peak_bytes = 0;  ///< of its memory, after wait()

 private:
  bool read_some() {
    std::array<pollfd, 2> ends{pollfd{out_open_ ? out_ : -1, POLLIN, 0}, pollfd{err_open_ ? err_ : -1, POLLIN, 0}};
    if (!out_open_ && !err_open_) return false;
    if (poll(ends.data(), ends.size(), -1) < 0) return true;
    std::array<char, 65536> buffer{};
    const auto take = [&](const pollfd& end, std::string& text, bool& is_open) {
      if (end.revents == 0) return;
      const ssize_t count = read(end.fd, buffer.data(), buffer.size());
      if (count > 0) text.append(buffer.data(), static_cast<std::size_t>(count));
      if (count <= 0) is_open = false;  // a pseudo-terminal says EIO at its end
    };
    take(ends[0], output, out_open_);
    take(ends[1], error, err_open_);
    return true;
  }

  pid_t pid_ = -1;
  int out_ = -1, err_ = -1;
  bool out_open_ = true, err_open_ = true, waited_ = false;
};

}  // namespace reclab::test
