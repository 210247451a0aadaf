// SPDX-License-Identifier: GPL-3.0-or-later
// The four plane panels on a hand-made trace: what they say, show, save and give back, with real events.
#include <QApplication>
#include <QClipboard>
#include <QComboBox>
#include <QDir>
#include <QElapsedTimer>
#include <QImage>
#include <QPushButton>
#include <QSignalSpy>
#include <QTemporaryDir>
#include <QTest>
#include <cmath>

#include "panels/gating/gating.h"
#include "panels/gradients/gradients.h"
#include "panels/spectrum/spectrum.h"
#include "panels/timing/timing.h"
#include "places.h"
#include "plot/plot_panel.h"
#include "shown_panel.h"
#include "synthetic/synthetic_trace.h"

using namespace reclab;
using test::Shown;
using test::synthetic_trace;
using test::SyntheticOptions;
using test::textsOf;

namespace {

QPoint inTimeRect(Plot* plot, double step) {
  QCPAxisRect* rect = plot->axisRect(0);
  return {static_cast<int>(std::lround(rect->axis(QCPAxis::atBottom)->coordToPixel(step))), rect->rect().center().y()};
}

QStringList lines(const QString& csv) { return csv.split(u'\n', Qt::SkipEmptyParts); }

void wheel(Plot* plot, const QPointF& at, int delta) {
  QWheelEvent event(at, plot->mapToGlobal(at), {}, {0, delta}, Qt::NoButton, Qt::NoModifier, Qt::NoScrollPhase, false);
  QApplication::sendEvent(plot, &event);
}

template <class P>
void checkFigures(P& panel) {
  QTemporaryDir folder;
  const QString png = folder.filePath("f.png"), svg = folder.filePath("f.svg"), pdf = folder.filePath("f.pdf");
  QCOMPARE(panel.saveFigure(png, Panel::Format::png, FigureStyle::asShown()), QString());
  QCOMPARE(panel.saveFigure(svg, Panel::Format::svg, FigureStyle::asShown()), QString());
  QCOMPARE(panel.saveFigure(pdf, Panel::Format::pdf, FigureStyle::asShown()), QString());
  const QImage image(png);
  QVERIFY(image.width() >= 2 * 400 && image.height() >= 2 * 250);
  const QStringList texts = textsOf(svg);
  QVERIFY2(!texts.isEmpty() && texts[0].startsWith(panel.title()), qPrintable(texts.join(u'|')));
  QVERIFY(texts[0].contains(u"LSTM") && texts[0].contains(u"sunspots.csv"));
  QFile document(pdf);
  QVERIFY(document.open(QIODevice::ReadOnly));
  QVERIFY(document.read(5) == "%PDF-");
}

}  // namespace

class TestPanels : public QObject {
  Q_OBJECT
 private slots:
  // ------------------------------------------------------------------------------------------------------------ spectrum

  void spectrumSaysWhichStepItShows() {
    Shown<SpectrumPanel> shown(synthetic_trace());
    QSignalSpy changed(&shown.panel, &Panel::headlineChanged);
    shown->setTime(120);
    QVERIFY2(shown->note().contains("at step 120") && !shown->note().contains("nearest"), qPrintable(shown->note()));
    shown->setTime(124);
    QVERIFY2(shown->note().contains("at step 120, the nearest to step 124 that was computed"), qPrintable(shown->note()));
    // The largest modulus of row 12 (step 120), as the trace was made.
    const double largest = 0.6 + 0.397 * std::sqrt(15.0 / 16.0) * std::pow(std::cos(1.2), 2.0);
    QCOMPARE(shown->headline(), QStringLiteral("|λ|max ") + number(largest));
    QVERIFY(changed.size() >= 1);
  }

  void spectrumCircleIsRound() {
    for (const QSize size : {QSize(700, 300), QSize(300, 600)}) {
      Shown<SpectrumPanel> shown(synthetic_trace(), size);
      const QPointF right = shown->pixelOf({1, 0}), left = shown->pixelOf({-1, 0}), top = shown->pixelOf({0, 1}),
                    bottom = shown->pixelOf({0, -1});
      QVERIFY(std::abs((right.x() - left.x()) - (bottom.y() - top.y())) < 0.5);
      QVERIFY(shown->rect()->rect().contains(right.toPoint()) && shown->rect()->rect().contains(top.toPoint()));
    }
  }

