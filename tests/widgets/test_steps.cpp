// SPDX-License-Identifier: GPL-3.0-or-later
// The panel of parallel forms, on schedules made by hand, with real keys and mouse.
#include <QApplication>
#include <QPushButton>
#include <QSignalSpy>
#include <QSvgRenderer>
#include <QTemporaryDir>
#include <QTest>
#include <algorithm>
#include <cmath>

#include "panels/steps/steps_panel.h"
#include "synthetic/synthetic_schedule.h"
#include "synthetic/synthetic_trace.h"

using namespace reclab;

namespace {

using Place = StepSchedule::Place;

using test::Made, test::put_schedule;

/// Of 8 steps: one after another; a tree of neighbours, pairs and halves; a triangle in two chunks; an iteration of 3.
std::shared_ptr<Trace> trace_of(std::int64_t steps = 8) {
  test::SyntheticOptions options;
  options.length = 100;
  auto trace = std::make_shared<Trace>(*test::synthetic_trace(options));
  test::put_schedules(*trace, steps);
  return trace;
}

struct Shown {
  StepsPanel panel;
  explicit Shown(std::shared_ptr<const Trace> trace, QSize size = {640, 520}) {
    choose("steps", 0);
    panel.resize(size);
    panel.setTrace(std::move(trace));
    panel.show();
    if (!QTest::qWaitForWindowExposed(&panel)) qFatal("the window did not come up");
    panel.plot()->replot();
  }
  StepsPanel* operator->() { return &panel; }
  ScheduleView* view() { return panel.view(); }
  /// By the keyboard, as a hand does.
  void choose(const char* name, int index) {
    auto* box = panel.findChild<QComboBox*>(name);
    box->setCurrentIndex(index);
    emit box->activated(index);
  }
  void form(const char* name) {
    auto* box = panel.findChild<QComboBox*>("form");
    choose("form", box->findData(QString::fromLatin1(name)));
    panel.plot()->replot();
  }
  int find(int round, int last, const QString& kind = {}) {
    const auto& schedule = *view()->schedule();
    for (int i = 0; i < static_cast<int>(schedule.nodes.size()); ++i) {
      const auto& node = schedule.nodes[static_cast<std::size_t>(i)];
      if (node.round == round && node.last == last && (kind.isEmpty() || schedule.kinds[static_cast<std::size_t>(node.kind)].name == kind))
        return i;
    }
    return -1;
  }
  QColor at(const QPointF& place) {
    panel.plot()->replot();
    return panel.plot()->grab().toImage().pixelColor((place * panel.plot()->devicePixelRatioF()).toPoint());
  }
};

}  // namespace

class TestSteps : public QObject {
  Q_OBJECT

 private slots:
  void anEmptyPanelSaysWhyAndAsksOnlyWhenSeen() {
    StepsPanel panel;
    QVERIFY(panel.emptyReason().contains("Nothing has run yet"));
    QSignalSpy wanted(&panel, &Panel::requested);
    panel.setTrace(test::synthetic_trace());
    QVERIFY2(panel.emptyReason().contains("being laid out"), qPrintable(panel.emptyReason()));
    QCOMPARE(wanted.size(), 0);  // nobody looks
    panel.show();
    QVERIFY(QTest::qWaitForWindowExposed(&panel));
    QCOMPARE(wanted.size(), 1);
    const auto choice = std::get<StudyChoice>(wanted[0][0].value<Request>());
    QVERIFY(choice.study == "schedule" && choice.values == (std::vector<std::pair<std::string, std::string>>{{"steps", "16"}}));
    auto none = std::make_shared<Trace>(*test::synthetic_trace());
    none->put(test::real_array("schedule/none", {0}, {{"steps", "", {}}}, {}, "No form of this model can be drawn."));
    panel.setTrace(none);
    QCOMPARE(panel.emptyReason(), QStringLiteral("No form of this model can be drawn."));
    QCOMPARE(wanted.size(), 1);
  }

