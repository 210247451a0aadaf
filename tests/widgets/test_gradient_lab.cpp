// SPDX-License-Identifier: GPL-3.0-or-later
// The gradient lab on hand-made traces: curves, bounds and factors, its maps, truncation and clipping, and the settings that it asks for.
#include <QSignalSpy>
#include <QSlider>
#include <QSpinBox>
#include <QTest>
#include <algorithm>
#include <cmath>

#include "panels/gradient_lab/gradient_lab.h"
#include "panels/gradients/gradients.h"
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

QPointF pixelIn(const QCPAxisRect* rect, double x, double y) {
  return {rect->axis(QCPAxis::atBottom)->coordToPixel(x), rect->axis(QCPAxis::atLeft)->coordToPixel(y)};
}

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
  /// The gradient of a state is drawn in one colour in this panel and in Gradients, and bounds and factors in none of these, nor in that of
  /// a run.
  void aStateHasOneColourInBothPanels() {
    const auto trace = traceOf();
    Lab lab(trace);
    Shown<GradientsPanel> gradients(trace, {720, 480});
    gradients.plot()->replot();
    lab.plot()->replot();
    const auto drawn = [](const QList<QCPGraph*>& graphs, const TraceArray& array) {
      for (const QCPGraph* one : graphs)
        if (one->dataCount() == std::ssize(*array.real) && one->data()->at(40)->value == (*array.real)[40] &&
            one->data()->at(200)->value == (*array.real)[200])
          return one->pen().color();
      return QColor();
    };
    QList<QColor> states;
    for (const TraceArray* array : trace->matching("gradient/state/0/")) {
      const QColor here = drawn(lab->normRect()->graphs(), *array), there = drawn(gradients.plot()->axisRect()->graphs(), *array);
      QVERIFY2(here.isValid() && there.isValid(), array->key.c_str());
      QCOMPARE(here, there);
      QVERIFY(!states.contains(here));
      states << here;
    }
    QVERIFY(states.size() >= 2);
    for (const char* name : {"bound by σ max", "rate of |λ| max"})
      if (const QCPGraph* one = lab.graph(lab->normRect(), name)) QVERIFY2(!states.contains(one->pen().color()), name);
    for (const char* name : {"matrix", "slope of f", "gate"})
      if (const QCPGraph* one = lab.graph(lab->factorRect(), name))
        QVERIFY2(!states.contains(one->pen().color()) && one->pen().color() != lab.plot()->theme().series(0), name);
    QVERIFY(lab.graph(lab->normRect(), "bound by σ max") && lab.graph(lab->factorRect(), "matrix") &&
            lab.graph(lab->factorRect(), "slope of f"));
  }

  void whatIsMeasuredStandsBesideItsBounds() {
    Lab lab(traceOf());
    lab.panel.setTime(100);
    lab.plot()->replot();
    const QCPGraph* measured = lab.graph(lab->normRect(), "|∂s_T/∂s_t|");
    QVERIFY(measured && measured->dataCount() == 300);
    QCOMPARE(measured->data()->at(100)->value, synthetic_pair(299, 100));
    const QCPGraph* bound = lab.graph(lab->normRect(), "bound by σ max");
    QVERIFY(bound && bound->data()->at(100)->value == 0.0);
    QVERIFY2(lab->said().contains("Over the 199 steps from step 100 to the end") &&
                 lab->said().contains("the largest singular value lets it be at most 1, and the largest eigenvalue at each step, "
                                      "no bound from above, would make it 0.00233."),
             qPrintable(lab->said()));
    const QCPGraph* slope = lab.graph(lab->factorRect(), "slope of f");
    QVERIFY(slope && lab.graph(lab->factorRect(), "matrix") && !lab.graph(lab->factorRect(), "gate") &&
            !lab.graph(lab->factorRect(), "step"));
    QVERIFY2(lab->said().contains("length by 0.95: slope 0.97 × matrix 0.979."), qPrintable(lab->said()));
    const QString csv = lab.panel.dataAsCsv();
    QVERIFY2(csv.startsWith("step,time,log10 |ds_T/ds_t|,log10 bound by singular value,log10 bound by eigenvalue,log10 factor of gate,"),
             qPrintable(csv.left(200)));
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
    QVERIFY(std::abs(gate->data()->at(100)->value - std::log10(0.6)) < 1e-12 &&
            std::abs(step->data()->at(100)->value - std::log10(0.95)) < 1e-12);
    QVERIFY2(
        lab->said().contains("length by 0.95 = 0.6 along the gates + 0.35 through the matrix. What comes along the gates is a vector of "
                             "length 0.6, what comes through the matrix one of length slope 0.97 × matrix 0.361 = 0.35; they point"),
        qPrintable(lab->said()));
    QVERIFY(lab.panel.dataAsCsv().contains("log10 factor of step,share of gate,share of matrix"));
  }

  void theSharesOfAStepAddUpInTheDigitsThatAreShown() {
    // Lengths 0.795 and 0.324 at an angle: projected on their sum they are 0.7356 and 0.1224 of 0.858. And one that takes away from the
    // other.
    struct Case {
      double gate, slope, matrix, whole, share;
      const char* said;
    };
    for (const Case& one : {Case{0.795, 0.503, 0.6441, 0.858, 0.8574, "by 0.858 = 0.736 along the gates + 0.122 through the matrix."},
                            Case{0.95, 0.5, 0.3, 0.9, 1.0556, "by 0.9 = 0.95 along the gates − 0.05 through the matrix."},
                            Case{1e-9, 0.5, 2.2e-9, 2e-9, 0.4, "by 2×10⁻⁹ = 8×10⁻¹⁰ along the gates + 1.2×10⁻⁹ through the matrix."}}) {
      auto trace = std::make_shared<Trace>(*test::synthetic_trace());
      test::put_lab(*trace, true, true);
      TraceArray factors = *trace->find("jacobian_factor/0"), shares = *trace->find("jacobian_share/0");
      std::vector<double> lengths, parts;
      for (std::size_t t = 0; t < trace->steps.size(); ++t) {
        for (const double x : {one.gate, one.slope, one.matrix, one.whole}) lengths.push_back(std::log10(x));
        for (const double x : {one.share, 1.0 - one.share}) parts.push_back(x);
      }
      factors.real = std::make_shared<const std::vector<double>>(lengths);
      shares.real = std::make_shared<const std::vector<double>>(parts);
      trace->put(factors);
      trace->put(shares);
      Lab lab(trace);
      lab.panel.setTime(100);
      QVERIFY2(lab->said().contains(one.said), qPrintable(lab->said()));
    }
  }

  void aRateThatIsPassedIsCalledNoBound() {
    // What is measured rises above the rate of the largest eigenvalue, as it does where eigenvectors are not at right angles.
    auto trace = std::make_shared<Trace>(*traceOf());
    TraceArray bound = *trace->find("jacobian_bound/0");
    auto values = std::make_shared<std::vector<double>>(*bound.real);
    for (std::size_t i = 1; i < values->size(); i += 2) (*values)[i] *= 4.0;
    bound.real = values;
    trace->put(bound);
    Lab lab(trace);
    lab.panel.setTime(100);
    const double measured = synthetic_pair(299, 100), rate = (*values)[201];
    QVERIFY(measured > rate);
    QVERIFY2(!lab->said().contains("at most " + powerAsNumber(rate, 3)) &&
                 lab->said().contains("no bound from above, would make it " + powerAsNumber(rate, 3)),
             qPrintable(lab->said()));
    QVERIFY(lab.graph(lab->normRect(), "bound by σ max") && lab.graph(lab->normRect(), "rate of |λ| max"));
  }

  void atTheLastStepItIsSaidThatThereIsNothingToSee() {
    Lab lab(traceOf());
    lab.panel.setTime(299);
    QVERIFY2(lab->said().contains("The cursor is at the end, where ∂s_T/∂s_t is the identity") && !lab->said().contains("Over the 0 steps"),
             qPrintable(lab->said()));
    lab.panel.setTime(298);
    QVERIFY2(lab->said().contains("Over the one step from step 298 to the end"), qPrintable(lab->said()));
  }

  void aMapThatExplodesHasItsDiagonalInTheColours() {
    auto trace = std::make_shared<Trace>(*traceOf());
    TraceArray pairs = *trace->find("jacobian_pairs/0");
    auto values = std::make_shared<std::vector<double>>(*pairs.real);
    for (double& x : *values)
      if (std::isfinite(x)) x *= -10.0;  // up to 10^66
    pairs.real = values;
    trace->put(pairs);
    Lab lab(trace);
    lab.choose("view", 2);
    const double span = *std::ranges::max_element(*values);
    QVERIFY(span > 60.0);
    QVERIFY2(std::abs(lab->heatmap()->high() - lab->heatmap()->low() - span) < 0.5, qPrintable(QString::number(lab->heatmap()->low())));
    QVERIFY2(lab->said().contains("The diagonal, where t is s, is 1") && !lab->said().contains("Colours go down"), qPrintable(lab->said()));
    // One that fades is cut, and says where.
    for (double& x : *values)
      if (std::isfinite(x)) x *= -1.0;
    auto fades = std::make_shared<Trace>(*trace);
    pairs.real = std::make_shared<std::vector<double>>(*values);
    fades->put(pairs);
    lab.panel.setTrace(fades);
    lab.choose("view", 2);
    QVERIFY2(lab->said().contains("Colours go down to 10⁻¹²; smaller values"), qPrintable(lab->said()));
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
    QVERIFY2(lab->said().startsWith("Without factors, the bounds. The memory is read inside its own operation. Over the "),
             qPrintable(lab->said()));
    lab.choose("view", 2);
    QVERIFY2(lab->said().startsWith("Without a map of pairs, the bounds. This run has none of it yet. Over the "), qPrintable(lab->said()));
    lab.choose("view", 3);
    QVERIFY2(lab->said().startsWith("Without a map of alignment, the bounds. It has no alignment. Over the "), qPrintable(lab->said()));
  }

  void theMapsHaveAllPairs() {
    Lab lab(traceOf());
    lab.choose("view", 2);
    QVERIFY(!lab->heatmap()->isDiverging());
    QVERIFY2(lab->tipAt(pixelIn(lab->heatmap()->keyAxis()->axisRect(), 200, 25))
                 .contains("state of step 200, changed at step 100: |∂s_t/∂s_s| = 0.00592"),
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
    QVERIFY(!lab.panel.legend()->placeOf("clip").isNull());
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
    const QPoint middle(slider->width() / 2, slider->height() / 2),
        from(static_cast<int>(0.475 * (slider->width() - 16)) + 8, slider->height() / 2);
    QTest::mousePress(slider, Qt::LeftButton, {}, from);
    for (int i = 1; i <= 3; ++i) QTest::mouseMove(slider, from + QPoint(10 * i, 0));
    QTest::mouseRelease(slider, Qt::LeftButton, {}, from + QPoint(30, 0));
    QVERIFY(wanted.count() >= 2);
    int gesture = 0;
    for (const QList<QVariant>& one : wanted) {
      const auto request = one.first().value<Request>();
      const auto* setting = std::get_if<SettingChoice>(&request);
      QVERIFY(setting && setting->key == "spectral_radius");
      if (gesture == 0) gesture = setting->gesture;
      QCOMPARE(setting->gesture, gesture);
    }
    const auto last = wanted.last().first().value<Request>();
    QVERIFY(!std::get<SettingChoice>(last).live && std::stod(std::get<SettingChoice>(last).value) > 0.95);
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
      QVERIFY(std::abs(at(lab->factorRect()->graphs().last()) - at(lab.graph(lab->factorRect(), "matrix")) -
                       at(lab.graph(lab->factorRect(), "slope of f"))) < 1e-12);
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
      trace->info.absent[Kind::jacobian] = "No step of this model computes its state from the state before.";
      panel.setTrace(trace);
      QCOMPARE(panel.emptyReason(), QStringLiteral("No step of this model computes its state from the state before."));
      QVERIFY(panel.headline().isEmpty() && panel.dataAsCsv().isEmpty());
    }
};

QTEST_MAIN(TestGradientLab)
#include "test_gradient_lab.moc"
