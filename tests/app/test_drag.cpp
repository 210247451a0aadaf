// SPDX-License-Identifier: GPL-3.0-or-later
// A slider is dragged with real events while all panels are open: no panel may lose its picture, and those that answer must do so soon.
// The line that each drag prints is a measurement (share of moves answered, median time from the move to the painted answer).
#include <QElapsedTimer>
#include <QSettings>
#include <QSignalSpy>
#include <QSlider>
#include <QTemporaryDir>
#include <QTest>
#include <QTimer>
#include <QTreeWidget>
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "gui/docks/panel_area.h"
#include "gui/literature/models_view.h"
#include "gui/views/inspector_view.h"
#include "gui/views/status_line.h"
#include "gui/window/main_window.h"
#include "plot/plot_panel.h"
#include "window_test.h"

using namespace reclab;
using test::patience;

namespace {

/// A number as one text, however it was written.
QString plain(const QString& number) { return QString::number(number.toDouble(), 'g', 12); }

QString percentiles(std::vector<double> ms) {
  if (ms.empty()) return QStringLiteral("none");
  std::sort(ms.begin(), ms.end());
  return QStringLiteral("%1 ms (90 %: %2 ms)").arg(std::lround(ms[ms.size() / 2])).arg(std::lround(ms[ms.size() * 9 / 10]));
}

/// Looks at every panel, at each frame: which were seen without a picture.
class Watch : public QObject {
 public:
  explicit Watch(PanelArea* area) : area_(area) {
    timer_.setInterval(16);
    timer_.setTimerType(Qt::PreciseTimer);
    connect(&timer_, &QTimer::timeout, this, &Watch::look);
    timer_.start();
  }
  void look() {
    ++frames;
    const QStringList recorded = area_->visiblePanels();  // what takes long is recorded for a panel in front of others alone
    for (PanelDock* dock : area_->docks())
      if (recorded.contains(dock->panel()->id()) && !dock->answered()) ++empty[dock->panel()->id() + ": " + dock->panel()->emptyReason()];
  }
  QString said() const {
    QStringList lines;
    for (const auto& [what, count] : empty) lines << QStringLiteral("%1 of %2 frames: %3").arg(count).arg(frames).arg(what);
    return lines.join('\n');
  }
  int frames = 0;
  std::map<QString, int> empty;

 private:
  PanelArea* area_;
  QTimer timer_;
};

}  // namespace

class TestDrag : public test::WindowTest {
  Q_OBJECT

 private:
  Panel* panel(const QString& id) { return window_->area()->dock(id)->panel(); }
  bool whole() { return atRest() && !session().isPending(Kind::spectrum); }
  /// All panels in sight, filled and at rest.
  void open(const Options& options) {
    WindowTest::open(options, {1600, 1000});
    window_->area()->arrange({"all", {{"spectrum", "trajectories", "gating"}, {"gradients", "timing", "steps"}}});
    QTRY_VERIFY_WITH_TIMEOUT(whole(), patience);
    // A model without gates or kernels has nothing to show there, and says so before, while and after.
    const QStringList recorded = window_->area()->visiblePanels();
    QCOMPARE(recorded.size(), qsizetype(6));
    for (PanelDock* dock : window_->area()->docks())
      if (dock->panel()->id() != "timing" && recorded.contains(dock->panel()->id()))
        QTRY_VERIFY2_WITH_TIMEOUT(dock->answered(), qPrintable(dock->panel()->id()), patience);
  }

 private slots:
  void init() { test::forgetAll(); }
  void cleanup() { close(); }

