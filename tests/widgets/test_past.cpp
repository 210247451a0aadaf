// SPDX-License-Identifier: GPL-3.0-or-later
// The past that a state holds, as the trajectories panel reads it back: at the cursor, over all steps, in words where there is none, in
// files.
#include <QApplication>
#include <QClipboard>
#include <QComboBox>
#include <QLabel>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>
#include <QToolButton>
#include <algorithm>
#include <cmath>
#include <span>

#include "panels/trajectories/past_view.h"
#include "panels/trajectories/trajectories.h"
#include "plot/plot.h"
#include "scene/components.h"
#include "scene/state_space.h"
#include "scene/trajectory_view.h"
#include "scene/vtk_frame.h"
#include "synthetic/synthetic_trace.h"
#include "trajectories_test.h"

using namespace reclab;
using test::coloured, test::differing, test::parabola, test::pastTrace, test::showPanel, test::trace;
using View = TrajectoriesPanel::View;

class TestPast : public QObject {
  Q_OBJECT

 private slots:
  void thePastIsReadBackFromTheStateAtTheCursor() {
    TrajectoriesPanel panel;
    showPanel(panel);
    const auto run = pastTrace(true);
    panel.setTrace(run);
    panel.setTime(50);
    QSignalSpy headline(&panel, &Panel::headlineChanged);
    QTest::mouseClick(panel.findChild<QToolButton*>("viewPast"), Qt::LeftButton);
    QCOMPARE(panel.view(), View::past);
    PastView& past = *panel.pastView();
    QVERIFY(past.isVisible() && !panel.sceneView()->isVisible());
    QVERIFY(headline.count() >= 1);
    QCOMPARE(panel.headline(), QString("the last 40 steps to 0.8 %"));
    QCOMPARE(past.sentence(), QString("3 Taylor coefficients hold the last 40 steps to 0.8 %."));

    const auto check = [&](std::size_t step, std::size_t copy) {
      const auto state = std::span(*run->find("state/0/m")->real).subspan((step * 2 + copy) * 3, 3);
      const auto& basis = *run->find("basis/0/m")->real;
      QCOMPARE(past.readCurve()->dataCount(), 101);
      for (int i = 0; i <= 100; ++i) {
        const QCPGraphData point = *past.readCurve()->data()->at(i);
        double sum = 0.0;
        for (std::size_t k = 0; k < 3; ++k) sum += basis[std::size_t(i) * 3 + k] * state[k];
        QCOMPARE(point.key, double(step) + 0.5 - 0.4 * (100 - i));
        QCOMPARE(point.value, sum);
        QVERIFY(std::abs(point.value - parabola(point.key, copy)) < 1e-9);  // which lies on the signal
      }
      QCOMPARE(past.signalCurve()->dataCount(), 200);
      QCOMPARE(past.signalCurve()->data()->at(int(step))->value, parabola(double(step), copy));
    };
    check(50, 0);
    if (QTest::currentTestFailed()) return;

    // A click picks a time; the window then moves the cursor of all panels.
    QTRY_VERIFY(coloured(past.grab().toImage()) > 200);
    const QImage before = past.grab().toImage();
    QSignalSpy picked(&panel, &Panel::timePicked);
    QCPAxisRect* rect = past.axisRect(0);
    const QPoint at(int(std::round(rect->axis(QCPAxis::atBottom)->coordToPixel(150.0))), rect->rect().center().y());
    QTest::mouseClick(&past, Qt::LeftButton, {}, at);
    QCOMPARE(picked.count(), 1);
    const auto step = picked.takeFirst().at(0).value<std::int64_t>();
    QVERIFY(std::abs(step - 150) <= 1);
    panel.setTime(step);
    check(std::size_t(step), 0);
    if (QTest::currentTestFailed()) return;
    QTRY_VERIFY2(differing(before, past.grab().toImage()) > 100, "the curve moves with the cursor");

    auto* copies = panel.findChild<QComboBox*>("copyChoice");
    QVERIFY(copies->isVisible());
    QCOMPARE(copies->count(), 2);
    headline.clear();
    copies->setFocus();
    QTest::keyClick(copies, Qt::Key_Down);
    check(std::size_t(step), 1);
    if (QTest::currentTestFailed()) return;
    QCOMPARE(headline.count(), 1);
    QCOMPARE(panel.headline(), QString("the last 40 steps to %1 %").arg(number(100 * (0.0123 + 0.001 * double(step)), 2)));
    panel.setTrace(pastTrace(true));
    QCOMPARE(copies->currentIndex(), 1);  // the choice outlives the run

    QTest::mouseClick(panel.findChild<QToolButton*>("viewLines"), Qt::LeftButton);
    QVERIFY(!copies->isVisible() && !past.isVisible());
    QVERIFY(panel.headline() != past.headline());
    panel.setTime(70);
    QTest::mouseClick(panel.findChild<QToolButton*>("viewPast"), Qt::LeftButton);
    check(70, 1);
  }

