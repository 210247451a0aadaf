// SPDX-License-Identifier: GPL-3.0-or-later
// The gradient lab on hand-made traces: curves, bounds and factors, its maps, truncation and clipping, and the settings that it asks for.
#include <QSignalSpy>
#include <QSlider>
#include <QSpinBox>
#include <QTest>
#include <algorithm>
#include <cmath>

#include "panels/gradient_lab/gradient_lab.h"
#include "shown_panel.h"
#include "synthetic/synthetic_lab.h"

using namespace reclab;
using test::Shown, test::synthetic_pair;

namespace {

std::shared_ptr<Trace> traceOf() {
  auto trace = std::make_shared<Trace>(*test::synthetic_trace());
  test::put_lab(*trace);
  return trace;
}

struct Lab : Shown<GradientLabPanel> {
  explicit Lab(std::shared_ptr<const Trace> trace) : Shown(std::move(trace), {720, 480}) {}
  void choose(const char* box, int index) {
    auto* combo = find<QComboBox>(box);
    combo->setFocus();
    combo->setCurrentIndex(index);
    emit combo->activated(index);
    plot()->replot();
  }
  QCPGraph* graph(QCPAxisRect* rect, const QString& name) {
    for (QCPGraph* one : rect->graphs())
      if (one->name() == name) return one;
    return nullptr;
  }
};

QPointF pixelIn(const QCPAxisRect* rect, double x, double y) { return {rect->axis(QCPAxis::atBottom)->coordToPixel(x), rect->axis(QCPAxis::atLeft)->coordToPixel(y)}; }

Panel::Setting numberSetting() {
  Panel::Setting one;
  one.key = "spectral_radius";
  one.label = "spectral radius <i>ρ</i>";
  one.value = "0.95";
  one.at = [](int position) { return 0.002 * position; };
  one.position = [](double value) { return static_cast<int>(std::lround(value / 0.002)); };
  one.text = [](double value) { return QString::number(value); };
  return one;
}

}  // namespace

class TestGradientLab : public QObject {
  Q_OBJECT
 private slots:
  void whatIsMeasuredStandsBesideItsBounds() {
    Lab lab(traceOf());
    lab.panel.setTime(100);
    lab.plot()->replot();
    const QCPGraph* measured = lab.graph(lab->normRect(), "|∂s_T/∂s_t|");
    QVERIFY(measured && measured->dataCount() == 300);
    QCOMPARE(measured->data()->at(100)->value, synthetic_pair(299, 100));
    const QCPGraph* bound = lab.graph(lab->normRect(), "bound by σ max");
    QVERIFY(bound && bound->data()->at(100)->value == 0.0);
    QVERIFY2(lab->said().contains("Over the 199 steps from step 100 to the end") && lab->said().contains("at most 1 by σ max"), qPrintable(lab->said()));
    const QCPGraph* slope = lab.graph(lab->factorRect(), "slope of f");
    QVERIFY(slope && lab.graph(lab->factorRect(), "matrix") && !lab.graph(lab->factorRect(), "gate") && !lab.graph(lab->factorRect(), "step"));
    QVERIFY2(lab->said().contains("length with 0.95: slope 0.97 × matrix 0.979."), qPrintable(lab->said()));
    const QString csv = lab.panel.dataAsCsv();
    QVERIFY2(csv.startsWith("step,time,log10 |ds_T/ds_t|,log10 bound by singular value,log10 bound by eigenvalue,log10 factor of gate,"), qPrintable(csv.left(200)));
    QCOMPARE(csv.count('\n'), 301);
  }

  void whatAGateKeepsStandsBesideWhatComesThroughTheMatrix() {
    auto trace = std::make_shared<Trace>(*test::synthetic_trace());
    test::put_lab(*trace, true, true);
    Lab lab(trace);
    lab.panel.setTime(100);
    lab.plot()->replot();
    const QCPGraph *gate = lab.graph(lab->factorRect(), "gate"), *step = lab.graph(lab->factorRect(), "step");
    QVERIFY(gate && step && lab.graph(lab->factorRect(), "slope of f") && lab.graph(lab->factorRect(), "matrix"));
    QVERIFY(std::abs(gate->data()->at(100)->value - std::log10(0.6)) < 1e-12 && std::abs(step->data()->at(100)->value - std::log10(0.95)) < 1e-12);
    QVERIFY2(lab->said().contains("length with 0.95: gate 0.6, and beside it slope 0.97 × matrix 0.361 = 0.35. 63.2 % of what arrives came along the gates."), qPrintable(lab->said()));
    QVERIFY(lab.panel.dataAsCsv().contains("log10 factor of step,share of gate,share of matrix"));
  }