  void picturesStayWhileASliderMoves_data() {
    QTest::addColumn<QString>("model");
    QTest::addColumn<QString>("key");
    QTest::newRow("LSTM") << "lstm" << "forget_bias";
    QTest::newRow("Elman network") << "elman" << "spectral_radius";
  }
  void picturesStayWhileASliderMoves() {
    QFETCH(QString, model);
    QFETCH(QString, key);
    Options options;
    options.model = model;
    options.given["--task"] = "noise";
    options.given["--length"] = "500";
    options.given["--set"] = "width=64";
    open(options);
    // Timed once, so that this panel has a picture to lose; what is timed by itself goes on no longer.
    session().request(StudyChoice{"time", {{"forms", "sequential"}, {"lengths", "64,128"}}});
    QTRY_VERIFY_WITH_TIMEOUT(panel("timing")->emptyReason().isEmpty(), patience);
    session().request(StudyChoice{"time", {}, StudyChoice::Act::stop});

    QSlider* slider = window_->inspector()->slider(key);
    QVERIFY(slider != nullptr);
    const auto at = [&](double share) { return QPoint(static_cast<int>(6 + share * (slider->width() - 12)), slider->height() / 2); };
    // What was painted last in each of the two panels, as the value that it is of.
    std::map<QString, double> asked;  // value -> ms
    std::map<QString, std::map<QString, double>> answered;
    QElapsedTimer clock;
    clock.start();
    QString inGradients, inSpectrum;
    connect(&session(), &SessionController::traceChanged, window_.get(), [&](const TracePtr& trace) {
      if (!trace->matching("gradient/state/").empty()) inGradients = plain(hyperOf(trace, key.toStdString()));
      if (!trace->matching("spectrum/").empty()) inSpectrum = plain(hyperOf(trace, key.toStdString()));
    });
    const auto painted = [&](const QString& id, const QString& value) {
      if (asked.contains(value)) answered[id].try_emplace(value, static_cast<double>(clock.nsecsElapsed()) / 1e6 - asked[value]);
    };
    auto* gradients = dynamic_cast<PlotPanel*>(panel("gradients"));
    auto* spectrum = dynamic_cast<PlotPanel*>(panel("spectrum"));
    connect(gradients->plot(), &QCustomPlot::afterReplot, window_.get(), [&] { painted("gradients", inGradients); });
    connect(spectrum->plot(), &QCustomPlot::afterReplot, window_.get(), [&] { painted("spectrum", inSpectrum); });

    int described = 0;
    QString inCard;
    connect(&session(), &SessionController::modelDescribed, window_.get(), [&](const ModelPtr& card) {
      ++described;
      inCard = plain(QString::fromStdString(card->hyper.text(key.toStdString())));
    });
    Watch watch(window_->area());
    const double from = static_cast<double>(slider->value()) / slider->maximum();
    QTest::mousePress(slider, Qt::LeftButton, {}, at(from));
    QVERIFY(slider->isSliderDown());
    QElapsedTimer pace;
    pace.start();
    for (int i = 0; i < 100; ++i) {
      while (pace.elapsed() < 50 * i) QTest::qWait(std::max<int>(1, static_cast<int>(50 * i - pace.elapsed())));
      // Across the slider and back on places between, so that no value comes twice.
      const double share = i < 50 ? (2 * i + 1) / 101.0 : (2 * (99 - i) + 2) / 101.0;
      const double now = static_cast<double>(clock.nsecsElapsed()) / 1e6;
      QTest::mouseMove(slider, at(share));
      QApplication::processEvents();
      const Settings set = session().setup().settings();
      for (const auto& [name, value] : set)
        if (name == key.toStdString()) asked.try_emplace(plain(QString::fromStdString(value)), now);
    }
    const auto moves = static_cast<double>(asked.size());
    QTest::mouseRelease(slider, Qt::LeftButton, {}, at(1 / 101.0));
    QTRY_VERIFY2_WITH_TIMEOUT(whole(), qPrintable(window_->statusLine()->sentence()), patience);
    QTest::qWait(300);

    std::map<QString, std::vector<double>> ms;
    for (const auto& [id, values] : answered)
      for (const auto& [value, time] : values) ms[id].push_back(time);
    qInfo("%s: %d moves, %d frames; gradients answered %.0f %%, median %s; spectrum answered %.0f %%, median %s", qPrintable(model),
          static_cast<int>(moves), watch.frames, 100.0 * static_cast<double>(ms["gradients"].size()) / moves,
          qPrintable(percentiles(ms["gradients"])), 100.0 * static_cast<double>(ms["spectrum"].size()) / moves,
          qPrintable(percentiles(ms["spectrum"])));
    QVERIFY2(watch.empty.empty(), qPrintable(watch.said()));
    QVERIFY(watch.frames > 100);
    QVERIFY2(moves >= 90, qPrintable(QString::number(moves)));
    // A busy machine answers fewer, but it answers both.
    QVERIFY(static_cast<double>(ms["gradients"].size()) >= 0.15 * moves);
    QVERIFY(static_cast<double>(ms["spectrum"].size()) >= 0.15 * moves);
    // The card follows when the hand rests, which a machine that stands still for a quarter of a second looks like too.
    QVERIFY2(described < 0.2 * moves, qPrintable(QString::number(described)));
    QTRY_COMPARE_WITH_TIMEOUT(inCard, plain(QString::fromStdString(session().setup().settings().back().second)), patience);
    // At rest everything is of what is set, in full, and nothing is dimmed.
    QCOMPARE(plain(hyperOf(session().trace(), key.toStdString())),
             plain(QString::fromStdString(session().setup().settings().back().second)));
    const TraceArray* eigenvalues = session().trace()->find("spectrum/0");
    QVERIFY(eigenvalues != nullptr && eigenvalues->shape[0] > 100);
    QVERIFY(session().trace()->find("jacobian/0") != nullptr);
    for (PanelDock* dock : window_->area()->docks())
      if (dock->panel()->id() != "timing") QTRY_COMPARE_WITH_TIMEOUT(dock->formerName(), QString(), patience);
  }

