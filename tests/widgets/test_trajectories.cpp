// SPDX-License-Identifier: GPL-3.0-or-later
// The trajectories panel: its components against cases computed by hand, its four views by real events, its files read back.
#include <QApplication>
#include <QBuffer>
#include <QClipboard>
#include <QComboBox>
#include <QDir>
#include <QDockWidget>
#include <QLabel>
#include <QListView>
#include <QMainWindow>
#include <QMenu>
#include <QPainter>
#include <QSignalSpy>
#include <QSvgRenderer>
#include <QTemporaryDir>
#include <QToolButton>
#include <QtTest>
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
using test::coloured, test::differing, test::overlayOf, test::pastTrace, test::showPanel, test::trace;
using View = TrajectoriesPanel::View;

namespace {

/// A trace of one state array whose rows are given by a formula.
template <class F>
std::shared_ptr<Trace> traceOf(std::int64_t length, std::int64_t units, const F& value) {
  auto made = std::make_shared<Trace>();
  made->info.length = length;
  for (std::int64_t t = 0; t < length; ++t) {
    made->steps.push_back(t);
    made->time.push_back(double(t));
  }
  made->put(test::unit_array("state/0/s", made->steps, units, value, "a state"));
  return made;
}

/// What is drawn once it has come to rest.
QImage pictureOf(TrajectoriesPanel& panel) {
  if (!QTest::qWaitFor([&] { return panel.sceneView()->atRest(); })) return {};
  return panel.sceneView()->grab().toImage();
}

}  // namespace

class TestTrajectories : public QObject {
  Q_OBJECT
 private slots:
  void componentsByHand() {
    // Four points of an ellipse turned by 45 degrees: variances 2 * 9 / 3 along (1, 1) / sqrt 2 and 2 * 1 / 3 across.
    const double r = std::sqrt(0.5);
    std::vector<double> data = {5 + 3 * r, 7 + 3 * r, 5 - 3 * r, 7 - 3 * r, 5 + r, 7 - r, 5 - r, 7 + r};
    const Components found = principalComponents(data, 4, 2, 3);
    QCOMPARE(found.count, 2);
    QVERIFY(std::abs(found.mean[0] - 5) < 1e-14 && std::abs(found.mean[1] - 7) < 1e-14);
    QVERIFY(std::abs(found.variance - 20.0 / 3.0) < 1e-13);
    QVERIFY(std::abs(found.share[0] - 0.9) < 1e-14 && std::abs(found.share[1] - 0.1) < 1e-14);
    QVERIFY(std::abs(found.directions[0] - r) < 1e-14 && std::abs(found.directions[1] - r) < 1e-14);
  }

  void componentsOfWideStatesAgree() {
    // Rank 3 by construction in 400 dimensions: by the Gram side, by the covariance, and by iteration.
    const std::int64_t rows = 60, n = 400;
    std::vector<double> data;
    for (std::int64_t t = 0; t < rows; ++t)
      for (std::int64_t j = 0; j < n; ++j) {
        const double x = double(t), y = double(j);
        data.push_back(3 * std::sin(0.2 * x) * std::cos(0.1 * y) + 2 * std::cos(0.37 * x) * std::sin(0.3 * y) +
                       0.01 * x * std::cos(0.05 * y * y));
      }
    std::vector<double> a = data, b = data, c = data;
    const Components gram = principalComponents(a, rows, n, 5);
    const Components covariance = principalComponents(b, n, rows, 3, {}, 1000);  // another matrix: only that the other side runs
    const Components iterated = principalComponents(c, rows, n, 5, {}, 0);
    QCOMPARE(covariance.width, rows);
    QVERIFY(std::abs(gram.share[0] + gram.share[1] + gram.share[2] - 1.0) < 1e-9);
    QVERIFY(gram.share[3] < 1e-9 && gram.share[0] >= gram.share[1] && gram.share[1] >= gram.share[2]);
    for (std::size_t k = 0; k < 3; ++k) {
      QVERIFY(std::abs(gram.share[k] - iterated.share[k]) < 1e-9);
      double same = 0, norm = 0;
      for (std::size_t j = 0; j < std::size_t(n); ++j) {
        same += gram.directions[k * std::size_t(n) + j] * iterated.directions[k * std::size_t(n) + j];
        norm += gram.directions[k * std::size_t(n) + j] * gram.directions[k * std::size_t(n) + j];
      }
      QVERIFY2(std::abs(norm - 1) < 1e-12, "unit length");
      QVERIFY2(std::abs(same - 1) < 1e-6, "the same direction and sign");
    }
  }

