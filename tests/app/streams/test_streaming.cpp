// SPDX-License-Identifier: GPL-3.0-or-later
// A stream in the window: its last steps are the sequence of all panels, it pauses, is looked back at and goes on, and nothing that it
// learned is lost.
#include <QClipboard>
#include <QComboBox>
#include <QDir>
#include <QElapsedTimer>
#include <QFileInfo>
#include <QLineEdit>
#include <QMessageBox>
#include <QPointer>
#include <QPushButton>
#include <QSet>
#include <QSignalSpy>
#include <QSpinBox>
#include <QTableWidget>
#include <QTimer>
#include <QToolButton>
#include <QUndoStack>
#include <algorithm>

#include "experiment/training/learned.h"
#include "gui/docks/flat_dock.h"
#include "gui/docks/panel_area.h"
#include "gui/session/kept/stream_files.h"
#include "gui/session/pins.h"
#include "gui/streams/stream_curves.h"
#include "gui/streams/stream_settings.h"
#include "gui/streams/stream_view.h"
#include "gui/views/inspector_view.h"
#include "gui/views/scrubber.h"
#include "gui/views/status_line.h"
#include "models/registry.h"
#include "plot/parts/step_marks.h"
#include "plot/plot.h"
#include "stream_test.h"

using namespace reclab;
using test::patience;

class TestStreaming : public test::StreamTest {
  Q_OBJECT

 private slots:
  void init() {
    test::forgetAll();
    QDir(folderOfStreams()).removeRecursively();
  }
  void cleanup() { close(); }

  /// The steps of the stream are the time of all panels, and its numbers are those of the command line.
  void itsLastStepsAreTheSequence() {
    open();
    set<QSpinBox>("stream.ring", 50);
    QVERIFY2(view()->command().startsWith("reclab stream elman"), qPrintable(view()->command()));
    start();
    const TracePtr live = session().trace();
    QCOMPARE(live->time.size(), std::size_t{50});
    for (std::size_t i = 1; i < live->time.size(); ++i) QCOMPARE(live->time[i], live->time[i - 1] + 1.0);
    QCOMPARE(live->info.learned->steps, static_cast<std::int64_t>(live->time.back()) + 1);
    QVERIFY2(live->info.command.starts_with("reclab stream elman") && live->info.command.find(" && reclab run elman") != std::string::npos,
             live->info.command.c_str());
    // The time line moves.
    QTRY_VERIFY_WITH_TIMEOUT(session().trace()->time.back() > live->time.back(), patience);
    pause();
    const std::int64_t at = steps();
    QCOMPARE(ring().length, std::int64_t{50});
    QCOMPARE(ring().time.back(), static_cast<double>(at - 1));
    QVERIFY2(view()->state().contains("stands at step"), qPrintable(view()->state()));
    // The same stream, made here.
    const auto mine = again();
    QCOMPARE(mine->steps(), at);
    const StreamNumbers numbers = session().streaming().numbers;
    QCOMPARE(view()->table()->rowCount(), static_cast<int>(mine->predictors().size()));
    for (std::size_t p = 0; p < mine->predictors().size(); ++p) {
      QCOMPARE(numbers.rows[p].mean, mine->errors()[p].mean());
      QCOMPARE(numbers.rows[p].windowed, mine->errors()[p].windowed());
      QCOMPARE(cell(static_cast<int>(p), 0), QString::fromStdString(mine->predictors()[p].name));
      QCOMPARE(cell(static_cast<int>(p), 1), number(mine->errors()[p].mean()[0], 4));
    }
    QVERIFY(ring().input == mine->ring()->sequence().input && ring().target == mine->ring()->sequence().target);
    hasWeightsOf(*mine);
    // Sequence and weights are files, and so is the line that repeats the run.
    const QString folder = session().streaming().folder;
    QVERIFY(QFileInfo(folder + "/ring.npz").isFile() && QFileInfo(folder + "/weights.safetensors").isFile());
    const QString command = QString::fromStdString(session().trace()->info.command);
    QVERIFY2(command.startsWith("reclab run elman") && command.contains("ring.npz") && command.contains("weights.safetensors"),
             qPrintable(command));
    photograph(window_.get(), "stream");
  }

