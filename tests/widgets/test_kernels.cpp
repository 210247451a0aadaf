// SPDX-License-Identifier: GPL-3.0-or-later
// The panel of kernels on hand-made traces: what it draws and says of a channel, its response and the map, what it compares, exports, and
// says where there is nothing.
#include <QComboBox>
#include <QSignalSpy>
#include <QTest>
#include <cmath>
#include <limits>

#include "panels/kernels/kernels.h"
#include "shown_panel.h"
#include "synthetic/synthetic_kernels.h"

using namespace reclab;
using test::Shown, test::synthetic_kernel, test::synthetic_response;

namespace {

std::shared_ptr<Trace> traceWith(std::int64_t channels = 6, double slower = 1.0, std::int64_t lags = 300) {
  auto trace = std::make_shared<Trace>(*test::synthetic_trace());
  test::put_kernels(*trace, "0/h", channels, slower, lags);
  return trace;
}

void choose(QComboBox* box, int index) {
  box->setFocus();
  while (box->currentIndex() != index) QTest::keyClick(box, box->currentIndex() < index ? Qt::Key_Down : Qt::Key_Up);
}

QPointF pixel(const QCPAxisRect* rect, double x, double y) {
  return {rect->axis(QCPAxis::atBottom)->coordToPixel(x), rect->axis(QCPAxis::atLeft)->coordToPixel(y)};
}

}  // namespace

class TestKernels : public QObject {
  Q_OBJECT
 private slots:
  void aChannelIsDrawnOverLagBeforeTheOthers() {
    Shown<KernelsPanel> shown(traceWith());
    const QList<QCPGraph*> graphs = shown->kernelRect()->graphs();
    QCOMPARE(graphs.size(), 6);
    for (int lag = 0; lag < 300; lag += 7) QCOMPARE(graphs.back()->data()->at(lag)->value, synthetic_kernel(lag, 0));
    QCOMPARE(shown->headline(), QStringLiteral("τ 5 steps"));
    QVERIFY(shown.find<QComboBox>("view")->isVisible() && shown.find<QComboBox>("channel")->isVisible());
    QVERIFY2(shown->note().contains("Channel 0 has a time constant of 5 steps (0.417 year)."), qPrintable(shown->note()));
    QVERIFY2(shown->note().contains("Over all channels 5 to 30 steps (2.5 year)."), qPrintable(shown->note()));
    // What is a thousandth of the largest is no longer worth a part of the axis.
    QVERIFY(shown->kernelRect()->axis(QCPAxis::atBottom)->range().upper < 50.0);
    const QStringList texts = shown.texts();
    QVERIFY2(texts.contains("lag, steps (1 step = 0.08333 year)") && texts.contains("channel 0") && texts.contains("other channels"),
             qPrintable(texts.join(u'|')));
    QVERIFY2(texts[0].startsWith("Kernels") && texts[0].contains("h, channel 0"), qPrintable(texts[0]));
  }

  void anotherChannelIsChosenByKeys() {
    Shown<KernelsPanel> shown(traceWith());
    QSignalSpy told(&shown.panel, &Panel::headlineChanged);
    choose(shown.find<QComboBox>("channel"), 3);
    QCOMPARE(shown->headline(), QStringLiteral("τ 20 steps"));
    QVERIFY(!told.isEmpty());
    QCOMPARE(shown->kernelRect()->graphs().back()->data()->at(4)->value, synthetic_kernel(4, 3));
  }