  void whatTakesLongFollowsAPanelInFront_data() {
    QTest::addColumn<QString>("id");
    QTest::addColumn<QString>("ofLab");  // the lab's own slider, else the inspector's
    QTest::addColumn<QString>("array");
    QTest::newRow("gradient lab, its own slider") << "gradient-lab" << "lab.spectral_radius" << "jacobian/0";
    QTest::newRow("gradient lab, the inspector's slider") << "gradient-lab" << "" << "jacobian/0";
    QTest::newRow("sensitivity") << "sensitivity" << "" << "sensitivity";
  }
  /// The picture stays while the hand moves, follows it, and is of what is set when it rests: what the panel hands out as data are its
  /// run's.
  void whatTakesLongFollowsAPanelInFront() {
    QFETCH(QString, id);
    QFETCH(QString, ofLab);
    QFETCH(QString, array);
    const std::string key = "spectral_radius", recorded = array.toStdString();
    Options options;
    options.model = "elman";
    options.given["--task"] = "noise";
    options.given["--length"] = "200";
    WindowTest::open(options, {1600, 1000});
    window_->area()->arrange({"lab", {{"gradient-lab", "sensitivity"}, {"gradients", "spectrum"}}});
    PanelDock* dock = window_->area()->dock(id);
    const auto drawn = [&] {
      return session().trace() && session().trace()->find(recorded) != nullptr && dock->answered() && dock->formerName().isEmpty();
    };
    QTRY_VERIFY_WITH_TIMEOUT(whole() && drawn(), patience);
    const QString before = dock->panel()->dataAsCsv();
    QSlider* slider =
        ofLab.isEmpty() ? window_->inspector()->slider(QString::fromStdString(key)) : dock->panel()->findChild<QSlider*>(ofLab);
    QVERIFY(slider != nullptr && slider->isVisible());

    const auto at = [&](double share) { return QPoint(static_cast<int>(6 + share * (slider->width() - 12)), slider->height() / 2); };
    Watch watch(window_->area());
    std::set<QString> pictures;  // that were there while the hand moved
    const double from = static_cast<double>(slider->value()) / slider->maximum();
    QTest::mousePress(slider, Qt::LeftButton, {}, at(from));
    QVERIFY(slider->isSliderDown());
    for (int i = 0; i < 30; ++i) {
      QTest::mouseMove(slider, at(0.1 + 0.6 * i / 30.0));
      QTest::qWait(50);
      pictures.insert(dock->panel()->dataAsCsv());
    }
    // How often it follows is a matter of the machine; that it is of a hand that stands still, before it lets go, is not.
    QTRY_VERIFY_WITH_TIMEOUT(
        plain(hyperOf(session().trace(), key)) == plain(QString::fromStdString(session().setup().settings().back().second)) &&
            dock->panel()->dataAsCsv() != before,
        patience);
    QVERIFY(slider->isSliderDown());
    QTest::mouseRelease(slider, Qt::LeftButton, {}, at(0.68));
    QTRY_VERIFY2_WITH_TIMEOUT(whole() && drawn(), qPrintable(window_->statusLine()->sentence()), patience);
    qInfo("%s: %zu pictures while it moved, %d frames", qPrintable(id), pictures.size(), watch.frames);
    QVERIFY2(watch.empty.empty(), qPrintable(watch.said()));
    // At rest: of what is set, and another picture than before.
    const QString value = plain(hyperOf(session().trace(), key));
    QCOMPARE(value, plain(QString::fromStdString(session().setup().settings().back().second)));
    const QString after = dock->panel()->dataAsCsv();
    QVERIFY(after != before);
    const TraceArray* now = session().trace()->find(recorded);
    const double first = (*now->real)[0];
    QVERIFY2(after.contains(QString::fromLatin1(csvNumber(first))), qPrintable(QString::number(first)));
  }