  void complexStatesAreTwoColumns() {
    auto made = std::make_shared<Trace>();
    made->info.length = 3;
    made->steps = {0, 1, 2};
    made->time = {0, 1, 2};
    TraceArray array;
    array.key = "state/0/s";
    array.shape = {3, 2};
    array.axes = {{"time", "", {}}, {"unit", "", {}}};
    array.complex = std::make_shared<const std::vector<std::complex<double>>>(
        std::vector<std::complex<double>>{{1, 2}, {3, 4}, {5, 6}, {7, 8}, {9, 10}, {11, 12}});
    made->put(std::move(array));
    const StateColumns columns(*made, "0");
    QCOMPARE(columns.width(), 4);
    QCOMPARE(columns.columnName(1), QString("Re s 1"));
    QCOMPARE(columns.columnName(2), QString("Im s 0"));
    QCOMPARE(columns.value(2, 1), 11.0);
    QCOMPARE(columns.value(1, 2), 6.0);
    std::vector<double> row(4);
    columns.copyRow(1, row.data());
    QCOMPARE(row, (std::vector<double>{5, 7, 6, 8}));
  }

  void thinningKeepsTheShape() {
    std::vector<Point3> points;
    for (int i = 0; i < 100000; ++i) points.push_back({i * 1e-5, i == 54321 ? 1.0 : 0.0, 0.0});
    const std::vector<std::int64_t> kept = thinned(points, 1000);
    QCOMPARE(kept.size(), 1000u);
    QCOMPARE(kept.front(), 0);
    QCOMPARE(kept.back(), 99999);
    QVERIFY(std::is_sorted(kept.begin(), kept.end()) && std::adjacent_find(kept.begin(), kept.end()) == kept.end());
    QVERIFY2(std::find(kept.begin(), kept.end(), 54321) != kept.end(), "a spike of one row is the shape");
  }

  void ticksAreRound() {
    QCOMPARE(roundTicks(-1.02, 1.02, 4), (std::vector<double>{-1.0, -0.5, 0.0, 0.5, 1.0}));
    QCOMPARE(roundTicks(0, 3000, 4), (std::vector<double>{0, 1000, 2000, 3000}));
  }

  void emptyStatesSayWhy() {
    TrajectoriesPanel panel;
    QVERIFY(panel.emptyReason().contains("Nothing has run yet"));
    auto bare = std::make_shared<Trace>();
    bare->info.length = 5;
    panel.setTrace(bare);
    QVERIFY(panel.emptyReason().contains("has no state that one step hands to the next"));
    panel.setTrace(traceOf(50, 1, [](double t, double) { return t; }));
    QVERIFY(panel.emptyReason().contains("single number"));
    panel.setView(View::lines);
    QVERIFY2(panel.emptyReason().isEmpty(), "the lines have something to show");
    panel.setView(View::scene);
    panel.setTrace(traceOf(50, 4, [](double, double j) { return j; }));
    QVERIFY(panel.emptyReason().contains("never moves"));
    panel.setTrace(traceOf(1, 4, [](double, double j) { return j; }));
    QVERIFY(panel.emptyReason().contains("One recorded step"));
    panel.setTrace(traceOf(9, 4, [](double, double) { return std::nan(""); }));
    QVERIFY(panel.emptyReason().contains("not finite"));
    panel.setTrace(trace());
    panel.finish();
    QVERIFY(panel.emptyReason().isEmpty());
    panel.setTrace(nullptr);
    QVERIFY(panel.emptyReason().contains("Nothing has run yet"));
    QVERIFY(panel.headline().isEmpty());
  }

