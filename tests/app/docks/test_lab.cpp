// SPDX-License-Identifier: GPL-3.0-or-later
// The state of the lab as a value: what a hand changes is taken back and made again, all of it, in any order.
#include <QAbstractItemView>
#include <QApplication>
#include <QComboBox>
#include <QJsonArray>
#include <QJsonDocument>
#include <QUndoStack>
#include <QWindow>
#include <array>
#include <cstring>
#include <random>

#include "gui/docks/panel_area.h"
#include "gui/frame/lab.h"
#include "gui/session/pins.h"
#include "gui/views/inspector_view.h"
#include "training_test.h"

using namespace reclab;
using test::patience;

namespace {
int changes = 150, states = 6;
}

class TestLab : public test::TrainingTest {
  Q_OBJECT

  /// In words, what two states differ in first.
  static QString difference(const LabState& a, const LabState& b) {
    if (a.setup != b.setup) return a.setup.sameRun(b.setup) ? "setup of other models" : "setup";
    if (a.follows != b.follows) return "follows";
    if (a.pins != b.pins) return QString("pins: %1 and %2").arg(a.pins.size()).arg(b.pins.size());
    for (auto one = a.panels.begin(); one != a.panels.end(); ++one)
      if (b.panels.value(one.key()) != one.value())
        for (auto key = one->begin(); key != one->end(); ++key)
          if (b.panels[one.key()].value(key.key()) != key.value())
            return one.key() + ", " + key.key() + ": " + key->toString() + " and " + b.panels[one.key()].value(key.key()).toString();
    for (auto one = a.parts.begin(); one != a.parts.end(); ++one)
      if (b.parts.value(one.key()) != one.value()) return one.key();
    if (!(a.arranged == b.arranged)) return "arrangement:\n" + a.arranged.shape + '\n' + b.arranged.shape;
    return QString();  // undo leaves the time where it is
  }
  /// As it is written, but for the places of docks, whose bytes differ by a pixel after each restoring while their shape is the same.
  QJsonObject written() const {
    QJsonObject lab = window_->lab()->written(), arranged = lab["arranged"].toObject();
    for (const char* key : {"window", "docks", "panels"}) arranged.remove(QLatin1String(key));
    lab["arranged"] = arranged;
    return lab;
  }
  static QString firstDifference(const QJsonValue& a, const QJsonValue& b, const QString& at = {}) {
    if (a == b) return {};
    if (!a.isObject() || !b.isObject())
      return at + ": " + QJsonDocument(QJsonArray{a}).toJson(QJsonDocument::Compact) + " and " +
             QJsonDocument(QJsonArray{b}).toJson(QJsonDocument::Compact);
    for (const QString& key : a.toObject().keys() + b.toObject().keys())
      if (const QString found = firstDifference(a.toObject()[key], b.toObject()[key], at + '/' + key); !found.isEmpty()) return found;
    return at;
  }
  void again() {
    close();
    window_ = std::make_unique<MainWindow>(&look_, Options{});
    window_->setFileChooser({});
    window_->show();
    QVERIFY(QTest::qWaitForWindowExposed(window_.get()));
    window_->activateWindow();
    QTRY_VERIFY_WITH_TIMEOUT(session().library() && session().setup().sequence, patience);
    rest();
  }
  /// Nothing runs, whether what is set can be run or not.
  void rest() {
    QTRY_VERIFY_WITH_TIMEOUT(!session().running() && !window_->pins()->running(), patience);
    QApplication::processEvents();
  }
  /// The index of a box by its keys, as a hand changes it.
  static void step(QComboBox* box, bool down) {
    box->setFocus();
    QTest::keyClick(box, down ? Qt::Key_Down : Qt::Key_Up);
    QApplication::processEvents();
  }
  QComboBox* layouts() const {
    for (QComboBox* box : window_->findChildren<QComboBox*>())
      if (box->findText("Explore") >= 0) return box;
    return nullptr;
  }
  std::vector<QComboBox*> boxesInSight() const {
    std::vector<QComboBox*> boxes;
    for (const PanelDock* dock : window_->area()->docks())
      if (dock->inSight())
        for (QComboBox* box : dock->panel()->findChildren<QComboBox*>())
          if (box->isVisible() && box->isEnabled() && box->count() > 1) boxes.push_back(box);
    return boxes;
  }
  void changeAtRandom(std::mt19937& random, QStringList& done) {
    const auto below = [&](std::size_t n) { return static_cast<std::size_t>(random() % n); };
    Setup after = session().setup();
    const int kind = static_cast<int>(below(11));
    switch (kind) {
      case 0:
        after.seed = 1 + below(4);
        window_->lab()->change("seed", [&] { session().apply(after, false); });
        break;
      case 1:
        after.setValue("width", std::to_string(3 + below(3)));
        window_->lab()->change("width", [&] { session().apply(after, false); }, 1 + static_cast<int>(below(3)));
        break;
      case 2: {
        static constexpr std::array models{"gru", "elman", "lstm", "jordan"};
        after.preset = models[below(models.size())];
        after.form = "auto";
        window_->lab()->change("model", [&] { session().apply(session().asLearned(after), false); });
        break;
      }
      case 3: window_->action("pin")->trigger(); break;
      case 4:
        if (!window_->pins()->pins().empty())
          window_->lab()->change("unpin", [&] { window_->pins()->remove(below(window_->pins()->pins().size())); });
        break;
      case 5:
        if (!window_->pins()->pins().empty())
          window_->lab()->change("name",
                                 [&] { window_->pins()->rename(below(window_->pins()->pins().size()), QString::number(random() % 9)); });
        break;
      case 6:
        if (const auto boxes = boxesInSight(); !boxes.empty()) step(boxes[below(boxes.size())], below(2) == 0);
        break;
      case 7: step(layouts(), below(2) == 0); break;
      case 8: window_->action("sideBySide")->trigger(); break;
      case 9: {
        TimeLink* time = window_->time();
        const auto at = static_cast<std::int64_t>(below(static_cast<std::size_t>(time->length())));
        time->setStep(at);
        time->setRange(at, time->length() - 1);
        break;
      }
      default:
        if (const auto learning = session().learning(); learning && learning->current != 0)
          window_->lab()->change("checkpoint",
                                 [&] { session().lookAtStep(learning->current, static_cast<std::int64_t>(below(30)), false); });
    }
    done << QString::number(kind);
  }

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