  void spectrumHoverTellsTheEigenvalue() {
    SyntheticOptions options;
    options.spectra = false;
    auto trace = std::make_shared<Trace>(*synthetic_trace(options));
    TraceArray spectrum;
    spectrum.key = "spectrum/0";
    spectrum.shape = {1, 2};
    spectrum.axes = {{"time", "", {}}, {"eigenvalue", "", {}}};
    spectrum.complex = std::make_shared<const std::vector<std::complex<double>>>(std::vector<std::complex<double>>{{0.0, 0.9}, {0.5, 0.0}});
    trace->put(std::move(spectrum));
    trace->info.spectra = {{false, false, "eigenvalues of the transition"}};
    Shown<SpectrumPanel> shown(trace);
    const QString tip = shown->tipAt(shown->pixelOf({0.0, 0.9}) + QPointF(2, 2));
    QVERIFY2(tip.contains(QStringLiteral("|λ| = 0.9")), qPrintable(tip));
    QVERIFY2(tip.contains("time constant 9.491 steps"), qPrintable(tip));  // -1 / ln 0.9
    QVERIFY2(tip.contains("frequency 0.25 cycles per step"), qPrintable(tip));
    // A step is a twelfth of a year.
    QVERIFY2(tip.contains("9.491 steps, 0.7909 year") && tip.contains("cycles per step, 3 per year"), qPrintable(tip));
    QVERIFY(shown->tipAt(shown->pixelOf({0.7, 0.7})).isEmpty());
    QVERIFY(shown->note().contains("the same at every step"));
  }

  void spectrumOfOneWildStepDoesNotHideTheOthers() {
    const auto extent = [](double wild) {
      SyntheticOptions options;
      options.spectra = false;
      auto trace = std::make_shared<Trace>(*synthetic_trace(options));
      TraceArray spectrum;
      spectrum.key = "spectrum/0";
      spectrum.shape = {40, 2};
      spectrum.axes = {{"time", "", {}}, {"eigenvalue", "", {}}};
      std::vector<std::complex<double>> values;
      for (int row = 0; row < 40; ++row) {
        values.emplace_back(row == 0 ? wild : 0.9, 0.0);
        values.emplace_back(0.0, 0.5);
        spectrum.steps.push_back(row);
      }
      spectrum.complex = std::make_shared<const std::vector<std::complex<double>>>(values);
      trace->put(std::move(spectrum));
      trace->info.spectra = {{false, true, "eigenvalues of the transition"}};
      Shown<SpectrumPanel> shown(trace);
      return std::pair(shown->rect()->axis(QCPAxis::atBottom)->range().size(), shown->note());
    };
    const auto [calm, nothing] = extent(0.9);
    QVERIFY2(!nothing.contains("outside the picture"), qPrintable(nothing));
    const auto [same, said] = extent(75.0);
    QVERIFY(same < 1.1 * calm);  // a sentence more takes a line of its height
    QVERIFY2(said.contains(QStringLiteral("At 1 of 40 steps some are far outside the picture, up to |λ| = 75.")), qPrintable(said));
    const auto [wider, near] = extent(3.5);  // not far: it is shown
    QVERIFY(wider > 1.4 * calm);
    QVERIFY2(!near.contains("outside the picture"), qPrintable(near));
  }

  void spectrumZoomsAndResets() {
    Shown<SpectrumPanel> shown(synthetic_trace());
    const QCPRange home = shown->rect()->axis(QCPAxis::atBottom)->range();
    wheel(shown.plot(), shown->pixelOf({0.5, 0.5}), 240);
    const QCPRange near = shown->rect()->axis(QCPAxis::atBottom)->range();
    QVERIFY(near.size() < 0.9 * home.size());
    // Another run of the same kind keeps the view.
    SyntheticOptions options;
    options.units = 20;
    shown->setTrace(synthetic_trace(options));
    shown.plot()->replot();
    QVERIFY(std::abs(shown->rect()->axis(QCPAxis::atBottom)->range().size() - near.size()) < 0.02 * near.size());
    QTest::mouseDClick(shown.plot(), Qt::LeftButton, {}, shown->rect()->rect().center());
    shown.plot()->replot();
    QVERIFY(std::abs(shown->rect()->axis(QCPAxis::atBottom)->range().size() - home.size()) < 0.02 * home.size());
  }

  void spectrumIsOfTheLayerThatIsChosen() {
    SyntheticOptions options;
    options.layers = 2;
    Shown<SpectrumPanel> shown(synthetic_trace(options));
    auto* layers = shown->findChild<QComboBox*>("layer");
    QVERIFY(layers && layers->isVisible() && layers->count() == 2);
    QTest::keyClick(layers, Qt::Key_Down);
    QTest::keyClick(layers, Qt::Key_Return);
    QCOMPARE(layers->currentText(), QStringLiteral("layer 1"));
  }

  void spectrumOfThousandsIsQuick() {
    SyntheticOptions options;
    options.units = 4096;
    options.gates = options.gradients = options.timing = false;
    Shown<SpectrumPanel> shown(synthetic_trace(options));
    QElapsedTimer clock;
    qint64 least = 1'000'000'000;
    for (int i = 0; i < 5; ++i) {
      clock.start();
      shown->setTime(10 * i + 10);
      shown.plot()->layer("now")->replot();
      least = std::min(least, clock.nsecsElapsed());
    }
    QVERIFY2(least < 60'000'000, qPrintable(QString::number(least)));
  }

