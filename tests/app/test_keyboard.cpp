// SPDX-License-Identifier: GPL-3.0-or-later
// The window by keyboard alone: keys go to the window as a keyboard's do, and reach what has the focus.
#include <QApplication>
#include <QComboBox>
#include <QDialog>
#include <QDir>
#include <QDoubleSpinBox>
#include <QHash>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QPointer>
#include <QSet>
#include <QSettings>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>
#include <QToolButton>
#include <QTreeWidget>
#include <QUndoStack>
#include <cmath>

#include "gui/docks/panel_area.h"
#include "gui/literature/models_view.h"
#include "gui/views/inspector_view.h"
#include "gui/views/scrubber.h"
#include "gui/window/main_window.h"
#include "plot/plot.h"
#include "window_test.h"

using namespace reclab;
using test::patience;

class TestKeyboard : public test::WindowTest {
  Q_OBJECT

  void key(int one, Qt::KeyboardModifiers modifiers = {}) {
    QTest::keyClick(window_->windowHandle(), static_cast<Qt::Key>(one), modifiers);
  }
  void type(const QString& text) {
    for (const QChar one : text) QTest::keyClick(window_->windowHandle(), one.toLatin1());
  }
  /// By Tab, until it has the focus.
  bool tabTo(const std::function<bool(QWidget*)>& wanted) {
    for (int i = 0; i < 400; ++i) {
      if (QWidget* now = QApplication::focusWidget(); now != nullptr && wanted(now)) return true;
      key(Qt::Key_Tab);
    }
    return false;
  }
  /// By F6, until it is in a part.
  bool goTo(const QWidget* part) {
    for (int i = 0; i < 20; ++i) {
      if (const QWidget* now = QApplication::focusWidget(); now != nullptr && (now == part || part->isAncestorOf(now))) return true;
      key(Qt::Key_F6);
    }
    return false;
  }
  QDockWidget* dock(const char* id) { return window_->findChild<QDockWidget*>(id); }

 private slots:
  void init() {
    test::forgetAll();
    QSettings().setValue("hintSeen", true);
    Options options;
    options.model = "elman";
    options.given["--task"] = "noise";
    options.given["--length"] = "100";
    open(options);
    QVERIFY(QTest::qWaitForWindowActive(window_.get()));
    QTRY_VERIFY_WITH_TIMEOUT(window_->inspector()->slider("width") != nullptr, patience);
  }
  void cleanup() { close(); }

