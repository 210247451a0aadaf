// SPDX-License-Identifier: GPL-3.0-or-later
// The panel of Lyapunov exponents on hand-made traces: what it says, draws, compares, exports, and says where there is nothing.
#include <QComboBox>
#include <QSignalSpy>
#include <QTest>
#include <cmath>
#include <limits>

#include "panels/lyapunov/lyapunov.h"
#include "shown_panel.h"
#include "synthetic/synthetic_trace.h"

using namespace reclab;
using test::Shown, test::synthetic_exponent, test::synthetic_trace;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// 100 steps of exponents that do not move.
std::shared_ptr<Trace> constant(const std::vector<double>& exponents) {
  test::SyntheticOptions options;
  options.length = 100;
  options.lyapunov = false;
  auto trace = std::make_shared<Trace>(*synthetic_trace(options));
  trace->put(test::unit_array(
      "lyapunov/0", trace->steps, std::ssize(exponents), [&](double, double j) { return exponents[static_cast<std::size_t>(j)]; }, ""));
  return trace;
}

}  // namespace

class TestLyapunov : public QObject {
  Q_OBJECT
 private slots:
  void theDimensionIsThatOfKaplanAndYorke() {
    const auto dimension = [](std::vector<double> exponents) { return kaplanYorke(exponents).value_or(-1.0); };
    // Hénon's map at a = 1.4, b = 0.3: 0.41922 and ln 0.3 - 0.41922 give 1.2583 (Sprott, Chaos and Time-Series Analysis, 2003).
    QVERIFY(std::abs(dimension({0.41922, std::log(0.3) - 0.41922}) - 1.2583) < 1e-4);
    // Lorenz's flow: 0.9056, 0, -14.5723 give 2.06215 (the same).
    QVERIFY(std::abs(dimension({0.9056, 0.0, -14.5723}) - 2.06215) < 1e-5);
    QCOMPARE(dimension({-0.1, -0.2}), 0.0);
    QCOMPARE(dimension({0.1, -infinity}), 1.0);
    QCOMPARE(dimension({0.1, 0.0}), -1.0);  // does not fall below 0
    QCOMPARE(dimension({0.1, std::nan(""), -3.0}), -1.0);
    QCOMPARE(dimension({}), -1.0);
  }

  void theLargestAndTheDimensionAreSaid() {
    Shown<LyapunovPanel> parting(constant({0.1, 0.0, -0.4}));
    QCOMPARE(parting->headline(), QStringLiteral("λ₁ +0.1"));
    QCOMPARE(
        parting->verdict(),
        QStringLiteral(
            "Nearby states part and gradients explode: λ₁ = +0.1 a step, tenfold in 23 steps. Attractor dimension (Kaplan–Yorke) 2.25."));
    Shown<LyapunovPanel> meeting(constant({-0.05, -0.4, -infinity}));
    QCOMPARE(meeting->headline(), QStringLiteral("λ₁ −0.05"));
    QCOMPARE(
        meeting->verdict(),
        QStringLiteral(
            "Nearby states meet and the past is forgotten: λ₁ = −0.05 a step, a tenth in 46 steps. Attractor dimension (Kaplan–Yorke) 0."));
    QVERIFY2(meeting->note().contains("1 of 3 are −∞"), qPrintable(meeting->note()));
    QCOMPARE(meeting->rect()->graphs().size(), 2);
    Shown<LyapunovPanel> still(constant({0.001, 0.0}));
    QVERIFY2(still->verdict().startsWith("Nearby states keep their distance: λ₁ = +0.001 a step, less than a factor of 2"),
             qPrintable(still->verdict()));
    QVERIFY2(still->note().contains("No dimension of an attractor is given"), qPrintable(still->note()));
    Shown<LyapunovPanel> gone(constant({-infinity, -infinity}));
    QVERIFY2(gone->verdict().startsWith("Every direction of the state is forgotten within a step"), qPrintable(gone->verdict()));
  }

  void everyExponentIsDrawnOnTheTimeAxisWithZeroInSight() {
    Shown<LyapunovPanel> shown(synthetic_trace());
    const QList<QCPGraph*> graphs = shown->rect()->graphs();
    QCOMPARE(graphs.size(), 16);
    const QCPGraph* largest = graphs.back();
    QCOMPARE(largest->name(), QStringLiteral("λ₁"));
    QCOMPARE(largest->dataCount(), 300);
    for (const int t : {0, 77, 299}) QCOMPARE(largest->data()->at(t)->value, synthetic_exponent(t, 0));
    QCOMPARE(graphs[14]->data()->at(299)->value, synthetic_exponent(299, 1));
    QVERIFY(shown.y()->range().contains(0.0) && shown.y()->range().contains(synthetic_exponent(299, 0)));
    // The wild beginning does not squeeze the rest.
    QVERIFY(shown.y()->range().upper < 0.3);
    // Linked by time: a click picks a step, and the cursor is drawn where it is told.
    QSignalSpy picked(&shown.panel, &Panel::timePicked);
    QTest::mouseClick(shown.plot(), Qt::LeftButton, {},
                      QPoint(int(std::lround(shown.x()->coordToPixel(120))), shown->rect()->rect().center().y()));
    QCOMPARE(picked.size(), 1);
    QCOMPARE(picked[0][0].toLongLong(), 120);
    shown->setTime(120);
    QCOMPARE(shown.plot()->cursorStep(), 120);
  }

