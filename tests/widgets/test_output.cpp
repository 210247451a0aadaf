// SPDX-License-Identifier: GPL-3.0-or-later
// The panel of outputs on hand-made traces: what it says, draws, compares, exports, and says where there is nothing.
#include <QComboBox>
#include <QLineEdit>
#include <QSignalSpy>
#include <QTest>
#include <cmath>
#include <limits>

#include "panels/output/output.h"
#include "plain_text.h"
#include "shown_panel.h"
#include "synthetic/synthetic_trace.h"

using namespace reclab;
using test::Shown, test::synthetic_trace, test::unit_array;

namespace {

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();

std::shared_ptr<Trace> bare(std::int64_t length = 100) {
  test::SyntheticOptions options;
  options.length = length;
  options.units = 1;
  options.gates = options.spectra = options.gradients = options.timing = options.lyapunov = false;
  auto trace = std::make_shared<Trace>(*synthetic_trace(options));
  trace->output_names.clear();
  return trace;
}

/// `n` outputs, of which j has the amplitude j + 1.
double wave(double t, double j) { return (j + 1.0) * std::sin(0.1 * t + j); }
std::shared_ptr<Trace> waves(std::int64_t n, std::int64_t length = 100) {
  auto trace = bare(length);
  trace->put(unit_array("output", trace->steps, n, wave, "what it returns"));
  return trace;
}

/// One output that is always 1 off; its target is 0 and 4 in turns, and counts from step 50 on.
double swings(double t) { return static_cast<std::int64_t>(t) % 2 == 0 ? 0.0 : 4.0; }
std::shared_ptr<Trace> offByOne() {
  auto trace = bare();
  trace->put(unit_array("output", trace->steps, 1, [](double t, double) { return swings(t) + 1.0; }, ""));
  trace->put(unit_array("target", trace->steps, 1, [](double t, double) { return swings(t); }, ""));
  trace->put(unit_array("mask", trace->steps, 1, [](double t, double) { return t < 50 ? 0.0 : 1.0; }, ""));
  return trace;
}

/// Logits ln 2 for class t mod 4 and 0 for the other two of 3 classes (none is 3): probabilities 1/2, 1/4, 1/4, or a third each. The last
/// 12 steps count, and their target is t mod 2.
std::shared_ptr<Trace> classes() {
  auto trace = bare();
  TraceArray output = unit_array(
      "output", trace->steps, 3,
      [](double t, double j) { return static_cast<std::int64_t>(t) % 4 == static_cast<std::int64_t>(j) ? std::log(2.0) : 0.0; }, "");
  output.unit = "logit";
  trace->put(std::move(output));
  trace->put(
      unit_array("target", trace->steps, 1, [](double t, double) { return static_cast<double>(static_cast<std::int64_t>(t) % 2); }, ""));
  trace->put(unit_array("mask", trace->steps, 1, [](double t, double) { return t < 88 ? 0.0 : 1.0; }, ""));
  return trace;
}

QCPGraph* graphOf(QCPAxisRect* rect, const QString& name) {
  for (QCPGraph* graph : rect->graphs())
    if (graph->name() == name) return graph;
  qFatal("no curve %s", qPrintable(name));
  return nullptr;
}

QPoint pixel(Shown<OutputPanel>& shown, double step, double value) {
  return {int(std::lround(shown.x()->coordToPixel(step))), int(std::lround(shown.y()->coordToPixel(value)))};
}

}  // namespace

