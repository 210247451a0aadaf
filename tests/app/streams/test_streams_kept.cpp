// SPDX-License-Identifier: GPL-3.0-or-later
// What is kept of streams: places that are listed, looked at and removed, a checkpoint that outlives a process that is killed, and a
// session with a stream in it, opened in another process.
#include <signal.h>

#include <QDialog>
#include <QJsonArray>
#include <QLabel>
#include <QLineEdit>
#include <QMessageBox>
#include <QProcess>
#include <QSignalSpy>
#include <QSpinBox>
#include <QTimer>
#include <QToolButton>
#include <QUndoStack>
#include <cstdio>
#include <cstring>

#include "gui/docks/panel_area.h"
#include "gui/sessions/recovery.h"
#include "gui/sessions/sessions_feature.h"
#include "gui/streams/kept_streams.h"
#include "gui/views/scrubber.h"
#include "gui/views/status_line.h"
#include "plot/plot.h"
#include "stream_test.h"
#include "trace/stream_steps.h"

using namespace reclab;
using test::patience;

class TestStreamsKept : public test::StreamTest {
  Q_OBJECT

 public:
  /// For a child process: a stream that goes on until the process is killed; "kept" once there is a checkpoint.
  int streamForEver() {
    open();
    session().setStreamKeptEvery(std::chrono::milliseconds(20));
    start();
    window_->sessions()->keepNow();
    const QString folder = QFileInfo(session().streaming().folder).path();
    const auto isKept = [] {  // what is open, in the folder of this process
      for (const QFileInfo& one : QDir(Recovery::standardFolder()).entryInfoList(QDir::Dirs | QDir::NoDotAndDotDot))
        if (!QDir(one.filePath()).entryList({"*.reclab"}, QDir::Files).isEmpty()) return true;
      return false;
    };
    if (!QTest::qWaitFor([&] { return isKept() && QFileInfo::exists(checkpointIn(folder) + "/stream.json"); }, patience)) return 3;
    std::puts("kept");
    std::fflush(stdout);
    for (;;) QTest::qWait(50);
  }
  /// For a child process: opens a session, goes on with its stream, and prints what it is.
  int look(const QString& file) {
    Options options;
    options.session = file;
    WindowTest::open(options);
    if (!QTest::qWaitFor([this] { return stands() && !window_->sessions()->file().isEmpty(); }, patience)) return 3;
    const Streaming now = session().streaming();
    const auto& input = ring().input;
    QJsonArray values;
    for (const double x : input) values.append(x);
    QJsonObject told{{"steps", static_cast<qint64>(now.numbers.steps)},
                     {"state", view()->state()},
                     {"input", values},
                     {"name", QString::fromStdString(ring().names.at(0))},
                     {"time", ring().time.back()},
                     {"command", now.command},
                     {"curves", now.numbers.curves ? static_cast<qint64>(now.numbers.curves->steps.size()) : 0}};
    if (!view()->isVisible()) window_->action("stream")->trigger();
    click(view()->pauseButton());
    goTo(now.numbers.steps + 50);
    pause();
    told["on"] = static_cast<qint64>(session().streaming().numbers.steps);
    const auto mine = again();
    told["same"] = mine->steps() == steps() && ring().input == mine->ring()->sequence().input;
    std::fputs((QJsonDocument(told).toJson(QJsonDocument::Compact) + '\n').constData(), stdout);
    std::fflush(stdout);
    window_->closeUnasked();
    window_.reset();
    return 0;
  }

 private:
  KeptStreams* kept() { return window_->findChild<KeptStreams*>(); }
  void openKept() {
    QTest::mouseClick(view()->findChild<QToolButton*>("stream.kept"), Qt::LeftButton);
    QTRY_VERIFY(kept() != nullptr && kept()->isVisible());
  }
  int rowOf(const QString& folder) {
    for (int row = 0; row < kept()->table()->rowCount(); ++row)
      if (kept()->table()->item(row, 0)->toolTip().contains(folder.section('/', -2))) return row;
    return -1;
  }
  void select(int row) {
    QTableWidget* table = kept()->table();
    table->scrollToItem(table->item(row, 0));
    QTest::mouseClick(table->viewport(), Qt::LeftButton, {}, table->visualItemRect(table->item(row, 0)).center());
  }
  void answer(const QString& button) {
    QTimer::singleShot(0, this, [this, button] {
      auto* question = qobject_cast<QMessageBox*>(QApplication::activeModalWidget());
      if (question == nullptr) return answer(button);
      for (QAbstractButton* one : question->buttons())
        if (one->text() == button) return QTest::mouseClick(one, Qt::LeftButton);
      question->reject();
      QFAIL(qPrintable("there is no " + button));
    });
  }
  /// Ends the program's memory of sessions that another process left.
  static void forgetSessions() { QDir(Recovery::standardFolder()).removeRecursively(); }

 private slots:
  void init() {
    test::forgetAll();
    forgetSessions();
    QDir(folderOfStreams()).removeRecursively();
  }
  void cleanup() { close(); }

