// SPDX-License-Identifier: GPL-3.0-or-later
// The window in a lecture: its type, the keys of a clicker, what is put away and comes back, and answers that are not kept; and the pages
// of a lesson as a PDF.
#include <QCursor>
#include <QFont>
#include <QMenuBar>
#include <QProcess>
#include <QPushButton>
#include <QRadioButton>
#include <QScrollArea>
#include <QScrollBar>
#include <QStatusBar>
#include <QToolBar>
#include <QUndoStack>
#include <map>

#include "gui/docks/flat_dock.h"
#include "gui/docks/panel_area.h"
#include "gui/frame/lab.h"
#include "gui/lessons/lecture.h"
#include "gui/lessons/lesson_player.h"
#include "gui/lessons/lesson_view.h"
#include "gui/lessons/lessons_feature.h"
#include "gui/lessons/pointer.h"
#include "gui/views/status_line.h"
#include "plot/plot.h"
#include "plot/type_scale.h"
#include "window_test.h"

using namespace reclab;
using namespace reclab::test;

class LectureTest : public WindowTest {
  Q_OBJECT
 private slots:
  void initTestCase() { forgetAll(); }
  void cleanup() {
    if (window_) lecture()->setActive(false);
    close();
    forgetAll();
    QFile::remove(LessonPlayer::answersFile());
  }

  void comesAndGoes() {
    start();
    lesson();
    const Arranged before = window_->lab()->arranged();
    const QSize size = window_->size();
    const auto fonts = fontsNow();
    const int undos = window_->undoStack()->count();
    key(Qt::Key_F5, Qt::ShiftModifier);
    QVERIFY(lecture()->active());
    QVERIFY(lecture()->words()->isVisible());
    QVERIFY(!window_->menuBar()->isVisible() && !window_->statusBar()->isVisible());
    for (const QToolBar* bar : window_->findChildren<QToolBar*>(Qt::FindDirectChildrenOnly)) QVERIFY(!bar->isVisible());
    for (const char* id : {"dock.models", "dock.sequence", "dock.card", "dock.inspector"})
      QVERIFY2(!window_->findChild<FlatDock*>(id)->isVisible(), id);
    QVERIFY(window_->isFullScreen());
    QTRY_COMPARE(typeScale(), Lecture::scaleOf(window_->size()));
    QVERIFY(window_->lab()->arranged() == before);  // what undo and the next start have
    for (const Plot* plot : window_->area()->findChildren<Plot*>())
      if (plot->isVisible()) QCOMPARE(plot->theme().small.pointSizeF(), 9.0 * typeScale());
    QVERIFY(window_->area()->visiblePanels().size() <= 2);
    QTRY_VERIFY(smallestType() >= 14.0 * window_->logicalDpiX() / 96.0);
    photograph(window_.get(), "lecture");
    key(Qt::Key_Escape);
    QVERIFY(!lecture()->active());
    QVERIFY(window_->menuBar()->isVisible() && window_->statusBar()->isVisible() && !window_->isFullScreen());
    QTRY_COMPARE(window_->size(), size);
    QTRY_COMPARE(window_->lab()->arranged().shape, before.shape);
    QCOMPARE(typeScale(), 1.0);
    const auto now = fontsNow();  // of more widgets, where a panel came into sight
    for (const auto& [name, points] : fonts) QVERIFY2(now.at(name) == points, qPrintable(name));
    QCOMPARE(window_->undoStack()->count(), undos);
  }

  void panelsByHeight() {
    QCOMPARE(Lecture::panelsOf({1024, 768}), 1);
    QCOMPARE(Lecture::panelsOf({1280, 800}), 2);
    QCOMPARE(Lecture::panelsOf({1920, 1080}), 2);
    QCOMPARE(Lecture::panelsOf({3840, 2160}), 2);
  }

  void linesFollow() {
    start();
    lesson();
    Plot* plot = nullptr;
    const auto found = [&] {
      for (Plot* one : window_->area()->findChildren<Plot*>())
        if (one->isVisible() && one->graphCount() > 0) plot = one;
      return plot != nullptr;
    };
    QTRY_VERIFY_WITH_TIMEOUT(found(), patience);
    plot->replot();
    const double curve = plot->graph(0)->pen().widthF(), axis = plot->xAxis->basePen().widthF();
    key(Qt::Key_F5, Qt::ShiftModifier);
    QTRY_VERIFY(typeScale() > 1.0);
    for (int i = 0; i < 3; ++i) plot->replot();  // no line grows with each drawing
    QCOMPARE(plot->graph(0)->pen().widthF(), curve * typeScale());
    QCOMPARE(plot->axisRect()->axis(QCPAxis::atBottom)->basePen().widthF(), axis * typeScale());
    key(Qt::Key_Escape);
    plot->replot();
    QCOMPARE(plot->graph(0)->pen().widthF(), curve);
  }