  void aFormThatWasChosenIsThereAgainWheneverTheFormsAreLaidOut() {
    Shown shown(trace_of());
    QVERIFY(shown->choices().isEmpty());
    shown.form("sequential");
    const QVariantMap chosen = shown->choices();
    StepsPanel again;
    again.setChoices(chosen);  // of another window, before anything has run
    QCOMPARE(again.choices(), chosen);
    again.setTrace(test::synthetic_trace());
    QCOMPARE(again.choices(), chosen);
    Shown later(trace_of());
    later->setChoices(chosen);
    QCOMPARE(later.view()->schedule()->form, QStringLiteral("sequential"));
    later->setChoices({});
    QCOMPARE(later.view()->schedule()->form, QStringLiteral("scan"));
  }

  void theFirstParallelFormIsShownWithItsNumbers() {
    Shown shown(trace_of());
    QVERIFY(shown->emptyReason().isEmpty());
    QCOMPARE(shown.view()->schedule()->form, QStringLiteral("scan"));
    QCOMPARE(shown->headline(), QStringLiteral("scan: 7 compositions in 3 rounds; step by step: 8 in 8"));
    QVERIFY2(shown->words().contains("Round 3 of 3: one piece, alone.") && shown->words().contains("Neighbours go together."),
             qPrintable(shown->words()));
    // Every node is where it says, in its colour, and is found there again.
    const auto& schedule = *shown.view()->schedule();
    for (int i = 0; i < static_cast<int>(schedule.nodes.size()); ++i) {
      const QPointF place = shown.view()->placeOf(i);
      QVERIFY(QRectF(shown.view()->rect()).contains(place));
      QCOMPARE(shown.view()->nodeAt(place), i);
      const QColor ink =
          schedule.nodes[static_cast<std::size_t>(i)].round ? shown->plot()->theme().series(0) : shown->plot()->theme().muted;
      const QColor drawn = shown.at(place);
      QVERIFY2(
          std::abs(drawn.red() - ink.red()) < 12 && std::abs(drawn.green() - ink.green()) < 12 && std::abs(drawn.blue() - ink.blue()) < 12,
          qPrintable(QString::number(i) + ' ' + drawn.name() + ' ' + ink.name()));
    }
  }

  void keysAndButtonsGoRoundByRound() {
    Shown shown(trace_of());
    Plot* plot = shown->plot();
    plot->setFocus();
    QCOMPARE(shown.view()->position(), 3);
    QTest::keyClick(plot, Qt::Key_Left);
    QCOMPARE(shown.view()->position(), 2);
    QVERIFY(shown->words().contains("Round 2 of 3: 2 pieces side by side."));
    // What is to come is faint.
    const QPointF last = shown.view()->placeOf(shown.find(3, 7)), before = shown.view()->placeOf(shown.find(2, 7));
    QVERIFY(contrast(shown.at(last), plot->theme().base) < 1.6);
    QVERIFY(contrast(shown.at(before), plot->theme().base) > 2.5);
    QTest::keyClick(plot, Qt::Key_Right);
    QCOMPARE(shown.view()->position(), 3);
    QVERIFY(contrast(shown.at(last), plot->theme().base) > 2.5);
    QTest::keyClick(plot, Qt::Key_Right);
    QCOMPARE(shown.view()->position(), 3);
    QTest::mouseClick(shown->findChild<QToolButton*>("back"), Qt::LeftButton);
    QTest::mouseClick(shown->findChild<QToolButton*>("back"), Qt::LeftButton);
    QCOMPARE(shown.view()->position(), 1);
    QTest::mouseClick(shown->findChild<QToolButton*>("forward"), Qt::LeftButton);
    QCOMPARE(shown.view()->position(), 2);
    QCOMPARE(shown->findChild<QSlider*>("round")->value(), 2);
    shown->findChild<QSlider*>("round")->setValue(0);
    QCOMPARE(shown.view()->position(), 0);
    QVERIFY(!shown->findChild<QToolButton*>("back")->isEnabled());
    QVERIFY(shown->words().contains("what is given"));
  }