  void spectrumCsvHasEveryEigenvalue() {
    SpectrumPanel panel;
    panel.setTrace(synthetic_trace());
    const QStringList csv = lines(panel.dataAsCsv());
    QCOMPARE(csv[0], QStringLiteral("layer,step,eigenvalue,real,imaginary,modulus"));
    QCOMPARE(csv.size(), 1 + 30 * 16);
    const QStringList cells = csv[1 + 12 * 16].split(u',');
    QCOMPARE(cells[1], QStringLiteral("120"));
    QVERIFY(std::abs(std::hypot(cells[3].toDouble(), cells[4].toDouble()) - cells[5].toDouble()) < 1e-12);
  }

  void pinnedSpectraAreRings() {
    SyntheticOptions options;
    options.units = 3;
    Shown<SpectrumPanel> shown(synthetic_trace());
    const QImage before = shown->grab().toImage();
    shown->setPinned({{synthetic_trace(options), QColor(255, 0, 255), "other"}});
    shown.plot()->replot();
    const QImage after = shown->grab().toImage();
    const auto pink = [](const QImage& image) {
      int count = 0;
      for (int y = 0; y < image.height(); ++y)
        for (int x = 0; x < image.width(); ++x)
          count += image.pixelColor(x, y).green() < 100 && image.pixelColor(x, y).red() > 200 && image.pixelColor(x, y).blue() > 200;
      return count;
    };
    QCOMPARE(pink(before), 0);
    QVERIFY(pink(after) > 10);
  }

  // -------------------------------------------------------------------------------------------------------------- gating

  void gatingCountsTheSaturated() {
    Shown<GatingPanel> shown(synthetic_trace());
    shown->setTime(124);
    int closed = 0, open = 0;
    for (int j = 0; j < 16; ++j) {
      const double v = test::synthetic_gate(124, j, 0.0);
      closed += v < 0.1;
      open += v > 0.9;
    }
    QCOMPARE(shown->headline(), QStringLiteral("%1 % saturated").arg(std::lround(100.0 * (closed + open) / 16.0)));
    QVERIFY2(shown->saturation().contains(QStringLiteral("%1 % of 16 units are nearly closed").arg(std::lround(100.0 * closed / 16.0))),
             qPrintable(shown->saturation()));
  }

  void gatingChoosesGatesAndRemembers() {
    Shown<GatingPanel> shown(synthetic_trace());
    auto* gates = shown->findChild<QComboBox*>("gate");
    QVERIFY(gates && gates->isVisible());
    QCOMPARE(gates->count(), 4);
    QCOMPARE(gates->currentText(), QStringLiteral("forget"));
    gates->setFocus();
    for (int i = 0; i < 3; ++i) QTest::keyClick(gates, Qt::Key_Down);
    QCOMPARE(gates->currentText(), QStringLiteral("step size"));
    QVERIFY2(shown->saturation().contains("cannot saturate"), qPrintable(shown->saturation()));
    QVERIFY(shown->headline().startsWith("mean"));
    shown->setTrace(synthetic_trace());
    QCOMPARE(gates->currentText(), QStringLiteral("step size"));
  }

  void gatingFlattensMoreDimensionsAndKeepsSteps() {
    SyntheticOptions options;
    options.gates = false;
    options.every = 5;
    auto trace = std::make_shared<Trace>(*synthetic_trace(options));
    TraceArray gate =
        test::unit_array("gate/0/decay", trace->steps, 12, [](double t, double j) { return (t + j) / 400.0; }, "per head and key");
    gate.shape = {static_cast<std::int64_t>(trace->steps.size()), 3, 4};
    gate.axes = {{"time", "", {}}, {"head", "", {}}, {"key", "", {}}};
    gate.high = 1.0;
    trace->put(std::move(gate));
    Shown<GatingPanel> shown(trace);
    QCOMPARE(shown->heatmap().units(), 12);
    shown->setTime(102);
    QVERIFY2(shown->saturation().contains("step 100, the nearest to step 102 that was recorded"), qPrintable(shown->saturation()));
    const QStringList csv = lines(shown->dataAsCsv());
    QCOMPARE(csv.size(), 61);
    QVERIFY(csv[0].startsWith("step,time,mean,quantile_10,quantile_90,share_below,share_above,gate/0/decay/0,"));
    const QStringList cells = csv[3].split(u',');
    QCOMPARE(cells[0], QStringLiteral("10"));
    QCOMPARE(cells[7].toDouble(), 10.0 / 400.0);
    QVERIFY(std::abs(cells[2].toDouble() - (10.0 + 5.5) / 400.0) < 1e-12);
  }

