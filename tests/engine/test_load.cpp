// SPDX-License-Identifier: GPL-3.0-or-later
// The limits of tests that ask how soon something ends (support/load.h).
#include "load.h"

#include <atomic>
#include <chrono>
#include <filesystem>
#include <thread>
#include <vector>

#include "test.h"

using namespace reclab;

TEST_CASE("what sleeps is late, and its limit is not that of a loaded machine") {
  test::Load load;
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  const double took = load.end();
  CHECK(took >= 1.1);
  // However loaded the machine is: at most ten times as long.
  CHECK_SAYS(took > load.allowed(0.1), load.text(0.1));
}

TEST_CASE("where the processors are shared, a limit is as much longer as each gets less of them") {
  const unsigned processors = std::max(1u, std::thread::hardware_concurrency());
  std::atomic<bool> ending{false};
  std::vector<std::jthread> others;
  for (unsigned i = 0; i < 4 * processors; ++i)
    others.emplace_back([&] {
      while (!ending) {
      }
    });
  test::Load load;
  const double waited = test::kept_waiting();
  const auto begin = test::Load::Clock::now();
  while (test::Load::Clock::now() - begin < std::chrono::seconds(2)) {
  }
  load.end();
  ending = true;
  // This thread is one of them.
  if (std::filesystem::exists("/proc/thread-self/schedstat")) CHECK(test::kept_waiting() - waited > 1.0);
  // Each of 4 P + 2 threads gets less than a quarter of a processor, or less where other programs run.
  CHECK_SAYS(load.allowed(1.0) > 2.5, load.text(1.0));
  CHECK(load.allowed(1.0) <= test::Load::most);
}

TEST_CASE("a thread that sleeps is not kept waiting for a processor") {
  const double waited = test::kept_waiting();
  std::this_thread::sleep_for(std::chrono::milliseconds(1100));
  CHECK(test::kept_waiting() - waited < 1.0);
}

TEST_CASE("a limit is never shorter than it is where nothing else runs") {
  test::Load load;
  CHECK(load.end() >= 0.0);
  CHECK(load.allowed(0.1) >= 0.1);
}