  /// A ring that is read from its place has the names and the steps that it had.
  void aRingKeepsItsNamesAndSteps() {
    open();
    set<QSpinBox>("stream.ring", 30);
    start();
    const Sequence live = ring();
    QCOMPARE(live.names, std::vector<std::string>{"sine"});
    pause();
    QCOMPARE(ring().names, live.names);
    QCOMPARE(ring().time_name, std::string(stream_steps));
    QCOMPARE(session().setup().sequence->columns, (std::vector<std::string>{std::string(stream_steps), "sine"}));
    // The time line has the stream's number of the step.
    window_->scrubber()->strip()->setFocus();
    QTest::keyClick(window_->scrubber()->strip(), Qt::Key_End);
    const QString expected = QStringLiteral("step %1 of the stream").arg(grouped(steps() - 1));
    const auto labels = window_->scrubber()->findChildren<QLabel*>();
    QTRY_VERIFY2(std::ranges::any_of(labels, [&](const QLabel* one) { return one->text() == expected; }), qPrintable(expected));
    for (PanelDock* dock : window_->area()->docks())
      for (const Plot* plot : dock->panel()->findChildren<Plot*>())
        if (plot->timeSpan() && dock->inSight() && plot->cursorStep() >= 0) QCOMPARE(plot->numberOf(plot->cursorStep()), steps() - 1);
  }

  /// Every place is a row; one that is looked at stays, others go when they are removed.
  void placesAreListedAndRemoved() {
    open();
    start();
    pause();
    const QString first = session().streaming().folder;
    const std::int64_t at = steps();
    click(view()->pauseButton());
    goTo(at + 100);
    pause();
    const QString second = session().streaming().folder;
    QVERIFY(first != second);
    openKept();
    QCOMPARE(kept()->table()->rowCount(), static_cast<int>(places().size()));
    QVERIFY2(kept()->words().contains(QDir::toNativeSeparators(folderOfStreams())), qPrintable(kept()->words()));
    select(rowOf(second));
    QVERIFY(!kept()->removeButton()->isEnabled() && kept()->lookButton()->isEnabled());
    // Looked at, the first is what is in use.
    select(rowOf(first));
    QTest::mouseClick(kept()->lookButton(), Qt::LeftButton);
    QTRY_VERIFY_WITH_TIMEOUT(stands() && session().streaming().folder == first, patience);
    QCOMPARE(steps(), at);
    QCOMPARE(ring().time.back(), static_cast<double>(at - 1));
    select(rowOf(second));
    QVERIFY(kept()->removeButton()->isEnabled());
    answer("Cancel");
    QTest::mouseClick(kept()->removeButton(), Qt::LeftButton);
    QVERIFY(QFileInfo(second + "/ring.npz").isFile());
    answer("Remove");
    QTest::mouseClick(kept()->removeButton(), Qt::LeftButton);
    QVERIFY(!QFileInfo::exists(second) && QFileInfo(first + "/ring.npz").isFile());
    QCOMPARE(rowOf(second), -1);
    QCOMPARE(kept()->table()->rowCount(), static_cast<int>(places().size()));
    // The stream goes on from there, and one step back is what was looked at before.
    kept()->reject();
    click(view()->pauseButton());
    goTo(at + 50);
    pause();
    const auto mine = again();
    QCOMPARE(mine->steps(), steps());
    hasWeightsOf(*mine);
  }

