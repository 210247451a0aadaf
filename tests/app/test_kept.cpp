// SPDX-License-Identifier: GPL-3.0-or-later
// Nothing that was learned is lost: weights that do not fit are offered a way out, undo brings back what was forgotten, and the next start
// what was closed: curve, weights of every step, pins, and where it goes on. What cannot be kept is asked about.
#include <signal.h>
#include <algorithm>

#include <QApplication>
#include <QDir>
#include <QDirIterator>
#include <QFileInfo>
#include <QMessageBox>
#include <QProcess>
#include <QPushButton>
#include <QSlider>
#include <QTimer>
#include <QToolButton>
#include <QUndoStack>

#include "experiment/training/training.h"
#include "gui/docks/flat_dock.h"
#include "gui/docks/panel_area.h"
#include "gui/learning/training_bar.h"
#include "gui/session/kept/training_store.h"
#include "gui/session/pins.h"
#include "gui/views/inspector_view.h"
#include "gui/views/status_line.h"
#include "models/registry.h"
#include "places.h"
#include "plot/theme.h"
#include "window_test.h"

using namespace reclab;
using test::patience;

class TestKept : public test::WindowTest {
  Q_OBJECT

 private:
  TrainingBar* bar() { return window_->trainingBar(); }
  LearningCurvePtr curve(std::size_t fromTheEnd = 0) {
    const LearningPtr& learning = session().learning();
    return learning && learning->trainings.size() > fromTheEnd ? learning->trainings[learning->trainings.size() - 1 - fromTheEnd] : nullptr;
  }
  std::int64_t done() { return curve() ? curve()->done : -1; }
  std::optional<LearnedInfo> looked() { return session().trace()->info.learned; }
  std::vector<double> weights(const TracePtr& trace) {
    return trace && trace->find("param/0/weight_hh") ? *trace->find("param/0/weight_hh")->real : std::vector<double>();
  }
  TrainingChoice choice() {
    TrainingChoice choice;
    choice.steps = 100'000;
    choice.options.batch = 8;
    choice.options.rate.rate = 0.01;
    return choice;
  }
  void openGru(const QString& model = "gru") {
    Options options;
    options.model = model;
    options.given["--task"] = "adding";
    options.given["--length"] = "20";
    options.given["--set"] = "width=8";
    open(options);
    bar()->settings()->setChoice(choice());
  }
  void click(QToolButton* button) {
    QVERIFY2(button->isVisible() && button->isEnabled(), qPrintable(button->objectName()));
    QTest::mouseClick(button, Qt::LeftButton);
  }
  void begin() {
    window_->action("train")->trigger();
    QTRY_VERIFY_WITH_TIMEOUT(session().training(), patience);
  }
  void pause() {
    window_->action("train")->trigger();
    QTRY_VERIFY_WITH_TIMEOUT(!session().training() && atRest(), patience);
  }
  void trainFor(std::int64_t steps) {
    begin();
    QTRY_VERIFY_WITH_TIMEOUT(done() >= steps, patience);
    pause();
  }
  void again() {
    close();
    said_.clear();
    window_ = std::make_unique<MainWindow>(&look_, Options{});
    window_->setFileChooser({});
    connect(&session(), &SessionController::said, this, [this](const QString& sentence, Tone tone) {
      if (tone == Tone::warning) said_ += sentence + '\n';
    });
    window_->show();
    QVERIFY(QTest::qWaitForWindowExposed(window_.get()));
    window_->activateWindow();
    QTRY_VERIFY_WITH_TIMEOUT(session().library() && atRest(), patience);
  }
  /// Clicks a button of the question that comes next.
  void answer(const QString& button) {
    QTimer::singleShot(0, this, [this, button] {
      auto* question = qobject_cast<QMessageBox*>(QApplication::activeModalWidget());
      if (question == nullptr) return answer(button);
      asked_ = question->text();
      for (QAbstractButton* one : question->buttons())
        if (one->text() == button) return QTest::mouseClick(one, Qt::LeftButton);
      question->reject();
      QFAIL(qPrintable("there is no " + button));
    });
  }
  QString asked_, said_;

 private slots:
  void init() {
    test::forgetAll();
    QSettings().setValue("hintSeen", true);
    QDir(TrainingStore::standardFolder()).removeRecursively();
    asked_.clear();
  }
  void cleanup() { close(); }