  void keysOfAClicker() {
    start();
    lesson();
    key(Qt::Key_F5, Qt::ShiftModifier);
    QTRY_COMPARE(typeScale(), Lecture::scaleOf(window_->size()));
    // At the end of a step that is longer than the screen, and at its beginning.
    QScrollBar* bar = window_->lessons()->view()->findChild<QScrollArea*>()->verticalScrollBar();
    const auto turn = [&](Qt::Key forth) {
      QVERIFY(settle());
      bar->setValue(forth == Qt::Key_PageDown || forth == Qt::Key_Right ? bar->maximum() : 0);
      key(forth);
    };
    const std::int64_t time = window_->time()->step();
    turn(Qt::Key_PageDown);
    QTRY_COMPARE_WITH_TIMEOUT(player()->step(), std::size_t{1}, patience);
    QVERIFY(settle());
    turn(Qt::Key_PageUp);
    QTRY_COMPARE_WITH_TIMEOUT(player()->step(), std::size_t{0}, patience);
    turn(Qt::Key_Right);
    key(Qt::Key_Right);  // before the first has loaded its sequence
    QTRY_COMPARE_WITH_TIMEOUT(player()->step(), std::size_t{2}, patience);
    turn(Qt::Key_PageDown);  // the last one
    QVERIFY(settle());
    QCOMPARE(player()->step(), std::size_t{2});
    turn(Qt::Key_Left);
    QTRY_COMPARE_WITH_TIMEOUT(player()->step(), std::size_t{1}, patience);
    QVERIFY(settle());
    QCOMPARE(window_->time()->step(), time);  // the arrows are not the time's here
    // The step points at a setting, so its part of the window is there.
    QTRY_VERIFY_WITH_TIMEOUT(window_->findChild<FlatDock*>("dock.inspector")->isVisible(), patience);
    key(Qt::Key_Period);
    QVERIFY(lecture()->blank()->isVisible());
    QCOMPARE(lecture()->blank()->size(), window_->size());
    key(Qt::Key_PageDown);  // lights it, and no more
    QVERIFY(!lecture()->blank()->isVisible());
    QCOMPARE(player()->step(), std::size_t{1});
    key(Qt::Key_B);
    QTest::mouseClick(lecture()->blank(), Qt::LeftButton);
    QVERIFY(!lecture()->blank()->isVisible());
    key(Qt::Key_F5, Qt::ShiftModifier);  // the beginning of a clicker that is one press behind
    key(Qt::Key_F5);
    QVERIFY(lecture()->active() && !session().running());
  }

  /// Where a step has more than is in sight, a clicker comes to that before the next step.
  void longStepsAreScrolled() {
    start();
    lesson();
    key(Qt::Key_F5, Qt::ShiftModifier);
    LessonView* view = window_->lessons()->view();
    QTRY_COMPARE(typeScale(), Lecture::scaleOf(window_->size()));
    view->setScale(4.0);
    const QScrollBar* bar = view->findChild<QScrollArea*>()->verticalScrollBar();
    QTRY_VERIFY(bar->maximum() > bar->pageStep());
    int before = bar->value(), last = bar->maximum(), presses = 0;
    for (; player()->step() == 0 && presses < 20; ++presses) {
      key(Qt::Key_PageDown);
      QTRY_VERIFY_WITH_TIMEOUT(player()->step() > 0 || bar->value() > before, patience);
      if (player()->step() > 0) break;
      before = bar->value();
      last = bar->maximum();
    }
    QVERIFY2(presses > 1 && presses < 20, qPrintable(QString::number(presses)));
    QVERIFY(last - before <= 24);  // all of it was in sight
    QTRY_COMPARE(bar->value(), 0);
    key(Qt::Key_PageUp);
    QTRY_COMPARE_WITH_TIMEOUT(player()->step(), std::size_t{0}, patience);
  }