  void theResponseHasGainAndPhaseOverTheLogarithmOfFrequency() {
    Shown<KernelsPanel> shown(traceWith());
    choose(shown.find<QComboBox>("view"), 1);
    shown.plot()->replot();
    QVERIFY(shown->gainRect()->visible() && shown->phaseRect()->visible() && !shown->kernelRect()->visible() &&
            !shown->mapRect()->visible());
    const QCPGraph *gain = shown->gainRect()->graphs().back(), *phase = shown->phaseRect()->graphs().back();
    QCOMPARE(shown->phaseRect()->graphs().size(), 1);
    for (int i = 0; i < 201; i += 20) {
      const double log10 = gain->data()->at(i)->key;
      const auto expected = synthetic_response(std::pow(10.0, log10), 0);
      QVERIFY(std::abs(std::pow(10.0, gain->data()->at(i)->value) - std::abs(expected)) < 1e-12);
      QVERIFY(std::abs(std::remainder(phase->data()->at(i)->value - std::arg(expected) * 180.0 / M_PI, 360.0)) < 1e-9);
    }
    QVERIFY2(
        shown->note().contains("Its gain is largest, ") && shown->note().contains("cycles a step (") && shown->note().contains("a year)"),
        qPrintable(shown->note()));
    // Gain and phase are zoomed as one.
    shown->phaseRect()->axis(QCPAxis::atBottom)->setRange(-3.0, -1.0);
    QCOMPARE(shown->gainRect()->axis(QCPAxis::atBottom)->range().lower, -3.0);
    const QString tip = shown->tipAt(pixel(shown->gainRect(), -2.0, 0.0));
    QVERIFY2(
        tip.startsWith("channel 0 at 0.00998 cycles a step (0.12 a year), a period of ") && tip.contains("dB") && tip.contains("phase"),
        qPrintable(tip));
  }

  void aPictureThatIsPutAwayFollowsTheTheme() {
    Shown<KernelsPanel> shown(traceWith());
    choose(shown.find<QComboBox>("view"), 1);
    QPalette dark;
    dark.setColor(QPalette::Base, QColor("#101418"));
    dark.setColor(QPalette::Window, QColor("#181c20"));
    for (const QPalette::ColorRole role : {QPalette::Text, QPalette::WindowText}) dark.setColor(role, QColor("#e8ecf0"));
    shown->setPalette(dark);
    const QColor seen = shown->gainRect()->axis(QCPAxis::atLeft)->labelColor();
    QVERIFY(seen.lightness() > 128);
    QCOMPARE(shown->kernelRect()->axis(QCPAxis::atLeft)->labelColor(), seen);
  }

  void thePhaseHasTicksWhateverItsRange() {
    Shown<KernelsPanel> shown(traceWith());
    choose(shown.find<QComboBox>("view"), 1);
    const auto ticker = shown->phaseRect()->axis(QCPAxis::atLeft)->ticker();
    for (const double size : {0.7, 3.0, 20.0, 33.0, 60.0, 89.0, 120.0, 200.0, 380.0, 900.0, 4000.0})
      for (const double from : {-0.37 * size, 0.21 * size}) {
        const QCPRange range(from, from + size);
        QVector<double> ticks;
        QVector<QString> labels;
        ticker->generate(range, QLocale::c(), u'g', 6, ticks, nullptr, &labels);
        const auto inside = std::count_if(ticks.begin(), ticks.end(), [&](double tick) { return range.contains(tick); });
        QVERIFY2(inside >= 2 && inside <= 8,
                 qPrintable(QStringLiteral("%1 ticks from %2 to %3").arg(inside).arg(range.lower).arg(range.upper)));
        if (size < 20.0) continue;
        for (const double tick : ticks) QVERIFY(std::abs(std::remainder(tick, size < 30.0 ? 5.0 : size <= 225.0 ? 15.0 : 90.0)) < 1e-9);
      }
  }

  void phasesDoNotJump() {
    Trace trace = *traceWith(1);
    auto turning = std::make_shared<std::vector<std::complex<double>>>();
    for (int i = 0; i < 201; ++i) turning->push_back(std::polar(1.0, -0.1 * i));
    TraceArray response = *trace.find("response/0/h");
    response.complex = turning;
    trace.put(std::move(response));
    const std::vector<double> phases = unwrappedPhases(kernelMemories(trace)[0], 0);
    for (std::size_t i = 0; i < phases.size(); ++i) QVERIFY(std::abs(phases[i] + 0.1 * static_cast<double>(i) * 180.0 / M_PI) < 1e-9);
  }

