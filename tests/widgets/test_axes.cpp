// SPDX-License-Identifier: GPL-3.0-or-later
// Value axes that hold, lock and zoom; steps counted from the end; parts of a picture that are kept of the run before.
#include <QApplication>
#include <QSignalSpy>
#include <QTest>
#include <QToolButton>
#include <cmath>

#include "panels/gradients/gradients.h"
#include "panels/gradients/gradients_verdict.h"
#include "panels/spectrum/spectrum.h"
#include "shown_panel.h"
#include "synthetic/synthetic_trace.h"

using namespace reclab;
using test::Shown;
using test::synthetic_trace;
using test::SyntheticOptions;

namespace {

std::shared_ptr<const Trace> losing(double decades, std::int64_t length = 300) {
  SyntheticOptions options;
  options.decades_per_step = -decades;
  options.length = length;
  return synthetic_trace(options);
}

/// The first stage of a run: no singular values, and the eigenvalues of one step.
std::shared_ptr<const Trace> firstStage(const std::shared_ptr<const Trace>& whole, std::int64_t step) {
  auto stage = std::make_shared<Trace>(*synthetic_trace({.gates = false, .spectra = false, .gradients = false, .timing = false}));
  stage->info = whole->info;
  for (const auto& array : whole->arrays())
    if (array->key.starts_with("gradient/") || array->key.starts_with("state/")) stage->put(*array);
  TraceArray one = *whole->find("spectrum/0");
  const std::int64_t row = whole->row_of_step(one, step), n = one.row_size();
  const auto begin = one.complex->begin() + row * n;
  one.complex = std::make_shared<const std::vector<std::complex<double>>>(begin, begin + n);
  one.shape[0] = 1;
  one.steps = {step};
  stage->put(std::move(one));
  return stage;
}

void wheel(Plot* plot, const QPointF& at, int delta) {
  QWheelEvent event(at, plot->mapToGlobal(at), {}, {0, delta}, Qt::NoButton, Qt::NoModifier, Qt::NoScrollPhase, false);
  QApplication::sendEvent(plot, &event);
}

QStringList namesOf(const Legend* legend, const QStringList& keys) {
  QStringList there;
  for (const QString& key : keys)
    if (!legend->placeOf(key).isNull()) there << key;
  return there;
}

}  // namespace

class TestAxes : public QObject {
  Q_OBJECT

 private slots:
  void anAxisIsHeldWhileASliderMoves() {
    Shown<GradientsPanel> shown(losing(0.05));
    const auto range = [&] { return shown->rect()->axis(QCPAxis::atLeft)->range(); };
    const QCPRange first = range();
    shown->holdAxes(true);
    // A curve that falls further with each move is seen to be steeper, and not the same diagonal on a longer axis.
    for (const double decades : {0.1, 0.2, 0.4, 0.02}) {
      shown->setTrace(losing(decades));
      QCOMPARE(range(), first);
    }
    shown->setTrace(losing(0.2));
    shown->holdAxes(false);  // let go: fitted
    QVERIFY(range().lower < first.lower - 5);
    shown->setTrace(losing(0.02));
    QVERIFY(range().lower > first.lower);
  }

  void aHeldAxisGrowsOnlyWhereNothingWouldBeSeen() {
    QCOMPARE(ValueAxis::kept({0, 10}, {2, 300}), QCPRange(0, 10));
    const QCPRange above = ValueAxis::kept({0, 10}, {20, 30});
    QVERIFY(above.lower == 0 && above.upper > 40);
    QCOMPARE(ValueAxis::kept(above, {40, 50}), above);
    const QCPRange below = ValueAxis::kept({0, 10}, {-30, -20});
    QVERIFY(below.upper == 10 && below.lower < -40);
  }

  void aLockedAxisStays() {
    Shown<GradientsPanel> shown(losing(0.05));
    const auto range = [&] { return shown->rect()->axis(QCPAxis::atLeft)->range(); };
    const QCPRange first = range();
    auto* lock = shown->findChild<QToolButton*>("holdValues");
    QVERIFY(lock && lock->isVisible());
    // In the empty corner: on neither axis' numbers.
    QVERIFY(lock->geometry().right() <= shown->rect()->left() + 1 && lock->geometry().top() > shown->rect()->bottom());
    QTest::mouseClick(lock, Qt::LeftButton);
    QVERIFY(shown->values()->locked());
    shown->setTrace(losing(0.5));
    QCOMPARE(range(), first);
    shown->setTimeRange(100, 200);  // a zoom of time fits values otherwise
    QCOMPARE(range(), first);
    QTest::mouseClick(lock, Qt::LeftButton);
    QVERIFY(range().lower < first.lower - 5);
  }

