// SPDX-License-Identifier: GPL-3.0-or-later
// What panels say in words and numbers of a trace: the verdict on a gradient, the statistics and the histogram of a gate.
#include <QTest>
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "panels/gating/gating.h"
#include "panels/gradients/gradients.h"
#include "shown_panel.h"
#include "synthetic/synthetic_trace.h"

using namespace reclab;
using test::Shown;
using test::synthetic_trace;
using test::SyntheticOptions;

namespace {

std::vector<std::int64_t> counted(std::int64_t n) {
  std::vector<std::int64_t> steps;
  for (std::int64_t t = 0; t < n; ++t) steps.push_back(t);
  return steps;
}

}  // namespace

class TestVerdicts : public QObject {
  Q_OBJECT
 private slots:
  void verdictVanishes() {
    const std::vector<std::int64_t> steps = counted(400);
    std::vector<double> norms;
    for (const std::int64_t t : steps) norms.push_back(-static_cast<double>(399 - t) / 23.0);
    const Verdict verdict = gradientVerdict(steps, norms, "The gradient");
    QCOMPARE(verdict.fate, Fate::vanishes);
    QVERIFY(std::abs(verdict.slope + 1.0 / 23.0) < 1e-12);
    QCOMPARE(verdict.sentence,
             QStringLiteral("The gradient vanishes: it loses a decade every 23 steps; after 184 steps less than 10⁻⁸ of it is left."));
  }

  void verdictExplodesAndHolds() {
    const std::vector<std::int64_t> steps = counted(2000);
    std::vector<double> grows, same, slow;
    for (const std::int64_t t : steps) {
      const auto lag = static_cast<double>(1999 - t);
      grows.push_back(lag * std::log10(1.1));
      same.push_back(0.25);
      slow.push_back(-lag * 1e-4);
    }
    const Verdict explodes = gradientVerdict(steps, grows, "It");
    QCOMPARE(explodes.fate, Fate::explodes);
    QVERIFY(std::abs(explodes.slope - std::log10(1.1)) < 1e-12);
    QVERIFY2(explodes.sentence.contains(QStringLiteral("a decade every 24 steps; after 194 steps it is more than 10⁸ times")),
             qPrintable(explodes.sentence));
    QCOMPARE(gradientVerdict(steps, same, "It").sentence, QStringLiteral("It holds: over 1,999 steps it stays the same."));
    const Verdict holds = gradientVerdict(steps, slow, "It");
    QCOMPARE(holds.fate, Fate::holds);
    QCOMPARE(holds.sentence, QStringLiteral("It holds: over 1,999 steps it falls by a factor of 1.58 only."));
  }

  void zerosInTheMidstAreNotTheEndOfTheMemory() {
    std::vector<std::int64_t> steps;
    std::vector<double> norms;
    for (std::int64_t t = 0; t < 40; ++t) {
      steps.push_back(t);
      norms.push_back(t < 5 || t % 3 == 1 ? -std::numeric_limits<double>::infinity() : static_cast<double>(t - 39) / 8.0);
    }
    Verdict verdict = gradientVerdict(steps, norms, "It");
    QCOMPARE(verdict.fate, Fate::vanishes);
    QCOMPARE(verdict.first, 5);
    QVERIFY(std::abs(verdict.slope + 1.0 / 8.0) < 1e-12);
    QVERIFY2(verdict.sentence.endsWith("; it is exactly zero at 11 of these 35 steps; before step 5 it is exactly zero."),
             qPrintable(verdict.sentence));
    // What is out of range ends it all the same.
    norms[20] = std::numeric_limits<double>::infinity();
    verdict = gradientVerdict(steps, norms, "It");
    QCOMPARE(verdict.first, 21);
    QVERIFY2(verdict.sentence.endsWith("; it is exactly zero at 6 of these 19 steps."), qPrintable(verdict.sentence));
  }
  void verdictSurvivesTinyNumbersZerosAndOutliers() {
    const std::vector<std::int64_t> steps = counted(1000);
    std::vector<double> norms;
    for (const std::int64_t t : steps) norms.push_back(-5.0 * static_cast<double>(999 - t));  // down to 1e-4995
    Verdict verdict = gradientVerdict(steps, norms, "It");
    QVERIFY(std::abs(verdict.slope + 5.0) < 1e-12);
    QVERIFY2(verdict.sentence.contains(QStringLiteral("it loses 5 decades every step; after 2 steps less than 10⁻⁸")),
             qPrintable(verdict.sentence));
    for (int t = 0; t < 700; ++t) norms[static_cast<std::size_t>(t)] = -std::numeric_limits<double>::infinity();
    verdict = gradientVerdict(steps, norms, "It");
    QCOMPARE(verdict.first, 700);
    QVERIFY(verdict.sentence.endsWith(QStringLiteral("; before step 700 it is exactly zero.")));
    // A tenth of the points far off does not turn the line.
    std::mt19937 random(7);
    for (std::size_t t = 700; t < 1000; ++t)
      if (random() % 10 == 0) norms[t] += 300.0;
    verdict = gradientVerdict(steps, norms, "It");
    QVERIFY2(std::abs(verdict.slope + 5.0) < 0.1, qPrintable(QString::number(verdict.slope)));
    std::fill(norms.begin(), norms.end(), -std::numeric_limits<double>::infinity());
    verdict = gradientVerdict(steps, norms, "It");
    QCOMPARE(verdict.fate, Fate::unknown);
    QVERIFY(verdict.sentence.contains("exactly zero at every step"));
    QCOMPARE(gradientVerdict({}, {}, "It").fate, Fate::unknown);
    QVERIFY(gradientVerdict(std::vector<std::int64_t>{3, 4}, std::vector<double>{0.0, 0.0}, "It").sentence.contains("2 steps only"));
  }