  // ----------------------------------------------------------------------------------------------------------- gradients

  void gradientsGiveTheVerdict() {
    Shown<GradientsPanel> shown(synthetic_trace());
    QCOMPARE(shown->verdict().fate, Fate::vanishes);
    QVERIFY(std::abs(shown->verdict().slope + 1.0 / 23.0) < 0.001);
    QVERIFY2(shown->verdict().sentence.startsWith("The gradient of cell vanishes: it loses a decade every 23 steps"),
             qPrintable(shown->verdict().sentence));
    QVERIFY(shown->headline().startsWith(QStringLiteral("−0.043")));
  }

  void gradientsOfALossAtEveryStepAskTheJacobian() {
    auto trace = std::make_shared<Trace>(*synthetic_trace());
    trace->info.loss = "task: mean squared error";
    GradientsPanel panel;
    panel.setTrace(trace);
    QVERIFY2(panel.verdict().sentence.startsWith("The Jacobian"), qPrintable(panel.verdict().sentence));
    QVERIFY(std::abs(panel.verdict().slope + 1.0 / 23.0) < 1e-9);
  }

  void gradientsPlotWhatNoDoubleHolds() {
    SyntheticOptions options;
    options.decades_per_step = -17.0;  // down to 1e-5083
    Shown<GradientsPanel> shown(synthetic_trace(options));
    shown->setTime(290);
    shown.plot()->replot();
    const QVector<QString> labels = shown.plot()->axisRect(0)->axis(QCPAxis::atLeft)->tickVectorLabels();
    QVERIFY2(labels.contains(QStringLiteral("10⁻⁵⁰⁰⁰")) || labels.contains(QStringLiteral("10⁻⁴⁰⁰⁰")),
             qPrintable(QStringList(labels.begin(), labels.end()).join(u' ')));
    QCOMPARE(shown->verdict().fate, Fate::vanishes);
  }

  void gradientsCurvesAreHiddenByTheLegend() {
    Shown<GradientsPanel> shown(synthetic_trace());
    const QCPAxis* norm = shown.plot()->axisRect(0)->axis(QCPAxis::atLeft);
    const double low = norm->range().lower;
    const QPoint entry = shown->legend()->placeOf("jacobian_min/0").center();
    QVERIFY(!entry.isNull());
    QTest::mouseClick(shown.plot(), Qt::LeftButton, {}, entry);
    QVERIFY(norm->range().lower > low + 5);  // the rest gets the room
    shown->setTrace(synthetic_trace());
    QVERIFY(norm->range().lower > low + 5);  // and keeps it in the next run
  }

  void gradientsTimeAxisPicksZoomsAndIsKept() {
    Shown<GradientsPanel> shown(synthetic_trace());
    QSignalSpy picked(&shown.panel, &Panel::timePicked), zoomed(&shown.panel, &Panel::timeRangePicked);
    QTest::mouseClick(shown.plot(), Qt::LeftButton, {}, inTimeRect(shown.plot(), 77));
    QCOMPARE(picked.size(), 1);
    QVERIFY(std::abs(picked[0][0].toLongLong() - 77) <= 1);
    wheel(shown.plot(), inTimeRect(shown.plot(), 150), 240);
    QCOMPARE(zoomed.size(), 1);
    const auto first = shown.plot()->firstStep();
    QVERIFY(first > 10);
    shown->setTrace(synthetic_trace());
    QCOMPARE(shown.plot()->firstStep(), first);
    SyntheticOptions longer;
    longer.length = 500;
    shown->setTrace(synthetic_trace(longer));
    QCOMPARE(shown.plot()->firstStep(), 0);
    QCOMPARE(shown.plot()->lastStep(), 499);
    shown->setTimeRange(100, 200);
    QCOMPARE(shown.plot()->firstStep(), 100);
    QCOMPARE(zoomed.size(), 1);
  }

