// SPDX-License-Identifier: GPL-3.0-or-later
// The panel of sensitivities on hand-made traces: its map and the row at the cursor, what it says, compares and exports, and where there is nothing.
#include <QSignalSpy>
#include <QTest>
#include <cmath>
#include <limits>

#include "panels/sensitivity/sensitivity.h"
#include "shown_panel.h"
#include "synthetic/synthetic_sensitivity.h"

using namespace reclab;
using test::Shown, test::synthetic_sensitivity;

namespace {

std::shared_ptr<Trace> traceOf(double decay = 0.05, double reach = 200.0, std::int64_t every = 4) {
  auto trace = std::make_shared<Trace>(*test::synthetic_trace());
  test::put_sensitivity(*trace, decay, reach, every);
  return trace;
}

QPointF pixelIn(const QCPAxisRect* rect, double x, double y) { return {rect->axis(QCPAxis::atBottom)->coordToPixel(x), rect->axis(QCPAxis::atLeft)->coordToPixel(y)}; }

}  // namespace

class TestSensitivity : public QObject {
  Q_OBJECT
 private slots:
  void theMapIsInColoursOfOneMapWhateverTheSign() {
    // Some are above 1 and some below, which is no middle.
    Shown<SensitivityPanel> shown(traceOf());
    QVERIFY(!shown->heatmap()->isDiverging());
    QVERIFY2(shown->heatmap()->high() <= 0.0 && shown->heatmap()->high() > -1.0, qPrintable(QString::number(shown->heatmap()->high())));
    QVERIFY2(std::abs(shown->heatmap()->high() - shown->heatmap()->low() - 10.8) < 0.3, qPrintable(QString::number(shown->heatmap()->low())));
    QCOMPARE(shown->bar()->axis()->label(), QStringLiteral("|dy/du|"));
    QStringList powers;
    for (const QString& text : shown->bar()->axis()->tickVectorLabels()) powers << text;
    QVERIFY2(powers.contains(QStringLiteral("1")) || powers.contains(QStringLiteral("10⁻⁴")) || powers.contains(QStringLiteral("10⁻⁵")), qPrintable(powers.join(u'|')));
  }

  void smallIsToldFromNothing() {
    Shown<SensitivityPanel> shown(traceOf(0.5, 30.0));
    shown.panel.setTime(150);
    shown->plot()->replot();
    const QImage picture = shown->plot()->toPixmap(shown->plot()->width(), shown->plot()->height()).toImage();
    const QRgb paper = shown->plot()->theme().base.rgb();
    const auto colour = [&](double t, double s) { return picture.pixel(pixelIn(shown->mapRect(), t, s / 4.0).toPoint()); };
    QVERIFY(colour(120, 92) != paper);  // 10^-14: below the scale, and there
    QCOMPARE(colour(120, 60), paper);   // not at all
    QCOMPARE(colour(120, 160), paper);
    const QString tip = shown->tipAt(pixelIn(shown->mapRect(), 120, 40.0));
    QVERIFY2(tip.contains("output of step 120, input of step 160: |dy/du| = 0"), qPrintable(tip));
  }

  void theRowAtTheCursorIsDrawnAndSaid() {
    Shown<SensitivityPanel> shown(traceOf());
    shown.panel.setTime(120);
    shown->plot()->replot();
    const QCPGraph* row = shown->rowRect()->graphs().front();
    for (int i = 0; i < row->dataCount(); ++i) {
      const double s = row->data()->at(i)->key, expected = synthetic_sensitivity(120, s);
      if (std::isfinite(expected))
        QCOMPARE(row->data()->at(i)->value, expected);
      else
        QVERIFY(std::isnan(row->data()->at(i)->value));
    }
    double largest = -1e9;
    std::int64_t strongest = 0, back = 0;
    for (std::int64_t s = 0; s <= 120; s += 4)
      if (synthetic_sensitivity(120, static_cast<double>(s)) > largest) largest = synthetic_sensitivity(120, static_cast<double>(s)), strongest = s;
    for (std::int64_t s = 120; s >= 0; s -= 4)
      if (synthetic_sensitivity(120, static_cast<double>(s)) >= largest - 2.0) back = 120 - s;
    QVERIFY2(shown->said().contains(QStringLiteral("moved most by the input of step %1").arg(strongest)) && shown->said().contains(QStringLiteral("up to %1 steps back.").arg(back)), qPrintable(shown->said()));
    QCOMPARE(shown->headline(), QStringLiteral("1 % within %1 steps").arg(back));
    const QString tip = shown->tipAt(pixelIn(shown->rowRect(), 81, 0.0));
    QVERIFY2(tip.contains("output of step 120, input of step 80"), qPrintable(tip));
  }

  void pinnedRunsHaveTheirRow() {
    Shown<SensitivityPanel> shown(traceOf());
    shown.panel.setPinned({{traceOf(0.1), QColor("#c04000"), "slower"}, {test::synthetic_trace(), QColor("#0040c0"), "bare"}});
    shown.panel.setTime(100);
    shown->plot()->replot();
    QCOMPARE(shown->rowRect()->graphs().size(), 2);
    const QCPGraph* pin = shown->rowRect()->graphs().back();
    QCOMPARE(pin->pen().color(), QColor("#c04000"));
    QCOMPARE(pin->data()->at(10)->value, synthetic_sensitivity(100, 40, 0.1));
    const QString csv = shown.panel.dataAsCsv();
    QVERIFY(csv.startsWith("step,time,") && csv.contains("log10 |dy/du| of step 8 [slower]"));
  }

  void whatIsMissingIsSaid() {
    SensitivityPanel panel;
    QVERIFY(panel.emptyReason().startsWith("Nothing has run yet"));
    panel.setTrace(test::synthetic_trace());
    QVERIFY2(panel.emptyReason().contains("press Run"), qPrintable(panel.emptyReason()));
    QVERIFY(panel.headline().isEmpty() && panel.dataAsCsv().isEmpty());
  }
};

QTEST_MAIN(TestSensitivity)
#include "test_sensitivity.moc"