class TestOutput : public QObject {
  Q_OBJECT
 private slots:
  void theTargetAndTheBestConstantStandBesideTheOutput() {
    Shown<OutputPanel> shown(offByOne());
    // Half the squared error of an output that is 1 off, and of the mean of 0 and 4.
    QCOMPARE(
        shown->verdict(),
        QStringLiteral("Over the 50 steps that count half the squared error is 0.5; that of the best constant, the target's mean, is 2."));
    QCOMPARE(shown->headline(), QStringLiteral("RMSE 1"));
    QCOMPARE(shown->rect()->graphs().size(), 3);
    const QCPGraph *output = graphOf(shown->rect(), "y"), *target = graphOf(shown->rect(), "target"),
                   *constant = shown->rect()->graphs()[0];
    QCOMPARE(output->data()->at(51)->value, 5.0);
    QCOMPARE(target->data()->at(0)->key, 50.0);
    QCOMPARE(target->data()->at(1)->value, 4.0);
    QCOMPARE(target->dataCount(), 50);
    QVERIFY(target->pen().widthF() > 2.0 * output->pen().widthF() &&
            shown->rect()->graphs().indexOf(target) < shown->rect()->graphs().indexOf(output));
    QCOMPARE(constant->data()->at(0)->value, 2.0);
    QVERIFY(shown.y()->range().contains(0.0) && shown.y()->range().contains(5.0) && shown.y()->range().size() < 6.0);
    // A click on the legend hides the target.
    QTest::mouseClick(shown.plot(), Qt::LeftButton, {}, shown->legend()->placeOf("target").center());
    QVERIFY(!target->realVisibility() && output->realVisibility());
    QVERIFY(shown.y()->range().lower > 0.5);
  }

  void aTargetThatCountsOnceIsARingAndNoConstantIsComparedWithIt() {
    auto trace = offByOne();
    trace->put(unit_array("mask", trace->steps, 1, [](double t, double) { return t == 99.0 ? 1.0 : 0.0; }, ""));
    Shown<OutputPanel> shown(trace);
    QCOMPARE(shown->verdict(), QStringLiteral("At the one step that counts half the squared error is 0.5."));
    QCOMPARE(shown->rect()->graphs().size(), 2);
    const QCPGraph* target = graphOf(shown->rect(), "target");
    QCOMPARE(target->dataCount(), 1);
    QCOMPARE(target->data()->at(0)->value, 4.0);
    QVERIFY(!target->scatterStyle().isNone());
  }

  void aTargetIsWhereItCountsAndNowhereElse() {
    auto trace = offByOne();
    trace->put(unit_array("mask", trace->steps, 1, [](double t, double) { return t == 99.0 ? 1.0 : 0.0; }, ""));
    Shown<OutputPanel> shown(trace);
    const auto valued = [&] { return shown.texts().filter(QStringLiteral("target ")); };  // the legend has the word alone
    shown.panel.setTime(40);
    QCOMPARE(valued(), QStringList());
    shown.panel.setTime(99);
    QCOMPARE(valued(), QStringList("target 4"));
    // Its mark at the edge of the picture is drawn whole.
    shown.panel.setTime(40);
    shown.plot()->replot();
    const QImage picture = shown.plot()->toPixmap(shown.plot()->width(), shown.plot()->height()).toImage();
    const QPoint at = pixel(shown, 99, 4.0);
    const int edge = shown->rect()->right();
    QVERIFY(at.x() + 4 > edge);
    int beyond = 0;
    for (int x = edge + 1; x <= at.x() + 4; ++x)
      for (int y = at.y() - 4; y <= at.y() + 4; ++y) beyond += picture.pixel(x, y) != shown.plot()->theme().base.rgb();
    QVERIFY(beyond > 0);
    // Where it counts from step 50 on, nothing is said of it before.
    Shown<OutputPanel> later(offByOne());
    later.panel.setTime(20);
    QCOMPARE(later.texts().filter(QStringLiteral("target ")), QStringList());
    later.panel.setTime(51);
    QCOMPARE(later.texts().filter(QStringLiteral("target ")), QStringList("target 4"));
  }