  void pinnedGradientsHaveTheirColour() {
    Shown<GradientsPanel> shown(synthetic_trace());
    const int before = shown.plot()->graphCount();
    shown->setPinned({{synthetic_trace(), QColor(255, 0, 255), "width 32"}});
    QCOMPARE(shown.plot()->graphCount(), before + 4);  // hidden and cell, the largest and the smallest singular value
    shown.plot()->replot();
    QVERIFY(!shown->legend()->placeOf("pinned/width 32").isNull());
    QTest::mouseClick(shown.plot(), Qt::LeftButton, {}, shown->legend()->placeOf("pinned/width 32").center());
    int pink = 0;
    for (int i = 0; i < shown.plot()->graphCount(); ++i)
      pink += shown.plot()->graph(i)->pen().color().rgb() == QColor(255, 0, 255).rgb() && !shown.plot()->graph(i)->visible();
    QCOMPARE(pink, 4);
    // Its two states have one colour and differ in their dashes, singular values are dotted, and the one entry says which states it stands
    // for.
    QSet<Qt::PenStyle> styles;
    for (int i = 0; i < shown.plot()->graphCount(); ++i)
      if (shown.plot()->graph(i)->pen().color() == QColor(255, 0, 255)) styles << shown.plot()->graph(i)->pen().style();
    QCOMPARE(styles, (QSet<Qt::PenStyle>{Qt::SolidLine, Qt::DashLine, Qt::DotLine}));
    QVERIFY(shown->legend()->tipAt(QPointF(shown->legend()->placeOf("pinned/width 32").center())).contains("dashed cell"));
    const QString header = lines(shown->dataAsCsv())[0];
    QVERIFY2(header.contains("log10 gradient/state/0/hidden [width 32]") && header.contains("log10 jacobian_min/0 [width 32]"),
             qPrintable(header));
  }

  void noPinnedRunIsLeftOutWithoutAWord() {
    SyntheticOptions bare;
    bare.gates = bare.spectra = bare.gradients = bare.timing = false;
    const std::vector<Panel::Run> runs{{synthetic_trace(bare), QColor(255, 0, 255), "bare"},
                                       {synthetic_trace(), QColor(0, 200, 200), "full"}};
    const auto check = [&](auto& shown, const QString& word) {
      shown->setPinned(runs);
      shown.plot()->replot();
      QVERIFY2(!shown->legend()->placeOf("pinned/bare").isNull() && !shown->legend()->placeOf("pinned/full").isNull(), qPrintable(word));
      QTemporaryDir folder;
      const QString file = folder.filePath("figure.svg");
      QCOMPARE(shown->saveFigure(file, Panel::Format::svg), QString());
      const QStringList texts = textsOf(file);  // the figure names them too
      QVERIFY2(texts.contains("bare: " + word), qPrintable(texts.join('|')));
      QVERIFY2(std::any_of(texts.begin(), texts.end(), [](const QString& one) { return one.startsWith("full"); }),
               qPrintable(texts.join('|')));
    };
    Shown<GradientsPanel> gradients(synthetic_trace());
    check(gradients, "no gradients");
    Shown<SpectrumPanel> spectrum(synthetic_trace());
    check(spectrum, "no spectrum");
    QVERIFY(lines(spectrum->dataAsCsv())[0].endsWith(",run"));
    QVERIFY(lines(spectrum->dataAsCsv()).back().endsWith(",full"));
    Shown<GatingPanel> gating(synthetic_trace());
    check(gating, "no gates");
    QVERIFY(lines(gating->dataAsCsv())[0].endsWith(",mean [full]"));
  }

  void aGateOfAnotherNameStandsForOneThatAPinnedRunLacks() {
    const auto other = std::make_shared<Trace>();
    other->info = synthetic_trace()->info;
    other->steps = synthetic_trace()->steps;
    other->time = synthetic_trace()->time;
    const std::string key = Shown<GatingPanel>(synthetic_trace()).find<QComboBox>("gate")->currentData().toString().toStdString();
    TraceArray gate = *synthetic_trace()->find(key);
    gate.key = "gate/0/renewed_part";
    other->put(gate);
    gate.key = "gate/0/scale";
    gate.high = 7.0;  // goes on no axis with the other
    other->put(gate);
    Shown<GatingPanel> shown(synthetic_trace());
    const int graphs = shown.plot()->graphCount();
    auto* beside = shown.find<QComboBox>("beside");
    shown->setPinned({{synthetic_trace(), QColor(0, 200, 200), "same"}});
    QVERIFY(beside->isHidden());
    shown->setPinned({{other, QColor(255, 0, 255), "GRU"}, {synthetic_trace(), QColor(0, 200, 200), "same"}});
    QVERIFY(beside->isVisible());
    QCOMPARE(shown.plot()->graphCount(), graphs + 1);
    const QString name = QString::fromStdString(key).section('/', 2);
    QVERIFY2(shown.texts().contains("GRU: no " + name + ", but renewed part"), qPrintable(shown.texts().join('|')));
    QCOMPARE(beside->count(), 2);
    beside->setCurrentIndex(1);
    emit beside->activated(1);
    QCOMPARE(shown.plot()->graphCount(), graphs + 2);
    QVERIFY2(shown.texts().contains("GRU (renewed part)"), qPrintable(shown.texts().join('|')));
    QVERIFY(lines(shown->dataAsCsv())[0].endsWith(",mean of renewed_part [GRU],mean [same]"));
    // It is kept for this gate, and another has none yet.
    auto* gates = shown.find<QComboBox>("gate");
    gates->setCurrentIndex(1);
    emit gates->activated(1);
    QCOMPARE(beside->currentIndex(), 0);
    gates->setCurrentIndex(0);
    emit gates->activated(0);
    QCOMPARE(beside->currentIndex(), 1);
  }