  void thePastOfAllStepsSoFar() {
    TrajectoriesPanel panel;
    showPanel(panel);
    panel.setTrace(pastTrace(false));
    panel.setView(View::past);
    panel.setTime(99);
    PastView& past = *panel.pastView();
    QCOMPARE(past.sentence(), QString("3 Taylor coefficients hold all 100 steps so far to 0.8 %."));
    for (int i = 0; i <= 100; ++i) {
      const QCPGraphData point = *past.readCurve()->data()->at(i);
      QCOMPARE(point.key, 99.5 - (1.0 - 0.01 * i) * 100.0);
      QVERIFY(std::abs(point.value - parabola(point.key, 0)) < 1e-9);
    }
    panel.setTime(0);
    QCOMPARE(past.sentence(), QString("3 Taylor coefficients hold the one step so far to 0.8 %."));
  }

  void aPastThatIsNotThereSaysWhy() {
    TrajectoriesPanel panel;
    showPanel(panel);
    panel.setView(View::past);
    QVERIFY(panel.emptyReason().contains("Nothing has run yet"));
    panel.setTrace(trace());
    panel.finish();
    // A model without one shows another view, and the next with one shows it again.
    QCOMPARE(panel.view(), View::scene);
    QVERIFY2(panel.emptyReason().isEmpty(), qPrintable(panel.emptyReason()));
    auto next = pastTrace(true);
    next->info.preset = "next";
    panel.setTrace(next);
    panel.finish();
    QCOMPARE(panel.view(), View::past);
    QVERIFY2(panel.emptyReason().isEmpty(), qPrintable(panel.emptyReason()));
    panel.setView(View::scene);
    panel.setTrace(trace());
    panel.finish();
    panel.setView(View::past);  // by hand: why there is none
    QVERIFY2(panel.emptyReason().contains("holds no coefficients"), qPrintable(panel.emptyReason()));
    QCOMPARE(panel.findChild<QLabel*>("emptyReason")->text(), panel.emptyReason());
    QVERIFY(panel.findChild<QLabel*>("emptyReason")->isVisible() && !panel.pastView()->isVisible());
    QVERIFY(panel.headline().isEmpty() && panel.dataAsCsv().isEmpty());
    panel.setView(View::lines);
    QVERIFY2(panel.emptyReason().isEmpty(), "the other views have something to show");
    panel.setView(View::past);

    // A state without a past was chosen for the model before: one that has one is.
    panel.setTrace(pastTrace(true));
    QVERIFY(panel.emptyReason().isEmpty());
    auto* choice = panel.findChild<QComboBox*>("stateChoice");
    choice->setCurrentIndex(choice->findText("h"));
    emit choice->activated(choice->currentIndex());
    panel.finish();
    QVERIFY2(panel.emptyReason().contains("choose m"), qPrintable(panel.emptyReason()));
    choice->setCurrentIndex(choice->findText("m"));
    emit choice->activated(choice->currentIndex());
    panel.finish();
    QVERIFY(panel.emptyReason().isEmpty());

    // Steps whose window is not known draw no curve and say why; an error that is large is no success.
    const auto partly = pastTrace(false);
    std::vector<double> window = *partly->find("reconstruction/0/m/window")->real, error = *partly->find("reconstruction/0/m/error")->real;
    for (std::size_t t = 150; t < 200; ++t) window[t] = std::nan("");
    error[2 * 20] = 0.87;
    error[2 * 21] = std::nan("");
    partly->put(test::real_array("reconstruction/0/m/window", {200}, {{"time", "", {}}}, window,
                                 "How far back the state reaches. NaN where this is not known. The scale stands still from step 150 on."));
    partly->put(test::real_array("reconstruction/0/m/error", {200, 2}, {{"time", "", {}}, {"copy", "", {}}}, error));
    panel.setTrace(partly);
    PastView& past = *panel.pastView();
    panel.setTime(160);
    QCOMPARE(past.sentence(), QString("Nothing is read back from the state at step 160. The scale stands still from step 150 on."));
    QCOMPARE(past.readCurve()->dataCount(), 0);
    QVERIFY(panel.headline().isEmpty());
    panel.setTime(20);
    QVERIFY2(past.sentence().contains("do not hold all 21 steps so far") && past.sentence().contains("87 %"), qPrintable(past.sentence()));
    panel.setTime(21);
    QVERIFY2(past.sentence().contains("no signal there"), qPrintable(past.sentence()));
    panel.setTrace(nullptr);
    QVERIFY(panel.emptyReason().contains("Nothing has run yet"));
  }

