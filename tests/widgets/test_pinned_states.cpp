// SPDX-License-Identifier: GPL-3.0-or-later
// The trajectories panel beside pinned runs, and where a preset says to look in it.
#include <QApplication>
#include <QComboBox>
#include <QFile>
#include <QLabel>
#include <QTemporaryDir>
#include <QToolButton>
#include <QtTest>
#include <algorithm>
#include <cmath>

#include "panels/trajectories/trajectories.h"
#include "plot/plot.h"
#include "scene/trajectory_view.h"
#include "scene/vtk_frame.h"
#include "shown_panel.h"
#include "synthetic/synthetic_trace.h"

using namespace reclab;
using test::textsOf;
using View = TrajectoriesPanel::View;

namespace {

const QColor pink(255, 0, 255);

std::shared_ptr<Trace> runOf(double shift, std::int64_t units = 6, const char* preset = "lstm") {
  test::SyntheticOptions options;
  options.length = 200;
  options.units = units;
  options.gates = options.spectra = options.gradients = options.timing = false;
  auto made = std::make_shared<Trace>(*test::synthetic_trace(options));
  made->info.preset = preset;
  for (const TraceArray* array : shift == 0.0 ? std::vector<const TraceArray*>() : made->matching("state/")) {
    TraceArray other = *array;
    auto values = std::make_shared<std::vector<double>>(*array->real);
    for (double& v : *values) v += shift;
    other.real = std::move(values);
    made->put(other);
  }
  return made;
}

int pixelsOf(const QImage& image, const QColor& colour) {
  int count = 0;
  for (int y = 0; y < image.height(); ++y)
    for (int x = 0; x < image.width(); ++x) {
      const QColor at = image.pixelColor(x, y);
      // A tube is lit, so its colour is darker or lighter in places: its hue is the same.
      count += at.saturation() > 120 && std::abs(at.hue() - colour.hue()) < 12;
    }
  return count;
}

}  // namespace

class TestPinnedStates : public QObject {
  Q_OBJECT

 private slots:
  void aPinnedWayIsInTheSameCoordinates() {
    StateRequest asked;
    const auto run = runOf(0.0), moved = runOf(0.3);
    asked.columns = StateColumns(*run, "0", "hidden");
    asked.pinned = {{"moved", pink, StateColumns(*moved, "0", "hidden")}, {"GRU: other units", Qt::blue, {}}};
    const StatePicture picture = statePicture(asked);
    QVERIFY(picture.trajectory && picture.trajectory->companions.size() == 2);
    const CompanionWay& way = picture.trajectory->companions[0];
    QCOMPARE(way.points.size(), picture.trajectory->points.size());
    // Every unit is 0.3 further on, so each component is further on by 0.3 times the sum of its direction.
    const auto n = static_cast<std::size_t>(asked.columns.width());
    for (std::size_t k = 0; k < 3; ++k) {
      double shift = 0.0;
      for (std::size_t j = 0; j < n; ++j) shift += 0.3 * picture.components.directions[k * n + j];
      for (const std::size_t i : {std::size_t(0), std::size_t(77), std::size_t(199)})
        QVERIFY(std::abs(way.points[i][k] - picture.trajectory->points[i][k] - shift) < 1e-9);
      for (const Point3& at : way.points)
        QVERIFY(at[k] >= picture.trajectory->low[k] && at[k] <= picture.trajectory->high[k]);  // the axes hold both
    }
    QVERIFY(picture.trajectory->companions[1].points.empty());
  }

  void threeDimensionsHaveThePinInItsColour() {
    for (const bool openGl : {true, false}) {
      TrajectoriesPanel panel(nullptr, openGl);
      panel.resize(460, 400);
      panel.setTrace(runOf(0.0));
      panel.show();
      QVERIFY(QTest::qWaitForWindowExposed(&panel));
      panel.finish();
      QVERIFY(QTest::qWaitFor([&] { return panel.sceneView()->atRest(); }));
      const int before = pixelsOf(panel.sceneView()->grab().toImage(), pink);
      panel.setPinned({{runOf(0.3), pink, "ρ = 0.7"}, {runOf(0.0, 9), QColor(0, 128, 255), "GRU"}});
      panel.finish();
      QVERIFY(QTest::qWaitFor([&] { return panel.sceneView()->atRest(); }));
      const int after = pixelsOf(panel.sceneView()->grab().toImage(), pink);
      QVERIFY2(before == 0 && after > 100, qPrintable(QString("%1, then %2").arg(before).arg(after)));
      QTemporaryDir folder;
      const QString file = folder.filePath("states.svg");
      QCOMPARE(panel.saveFigure(file, Panel::Format::svg, FigureStyle::asShown()), QString());
      QFile svg(file);
      QVERIFY(svg.open(QIODevice::ReadOnly));
      QVERIFY(svg.readAll().contains("#ff00ff"));
      QVERIFY2(textsOf(file).contains("ρ = 0.7") && textsOf(file).contains("GRU: other units"), qPrintable(textsOf(file).join('|')));
      const QString header = panel.dataAsCsv().section('\n', 0, 0);
      QVERIFY2(header.count("[ρ = 0.7]") == 3 && !header.contains("GRU"), qPrintable(header));
    }
  }