  void pinnedGatesAreLinesAndOutlines() {
    SyntheticOptions wide;
    wide.units = 32;
    Shown<GatingPanel> shown(synthetic_trace());
    const int graphs = shown.plot()->graphCount();
    shown->setPinned({{synthetic_trace(wide), QColor(255, 0, 255), "width 32"}});
    QCOMPARE(shown.plot()->graphCount(), graphs + 1);
    const QCPGraph* mean = shown.plot()->graph(graphs);
    QCOMPARE(mean->pen().color(), QColor(255, 0, 255));
    const auto trace = synthetic_trace(wide);
    const TraceArray* gate = trace->find(shown->findChild<QComboBox*>("gate")->currentData().toString().toStdString());
    double expected = 0;
    for (int j = 0; j < 32; ++j) expected += (*gate->real)[static_cast<std::size_t>(50 * 32 + j)] / 32.0;
    QVERIFY(std::abs(mean->data()->at(50)->value - expected) < 1e-12);
    // Gone when it is unpinned.
    shown->setPinned({});
    QCOMPARE(shown.plot()->graphCount(), graphs);
    QVERIFY(shown->legend()->placeOf("pinned/width 32").isNull());
  }

  void theGateThatMattersIsShownUntilAnotherIsPicked() {
    Shown<GatingPanel> shown(synthetic_trace());
    auto* gates = shown->findChild<QComboBox*>("gate");
    QVERIFY(gates->count() >= 2);
    const QString second = gates->itemData(1).toString();
    shown->lookAt("lstm", second.section('/', 2), false);
    QCOMPARE(gates->currentData().toString(), second);
    // A choice by hand stays when the model comes again, until it is asked for.
    gates->setFocus();
    QTest::keyClick(gates, Qt::Key_Up);
    const QString picked = gates->currentData().toString();
    QVERIFY(picked != second);
    shown->lookAt("lstm", second.section('/', 2), false);
    shown->setTrace(synthetic_trace());
    QCOMPARE(gates->currentData().toString(), picked);
    shown->lookAt("lstm", second.section('/', 2), true);
    QCOMPARE(gates->currentData().toString(), second);
  }

  void theLossIsNamedAndValued() {
    auto trace = std::make_shared<Trace>(*synthetic_trace());
    trace->info.loss = "last: L = ½ |y_T|², the output of the last step";
    trace->info.loss_value = 0.03125;
    Shown<GradientsPanel> shown(trace);
    QCOMPARE(shown->lossText(), QString("L = ½ |y_T|², the output of the last step. It is 0.03125."));
  }

  void gradientsOfManyLayersShareTheLegend() {
    SyntheticOptions options;
    options.layers = 8;
    Shown<GradientsPanel> shown(synthetic_trace(options));
    QVERIFY(!shown->legend()->placeOf(QStringLiteral("σ max")).isNull());
    QVERIFY(shown->legend()->placeOf("jacobian/0").isNull());
    QVERIFY(shown->legend()->outerRect().height() < 80);
  }

  void gradientsCsv() {
    GradientsPanel panel;
    panel.setTrace(synthetic_trace());
    const QStringList csv = lines(panel.dataAsCsv());
    QCOMPARE(csv[0],
             QStringLiteral("step,time,log10 gradient/state/0/hidden,log10 gradient/state/0/cell,log10 jacobian/0/0,log10 jacobian/0/1,"
                            "log10 jacobian/0/2,log10 jacobian/0/3,log10 jacobian_min/0"));
    QCOMPARE(csv.size(), 301);
    QCOMPARE(csv[1].split(u',')[4].toDouble(), -299.0 / 23.0);
  }

  // -------------------------------------------------------------------------------------------------------------- timing