  /// One of the settings that were not shown is scrolled to, in a part of the window that is small.
  void theArrowFindsASettingBelowTheOthers() {
    start();
    window_->lessons()->open("gates");
    QTRY_VERIFY_WITH_TIMEOUT(player()->lesson() != nullptr, patience);
    key(Qt::Key_F5, Qt::ShiftModifier);
    const auto& steps = player()->lesson()->steps;
    player()->go(static_cast<std::size_t>(std::ranges::find(steps, "gru", &LessonStep::id) - steps.begin()));
    QTRY_VERIFY_WITH_TIMEOUT(settle() && session().setup().preset == "gru", patience);
    QTRY_VERIFY_WITH_TIMEOUT(window_->lessons()->pointer()->isVisible(), patience);
    const QWidget* target = window_->lessons()->pointer()->target();
    QTRY_COMPARE(target->visibleRegion().boundingRect().size(), target->size());
    for (FlatDock* one : window_->findChildren<FlatDock*>())
      if (one->isAncestorOf(target)) window_->resizeDocks({one}, {180}, Qt::Vertical);
    QTRY_COMPARE(target->visibleRegion().boundingRect().size(), target->size());
    QVERIFY(window_->lessons()->pointer()->isVisible());
  }

  void ringFollows() {
    start();
    key(Qt::Key_F5, Qt::ShiftModifier);  // without a lesson: the panels in sight
    QVERIFY(lecture()->active());
    QVERIFY(!window_->area()->visiblePanels().isEmpty());
    key(Qt::Key_P);
    QVERIFY(lecture()->ring()->isVisible() && lecture()->ring()->testAttribute(Qt::WA_TransparentForMouseEvents));
    const QPoint at(window_->width() / 2, window_->height() / 3);
    QTest::mouseMove(window_->windowHandle(), at);
    QTRY_VERIFY((lecture()->ring()->geometry().center() - at).manhattanLength() <= 2);
    key(Qt::Key_P);
    QVERIFY(!lecture()->ring()->isVisible());
  }

  void answersAreNotKept() {
    start();
    lesson();
    const Answers before = player()->answers();
    key(Qt::Key_F5, Qt::ShiftModifier);
    auto* answer = window_->lessons()->view()->findChild<QRadioButton*>("answer.0");
    QVERIFY(answer != nullptr);
    QTest::mouseClick(answer, Qt::LeftButton);
    QTRY_VERIFY(player()->answers() != before);  // judged as ever
    key(Qt::Key_Escape);
    QVERIFY(player()->answers() == before);
    QVERIFY(!QFile::exists(LessonPlayer::answersFile()));
  }

  void endsInALecture() {
    start();
    lesson();
    const QString shape = window_->lab()->arranged().shape;
    key(Qt::Key_F5, Qt::ShiftModifier);
    QVERIFY(lecture()->active());
    close();  // the file that the next start begins from is of the window without it
    look_.setScale(1.0);
    const QJsonObject kept = keptLab();
    QVERIFY(!kept.isEmpty());
    open({});
    QVERIFY(window_->menuBar()->isVisible() && !window_->isFullScreen());
    QCOMPARE(window_->lab()->arranged().shape, shape);
  }

  void prints() {
    const QString file = folder_.filePath("lesson.pdf");
    QString said;
    QCOMPARE(drawn({"--lesson", "vanishing", "--print", file}, &said), 0);
    QCOMPARE(said.trimmed(), file);
    QProcess text;
    text.start("pdftotext", {"-layout", file, "-"});
    if (!text.waitForStarted()) QSKIP("there is no pdftotext here");
    QVERIFY(text.waitForFinished(patience));
    const QString pages = QString::fromUtf8(text.readAllStandardOutput()).simplified();
    for (const char* has : {"Why gradients vanish and explode", "With a nonlinearity", "Figure 1 Gradients", "Figure 5 Spectrum",
                            "reclab run elman --set activation=tanh", "About a billionth of it", "Your answer, in steps:", "To do."})
      QVERIFY2(pages.contains(QString(has)) ||
                   pages.contains(QString(has).replace("Figure 1 ", "Figure 1. ").replace("Figure 5 ", "Figure 5. ")),
               has);
    // A number that was measured, and nothing of what is right.
    QVERIFY(pages.contains("9.1 powers of ten from the last step"));
    for (const char* not_ : {"{{", "is there at every step.", "Look at the picture now", "You halved the distance"})
      QVERIFY2(!pages.contains(not_), not_);
    QProcess fonts;
    fonts.start("pdffonts", {file});
    QVERIFY(fonts.waitForFinished(patience));
    const QStringList lines = QString::fromUtf8(fonts.readAllStandardOutput()).trimmed().split('\n').mid(2);
    QVERIFY(!lines.isEmpty());
    for (const QString& line : lines) QVERIFY2(line.contains(QRegularExpression("Identity-H +yes")), qPrintable(line));  // embedded
    QProcess pictures;
    pictures.start("pdfimages", {"-list", file});
    QVERIFY(pictures.waitForFinished(patience));
    QCOMPARE(QString::fromUtf8(pictures.readAllStandardOutput()).trimmed().split('\n').size(), 2);  // figures are vectors
  }