  void theMapHasAllChannelsAndAClickPicksOne() {
    Shown<KernelsPanel> shown(traceWith());
    choose(shown.find<QComboBox>("view"), 2);
    shown.plot()->replot();
    QVERIFY(shown->mapRect()->visible() && !shown->kernelRect()->visible());
    QCOMPARE(shown->heatmap()->units(), 6);
    QVERIFY(shown->heatmap()->isDiverging());
    const QPointF there = pixel(shown->mapRect(), 10, 4);
    const QString tip = shown->tipAt(there);
    QVERIFY2(tip.startsWith("channel 4 at a lag of 10 steps (0.833 year): "), qPrintable(tip));
    QVERIFY(tip.endsWith(number(synthetic_kernel(10, 4), 4)));
    QTest::mouseClick(shown.plot(), Qt::LeftButton, {}, there.toPoint());
    QCOMPARE(shown.find<QComboBox>("channel")->currentIndex(), 4);
    QCOMPARE(shown->headline(), QStringLiteral("τ 25 steps"));
  }

  void pinnedRunsAreComparedInTheSameChannel() {
    Shown<KernelsPanel> shown(traceWith());
    choose(shown.find<QComboBox>("channel"), 2);
    shown->setPinned({{traceWith(6, 2.0), QColor("#a566d6"), "slower"},
                      {traceWith(1), QColor("#30a566"), "narrow"},
                      {test::synthetic_trace(), QColor("#e0457b"), "LSTM"}});
    shown.plot()->replot();
    const QList<QCPGraph*> graphs = shown->kernelRect()->graphs();
    QCOMPARE(graphs.size(), 8);
    QCOMPARE(graphs[6]->pen().color(), QColor("#a566d6"));
    QCOMPARE(graphs[6]->data()->at(5)->value, synthetic_kernel(5, 2, 2.0));
    const QStringList texts = shown.texts();
    QVERIFY2(texts.contains("slower") && texts.contains("narrow (channel 0)") && texts.contains("LSTM: no kernels"),
             qPrintable(texts.join(u'|')));
    const QStringList csv = shown->dataAsCsv().split(u'\n', Qt::SkipEmptyParts);
    QCOMPARE(csv.front(),
             QStringLiteral("lag,year,channel 0,channel 1,channel 2,channel 3,channel 4,channel 5,channel 2 [slower],channel 0 [narrow]"));
    QCOMPARE(csv.size(), 301);
    QCOMPARE(csv[6].section(u',', 4, 4).toDouble(), synthetic_kernel(5, 2));
    QCOMPARE(csv[6].section(u',', 8, 8).toDouble(), synthetic_kernel(5, 2, 2.0));
    choose(shown.find<QComboBox>("view"), 1);
    const QStringList bode = shown->dataAsCsv().split(u'\n', Qt::SkipEmptyParts);
    QVERIFY2(bode.front().startsWith("frequency,cycles a year,channel 0 gain,channel 0 phase,"), qPrintable(bode.front()));
    QCOMPARE(bode.size(), 202);
    QCOMPARE(bode.back().section(u',', 0, 0).toDouble(), 0.5);
    QVERIFY(std::abs(bode.back().section(u',', 2, 2).toDouble() - std::abs(synthetic_response(0.5, 0))) < 1e-12);
  }

  void whatAPresetNamesIsLeftWithIt() {
    const auto of = [](const char* preset) {
      auto trace = traceWith();
      test::put_kernels(*trace, "0/u", 6);
      trace->info.preset = preset;
      return trace;
    };
    const auto plain = of("plain"), mapped = of("mapped");
    Shown<KernelsPanel> shown(plain);
    QComboBox *view = shown.find<QComboBox>("view"), *memory = shown.find<QComboBox>("memory"), *channel = shown.find<QComboBox>("channel");
    shown->lookAt("mapped", "map:u", false);
    shown->setTrace(mapped);
    QCOMPARE(view->currentText(), QString("All channels"));
    QCOMPARE(memory->currentText(), QString("u"));
    choose(channel, 4);
    QCOMPARE(shown->choices().value("view").toString(), QString("kernel"));  // what a session keeps is the user's
    shown->setTrace(plain);
    QCOMPARE(view->currentText(), QString("Kernel"));
    QCOMPARE(memory->currentText(), QString("h"));
    QCOMPARE(channel->currentIndex(), 0);
    QVERIFY(shown->headline() == "τ 5 steps");
    shown->setTrace(mapped);
    QCOMPARE(view->currentText(), QString("All channels"));
    QCOMPARE(channel->currentIndex(), 4);
    // What a hand picks goes along, as long as the next preset names nothing.
    choose(view, 1);
    shown->setTrace(plain);
    QCOMPARE(view->currentText(), QString("Frequency response"));
  }