  void theWheelOverTheAxisZoomsIt() {
    Shown<GradientsPanel> shown(losing(0.05));
    QCPAxis* axis = shown->rect()->axis(QCPAxis::atLeft);
    const QCPRange first = axis->range();
    const QCPRange time = shown->rect()->axis(QCPAxis::atBottom)->range();
    const QPointF over(shown->rect()->left() - 12, shown->rect()->center().y());
    QSignalSpy zoomed(shown->plot(), &Plot::timeRangePicked);
    wheel(shown->plot(), over, 240);
    QVERIFY(std::abs(axis->range().size() / first.size() - 0.64) < 1e-9);
    QCOMPARE(zoomed.count(), 0);
    QCOMPARE(shown->rect()->axis(QCPAxis::atBottom)->range(), time);
    QVERIFY(shown->values()->locked());
    // A drag moves it, a double click puts it back.
    const double size = axis->range().size(), upper = axis->range().upper;
    QTest::mousePress(shown->plot(), Qt::LeftButton, {}, over.toPoint());
    QTest::mouseMove(shown->plot(), over.toPoint() + QPoint(0, 30));
    QTest::mouseRelease(shown->plot(), Qt::LeftButton, {}, over.toPoint() + QPoint(0, 30));
    QVERIFY(axis->range().upper > upper && std::abs(axis->range().size() - size) < 1e-9);
    QTest::mouseDClick(shown->plot(), Qt::LeftButton, {}, over.toPoint());
    QVERIFY(!shown->values()->locked());
    QCOMPARE(axis->range(), first);
  }

  void stepsAreCountedFromTheEnd() {
    Shown<GradientsPanel> shown(losing(0.05, 300));
    const auto other = losing(0.05, 200);
    shown->setPinned({{other, Qt::red, "other"}});
    const auto lastOfPin = [&] {
      for (QCPGraph* graph : shown->rect()->graphs())
        if (graph->pen().color() == QColor(Qt::red)) return (graph->data()->constEnd() - 1)->key;
      return -1.0;
    };
    QCOMPARE(lastOfPin(), 199.0);
    shown->plot()->replot();
    // A click on the name of the axis.
    QTest::mouseClick(shown->plot(), Qt::LeftButton, {}, QPoint(shown->rect()->center().x(), shown->rect()->outerRect().bottom() - 6));
    QVERIFY(shown->plot()->lag());
    QCOMPARE(lastOfPin(), 299.0);  // runs of other lengths end together
    QCPAxis* time = shown->rect()->axis(QCPAxis::atBottom);
    QCOMPARE(time->label(), QString("steps before the end"));
    shown->plot()->replot();
    const QVector<double> ticks = time->tickVector();
    const QVector<QString> labels = time->tickVectorLabels();
    QVERIFY(ticks.size() >= 2 && labels.size() == ticks.size());
    for (qsizetype i = 0; i < ticks.size(); ++i) QCOMPARE(labels[i], QString::number(std::llround(299 - ticks[i])));
    QVERIFY(std::is_sorted(ticks.begin(), ticks.end()));
    // It is kept from one session to the next.
    GradientsPanel next;
    next.setChoices(shown->choices());
    QVERIFY(next.plot()->lag());
    next.setChoices({{"lag", "nonsense"}});
    QVERIFY(!next.plot()->lag());
  }

  void countingFromTheEndIsOfferedBesideTheNameOfTheAxis() {
    Shown<GradientsPanel> shown(losing(0.05, 300));
    const QRect place = shown->plot()->lagLinkPlace();
    QVERIFY(shown->plot()->rect().contains(place) && place.right() <= shown->rect()->outerRect().right() &&
            place.top() > shown->rect()->rect().bottom());
    const auto ink = [&] {
      const QImage picture = shown->plot()->grab(place).toImage();
      int marks = 0;
      for (int y = 0; y < picture.height(); ++y)
        for (int x = 0; x < picture.width(); ++x) marks += picture.pixelColor(x, y) != picture.pixelColor(0, 0);
      return marks;
    };
    QVERIFY(ink() > 50);
    QCOMPARE(shown->plot()->lagLink(), QString("count from the end"));
    const QPoint at(shown->rect()->rect().right() - 20, shown->rect()->outerRect().bottom() - 6);
    QTest::mouseMove(shown->plot(), at);
    QTRY_COMPARE(shown->plot()->cursor().shape(), Qt::PointingHandCursor);
    QTest::mouseClick(shown->plot(), Qt::LeftButton, {}, at);
    QVERIFY(shown->plot()->lag());
    shown->plot()->replot();
    QCOMPARE(shown->plot()->lagLink(), QString("count from the start"));
    QTest::mouseClick(shown->plot(), Qt::LeftButton, {}, at);
    QVERIFY(!shown->plot()->lag());
    // It is no part of a figure, and gives way where the axis is short.
    QVERIFY(!shown.texts().join(u'|').contains("count from"));
    shown->resize(200, 400);
    QTRY_VERIFY(shown->plot()->lagLinkPlace().isNull());
  }

