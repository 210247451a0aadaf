// SPDX-License-Identifier: GPL-3.0-or-later
// The state of the lab as a value: what a hand changes is taken back and made again, all of it, in any order.
#include <QAbstractItemView>
#include <QUndoStack>
#include <QWindow>
#include <cstring>

#include "gui/views/inspector_view.h"
#include "lab_test.h"

using namespace reclab;
using test::patience;

namespace {
int changes = 150, states = 6;
}

class TestLab : public test::LabTest {
  Q_OBJECT

 private slots:
  void init() { test::forgetAll(); }
  void cleanup() { close(); }

  void aBoxOfAPanelIsTakenBack() {
    open();
    const auto boxes = boxesInSight();
    QVERIFY(!boxes.empty());
    QComboBox* box = boxes.front();
    const QString before = box->currentText();
    const int steps = window_->undoStack()->count();
    step(box, box->currentIndex() == 0);
    QTRY_COMPARE(window_->undoStack()->count(), steps + 1);
    QVERIFY2(window_->undoStack()->undoText().startsWith("view of "), qPrintable(window_->undoStack()->undoText()));
    const QString after = box->currentText();
    QVERIFY(after != before);
    window_->undoStack()->undo();
    QCOMPARE(box->currentText(), before);
    window_->undoStack()->redo();
    QCOMPARE(box->currentText(), after);
  }

  void aLayoutIsTakenBack() {
    open();
    const LabState first = window_->lab()->state();
    step(layouts(), true);
    QTRY_COMPARE(window_->undoStack()->undoText(), QString("arrangement"));
    const LabState second = window_->lab()->state();
    QVERIFY(!(first == second));
    window_->undoStack()->undo();
    QApplication::processEvents();
    QCOMPARE(difference(window_->lab()->state(), first), QString());
    window_->undoStack()->redo();
    QApplication::processEvents();
    QCOMPARE(difference(window_->lab()->state(), second), QString());
  }

  /// By hand in the list that the box opens: a letter, and Return.
  void aLayoutChosenInItsListIsTakenBack() {
    open();
    QComboBox* box = layouts();
    const QString before = box->currentText();
    QTest::mouseClick(box, Qt::LeftButton);
    QTRY_VERIFY(box->view()->isVisible());
    QWindow* list = box->view()->window()->windowHandle();
    QTest::keyClick(list, Qt::Key_Down);
    QApplication::processEvents();
    QTest::keyClick(list, Qt::Key_Return);
    QTRY_VERIFY(box->currentText() != before);
    QTRY_COMPARE(window_->undoStack()->undoText(), QString("arrangement"));
    window_->undoStack()->undo();
    QCOMPARE(box->currentText(), before);
  }

  void aForgottenTrainingComesBackWhateverIsLookedAt() {
    open();
    trainFor(10);
    session().lookAtStep(session().learning()->current, 5, false);
    Setup other = session().setup();
    other.preset = "elman";
    other.form = "auto";
    window_->lab()->change("model", [&] { session().apply(other, false); });
    rest();
    const std::size_t trainings = session().learning()->trainings.size();
    for (QToolButton* button : window_->findChildren<QToolButton*>())
      if (button->toolTip().startsWith("Forget this training")) button->click();
    QVERIFY(session().learning()->trainings.size() < trainings);
    window_->undoStack()->undo();
    QCOMPARE(session().learning()->trainings.size(), trainings);
    rest();
  }

  void aForkIsTakenBack() {
    open();
    trainFor(20);
    session().lookAtStep(session().learning()->current, 10, false);
    const std::uint64_t trained = session().learning()->current;
    window_->action("fork")->trigger();
    const std::uint64_t fork = session().learning()->current;
    QVERIFY(fork != trained && session().learning()->find(fork)->waits);
    window_->undoStack()->undo();
    QCOMPARE(session().learning()->current, trained);
    QVERIFY(session().learning()->find(fork) == nullptr);
    window_->undoStack()->redo();
    QCOMPARE(session().learning()->current, fork);
    // One that has learned since is left, and not lost.
    begin();
    QTRY_VERIFY_WITH_TIMEOUT(session().learning()->find(fork)->done >= 15, patience);
    pause();
    const std::int64_t learned = session().learning()->find(fork)->done;
    while (session().learning()->current == fork && window_->undoStack()->canUndo()) window_->undoStack()->undo();
    QCOMPARE(session().learning()->current, trained);
    QCOMPARE(session().learning()->find(fork)->done, learned);
    rest();
    while (window_->undoStack()->canRedo()) window_->undoStack()->redo();
    QCOMPARE(session().learning()->current, fork);
    QCOMPARE(session().learning()->find(fork)->done, learned);
    rest();
  }