  void headlineNamesTheShare() {
    // Circles in two of three units and a little in the third: the shares are 1 : 1 : 0.02.
    TrajectoriesPanel panel;
    QSignalSpy changed(&panel, &Panel::headlineChanged);
    panel.setTrace(traceOf(1000, 4, [](double t, double j) {
      const double a = 2 * std::numbers::pi * t / 50;
      return j == 0 ? std::cos(a) : j == 1 ? std::sin(a) : j == 2 ? 0.2 * std::cos(2 * a) : 0.2 * std::sin(2 * a);
    }));
    panel.finish();
    QCOMPARE(changed.count(), 1);
    QCOMPARE(panel.headline(), QString("3 components hold 98.1 %"));  // 2.04 / 2.08
    const QStringList lines = panel.dataAsCsv().split('\n');
    QCOMPARE(lines.size(), 1002);  // a header, the rows, and nothing after the last line's end
    QCOMPARE(lines[0].section(',', 0, 0), QString("step"));
    QVERIFY(lines[0].contains("PC 1 (48.1 %)"));
    const QStringList cells = lines[1].split(',');
    QCOMPARE(cells.size(), 4);
    QVERIFY(std::abs(std::hypot(cells[1].toDouble(), cells[2].toDouble()) - 1.0) < 1e-9);
  }

  void notFiniteRowsEndThePicture() {
    TrajectoriesPanel panel;
    panel.setTrace(traceOf(100, 4, [](double t, double j) { return t < 60 ? std::sin(0.1 * t + j) : std::nan(""); }));
    panel.finish();
    QCOMPARE(panel.sceneView()->scene().trajectory()->points.size(), 60u);
  }

  void stateOfTwoShowsTimeAsThirdAxis() {
    TrajectoriesPanel panel;
    panel.setTrace(traceOf(100, 2, [](double t, double j) { return j == 0 ? std::sin(t) : 2 * std::cos(t); }));
    panel.finish();
    QCOMPARE(panel.sceneView()->scene().trajectory()->names[2], QString("step"));
    QCOMPARE(panel.sceneView()->scene().trajectory()->points[37][2], 37.0);
  }

  void viewButtonsTurnThePages() {
    TrajectoriesPanel panel;
    showPanel(panel);
    panel.setTrace(trace());
    panel.finish();
    QTRY_VERIFY(coloured(panel.grab().toImage()) > 1500);
    QVERIFY(panel.sceneView()->isVisible());
    QTest::mouseClick(panel.findChild<QToolButton*>("viewMap"), Qt::LeftButton);
    panel.finish();
    QVERIFY(panel.mapPlot()->isVisible() && !panel.sceneView()->isVisible());
    QTRY_VERIFY2(coloured(panel.grab().toImage()) > 20000, "the map fills the panel with colour");
    QTest::mouseClick(panel.findChild<QToolButton*>("viewLines"), Qt::LeftButton);
    QVERIFY(panel.linesPlot()->isVisible());
    QCOMPARE(panel.linesPlot()->graphCount(), 5);
    QTest::mouseClick(panel.findChild<QToolButton*>("viewScene"), Qt::LeftButton);
    QVERIFY(panel.sceneView()->isVisible());
  }

  void theSceneIsDrawnAnewForAnotherRangeAlone() {
    TrajectoriesPanel panel;
    showPanel(panel);
    panel.setTrace(trace());
    panel.finish();
    if (!panel.sceneView()->hasOpenGl()) QSKIP("no OpenGL here");
    panel.setTimeRange(0, 100);
    QTRY_VERIFY(panel.sceneView()->atRest());
    panel.setTimeRange(0, 100);
    QVERIFY(panel.sceneView()->atRest());
    panel.setTimeRange(10, 20);
    QVERIFY(!panel.sceneView()->atRest());
  }

  void aViewThatAPresetWantsEndsWithIt() {
    TrajectoriesPanel panel;
    showPanel(panel);
    const auto of = [](const char* preset) {
      const auto made = std::const_pointer_cast<Trace>(trace());
      made->info.preset = preset;
      return std::shared_ptr<const Trace>(made);
    };
    const auto show = [&](const char* preset) {
      panel.setTrace(of(preset));
      panel.finish();
    };
    show("first");
    QCOMPARE(panel.view(), TrajectoriesPanel::View::scene);
    panel.lookAt("wants", "map", false);
    for (int i = 0; i < 2; ++i) {
      show("wants");
      QCOMPARE(panel.view(), TrajectoriesPanel::View::map);
      show("other");
      QCOMPARE(panel.view(), TrajectoriesPanel::View::scene);
    }
  }