  void verdictOfALayerThatRunsBackwardIsFromTheStart() {
    const std::vector<std::int64_t> steps = counted(1000);
    std::vector<double> norms;
    for (const std::int64_t t : steps) norms.push_back(-0.05 * static_cast<double>(t));
    for (std::size_t t = 800; t < 1000; ++t) norms[t] = -std::numeric_limits<double>::infinity();
    const Verdict verdict = gradientVerdict(steps, norms, "It", true);
    QCOMPARE(verdict.fate, Fate::vanishes);
    QVERIFY(std::abs(verdict.slope + 0.05) < 1e-12);
    QCOMPARE(verdict.last, 0);
    QCOMPARE(verdict.first, 799);
    QVERIFY2(verdict.sentence.endsWith(QStringLiteral("; after step 799 it is exactly zero.")), qPrintable(verdict.sentence));

    auto trace = std::const_pointer_cast<Trace>(synthetic_trace());
    trace->info.layers = 2;
    trace->info.each_layer = {{"", false}, {"backward", true}};
    QCOMPARE(layerName(*trace, "0"), QStringLiteral("layer 0"));
    QCOMPARE(layerName(*trace, "1"), QStringLiteral("layer 1 (backward)"));
    QCOMPARE(layerName(*trace, "2"), QStringLiteral("layer 2"));
    QVERIFY(runsBackward(*trace, "1") && !runsBackward(*trace, "0"));
  }

  void verdictCountsStepsNotRows() {
    std::vector<std::int64_t> steps;
    std::vector<double> norms;
    for (std::int64_t t = 0; t < 1000; t += 10) {
      steps.push_back(t);
      norms.push_back(-static_cast<double>(990 - t) / 50.0);
    }
    QVERIFY(std::abs(gradientVerdict(steps, norms, "It").slope + 0.02) < 1e-12);
  }

  // ---------------------------------------------------------------------------------------------------------- statistics

  void gateStatisticsAreThoseOfTheSortedRow() {
    std::mt19937 random(1);
    std::uniform_real_distribution<double> uniform(-1.0, 3.0);
    std::vector<double> scratch;
    for (const int n : {1, 2, 3, 5, 9, 10, 11, 21, 100, 101, 128, 1000}) {
      std::vector<double> row(static_cast<std::size_t>(n));
      for (double& v : row) v = uniform(random);
      const GateStatistics found = gateStatistics(row, -1.0, 3.0, scratch);
      std::vector<double> sorted = row;
      std::sort(sorted.begin(), sorted.end());
      const auto quantile = [&](double part) {
        const double at = part * (n - 1);
        const auto k = static_cast<std::size_t>(at);
        const double next = sorted[std::min(k + 1, sorted.size() - 1)];
        return sorted[k] + (next - sorted[k]) * (at - std::floor(at));
      };
      double sum = 0;
      int below = 0, above = 0;
      for (const double v : row) sum += v, below += v < -0.6, above += v > 2.6;
      QVERIFY(std::abs(found.mean - sum / n) < 1e-12);
      QVERIFY2(std::abs(found.q10 - quantile(0.1)) < 1e-12, qPrintable(QString::number(n)));
      QVERIFY2(std::abs(found.q90 - quantile(0.9)) < 1e-12, qPrintable(QString::number(n)));
      QVERIFY(std::abs(found.below - below / double(n)) < 1e-12 && std::abs(found.above - above / double(n)) < 1e-12);
    }
    const double nan = std::numeric_limits<double>::quiet_NaN();
    QVERIFY(std::isnan(gateStatistics(std::vector<double>{nan, nan}, 0, 1, scratch).mean));
    QCOMPARE(gateStatistics(std::vector<double>{nan, 0.5}, 0, 1, scratch).mean, 0.5);
    QCOMPARE(gateStatistics(std::vector<double>{-5.0, 5.0}, 0, 0, scratch).below, 0.0);
  }

