// SPDX-License-Identifier: GPL-3.0-or-later
#include "test.h"

#include <cstdio>

namespace reclab::test {
/// What ctest looks for, to show a program of which nothing ran as skipped.
static constexpr const char* all_skipped = "all cases skipped";
std::vector<Case>& cases() {
  static std::vector<Case> all;
  return all;
}
}  // namespace reclab::test

#ifdef RECLAB_WITH_QT_TEST

#include <QtTest>

class EngineTest : public QObject {
  Q_OBJECT
 private:
  int ran = 0, skipped = 0;
 private slots:
  void cleanupTestCase() {
    if (skipped > 0 && skipped == ran) std::printf("%s\n", reclab::test::all_skipped);
    std::fflush(stdout);
  }
  void run_data() {
    QTest::addColumn<int>("index");
    int index = 0;
    for (const auto& test : reclab::test::cases()) QTest::newRow(test.name.c_str()) << index++;
  }
  void run() {
    QFETCH(int, index);
    ++ran;
    try {
      reclab::test::cases()[static_cast<std::size_t>(index)].body();
    } catch (const reclab::test::Skip& skip) {
      ++skipped;
      const std::string reason = std::string("skipped: ") + skip.what();
      QSKIP(reason.c_str());
    } catch (const std::exception& error) {
      QFAIL(error.what());
    }
  }
};

QTEST_APPLESS_MAIN(EngineTest)
#include "test_main.moc"

#else

/// With an argument, only the cases whose name contains it.
int main(int argc, char** argv) {
  int passed = 0, failed = 0, skipped = 0;
  for (const auto& test : reclab::test::cases()) {
    if (argc > 1 && test.name.find(argv[1]) == std::string::npos) continue;
    try {
      test.body();
      ++passed;
      std::printf("PASS   : %s\n", test.name.c_str());
    } catch (const reclab::test::Skip& skip) {
      ++skipped;
      std::printf("SKIP   : %s: skipped: %s\n", test.name.c_str(), skip.what());
    } catch (const std::exception& error) {
      ++failed;
      std::printf("FAIL!  : %s: %s\n", test.name.c_str(), error.what());
    }
  }
  std::printf("%d passed, %d failed, %d skipped\n", passed, failed, skipped);
  if (skipped > 0 && passed + failed == 0) std::printf("%s\n", reclab::test::all_skipped);
  return failed > 99 ? 99 : failed;
}

#endif