  void dragTurnsWheelZoomsDoubleClickResets_data() {
    QTest::addColumn<bool>("openGl");
    QTest::newRow("OpenGL") << true;
    QTest::newRow("painted") << false;
  }
  void dragTurnsWheelZoomsDoubleClickResets() {
    QFETCH(bool, openGl);
    TrajectoriesPanel panel(nullptr, openGl);
    if (openGl && !panel.sceneView()->hasOpenGl()) QSKIP("this display has no OpenGL 3.2");
    QCOMPARE(panel.sceneView()->hasOpenGl(), openGl);
    showPanel(panel);
    panel.setTrace(trace());
    panel.finish();
    QWidget* at = overlayOf(panel);
    const auto picture = [&] { return pictureOf(panel); };
    const QImage before = picture();
    QVERIFY(coloured(before) > 1000);
    QTest::mousePress(at, Qt::LeftButton, {}, QPoint(150, 150));
    QTest::mouseMove(at, QPoint(190, 160));
    QTest::mouseMove(at, QPoint(240, 170));
    QTest::mouseRelease(at, Qt::LeftButton, {}, QPoint(240, 170));
    const QImage turned = picture();
    QVERIFY2(differing(before, turned) > 2000, "a drag turns the picture");
    QTest::mouseMove(at, QPoint(100, 100));
    QCOMPARE(differing(turned, picture()), 0);  // a pointer that only passes turns nothing
    QWheelEvent wheel(QPointF(200, 150), at->mapToGlobal(QPointF(200, 150)), {}, {0, 120}, Qt::NoButton, {}, Qt::NoScrollPhase, false);
    QApplication::sendEvent(at, &wheel);
    const QImage zoomed = picture();
    QVERIFY2(differing(turned, zoomed) > 1000, "the wheel zooms");
    QTest::mouseDClick(at, Qt::LeftButton, {}, QPoint(200, 150));
    QVERIFY2(differing(before, picture()) < 50, "a double click puts it back");
  }

  /// The smooth picture too, for which the view is moved by parts of a pixel.
  void curveAndOverlayAreInOnePlace() {
    TrajectoriesPanel panel(nullptr, true);
    if (!panel.sceneView()->hasOpenGl()) QSKIP("this display has no OpenGL 3.2");
    showPanel(panel);
    panel.setTrace(trace());
    panel.finish();
    QTRY_VERIFY(panel.sceneView()->atRest());
    const auto middle = [](const QImage& image) {
      QPointF sum;
      int count = 0;
      for (int y = 0; y < image.height(); ++y)
        for (int x = 0; x < image.width(); ++x)
          if (image.pixelColor(x, y).hsvSaturation() > 120) sum += QPointF(x, y), ++count;
      return sum / std::max(1, count);
    };
    const QImage figure = panel.sceneView()->image(panel.sceneView()->size(), 1.0, true);
    QImage seen(figure.size(), QImage::Format_RGB32);
    panel.sceneView()->render(&seen);
    const QPointF apart = middle(figure) - middle(seen);
    QVERIFY2(std::hypot(apart.x(), apart.y()) < 1.0, qPrintable(QString("%1, %2").arg(apart.x()).arg(apart.y())));
  }