  void severalRunsLeaveTheGradientsAPicture() {
    Shown<GradientsPanel> shown(losing(0.05, 300), {420, 330});
    const auto share = [&] {
      shown->plot()->replot();
      return static_cast<double>(shown->rect()->outerRect().height()) / shown->plot()->height();
    };
    shown->setPinned({{losing(0.02, 300), Qt::red, "GRU, update bias −1.5, width 48"},
                      {losing(0.08, 300), Qt::blue, "Elman network, spectral radius 1.2"}});
    QVERIFY2(share() >= 0.58, qPrintable(QString::number(share())));
    // At the cursor are the numbers of two own states and one of each other run.
    QCOMPARE(std::ranges::count_if(shown->rect()->graphs(),
                                   [](const QCPGraph* graph) { return graph->realVisibility() && !graph->property("quiet").toBool(); }),
             4);
    // The verdict begins to be read, the rest of it is a hover away; all is there where there is room.
    QVERIFY(shown->plot()->leftOut().contains("The gradient"));
    const auto* verdict = shown->plot()->findChild<Paragraph*>();
    QVERIFY(verdict != nullptr && verdict->brief() && shown->plot()->roomFor(verdict) == Plot::Room::line &&
            verdict->outerRect().height() >= verdict->lineHeight());
    shown->resize(700, 900);
    QTRY_VERIFY(shown->plot()->roomFor(verdict) == Plot::Room::all);
    QVERIFY(share() >= 0.58);
  }

  void singularValuesStayUntilTheNextAreThere() {
    const QStringList keys{"gradient/state/0/hidden", "gradient/state/0/cell", "jacobian/0", "jacobian_min/0", "fit"};
    const auto before = losing(0.05), after = losing(0.06);
    Shown<GradientsPanel> shown(before);
    const QStringList entries = namesOf(shown->legend(), keys);
    QCOMPARE(entries, keys);
    const auto graphs = [&] { return shown->rect()->graphs().size(); };
    const qsizetype all = graphs();
    shown->setFormer(before);
    shown->setTrace(firstStage(after, 150));
    shown->plot()->replot();
    QCOMPARE(namesOf(shown->legend(), keys), keys);
    QCOMPARE(graphs(), all);
    // All is there: nothing of the run before is left.
    shown->setFormer(nullptr);
    shown->setTrace(after);
    QCOMPARE(graphs(), all);
    // When nothing more comes, what was kept goes.
    shown->setFormer(before);
    shown->setTrace(firstStage(after, 150));
    shown->setFormer(nullptr);
    QCOMPARE(graphs(), all - 2);
    // Another model's are not kept beside this one's gradients.
    auto other = std::make_shared<Trace>(*before);
    other->info.preset = "gru";
    shown->setFormer(other);
    shown->setTrace(firstStage(after, 150));
    QCOMPARE(graphs(), all - 2);
  }

  void theCloudStaysUnderTheEigenvaluesOfNow() {
    const auto before = losing(0.05), after = losing(0.06);
    Shown<SpectrumPanel> shown(before);
    const auto picture = [&] {
      shown->plot()->replot();
      return shown->plot()->grab(shown->rect()->rect()).toImage();
    };
    const auto differing = [](const QImage& a, const QImage& b) {
      int count = 0;
      for (int y = 0; y < a.height(); ++y)
        for (int x = 0; x < a.width(); ++x) {
          const QColor p = a.pixelColor(x, y), q = b.pixelColor(x, y);
          count += std::abs(p.red() - q.red()) + std::abs(p.green() - q.green()) + std::abs(p.blue() - q.blue()) > 24;
        }
      return count;
    };
    shown->setFormer(nullptr);
    shown->setTrace(firstStage(after, 150));
    const QImage points = picture();
    shown->setFormer(before);
    shown->setTrace(firstStage(after, 150));
    const QImage kept = picture();
    QCOMPARE(kept.size(), points.size());
    QVERIFY2(differing(points, kept) > 400, qPrintable(QString::number(differing(points, kept))));
    // Fainter than the run's own.
    shown->setFormer(nullptr);
    shown->setTrace(before);
    QVERIFY(differing(points, picture()) > differing(points, kept));
    QVERIFY(shown->emptyReason().isEmpty());
  }