  void ofManyExponentsSomeAreDrawnAndTheNoteSaysHowMany() {
    std::vector<double> many;
    for (int i = 0; i < 200; ++i) many.push_back(-0.01 * i);
    Shown<LyapunovPanel> shown(constant(many));
    QCOMPARE(shown->rect()->graphs().size(), 48);
    QCOMPARE(shown->rect()->graphs().front()->data()->at(0)->value, many.back());
    QVERIFY2(shown->note().contains("48 of the 200 exponents are drawn."), qPrintable(shown->note()));
    // What lies far below takes half of the height at most.
    QVERIFY(shown.y()->range().lower > -2.2);
  }

  void aLayerIsChosenAndOneThatRunsBackwardEndsAtItsFirstStep() {
    test::SyntheticOptions options;
    options.layers = 2;
    auto trace = std::make_shared<Trace>(*synthetic_trace(options));
    trace->info.each_layer = {{"", false}, {"backward", true}};
    Shown<LyapunovPanel> shown(trace);
    QCOMPARE(shown->headline(), QStringLiteral("λ₁ ") + (synthetic_exponent(299, 0) > 0 ? "+" : "") + number(synthetic_exponent(299, 0)));
    auto* layers = shown.find<QComboBox>("layer");
    QVERIFY(layers->isVisible() && layers->count() == 2);
    QTest::keyClick(layers, Qt::Key_Down);
    QTest::keyClick(layers, Qt::Key_Return);
    QCOMPARE(layers->currentText(), QStringLiteral("layer 1 (backward)"));
    QCOMPARE(shown->headline(), QStringLiteral("λ₁ +") + number(synthetic_exponent(0, 0)));
  }

  void pinnedRunsAreComparedByTheirLargest() {
    Shown<LyapunovPanel> shown(constant({0.1, -0.4}));
    shown->setPinned(
        {{constant({-0.2, -0.6}), QColor("#a566d6"), "radius 0.8"}, {synthetic_trace({.lyapunov = false}), QColor("#e0457b"), "another"}});
    shown.plot()->replot();
    QCOMPARE(shown->rect()->graphs().size(), 3);
    QCOMPARE(shown->rect()->graphs().back()->pen().color(), QColor("#a566d6"));
    QCOMPARE(shown->rect()->graphs().back()->data()->at(50)->value, -0.2);
    const QStringList texts = shown.texts();
    QVERIFY2(texts.contains("radius 0.8") && texts.contains("another: no exponents"), qPrintable(texts.join(u'|')));
    const QStringList csv = shown->dataAsCsv().split(u'\n', Qt::SkipEmptyParts);
    QCOMPARE(csv.front(), QStringLiteral("step,time,lyapunov/0/0,lyapunov/0/1,lyapunov/0/0 [radius 0.8],lyapunov/0/1 [radius 0.8]"));
    QCOMPARE(csv.size(), 101);
    QVERIFY2(csv[3].startsWith("2,") && csv[3].endsWith(",0.1,-0.4,-0.2,-0.6"), qPrintable(csv[3]));
  }

  void figuresSayWhatTheyAreOf() {
    Shown<LyapunovPanel> shown(synthetic_trace());
    const QStringList texts = shown.texts();
    QVERIFY2(!texts.isEmpty() && texts[0].startsWith("Lyapunov") && texts[0].contains("LSTM"), qPrintable(texts.join(u'|')));
    QVERIFY(texts.contains("λ₁"));
  }

  void whatIsMissingIsSaid() {
    LyapunovPanel panel;
    QVERIFY(panel.emptyReason().startsWith("Nothing has run yet"));
    panel.setTrace(synthetic_trace({.lyapunov = false}));
    QVERIFY2(panel.emptyReason().contains("press Run"), qPrintable(panel.emptyReason()));
    auto none = std::make_shared<Trace>(*synthetic_trace({.lyapunov = false}));
    none->info.title = "Transformer";
    none->info.note_kinds = {{Kind::lyapunov, "Layer 0 has no Lyapunov exponents, because what it carries is a record of the past"}};
    panel.setTrace(none);
    QCOMPARE(panel.emptyReason(),
             QStringLiteral("Transformer: Layer 0 has no Lyapunov exponents, because what it carries is a record of the past."));
    QVERIFY(panel.headline().isEmpty());
    none->info.note_kinds = {{Kind::lyapunov, "They were left out" + Remedy{": ", "ask for them with ", {"record", "lyapunov"}} +
                                                  Remedy{", or ", "take a smaller width"}}};
    panel.setTrace(std::make_shared<Trace>(*none));
    QCOMPARE(panel.emptyReason(), QStringLiteral("Transformer: They were left out: take a smaller width."));
  }
};

QTEST_MAIN(TestLyapunov)
#include "test_lyapunov.moc"