  void cursorMovesTheMarkerAndAClickPicksTime() {
    TrajectoriesPanel panel;
    showPanel(panel);
    panel.setTrace(traceOf(200, 3, [](double t, double j) {
      return j == 0 ? t : j == 1 ? 10 * std::sin(0.05 * t) : 5 * std::cos(0.05 * t);
    }));
    panel.finish();
    panel.setTime(20);
    const TrajectoryScene& scene = panel.sceneView()->scene();
    const QRectF first = scene.markerArea();
    const QImage before = pictureOf(panel);
    panel.setTime(150);
    const QRectF second = scene.markerArea();
    QVERIFY(!first.isEmpty() && !second.isEmpty());
    QVERIFY2(std::hypot(first.center().x() - second.center().x(), first.center().y() - second.center().y()) > 30,
             "130 steps are a long way");
    const QImage after = pictureOf(panel);
    QVERIFY(differing(before, after) > 100);
    // What is dark at the new place is the ball.
    int dark = 0;
    for (int y = int(second.top()); y < int(second.bottom()); ++y)
      for (int x = int(second.left()); x < int(second.right()); ++x) dark += after.pixelColor(x, y).lightness() < 60;
    QVERIFY(dark > 25);

    QSignalSpy picked(&panel, &Panel::timePicked);
    panel.setTime(90);
    // The ball stands at one end of its plumb line, and the curve passes through it.
    const QRect there = scene.markerArea().toAlignedRect();
    QPoint on(-1, -1);
    for (int y = there.top(); y <= there.bottom() && on.x() < 0; ++y)
      if (scene.pick(QPointF(there.center().x(), y), 14.0) == 90) on = QPoint(there.center().x(), y);
    QVERIFY(on.x() >= 0);
    QTest::mouseClick(overlayOf(panel), Qt::LeftButton, {}, on);
    QCOMPARE(picked.count(), 1);
    QCOMPARE(picked.takeFirst().at(0).value<std::int64_t>(), 90);
    QTest::mouseClick(overlayOf(panel), Qt::LeftButton, {}, QPoint(3, 3));
    QCOMPARE(picked.count(), 0);  // far from the curve
  }

  void timeRangeFadesTheRest() {
    TrajectoriesPanel panel;
    showPanel(panel);
    panel.setTrace(trace());
    panel.finish();
    const int whole = coloured(pictureOf(panel));
    panel.setTimeRange(0, 99);
    const int part = coloured(pictureOf(panel));
    QVERIFY2(part < 0.7 * whole, qPrintable(QString("%1 of %2").arg(part).arg(whole)));
    panel.setTimeRange(0, 399);
    QVERIFY(std::abs(coloured(pictureOf(panel)) - whole) < 0.02 * whole);
  }

  void unitsAreChosenFromTheMenu() {
    TrajectoriesPanel panel;
    showPanel(panel);
    // Unit j swings by j: those that vary most are the last five.
    panel.setTrace(traceOf(300, 20, [](double t, double j) { return j * std::sin(0.1 * t + j); }));
    QTest::mouseClick(panel.findChild<QToolButton*>("viewLines"), Qt::LeftButton);
    panel.finish();
    std::vector<std::int64_t> shown = panel.lines();
    std::sort(shown.begin(), shown.end());
    QCOMPARE(shown, (std::vector<std::int64_t>{15, 16, 17, 18, 19}));
    auto* button = panel.findChild<QToolButton*>("unitsButton");
    QVERIFY(button->isVisible());
    emit button->menu()->aboutToShow();
    QWidget* chooser = button->menu()->findChild<QListView*>("unitList")->parentWidget();
    chooser->setParent(nullptr);  // a menu blocks a test's events; what is in it does not
    chooser->show();
    QVERIFY(QTest::qWaitForWindowExposed(chooser));
    auto* search = chooser->findChild<QLineEdit*>("unitSearch");
    QTest::keyClicks(search, "s 3");
    auto* list = chooser->findChild<QListView*>("unitList");
    QCOMPARE(list->model()->rowCount(), 1);
    const QRect item = list->visualRect(list->model()->index(0, 0));
    QTest::mouseClick(list->viewport(), Qt::LeftButton, {}, QPoint(item.left() + 10, item.center().y()));
    QCOMPARE(panel.lines().size(), 6u);
    QCOMPARE(panel.lines().back(), 3);
    QCOMPARE(panel.linesPlot()->graphCount(), 6);
    QTest::mouseClick(list->viewport(), Qt::LeftButton, {}, QPoint(item.left() + 10, item.center().y()));
    QCOMPARE(panel.lines().size(), 5u);
    const QStringList csv = panel.dataAsCsv().split('\n');
    QCOMPARE(csv.size(), 302);
    QCOMPARE(csv[0], QString("step,s 19,s 18,s 17,s 16,s 15"));
    QVERIFY(std::abs(csv[11].section(',', 1, 1).toDouble() - 19 * std::sin(1.0 + 19)) < 1e-12);
    delete chooser;
  }