  /// The state is written, the window closed, another one opened: equal, whatever was changed.
  void whatIsWrittenIsThereAgain() {
    open();
    trainFor(30);
    rest();
    std::mt19937 random(11);
    QStringList done;
    for (int i = 0; i < states; ++i) {
      done.clear();
      for (std::size_t more = 1 + random() % 6; more > 0; --more) {
        changeAtRandom(random, done);
        QApplication::processEvents();
      }
      rest();
      const QJsonObject before = written();
      again();
      const QString differs = firstDifference(before, written());
      QVERIFY2(differs.isEmpty(), qPrintable(QStringLiteral("state %1 after %2: %3").arg(i).arg(done.join(' '), differs)));
    }
  }

  /// Panels and the options of training are as they were; what was compared is not.
  void aStartWithAnotherModelHasTheViewAlone() {
    open();
    window_->action("pin")->trigger();
    window_->action("sideBySide")->trigger();
    rest();
    TrainingChoice choice = bar()->settings()->choice();
    choice.options.batch = 12;
    bar()->settings()->setChoice(choice);
    close();
    Options other;
    other.model = "elman";
    other.given["--task"] = "noise";
    other.given["--length"] = "40";
    WindowTest::open(other);
    QVERIFY(!window_->action("sideBySide")->isChecked() && window_->pins()->pins().empty());
    QCOMPARE(bar()->settings()->choice().options.batch, std::int64_t{12});
    // A file of another version is none.
    close();
    QJsonObject lab = test::keptLab();
    lab["version"] = 2;
    test::keepLab(lab);
    again();
    QCOMPARE(session().setup().preset, std::string("lstm"));
    QVERIFY(QFile::exists(LastSession::file() + ".2"));
  }

  /// All that changes at random come to is taken back, and made again: the same state at both ends.
  void whateverIsChangedIsTakenBack() {
    open();
    trainFor(30);
    rest();
    std::mt19937 random(7);
    QStringList done;
    const LabState first = window_->lab()->state();
    const int from = window_->undoStack()->count();
    for (int i = 0; i < changes; ++i) {
      changeAtRandom(random, done);
      if (i % 10 == 9) rest();
      QApplication::processEvents();
    }
    rest();
    QApplication::processEvents();
    window_->lab()->settle();
    const LabState last = window_->lab()->state();
    const int steps = window_->undoStack()->count() - from;
    QVERIFY2(steps > changes / 3, qPrintable(QString::number(steps)));
    for (int i = 0; i < steps; ++i) {
      window_->undoStack()->undo();
      if (i % 10 == 9) rest();
    }
    rest();
    QApplication::processEvents();
    QCOMPARE(difference(window_->lab()->state(), first), QString());
    for (int i = 0; i < steps; ++i) {
      window_->undoStack()->redo();
      if (i % 10 == 9) rest();
    }
    rest();
    QApplication::processEvents();
    QCOMPARE(difference(window_->lab()->state(), last), QString());
  }
};

int main(int argc, char** argv) {
  std::vector<char*> rest;
  for (int i = 0; i < argc; ++i)
    if (std::strcmp(argv[i], "--thorough") == 0) {
      changes = 10'000;
      states = 200;
      qputenv("QTEST_FUNCTION_TIMEOUT", "7200000");  // ms; five minutes unless told
    } else {
      rest.push_back(argv[i]);
    }
  return test::runWindowTest<TestLab>(static_cast<int>(rest.size()), rest.data(), "lab-test");
}

#include "test_lab.moc"
