// SPDX-License-Identifier: GPL-3.0-or-later
// The view of the spectrum from continuous to discrete time on hand-made traces, against closed forms.
#include <QComboBox>
#include <QDoubleSpinBox>
#include <QLabel>
#include <QSlider>
#include <QTest>
#include <cmath>
#include <numbers>

#include "panels/spectrum/spectrum.h"
#include "shown_panel.h"
#include "synthetic/synthetic_trace.h"

using namespace reclab;
using test::Shown, test::synthetic_trace, test::SyntheticOptions;
using Complex = std::complex<double>;

namespace {

/// One eigenvalue z a step, of a rule.
std::shared_ptr<Trace> ofOne(Complex z, const std::string& rule, double share = 0.5) {
  SyntheticOptions options;
  options.spectra = false;
  auto trace = std::make_shared<Trace>(*synthetic_trace(options));
  TraceArray spectrum;
  spectrum.key = "spectrum/0";
  spectrum.shape = {1, 1};
  spectrum.axes = {{"time", "", {}}, {"eigenvalue", "", {}}};
  spectrum.complex = std::make_shared<const std::vector<Complex>>(1, z);
  trace->put(std::move(spectrum));
  trace->info.spectra = {{.continuous = true, .per_step = false, .of = "the transition", .rule = rule, .share = share}};
  return trace;
}

std::shared_ptr<Trace> inSteps(std::shared_ptr<Trace> trace) {
  trace->time_name = "step";
  for (std::size_t i = 0; i < trace->time.size(); ++i) trace->time[i] = static_cast<double>(trace->steps[i]);
  return trace;
}

std::vector<std::vector<double>> rows(const QString& csv) {
  std::vector<std::vector<double>> found;
  for (const QString& line : csv.split(u'\n', Qt::SkipEmptyParts).mid(1)) {
    found.emplace_back();
    for (const QString& cell : line.split(u',')) found.back().push_back(cell.toDouble());
  }
  return found;
}

}  // namespace

class TestFlow : public QObject {
  Q_OBJECT

  static void turnTo(Shown<SpectrumPanel>& shown) {
    auto* view = shown.find<QComboBox>("view");
    QVERIFY(view->isVisible());
    view->setFocus();
    QTest::keyClick(view, Qt::Key_Down);
    shown.plot()->replot();
    QVERIFY(shown->flow().shown());
  }

 private slots:
  void aRunThatIsNotOfContinuousTimeHasNoSuchView() {
    Shown<SpectrumPanel> shown(synthetic_trace());
    QVERIFY(!shown.find<QComboBox>("view")->isVisible());
    QVERIFY(!shown->planeRect()->realVisibility());
  }

  void theHalfPlaneHasTheSequencesOwnTime() {
    SyntheticOptions options;
    options.continuous = true;
    Shown<SpectrumPanel> shown(synthetic_trace(options), {800, 420});
    turnTo(shown);
    QVERIFY(shown->planeRect()->realVisibility() && shown->planeRect()->width() > 150);
    // A step is a twelfth of a year: −0.025 a step is −0.3 a year.
    QCOMPARE(shown->planeRect()->axis(QCPAxis::atBottom)->label(), QStringLiteral("Re λ (1/year)"));
    QCOMPARE(shown->headline(), QStringLiteral("max Re λ −0.3"));
    const Complex w = test::synthetic_flow(6, 16);  // 0.15 π a step, which is 0.9 cycles a year
    const QPointF at = shown->flow().inPlane(w);
    QVERIFY(std::abs(shown->planeRect()->axis(QCPAxis::atBottom)->pixelToCoord(at.x()) - 12.0 * w.real()) < 1e-9);
    const QString tip = shown->tipAt(at);
    QVERIFY2(
        tip.contains(QStringLiteral("time constant %1 year, %2 steps").arg(number(-1.0 / w.real() / 12.0, 4), number(-1.0 / w.real(), 4))),
        qPrintable(tip));
    QVERIFY2(tip.contains("frequency 0.9 cycles per year"), qPrintable(tip));
    // Without a time of its own, a step is the unit.
    auto plain = std::make_shared<Trace>(*synthetic_trace(options));
    shown->setTrace(inSteps(plain));
    shown.plot()->replot();
    QCOMPARE(shown->planeRect()->axis(QCPAxis::atBottom)->label(), QStringLiteral("Re λ (1/step)"));
    QCOMPARE(shown->headline(), QStringLiteral("max Re λ −0.025"));
  }