  void threeUnitsAreAxes() {
    TrajectoriesPanel panel;
    showPanel(panel);
    panel.setTrace(trace());
    panel.finish();
    auto* axes = panel.findChild<QComboBox*>("axesChoice");
    QVERIFY(!panel.findChild<QComboBox*>("axis0")->isVisible());
    axes->setFocus();
    QTest::keyClick(axes, Qt::Key_Down);
    panel.finish();
    QVERIFY(panel.findChild<QComboBox*>("axis0")->isVisible());
    const auto shown = panel.sceneView()->scene().trajectory();
    QCOMPARE(shown->names[0], QString("hidden 0"));
    QCOMPARE(shown->names[1], QString("hidden 1"));
    QCOMPARE(shown->points[10][1], std::tanh(2.0 * std::sin(0.3 + 0.5)) * std::cos(0.2));
    panel.setAxes({0, 13, -1});
    panel.finish();
    QCOMPARE(panel.sceneView()->scene().trajectory()->names[1], QString("cell 1"));
    QCOMPARE(panel.sceneView()->scene().trajectory()->names[2], QString("year"));
  }

  void layersAndArraysAreChosen() {
    TrajectoriesPanel panel;
    showPanel(panel);
    panel.setTrace(trace(200, 8, 2));
    panel.finish();
    auto* choice = panel.findChild<QComboBox*>("stateChoice");
    QStringList offered;
    for (int i = 0; i < choice->count(); ++i) offered << choice->itemText(i);
    QCOMPARE(offered, (QStringList{"layer 0", "layer 0: hidden", "layer 0: cell", "layer 1", "layer 1: hidden", "layer 1: cell"}));
    panel.setView(TrajectoriesPanel::View::map);
    panel.finish();
    QCOMPARE(panel.dataAsCsv().section('\n', 0, 0).count(','), 17);  // step, year, 2 x 8 units
    choice->setFocus();
    QTest::keyClick(choice, Qt::Key_End);
    panel.finish();
    QCOMPARE(choice->currentText(), QString("layer 1: cell"));
    QCOMPARE(panel.dataAsCsv().section('\n', 0, 0), QString("step,year,cell 0,cell 1,cell 2,cell 3,cell 4,cell 5,cell 6,cell 7"));
    panel.setTrace(trace(300, 8, 2));
    panel.finish();
    QCOMPARE(choice->currentText(), QString("layer 1: cell"));  // the choice outlives the run
  }

  void laterStagesOfTheSameRunComputeNothing() {
    TrajectoriesPanel panel;
    const auto first = trace();
    panel.setTrace(first);
    panel.finish();
    const auto drawn = panel.sceneView()->scene().trajectory();
    auto second = std::make_shared<Trace>(*first);
    second->put(test::real_array("gradient/input", {400, 1}, {{"time", "", {}}, {"channel", "", {}}}, std::vector<double>(400)));
    panel.setTrace(second);
    panel.finish();
    QCOMPARE(panel.sceneView()->scene().trajectory(), drawn);
    panel.setTrace(trace());
    panel.finish();
    QVERIFY(panel.sceneView()->scene().trajectory() != drawn);
  }

  void aNewerTraceSupersedesAnOlder() {
    TrajectoriesPanel panel;
    const auto large = trace(4000, 150), small = trace(120, 6);
    panel.setTrace(large);  // computed beside
    panel.setTrace(small);
    panel.finish();
    QTest::qWait(50);
    QCOMPARE(panel.sceneView()->scene().trajectory()->points.size(), 120u);
    panel.setTrace(large);
    QTRY_COMPARE(panel.sceneView()->scene().trajectory()->points.size(), 4000u);  // and arrives by itself
  }

  void aViewChangedMeanwhileIsSavedToo() {
    TrajectoriesPanel panel;
    panel.setTrace(trace(4000, 150));  // computed beside, for the 3-D picture
    panel.setView(TrajectoriesPanel::View::map);
    QTemporaryDir folder;
    QCOMPARE(panel.saveFigure(folder.filePath("map.png"), Panel::Format::png, FigureStyle::asShown()), QString());
    QVERIFY(coloured(QImage(folder.filePath("map.png"))) > 100000);
  }