  /// With its last place a stream's folder goes.
  void theLastPlaceTakesTheFolder() {
    open();
    start();
    pause();
    window_->undoStack()->undo();
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && !session().setup().sequence->choice.is_file(), patience);
    click(view()->startButton());
    QTRY_VERIFY_WITH_TIMEOUT(session().streams() && steps() >= 100, patience);
    pause();  // another stream is what is in use now
    const QStringList before = places();
    openKept();
    QStringList used{session().streaming().folder};
    for (const QString& one : before)
      if (!session().placesInUse().contains(one)) {
        select(rowOf(one));
        answer("Remove");
        QTest::mouseClick(kept()->removeButton(), Qt::LeftButton);
        QVERIFY2(!QFileInfo::exists(one), qPrintable(one));
      }
    QCOMPARE(QDir(folderOfStreams()).entryList(QDir::Dirs | QDir::NoDotAndDotDot).size(), 1);
  }

  /// A process that is killed over its stream: the next window offers what was open, and the stream goes on from its checkpoint.
  void aKilledWindowsStreamGoesOnFromItsCheckpoint() {
    QProcess process;
    process.start(QCoreApplication::applicationFilePath(), {"--stream", QSettings().fileName().section('/', 0, -3)});
    while (!process.canReadLine()) QVERIFY2(process.waitForReadyRead(patience), process.readAllStandardError().constData());
    QCOMPARE(process.readLine(), QByteArray("kept\n"));
    ::kill(static_cast<pid_t>(process.processId()), SIGKILL);
    QVERIFY(process.waitForFinished(patience));
    WindowTest::open({});
    Banner* banner = window_->sessions()->leftBanner();
    QTRY_VERIFY_WITH_TIMEOUT(banner->sentence().startsWith("The program ended without being closed"), patience);
    for (QPushButton* button : banner->findChildren<QPushButton*>())
      if (button->isVisible() && button->text() == "Open it") {
        QTest::mouseClick(button, Qt::LeftButton);
        break;
      }
    QTRY_VERIFY_WITH_TIMEOUT(stands() && session().setup().preset == "elman" && session().setup().sequence->choice.is_file(), patience);
    const Streaming left = session().streaming();
    QVERIFY2(left.folder.endsWith("/checkpoint"), qPrintable(left.folder));
    QVERIFY(left.problem.isEmpty());
    const std::int64_t at = left.numbers.steps;
    QVERIFY(at >= 100);
    if (!view()->isVisible()) window_->action("stream")->trigger();
    QTRY_VERIFY(view()->isVisible());
    QVERIFY2(view()->state().contains(QStringLiteral("stands at step %1").arg(grouped(at))), qPrintable(view()->state()));
    goesOnFrom(at);
  }

  /// A port at which nobody listens is one sentence with the port and a cure, and nothing is begun.
  void aPortThatCannotBeOpenedIsOneSentence() {
    open();
    const Setup before = session().setup();
    choose("socket");
    auto* port = view()->findChild<QLineEdit*>("stream.argument");
    QVERIFY(port->isVisible());
    for (const auto& [typed, why] : {std::pair{"1", "cannot be reached"}, {"99999", "is no port from 1 to 65535"}}) {
      port->setFocus();
      port->selectAll();
      QTest::keyClicks(port, typed);
      QTest::keyClick(port, Qt::Key_Return);
      click(view()->startButton());
      const QString begins = QStringLiteral("socket:%1 %2").arg(typed, why);
      QTRY_VERIFY2_WITH_TIMEOUT(!session().streams() && window_->statusLine()->sentence().startsWith(begins),
                                qPrintable(window_->statusLine()->sentence()), patience);
      const QString said = window_->statusLine()->sentence();
      QVERIFY2(said.contains("give the port of a server") && said.count(". ") == 0 && said.endsWith('.'), qPrintable(said));
    }
    QVERIFY(session().setup() == before);
    QVERIFY(places().isEmpty() && QDir(folderOfStreams()).isEmpty());
    QVERIFY(view()->startButton()->isEnabled() && !view()->pauseButton()->isEnabled());
  }

  /// A session with a paused stream is the same in a process with a home of its own, and its stream goes on there.
  void aSessionWithAStreamOpensElsewhere() {
    open();
    set<QSpinBox>("stream.ring", 40);
    start();
    pause();
    const QString file = folder_.filePath("stream.reclab");
    window_->setFileChooser({.open = {}, .save = [&](auto...) { return file; }, .folder = {}});
    QSignalSpy saved(window_->sessions(), &SessionsFeature::sessionSaved);
    window_->action("saveSessionAs")->trigger();
    QTRY_COMPARE_WITH_TIMEOUT(saved.count(), 1, patience);
    QTemporaryDir home;
    QProcess process;
    process.start(QCoreApplication::applicationFilePath(), {"--look", home.path(), file});
    QVERIFY2(process.waitForFinished(2 * patience) && process.exitStatus() == QProcess::NormalExit && process.exitCode() == 0,
             process.readAllStandardError().constData());
    const QJsonObject told = QJsonDocument::fromJson(process.readAllStandardOutput()).object();
    QCOMPARE(told["steps"].toInteger(), steps());
    QCOMPARE(told["state"].toString(), view()->state());
    QCOMPARE(told["name"].toString(), QStringLiteral("sine"));
    QCOMPARE(told["time"].toDouble(), static_cast<double>(steps() - 1));
    QCOMPARE(told["command"].toString(), session().streaming().command);
    QVERIFY(told["curves"].toInteger() > 10);
    const QJsonArray values = told["input"].toArray();
    QCOMPARE(values.size(), static_cast<qsizetype>(ring().input.size()));
    for (qsizetype i = 0; i < values.size(); ++i) QCOMPARE(values[i].toDouble(), ring().input[static_cast<std::size_t>(i)]);
    QVERIFY(told["on"].toInteger() >= steps() + 50 && told["same"].toBool());
  }
};

int main(int argc, char** argv) {
  const bool streams = argc == 3 && std::strcmp(argv[1], "--stream") == 0, looks = argc == 4 && std::strcmp(argv[1], "--look") == 0;
  const test::TestApplication application(argc, argv, "streams-kept-test", streams || looks ? QString::fromLocal8Bit(argv[2]) : QString());
  TestStreamsKept test;
  if (streams) return test.streamForEver();
  if (looks) return test.look(QString::fromLocal8Bit(argv[3]));
  return QTest::qExec(&test, argc, argv);
}
#include "test_streams_kept.moc"