  void spacePlaysToTheEndAndHidingStops() {
    Shown shown(trace_of());
    shown.choose("speed", 3);
    shown->plot()->setFocus();
    QTest::keyClick(shown->plot(), Qt::Key_Space);
    QVERIFY(shown->playing());
    QCOMPARE(shown.view()->position(), 0);  // from the start, having been at the end
    QTRY_COMPARE(shown.view()->position(), 3);
    QVERIFY(!shown->playing());
    QTest::mouseClick(shown->findChild<QToolButton*>("play"), Qt::LeftButton);
    QVERIFY(shown->playing());
    QTest::keyClick(shown->plot(), Qt::Key_Space);
    QVERIFY(!shown->playing());
    QTest::keyClick(shown->plot(), Qt::Key_Space);
    QVERIFY(shown->playing());
    shown->hide();
    QVERIFY(!shown->playing());
  }

  void aNodeSaysWhatItComputesAndShowsItsCone() {
    Shown shown(trace_of());
    const int node = shown.find(2, 7);
    const QPointF place = shown.view()->placeOf(node);
    const QString tip = shown.view()->tipAt(place);
    for (const char* part : {"composition", "round 2", "covers steps 4 to 7", "a = 0.25", "b = 23",
                             "composition (steps 4 to 5; steps 6 to 7)", "what a composition computes"})
      QVERIFY2(tip.contains(part), qPrintable(tip + " lacks " + part));
    QTest::mouseMove(shown->plot(), place.toPoint());
    QTRY_COMPARE(shown.view()->chosen(), node);
    const auto cone = shown.view()->schedule()->cone(node);
    QCOMPARE(std::count(cone.begin(), cone.end(), true), std::ptrdiff_t(1 + 2 + 4));
    QVERIFY(contrast(shown.at(shown.view()->placeOf(shown.find(1, 1))), shown->plot()->theme().base) < 1.6);  // not in it
    QVERIFY(contrast(shown.at(shown.view()->placeOf(shown.find(1, 7))), shown->plot()->theme().base) > 2.5);
    // A click keeps it, and moves the cursor of time there.
    QSignalSpy picked(shown.operator->(), &Panel::timePicked);
    QTest::mouseClick(shown->plot(), Qt::LeftButton, {}, place.toPoint());
    QCOMPARE(picked.size(), 1);
    QCOMPARE(picked[0][0].toLongLong(), 7);
    QTest::mouseMove(shown->plot(), QPoint(5, shown->plot()->height() - 5));
    QTest::qWait(50);
    QCOMPARE(shown.view()->chosen(), node);
    QTest::mouseClick(shown->plot(), Qt::LeftButton, {}, QPoint(5, shown->plot()->height() - 5));
    QCOMPARE(shown.view()->chosen(), -1);
    QVERIFY(shown.view()->tipAt(QPointF(2, 2)).isEmpty());
  }

  void aTriangleHasItsBlocksAndBars() {
    Shown shown(trace_of());
    shown.form("chunkwise");
    QCOMPARE(shown.view()->schedule()->form, QStringLiteral("chunkwise"));
    const auto& schedule = *shown.view()->schedule();
    // Cells stand at the crossing of their steps: those of one row at one height, to the right as time goes.
    std::vector<QPointF> row;
    for (int i = 0; i < static_cast<int>(schedule.nodes.size()); ++i) {
      const auto& node = schedule.nodes[static_cast<std::size_t>(i)];
      if (schedule.kinds[static_cast<std::size_t>(node.kind)].place == Place::cell && node.last == 7)
        row.push_back(shown.view()->placeOf(i));
    }
    QCOMPARE(row.size(), std::size_t(4));
    for (std::size_t i = 1; i < row.size(); ++i) QVERIFY(std::abs(row[i].y() - row[0].y()) < 0.5 && row[i].x() > row[i - 1].x() + 5);
    const int bar = shown.find(2, 3, "read");
    QVERIFY(shown.view()->tipAt(shown.view()->placeOf(bar)).contains("step 4, for steps 0 to 3"));
    QVERIFY(shown.view()->tipAt(row[0]).contains("step 7 looks at step 4"));
  }