  void figuresAreReadBack_data() {
    QTest::addColumn<int>("view");
    QTest::addColumn<bool>("shown");
    for (const bool shown : {false, true})
      for (const View view : {View::scene, View::map, View::lines})
        QTest::addRow("view %d%s", int(view), shown ? "" : " never shown") << int(view) << shown;
  }
  void figuresAreReadBack() {
    QFETCH(int, view);
    QFETCH(bool, shown);
    QTemporaryDir folder;
    TrajectoriesPanel panel;
    if (shown) showPanel(panel);
    panel.setTrace(trace());
    panel.setView(static_cast<View>(view));
    panel.setTime(200);

    const QString png = folder.filePath("figure.png");
    QCOMPARE(panel.saveFigure(png, Panel::Format::png, FigureStyle::asShown()), QString());
    const QImage image(png);
    QVERIFY(image.width() >= 640 && image.height() >= 500);
    QVERIFY2(coloured(image) > 4000, qPrintable(QString::number(coloured(image))));

    const QString svg = folder.filePath("figure.svg");
    QCOMPARE(panel.saveFigure(svg, Panel::Format::svg, FigureStyle::asShown()), QString());
    QSvgRenderer reader(svg);
    QVERIFY(reader.isValid());
    QImage drawn(reader.defaultSize(), QImage::Format_RGB32);
    QPainter painter(&drawn);
    reader.render(&painter);
    painter.end();
    QVERIFY(coloured(drawn) > 1000);
    QFile text(svg);
    QVERIFY(text.open(QIODevice::ReadOnly));
    const QByteArray words = text.readAll();
    QVERIFY(words.contains("LSTM, sunspots.csv, seed 1"));
    if (view == int(View::scene)) {
      QVERIFY(words.count("<polyline") > 300);
      QVERIFY2(!words.contains("<image"), "vectors, not a picture");
      QVERIFY(words.contains("PC 1 ("));
    }

    const QString pdf = folder.filePath("figure.pdf");
    QCOMPARE(panel.saveFigure(pdf, Panel::Format::pdf, FigureStyle::asShown()), QString());
    QFile paper(pdf);
    QVERIFY(paper.open(QIODevice::ReadOnly));
    const QByteArray bytes = paper.readAll();
    QVERIFY(bytes.startsWith("%PDF") && bytes.trimmed().endsWith("%%EOF"));
    if (view == int(View::scene)) QVERIFY(!bytes.contains("/Subtype /Image"));
    QCOMPARE(QDir(folder.path()).entryList(QDir::Files).size(), 3);  // nothing left beside

    const QString refused = panel.saveFigure(folder.filePath("no/such/folder/figure.png"), Panel::Format::png, FigureStyle::asShown());
    QVERIFY(refused.contains("figure.png"));
  }

  void theFigureIsWhatTheScreenShows() {
    TrajectoriesPanel panel;
    showPanel(panel);
    panel.setTrace(trace());
    panel.finish();
    // The picture by VTK and the one in vectors share the camera, so they cover the same pixels.
    const QSize size(480, 400);
    const QImage rendered = panel.sceneView()->image(size, 1.0);
    QImage painted(size, QImage::Format_RGB32);
    QPainter painter(&painted);
    panel.sceneView()->paintVectors(painter, size);
    painter.end();
    const auto near = [](const QImage& image, int x, int y) {
      for (int v = std::max(0, y - 3); v <= std::min(image.height() - 1, y + 3); ++v)
        for (int u = std::max(0, x - 3); u <= std::min(image.width() - 1, x + 3); ++u)
          if (image.pixelColor(u, v).saturation() > 60) return true;
      return false;
    };
    int both = 0, one = 0;
    for (int y = 0; y < size.height(); ++y)
      for (int x = 0; x < size.width(); ++x)
        if (rendered.pixelColor(x, y).saturation() > 90) ++(near(painted, x, y) ? both : one);
    QVERIFY(both > 1000);
    QVERIFY2(one < both / 50, qPrintable(QString("%1 of %2 elsewhere").arg(one).arg(both)));
  }

