// SPDX-License-Identifier: GPL-3.0-or-later
// Training in the window: it begins, pauses and goes on, its weights are looked at along its own time, it forks, is compared, and is
// exported.
#include <QDir>
#include <QElapsedTimer>
#include <QFileInfo>
#include <QLineEdit>
#include <QMenu>
#include <QMenuBar>
#include <QPushButton>
#include <QSet>
#include <QSignalSpy>
#include <QTimer>
#include <QToolButton>
#include <algorithm>

#include "experiment/training/training.h"
#include "gui/comparing/side_by_side.h"
#include "gui/docks/panel_area.h"
#include "gui/session/pins.h"
#include "gui/views/inspector_view.h"
#include "gui/views/status_line.h"
#include "models/registry.h"
#include "training_test.h"

using namespace reclab;
using test::patience;

class TestTraining : public test::TrainingTest {
  Q_OBJECT

 private:
  /// Every dialog that asks for a folder is given this one.
  void choose(const QString& folder) {
    FileChooser chooser;
    chooser.folder = [folder](QWidget*, const QString&, const QString&) { return folder; };
    window_->setFileChooser(chooser);
  }
  /// What is exported there is where the training of the window is.
  void goesOnFrom(const QString& folder) {
    QTRY_VERIFY_WITH_TIMEOUT(QFileInfo::exists(folder + "/training.json"), patience);
    const Setup setup = session().setup();
    TrainingRequest request = trainingRequestFor(setup, session().library()->presets.find(setup.preset), bar()->settings()->choice());
    request.run.learned.reset();
    const auto again = resume(builtin_registry(), request, folder.toStdString());
    QCOMPARE(again->trainer().steps(), done() - curve()->first);
    QCOMPARE(again->history().back().loss, curve()->loss.back());
  }

 private slots:
  void cleanup() { close(); }