  void thePastIsExported() {
    TrajectoriesPanel panel;
    showPanel(panel);
    panel.setTrace(pastTrace(true));
    panel.setView(View::past);
    panel.setTime(100);
    const QStringList lines = panel.dataAsCsv().split('\n');
    QCOMPARE(lines[0], QString("step,signal,read back,error"));
    QCOMPARE(lines.size(), 1 + 200 + 101 + 1);
    double last = -1e9;
    int steps = 0, places = 0;
    for (int i = 1; i <= 301; ++i) {
      const QStringList cells = lines[i].split(',');
      QCOMPARE(cells.size(), 4);
      const double step = cells[0].toDouble();
      QVERIFY(step >= last);
      last = step;
      if (cells[2].isEmpty()) {
        ++steps;
        QVERIFY(std::abs(cells[1].toDouble() - parabola(step, 0)) < 1e-12);
        QCOMPARE(cells[3], QString("0.008"));
      } else {
        ++places;
        QVERIFY(cells[1].isEmpty() && cells[3].isEmpty() && step >= 60.5 - 1e-9 && step <= 100.5);
        QVERIFY(std::abs(cells[2].toDouble() - parabola(step, 0)) < 1e-9);
      }
    }
    QCOMPARE(steps, 200);
    QCOMPARE(places, 101);

    QTemporaryDir folder;
    QCOMPARE(panel.saveFigure(folder.filePath("past.png"), Panel::Format::png, FigureStyle::asShown()), QString());
    QVERIFY(coloured(QImage(folder.filePath("past.png"))) > 400);
    QCOMPARE(panel.saveFigure(folder.filePath("past.svg"), Panel::Format::svg, FigureStyle::asShown()), QString());
    QFile text(folder.filePath("past.svg"));
    QVERIFY(text.open(QIODevice::ReadOnly));
    const QByteArray words = text.readAll();
    QVERIFY(words.contains("the past in m") && words.contains("3 Taylor coefficients hold the last 40 steps") &&
            words.contains("read back"));
    QVERIFY(!words.contains("<image"));
    QCOMPARE(panel.saveFigure(folder.filePath("past.pdf"), Panel::Format::pdf, FigureStyle::asShown()), QString());
    panel.copyFigure();
    QVERIFY(coloured(QApplication::clipboard()->image()) > 400);
  }
};

int main(int argc, char** argv) {
  reclab::prepareOpenGl();
  QApplication app(argc, argv);
  QApplication::setStyle("Fusion");
  TestPast test;
  return QTest::qExec(&test, argc, argv);
}

#include "test_past.moc"