  void classesAreProbabilitiesOrLogits() {
    Shown<OutputPanel> shown(classes());
    // Steps 88 to 99: of targets 0 1 0 1, in turns, the largest are 0 1 2 and none. Six of 12 are right; ln 2 at those, else ln 4 and ln 3.
    const double loss = (6.0 * std::log(2.0) + 3.0 * std::log(4.0) + 3.0 * std::log(3.0)) / 12.0;
    QCOMPARE(shown->verdict(), QStringLiteral("Over the 12 steps that count the output is right at 50 %, its cross-entropy %1 nats; the "
                                              "best constant is right at 50 %, and has %2.")
                                   .arg(number(loss), number(std::log(2.0))));
    QCOMPARE(shown->headline(), QStringLiteral("50 % right"));
    QVERIFY(std::abs(graphOf(shown->rect(), "class 1")->data()->at(1)->value - 0.5) < 1e-15);
    QVERIFY(std::abs(graphOf(shown->rect(), "class 2")->data()->at(3)->value - 1.0 / 3.0) < 1e-15);
    QCOMPARE(shown.y()->label(), QStringLiteral("probability"));
    auto* scale = shown.find<QComboBox>("scale");
    QVERIFY(scale->isVisible());
    QTest::keyClick(scale, Qt::Key_Down);
    QTest::keyClick(scale, Qt::Key_Return);
    shown.plot()->replot();
    QCOMPARE(shown.y()->label(), QStringLiteral("logit"));
    QCOMPARE(graphOf(shown->rect(), "class 1")->data()->at(1)->value, std::log(2.0));
    QCOMPARE(shown->choices().value("logits"), QVariant(true));
    OutputPanel next;
    next.setChoices({{"logits", "true"}});
    next.setTrace(classes());
    QCOMPARE(next.rect()->axis(QCPAxis::atLeft)->label(), QStringLiteral("logit"));
  }

  void aLogitThatIsHugeIsAProbability() {
    auto trace = bare(3);
    TraceArray output = unit_array("output", trace->steps, 2, [](double t, double j) { return j == 0 ? 1e4 * (t - 1.0) : 0.0; }, "");
    output.unit = "logit";
    trace->put(std::move(output));
    const OutputData data(trace);
    QCOMPARE(data.probability(0, 0), 0.0);
    QCOMPARE(data.probability(1, 0), 0.5);
    QCOMPARE(data.probability(2, 0), 1.0);
  }

  void ofManyThoseThatVaryMostAreInColourAndAllOthersGrey() {
    Shown<OutputPanel> shown(waves(64, 628));
    QCOMPARE(shown->chosen(), (std::vector<std::int64_t>{59, 60, 61, 62, 63}));
    QCOMPARE(shown->rect()->graphs().size(), 64);
    QVERIFY(shown.texts().contains("59 others"));
    auto* which = shown.find<QLineEdit>("which");
    QVERIFY(which->isVisible());
    which->setFocus();
    QTest::keyClicks(which, "3, 10-12, y 5");
    QCOMPARE(shown->chosen(), (std::vector<std::int64_t>{3, 10, 11, 12, 5}));
    QCOMPARE(graphOf(shown->rect(), "y 10")->data()->at(7)->value, wave(7, 10));
    QVERIFY(!shown->note().contains("no output"));
    QTest::keyClicks(which, ", 64");
    QVERIFY2(shown->note().contains("There is no output 64: they are numbered from 0 to 63."), qPrintable(shown->note()));
    QCOMPARE(shown->chosen().size(), std::size_t{5});
    // It is kept with the model, and another run of it is shown in the same way.
    shown->setTrace(waves(64, 628));
    QCOMPARE(shown->chosen(), (std::vector<std::int64_t>{3, 10, 11, 12, 5}));
    which->clear();
    emit which->textEdited(QString());
    QCOMPARE(shown->chosen().size(), std::size_t{5});
    QCOMPARE(shown->chosen().back(), 63);
  }

