// SPDX-License-Identifier: GPL-3.0-or-later
#include "test.h"

namespace reclab::test {
std::vector<Case>& cases() {
  static std::vector<Case> all;
  return all;
}
}  // namespace reclab::test

#ifdef RECLAB_WITH_QT_TEST

#include <QtTest>

class EngineTest : public QObject {
  Q_OBJECT
 private slots:
  void run_data() {
    QTest::addColumn<int>("index");
    int index = 0;
    for (const auto& test : reclab::test::cases()) QTest::newRow(test.name.c_str()) << index++;
  }
  void run() {
    QFETCH(int, index);
    try {
      reclab::test::cases()[static_cast<std::size_t>(index)].body();
    } catch (const reclab::test::Skip& skip) {
      QSKIP(skip.what());
    } catch (const std::exception& error) {
      QFAIL(error.what());
    }
  }
};

QTEST_APPLESS_MAIN(EngineTest)
#include "test_main.moc"

#else

#include <cstdio>

int main() {
  int passed = 0, failed = 0, skipped = 0;
  for (const auto& test : reclab::test::cases()) {
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
  return failed > 99 ? 99 : failed;
}

#endif
