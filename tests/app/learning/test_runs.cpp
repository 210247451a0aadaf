// SPDX-License-Identifier: GPL-3.0-or-later
// Runs that learn beside one another: each has one name, one colour and one set of weights, in every picture and at every step of training.
#include <QElapsedTimer>
#include <QPushButton>
#include <QSet>
#include <QSignalSpy>
#include <QTableWidget>
#include <algorithm>

#include "experiment/training/training.h"
#include "gui/comparing/compare_dialog.h"
#include "gui/session/pins.h"
#include "gui/views/pin_chip.h"
#include "gui/views/status_line.h"
#include "models/registry.h"
#include "training_test.h"

using namespace reclab;
using test::patience;

class TestRuns : public test::TrainingTest {
  Q_OBJECT

 private:
  const std::vector<Pin>& pins() { return window_->pins()->pins(); }
  /// Beside what is looked at, from the menu of models to compare with.
  void pinModel(const char* id) {
    Setup beside = session().setup();
    beside.preset = id;
    QCOMPARE(window_->pins()->add(beside, nullptr, {}), QString());
  }
  /// All of them are at rest, of the weights after so many steps; -1: of those that were drawn. `but`: of which that does not hold.
  bool pinsStand(std::int64_t step, std::size_t but = Pins::most) {
    const bool stand = QTest::qWaitFor(
        [&] {
          if (!atRest() || session().training() || window_->pins()->running()) return false;
          for (std::size_t i = 0; i < pins().size(); ++i) {
            const Pin& pin = pins()[i];
            if (!pin.comparable) return false;
            if (i != but && (pin.trace->info.learned ? pin.trace->info.learned->steps : -1) != step) return false;
          }
          return std::ranges::all_of(window_->pins()->runs(), &Panel::Run::whole);
        },
        patience);
    for (const Pin& pin : pins())
      if (!stand)
        qWarning("%s: %lld %s", qPrintable(pin.name),
                 pin.trace && pin.trace->info.learned ? static_cast<long long>(pin.trace->info.learned->steps) : -1LL,
                 qPrintable(pin.problem));
    return stand;
  }
  /// What the Output panel draws.
  QString outputs() {
    PanelDock* dock = window_->area()->dock("output");
    dock->raise();
    dock->catchUp();
    return dock->panel()->dataAsCsv();
  }
  /// Chips, legends and the curves of learning call each run the same, and draw it in one colour, which no other has.
  void namesAndColoursAgree() {
    const auto columns = window_->pins()->columns();
    QSet<QRgb> colours;
    for (const auto& column : columns) colours << column.colour.rgb();
    QCOMPARE(colours.size(), static_cast<qsizetype>(columns.size()));
    const auto runs = window_->pins()->runs();
    QCOMPARE(runs.size(), pins().size());
    window_->area()->dock("learning")->raise();
    QTRY_VERIFY(panel()->isVisible());
    PanelDock* gradients = window_->area()->dock("gradients");
    gradients->raise();
    gradients->catchUp();
    for (std::size_t i = 0; i < pins().size(); ++i) {
      QCOMPARE(columns[i + 1].name, pins()[i].name);
      QCOMPARE(runs[i].label, pins()[i].name);
      QVERIFY(runs[i].colour == columns[i + 1].colour);
      const std::uint64_t training = session().trainingOf(pins()[i].id);
      QTRY_VERIFY2(panel()->legend()->namesAsHtml(false).contains(pins()[i].name), qPrintable(panel()->legend()->namesAsHtml(false)));
      const auto drawn = [&](const QCPGraph* graph) {
        return graph->property("training").toULongLong() == training && graph->pen().widthF() > 1.5;
      };
      int curves = 0;
      for (const QCPGraph* graph : panel()->upper()->graphs())
        if (drawn(graph)) {
          ++curves;
          QCOMPARE(graph->pen().color().name(), runs[i].colour.name());
        }
      QCOMPARE(curves, 1);
      const auto graphs = gradients->panel()->findChild<Plot*>()->axisRect()->graphs();
      QVERIFY2(std::ranges::any_of(graphs, [&](const QCPGraph* graph) { return graph->pen().color() == runs[i].colour; }),
               qPrintable(pins()[i].name));
    }
    // The one that is shown is of its own colour where it is none of these, and no other curve is.
    for (const QCPGraph* graph : panel()->upper()->graphs()) {
      const std::uint64_t training = graph->property("training").toULongLong();
      const bool pinned = std::ranges::any_of(pins(), [&](const Pin& pin) { return session().trainingOf(pin.id) == training; });
      if (training != 0 && graph->pen().widthF() > 1.5 && !pinned)
        QCOMPARE(graph->pen().color() == columns.front().colour, training == session().learning()->shown);
    }
  }