  void whatRunsIsWhereTheTransitionIs() {
    for (const std::string rule : {"forward", "backward", "bilinear", "exponential"}) {
      const Complex z(0.6, 0.3);
      Shown<SpectrumPanel> shown(ofOne(z, rule));
      turnTo(shown);
      const auto cells = rows(shown->dataAsCsv()).at(0);
      const std::size_t own = rule == "forward" ? 6 : rule == "backward" ? 8 : rule == "bilinear" ? 10 : 14;
      QVERIFY(std::abs(cells[own] - 0.6) < 1e-14 && std::abs(cells[own + 1] - 0.3) < 1e-14);
      const QString tip = shown->tipAt(shown->flow().inDisk(z));
      QVERIFY2(tip.contains("z = 0.6 + 0.3 i"), qPrintable(tip));
    }
  }

  void theSliderMovesEveryRuleAsItsFormulaSays() {
    // λ = −0.5 + 2i a step, by bilinear.
    const Complex w(-0.5, 2.0);
    Shown<SpectrumPanel> shown(inSteps(ofOne((1.0 + 0.5 * w) / (1.0 - 0.5 * w), "bilinear")));
    turnTo(shown);
    auto* slider = shown.find<QSlider>("step");
    QVERIFY(slider->isVisible());
    const auto check = [&](double h, double share) {
      const auto cells = rows(shown->dataAsCsv()).at(0);
      const auto at = [&](std::size_t column) { return Complex(cells[column], cells[column + 1]); };
      QVERIFY(std::abs(at(1) - w) < 1e-12);
      QVERIFY(std::abs(cells[3] - 2.0) < 1e-12);                     // −1/Re λ
      QVERIFY(std::abs(cells[4] - 1.0 / std::numbers::pi) < 1e-12);  // 2/2π
      QVERIFY(std::abs(cells[5] - h) < 1e-12);
      QVERIFY(std::abs(at(6) - (1.0 + h * w)) < 1e-12);
      QVERIFY(std::abs(at(8) - 1.0 / (1.0 - h * w)) < 1e-12);
      QVERIFY(std::abs(at(10) - (2.0 + h * w) / (2.0 - h * w)) < 1e-12);
      QVERIFY(std::abs(at(12) - (1.0 + (1.0 - share) * h * w) / (1.0 - share * h * w)) < 1e-12);
      QVERIFY(std::abs(at(14) - std::exp(-0.5 * h) * Complex(std::cos(2.0 * h), std::sin(2.0 * h))) < 1e-12);
    };
    check(1.0, 0.75);
    slider->setFocus();
    for (int i = 0; i < 4; ++i) QTest::keyClick(slider, Qt::Key_PageUp);  // of 25 hundredths
    QCOMPARE(slider->value(), 100);
    check(10.0, 0.75);
    QCOMPARE(shown.find<QLabel>("stepLength")->text(), QStringLiteral("h = 10 steps"));
    shown.find<QDoubleSpinBox>("share")->setValue(0.6);
    check(10.0, 0.6);
    QTest::mouseDClick(shown.plot(), Qt::LeftButton, {}, shown->rect()->rect().center());
    QCOMPARE(slider->value(), 0);
    check(1.0, 0.6);
  }