  void aViewThatARunHasNotGotIsSaidBeforeWhatStandsInItsPlace() {
    auto trace = std::make_shared<Trace>(*test::synthetic_trace());
    const std::shared_ptr<const Trace> whole = traceOf();
    for (const auto& one : whole->arrays())
      if (one->key.starts_with("jacobian/") || one->key.starts_with("jacobian_bound/")) trace->put(*one);
    trace->info.note_kinds.emplace_back(Kind::jacobian_factor, "The memory is read inside its own operation");
    trace->info.absent[Kind::alignment] = "It has no alignment.";
    Lab lab(trace);
    QVERIFY2(lab->said().startsWith("Over the "), qPrintable(lab->said()));
    lab.choose("view", 1);
    QVERIFY2(lab->said().startsWith("Without factors, the bounds. The memory is read inside its own operation. Over the "), qPrintable(lab->said()));
    lab.choose("view", 2);
    QVERIFY2(lab->said().startsWith("Without a map of pairs, the bounds. This run has none of it yet. Over the "), qPrintable(lab->said()));
    lab.choose("view", 3);
    QVERIFY2(lab->said().startsWith("Without a map of alignment, the bounds. It has no alignment. Over the "), qPrintable(lab->said()));
  }

  void theMapsHaveAllPairs() {
    Lab lab(traceOf());
    lab.choose("view", 2);
    QVERIFY(!lab->heatmap()->isDiverging());
    QVERIFY2(lab->tipAt(pixelIn(lab->heatmap()->keyAxis()->axisRect(), 200, 25)).contains("state of step 200, changed at step 100: |∂s_t/∂s_s| = 0.00592"),
             qPrintable(lab->tipAt(pixelIn(lab->heatmap()->keyAxis()->axisRect(), 200, 25))));
    lab.choose("view", 3);
    QVERIFY(lab->heatmap()->isDiverging());
    QCOMPARE(lab->heatmap()->high(), 1.0);
    const QString tip = lab->tipAt(pixelIn(lab->heatmap()->keyAxis()->axisRect(), 200, 25));
    QVERIFY2(tip.contains("steps 200 and 100: cosine −0.416"), qPrintable(tip));
    QCOMPARE(lab->choices().value("view").toString(), QStringLiteral("alignment"));
    QVERIFY(lab.panel.dataAsCsv().contains("cosine with step 4"));
  }

  void aClickOnTheMapMovesTheCursor() {
    Lab lab(traceOf());
    lab.choose("view", 2);
    QSignalSpy picked(lab.plot(), &Plot::timePicked);
    QTest::mouseClick(lab.plot(), Qt::LeftButton, {}, pixelIn(lab->heatmap()->keyAxis()->axisRect(), 120, 10).toPoint());
    QVERIFY(!picked.isEmpty());
    QVERIFY(std::abs(picked.last().first().toLongLong() - 120) <= 1);
  }

  void truncationAndClippingAreOnTheSameAxes() {
    Lab lab(traceOf());
    QVERIFY(!lab->window()->visible() && !lab->clipLine()->visible());
    auto* back = lab.find<QSpinBox>("back");
    back->setFocus();
    back->clear();
    QTest::keyClicks(back, "40");
    QTest::keyClick(back, Qt::Key_Enter);
    QVERIFY(lab->window()->visible());
    QCOMPARE(lab->window()->topLeft->coords().x(), 299.0 - 40.0 + 0.5);
    QVERIFY2(lab->said().contains("sees the last 40 steps"), qPrintable(lab->said()));
    auto* clip = lab.find<QDoubleSpinBox>("clip");
    clip->setFocus();
    clip->clear();
    QTest::keyClicks(clip, "0.01");
    QTest::keyClick(clip, Qt::Key_Enter);
    QVERIFY(lab->clipLine()->visible());
    QVERIFY(std::abs(lab->clipLine()->point1->coords().y() + 2.0) < 1e-12);
    GradientLabPanel other;
    other.setChoices(lab->choices());
    QCOMPARE(other.choices(), lab->choices());
  }