  void refuses() {
    QString said;
    QCOMPARE(drawn({"--print", "x.pdf"}, &said), 2);
    QVERIFY(said.contains("--print belongs to --lesson"));
    QCOMPARE(drawn({"--lesson", "vanishing", "--print", folder_.filePath("x.pdf"), "--step", "nowhere"}, &said), 2);
    QVERIFY2(said.contains("product, balance and slope"), qPrintable(said));
    QCOMPARE(drawn({"--lesson", "vanishing", "--print", folder_.filePath("no/x.pdf")}, &said), 2);
    QVERIFY2(said.contains("cannot be written"), qPrintable(said));
    QCOMPARE(drawn({"--lesson", "vanishing", "--print", folder_.filePath("x.pdf"), "--theme", "dark"}, &said), 2);
    QVERIFY2(said.contains("--print draws on white paper"), qPrintable(said));
    QVERIFY(!QFile::exists(folder_.filePath("x.pdf")));
  }

  void printsFromTheWindow() {
    start();
    QVERIFY(!window_->action("printStep")->isEnabled());
    lesson();
    const QString file = folder_.filePath("step.pdf");
    QString asked = file;
    window_->setFileChooser({.open = {},
                             .save = [&](QWidget*, const QString&, const QString& name,
                                         const QString&) { return name == "vanishing-product.pdf" ? asked : QString(); },
                             .folder = {}});
    QStringList said;
    for (QObject* one : window_->findChildren<WindowFrame*>())
      connect(static_cast<WindowFrame*>(one), &WindowFrame::said, this, [&](const QString& sentence) { said << sentence; });
    window_->action("printStep")->trigger();
    QTRY_VERIFY_WITH_TIMEOUT(said.filter("The pages are in").size() == 1, patience);
    QVERIFY(QFile(file).size() > 10'000);
    asked = folder_.filePath("no/step.pdf");
    window_->action("printStep")->trigger();
    QTRY_VERIFY_WITH_TIMEOUT(said.filter("cannot be written").size() == 1, patience);
  }

 private:
  void start() {
    qputenv("RECLAB_LESSONS", {});
    open(onWaves(), {1200, 800});
  }
  void lesson() {
    window_->lessons()->open("vanishing");
    QTRY_VERIFY_WITH_TIMEOUT(player()->lesson() != nullptr, patience);
    QVERIFY(settle());
  }
  Lecture* lecture() const { return window_->lessons()->lecture(); }
  LessonPlayer* player() const { return window_->lessons()->player(); }
  void key(Qt::Key key, Qt::KeyboardModifiers modifiers = {}) const {
    QWidget* focus = QApplication::focusWidget();
    QTest::keyClick(focus != nullptr ? focus : window_.get(), key, modifiers);
    QCoreApplication::processEvents();
  }
  std::map<QString, double> fontsNow() const {
    std::map<QString, double> sizes;
    for (const QWidget* one : window_->findChildren<QWidget*>())
      if (!one->objectName().isEmpty() && !one->objectName().startsWith("qt_") && !one->window()->isHidden())
        sizes[one->objectName() + '/' + one->metaObject()->className()] = one->font().pointSizeF();
    return sizes;
  }
  /// In pixels, of what is on the screen and is written with a font of its widget.
  double smallestType() const {
    double least = 1e9;
    for (const QWidget* one : window_->findChildren<QWidget*>())
      if (one->isVisible() && !one->visibleRegion().isEmpty() &&
          (one->inherits("QLabel") || one->inherits("QAbstractButton") || one->inherits("QComboBox")))
        least = std::min(least, QFontInfo(one->font()).pointSizeF() * one->logicalDpiY() / 72.0);
    return least;
  }
  static int drawn(const QStringList& arguments, QString* said) {
    QProcess program;
    program.setProcessChannelMode(QProcess::MergedChannels);
    program.start(QCoreApplication::applicationDirPath() + "/recurrence-lab", arguments);
    if (!program.waitForFinished(2 * patience)) return -1;
    *said = QString::fromUtf8(program.readAll());
    return program.exitCode();
  }
};

int main(int argc, char** argv) { return runWindowTest<LectureTest>(argc, argv, "app_test_lecture"); }
#include "test_lecture.moc"
