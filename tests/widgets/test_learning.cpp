// SPDX-License-Identifier: GPL-3.0-or-later
// The Learning panel on trainings made by hand.
#include <QComboBox>
#include <QPushButton>
#include <QSignalSpy>
#include <QTest>
#include <cmath>

#include "panels/learning/learning.h"
#include "panels/spectrum/spectrum.h"
#include "synthetic/synthetic_learning.h"
#include "synthetic/synthetic_trace.h"
#include "test_application.h"

using namespace reclab;

class TestLearning : public QObject {
  Q_OBJECT

  std::unique_ptr<LearningPanel> shown(std::shared_ptr<const Learning> learning) {
    auto panel = std::make_unique<LearningPanel>();
    panel->resize(700, 520);
    panel->setLearning(std::move(learning));
    panel->show();
    if (!QTest::qWaitForWindowExposed(panel.get())) qFatal("the window did not come up");
    panel->plot()->redrawNow();
    return panel;
  }

 private slots:
  void withoutATrainingItOffersOne() {
    const auto panel = shown(nullptr);
    QVERIFY(panel->emptyReason().contains("Nothing has learned yet"));
    QSignalSpy asked(panel.get(), &Panel::requested);
    auto* offer = panel->findChild<QPushButton*>("offer");
    QVERIFY(offer->isVisible());
    QTest::mouseClick(offer, Qt::LeftButton);
    QCOMPARE(asked.count(), 1);
    QCOMPARE(std::get<StudyChoice>(asked[0][0].value<Request>()).study, std::string("train"));
    QVERIFY(panel->dataAsCsv().isEmpty());
    panel->setLearning(test::synthetic_learning());
    QVERIFY(panel->emptyReason().isEmpty());
  }

  void curvesAreTheLossesOfEachStep() {
    const auto learning = test::synthetic_learning();
    const auto panel = shown(learning);
    int batches = 0, held = 0;
    for (const QCPGraph* graph : panel->upper()->graphs()) {
      for (const LearningCurvePtr& one : learning->trainings) {
        if (graph->dataCount() == std::ssize(one->loss) && graph->data()->at(9)->value == std::log10(one->loss[9])) {
          ++batches;
          QCOMPARE(graph->data()->at(9)->key, 10.0);  // the first step is step 1
        }
        if (graph->dataCount() == std::ssize(one->judged) && graph->data()->at(3)->value == std::log10(one->judged_loss[3])) {
          ++held;
          QCOMPARE(graph->data()->at(3)->key, 120.0);
        }
      }
    }
    QCOMPARE(batches, 2);
    QCOMPARE(held, 2);
    QVERIFY2(panel->verdict().contains("lstm, step 240 of 500: on what is held out its squared error is 0.0101") &&
                 panel->verdict().contains("0.18"),
             qPrintable(panel->verdict()));
    for (const char* name : {"elman", "lstm", "baseline"}) QVERIFY2(panel->legend()->namesAsHtml(false).contains(name), name);
  }

  void whatIsBelowIsChosen() {
    const auto panel = shown(test::synthetic_learning());
    auto* below = panel->findChild<QComboBox*>("below");
    const auto choose = [&](int index) {
      below->setCurrentIndex(index);
      emit below->activated(index);
    };
    choose(1);
    for (const char* name : {"0/weight_ih", "0/weight_hh", "head/weight"})
      QVERIFY2(panel->legend()->namesAsHtml(false).contains(name), name);
    const QCPGraph* graph = panel->lower()->graphs().front();
    QCOMPARE(graph->dataCount(), 10);
    QCOMPARE(graph->data()->at(0)->key, 40.0);
    choose(2);
    QCOMPARE(panel->lower()->graphs().front()->data()->at(0)->value, std::log10(5e-3 * std::exp(-1.0 / 300.0)));
  }

  void aClickAsksForTheWeightsOfItsStep() {
    const auto panel = shown(test::synthetic_learning());
    QSignalSpy asked(panel.get(), &Panel::requested);
    const QPoint at(static_cast<int>(std::lround(panel->upper()->axis(QCPAxis::atBottom)->coordToPixel(200.0))),
                    panel->upper()->rect().center().y());
    QTest::mouseClick(panel->plot(), Qt::LeftButton, {}, at);
    QVERIFY(asked.count() >= 1);
    const auto choice = std::get<CheckpointChoice>(asked.last()[0].value<Request>());
    QCOMPARE(choice.training, std::uint64_t{2});
    QVERIFY2(std::abs(choice.step - 200) <= 2, qPrintable(QString::number(choice.step)));
    QVERIFY(!choice.moving);
    QVERIFY2(panel->tipAt(at).contains("loss"), qPrintable(panel->tipAt(at)));
  }

  void theDataHaveALineAStep() {
    const auto panel = shown(test::synthetic_learning());
    const QStringList lines = panel->dataAsCsv().trimmed().split('\n');
    QCOMPARE(lines.size(), 1 + 2 * 401);
    QVERIFY(
        lines[0].startsWith("training,name,step,loss,rate,gradient_norm,clipped_norm,held_out_loss,held_out_metric,change/0/weight_ih"));
    for (const QString& line : lines) QCOMPARE(line.count(','), lines[0].count(','));
    const QStringList cells = lines[1 + 40].split(',');
    QCOMPARE(cells[2], QString("40"));
    QCOMPARE(cells[3].toDouble(), test::synthetic_learning()->trainings[0]->loss[39]);
    QCOMPARE(cells[9].toDouble(), 1e-2 / 1.4);
  }

  void eigenvaluesLeaveATrailOverTraining() {
    SpectrumPanel panel;
    panel.resize(500, 460);
    panel.show();
    QVERIFY(QTest::qWaitForWindowExposed(&panel));
    const auto look = [&](std::uint64_t training, std::int64_t steps) {
      auto trace = std::make_shared<Trace>(*test::synthetic_trace());
      trace->info.learned = LearnedInfo{training, steps, "adding"};
      panel.setTrace(trace);
    };
    panel.setTime(20);
    for (const std::int64_t steps : {0, 30, 10, 30}) look(1, steps);
    QCOMPARE(panel.trail().past().size(), std::size_t{3});
    QCOMPARE(panel.trail().past()[1].steps, std::int64_t{10});
    QVERIFY2(panel.note().contains("3 steps of training, from 0"), qPrintable(panel.note()));
    for (std::int64_t steps = 0; steps < 300; ++steps) look(1, steps);
    QVERIFY(panel.trail().past().size() <= SpectrumTrail::most && panel.trail().past().front().steps == 0 &&
            panel.trail().past().back().steps == 299);
    panel.setTime(40);  // of another step of the sequence
    QCOMPARE(panel.trail().past().size(), std::size_t{1});
    look(1, 5);
    look(2, 6);  // of another training
    QCOMPARE(panel.trail().past().size(), std::size_t{1});
    panel.setTrace(test::synthetic_trace());  // of none
    QVERIFY(panel.trail().past().empty());
  }

  void whyItEndedStandsAtTheTop() {
    const auto learning = test::synthetic_learning();
    auto bad = std::make_shared<LearningCurve>(*learning->trainings[1]);
    bad->problem = "Training ended at step 12, where the loss became non-finite: choose a smaller rate.";
    learning->trainings[1] = bad;
    const auto panel = shown(learning);
    QCOMPARE(panel->verdict(), QString::fromStdString(bad->problem));
  }
};

QTEST_MAIN(TestLearning)
#include "test_learning.moc"
