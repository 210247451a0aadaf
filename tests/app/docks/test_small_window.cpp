// SPDX-License-Identifier: GPL-3.0-or-later
// A small screen: no arrangement makes the window larger, and what a first look needs keeps its words.
#include <QComboBox>
#include <QToolBar>
#include <QToolButton>

#include "lab_test.h"

using namespace reclab;
using test::patience;

class TestSmallWindow : public test::LabTest {
  Q_OBJECT
 private:
  static constexpr QSize small{1020, 736};
  QToolButton* train() const {
    for (QToolButton* one : window_->findChildren<QToolButton*>())
      if (one->defaultAction() == window_->action("train") && one->parentWidget() == window_->findChild<QToolBar*>("toolbar")) return one;
    return nullptr;
  }
  void pick(int layout) {
    QComboBox* box = layouts();
    while (box->currentIndex() != layout) step(box, box->currentIndex() < layout);
    rest();
    QTest::qWait(50);  // what the layouts asked to do later
  }

 private slots:
  void init() { test::forgetAll(); }
  void cleanup() { close(); }

  void noLayoutMakesItLarger() {
    Options options = onWaves();
    options.layout = "First steps";
    WindowTest::open(options, small);
    rest();
    QCOMPARE(window_->size(), small);
    const int last = layouts()->count() - 1;
    for (const int layout : {0, last, 1, 2, last, 3, 4, 5, 6, last}) {
      pick(layout);
      QVERIFY2(window_->size() == small,
               qPrintable(QString("%1: %2 x %3").arg(layouts()->currentText()).arg(window_->width()).arg(window_->height())));
    }
    // Nor is it larger when it is opened again.
    pick(0);
    again();
    QCOMPARE(window_->size(), small);
  }

  void theFirstLookNamesItsButton() {
    Options options = onWaves();
    options.layout = "First steps";
    WindowTest::open(options, small);
    QCOMPARE(train()->toolButtonStyle(), Qt::ToolButtonTextBesideIcon);
    pick(0);
    QCOMPARE(train()->toolButtonStyle(), Qt::ToolButtonIconOnly);
    again();
    QCOMPARE(train()->toolButtonStyle(), Qt::ToolButtonIconOnly);
    pick(layouts()->count() - 1);
    QCOMPARE(train()->toolButtonStyle(), Qt::ToolButtonTextBesideIcon);
    again();
    QCOMPARE(train()->toolButtonStyle(), Qt::ToolButtonTextBesideIcon);
  }
};

int main(int argc, char** argv) { return test::runWindowTest<TestSmallWindow>(argc, argv, "small-window-test"); }

#include "test_small_window.moc"