  void timingOffersItself() {
    SyntheticOptions options;
    options.timing = false;
    TimingPanel panel;
    panel.resize(400, 300);
    panel.setTrace(synthetic_trace(options));
    panel.show();
    QVERIFY(QTest::qWaitForWindowExposed(&panel));
    QVERIFY(!panel.emptyReason().isEmpty());
    QSignalSpy wanted(&panel, &Panel::requested);
    auto* offer = panel.findChild<QPushButton*>(QStringLiteral("offer"));
    QVERIFY(offer && offer->isVisible());
    QTest::mouseClick(offer, Qt::LeftButton);
    QCOMPARE(wanted.size(), 1);
    const auto choice = std::get<StudyChoice>(wanted[0][0].value<Request>());
    QVERIFY(choice.study == "time" && choice.act == StudyChoice::Act::compute);
    QVERIFY(TimingChoices::Values(choice.values.begin(), choice.values.end()) == TimingChoices::usual());
    panel.setTrace(synthetic_trace());
    QVERIFY(panel.emptyReason().isEmpty());
    QVERIFY(!offer->isVisible());
    // 6e-7 T^1.02 + 2e-5 and 3e-9 T^1.97 + 2e-5 meet between 256 and 512; on the lines through the points that is 263.8.
    QCOMPARE(panel.headline(), QStringLiteral("scan overtakes attention at T = 264"));
    // What the quartiles do not tell apart is no overtaking.
    auto noisy = std::make_shared<Trace>(*synthetic_trace());
    for (const char* form : {"scan", "attention"}) {
      const TraceArray* median = noisy->find(std::string("timing/") + form + "/seconds");
      for (const char* end : {"low", "high"}) {
        TraceArray band = *noisy->find(std::string("timing/") + form + "/" + end);
        auto values = *median->real;
        for (double& x : values) x *= std::string(end) == "low" ? 0.1 : 10.0;
        band.real = std::make_shared<const std::vector<double>>(values);
        noisy->put(std::move(band));
      }
    }
    panel.setTrace(noisy);
    QCOMPARE(panel.headline(), QStringLiteral("scan is fastest at T = 16,384"));
  }

  void timingCsvAndLegend() {
    Shown<TimingPanel> shown(synthetic_trace());
    const QStringList csv = lines(shown->dataAsCsv());
    QVERIFY(csv[0].startsWith(QStringLiteral("form,length,seconds,low,high,exponent,")));
    QCOMPARE(csv.size(), 1 + 3 * 9);
    QVERIFY(csv[1].startsWith("sequential,64,"));
    QVERIFY(!shown->legend()->placeOf("scan").isNull());
    QTemporaryDir folder;
    QCOMPARE(shown->saveFigure(folder.filePath("t.svg"), Panel::Format::svg), QString());
    const QString texts = textsOf(folder.filePath("t.svg")).join(u'|');
    QVERIFY2(texts.contains(QStringLiteral("scan  ∝ T|1.02")), qPrintable(texts));  // the exponent in digits as large as the others
  }

  // ----------------------------------------------------------------------------------------------------------------- all

  void emptyPanelsSayWhatToDo() {
    SpectrumPanel spectrum;
    GatingPanel gating;
    GradientsPanel gradients;
    TimingPanel timing;
    for (Panel* panel : std::initializer_list<Panel*>{&spectrum, &gating, &gradients, &timing}) {
      QVERIFY(panel->emptyReason().contains("Nothing has run yet"));
      auto bare = std::make_shared<Trace>();
      bare->info.length = 10;
      bare->info.title = "Elman";
      panel->setTrace(bare);
      QVERIFY2(panel->emptyReason().endsWith(u'.') && panel->headline().isEmpty(), qPrintable(panel->id()));
      panel->setTime(3);
      auto stopped = std::make_shared<Trace>(*bare);
      stopped->info.outcome = Outcome::diverged;
      stopped->info.sentence = "gate/0/forget became non-finite at step 31.";
      panel->setTrace(stopped);
      if (panel != &timing) QVERIFY2(panel->emptyReason().contains("step 31"), qPrintable(panel->emptyReason()));
      panel->setTrace(synthetic_trace());
      QVERIFY(panel->emptyReason().isEmpty());
      panel->setTrace(nullptr);
      QVERIFY(panel->emptyReason().contains("Nothing has run yet"));
      QTemporaryDir folder;
      QCOMPARE(panel->saveFigure(folder.filePath("e.svg"), Panel::Format::svg), panel->emptyReason());  // and no file
      QVERIFY(!QFile::exists(folder.filePath("e.svg")));
    }
  }

  void figuresOfAllPanels() {
    Shown<SpectrumPanel> spectrum(synthetic_trace());
    Shown<GatingPanel> gating(synthetic_trace());
    Shown<GradientsPanel> gradients(synthetic_trace());
    Shown<TimingPanel> timing(synthetic_trace());
    checkFigures(spectrum.panel);
    checkFigures(gating.panel);
    checkFigures(gradients.panel);
    checkFigures(timing.panel);
    // One that was never shown has a figure too, and a round circle in it.
    SpectrumPanel hidden;
    hidden.setTrace(synthetic_trace());
    checkFigures(hidden);
    QVERIFY(std::abs((hidden.pixelOf({1, 0}).x() - hidden.pixelOf({-1, 0}).x()) -
                     (hidden.pixelOf({0, -1}).y() - hidden.pixelOf({0, 1}).y())) < 0.5);
    QGuiApplication::clipboard()->clear();
    gradients->copyFigure();
    QVERIFY(QGuiApplication::clipboard()->image().width() >= 2 * 560);
  }

