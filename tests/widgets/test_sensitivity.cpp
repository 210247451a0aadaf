// SPDX-License-Identifier: GPL-3.0-or-later
// The panel of sensitivities on hand-made traces: its map and the row at the cursor, what it says, compares and exports, and where there is
// nothing.
#include <QSignalSpy>
#include <QTest>
#include <algorithm>
#include <cmath>
#include <limits>

#include "panels/sensitivity/sensitivity.h"
#include "shown_panel.h"
#include "synthetic/synthetic_lab.h"
#include "synthetic/synthetic_sensitivity.h"

using namespace reclab;
using test::Shown, test::synthetic_sensitivity;

namespace {

std::shared_ptr<Trace> traceOf(double decay = 0.05, double reach = 200.0, std::int64_t every = 4) {
  auto trace = std::make_shared<Trace>(*test::synthetic_trace());
  test::put_sensitivity(*trace, decay, reach, every);
  return trace;
}

QPointF pixelIn(const QCPAxisRect* rect, double x, double y) {
  return {rect->axis(QCPAxis::atBottom)->coordToPixel(x), rect->axis(QCPAxis::atLeft)->coordToPixel(y)};
}

}  // namespace

class TestSensitivity : public QObject {
  Q_OBJECT
 private slots:
  void theMapIsInColoursOfOneMapWhateverTheSign() {
    // Some are above 1 and some below, which is no middle.
    Shown<SensitivityPanel> shown(traceOf());
    QVERIFY(!shown->heatmap()->isDiverging());
    QVERIFY2(shown->heatmap()->high() <= 0.0 && shown->heatmap()->high() > -1.0, qPrintable(QString::number(shown->heatmap()->high())));
    QVERIFY2(std::abs(shown->heatmap()->high() - shown->heatmap()->low() - 10.8) < 0.3,
             qPrintable(QString::number(shown->heatmap()->low())));
    QCOMPARE(shown->bar()->axis()->label(), QStringLiteral("|dy/du|"));
    QStringList powers;
    for (const QString& text : shown->bar()->axis()->tickVectorLabels()) powers << text;
    QVERIFY2(powers.contains(QStringLiteral("1")) || powers.contains(QStringLiteral("10⁻⁴")) || powers.contains(QStringLiteral("10⁻⁵")),
             qPrintable(powers.join(u'|')));
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

  void whatIsTooSmallForANumberIsToldFromNothing() {
    auto trace = traceOf();
    TraceArray array = *trace->find("sensitivity");
    auto values = std::make_shared<std::vector<double>>(*array.real);
    for (double& x : *values)
      if (std::isfinite(x)) x = x * 100.0 - 5.0;  // down to 10^-1000
    array.real = values;
    trace->put(array);
    Shown<SensitivityPanel> shown(trace);
    shown->logarithmic()->trigger();
    shown->plot()->replot();
    const QImage picture = shown->plot()->toPixmap(shown->plot()->width(), shown->plot()->height()).toImage();
    const QRgb paper = shown->plot()->theme().base.rgb();
    const auto colour = [&](double t, double s) { return picture.pixel(pixelIn(shown->mapRect(), t, s / 4.0).toPoint()); };
    QVERIFY(colour(200, 40) != paper);
    QCOMPARE(colour(120, 160), paper);
    QVERIFY2(shown->said().contains("the output does not depend on the input, |dy/du| is 0."), qPrintable(shown->said()));
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
      if (synthetic_sensitivity(120, static_cast<double>(s)) > largest)
        largest = synthetic_sensitivity(120, static_cast<double>(s)), strongest = s;
    for (std::int64_t s = 120; s >= 0; s -= 4)
      if (synthetic_sensitivity(120, static_cast<double>(s)) >= largest - 2.0) back = 120 - s;
    QVERIFY2(shown->said().contains(QStringLiteral("moved most by the input of step %1").arg(strongest)) &&
                 shown->said().contains(QStringLiteral("up to %1 steps back.").arg(back)),
             qPrintable(shown->said()));
    QCOMPARE(shown->headline(), QStringLiteral("reaches %1 steps back").arg(back));
    const QString tip = shown->tipAt(pixelIn(shown->rowRect(), 81, 0.0));
    QVERIFY2(tip.contains("output of step 120, input of step 80"), qPrintable(tip));
  }

  void theCursorMarksRowAndColumnAndAClickMovesIt() {
    Shown<SensitivityPanel> shown(traceOf());
    QSignalSpy picked(shown->plot(), &Plot::timePicked);
    shown.panel.setTime(80);
    QCOMPARE(shown->inputLine()->point1->coords().y(), 20.0);
    QCOMPARE(shown->plot()->cursorStep(), 80);
    QTest::mouseClick(shown->plot(), Qt::LeftButton, {}, pixelIn(shown->mapRect(), 200, 30).toPoint());
    QVERIFY(!picked.isEmpty());
    QVERIFY2(std::abs(picked.last().first().toLongLong() - 200) <= 1, qPrintable(picked.last().first().toString()));
  }

  void coloursStandForPowersOrForValues() {
    Shown<SensitivityPanel> shown(traceOf());
    const double low = shown->heatmap()->low();
    QVERIFY(shown->choices().value("logarithmic").toBool());
    shown->logarithmic()->trigger();
    QCOMPARE(shown->heatmap()->low(), 0.0);
    QVERIFY(std::abs(std::log10(shown->heatmap()->high()) - 0.4) < 0.05);
    QVERIFY(!shown->choices().value("logarithmic").toBool());
    shown->setChoices({{"logarithmic", "true"}});
    QCOMPARE(shown->heatmap()->low(), low);
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

  void aMixingMatrixIsChosenInItsPlace() {
    auto trace = traceOf();
    test::put_mixing(*trace);
    test::put_mixing(*trace, "mixing_unnormalised", 3.0);
    Shown<SensitivityPanel> shown(trace);
    QVERIFY(!shown.find<QComboBox>("group")->isVisible());
    const auto choose = [&](const char* name, int index) {
      auto* box = shown.find<QComboBox>(name);
      box->setCurrentIndex(index);
      emit box->activated(index);
      shown.plot()->replot();
    };
    choose("view", 1);
    QVERIFY(shown.find<QComboBox>("group")->isVisible() && shown.find<QCheckBox>("normalised")->isVisible() &&
            !shown.find<QComboBox>("memory")->isVisible());
    shown.panel.setTime(120);
    QVERIFY2(shown->said().contains("most weight on what was written at step 120, M = 1;"), qPrintable(shown->said()));
    QVERIFY2(shown->tipAt(pixelIn(shown->mapRect(), 120, 58)).contains("read at step 120, written at step 116: M = −0.656"),
             qPrintable(shown->tipAt(pixelIn(shown->mapRect(), 120, 58))));
    QVERIFY(!shown->heatmap()->isDiverging());
    shown->logarithmic()->trigger();
    QVERIFY(shown->heatmap()->isDiverging());  // weights of both signs
    shown->logarithmic()->trigger();
    choose("group", 1);
    QVERIFY2(shown->said().contains("M = 0.1;") && shown->said().contains("up to 8 steps back"), qPrintable(shown->said()));
    QTest::mouseClick(shown.find<QCheckBox>("normalised"), Qt::LeftButton, {},
                      QPoint(8, shown.find<QCheckBox>("normalised")->height() / 2));
    QVERIFY2(shown->said().contains("M = 0.3;"), qPrintable(shown->said()));
    QVERIFY(shown.panel.dataAsCsv().contains("M of step 4"));
    SensitivityPanel other;
    other.setChoices(shown->choices());
    QCOMPARE(other.choices(), shown->choices());
    shown.panel.setTrace(traceOf());
    QVERIFY2(shown->emptyReason().contains("no mixing matrices yet"), qPrintable(shown->emptyReason()));
    QTest::mouseClick(shown.find<QPushButton>("offer"), Qt::LeftButton);
    QVERIFY(shown->emptyReason().isEmpty());
  }

  void aPresetNamesTheView() {
    auto trace = traceOf();
    test::put_mixing(*trace);
    Shown<SensitivityPanel> shown(trace);
    shown->lookAt("lstm", "mixing", false);
    QVERIFY(shown->said().contains("M = "));
    shown->lookAt("lstm", "sensitivity", false);
    QVERIFY(shown->said().contains("|dy/du| = "));
  }

  void ticksDoNotStandOnOneAnother() {
    Shown<SensitivityPanel> shown(traceOf());
    shown->setPinned({{traceOf(0.02), Qt::red, "slower"}});
    for (int width = 220; width <= 700; width += 60)
      for (int height = 240; height <= 640; height += 50) {
        shown->resize(width, height);
        QTRY_COMPARE(shown->size(), QSize(width, height));
        shown->plot()->replot();
        for (const QCPAxisRect* rect : {shown->mapRect(), shown->rowRect()}) {
          if (!rect->visible() || rect->height() <= 0) continue;
          for (const QCPAxis::AxisType side : {QCPAxis::atBottom, QCPAxis::atLeft}) {
            const QCPAxis* axis = rect->axis(side);
            if (!axis->tickLabels()) continue;
            const QVector<double> ticks = axis->tickVector();
            const QVector<QString> labels = axis->tickVectorLabels();
            const QFontMetrics metrics(axis->tickLabelFont(), shown->plot());
            double end = -1e9;
            std::vector<std::pair<double, double>> spans;
            for (qsizetype i = 0; i < std::min(ticks.size(), labels.size()); ++i) {
              if (labels[i].isEmpty() || !axis->range().contains(ticks[i])) continue;
              const double at = axis->coordToPixel(ticks[i]),
                           half = (side == QCPAxis::atBottom ? metrics.horizontalAdvance(labels[i]) : metrics.ascent()) / 2.0;
              spans.emplace_back(at - half, at + half);
            }
            std::ranges::sort(spans);
            for (const auto& [from, to] : spans) {
              QVERIFY2(from >= end, qPrintable(QString("%1 x %2, %3 of %4")
                                                   .arg(width)
                                                   .arg(height)
                                                   .arg(side == QCPAxis::atBottom ? "below" : "beside")
                                                   .arg(rect == shown->mapRect() ? "the map" : "the row")));
              end = to;
            }
          }
        }
      }
  }

  void whatIsMissingIsSaid() {
    SensitivityPanel panel;
    QVERIFY(panel.emptyReason().startsWith("Nothing has run yet"));
    panel.setTrace(test::synthetic_trace());
    QVERIFY2(panel.emptyReason().contains("in front of others"), qPrintable(panel.emptyReason()));
    QVERIFY(panel.headline().isEmpty() && panel.dataAsCsv().isEmpty());
  }
};

QTEST_MAIN(TestSensitivity)
#include "test_sensitivity.moc"