  void oneAndTwoNeedNoChoice() {
    Shown<OutputPanel> one(waves(1));
    QVERIFY(!one.find<QLineEdit>("which")->isVisible() && !one.find<QComboBox>("scale")->isVisible());
    QCOMPARE(one->verdict(), QStringLiteral("One output, and no target to compare it with."));
    one->setTime(10);
    QCOMPARE(one->headline(), QStringLiteral("y = ") + number(wave(10, 0)));
    Shown<OutputPanel> two(waves(2));
    QCOMPARE(two->rect()->graphs().size(), 2);
    QCOMPARE(two->verdict(), QStringLiteral("2 outputs, and no target to compare them with."));
    QCOMPARE(two->headline(), QStringLiteral("|y| = ") + number(std::hypot(wave(0, 0), wave(0, 1))));
    QVERIFY(two.texts().contains("y 1"));
    auto named = waves(2);
    named->output_names = {"next west", "next east"};
    two->setTrace(named);
    QVERIFY(two.texts().contains("next east"));
  }

  void aPresetSaysWhichAndTheHandOverrules() {
    OutputPanel panel;
    panel.setTrace(waves(20));
    panel.lookAt("lstm", "4", false);
    QCOMPARE(panel.chosen(), (std::vector<std::int64_t>{4}));
    auto* which = panel.findChild<QLineEdit*>("which");
    QCOMPARE(which->text(), QStringLiteral("4"));
    which->selectAll();
    QTest::keyClicks(which, "6");
    QCOMPARE(panel.chosen(), (std::vector<std::int64_t>{6}));
    panel.lookAt("lstm", "4", false);
    QCOMPARE(panel.chosen(), (std::vector<std::int64_t>{6}));
    panel.lookAt("lstm", "4", true);
    QCOMPARE(panel.chosen(), (std::vector<std::int64_t>{4}));
  }

  void theMouseTellsValuesAndTimes() {
    Shown<OutputPanel> shown(offByOne());
    shown->setPinned({{waves(1), QColor("#a566d6"), "other", {}}});
    shown.plot()->replot();
    const QString tip = shown->tipAt(pixel(shown, 61, 5.0));
    QVERIFY2(tip == htmlTip(QStringLiteral("y at step 61: 5<br>target 4, error 1<br>other: %1").arg(number(wave(61, 0), 4))),
             qPrintable(tip));
    QVERIFY2(shown->tipAt(pixel(shown, 11, 5.0)).contains("No target counts here."), qPrintable(shown->tipAt(pixel(shown, 11, 5.0))));
    QVERIFY(shown->tipAt(pixel(shown, 61, 3.0)).isEmpty());
    QVERIFY(shown->tipAt({1, 1}).isEmpty());
    QSignalSpy picked(&shown.panel, &Panel::timePicked);
    QTest::mouseClick(shown.plot(), Qt::LeftButton, {}, pixel(shown, 77, 3.0));
    QCOMPARE(picked.size(), 1);
    QCOMPARE(picked[0][0].toLongLong(), 77);
    shown->setTime(77);
    QCOMPARE(shown.plot()->cursorStep(), 77);
    Shown<OutputPanel> logits(classes());
    const QString of = logits->tipAt(pixel(logits, 92, 0.5));
    QVERIFY2(of.contains(">class 0 at step 92: probability 0.5, logit 0.6931<br>target: class 0"), qPrintable(of));
  }

  void pinnedRunsAreComparedInTheirColour() {
    Shown<OutputPanel> shown(waves(2));
    auto scaled = bare();
    scaled->put(unit_array("output", scaled->steps, 2, [](double t, double j) { return 2.0 * wave(t, j); }, ""));
    shown->setPinned({{scaled, QColor("#a566d6"), "twice", {}},
                      {classes(), QColor("#e0457b"), "copying", {}},
                      {bare(), QColor("#e0457b"), "nothing", {}}});
    shown.plot()->replot();
    QCOMPARE(shown->rect()->graphs().size(), 4);
    const QCPGraph *first = shown->rect()->graphs()[0], *second = shown->rect()->graphs()[1];
    QCOMPARE(first->pen().color(), QColor("#a566d6"));
    QCOMPARE(first->data()->at(30)->value, 2.0 * wave(30, 0));
    QVERIFY(first->pen().style() == Qt::SolidLine && second->pen().style() == Qt::DashLine);
    QVERIFY(shown.y()->range().upper > 3.9);
    const QStringList texts = shown.texts();
    QVERIFY2(texts.contains("twice") && texts.contains("copying: classes") && texts.contains("nothing: no output"),
             qPrintable(texts.join(u'|')));
    const QStringList csv = shown->dataAsCsv().split(u'\n', Qt::SkipEmptyParts);
    QCOMPARE(csv.front(), QStringLiteral("step,time,output/0,output/1,output/0 [twice],output/1 [twice]"));
    const QStringList cells = csv[31].split(u',');
    QCOMPARE(cells[0], QStringLiteral("30"));
    QCOMPARE(cells[3].toDouble(), wave(30, 1));
    QCOMPARE(cells[5].toDouble(), 2.0 * wave(30, 1));
  }