  void theSpectrumsAxesHoldTogether() {
    Shown<SpectrumPanel> shown(losing(0.05));
    const auto ranges = [&] {
      shown->plot()->replot();
      return shown->rect()->axis(QCPAxis::atLeft)->range();  // the other one keeps the circle round
    };
    const auto scaled = [&](double times) {
      auto trace = std::make_shared<Trace>(*losing(0.05));
      TraceArray larger = *trace->find("spectrum/0");
      auto values = std::make_shared<std::vector<std::complex<double>>>(*larger.complex);
      for (auto& z : *values) z *= times;
      larger.complex = values;
      trace->put(larger);
      return trace;
    };
    const auto first = ranges();
    shown->lockAction()->setChecked(true);
    shown->setTrace(scaled(3.0));
    QCOMPARE(ranges(), first);
    shown->lockAction()->setChecked(false);
    const auto wide = ranges();
    QVERIFY(wide.size() > 1.5 * first.size());
    // Ranges that somebody else gives it, as to all planes that stand side by side, stay until other eigenvalues come.
    QCPAxis *re = shown->rect()->axis(QCPAxis::atBottom), *im = shown->rect()->axis(QCPAxis::atLeft);
    re->setRange(-20, 20);
    im->setRange(-20, 20);
    for (int i = 0; i < 3; ++i) shown->plot()->replot();
    QVERIFY2(re->range().size() >= 40 && im->range().size() >= 40, qPrintable(QString::number(re->range().size())));
    shown->setTrace(scaled(2.0));
    shown->plot()->replot();
    QVERIFY(re->range().size() < 40);
    shown->setTrace(scaled(3.0));
    shown->plot()->replot();
    // While a slider moves they only grow.
    shown->holdAxes(true);
    shown->setTrace(scaled(0.5));
    QCOMPARE(ranges(), wide);
    shown->holdAxes(false);
    shown->setTrace(scaled(0.5));
    QCOMPARE(ranges(), first);
  }

  void twoNumbersOfOneVerdictDoNotContradictEachOther() {
    // Flat for most of the way, and then it falls: by the median slope a decade takes far longer than it took.
    std::vector<std::int64_t> steps;
    std::vector<double> norms;
    for (std::int64_t t = 0; t < 2000; ++t) {
      steps.push_back(t);
      const double lag = static_cast<double>(1999 - t);
      norms.push_back(-lag / 1383.0 - (lag > 1600 ? (lag - 1600) / 80.0 : 0.0));
    }
    const Verdict uneven = gradientVerdict(steps, norms, "The gradient");
    QVERIFY2(uneven.sentence.contains("on the whole, but not evenly; after"), qPrintable(uneven.sentence));
    for (std::size_t i = 0; i < norms.size(); ++i) norms[i] = -static_cast<double>(1999 - steps[i]) / 40.0;
    const Verdict even = gradientVerdict(steps, norms, "The gradient");
    QVERIFY2(!even.sentence.contains("evenly") && even.sentence.contains("; after 320 steps"), qPrintable(even.sentence));
  }

  void formulasAreSet() {
    QCOMPARE(mathText("∂h_t/∂h_{t-1}"), QString("∂hₜ/∂hₜ₋₁"));
    QCOMPARE(mathText("x^2 and T^{-1}"), QString("x² and T⁻¹"));
    QCOMPARE(mathText("∂s_T/∂s_t"), QString("∂s_T/∂sₜ"));  // there is no small T below the line
    QCOMPARE(mathText("a_"), QString("a_"));
    QCOMPARE(mathText("{open"), QString("{open"));
    QCOMPARE(mathText("x_{open"), QString("x_{open"));
    QCOMPARE(superscript("-1.02"), QString("⁻¹·⁰²"));
  }
};

QTEST_MAIN(TestAxes)
#include "test_axes.moc"