  void theZoomBeforeComesBack() {
    Options options;
    options.model = "elman";
    open(options);
    TimeLink* time = window_->time();
    const std::int64_t last = time->length() - 1;
    const auto range = [&] { return std::pair(time->first(), time->last()); };
    // Several turns of the wheel over a plot are one zoom.
    auto* plot = dynamic_cast<PlotPanel*>(panel("gradients"))->plot();
    const auto zoomIn = [&] {
      const QPointF at = plot->axisRect()->rect().center();
      for (int i = 0; i < 3; ++i) {
        QWheelEvent event(at, plot->mapToGlobal(at), {}, {0, 120}, Qt::NoButton, Qt::NoModifier, Qt::NoScrollPhase, false);
        QApplication::sendEvent(plot, &event);
      }
    };
    zoomIn();
    const auto once = range();
    QVERIFY(once.second - once.first < last / 1.5);
    QTest::qWait(600);  // another gesture
    zoomIn();
    QVERIFY(range() != once);
    QAction* back = window_->action("zoomBack");
    back->trigger();
    QCOMPARE(range(), once);
    back->trigger();
    QCOMPARE(range(), std::pair(std::int64_t{0}, last));
    back->trigger();
    QCOMPARE(range(), std::pair(std::int64_t{0}, last));
    QTRY_COMPARE(plot->lastStep(), last);
  }

  void theFormerModelIsNamedUntilTheNewOneIsThere() {
    Options options;
    options.model = "elman";
    options.given["--task"] = "noise";
    options.given["--length"] = "180000";  // whose first pictures take far longer than a picture is left undimmed
    open(options);
    PanelDock* dock = window_->area()->dock("gradients");
    QCOMPARE(dock->formerName(), QString());
    Watch watch(window_->area());
    QTreeWidgetItem* item = window_->models()->itemOf("lstm");
    window_->models()->tree()->scrollToItem(item);
    QTest::mouseClick(window_->models()->tree()->viewport(), Qt::LeftButton, {}, window_->models()->tree()->visualItemRect(item).center());
    QCOMPARE(session().setup().preset, std::string("lstm"));
    QTRY_COMPARE(dock->formerName(), QString("Elman network"));  // of a run that takes a while
    QCOMPARE(session().trace()->info.preset, std::string("elman"));
    // Its own pictures are not dimmed, whatever of it is still to come.
    QTRY_VERIFY_WITH_TIMEOUT(session().trace()->info.preset == "lstm", 2 * patience);
    QTRY_COMPARE(dock->formerName(), QString());
    QTRY_VERIFY_WITH_TIMEOUT(session().trace()->find("spectrum/0") != nullptr, 2 * patience);
    QTRY_COMPARE(window_->area()->dock("spectrum")->formerName(), QString());
    for (const QString id : {"spectrum", "trajectories", "gradients"})
      for (const auto& [what, count] : watch.empty) QVERIFY2(!what.startsWith(id), qPrintable(watch.said()));
  }
};

int main(int argc, char** argv) { return test::runWindowTest<TestDrag>(argc, argv, "drag-test"); }

#include "test_drag.moc"