  void fromTheFileToAFigure() {
    const QString waves = written("waves.csv", test::twoWaves(120)), figure = folder_.filePath("gru-gradients.svg");
    window_->setFileChooser({[&](QWidget*, const QString&, const QString&) { return waves; },
                             {},
                             {},
                             [&](QWidget*, const FigureQuestion& question) -> std::optional<FigureAnswer> {
                               return FigureAnswer{folder_.path(), question.stems.value(0), question.format, {}};
                             }});
    // Load.
    key(Qt::Key_O, Qt::ControlModifier);
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().trace()->info.input_name == "waves.csv", patience);
    // Choose.
    key(Qt::Key_F, Qt::ControlModifier);
    type("gru");
    key(Qt::Key_Return);
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().trace()->info.preset == "gru", patience);
    QVERIFY(window_->models()->tree()->hasFocus());
    // Change: the first number of the inspector.
    QVERIFY(goTo(dock("dock.inspector")));
    QVERIFY(tabTo([&](QWidget* now) { return qobject_cast<QDoubleSpinBox*>(now) != nullptr && window_->inspector()->isAncestorOf(now); }));
    auto* box = qobject_cast<QDoubleSpinBox*>(QApplication::focusWidget());
    const double before = box->value();
    key(Qt::Key_A, Qt::ControlModifier);
    type("9");
    key(Qt::Key_Return);
    QCOMPARE(box->value(), 9.0);
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && !session().setup().settings().empty(), patience);
    // It is entered, so undo is the window's though the field still has the focus.
    QVERIFY(box->hasFocus());
    key(Qt::Key_Z, Qt::ControlModifier);
    QTRY_COMPARE_WITH_TIMEOUT(box->value(), before, patience);
    key(Qt::Key_Y, Qt::ControlModifier);
    QTRY_COMPARE_WITH_TIMEOUT(box->value(), 9.0, patience);
    QTRY_VERIFY_WITH_TIMEOUT(atRest(), patience);
    // Run: by its key, and by Tab to its button.
    int runs = 0;
    connect(&session(), &SessionController::runEnded, this, [&] { ++runs; });
    key(Qt::Key_F5);
    QTRY_VERIFY_WITH_TIMEOUT(runs == 1 && atRest(), patience);
    QVERIFY(tabTo([](QWidget* now) { return now->objectName() == "primary"; }));
    key(Qt::Key_Space);
    QTRY_VERIFY_WITH_TIMEOUT(runs == 2 && atRest(), patience);
    QVERIFY(!window_->scrubber()->playing());
    // Scrub.
    QVERIFY(goTo(window_->scrubber()));
    QVERIFY(window_->scrubber()->strip()->hasFocus());
    key(Qt::Key_Home);
    QCOMPARE(window_->time()->step(), std::int64_t{0});
    key(Qt::Key_Right);
    key(Qt::Key_Right);
    QCOMPARE(window_->time()->step(), std::int64_t{2});
    key(Qt::Key_PageDown);
    QVERIFY(window_->time()->step() > 4);
    key(Qt::Key_End);
    QCOMPARE(window_->time()->step(), window_->time()->length() - 1);
    // Pin.
    key(Qt::Key_P, Qt::ControlModifier);
    QCOMPARE(window_->findChildren<QFrame*>("chip").size(), qsizetype(1));
    // One panel's figure, by its menu.
    PanelDock* gradients = window_->area()->dock("gradients");
    QTRY_VERIFY_WITH_TIMEOUT(gradients->panel()->emptyReason().isEmpty(), patience);
    QVERIFY(goTo(gradients));
    QVERIFY2(qobject_cast<Plot*>(QApplication::focusWidget()) != nullptr, "the plot takes the keyboard");
    QVERIFY(tabTo([&](QWidget* now) { return now->objectName() == "more" && gradients->isAncestorOf(now); }));
    bool chosen = false;
    QTimer::singleShot(300, this, [&] {  // the menu has its own loop
      auto* menu = qobject_cast<QMenu*>(QApplication::activePopupWidget());
      if (menu == nullptr) return;
      for (int i = 0; i < 10 && !(menu->activeAction() != nullptr && menu->activeAction()->text().contains("SVG")); ++i) key(Qt::Key_Down);
      key(Qt::Key_Return);
      chosen = true;
    });
    key(Qt::Key_Space);
    QTRY_VERIFY(chosen && QFile::exists(figure));
  }

  void tabReachesEverything() {
    QHash<QWidget*, QPointer<QWidget>> passed;
    for (int i = 0; i < 500; ++i) {
      key(Qt::Key_Tab);
      if (QWidget* now = QApplication::focusWidget()) passed[now] = now;
    }
    QSet<QWidget*> reached;  // and still there: what describes the model is made anew when its description comes
    for (const QPointer<QWidget>& one : passed)
      if (one) reached << one;
    for (const char* tip :
         {"Where the next run computes", "How the recurrence is computed", "float64 for science", "Which panels are shown"}) {
      bool found = false;
      for (QWidget* one : reached) found = found || (qobject_cast<QComboBox*>(one) != nullptr && one->toolTip().startsWith(tip));
      QVERIFY2(found, tip);
    }
    QVERIFY(reached.contains(window_->scrubber()->strip()));
    for (PanelDock* panel : window_->area()->docks()) {
      auto* more = panel->findChild<QToolButton*>("more");
      if (!more->isVisible() || more->visibleRegion().isEmpty()) continue;
      QVERIFY2(reached.contains(more), qPrintable(panel->panel()->id()));
    }
    for (const QString& name : {QString("width")}) QVERIFY(reached.contains(window_->inspector()->slider(name)));
  }

  void theFocusIsSeen() {
    // Whatever has the keyboard looks otherwise than without it.
    QList<QWidget*> all{window_->inspector()->slider("width"), window_->scrubber()->strip(), window_->findChild<QToolButton*>("primary"),
                        window_->models()->tree()};
    for (QWidget* one : all) {
      window_->setFocus();
      QApplication::processEvents();
      const QImage without = one->grab().toImage();
      one->setFocus(Qt::TabFocusReason);
      QApplication::processEvents();
      QVERIFY(one->hasFocus());
      QVERIFY2(one->grab().toImage() != without, one->metaObject()->className());
    }
    auto* plot = window_->area()->dock("spectrum")->findChild<Plot*>();
    auto* header = window_->area()->dock("spectrum")->header();
    window_->setFocus();
    const QImage without = header->grab().toImage();
    plot->setFocus(Qt::TabFocusReason);
    QVERIFY(header->grab().toImage() != without);
  }

  void theSearchLeadsIntoTheList() {
    key(Qt::Key_F, Qt::ControlModifier);
    type("mamba");
    key(Qt::Key_Down);
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && QString::fromStdString(session().trace()->info.preset).contains("mamba"), patience);
    QVERIFY(window_->models()->tree()->hasFocus());
    // Space is the time's there.
    key(Qt::Key_Space);
    QVERIFY(window_->scrubber()->playing());
    key(Qt::Key_Space);
    // What is typed and not yet entered is the field's to take back; Ctrl+E is the window's.
    key(Qt::Key_F, Qt::ControlModifier);
    type("x");
    const int steps = window_->undoStack()->index();
    key(Qt::Key_Z, Qt::ControlModifier);
    QCOMPARE(window_->undoStack()->index(), steps);
    QVERIFY(window_->models()->searchField()->text() != "x");
    bool asked = false;
    window_->setFileChooser({{}, {}, [&](QWidget*, const QString&, const QString&) {
                               asked = true;
                               return QString();
                             }});
    key(Qt::Key_E, Qt::ControlModifier);
    QVERIFY(asked);
  }

  void enterInTheSearchPicksWhatIsCalledThatFirst() {
    for (const auto& [typed, id] :
         {std::pair{"transformer", "transformer"}, {"DeltaNet", "deltanet"}, {"delta rnn", "delta-rnn"}, {"gru", "gru"}}) {
      key(Qt::Key_F, Qt::ControlModifier);
      type(typed);
      key(Qt::Key_Return);
      QTRY_VERIFY2_WITH_TIMEOUT(atRest() && session().trace()->info.preset == id, typed, patience);
    }
    const Literature& all = *window_->models()->literature();
    QCOMPARE(all.firstOf("transformer"), QString("transformer"));
    QCOMPARE(all.named("Elman Network"), QString("elman"));
    QVERIFY(all.named("delta").isEmpty() && !all.firstOf("delta").isEmpty() && all.firstOf("nothing of this name").isEmpty());
  }

  void escapeInTheSearchClearsItAndStopsNothing() {
    session().apply(
        [&] {
          Setup after = session().setup();
          after.setValue("width", "2048");
          return after;
        }(),
        false);
    QVERIFY(session().running());
    key(Qt::Key_F, Qt::ControlModifier);
    type("mamba");
    QCOMPARE(window_->models()->searchField()->text(), QString("mamba"));
    key(Qt::Key_Escape);
    QVERIFY(window_->models()->searchField()->text().isEmpty());
    key(Qt::Key_Escape);
    QVERIFY(session().running());
    window_->scrubber()->strip()->setFocus();
    key(Qt::Key_Escape);
    QTRY_VERIFY_WITH_TIMEOUT(!session().running(), patience);
  }

  void theTimeLineStandsStill() {
    QByteArray rows = "a rather long name of a time,a rather long name of the first column,target\n";
    for (int i = 0; i < 2000; ++i)
      rows += QByteArray::number(i * 1.234567) + ',' + QByteArray::number(std::pow(-10.0, i % 9 - 5), 'g', 8) + ",1\n";
    SequenceChoice choice;
    choice.file = written("long.csv", rows).toStdString();
    choice.load.time = "a rather long name of a time";
    choice.load.target = {"target"};
    const int left = window_->scrubber()->strip()->mapTo(window_.get(), QPoint()).x();
    session().loadSequence(choice);
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().trace()->info.input_name == "long.csv", patience);
    for (const std::int64_t step : {0, 9, 99, 1000, 1999}) {
      window_->time()->setStep(step);
      QCoreApplication::sendPostedEvents();
      QTest::qWait(10);
      QCOMPARE(window_->scrubber()->strip()->mapTo(window_.get(), QPoint()).x(), left);
    }
  }

  void aClickGivesThePlotTheKeyboard() {
    key(Qt::Key_F, Qt::ControlModifier);
    QVERIFY(window_->models()->searchField()->hasFocus());
    TimeStrip* strip = window_->scrubber()->strip();
    QTest::mouseClick(strip, Qt::LeftButton, {}, {strip->pixelOf(30), strip->height() / 2});
    const std::int64_t at = window_->time()->step();
    key(Qt::Key_Right);
    QCOMPARE(window_->time()->step(), at + 1);
    key(Qt::Key_F, Qt::ControlModifier);
    auto* plot = window_->area()->dock("gradients")->findChild<Plot*>();
    QTest::mouseClick(plot, Qt::LeftButton, {}, plot->rect().center());
    const std::int64_t there = window_->time()->step();
    key(Qt::Key_Left);
    QCOMPARE(window_->time()->step(), there - 1);
    QVERIFY(window_->models()->searchField()->text().isEmpty());
  }

  void aDialogGivesTheFocusBack() {
    QVERIFY(window_->scrubber()->strip()->hasFocus());  // from the start
    window_->setFileChooser({[&](QWidget*, const QString&, const QString&) {
                               window_->models()->searchField()->setFocus();  // as a closing dialog may
                               return QString();
                             },
                             {},
                             {}});
    key(Qt::Key_O, Qt::ControlModifier);
    QVERIFY(window_->scrubber()->strip()->hasFocus());
  }

  void theGuideIsInTheHelpMenu() {
    key(Qt::Key_H, Qt::AltModifier);
    auto* menu = qobject_cast<QMenu*>(QApplication::activePopupWidget());
    QVERIFY(menu != nullptr);
    QCOMPARE(menu->actions().front()->text(), QString("Guide"));
    if (menu->activeAction() == nullptr) QTest::keyClick(menu, Qt::Key_Down);
    QCOMPARE(menu->activeAction(), menu->actions().front());
    QTest::keyClick(menu, Qt::Key_Return);
    QDialog* guide = nullptr;
    QTRY_VERIFY((guide = qobject_cast<QDialog*>(QApplication::activeModalWidget())) != nullptr);
    QCOMPARE(guide->windowTitle(), QString("Guide"));
    QString words;
    for (const QLabel* one : guide->findChildren<QLabel*>()) words += one->text() + '\n';
    for (const char* word : {"Train", "Compare", "Pin", "missing", "Layout", "Copy the command"}) QVERIFY2(words.contains(word), word);
    photograph(guide, "guide");
    QTest::keyClick(guide, Qt::Key_Escape);
    QTRY_VERIFY(QApplication::activeModalWidget() == nullptr);
  }

  void escapeTakesASearchBackAndStopsNothing() {
    QSignalSpy stops(window_->action("stop"), &QAction::triggered);
    key(Qt::Key_F, Qt::ControlModifier);
    QLineEdit* search = window_->models()->searchField();
    QTRY_VERIFY(search->hasFocus());
    type("s4");
    key(Qt::Key_Escape);
    QVERIFY(search->text().isEmpty() && search->hasFocus());
    key(Qt::Key_Escape);
    QVERIFY(!search->hasFocus() && window_->models()->isAncestorOf(QApplication::focusWidget()));
    QCOMPARE(stops.count(), 0);
    key(Qt::Key_Escape);
    QCOMPARE(stops.count(), 1);
  }
};

int main(int argc, char** argv) { return test::runWindowTest<TestKeyboard>(argc, argv, "keyboard-test"); }

#include "test_keyboard.moc"