  void histogramCountsEverythingOnce() {
    const std::vector<int> counts =
        gateHistogram(std::vector<double>{0.0, 0.04, 0.06, 0.5, 1.0, 1.2, std::numeric_limits<double>::quiet_NaN()}, 0, 1, 20);
    QCOMPARE(counts[0], 2);
    QCOMPARE(counts[1], 1);
    QCOMPARE(counts[10], 1);
    QCOMPARE(counts[19], 2);
    QCOMPARE(std::accumulate(counts.begin(), counts.end(), 0), 6);
  }

  void atHowManyStepsTheLossCountsIsReadOffTheMask() {
    const auto with = [](const auto& mask) {
      auto trace = std::make_shared<Trace>(*synthetic_trace());
      // Without singular values the verdict is on the gradient, which the loss of each step adds to.
      auto bare = std::make_shared<Trace>();
      bare->info = trace->info;
      bare->steps = trace->steps;
      bare->time = trace->time;
      for (const auto& array : trace->arrays())
        if (!array->key.starts_with("jacobian")) bare->put(*array);
      bare->info.loss = "task: L = mean of ½ |y_t − target_t|² over the steps that count";
      bare->put(test::unit_array("mask", bare->steps, 1, [&](double t, double) { return mask(t) ? 1.0 : 0.0; }, ""));
      return bare;
    };
    const auto said = [](const Shown<GradientsPanel>& shown) { return shown.panel.verdict().sentence; };
    const Shown<GradientsPanel> once(with([](double t) { return t == 299.0; })), some(with([](double t) { return t >= 290.0; })),
        all(with([](double) { return true; }));
    QVERIFY2(!said(once).contains("The loss counts"), qPrintable(said(once)));
    QVERIFY2(said(some).contains("The loss counts at 10 of the 300 steps"), qPrintable(said(some)));
    QVERIFY2(said(all).contains("The loss counts at every step"), qPrintable(said(all)));
  }

  void formerWeightsDoNotScaleTheAxisWhileItLearns() {
    SyntheticOptions steep;
    steep.decades_per_step = 0.5;
    auto former = synthetic_trace(steep);
    auto now = std::make_shared<Trace>();
    const auto whole = synthetic_trace();
    now->info = whole->info;
    now->steps = whole->steps;
    now->time = whole->time;
    for (const auto& array : whole->arrays())
      if (!array->key.starts_with("jacobian")) now->put(*array);
    Shown<GradientsPanel> shown(whole);
    shown->setFormer(former);
    shown->setTrace(now);
    const QCPRange drawn = shown->rect()->axis(QCPAxis::atLeft)->range();
    auto learns = std::make_shared<Trace>(*now);
    learns->info.learned = LearnedInfo{1, 5, "adding"};
    shown->setTrace(learns);
    const QCPRange learned = shown->rect()->axis(QCPAxis::atLeft)->range();
    QVERIFY2(learned.size() < 0.5 * drawn.size(), qPrintable(QStringLiteral("%1 %2").arg(learned.size()).arg(drawn.size())));
  }

  void timeIsNamedOnceUnderGates() {
    Shown<GatingPanel> shown(synthetic_trace(), {420, 220});
    shown.plot()->replot();
    shown->setTrace(synthetic_trace());  // so low that the map stands alone it has the name
    shown->resize(800, 640);
    QCoreApplication::processEvents();
    shown.plot()->replot();
    int named = 0;
    for (const QCPAxisRect* rect : shown.plot()->axisRects())
      if (rect->visible() && rect->axis(QCPAxis::atBottom)->label() == QStringLiteral("year")) ++named;
    QCOMPARE(named, 1);
  }
};

QTEST_MAIN(TestVerdicts)
#include "test_verdicts.moc"