  void whatLeavesTheCircleIsSaid() {
    // −3 a step: forward Euler puts it at −2; half a step is on the other side of its limit of 2/3.
    Shown<SpectrumPanel> shown(inSteps(ofOne(std::exp(-3.0), "exponential")));
    turnTo(shown);
    QVERIFY2(shown->note().contains("With forward Euler 1 of 1 that fade leave the circle, up to |z| = 2."), qPrintable(shown->note()));
    auto* slider = shown.find<QSlider>("step");
    slider->setValue(-30);
    QVERIFY2(!shown->note().contains("leave the circle"), qPrintable(shown->note()));
    slider->setValue(0);
    // Hidden by its legend it is not spoken of.
    shown.plot()->replot();
    QTest::mouseClick(shown.plot(), Qt::LeftButton, {}, shown->legend()->placeOf("rule/forward").center());
    QVERIFY2(!shown->note().contains("forward Euler"), qPrintable(shown->note()));
  }

  void turnsThatTheTransitionHasForgottenAreTheFlows() {
    auto trace = inSteps(ofOne(std::exp(Complex(-0.1, 7.0)), "exponential"));
    Shown<SpectrumPanel> shown(trace);
    turnTo(shown);
    QVERIFY(std::abs(rows(shown->dataAsCsv()).at(0)[2] - (7.0 - 2.0 * std::numbers::pi)) < 1e-12);
    TraceArray flow;
    flow.key = "flow/0";
    flow.shape = {1, 1};
    flow.axes = {{"time", "", {}}, {"eigenvalue", "", {}}};
    flow.complex = std::make_shared<const std::vector<Complex>>(1, Complex(-0.1, 7.0));
    auto more = std::make_shared<Trace>(*trace);
    more->put(std::move(flow));
    shown->setTrace(more);
    QCOMPARE(rows(shown->dataAsCsv()).at(0)[2], 7.0);
    shown.plot()->replot();
    const QString tip = shown->tipAt(shown->flow().inDisk(std::exp(Complex(-0.1, 7.0))));
    QVERIFY2(tip.contains("more than half a turn a step"), qPrintable(tip));
  }

  void aPresetTurnsToItAndTheHandAway() {
    SyntheticOptions options;
    options.continuous = true;
    SpectrumPanel panel;
    panel.setTrace(synthetic_trace(options));
    QVERIFY(!panel.flow().shown());
    panel.lookAt("lstm", "continuous", false);
    QVERIFY(panel.flow().shown());
    panel.setTrace(synthetic_trace());  // of the same preset, and of no continuous time
    QVERIFY(!panel.flow().shown() && panel.emptyReason().isEmpty());
    panel.setTrace(synthetic_trace(options));
    QVERIFY(panel.flow().shown());
    auto* view = panel.findChild<QComboBox*>("view");
    QTest::keyClick(view, Qt::Key_Up);
    QVERIFY(!panel.flow().shown());
    panel.lookAt("lstm", "continuous", false);
    QVERIFY(!panel.flow().shown());
    panel.lookAt("lstm", "continuous", true);
    QVERIFY(panel.flow().shown());
  }

  void theNewStateOfAStepMovesWithTheCursor() {
    SyntheticOptions options;
    auto trace = std::make_shared<Trace>(*synthetic_trace(options));
    trace->info.spectra[0].continuous = true;
    trace->info.spectra[0].rule = "forward";
    Shown<SpectrumPanel> shown(inSteps(trace));
    turnTo(shown);
    for (const int step : {0, 120}) {
      shown->setTime(step);
      const Complex z = (*trace->find("spectrum/0")->complex)[static_cast<std::size_t>(step / 10 * 16)];
      const auto cells = rows(shown->dataAsCsv()).at(0);
      QVERIFY(std::abs(Complex(cells[1], cells[2]) - (z - 1.0)) < 1e-14);
    }
  }

  void figuresNameTheRules() {
    SyntheticOptions options;
    options.continuous = true;
    Shown<SpectrumPanel> shown(synthetic_trace(options), {800, 500});
    turnTo(shown);
    const QStringList texts = shown.texts();
    for (const char* name : {"forward Euler", "backward Euler", "bilinear", "zero-order hold, exponential (the run)", "Re z"})
      QVERIFY2(texts.contains(name), qPrintable(texts.join(u'|')));
  }
};

QTEST_MAIN(TestFlow)
#include "test_flow.moc"