  void aPresetNamesAViewAndAStateAndAHandOverrulesIt() {
    auto trace = traceWith();
    test::put_kernels(*trace, "0/u", 3);
    Shown<KernelsPanel> shown(trace);
    QCOMPARE(shown.find<QComboBox>("memory")->count(), 2);
    shown->lookAt("lstm", "response:u", false);
    QCOMPARE(shown.find<QComboBox>("view")->currentIndex(), 1);
    QCOMPARE(shown.find<QComboBox>("memory")->currentText(), QStringLiteral("u"));
    QCOMPARE(shown.find<QComboBox>("channel")->count(), 3);
    choose(shown.find<QComboBox>("memory"), 0);
    shown->setTrace(trace);
    QCOMPARE(shown.find<QComboBox>("memory")->currentText(), QStringLiteral("h"));
    shown->lookAt("lstm", "map", true);
    QCOMPARE(shown.find<QComboBox>("view")->currentIndex(), 2);
    QCOMPARE(shown->choices().value("view").toString(), QStringLiteral("map"));
    shown->setChoices({{"view", "no such view"}});
    QCOMPARE(shown.find<QComboBox>("view")->currentIndex(), 2);
  }

  void whatDoesNotFallOffIsSaid() {
    auto trace = traceWith(2);
    trace->put(test::real_array("time_constant/0/h", {2}, {{"channel", "", {}}}, {std::numeric_limits<double>::infinity(), 3.0}));
    Shown<KernelsPanel> shown(trace);
    QCOMPARE(shown->headline(), QStringLiteral("τ ∞"));
    QVERIFY2(shown->note().startsWith("Channel 0 does not fall off. Over all channels from 3 steps"), qPrintable(shown->note()));
  }

  void stepsThatAreNoEvenTimeHaveNoUnit() {
    auto trace = traceWith(1);
    trace->time[7] += 1.0;
    Shown<KernelsPanel> shown(trace);
    QVERIFY(shown.texts().contains("lag, steps"));
    QVERIFY2(shown->note().startsWith("The memory has a time constant of 5 steps."), qPrintable(shown->note()));
    QVERIFY(!shown.find<QComboBox>("channel")->isVisible());
  }

  void whatIsMissingIsSaid() {
    KernelsPanel panel;
    QVERIFY(panel.emptyReason().startsWith("Nothing has run yet"));
    panel.setTrace(test::synthetic_trace());
    QVERIFY2(panel.emptyReason().contains("press Run"), qPrintable(panel.emptyReason()));
    auto noted = std::make_shared<Trace>(*test::synthetic_trace());
    noted->info.title = "Linear attention";
    noted->info.absent = {
        {Kind::kernel,
         "Layer 0 has no convolution kernel, because its state is a plain sum of all that was written, whose kernel is 1 at every lag."}};
    panel.setTrace(noted);
    QVERIFY2(panel.emptyReason().startsWith("Linear attention: Layer 0 has no convolution kernel, because its state is a plain sum"),
             qPrintable(panel.emptyReason()));
    QVERIFY2(panel.emptyReason().endsWith("Choose a model that is the same at every step, such as S4D, LRU or SGConv."),
             qPrintable(panel.emptyReason()));
    QVERIFY(panel.headline().isEmpty() && panel.dataAsCsv().isEmpty());
  }
};

QTEST_MAIN(TestKernels)
#include "test_kernels.moc"
