// SPDX-License-Identifier: GPL-3.0-or-later
// cpu::parallel: every call happens once, whatever came before it and whoever else calls.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <numeric>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "array/cpu/processor/threads.h"
#include "one_processor.h"
#include "test.h"

using namespace reclab;

namespace {

/// Runs a round of n calls and says which of them did not happen once; empty if all did. The counts are read after parallel() has
/// returned, so a call that comes too late is found by the next round that uses the same counts, or by its end.
std::string round_of(std::vector<std::atomic<int>>& counts, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) counts[static_cast<std::size_t>(i)].store(0, std::memory_order_relaxed);
  cpu::parallel(n, [&](std::int64_t i) { counts[static_cast<std::size_t>(i)].fetch_add(1, std::memory_order_relaxed); });
  for (std::int64_t i = 0; i < n; ++i)
    if (const int times = counts[static_cast<std::size_t>(i)].load(std::memory_order_relaxed); times != 1)
      return "call " + std::to_string(i) + " of " + std::to_string(n) + " happened " + std::to_string(times) + " times";
  return {};
}

/// The calls of each round that did not happen once, of rounds of many sizes.
std::vector<double> missed_rounds() {
  std::vector<std::atomic<int>> counts(600);
  std::vector<double> wrong;
  for (int repeat = 0; repeat < 20; ++repeat)
    for (std::int64_t n = 2; n < 600; n += 1 + n / 7) wrong.push_back(round_of(counts, repeat % 2 ? n : 602 - n).empty() ? 0.0 : 1.0);
  return wrong;
}

}  // namespace

TEST_CASE("many more threads than processors: every call happens once") {
  for (const int threads : {5, 64, cpu::most_threads}) {
    const std::vector<double> found = test::on_threads(threads, "writes which rounds were wrong");
    CHECK_SAYS(std::accumulate(found.begin(), found.end(), 0.0) == 0.0, std::to_string(threads));
  }
}

TEST_CASE("writes which rounds were wrong") { test::write_numbers(missed_rounds); }

TEST_CASE("small rounds in quick succession: every call happens once") {
  // A thread that comes late from a round of few parts must take nothing of the next one, which has more.
  std::vector<std::atomic<int>> counts(64);
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(3);
  std::int64_t round = 0;
  while (std::chrono::steady_clock::now() < end)
    for (int i = 0; i < 1000; ++i, ++round) {
      const std::string wrong = round_of(counts, round % 2 ? 32 + round % 7 : 2 + round % 5);
      CHECK_SAYS(wrong.empty(), "round " + std::to_string(round) + ": " + wrong);
    }
}

TEST_CASE("rounds of every size, longer calls among them") {
  std::vector<std::atomic<int>> counts(200);
  for (std::int64_t n = 0; n <= 200; ++n) {
    const std::string wrong = round_of(counts, n);
    CHECK_SAYS(wrong.empty(), wrong);
  }
  std::atomic<std::int64_t> sum{0};
  cpu::parallel(40, [&](std::int64_t i) {
    if (i % 13 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    sum += i;
  });
  CHECK_EQUAL(sum.load(), 40 * 39 / 2);
}

TEST_CASE("a team's members meet after each turn, as many times as there are turns") {
  constexpr int turns = 20000;
  std::vector<std::int64_t> made(static_cast<std::size_t>(cpu::thread_count()), 0);
  std::atomic<int> wrong{0}, members{0};
  cpu::team(cpu::most_threads, [&](cpu::Team& team, int member) {
    ++members;
    for (int turn = 0; turn < turns; ++turn) {
      made[static_cast<std::size_t>(member)] = turn;
      team.meet(member);
      // Plain numbers of the others: what they wrote before the meeting is seen after it, and they write no more until the next one.
      for (int other = 0; other < team.size(); ++other)
        if (made[static_cast<std::size_t>(other)] != turn) ++wrong;
      team.meet(member);
    }
  });
  CHECK_EQUAL(wrong.load(), 0);
  CHECK_EQUAL(members.load(), cpu::thread_count());
}

TEST_CASE("a team of which a member throws ends, and throws that") {
  for (int repeat = 0; repeat < 200; ++repeat)
    for (const int fails : {0, cpu::thread_count() - 1}) {
      std::string said;
      try {
        cpu::team(cpu::most_threads, [&](cpu::Team& team, int member) {
          for (int turn = 0; turn < 50; ++turn) {
            if (turn == repeat % 50 && member == fails) throw std::runtime_error("member " + std::to_string(member));
            team.meet(member);
          }
        });
      } catch (const std::runtime_error& error) {
        said = error.what();
      }
      CHECK_EQUAL(said, "member " + std::to_string(fails));
    }
}

TEST_CASE("a team inside a call has one member where the threads are taken") {
  std::atomic<int> calls{0}, others{0};
  cpu::parallel(8, [&](std::int64_t) {
    cpu::team(4, [&](cpu::Team& team, int member) {
      team.meet(member);
      ++calls;
      if (cpu::thread_count() > 1 && team.size() != 1) ++others;
    });
  });
  CHECK_EQUAL(calls.load(), 8);
  CHECK_EQUAL(others.load(), 0);
}

TEST_CASE("a call inside a call runs on its own, and happens once") {
  std::vector<std::atomic<int>> counts(12 * 20);
  for (int repeat = 0; repeat < 200; ++repeat) {
    for (auto& count : counts) count = 0;
    cpu::parallel(12, [&](std::int64_t i) { cpu::parallel(20, [&](std::int64_t j) { ++counts[static_cast<std::size_t>(i * 20 + j)]; }); });
    for (std::size_t i = 0; i < counts.size(); ++i) CHECK_EQUAL(counts[i].load(), 1);
  }
}

TEST_CASE("an exception comes out after all calls that began have ended, and the next round is whole") {
  std::vector<std::atomic<int>> counts(64);
  for (int repeat = 0; repeat < 500; ++repeat) {
    std::atomic<int> inside{0};
    std::string said;
    try {
      cpu::parallel(32, [&](std::int64_t i) {
        ++inside;
        const struct Leaving {
          std::atomic<int>& inside;
          ~Leaving() { --inside; }
        } leaving{inside};
        if (i % 5 == 3) throw std::runtime_error("call " + std::to_string(i % 5));
      });
    } catch (const std::runtime_error& error) {
      said = error.what();
    }
    CHECK_EQUAL(said, "call 3");
    CHECK_EQUAL(inside.load(), 0);
    const std::string wrong = round_of(counts, 2 + repeat % 40);
    CHECK_SAYS(wrong.empty(), wrong);
  }
}

TEST_CASE("more threads than processors: each caller's calls happen once") {
  std::atomic<int> wrong_rounds{0};
  {
    std::vector<std::jthread> callers;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(2);
    for (int caller = 0; caller < 2 * cpu::thread_count() + 2; ++caller)
      callers.emplace_back([&, caller] {
        std::vector<std::atomic<int>> counts(64);
        for (std::int64_t round = caller; std::chrono::steady_clock::now() < end; ++round)
          if (!round_of(counts, round % 2 ? 33 + round % 7 : 2 + round % 5).empty()) ++wrong_rounds;
      });
  }
  CHECK_EQUAL(wrong_rounds.load(), 0);
}
