// SPDX-License-Identifier: GPL-3.0-or-later
#include "test.h"

#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <string_view>

namespace reclab::test {
std::vector<Case>& cases() {
  static std::vector<Case> all;
  return all;
}
bool& thorough() {
  static bool whole = false;
  return whole;
}
}  // namespace reclab::test

namespace {

/// The text by which ctest shows a program that ran no case as skipped.
constexpr const char* all_skipped = "all cases skipped";

/// Processor time of all threads so far.
double processor_seconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) { return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec); };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

}  // namespace

/// [--thorough] [--family NAME | --others NAME...] [TEXT]: the cases of a family of models, or those of no family that is named; of them
/// the cases whose name contains the text. With --thorough the sweeps take all their lengths and settings for every model.
int main(int argc, char** argv) {
  using namespace reclab::test;
  std::vector<std::string> others;
  std::string family, text;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (argument == "--thorough")
      thorough() = true;
    else if (argument == "--family" && i + 1 < argc)
      family = argv[++i];
    else if (argument == "--others")
      while (i + 1 < argc) others.emplace_back(argv[++i]);
    else
      text = argument;
  }
  int passed = 0, failed = 0, skipped = 0;
  for (const auto& test : cases()) {
    if (test.name.find(text) == std::string::npos || (!family.empty() && test.family != family) ||
        std::ranges::find(others, test.family) != others.end())
      continue;
    const double before = processor_seconds();
    const auto took = [&] { return processor_seconds() - before; };
    try {
      test.body();
      ++passed;
      std::printf("PASS   : %s (%.2f s)\n", test.name.c_str(), took());
    } catch (const Skip& skip) {
      ++skipped;
      std::printf("SKIP   : %s: skipped: %s\n", test.name.c_str(), skip.what());
    } catch (const std::exception& error) {
      ++failed;
      std::printf("FAIL!  : %s: %s\n", test.name.c_str(), error.what());
    }
    std::fflush(stdout);
  }
  std::printf("%d passed, %d failed, %d skipped; %.1f s of processor time\n", passed, failed, skipped, processor_seconds());
  if (passed + failed + skipped == 0 && others.empty()) {
    std::printf("FAIL!  : no case is of that name\n");
    return 1;
  }
  if (skipped > 0 && passed + failed == 0) std::printf("%s\n", all_skipped);
  return std::min(failed, 99);
}