  void csvHasTargetsWhereTheyCount() {
    OutputPanel panel;
    panel.setTrace(offByOne());
    QStringList csv = panel.dataAsCsv().split(u'\n', Qt::SkipEmptyParts);
    QCOMPARE(csv[0], QStringLiteral("step,time,output/0,target/0,mask"));
    QCOMPARE(csv.size(), 101);
    QCOMPARE(csv[1], QStringLiteral("0,1749,1,,0"));
    QVERIFY2(csv[52].startsWith("51,") && csv[52].endsWith(",5,4,1"), qPrintable(csv[52]));
    panel.setTrace(classes());
    csv = panel.dataAsCsv().split(u'\n', Qt::SkipEmptyParts);
    QCOMPARE(csv[0], QStringLiteral("step,time,probability/0,probability/1,probability/2,target/0,mask"));
    const QStringList cells = csv[90].split(u',');
    QVERIFY(std::abs(cells[3].toDouble() - 0.5) < 1e-15 && cells[5] == "1" && cells[6] == "1");
  }

  void aVeryLongRunIsDrawnByItsExtremes() {
    auto trace = waves(8, 1'000'000);
    Shown<OutputPanel> shown(trace);
    qint64 points = 0;
    for (const QCPGraph* graph : shown->rect()->graphs()) points += graph->dataCount();
    QVERIFY2(points > 100'000 && points <= 2'000'000, qPrintable(QString::number(points)));
    // Nothing of a curve's range is lost.
    bool found = false;
    const QCPRange range = graphOf(shown->rect(), "y 7")->getValueRange(found);
    QVERIFY(found && range.upper > 7.99999 && range.lower < -7.99999);
  }

  void valuesThatAreNotFiniteAreGaps() {
    auto trace = bare();
    trace->put(unit_array("output", trace->steps, 1, [](double t, double) { return t > 60 ? not_a_number : t; }, ""));
    Shown<OutputPanel> shown(trace);
    QVERIFY(shown->emptyReason().isEmpty());
    QVERIFY(std::isnan(shown->rect()->graphs()[0]->data()->at(61)->value));
    QVERIFY(shown.y()->range().upper < 70);
  }

  void whatIsMissingIsSaid() {
    OutputPanel panel;
    QVERIFY(panel.emptyReason().startsWith("Nothing has run yet"));
    QVERIFY(panel.dataAsCsv().isEmpty());
    panel.setTrace(bare());
    QCOMPARE(panel.emptyReason(), QStringLiteral("The output of this run was not recorded. Press Run."));
    auto ended = bare();
    ended->info.outcome = Outcome::cancelled;
    ended->info.sentence = "It was stopped.";
    panel.setTrace(ended);
    QCOMPARE(panel.emptyReason(), QStringLiteral("This run has no output, for it ended early: It was stopped."));
    auto wild = bare();
    wild->put(unit_array("output", wild->steps, 1, [](double, double) { return not_a_number; }, ""));
    panel.setTrace(wild);
    QVERIFY2(panel.emptyReason().contains("not finite from its first step"), qPrintable(panel.emptyReason()));
    QVERIFY(panel.headline().isEmpty());
  }
};

QTEST_MAIN(TestOutput)
#include "test_output.moc"