  void escapePausesIt() {
    openGru();
    begin();
    QTRY_VERIFY_WITH_TIMEOUT(done() >= 10, patience);
    bar()->strip()->setFocus();
    QTest::keyClick(window_->windowHandle(), Qt::Key_Escape);
    QTRY_VERIFY_WITH_TIMEOUT(!session().training() && atRest(), patience);
    const std::int64_t paused = done();
    click(bar()->trainButton());  // and goes on
    QTRY_VERIFY_WITH_TIMEOUT(done() > paused, patience);
    pause();
    QCOMPARE(session().learning()->trainings.size(), std::size_t{1});
  }

  /// Another width, or another task: a button goes back to what they learned with, another draws anew, and no list or card stands for what
  /// is not shown.
  void weightsThatDoNotFitAreOfferedAWayOut() {
    openGru();
    trainFor(20);
    const LearnedPtr learned = session().setup().learnedWeights();
    QVERIFY(learned);
    const auto headline = [&](const QString& id) {
      for (FlatDock* one : window_->findChildren<FlatDock*>())
        if (one->objectName() == id) return one->header()->headline();
      return QString("there is none");
    };
    const auto offer = [&](int number) { return window_->banner()->findChild<QPushButton*>(QStringLiteral("offer.%1").arg(number)); };
    const auto misfit = [&] {
      QTRY_VERIFY_WITH_TIMEOUT(!session().running() && window_->banner()->offers().size() == 2, patience);
      QVERIFY2(window_->banner()->sentence().contains("do not fit"), qPrintable(window_->banner()->sentence()));
      QVERIFY(offer(0)->isVisible() && offer(1)->isVisible());
      for (const char* id : {"dock.models", "dock.inspector", "dock.card"})
        QVERIFY2(headline(id).contains("not shown"), qPrintable(headline(id)));
    };
    QTRY_VERIFY_WITH_TIMEOUT(window_->inspector()->slider("width") != nullptr, patience);
    window_->inspector()->slider("width")->setFocus();
    QTest::keyClick(window_->inspector()->slider("width"), Qt::Key_Right);
    misfit();
    QCOMPARE(window_->banner()->offers(), (QStringList{"Draw anew", "Back to width 8"}));
    photograph(window_.get(), "misfit");
    QTest::mouseClick(offer(1), Qt::LeftButton);
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && hyperOf(session().trace(), "width") == "8" && looked(), patience);
    QVERIFY(session().setup().learnedWeights() == learned);
    QTRY_VERIFY(window_->banner()->sentence().isEmpty());
    for (const char* id : {"dock.models", "dock.inspector", "dock.card"})
      QVERIFY2(!headline(id).contains("not shown"), qPrintable(headline(id)));
    // A file in the place of the task.
    window_->openFile(written("two.csv", QByteArray("a,b,c\n") + QByteArray("1,2,3\n3,1,2\n2,2,1\n").repeated(20)));  // one input more
    misfit();
    QCOMPARE(window_->banner()->offers(), (QStringList{"Draw anew", "Back to adding, 20"}));
    QTest::mouseClick(offer(1), Qt::LeftButton);
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && looked() && session().setup().sequence->choice.task == "adding", patience);
    // Drawn anew, and back by undo.
    window_->openFile(folder_.filePath("two.csv"));
    misfit();
    QTest::mouseClick(offer(0), Qt::LeftButton);
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && !looked() && session().trace()->info.input_name == "two.csv", patience);
    QVERIFY(!session().learning()->trainings.empty());
    for (int i = 0; i < 2; ++i) QTest::keyClick(window_.get(), Qt::Key_Z, Qt::ControlModifier);
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && looked() && session().setup().learnedWeights() == learned, patience);
  }

  /// Nor do they stand in the way of a file of weights that does.
  void learnedWeightsThatDoNotFitStandInTheWayOfNoFile() {
    const QString three = written("three.csv", "a,b,c\n1,2,3\n2,3,5\n3,1,2\n4,4,1\n5,2,2\n6,1,1\n"),
                  file = folder_.filePath("of-three.npz");
    Options options;
    options.model = "gru";
    options.given["--input"] = three.toStdString();
    options.given["--set"] = "width=8";
    open(options);
    bool saved = false;
    connect(&session(), &SessionController::saved, this, [&saved](const QString&) { saved = true; });
    session().saveFile(FileKind::weights, file);
    QTRY_VERIFY_WITH_TIMEOUT(saved, patience);
    close();
    openGru();
    trainFor(5);
    window_->openFile(three);
    QTRY_VERIFY_WITH_TIMEOUT(!session().running() && window_->banner()->offers().size() == 2, patience);
    // A file that does not fit either is said to, and the ways out stay.
    window_->openFile(written("other.npz", "no weights"));
    QTRY_VERIFY2_WITH_TIMEOUT(window_->banner()->sentence().contains("other.npz"), qPrintable(window_->banner()->sentence()), patience);
    QCOMPARE(window_->banner()->offers().size(), 2);
    window_->openFile(file);
    QTRY_VERIFY2_WITH_TIMEOUT(atRest() && session().trace()->info.weights == file.toStdString(), qPrintable(window_->banner()->sentence()),
                              patience);
    QVERIFY(window_->banner()->sentence().isEmpty());
  }

  /// Likewise the weights that came with a preset, on a file.
  void trainedWeightsThatDoNotFitAreOfferedAWayOut() {
    openGru("lstm");
    QTest::mouseClick(window_->inspector()->findChild<QPushButton*>("trained.trained"), Qt::LeftButton);
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && !session().trace()->info.weights.empty(), patience);
    const QString task = QString::fromStdString(session().setup().sequence->choice.task);
    window_->openFile(written("three.csv", "a,b,c\n1,2,3\n2,3,5\n3,1,2\n4,4,1\n5,2,2\n6,1,1\n"));
    QTRY_VERIFY_WITH_TIMEOUT(!session().running() && window_->banner()->offers().size() == 2, patience);
    QVERIFY2(window_->banner()->offers()[1].startsWith("Back to " + task), qPrintable(window_->banner()->offers()[1]));
    QTest::mouseClick(window_->banner()->findChild<QPushButton*>("offer.1"), Qt::LeftButton);
    QTRY_VERIFY_WITH_TIMEOUT(
        atRest() && !session().trace()->info.weights.empty() && QString::fromStdString(session().setup().sequence->choice.task) == task,
        patience);
  }

  /// Curve, training line, weights of every step, what stands in the status line, and where it goes on.
  void undoBringsAForgottenTrainingBack() {
    openGru();
    trainFor(40);
    const LearningCurvePtr before = curve();
    const LearnedPtr looked_at = session().setup().learnedWeights();
    const QString learned = QStringLiteral("%1 steps of training").arg(grouped(before->done)), where = bar()->where();
    QVERIFY2(window_->statusLine()->facts().contains(learned), qPrintable(window_->statusLine()->facts()));
    for (const bool again : {false, true}) {  // redo forgets it once more
      if (again)
        QTest::keyClick(window_.get(), Qt::Key_Y, Qt::ControlModifier);
      else
        click(bar()->resetButton());
      QTRY_VERIFY_WITH_TIMEOUT(atRest() && !looked() && !bar()->isVisible(), patience);
      QVERIFY(!again || session().learning()->trainings.empty());
      QTest::keyClick(window_.get(), Qt::Key_Z, Qt::ControlModifier);
      QTRY_VERIFY_WITH_TIMEOUT(atRest() && looked() && bar()->isVisible(), patience);
      QVERIFY(curve() && curve()->loss == before->loss && curve()->kept == before->kept && curve()->judged_loss == before->judged_loss);
      QVERIFY(session().setup().learnedWeights() == looked_at && session().learning()->current == before->training);
      QCOMPARE(bar()->where(), where);
      QTRY_VERIFY2_WITH_TIMEOUT(window_->statusLine()->facts().contains(learned), qPrintable(window_->statusLine()->facts()), patience);
      QVERIFY(window_->area()->dock("learning")->panel()->emptyReason().isEmpty());
    }
    // One that trains is forgotten with its weights, and is back with them.
    click(bar()->trainButton());
    QTRY_VERIFY_WITH_TIMEOUT(done() > before->done + 5, patience);
    click(bar()->resetButton());
    QTRY_VERIFY_WITH_TIMEOUT(!session().training() && atRest() && !looked() && !bar()->isVisible(), patience);
    QTest::keyClick(window_.get(), Qt::Key_Z, Qt::ControlModifier);
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && looked() && bar()->isVisible(), patience);
    const std::int64_t back = done();
    QVERIFY(back > before->done && !session().training());
    // The weights of its beginning, and it goes on from its end.
    QTest::keyClick(bar()->strip(), Qt::Key_Home);
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && looked() && looked()->steps == 0, patience);
    click(bar()->trainButton());
    QTRY_VERIFY_WITH_TIMEOUT(done() > back, patience);
    pause();
    QCOMPARE(session().learning()->trainings.size(), std::size_t{1});
    QVERIFY(std::equal(before->loss.begin(), before->loss.end(), curve()->loss.begin()));
  }

  void aTrainingIsThereAgainAndGoesOn() {
    openGru();
    trainFor(60);
    const LearningCurvePtr before = curve();
    // The weights of another step are looked at, and others are pinned.
    window_->action("pin")->trigger();
    const std::vector<double> last = weights(session().trace());
    bar()->strip()->setFocus();
    QTest::keyClick(bar()->strip(), Qt::Key_Home);
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && looked() && looked()->steps == 0, patience);
    for (int i = 0; i < 4; ++i) QTest::keyClick(bar()->strip(), Qt::Key_Right);
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && looked() && looked()->steps == before->kept[4], patience);
    const std::vector<double> shown = weights(session().trace());
    const std::string from = looked()->from;

    again();
    QVERIFY2(said_.isEmpty(), qPrintable(said_));
    QVERIFY(bar()->isVisible());
    QVERIFY(curve() && session().learning()->trainings.size() == 1 && session().learning()->current == curve()->training &&
            !session().training());
    QVERIFY(curve()->loss == before->loss && curve()->norm == before->norm && curve()->judged == before->judged &&
            curve()->judged_loss == before->judged_loss && curve()->changes == before->changes);
    QVERIFY(curve()->name == before->name && curve()->from == before->from && curve()->baseline == before->baseline &&
            curve()->baseline_loss == before->baseline_loss);
    // Of many weights along the way so many are kept on the disk, with the first and the last.
    QVERIFY(std::ranges::includes(before->kept, curve()->kept) && curve()->kept.size() == std::min<std::size_t>(before->kept.size(), 128));
    QVERIFY(curve()->kept.front() == before->kept.front() && curve()->kept.back() == before->kept.back());
    QVERIFY(looked() && looked()->steps == before->kept[4] && looked()->from == from && session().learning()->shown == curve()->training);
    QCOMPARE(weights(session().trace()), shown);
    QCOMPARE(window_->pins()->pins().size(), std::size_t{1});
    QTRY_VERIFY_WITH_TIMEOUT(!window_->pins()->running() && window_->pins()->pins()[0].trace, patience);
    const TracePtr pinned = window_->pins()->pins()[0].trace;
    QVERIFY(pinned->info.learned && pinned->info.learned->steps == before->done);
    QCOMPARE(weights(pinned), last);
    // It goes on, with the bits of a training that was never interrupted.
    trainFor(before->done + 20);
    QCOMPARE(session().learning()->trainings.size(), std::size_t{1});
    Setup setup = session().setup();
    setup.learned.clear();
    Training whole(builtin_registry(),
                   trainingRequestFor(setup, session().library()->presets.find(setup.preset), bar()->settings()->choice()));
    while (whole.trainer().steps() < before->done + 20) whole.advance();
    for (std::size_t i = 0; i < whole.history().size(); ++i) QCOMPARE(curve()->loss[i], whole.history()[i].loss);
    // And once more, with what is on the disk then.
    const LearningCurvePtr later = curve();
    again();
    QVERIFY(curve() && curve()->loss == later->loss && curve()->done == later->done);
  }

  void oneThatTrainsWhenTheWindowIsClosedIsKeptToo() {
    openGru();
    window_->action("train")->trigger();
    QTRY_VERIFY_WITH_TIMEOUT(done() >= 30 && looked() && looked()->steps > 0, patience);
    again();
    QVERIFY(done() >= 30 && !session().training());
    QVERIFY(looked() && looked()->steps > 0);
  }

  /// From a fork both histories come back, and the fork's command still begins with its parent's.
  void aForkIsThereAgain() {
    openGru();
    trainFor(20);
    window_->action("fork")->trigger();
    QTRY_VERIFY_WITH_TIMEOUT(session().learning()->trainings.size() == 2, patience);
    const std::int64_t from = curve()->first;
    window_->action("train")->trigger();
    QTRY_VERIFY_WITH_TIMEOUT(done() >= from + 20, patience);
    window_->action("train")->trigger();
    QTRY_VERIFY_WITH_TIMEOUT(!session().training() && atRest(), patience);
    const std::vector<double> first = curve(1)->loss, second = curve()->loss;
    again();
    QCOMPARE(session().learning()->trainings.size(), std::size_t{2});
    QVERIFY(curve(1)->loss == first && curve()->loss == second && curve()->first == from && curve()->parent == curve(1)->training &&
            !curve()->waits);
    QVERIFY2(curve()->command.find(" && reclab train gru") != std::string::npos, curve()->command.c_str());
    const std::int64_t before = done();
    trainFor(before + 5);
    QVERIFY(std::equal(second.begin(), second.end(), curve()->loss.begin()));
  }

  /// A run that learned beside another is seen with its weights again, and learns on beside it.
  void aPinThatLearnedFollowsItsTrainingAgain() {
    Options options;
    options.model = "elman";
    options.given["--task"] = "adding";
    options.given["--length"] = "20";
    open(options);
    bar()->settings()->setChoice(choice());
    window_->action("pin")->trigger();
    clickModel("gru");
    trainFor(20);
    QCOMPARE(session().learning()->trainings.size(), std::size_t{2});
    again();
    QCOMPARE(session().learning()->trainings.size(), std::size_t{2});
    QCOMPARE(window_->pins()->pins().size(), std::size_t{1});
    const std::uint64_t its = session().trainingOf(window_->pins()->pins()[0].id);
    QVERIFY(its != 0 && session().learning()->find(its)->name.find("Elman") != std::string::npos);
    QTRY_VERIFY_WITH_TIMEOUT(
        !window_->pins()->running() && window_->pins()->pins()[0].trace && window_->pins()->pins()[0].trace->info.learned, patience);
    const std::int64_t before = session().learning()->find(its)->done;
    trainFor(done() + 10);
    QVERIFY(session().learning()->find(its)->done > before && session().learning()->trainings.size() == 2);
  }

  void whatWasForgottenStaysForgotten() {
    openGru();
    trainFor(10);
    again();
    QVERIFY(curve());
    window_->action("resetTraining")->trigger();
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && !looked(), patience);
    again();
    QVERIFY(!session().learning() || session().learning()->trainings.empty());
    QVERIFY(!looked());
    for (QDirIterator files(TrainingStore::standardFolder(), QDir::Files, QDirIterator::Subdirectories); files.hasNext();)
      QVERIFY2(!files.next().endsWith(".npz"), qPrintable(files.filePath()));
  }

  /// A window that began with something else, or beside another one, takes nothing away.
  void anotherStartLeavesItWhereItIs() {
    openGru();
    trainFor(10);
    const std::vector<double> loss = curve()->loss;
    close();
    Options other;
    other.model = "elman";
    other.given["--task"] = "copy";
    open(other);
    QVERIFY(!session().learning() || session().learning()->trainings.empty());
    trainFor(5);
    again();
    QCOMPARE(session().learning()->trainings.size(), std::size_t{2});
    QVERIFY(curve(1)->loss == loss);
  }

  void weightsThatAreGoneAreSaidToBe() {
    openGru();
    trainFor(10);
    window_->action("pin")->trigger();
    close();
    QDir(TrainingStore::standardFolder()).removeRecursively();
    open({});
    QTRY_VERIFY_WITH_TIMEOUT(window_->banner()->sentence().contains("untrained now"), patience);
    QVERIFY(!looked());
    QCOMPARE(window_->pins()->pins().size(), std::size_t{1});
  }

  void aDamagedOneIsSaidAndTheOthersAreThere() {
    openGru();
    trainFor(10);
    const QString id = session().trainedTogether().front();
    clickModel("elman");
    trainFor(5);
    close();
    QFile file(TrainingStore::standardFolder() + "/" + id + "/window/curve.npz");
    QVERIFY(file.resize(file.size() / 2));
    again();
    QVERIFY2(said_.contains("curve.npz") && said_.contains(id), qPrintable(said_));
    QCOMPARE(session().learning()->trainings.size(), std::size_t{1});
    QVERIFY(QFileInfo::exists(TrainingStore::standardFolder() + "/" + id + "/training/training.json"));  // for reclab train --resume
  }

  /// One that was kept is kept again where it is gone from the disk, though it has learned nothing since.
  void whatIsGoneFromTheDiskIsKeptAgain() {
    openGru();
    trainFor(10);
    const QString place = TrainingStore::standardFolder() + "/" + session().trainedTogether().front();
    QVERIFY(session().keepTrainings().isEmpty() && QFileInfo::exists(place + "/window/learner.json"));
    QVERIFY(QDir(place).removeRecursively());
    QVERIFY(session().keepTrainings().isEmpty() && QFileInfo::exists(place + "/window/learner.json"));
  }

  void whatCannotBeKeptIsAskedAbout() {
    openGru();
    trainFor(10);
    const QString place = TrainingStore::standardFolder() + "/" + session().trainedTogether().front();
    QTRY_VERIFY_WITH_TIMEOUT(QFileInfo::exists(place + "/window/learner.json"), patience);  // kept as soon as it rests
    window_->action("train")->trigger();
    QTRY_VERIFY_WITH_TIMEOUT(done() >= 20, patience);
    QDir(place).removeRecursively();
    QFile file(place);  // in the place of a folder
    QVERIFY(file.open(QFile::WriteOnly));
    file.close();
    answer("Cancel");
    window_->close();
    QVERIFY2(asked_.contains(place), qPrintable(asked_));
    QVERIFY(window_->isVisible() && curve());
    // As it says: into another folder.
    const QString folder = folder_.filePath("saved");
    FileChooser chooser;
    chooser.folder = [folder](QWidget*, const QString&, const QString&) { return folder; };
    window_->setFileChooser(chooser);
    answer("Export training…");
    window_->close();
    QVERIFY(window_->isVisible());
    QTRY_VERIFY_WITH_TIMEOUT(QFileInfo::exists(folder + "/training.json"), patience);
    answer("Close without it");
    window_->close();
    QVERIFY(!window_->isVisible());
    QFile::remove(place);
  }

  /// However many there are, none goes without a question.
  void theOldestGoWhereThatIsSaid() {
    const QString place = TrainingStore::standardFolder();
    const auto old = [&] { return QDir(place).entryList({"old-*"}, QDir::Dirs).size(); };
    openGru();
    trainFor(5);
    QTRY_VERIFY_WITH_TIMEOUT(QFileInfo::exists(place + "/" + session().trainedTogether().front() + "/window/learner.json"), patience);
    const auto made = [&](int from, int to) {
      for (int i = from; i < to; ++i) {
        const QString folder = QStringLiteral("%1/old-%2/window").arg(place).arg(i);
        QVERIFY(QDir().mkpath(folder));
        QFile file(folder + "/learner.json");
        QVERIFY(file.open(QFile::WriteOnly) &&
                file.setFileTime(QDateTime(QDate(2001, 1, 1), QTime(1, i)), QFileDevice::FileModificationTime));
      }
    };
    made(0, 25);
    answer("Cancel");
    window_->close();
    QVERIFY2(asked_.contains("26 trainings") && asked_.contains(QDir::toNativeSeparators(place)) && asked_.contains("2 of them"),
             qPrintable(asked_));
    QVERIFY(window_->isVisible() && old() == 25);
    answer("Keep all");
    window_->close();
    QVERIFY(!window_->isVisible() && old() == 25);
    window_.reset();
    Options options;
    options.model = "elman";
    open(options);
    asked_.clear();
    window_->close();  // it has been answered
    QVERIFY(!window_->isVisible() && asked_.isEmpty() && old() == 25);
    window_.reset();
    QSettings().remove("training/oldKept");
    open(options);
    answer("Remove the oldest 2");
    window_->close();
    QVERIFY(!window_->isVisible());
    QCOMPARE(old(), 23);
    QVERIFY(QDir(place + "/old-24").exists() && !QDir(place + "/old-0").exists());
  }

  /// Neither another training nor data of before are replaced unasked.
  void exportsAskBeforeTheyReplace() {
    openGru();
    trainFor(5);
    const QString folder = folder_.filePath("exported");
    FileChooser chooser;
    chooser.folder = [folder](QWidget*, const QString&, const QString&) { return folder; };
    window_->setFileChooser(chooser);
    const auto steps = [&] { return training_in(folder.toStdString()).steps; };
    window_->action("exportTraining")->trigger();
    QTRY_VERIFY_WITH_TIMEOUT(steps() == done(), patience);
    const std::int64_t before = done();
    trainFor(before + 5);
    answer("Cancel");
    window_->action("exportTraining")->trigger();
    QVERIFY2(asked_.contains(QString("A training of %1 steps is in ").arg(before)) && asked_.contains("exported"), qPrintable(asked_));
    QTRY_VERIFY_WITH_TIMEOUT(!session().running(), patience);
    QCOMPARE(steps(), before);
    answer("Replace it");
    window_->action("exportTraining")->trigger();
    QTRY_VERIFY_WITH_TIMEOUT(steps() == done(), patience);

    window_->action("exportData")->trigger();
    const QString file = folder + "/gru-output.csv";
    const auto text = [&] {
      QFile one(file);
      return one.open(QFile::ReadOnly) ? one.readAll() : QByteArray();
    };
    QVERIFY(text().startsWith("step,"));
    QFile own(file);
    QVERIFY(own.open(QFile::WriteOnly) && own.write("mine\n") == 5);
    own.close();
    answer("Cancel");
    window_->action("exportData")->trigger();
    QVERIFY2(asked_.contains("gru-output.csv"), qPrintable(asked_));
    QCOMPARE(text(), QByteArray("mine\n"));
    answer("Replace them");
    window_->action("exportData")->trigger();
    QVERIFY(text().startsWith("step,"));

    const QString other = folder_.filePath("run");
    chooser.folder = [other](QWidget*, const QString&, const QString&) { return other; };
    window_->setFileChooser(chooser);
    const auto trace = [&] { return QFileInfo(other + "/trace.npz"); };
    window_->action("exportRun")->trigger();
    QTRY_VERIFY_WITH_TIMEOUT(trace().exists() && !session().running(), patience);
    const QDateTime first = trace().lastModified();
    answer("Cancel");
    window_->action("exportRun")->trigger();
    QVERIFY2(asked_.contains("manifest.json"), qPrintable(asked_));
    QTRY_VERIFY_WITH_TIMEOUT(!session().running(), patience);
    QCOMPARE(trace().lastModified(), first);
    answer("Replace them");
    window_->action("exportRun")->trigger();
    QTRY_VERIFY_WITH_TIMEOUT(trace().lastModified() > first, patience);
  }

  /// What the system asks of a process at the end of a session, and a shell with Ctrl-C.
  void aSignalKeepsTheDeskAsClosingDoes() {
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) {
      QTemporaryDir home;
      QProcess process;
      QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
      for (const char* name : {"XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_CACHE_HOME"}) environment.insert(name, home.path());
      process.setProcessEnvironment(environment);
      process.start(QString::fromStdString(test::built("bin/recurrence-lab")), {"gru", "--task", "copy", "--length", "30"});
      QVERIFY(process.waitForStarted(patience));
      const QString settings = home.filePath("recurrence-lab/recurrence-lab.ini");
      const auto kept = [&](const QString& name = "recurrence-lab/recurrence-lab.ini") {
        QFile file(home.filePath(name));
        return file.open(QFile::ReadOnly) ? file.readAll() : QByteArray();
      };
      // It runs, and has noted that it survived what it restored.
      QTRY_VERIFY_WITH_TIMEOUT(QFileInfo::exists(settings) && !kept().contains("restoring"), patience);
      ::kill(static_cast<pid_t>(process.processId()), signal);
      QVERIFY(process.waitForFinished(patience));
      QVERIFY(process.exitStatus() == QProcess::NormalExit && process.exitCode() == 0);
      const QJsonObject lab = QJsonDocument::fromJson(kept("recurrence-lab/recurrence-lab/lab.json")).object();
      QCOMPARE(lab["shown"]["sequence"]["task"], QJsonValue("copy"));
      QVERIFY(lab["arranged"].toObject().contains("panels"));
    }
  }
};

int main(int argc, char** argv) { return test::runWindowTest<TestKept>(argc, argv, "kept-test"); }
#include "test_kept.moc"