  void anIterationIsAHeatMapRowByRow() {
    Shown shown(trace_of());
    shown.form("newton");
    QCOMPARE(shown->headline(), QStringLiteral("newton: 3 iterations, 3 rounds; step by step: 8 in 8"));
    QCOMPARE(shown.view()->position(), 3);
    QVERIFY(shown->words().contains("After iteration 3 of 3 all 8 steps are right."));
    const QPointF later = shown.view()->placeOf(shown.find(3, 5));
    const QColor solid = shown.at(later);
    QTest::keyClick(shown->plot(), Qt::Key_Left);
    QVERIFY2(shown->words().contains("After iteration 2 of 3 the first 4 of 8 steps are right."), qPrintable(shown->words()));
    QVERIFY(shown.at(later) != solid);
    QVERIFY(shown.view()->tipAt(later).isEmpty());  // it is to come
    QVERIFY(shown.view()->tipAt(shown.view()->placeOf(shown.find(2, 5))).contains("iteration 2</b>, step 5: off by 0.1"));
    QCOMPARE(shown.view()->schedule()->exactAfter(1), 2);
  }

  void anotherLengthIsAskedForAndNothingOldIsShown() {
    Shown shown(trace_of());
    QSignalSpy wanted(shown.operator->(), &Panel::requested);
    shown.choose("steps", 1);
    QCOMPARE(wanted.size(), 1);
    const auto choice = std::get<StudyChoice>(wanted[0][0].value<Request>());
    QVERIFY(choice.study == "schedule" && choice.values == (std::vector<std::pair<std::string, std::string>>{{"steps", "16"}}));
    QVERIFY(!shown.view()->schedule());
    QCOMPARE(shown->headline(), QString());
    shown->setTrace(trace_of(16));
    QVERIFY(shown.view()->schedule() && shown.view()->schedule()->steps == 16);
    QCOMPARE(shown->headline(), QStringLiteral("scan: 15 compositions in 4 rounds; step by step: 16 in 16"));
  }

  void figuresAndData_data() {
    QTest::addColumn<QString>("form");
    for (const char* form : {"sequential", "scan", "chunkwise", "newton"}) QTest::newRow(form) << form;
  }
  void figuresAndData() {
    QFETCH(QString, form);
    Shown shown(trace_of());
    shown.form(form.toLatin1());
    QTemporaryDir folder;
    for (const auto& [format, suffix] : {std::pair{Panel::Format::png, "png"}, {Panel::Format::svg, "svg"}, {Panel::Format::pdf, "pdf"}}) {
      const QString file = folder.filePath(QStringLiteral("steps.") + suffix);
      QCOMPARE(shown->saveFigure(file, format, FigureStyle::asShown()), QString());
      QVERIFY(QFileInfo(file).size() > 2000);
    }
    QFile svg(folder.filePath("steps.svg"));
    QVERIFY(svg.open(QIODevice::ReadOnly));
    const QByteArray text = svg.readAll();
    QVERIFY(QSvgRenderer(text).isValid() && text.contains("Parallel form: " + form.toUtf8() + " of 8 steps") && !text.contains("<image"));
    const QStringList csv = shown->dataAsCsv().split(u'\n', Qt::SkipEmptyParts);
    QCOMPARE(csv[0].section(u',', 0, 8), QStringLiteral("form,node,kind,round,begin,first,last,row,work"));
    const auto of_form = std::count_if(csv.begin(), csv.end(), [&](const QString& line) { return line.startsWith(form + u','); });
    QCOMPARE(of_form, static_cast<std::ptrdiff_t>(shown.view()->schedule()->nodes.size()));
    if (form == "scan") QVERIFY(csv.contains("scan,8,composition,1,1,0,1,1,1,18,0,0.25,0,,0 1"));
  }

  void theCursorOfTimeIsDrawnWhereItIsCovered() {
    Shown shown(trace_of());
    const auto accent = [&] {
      shown->plot()->replot();
      const QImage image = shown->plot()->grab().toImage();
      const QColor ink = shown->plot()->theme().accent;
      int count = 0;
      for (int y = 0; y < image.height(); ++y)
        for (int x = 0; x < image.width(); ++x) {
          const QColor c = image.pixelColor(x, y);
          count += std::abs(c.red() - ink.red()) + std::abs(c.green() - ink.green()) + std::abs(c.blue() - ink.blue()) < 20;
        }
      return count;
    };
    shown->setTime(50);
    const int without = accent();
    shown->setTime(3);
    QVERIFY2(accent() > without + 60, qPrintable(QString::number(accent()) + ' ' + QString::number(without)));
  }
};

QTEST_MAIN(TestSteps)
#include "test_steps.moc"