  void aSliderAsksForItsSettingOnceADrag() {
    Lab lab(traceOf());
    QSignalSpy wanted(&lab.panel, &Panel::requested);
    lab.panel.setSettings({numberSetting()});
    QCOMPARE(wanted.count(), 0);
    auto* slider = lab.find<QSlider>("lab.spectral_radius");
    QCOMPARE(slider->value(), 475);
    const QPoint middle(slider->width() / 2, slider->height() / 2), from(static_cast<int>(0.475 * (slider->width() - 16)) + 8, slider->height() / 2);
    QTest::mousePress(slider, Qt::LeftButton, {}, from);
    for (int i = 1; i <= 3; ++i) QTest::mouseMove(slider, from + QPoint(10 * i, 0));
    QTest::mouseRelease(slider, Qt::LeftButton, {}, from + QPoint(30, 0));
    QVERIFY(wanted.count() >= 2);
    int gesture = 0;
    for (const QList<QVariant>& one : wanted) {
      const auto request = one.first().value<Request>();
      const auto* setting = std::get_if<SettingChoice>(&request.choice);
      QVERIFY(setting && setting->key == "spectral_radius");
      if (gesture == 0) gesture = setting->gesture;
      QCOMPARE(setting->gesture, gesture);
    }
    const auto last = wanted.last().first().value<Request>();
    QVERIFY(!std::get<SettingChoice>(last.choice).live && std::stod(std::get<SettingChoice>(last.choice).value) > 0.95);
    Q_UNUSED(middle)
  }

  void aNarrowPanelKeepsItsPicture() {
    Lab lab(traceOf());
    QVERIFY(lab.find<QWidget>("settings")->isVisible());
    lab.panel.resize(320, 300);
    QCoreApplication::processEvents();
    QVERIFY(!lab.find<QWidget>("settings")->isVisible());
  }

  void aLowPanelHasTheFactorsInAViewOfTheirOwn() {
    Lab lab(traceOf());
    QVERIFY(lab->factorRect()->visible());
    lab.panel.resize(720, 260);
    QCoreApplication::processEvents();
    lab.plot()->replot();
    QVERIFY(!lab->factorRect()->visible());
    QVERIFY2(lab->normRect()->height() >= 100, qPrintable(QString::number(lab->normRect()->height())));
    QVERIFY2(lab->said().contains("The view Factors has them"), qPrintable(lab->said()));
    lab.choose("view", 1);
    QVERIFY(lab->factorRect()->visible() && !lab->normRect()->visible());
    QVERIFY2(lab->factorRect()->height() >= 100, qPrintable(QString::number(lab->factorRect()->height())));
    QVERIFY(lab.graph(lab->factorRect(), "matrix") && lab.graph(lab->factorRect(), "slope of f"));
    // Of a pinned run all factors together: log10 of the product.
    lab.panel.setPinned({{traceOf(), QColor("#a566d6"), "other", {}}});
    QCOMPARE(lab->factorRect()->graphs().size(), qsizetype(3));
    const auto at = [](const QCPGraph* graph) { return graph->data()->at(7)->value; };
    QVERIFY(std::abs(at(lab->factorRect()->graphs().last()) - at(lab.graph(lab->factorRect(), "matrix")) - at(lab.graph(lab->factorRect(), "slope of f"))) < 1e-12);
    // A click there moves the cursor as everywhere.
    QSignalSpy picked(lab.plot(), &Plot::timePicked);
    lab.plot()->replot();
    QTest::mouseClick(lab.plot(), Qt::LeftButton, {}, pixelIn(lab->factorRect(), 120, 0.0).toPoint());
    QVERIFY(!picked.isEmpty() && std::abs(picked.last().first().toLongLong() - 120) <= 1);
  }

  void theAxisHoldsWhatIsPinned() {
    Lab lab(traceOf());
    auto steeper = std::make_shared<Trace>(*traceOf());
    TraceArray measured = *steeper->find("jacobian/0");
    auto values = std::make_shared<std::vector<double>>(*measured.real);
    for (double& x : *values) x *= 3.0;
    measured.real = values;
    steeper->put(std::move(measured));
    const double before = lab->normRect()->axis(QCPAxis::atLeft)->range().lower, least = *std::ranges::min_element(*values);
    QVERIFY(least < before);
    lab.panel.setPinned({{steeper, QColor("#a566d6"), "steeper", {}}});
    QVERIFY(lab->normRect()->axis(QCPAxis::atLeft)->range().lower <= least);
  }

  void whatIsMissingIsSaid() {
    GradientLabPanel panel;
    QVERIFY(panel.emptyReason().startsWith("Nothing has run yet"));
    auto trace = std::make_shared<Trace>();
    trace->info.length = 10;
    trace->info.absent[Kind::jacobian] = "No step maps its state to the next.";
    panel.setTrace(trace);
    QCOMPARE(panel.emptyReason(), QStringLiteral("No step maps its state to the next."));
    QVERIFY(panel.headline().isEmpty() && panel.dataAsCsv().isEmpty());
  }
};

QTEST_MAIN(TestGradientLab)
#include "test_gradient_lab.moc"