  void copyPutsAPictureOnTheClipboard() {
    TrajectoriesPanel panel;
    panel.setTrace(trace());
    panel.copyFigure();
    QVERIFY(coloured(QApplication::clipboard()->image()) > 4000);
    panel.setTrace(nullptr);
    panel.copyFigure();
    QCOMPARE(QApplication::clipboard()->text(), panel.emptyReason());
  }

  void floatingDockKeepsThePicture() {
    QMainWindow window;
    auto* dock = new QDockWidget("Trajectories");
    auto* panel = new TrajectoriesPanel;
    dock->setWidget(panel);
    window.addDockWidget(Qt::RightDockWidgetArea, dock);
    window.resize(560, 460);
    window.show();
    QVERIFY(QTest::qWaitForWindowExposed(&window));
    panel->setTrace(trace());
    panel->finish();
    for (const bool floating : {true, false, true, false}) {
      dock->setFloating(floating);
      QTest::qWait(100);
      QTRY_VERIFY(coloured(panel->sceneView()->grab().toImage()) > 800);
      panel->setTime(floating ? 30 : 60);
    }
    window.hide();
    window.show();
    QTRY_VERIFY(coloured(panel->sceneView()->grab().toImage()) > 800);
    dock->setParent(nullptr);  // out of any window, and gone while it has a context
    delete dock;
  }

  void darkPaletteIsFollowed() {
    TrajectoriesPanel panel;
    showPanel(panel);
    panel.setTrace(trace());
    panel.finish();
    QPalette dark = panel.palette();
    dark.setColor(QPalette::Base, QColor("#16191d"));
    dark.setColor(QPalette::Text, QColor("#e6e8eb"));
    panel.setPalette(dark);
    for (const View view : {View::scene, View::map, View::lines, View::past}) {
      if (view == View::past) panel.setTrace(pastTrace(true));
      panel.setView(view);
      panel.finish();
      QTRY_VERIFY2(panel.grab().toImage().pixelColor(6, 390).lightness() < 40, qPrintable(QString::number(int(view))));
    }
  }

  void speed() {
    TrajectoriesPanel panel;
    showPanel(panel);
    QElapsedTimer clock;
    qint64 set = 1000;
    for (int i = 0; i < 3; ++i) {  // the best of three, for other programs run as well
      const auto wide = trace(3000, 128);
      clock.start();
      panel.setTrace(wide);
      set = std::min(set, clock.elapsed());
    }
    panel.finish();
    pictureOf(panel);
    clock.restart();
    for (int i = 0; i < 100; ++i) panel.setTime(i * 29);
    const double each = double(clock.nsecsElapsed()) / 1e8;
    qInfo("setTrace %lld ms, setTime %.3f ms", static_cast<long long>(set), each);
    QVERIFY2(set <= 50, qPrintable(QString("setTrace took %1 ms").arg(set)));
    QVERIFY2(each <= 5.0, qPrintable(QString("setTime took %1 ms").arg(each)));
    // A past of 64 coefficients over 3000 steps.
    auto deep = pastTrace(true, 3000);
    deep->put(test::real_array("state/0/m", {3000, 2, 64}, {{"time", "", {}}, {"", "", {}}, {"", "", {}}},
                               std::vector<double>(3000 * 128, 0.01)));
    deep->put(test::real_array("basis/0/m", {101, 64}, {{"place", "", {}}, {"", "", {}}}, std::vector<double>(101 * 64, 0.5)));
    panel.setTrace(deep);
    panel.setView(View::past);
    panel.finish();
    clock.restart();
    for (int i = 0; i < 100; ++i) panel.setTime(i * 29);
    const double past = double(clock.nsecsElapsed()) / 1e8;
    qInfo("setTime with the past shown %.3f ms", past);
    QVERIFY2(past <= 5.0, qPrintable(QString("setTime took %1 ms").arg(past)));
  }
};

int main(int argc, char** argv) {
  reclab::prepareOpenGl();
  QApplication app(argc, argv);
  QApplication::setStyle("Fusion");
  TestTrajectories test;
  return QTest::qExec(&test, argc, argv);
}

#include "test_trajectories.moc"