  void itIsLookedBackAtAndGoesOn() {
    open();
    set<QSpinBox>("stream.ring", 40);
    start();
    pause();
    const std::int64_t at = steps();
    // The cursor goes over its last steps as over any sequence.
    window_->scrubber()->strip()->setFocus();
    QTest::keyClick(window_->scrubber()->strip(), Qt::Key_Home);
    QTRY_COMPARE(window_->time()->step(), std::int64_t{0});
    QTest::keyClick(window_->scrubber()->strip(), Qt::Key_End);
    QTRY_COMPARE(window_->time()->step(), std::int64_t{39});
    QTest::qWait(100);
    QCOMPARE(steps(), at);
    QCOMPARE(view()->pauseButton()->text(), QStringLiteral("Go on"));
    goesOnFrom(at);
  }

  /// One step back is what was looked at before the stream, and one forth the stream where it stood.
  void undoLeavesItAndComesBack() {
    open();
    const Setup before = session().setup();
    start();
    window_->undoStack()->undo();
    QVERIFY(!session().streams());
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().setup().sameRun(before), patience);
    QVERIFY(session().shownSetup().sequence == before.sequence);
    window_->undoStack()->redo();
    QTRY_VERIFY_WITH_TIMEOUT(stands() && session().setup().sequence != before.sequence, patience);
    const std::int64_t at = session().streaming().numbers.steps;
    QCOMPARE(ring().time.back(), static_cast<double>(at - 1));
    QCOMPARE(QString::fromStdString(session().setup().sequence->choice.file), session().streaming().folder + "/ring.npz");
    QVERIFY(!session().setup().learnedWeights());
  }

  /// A gesture that changes the model has the stream stand, and says so; undo comes back to it.
  void aChangeOfTheModelPausesIt() {
    open();
    start();
    QPointer<InspectorView> inspector = window_->inspector();
    emit inspector->edited("width", "9", false, 0);
    QVERIFY(!session().streams());
    const std::int64_t at = session().streaming().numbers.steps;
    QVERIFY(at >= 100);
    QTRY_VERIFY_WITH_TIMEOUT(!session().running(), patience);
    QCOMPARE(QString::fromStdString(session().setup().settings().back().second), QStringLiteral("9"));
    QVERIFY(QFileInfo(session().streaming().folder + "/state.npz").isFile());
    window_->undoStack()->undo();
    QTRY_VERIFY_WITH_TIMEOUT(stands(), patience);
    QCOMPARE(ring().time.back(), static_cast<double>(at - 1));
    // Another model too; and it goes on from there with its own.
    clickModel("gru");
    QVERIFY2(view()->state().contains(QStringLiteral("step %1").arg(grouped(at))), qPrintable(view()->state()));
    click(view()->pauseButton());
    goTo(at + 50);
    QCOMPARE(session().setup().preset, std::string("elman"));
    pause();
  }

  void aPinIsOfThePlaceWhereItStands() {
    open();
    start();
    window_->action("pin")->trigger();
    QVERIFY(!session().streams());
    QTRY_VERIFY_WITH_TIMEOUT(stands() && window_->pins()->pins().size() == 1 && window_->pins()->pins()[0].trace, patience);
    const Setup& pinned = window_->pins()->pins()[0].setup;
    QVERIFY(pinned.sameRun(session().setup()));
    QVERIFY(QFileInfo(QString::fromStdString(pinned.weights.at("elman").string())).isFile());
  }

  /// The window is closed over it, and the next start has it as it stood; it goes on to the bit.
  void itIsThereAfterARestart() {
    open();
    set<QSpinBox>("stream.ring", 30);
    start();
    window_->close();
    QVERIFY(!session().streams());
    const Setup left = session().setup();
    const std::int64_t at = session().streaming().numbers.steps;
    const QString folder = session().streaming().folder;
    window_.reset();
    WindowTest::open({});
    QTRY_VERIFY_WITH_TIMEOUT(stands(), patience);
    QVERIFY(ring().input == left.sequence->sequence.input);
    QCOMPARE(session().streaming().folder, folder);
    QCOMPARE(session().streaming().numbers.steps, at);
    QVERIFY(view()->isVisible());
    QCOMPARE(view()->settings()->choice().ring, std::int64_t{30});
    QVERIFY(view()->table()->rowCount() > 0 && view()->pauseButton()->isEnabled());
    click(view()->pauseButton());
    goTo(at + 100);
    pause();
    const auto mine = again();
    QCOMPARE(mine->steps(), steps());
    hasWeightsOf(*mine);
  }

  /// Where it cannot be kept, closing asks.
  void closingAsksWhereItCannotBeKept() {
    open();
    start();
    // A file lies where the folder of the next place is to be.
    const QString stream = QFileInfo(session().streaming().folder).path();
    QVERIFY(QDir(stream).removeRecursively());
    QFile file(stream);
    QVERIFY(file.open(QIODevice::WriteOnly));
    file.close();
    QString asked;
    const auto answer = [&](const QString& button) {
      QTimer::singleShot(0, this, [&asked, button] {
        auto* question = qobject_cast<QMessageBox*>(QApplication::activeModalWidget());
        QVERIFY(question != nullptr);
        asked = question->text();
        for (QAbstractButton* one : question->buttons())
          if (one->text().contains(button)) return one->click();
        QFAIL("it has no such button");
      });
    };
    answer("Cancel");
    QVERIFY(!window_->close());
    QVERIFY2(asked.contains(stream), qPrintable(asked));
    QVERIFY(window_->isVisible());
    answer("Close without it");
    QVERIFY(window_->close());
    QFile::remove(stream);
  }

  /// A source that is not there: one sentence, and nothing is begun.
  void aBadSourceIsOneSentence() {
    open();
    const Setup before = session().setup();
    choose("file");
    auto* name = view()->findChild<QLineEdit*>("stream.argument");
    QVERIFY(name->isVisible());
    name->setFocus();
    QTest::keyClicks(name, folder_.filePath("none.txt"));
    QTest::keyClick(name, Qt::Key_Return);
    click(view()->startButton());
    QTRY_VERIFY_WITH_TIMEOUT(!session().streams() && window_->statusLine()->sentence().contains("none.txt"), patience);
    QVERIFY(session().setup() == before);
    QVERIFY(places().isEmpty() && QDir(folderOfStreams()).isEmpty());
    QVERIFY(view()->startButton()->isEnabled() && !view()->pauseButton()->isEnabled());
    // A line that is no step: those before it are learned from, and kept.
    QByteArray text;
    for (int i = 0; i < 300; ++i) text += QByteArray::number(std::sin(i * 0.1)) + '\n';
    const QString bad = written("bad.txt", text + "seven\n");
    name->setFocus();
    name->selectAll();
    QTest::keyClicks(name, bad);
    QTest::keyClick(name, Qt::Key_Return);
    click(view()->startButton());
    QTRY_VERIFY_WITH_TIMEOUT(stands() && window_->statusLine()->sentence().contains("301"), patience);
    QVERIFY2(window_->statusLine()->sentence().contains("bad.txt"), qPrintable(window_->statusLine()->sentence()));
    QCOMPARE(steps(), std::int64_t{299});  // the target of a row is the next one
  }

  /// A file that ends: the stream is at its end, and there is nothing to go on with.
  void aFileEnds() {
    open();
    QByteArray text;
    for (int i = 0; i < 500; ++i) text += QByteArray::number(std::sin(i * 0.1)) + '\n';
    choose("file");
    auto* name = view()->findChild<QLineEdit*>("stream.argument");
    name->setFocus();
    QTest::keyClicks(name, written("whole.txt", text));
    QTest::keyClick(name, Qt::Key_Return);
    click(view()->startButton());
    QTRY_VERIFY_WITH_TIMEOUT(stands() && steps() == 499, patience);
    QVERIFY2(view()->state().contains("at its end"), qPrintable(view()->state()));
    QVERIFY(!view()->pauseButton()->isEnabled());
    QTRY_VERIFY_WITH_TIMEOUT(window_->statusLine()->sentence().contains("at its end"), patience);
  }

  /// What no picture has is counted: all steps but those of the rings that were shown.
  void whatIsLeftOutIsSaid() {
    open();
    set<QSpinBox>("stream.ring", 2);
    start(2000);
    pause();
    const StreamNumbers numbers = session().streaming().numbers;
    QVERIFY(numbers.leftOut > 0 && numbers.leftOut < numbers.steps);
    QCOMPARE(view()->leftOut(), QStringLiteral("%1 of %2 steps were in no picture.").arg(grouped(numbers.leftOut), grouped(numbers.steps)));
  }

  void itIsExported() {
    open();
    start();
    pause();
    const QString folder = folder_.filePath("exported");
    FileChooser chooser;
    chooser.folder = [folder](QWidget*, const QString&, const QString&) { return folder; };
    window_->setFileChooser(chooser);
    QVERIFY(window_->action("exportStream")->isEnabled());
    window_->action("exportStream")->trigger();
    QTRY_VERIFY_WITH_TIMEOUT(holds_stream(folder.toStdString()), patience);
    QTRY_VERIFY_WITH_TIMEOUT(window_->statusLine()->sentence().contains("exported"), patience);
    const auto file = [](const QString& path) {
      QFile of(path);
      return of.open(QIODevice::ReadOnly) ? of.readAll() : QByteArray();
    };
    QCOMPARE(file(folder + "/state.npz"), file(session().streaming().folder + "/state.npz"));
    QTest::mouseClick(view()->findChild<QToolButton*>("stream.copy"), Qt::LeftButton);
    QCOMPARE(QApplication::clipboard()->text(), view()->command());
  }

  /// A mark where another regime begins, in every plot over time and in the time line; and again after a restart.
  void driftsAreMarked() {
    open();
    choose("recurring");
    set<QSpinBox>("stream.source.hold", 20);
    set<QSpinBox>("stream.ring", 90);
    start();
    pause();
    const auto mine = again();
    std::vector<StepMark> expected;
    for (const std::int64_t step : mine->ring()->drifts()) {
      const auto at = static_cast<std::size_t>(step - mine->ring()->first());
      const auto regime = static_cast<std::size_t>(mine->ring()->regimes()[at]);
      expected.push_back({static_cast<std::int64_t>(at), QString::fromStdString(mine->form().concepts[regime])});
    }
    QVERIFY(expected.size() == 4 || expected.size() == 5);
    const auto marked = [&] {
      QCOMPARE(session().setup().sequence->marks, expected);
      QCOMPARE(window_->scrubber()->strip()->sequence()->marks, expected);
      int plots = 0;
      for (PanelDock* dock : window_->area()->docks())
        for (const Plot* plot : dock->panel()->findChildren<Plot*>()) {
          QCOMPARE(stepMarksOf(plot), expected);
          ++plots;
        }
      QVERIFY(plots > 3);
    };
    marked();
    QVERIFY2(view()->state().contains("drifts so far"), qPrintable(view()->state()));
    // The name of the regime is under the mouse.
    PanelDock* dock = window_->area()->dock("gradients");
    window_->area()->open(dock);
    QTRY_VERIFY(dock->inSight());
    auto* plot = dock->panel()->findChild<Plot*>();
    QTRY_VERIFY(plot->timeSpan().has_value());
    const auto [left, right] = *plot->timeSpan();
    const double share = (static_cast<double>(expected[1].step) + 0.5) / 90.0;
    bool found = false;
    for (int x = left; x <= right && !found; ++x) found = !stepMarkAt(plot, QPointF(x, plot->axisRect()->rect().center().y())).isEmpty();
    QVERIFY(found);
    const QPointF at(left + share * (right - left), plot->axisRect()->rect().center().y());
    QCOMPARE(stepMarkAt(plot, at), expected[1].text);
    window_->close();
    window_.reset();
    WindowTest::open({});
    QTRY_VERIFY_WITH_TIMEOUT(stands(), patience);
    marked();
    // What is no stream has no marks.
    window_->session()->loadSequence(SequenceChoice{});
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().shownSetup().sequence->marks.empty(), patience);
    QVERIFY(stepMarksOf(window_->area()->dock("gradients")->panel()->findChild<Plot*>()).empty());
  }

  /// The limit of its pace holds, and another one counts at once.
  void itsPaceIsChosen() {
    open();
    auto* pace = view()->findChild<QSpinBox*>("stream.pace");
    QCOMPARE(pace->value(), 5000);
    set<QSpinBox>("stream.pace", 400);
    QVERIFY2(view()->command().contains("--pace 400"), qPrintable(view()->command()));
    QCOMPARE(view()->findChild<QSpinBox*>("stream.steps")->text(), QStringLiteral("without end"));
    start();
    const std::int64_t before = steps();
    QElapsedTimer since;
    since.start();
    goTo(before + 400);
    QVERIFY2(since.elapsed() > 850, qPrintable(QString::number(since.elapsed())));  // a picture is a tenth of the second at most
    set<QSpinBox>("stream.pace", 0);
    QCOMPARE(pace->text(), QStringLiteral("as fast as it can"));
    const std::int64_t then = steps();
    since.start();
    goTo(then + 4000);
    QVERIFY2(since.elapsed() < 8000, qPrintable(QString::number(since.elapsed())));  // at 400 a second they take ten
    QVERIFY2(view()->state().contains("pictures a second"), qPrintable(view()->state()));
    pause();
    // It changes no number.
    const auto mine = again();
    QCOMPARE(mine->steps(), steps());
    hasWeightsOf(*mine);
  }

  /// Lists of rates and truncations are typed: a learner of each, with its regret, one name and one colour.
  void severalLearnersSideBySide() {
    open();
    const auto type = [&](const char* name, const QString& text) {
      auto* line = view()->findChild<QLineEdit*>(name);
      QVERIFY2(line != nullptr, name);
      line->setFocus();
      line->selectAll();
      QTest::keyClicks(line, text);
      QTest::keyClick(line, Qt::Key_Return);
    };
    type("stream.rates", "0.01, x");
    QVERIFY2(window_->statusLine()->sentence().startsWith("0.01, x was not taken"), qPrintable(window_->statusLine()->sentence()));
    QVERIFY(view()->settings()->choice().rates.empty());
    type("stream.rates", "0.01 0.001");
    type("stream.truncations", "4,20");
    QCOMPARE(view()->settings()->choice().rates, (std::vector<double>{0.01, 0.001}));
    QCOMPARE(view()->findChild<QLineEdit*>("stream.rates")->text(), QStringLiteral("0.01, 0.001"));
    QVERIFY2(view()->command().contains("--rates 0.01,0.001 --truncations 4,20"), qPrintable(view()->command()));
    start(400);
    pause();
    const auto mine = again();
    QCOMPARE(view()->table()->rowCount(), 7);
    QVERIFY(!view()->table()->isColumnHidden(3));
    const StreamNumbers numbers = session().streaming().numbers;
    QSet<QString> looks;
    for (std::size_t p = 0; p < mine->predictors().size(); ++p) {
      const QString name = QString::fromStdString(mine->predictors()[p].name);
      QCOMPARE(cell(static_cast<int>(p), 0), name);
      QCOMPARE(cell(static_cast<int>(p), 3), mine->predictors()[p].learns ? number(mine->regret(p), 4) : QString());
      const QPen pen = StreamCurvesView::penOf(view()->curves()->plot()->theme(), numbers.rows, p);
      looks.insert(pen.color().name() + QString::number(pen.style()));
      QVERIFY2(!view()->curves()->legend()->placeOf(name).isNull() || view()->curves()->legend()->namesAsHtml(true).contains(name),
               qPrintable(name));
    }
    QCOMPARE(looks.size(), 7);
    QCOMPARE(view()->curves()->plot()->graphCount(), 7);
    QVERIFY(view()->curves()->isVisible() && view()->curves()->choice()->isEnabled());
    // The curves are those of the stream.
    const StreamCurvesPtr curves = curvesOf(*mine);
    QCOMPARE(numbers.curves->steps, curves->steps);
    for (std::size_t p = 0; p < mine->predictors().size(); ++p) {
      QCOMPARE(numbers.curves->windowed[p], curves->windowed[p]);
      QCOMPARE(numbers.curves->regret[p], curves->regret[p]);
    }
    view()->curves()->choice()->setCurrentIndex(1);
    QCOMPARE(view()->curves()->plot()->graphCount(), 4);
    photograph(view(), "stream-learners");
    // They are read from the place in the next window.
    window_->close();
    window_.reset();
    WindowTest::open({});
    QTRY_VERIFY_WITH_TIMEOUT(stands(), patience);
    QCOMPARE(session().streaming().numbers.curves->steps, curves->steps);
    QCOMPARE(session().streaming().numbers.curves->regret[1], curves->regret[1]);
    QCOMPARE(view()->curves()->choice()->currentIndex(), 1);
    QCOMPARE(view()->curves()->plot()->graphCount(), 4);
  }

  /// A training and a stream take turns: each has the other stand.
  void aTrainingAndAStreamTakeTurns() {
    open("gru");
    start();
    window_->action("train")->trigger();
    QVERIFY(!session().streams());
    QTRY_VERIFY_WITH_TIMEOUT(session().training(), patience);
    click(view()->startButton());
    QTRY_VERIFY_WITH_TIMEOUT(!session().training() && session().streams() && steps() >= 40, patience);
    pause();
  }

  void aModelWhoseStateGrowsIsRefused() {
    open();
    clickModel("transformer");
    const Setup before = session().setup();
    click(view()->startButton());
    QTRY_VERIFY_WITH_TIMEOUT(!session().streams() && !window_->banner()->sentence().isEmpty(), patience);
    QVERIFY(session().setup() == before && QDir(folderOfStreams()).isEmpty());
  }
};

int main(int argc, char** argv) { return test::runWindowTest<TestStreaming>(argc, argv, "streaming-test"); }
#include "test_streaming.moc"