  void panelsFollowThePalette() {
    Shown<GatingPanel> gating(synthetic_trace());
    Shown<GradientsPanel> gradients(synthetic_trace());
    const QColor ink = gradients.plot()->graph(0)->pen().color();
    QPalette dark;
    dark.setColor(QPalette::Base, QColor(34, 38, 44));
    dark.setColor(QPalette::Text, QColor(228, 231, 236));
    gating->setPalette(dark);
    gradients->setPalette(dark);
    QVERIFY(gating.plot()->theme().dark);
    QVERIFY(gradients.plot()->graph(0)->pen().color() != ink);
    gradients.plot()->replot();
    QCOMPARE(gradients->grab().toImage().pixelColor(2, gradients->height() - 2), QColor(34, 38, 44));
  }

  void movingTimeIsCheap() {
    SyntheticOptions options;
    options.length = 3000;
    options.units = 128;
    const auto trace = synthetic_trace(options), other = synthetic_trace(options);
    Shown<SpectrumPanel> spectrum(trace);
    Shown<GatingPanel> gating(trace);
    Shown<GradientsPanel> gradients(trace);
    const auto check = [&](auto& shown, const char* name) {
      double move = 1e9, set = 1e9;
      for (int i = 0; i < 10; ++i) {
        QElapsedTimer clock;
        clock.start();
        shown->setTime(50 + 100 * i);
        shown.plot()->layer("now")->replot();
        shown.plot()->layer("overlay")->replot();
        move = std::min(move, static_cast<double>(clock.nsecsElapsed()) / 1e6);
        clock.start();
        shown->setTrace(i % 2 ? trace : other);
        set = std::min(set, static_cast<double>(clock.nsecsElapsed()) / 1e6);
      }
      QVERIFY2(move < 5.0, qPrintable(QStringLiteral("%1: setTime takes %2 ms").arg(name).arg(move)));
      QVERIFY2(set < 60.0, qPrintable(QStringLiteral("%1: setTrace takes %2 ms").arg(name).arg(set)));
      qInfo("%s: setTime with its repaint %.2f ms, setTrace %.1f ms", name, move, set);
    };
    check(spectrum, "spectrum");
    check(gating, "gating");
    check(gradients, "gradients");
  }

  void theListNamesEveryPanelOnce() {
    QSet<QString> ids;
    for (const PanelInfo& info : panels()) {
      const std::unique_ptr<Panel> panel(info.make(nullptr));
      QCOMPARE(panel->id(), info.id);
      QCOMPARE(panel->title(), info.title);
      QVERIFY(!info.hint.isEmpty());
      ids.insert(info.id);
    }
    QCOMPARE(ids.size(), static_cast<qsizetype>(panels().size()));
    // Each folder is one, and is not forgotten in the list.
    QCOMPARE(ids.size(), QDir(QString::fromStdString(test::source("widgets/panels"))).entryList(QDir::Dirs | QDir::NoDotAndDotDot).size());
  }

  /// What a preset's look_at may name follows from the panels.
  void placesOfPanelsAreCheckedByTheList() {
    for (const PanelInfo& info : panels()) {
      QCOMPARE(problem_of_place(info.id), QString());
      const auto& [views, named, example] = info.places;
      for (const QString& view : views) QCOMPARE(problem_of_place(info.id + ":" + view), QString());
      if (!named.isEmpty())
        QCOMPARE(problem_of_place(info.id + (views.isEmpty() ? QString() : ":" + views.front()) + ":" + example), QString());
      if (!views.isEmpty()) QVERIFY(!problem_of_place(info.id + ":nowhere").isEmpty());
      for (const QString& wrong : {QString("%1:"), QString("%1:a:b:c"), QString("%1::a"), QString(" %1")})
        QVERIFY2(!problem_of_place(wrong.arg(info.id)).isEmpty(), qPrintable(wrong.arg(info.id)));
    }
    const auto says = [](const char* place, const char* part) {
      const QString problem = problem_of_place(place);
      return problem.contains(part) ? QString() : QString("%1: %2").arg(place, problem);
    };
    QCOMPARE(says("gatting", "names no panel: \"gatting\"; the panels are spectrum, trajectories, gating, "), QString());
    QCOMPARE(says("gating:a:b", "write \"gating\", or \"gating:forget\" with a gate"), QString());
    QCOMPARE(says("timing:0", "says more of a panel than there is to choose, \"timing:0\": write \"timing\""), QString());
    QCOMPARE(says("spectrum:0", "names no view of spectrum: \"0\"; the views are continuous"), QString());
    QCOMPARE(says("trajectories:line", "names no view of trajectories: \"line\"; the views are 3-D, map, past, lines"), QString());
    QCOMPARE(says("trajectories:lines:h:0", "or \"trajectories:lines:h\" with a view and a state"), QString());
  }
};

QTEST_MAIN(TestPanels)
#include "test_panels.moc"