  void itTrainsPausesAndGoesOn() {
    open();
    QVERIFY(!bar()->isVisible());
    QVERIFY(!panel()->emptyReason().isEmpty());
    begin();
    QTRY_VERIFY_WITH_TIMEOUT(done() >= 40 && looked() && looked()->steps > 0, patience);  // pictures follow
    QVERIFY(bar()->isVisible());
    QVERIFY(panel()->emptyReason().isEmpty());
    // A pause is there at once.
    QElapsedTimer since;
    since.start();
    click(bar()->trainButton());
    QTRY_VERIFY_WITH_TIMEOUT(!session().training(), patience);
    qInfo("paused after %lld ms", static_cast<long long>(since.elapsed()));
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && looked() && looked()->steps == done(), patience);  // the last picture is of the newest weights
    const std::int64_t paused = done();
    QTest::qWait(150);
    QCOMPARE(done(), paused);
    click(bar()->stepButton());
    QTRY_VERIFY_WITH_TIMEOUT(!session().training() && done() == paused + 1, patience);
    click(bar()->trainButton());
    QTRY_VERIFY_WITH_TIMEOUT(done() > paused + 10, patience);
    pause();
    QCOMPARE(session().learning()->trainings.size(), std::size_t{1});
    QVERIFY(std::ssize(curve()->loss) == done() && curve()->judged.front() == 0);
    QVERIFY2(panel()->verdict().contains("baseline"), qPrintable(panel()->verdict()));
    QCOMPARE(panel()->dataAsCsv().count('\n'),
             static_cast<int>(done()) + 2);  // a header, and the evaluation of the weights as they were drawn
    photograph(window_.get(), "training");
  }

  void itIsTheTrainingOfTheCommandLine() {
    open("gru", "adding", 12);
    begin();
    QTRY_VERIFY_WITH_TIMEOUT(!session().training() && done() == 12 && atRest(), patience);
    Setup setup = session().setup();
    setup.learned.clear();
    Training again(builtin_registry(),
                   trainingRequestFor(setup, session().library()->presets.find(setup.preset), bar()->settings()->choice()));
    while (!again.done()) again.advance();
    for (std::size_t i = 0; i < 12; ++i) QCOMPARE(curve()->loss[i], again.history()[i].loss);
    QCOMPARE(curve()->judged_loss.back(), again.evaluations().back().loss);
    const LearnedPtr mine = again.learned(1);
    for (const auto& entry : mine->values.entries()) {
      const TraceArray* array = session().trace()->find("param/" + entry.name);
      QVERIFY2(array != nullptr && *array->real == entry.values, entry.name.c_str());
    }
    QVERIFY2(session().trace()->info.command.starts_with("reclab train gru"), session().trace()->info.command.c_str());
  }

  void theTimeOfTrainingIsScrubbed() {
    open();
    trainFor(60);
    const TracePtr last = session().trace();
    const std::int64_t end = done();
    TrainingStrip* strip = bar()->strip();
    // The scale is of all the steps that there are to be; the keyboard goes from kept weights to kept weights.
    strip->setFocus();
    QTest::keyClick(strip, Qt::Key_Home);
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && looked() && looked()->steps == 0, patience);
    QTest::keyClick(strip, Qt::Key_Right);
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && looked()->steps == curve()->kept[1], patience);
    QVERIFY(!(*session().trace()->find("param/0/weight_hh")->real == *last->find("param/0/weight_hh")->real));
    QVERIFY2(bar()->where().contains(QStringLiteral("step %1 ").arg(curve()->kept[1])), qPrintable(bar()->where()));
    QTest::keyClick(strip, Qt::Key_End);
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && looked()->steps == end, patience);
    QVERIFY(*session().trace()->find("param/0/weight_hh")->real == *last->find("param/0/weight_hh")->real);
    // With the mouse, to the very left, and in the panel.
    QTest::mouseClick(strip, Qt::LeftButton, {}, QPoint(strip->pixelOf(0), strip->height() / 2));
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && looked()->steps == 0, patience);
    QVERIFY(bar()->followButton()->isEnabled());
    click(bar()->followButton());
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && looked()->steps == end, patience);
    window_->area()->dock("learning")->raise();
    QTRY_VERIFY(panel()->isVisible());
    panel()->plot()->redrawNow();
    const QRect rect = panel()->upper()->rect();
    QTest::mouseClick(panel()->plot(), Qt::LeftButton, {},
                      QPoint(static_cast<int>(panel()->upper()->axis(QCPAxis::atBottom)->coordToPixel(0.0)), rect.center().y()));
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && looked()->steps == 0, patience);
  }

  void aForkLeavesBothHistories() {
    open();
    trainFor(30);
    QTest::keyClick(bar()->strip(), Qt::Key_Home);
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && looked()->steps == 0, patience);
    for (int i = 0; i < 5; ++i) QTest::keyClick(bar()->strip(), Qt::Key_Right);
    const std::int64_t from = curve()->kept[5];
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && looked()->steps == from, patience);
    const LearningCurvePtr first = curve();
    // It waits at its step until it is asked to go on, with what is chosen by then.
    click(bar()->forkButton());
    QTRY_COMPARE(session().learning()->trainings.size(), std::size_t{2});
    QVERIFY(!session().training() && curve()->waits && curve()->loss.empty());
    QTest::qWait(200);
    QVERIFY2(!session().training() && done() == from && bar()->what().contains("waits") && panel()->verdict().contains("waits"),
             qPrintable(panel()->verdict()));
    TrainingChoice slower = bar()->settings()->choice();
    slower.options.rate.rate = 1e-4;
    slower.steps = 50;
    bar()->settings()->setChoice(slower);
    click(bar()->trainButton());
    QTRY_VERIFY_WITH_TIMEOUT(!session().training() && done() == from + 50 && atRest() && looked()->steps == from + 50, patience);
    const Learning& now = *session().learning();
    QVERIFY(now.trainings[1]->first == from && now.trainings[1]->parent == first->training && now.trainings[1]->judged.front() == from &&
            now.trainings[1]->kept.front() == from);
    QCOMPARE(now.trainings[1]->wanted, from + 50);
    QVERIFY2(bar()->where().contains(QStringLiteral("step %1 of %1").arg(from + 50)), qPrintable(bar()->where()));
    QVERIFY2(window_->statusLine()->facts().contains(QStringLiteral("%1 steps of training").arg(grouped(from + 50))),
             qPrintable(window_->statusLine()->facts()));
    // Its curve begins there, in the picture and in the data, and its first weights are those that it goes on from.
    const auto begins = [&] {
      double least = 1e9;
      for (const QCPGraph* graph : panel()->upper()->graphs())
        if (graph->property("training").toULongLong() == now.trainings[1]->training) least = std::min(least, graph->data()->at(0)->key);
      return least;
    };
    window_->area()->dock("learning")->raise();
    QTRY_COMPARE(begins(), static_cast<double>(from));
    QVERIFY(panel()->dataAsCsv().contains(QStringLiteral("\n%1,").arg(now.trainings[1]->training)));
    const LearnedPtr mine = session().setupAt(now.trainings[1]->training, 0)->learnedWeights(),
                     theirs = session().setupAt(first->training, from)->learnedWeights();
    QVERIFY(mine->step == from && theirs->step == from);
    for (std::size_t i = 0; i < mine->values.entries().size(); ++i)
      QVERIFY(mine->values.entries()[i].values == theirs->values.entries()[i].values);
    QCOMPARE(now.trainings[0]->loss, first->loss);
    QVERIFY(now.current == now.trainings[1]->training && now.trainings[1]->rate.front() == 1e-4);
    QVERIFY2(QString::fromStdString(now.trainings[1]->name).contains(QStringLiteral("from step %1").arg(from)),
             now.trainings[1]->name.c_str());
    QVERIFY2(now.trainings[1]->command.find(" && reclab train gru") != std::string::npos, now.trainings[1]->command.c_str());
  }

  /// A lesson from its beginning to its end, with the mouse and the keys alone.
  void trainedScrubbedForkedComparedAndExportedByHand() {
    open();
    begin();
    QTRY_VERIFY_WITH_TIMEOUT(done() >= 40, patience);
    pause();
    // Back along the time of training, to about a third of it.
    TrainingStrip* strip = bar()->strip();
    const auto at = [&](std::int64_t step) { return QPoint(strip->pixelOf(step), strip->height() / 2); };
    const std::int64_t end = done();
    QTest::mousePress(strip, Qt::LeftButton, {}, at(end));
    for (const std::int64_t step : {end * 2 / 3, end / 2, end / 3}) QTest::mouseMove(strip, at(step));
    QTest::mouseRelease(strip, Qt::LeftButton, {}, at(end / 3));
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && looked() && looked()->steps < end, patience);
    const std::int64_t from = looked()->steps;
    // Another rate, in the settings that the bar opens, and a fork with it.
    auto* how = bar()->findChild<QToolButton*>("field");
    QTimer::singleShot(0, this, [&] {
      auto* rate = bar()->settings()->findChild<QLineEdit*>("training.rate");
      QVERIFY(rate->isVisible());
      QTest::mouseDClick(rate, Qt::LeftButton);
      QTest::keyClick(rate, Qt::Key_A, Qt::ControlModifier);
      QTest::keyClicks(rate, "0.002");
      QTest::keyClick(rate, Qt::Key_Enter);
      how->menu()->close();
    });
    click(how);
    QCOMPARE(bar()->settings()->choice().options.rate.rate, 0.002);
    click(bar()->forkButton());
    QTRY_VERIFY(session().learning()->trainings.size() == 2 && curve()->waits);
    click(bar()->trainButton());
    QTRY_VERIFY_WITH_TIMEOUT(done() >= from + 20, patience);
    pause();
    QCOMPARE(session().learning()->trainings[0]->done, end);
    QVERIFY2(QString::fromStdString(curve()->name).contains(QStringLiteral("from step %1").arg(from)), curve()->name.c_str());
    // Weights of its way beside one another: two clicks.
    auto* compare = window_->findChild<QToolButton*>("compareButton");
    QTimer::singleShot(0, this, [&] {
      QMenu* menu = window_->compareMenu();
      for (QAction* one : menu->actions())
        if (one->text() == "Along its training") return QTest::mouseClick(menu, Qt::LeftButton, {}, menu->actionGeometry(one).center());
      menu->close();
      QFAIL("the menu has no training to compare along");
    });
    click(compare);
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && !window_->pins()->running() && window_->pins()->runs().size() >= 2, patience);
    for (const Pin& pin : window_->pins()->pins()) QVERIFY2(pin.comparable && pin.trace->info.learned, qPrintable(pin.name));
    QTest::keyClick(window_.get(), Qt::Key_B, Qt::ControlModifier);
    QTRY_VERIFY(window_->sideBySide() != nullptr && window_->sideBySide()->isVisible());
    QCOMPARE(window_->sideBySide()->columns(), window_->pins()->pins().size() + 1);
    QTest::keyClick(window_.get(), Qt::Key_B, Qt::ControlModifier);
    QTRY_VERIFY(window_->area()->isVisible());
    // Out of the File menu, and on from there.
    const QString folder = folder_.filePath("lesson");
    choose(folder);
    QAction* exports = window_->action("exportTraining");
    QMenu* file = nullptr;
    for (QAction* one : window_->menuBar()->actions())
      if (one->menu() && one->menu()->actions().contains(exports)) file = one->menu();
    QVERIFY(file != nullptr && exports->isEnabled());
    QTest::mouseClick(window_->menuBar(), Qt::LeftButton, {}, window_->menuBar()->actionGeometry(file->menuAction()).center());
    QTRY_VERIFY(file->isVisible());
    QTest::mouseClick(file, Qt::LeftButton, {}, file->actionGeometry(exports).center());
    goesOnFrom(folder);
  }

  void aRateThatHasFallenToNothingIsNotTrainedOnWith() {
    open("gru", "adding", 6);
    TrainingChoice falling = bar()->settings()->choice();
    falling.options.rate.shape = RateSchedule::Shape::cosine;
    bar()->settings()->setChoice(falling);
    begin();
    QTRY_VERIFY_WITH_TIMEOUT(!session().training() && done() == 6 && atRest(), patience);
    click(bar()->trainButton());
    QVERIFY(!session().training());
    QVERIFY2(window_->statusLine()->sentence().contains("Fork"), qPrintable(window_->statusLine()->sentence()));
    click(bar()->forkButton());  // as it says
    click(bar()->trainButton());
    QTRY_VERIFY_WITH_TIMEOUT(!session().training() && session().learning()->trainings.size() == 2 && done() == 12 && atRest(), patience);
    QVERIFY(curve()->rate.front() > 0.009);
    // A rate that stays goes on.
    click(bar()->resetButton());
    falling.options.rate.shape = RateSchedule::Shape::constant;
    bar()->settings()->setChoice(falling);
    begin();
    QTRY_VERIFY_WITH_TIMEOUT(!session().training() && done() == 6 && atRest(), patience);
    click(bar()->trainButton());
    QTRY_VERIFY_WITH_TIMEOUT(!session().training() && done() == 12 && atRest(), patience);
  }

  void pinnedRunsTrainBesideItOnTheSameBatches() {
    open("elman");
    window_->action("pin")->trigger();
    clickModel("gru");
    begin();
    QTRY_VERIFY_WITH_TIMEOUT(session().learning()->trainings.size() == 2 && session().learning()->trainings[0]->done >= 10 &&
                                 session().learning()->trainings[1]->done >= 10,
                             patience);
    pause();
    const Learning& now = *session().learning();
    QVERIFY(std::abs(now.trainings[0]->done - now.trainings[1]->done) <= 1);
    QCOMPARE(now.trainings[0]->from, now.trainings[1]->from);
    QCOMPARE(now.trainings[0]->baseline_loss, now.trainings[1]->baseline_loss);
    QVERIFY(now.trainings[0]->loss != now.trainings[1]->loss);
    QVERIFY2(panel()->legend()->namesAsHtml(false).contains("Elman"), qPrintable(panel()->legend()->namesAsHtml(false)));
  }

  /// A title goes with the weights that are looked at, and each loss says which it is.
  void eachLossSaysWhichItIs() {
    open("gru", "adding", 60);
    begin();
    QTRY_VERIFY_WITH_TIMEOUT(!session().training() && done() == 60 && atRest() && looked() && looked()->steps == 60, patience);
    window_->area()->dock("learning")->raise();
    QTRY_VERIFY(panel()->isVisible() && !panel()->headline().isEmpty());
    const auto said = [&](std::int64_t step) {
      const LearningCurvePtr now = curve();
      const auto judgement = now->judgement(step);
      return judgement ? number(now->judged_metric[*judgement]) : QString();
    };
    QVERIFY2(panel()->headline().contains("held out: squared error " + said(60)), qPrintable(panel()->headline()));
    QTest::keyClick(bar()->strip(), Qt::Key_Home);
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && looked()->steps == 0, patience);
    QVERIFY(said(0) != said(60));
    QVERIFY2(panel()->headline().contains("held out: squared error " + said(0)) && panel()->verdict().contains(said(0)),
             qPrintable(panel()->headline()));
    QVERIFY2(panel()->note().contains("half the squared error") && panel()->note().contains("thin, of each batch"),
             qPrintable(panel()->note()));
    QTest::keyClick(bar()->strip(), Qt::Key_Right);
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && looked()->steps == 1, patience);
    QVERIFY2(bar()->what().contains("batch loss " + number(curve()->loss[0])), qPrintable(bar()->what()));
    QVERIFY2(window_->statusLine()->facts().contains("on this sequence"), qPrintable(window_->statusLine()->facts()));
  }

  void trainedWeightsArePinnedAndCompared() {
    open();
    trainFor(20);
    window_->action("pin")->trigger();
    QTest::keyClick(bar()->strip(), Qt::Key_Home);
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && looked()->steps == 0 && !window_->pins()->running(), patience);
    QCOMPARE(window_->pins()->pins().size(), std::size_t{1});
    const Pin& pin = window_->pins()->pins().front();
    QVERIFY2(pin.name.contains("step"), qPrintable(pin.name));
    QVERIFY(pin.trace->info.learned->steps > 0);
  }

  void itIsExportedAndGoesOnFromThere() {
    open("gru", "adding", 8);
    begin();
    QTRY_VERIFY_WITH_TIMEOUT(!session().training() && done() == 8 && atRest(), patience);
    const QString folder = folder_.filePath("exported");
    choose(folder);
    window_->action("exportTraining")->trigger();
    goesOnFrom(folder);
  }

  void resetDrawsTheWeightsAgain() {
    open();
    const std::vector<double> drawn = *session().trace()->find("param/0/weight_hh")->real;
    trainFor(10);
    QVERIFY(*session().trace()->find("param/0/weight_hh")->real != drawn);
    click(bar()->resetButton());
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && !looked() && !bar()->isVisible(), patience);
    QVERIFY(*session().trace()->find("param/0/weight_hh")->real == drawn);
    QVERIFY(!panel()->emptyReason().isEmpty());
  }

  void aFileIsLearnedFromByItsNextValues() {
    Options options = onWaves(400);
    options.model = "gru";
    options.given["--set"] = "width=8";
    WindowTest::open(options);
    TrainingChoice choice;
    choice.options.batch = 4;
    choice.windows.length = 30;
    bar()->settings()->setChoice(choice);
    begin();
    QTRY_VERIFY_WITH_TIMEOUT(done() >= 5 && looked(), patience);
    pause();
    QVERIFY(session().setup().sequence->sequence.target_kind == TargetKind::regress);
    QVERIFY(!session().trace()->has(Kind::param) || session().trace()->find("param/head/weight") != nullptr);
  }

  void aPresetShowsItsTrainedWeights() {
    open("lstm");
    auto* trained = window_->inspector()->findChild<QPushButton*>("trained.trained");
    QVERIFY(trained->isVisible() && !trained->isChecked());
    QTest::mouseClick(trained, Qt::LeftButton);
    const Preset& preset = session().library()->presets.find("lstm");
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().trace()->info.weights == preset.trained->weights.string(), patience);
    QCOMPARE(session().setup().sequence->choice.task, preset.trained->task);
    QCOMPARE(window_->undoStack()->count(), 1);  // weights, sizes and sequence together
    trained = window_->inspector()->findChild<QPushButton*>("trained.trained");
    QVERIFY(trained->isChecked());
    const double loss = session().trace()->info.loss_value;
    QTest::mouseClick(window_->inspector()->findChild<QPushButton*>("trained.drawn"), Qt::LeftButton);
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().trace()->info.weights.empty(), patience);
    QVERIFY2(session().trace()->info.loss_value > 10.0 * loss, qPrintable(QString::number(loss)));
    window_->undoStack()->undo();
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().trace()->info.loss_value == loss, patience);
    // What is learned from there is neither.
    trainFor(3);
    QVERIFY(!window_->inspector()->findChild<QPushButton*>("trained.trained")->isChecked() &&
            !window_->inspector()->findChild<QPushButton*>("trained.drawn")->isChecked());
    QVERIFY(session().trace()->info.weights.empty());
    clickModel("elman");
    QVERIFY(!window_->inspector()->findChild<QWidget*>("trained")->isVisible());
  }

  void whatHasNoTargetIsSaid() {
    open("gru", "noise");
    window_->action("train")->trigger();
    QVERIFY(!session().training());
    QVERIFY2(session().learning() == nullptr || session().learning()->trainings.empty(), "nothing was begun");
  }
};

int main(int argc, char** argv) { return test::runWindowTest<TestTraining>(argc, argv, "training-test"); }
#include "test_training.moc"