 private slots:
  void cleanup() { close(); }

  /// All pictures are of the weights at which the time of training stands, those of pinned runs too; and each run has one name and one
  /// colour.
  void pinnedRunsAreSeenWithWhatTheyLearned() {
    open("elman", "adding", 60);
    for (const char* id : {"gru", "lstm"}) pinModel(id);
    QVERIFY(pinsStand(-1));
    begin();
    // While it trains the pictures of all follow, and what is said of it is of what is shown.
    QTRY_VERIFY_WITH_TIMEOUT(
        std::ranges::all_of(pins(),
                            [](const Pin& pin) { return pin.trace && pin.trace->info.learned && pin.trace->info.learned->steps > 0; }),
        patience);
    QTRY_VERIFY_WITH_TIMEOUT(!session().training(), patience);
    QVERIFY(pinsStand(60));
    const Learning& now = *session().learning();
    QCOMPARE(now.trainings.size(), std::size_t{3});
    // What is shown of each is what the engine has of the same training, made here.
    const Library& library = *session().library();
    const auto isOfTheEngine = [&](const Pin& pin, std::int64_t step) {
      Setup setup = pin.setup;
      setup.learned.clear();
      Training again(builtin_registry(), trainingRequestFor(setup, library.presets.find(setup.preset), bar()->settings()->choice()));
      again.begin();
      while (again.trainer().steps() < step) again.advance();
      RunRequest request = requestFor(setup, library.presets.find(setup.preset), pin.recording);
      request.learned = again.learned(1);
      const TracePtr trace = run(builtin_registry(), request, {}, {}).trace;
      QCOMPARE(pin.trace->info.learned->steps, step);
      QVERIFY(pin.trace->info.loss_value == trace->info.loss_value);
      int compared = 0;
      for (const char* key : {"output", "spectrum/0", "gradient/state/0/h"}) {
        const TraceArray *shown = pin.trace->find(key), *made = trace->find(key);
        QVERIFY2(shown != nullptr && made != nullptr, key);
        if (shown->real) QVERIFY2(*shown->real == *made->real, key);
        if (shown->complex) QVERIFY2(*shown->complex == *made->complex, key);
        ++compared;
      }
      QCOMPARE(compared, 3);
    };
    for (const Pin& pin : pins()) isOfTheEngine(pin, 60);
    // The picture that a person sees, and the table of what differs.
    const QString atEnd = outputs();
    const auto lossOf = [&](std::size_t column) { return window_->pins()->columns()[column].trace->info.loss_value; };
    const std::vector<double> learned{lossOf(0), lossOf(1), lossOf(2)};
    window_->action("differences")->trigger();
    auto* table = window_->findChild<CompareDialog*>();
    QVERIFY(table != nullptr);
    for (int i = 0; i < 3; ++i) QCOMPARE(table->table()->item(0, i)->text(), number(learned[static_cast<std::size_t>(i)], 4));
    table->close();
    namesAndColoursAgree();
    // Back along the time of training, by mouse.
    TrainingStrip* strip = bar()->strip();
    QTest::mouseClick(strip, Qt::LeftButton, {}, QPoint(strip->pixelOf(30), strip->height() / 2));
    QTRY_VERIFY_WITH_TIMEOUT(looked()->steps < 60, patience);
    QVERIFY(pinsStand(looked()->steps));
    for (const Pin& pin : pins()) isOfTheEngine(pin, looked()->steps);
    QVERIFY(outputs() != atEnd);
    QTest::keyClick(strip, Qt::Key_Home);
    QVERIFY(pinsStand(0));
    QTest::keyClick(strip, Qt::Key_End);
    QVERIFY(pinsStand(60) && looked()->steps == 60);
    QCOMPARE(outputs(), atEnd);
    // Picked in the list, one that learned is what it learned; and Elman is again.
    clickModel("gru");
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && looked() && looked()->steps == 60, patience);
    QCOMPARE(session().trace()->info.loss_value, learned[1]);
    QVERIFY2(bar()->where().startsWith("GRU: step 60 of 60"), qPrintable(bar()->where()));
    namesAndColoursAgree();
    clickModel("elman");
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && looked() && session().trace()->info.loss_value == learned[0], patience);
    // One that did not learn stands over a line that says whose it is.
    clickModel("lru");
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && !looked(), patience);
    QVERIFY2(bar()->where().startsWith("Elman network: step 60") && bar()->what().contains("not what is looked at"),
             qPrintable(bar()->where() + bar()->what()));
    QVERIFY(std::ranges::none_of(panel()->upper()->graphs(),
                                 [&](const QCPGraph* graph) { return graph->pen().color() == window_->pins()->columns().front().colour; }));
  }

  /// The curve that is clicked on is the run that is looked at.
  void aClickOnACurveLooksAtThatRun() {
    open("elman", "adding", 40);
    Setup seventh = session().setup();
    seventh.preset = "lstm";
    seventh.seed = 7;
    QCOMPARE(window_->pins()->add(seventh, nullptr, {}), QString());
    QVERIFY(pinsStand(-1));
    begin();
    QTRY_VERIFY_WITH_TIMEOUT(!session().training() && session().learning(), patience);
    QVERIFY(pinsStand(40));
    window_->area()->dock("learning")->raise();
    QTRY_VERIFY(panel()->isVisible());
    panel()->plot()->redrawNow();
    const std::uint64_t beside = session().trainingOf(pins().front().id);
    QVERIFY(beside != 0);
    // Where its curve of what is held out is farthest from the other.
    const auto held = [&](std::uint64_t training) -> const QCPGraph* {
      for (const QCPGraph* graph : panel()->upper()->graphs())
        if (graph->property("training").toULongLong() == training && graph->pen().widthF() > 1.5) return graph;
      return nullptr;
    };
    const QCPGraph *its = held(beside), *other = held(session().learning()->line);
    QVERIFY(its != nullptr && other != nullptr && its != other);
    int best = 0;
    const auto apart = [&](int i) { return std::abs(its->data()->at(i)->value - other->data()->at(i)->value); };
    for (int i = 1; i < its->dataCount(); ++i)
      if (apart(i) > apart(best)) best = i;
    const QPointF at = its->coordsToPixels(its->data()->at(best)->key, its->data()->at(best)->value);
    const auto step = static_cast<std::int64_t>(its->data()->at(best)->key);
    QTest::mouseClick(panel()->plot(), Qt::LeftButton, {}, at.toPoint());
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().setup().preset == "lstm" && looked(), patience);
    QCOMPARE(session().setup().seed, std::uint64_t{7});  // its own
    QVERIFY2(looked()->training == beside && std::abs(looked()->steps - step) <= 1, qPrintable(QString::number(looked()->steps)));
    QVERIFY(pinsStand(looked()->steps));
    QCOMPARE(pins().front().trace->info.loss_value, session().trace()->info.loss_value);  // one and the same
    QVERIFY2(panel()->verdict().startsWith("LSTM, step "), qPrintable(panel()->verdict()));
  }

  /// What is pinned and does not learn is called so beside what has learned; and it learns when it is asked to, with what the others had.
  void whatDoesNotLearnIsCalledUntrained() {
    open("elman", "adding", 30);
    TrainingChoice alone = bar()->settings()->choice();
    alone.beside = false;
    bar()->settings()->setChoice(alone);
    pinModel("gru");
    QVERIFY(pinsStand(-1));
    QCOMPARE(pins()[0].name, QString("GRU"));
    begin();
    QTRY_VERIFY_WITH_TIMEOUT(!session().training() && done() == 30 && atRest() && looked() && looked()->steps == 30, patience);
    QTRY_COMPARE(pins()[0].name, QString("GRU, untrained"));
    QVERIFY(!pins()[0].trace->info.learned);
    QTRY_COMPARE(window_->findChild<PinChip*>()->text(), QString("GRU, untrained"));
    QVERIFY(window_->pins()->runs().front().label == "GRU, untrained");
    // Its name as it is edited is its own.
    window_->findChild<PinChip*>()->startRename();
    QCOMPARE(window_->findChild<PinChip*>()->editor()->text(), QString("GRU"));
    QTest::keyClick(window_->findChild<PinChip*>()->editor(), Qt::Key_Escape);
    TrainingChoice both = alone;
    both.beside = true;
    bar()->settings()->setChoice(both);
    click(bar()->trainButton());
    QTRY_VERIFY_WITH_TIMEOUT(!session().training() && session().learning()->trainings.size() == 3, patience);
    QVERIFY(pinsStand(30));
    QTRY_COMPARE(pins()[0].name, QString("GRU"));
    // And one that is pinned after the others have learned catches up with them.
    pinModel("lstm");
    QVERIFY(pinsStand(30, 1));
    QTRY_COMPARE(pins()[1].name, QString("LSTM, untrained"));
    click(bar()->trainButton());
    QTRY_VERIFY_WITH_TIMEOUT(!session().training() && session().learning()->trainings.size() == 4, patience);
    QVERIFY(pinsStand(30));
    QCOMPARE(session().learning()->trainings[1]->done, std::int64_t{30});  // who was at the end waited
    // Forgotten, all are as they were drawn.
    click(bar()->resetButton());
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && !looked(), patience);
    QVERIFY(pinsStand(-1));
  }

  /// Weights that have no head, as a run without a target has none, cannot learn a target: a sentence says so, and there is no training.
  void whatCannotBeginIsNoTraining() {
    Options options;
    options.model = "elman";
    options.given["--input"] = written("waves.csv", test::twoWaves(60)).toStdString();
    options.given["--set"] = "width=4";
    WindowTest::open(options);
    TrainingChoice choice = bar()->settings()->choice();
    choice.windows.length = 10;
    bar()->settings()->setChoice(choice);
    const QString file = folder_.filePath("headless.npz");
    QSignalSpy saved(&session(), &SessionController::saved), fits(&session(), &SessionController::fileFits);
    session().saveFile(FileKind::weights, file);
    QTRY_COMPARE_WITH_TIMEOUT(saved.count(), 1, patience);
    window_->openFile(file);
    QTRY_VERIFY_WITH_TIMEOUT(fits.count() == 1 && atRest() && !session().trace()->info.weights.empty(), patience);
    window_->action("train")->trigger();
    QTRY_VERIFY2_WITH_TIMEOUT(window_->banner()->sentence().contains("head"), qPrintable(window_->banner()->sentence()), patience);
    QTRY_VERIFY_WITH_TIMEOUT(!session().training() && !session().running(), patience);
    QVERIFY(session().learning()->trainings.empty() && session().learning()->current == 0);
    QVERIFY(!bar()->isVisible());
    // Said by the run and by the training, and the ways out are offered still.
    QTRY_VERIFY2_WITH_TIMEOUT(window_->banner()->offers().size() == 2, qPrintable(window_->banner()->offers().join(" ")), patience);
    QTest::mouseClick(window_->banner()->findChild<QPushButton*>("offer.0"), Qt::LeftButton);
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().trace()->info.weights.empty() && window_->banner()->sentence().isEmpty(), patience);
  }

  /// A file that is shorter than a window and what is held out of it is learned from in windows that fit; of one that is too short for any
  /// it is said.
  void aShortFileIsLearnedFromInWindowsThatFit() {
    Options options;
    options.model = "elman";
    options.given["--input"] = written("short.csv", test::twoWaves(60)).toStdString();
    options.given["--set"] = "width=4";
    WindowTest::open(options);
    TrainingChoice choice;
    choice.steps = 5;
    bar()->settings()->setChoice(choice);
    QCOMPARE(choice.windows.length, std::int64_t{100});
    window_->action("train")->trigger();
    QTRY_VERIFY_WITH_TIMEOUT(!session().training() && done() == 5 && atRest(), patience);
    QVERIFY2(curve()->from.find("windows of 11 ") != std::string::npos && curve()->command.find("--window 11") != std::string::npos,
             (curve()->from + curve()->command).c_str());
    window_->openFile(written("tiny.csv", "a,b\n1,2\n2,1\n3,2\n"));
    QTRY_VERIFY_WITH_TIMEOUT(session().setup().sequence->sequence.name == "tiny.csv", patience);
    click(bar()->resetButton());
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && !session().trace()->info.learned, patience);
    QSignalSpy ended(&session(), &SessionController::runEnded);
    window_->action("train")->trigger();
    QTRY_VERIFY_WITH_TIMEOUT(!ended.isEmpty() && atRest() && !session().training(),
                             patience);  // the run has its target, and has said what it is
    QTRY_VERIFY2_WITH_TIMEOUT(window_->banner()->sentence().contains("do not fit into"), qPrintable(window_->banner()->sentence()),
                              patience);
    QVERIFY(session().learning()->trainings.empty());
  }

  /// The line says how fast all of it goes, and its step is that of the weights of which the picture is.
  void theLineSaysHowFastAllOfItGoes() {
    open("elman");
    for (const char* id : {"gru", "lstm", "lru"}) pinModel(id);
    QVERIFY(pinsStand(-1));
    int told = 0, other = 0;
    QStringList said;
    connect(&session(), &SessionController::learningChanged, this, [&](const LearningPtr& learning) {
      if (!learning->running || !looked()) return;
      ++told;
      const QString step = QStringLiteral("step %1 of").arg(grouped(looked()->steps));
      if (bar()->where().contains(step) &&
          window_->statusLine()->facts().contains(QStringLiteral("%1 steps of training").arg(grouped(looked()->steps))))
        return;
      ++other;
      said << bar()->where() + " | " + window_->statusLine()->facts();
    });
    begin();
    QTRY_VERIFY_WITH_TIMEOUT(
        session().learning()->pace > 0.0 && session().learning()->trainings.size() == 4 && session().learning()->trainings[0]->done > 20,
        patience);
    // On a machine with other work the pace of one moment is not that of the next; those that are said have that of the whole between them.
    double slowest = session().learning()->pace, fastest = slowest;
    const QObject listening;
    connect(&session(), &SessionController::learningChanged, &listening, [&](const LearningPtr& learning) {
      if (learning->pace <= 0.0) return;
      slowest = std::min(slowest, learning->pace);
      fastest = std::max(fastest, learning->pace);
    });
    QElapsedTimer since;
    const std::int64_t from = session().learning()->trainings[0]->done;
    since.start();
    QTRY_VERIFY_WITH_TIMEOUT(since.elapsed() > 3000, patience);
    const Learning& now = *session().learning();
    const double paced = static_cast<double>(now.trainings[0]->done - from) * 1000.0 / static_cast<double>(since.elapsed());
    QVERIFY2(fastest > 0.4 * paced && slowest < 2.5 * paced,
             qPrintable(QStringLiteral("said %1 to %2, made %3").arg(slowest).arg(fastest).arg(paced)));
    QVERIFY2(bar()->what().contains("steps/s of each of 4"), qPrintable(bar()->what()));
    QVERIFY2(bar()->where().startsWith("Elman network, width 8: step "), qPrintable(bar()->where()));
    std::int64_t steps = 0;
    for (const LearningCurvePtr& one : now.trainings) steps = std::max(steps, one->wanted - one->done);
    const double left = static_cast<double>(steps) / now.pace;
    const QString said_left = left < 120.0 ? number(left, 2) + " s left" : number(left / 60.0, 2) + " min left";
    QVERIFY2(bar()->what().contains(said_left), qPrintable(bar()->what() + QString::number(left)));
    pause();
    disconnect(&session(), &SessionController::learningChanged, this, nullptr);
    QVERIFY2(told > 3 && other == 0, qPrintable(QStringLiteral("%1 of %2: %3").arg(other).arg(told).arg(said.join("; "))));
  }
};

int main(int argc, char** argv) { return test::runWindowTest<TestRuns>(argc, argv, "runs-test"); }
#include "test_runs.moc"
