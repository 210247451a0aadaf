// SPDX-License-Identifier: GPL-3.0-or-later
// Results of a test on one processor, and hence with one thread, or with a number of threads: its program runs itself, since the threads of
// a process are as many as were chosen, or as there were processors for it, when it first computed. Beside the comparison stands a case
// that writes, which is skipped in all other runs.
#pragma once

#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

#include "array/cpu/processor/threads.h"
#include "scratch.h"
#include "test.h"

namespace reclab::test {

constexpr const char *written_to = "RECLAB_WRITTEN_TO", *threads_of_test = "RECLAB_THREADS_OF_TEST";

/// The numbers that the case of this name writes, with so many threads. One: on one processor.
inline std::vector<double> on_threads(int threads, const std::string& case_name) {
  const Scratch scratch;
  const std::string file = (scratch / "numbers").string();
  const pid_t child = fork();
  if (child == 0) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(static_cast<unsigned>(sched_getcpu()), &one);
    if (threads == 1 && sched_setaffinity(0, sizeof one, &one) != 0) _exit(3);
    if (threads > 1) setenv(threads_of_test, std::to_string(threads).c_str(), 1);
    setenv(written_to, file.c_str(), 1);
    execl("/proc/self/exe", "in a process of its own", case_name.c_str(), static_cast<char*>(nullptr));
    _exit(4);
  }
  int status = 0;
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  CHECK_SAYS(WIFEXITED(status) && WEXITSTATUS(status) == 0, std::to_string(status));
  std::ifstream stream(file, std::ios::binary);
  std::int64_t computed = 0;
  stream.read(reinterpret_cast<char*>(&computed), sizeof computed);
  CHECK_EQUAL(computed, threads);
  std::vector<double> numbers;
  for (double x; stream.read(reinterpret_cast<char*>(&x), sizeof x);) numbers.push_back(x);
  CHECK(!numbers.empty());
  return numbers;
}
inline std::vector<double> on_one_processor(const std::string& case_name) { return on_threads(1, case_name); }

/// The body of the case that writes.
template <class Numbers>
void write_numbers(const Numbers& numbers) {
  const char* file = std::getenv(written_to);
  if (!file) throw Skip("only for the case before, in a process of its own");
  if (const char* threads = std::getenv(threads_of_test)) cpu::use_threads(std::atoi(threads));
  const std::vector<double> all = numbers();
  std::ofstream stream(file, std::ios::binary);
  const std::int64_t threads = cpu::thread_count();
  stream.write(reinterpret_cast<const char*>(&threads), sizeof threads);
  stream.write(reinterpret_cast<const char*>(all.data()), static_cast<std::streamsize>(all.size() * sizeof(double)));
}

}  // namespace reclab::test