  void linesHaveTheSameUnitsOfThePin() {
    TrajectoriesPanel panel;
    panel.resize(460, 400);
    panel.setTrace(runOf(0.0));
    panel.setView(View::lines);
    panel.setLines({1, 4});
    panel.show();
    QVERIFY(QTest::qWaitForWindowExposed(&panel));
    panel.finish();
    QCOMPARE(panel.linesPlot()->graphCount(), 2);
    panel.setPinned({{runOf(0.3), pink, "ρ = 0.7"}});
    panel.finish();
    QCOMPARE(panel.linesPlot()->graphCount(), 4);
    for (int i = 0; i < 2; ++i) {
      const QCPGraph *own = panel.linesPlot()->graph(i), *pinned = panel.linesPlot()->graph(2 + i);
      QCOMPARE(pinned->pen().color(), pink);
      QVERIFY(std::abs(pinned->data()->at(50)->value - own->data()->at(50)->value - 0.3) < 1e-12);
      QVERIFY(panel.linesPlot()->axisRect()->axis(QCPAxis::atLeft)->range().contains(pinned->data()->at(50)->value));
    }
    QVERIFY(panel.linesPlot()->graph(2)->pen().style() != panel.linesPlot()->graph(3)->pen().style());
    const QStringList csv = panel.dataAsCsv().split('\n', Qt::SkipEmptyParts);
    QCOMPARE(csv[0].count("[ρ = 0.7]"), 2);
    const QStringList cells = csv[60].split(',');
    QVERIFY(std::abs(cells[cells.size() - 2].toDouble() - cells[cells.size() - 4].toDouble() - 0.3) < 1e-12);
    // Unpinned, they are gone.
    panel.setPinned({});
    panel.finish();
    QCOMPARE(panel.linesPlot()->graphCount(), 2);
  }

  void theMapSaysThatItShowsOneRun() {
    TrajectoriesPanel panel;
    panel.resize(460, 400);
    panel.setTrace(runOf(0.0));
    panel.setView(View::map);
    panel.show();
    QVERIFY(QTest::qWaitForWindowExposed(&panel));
    const auto said = [&] {
      const auto labels = panel.findChildren<QLabel*>();
      return std::any_of(labels.begin(), labels.end(),
                         [](const QLabel* one) { return one->isVisible() && one->text().contains("Pinned runs are in"); });
    };
    QVERIFY(!said());
    panel.setPinned({{runOf(0.3), pink, "other"}});
    panel.finish();
    QVERIFY(said());
    panel.setView(View::lines);
    QVERIFY(!said());
  }

  void aPresetSaysWhichViewAndWhichState() {
    TrajectoriesPanel panel;
    panel.resize(460, 400);
    panel.show();
    QVERIFY(QTest::qWaitForWindowExposed(&panel));
    auto* state = panel.findChild<QComboBox*>("stateChoice");
    panel.lookAt("lstm", "lines:cell", false);
    panel.setTrace(runOf(0.0, 6, "lstm"));
    QVERIFY(panel.view() == View::lines && state->currentData().toString() == "0/cell");
    // The view that a preset wants ends with it; so does the past of a model that has one.
    panel.setTrace(runOf(0.0, 6, "elman"));
    QVERIFY(panel.view() == View::scene);
    panel.lookAt("hippo", "past", false);
    panel.setTrace(runOf(0.0, 6, "hippo"));
    QVERIFY(panel.view() == View::past);
    panel.setTrace(runOf(0.0, 6, "elman"));
    QVERIFY(panel.view() == View::scene);
    // What is picked by hand for a model stays, until it is asked for.
    panel.setTrace(runOf(0.0, 6, "lstm"));
    QVERIFY(panel.view() == View::lines);
    QTest::mouseClick(panel.findChild<QToolButton*>("viewMap"), Qt::LeftButton);
    panel.setTrace(runOf(0.0, 6, "elman"));
    panel.setView(View::scene);
    panel.lookAt("lstm", "lines:cell", false);
    panel.setTrace(runOf(0.0, 6, "lstm"));
    QVERIFY(panel.view() == View::map);
    panel.lookAt("lstm", "lines:cell", true);
    QVERIFY(panel.view() == View::lines);
  }
};

int main(int argc, char** argv) {
  prepareOpenGl();
  QApplication application(argc, argv);
  TestPinnedStates test;
  return QTest::qExec(&test, argc, argv);
}

#include "test_pinned_states.moc"
