// SPDX-License-Identifier: GPL-3.0-or-later
// Sessions in the window: saved, opened in another process, equal in values and pictures; changes are asked about; and what was open in a
// process that was killed at any moment is offered, and is a state that was.
#include <signal.h>

#include <QApplication>
#include <QClipboard>
#include <QCryptographicHash>
#include <QDir>
#include <QDragEnterEvent>
#include <QMenu>
#include <QMessageBox>
#include <QMimeData>
#include <QProcess>
#include <QPushButton>
#include <QSignalSpy>
#include <QTimer>
#include <QUndoStack>
#include <cstdio>
#include <cstring>

#include "gui/session/kept_setup.h"
#include "gui/sessions/restoring.h"
#include "gui/sessions/sessions_feature.h"
#include "gui/views/status_line.h"
#include "lab_test.h"

using namespace reclab;
using test::patience;

namespace {

int states = 3, kills = 3;

QByteArray bytesIn(const QString& file) {
  QFile in(file);
  return in.open(QIODevice::ReadOnly) ? in.readAll() : QByteArray();
}
QByteArray lineOf(const QJsonObject& object) { return QJsonDocument(object).toJson(QJsonDocument::Compact) + '\n'; }

}  // namespace

class TestSessions : public test::LabTest {
  Q_OBJECT

 public:
  /// For a child process: opens a session, and prints what is open then: state and pictures.
  int look(const QString& file) {
    Options options;
    options.session = file;
    openOnly(options);
    if (!opens() || window_->sessions()->file().isEmpty()) return 3;
    rest();
    std::fputs(told().constData(), stdout);
    std::fflush(stdout);
    close();
    return 0;
  }
  /// For a child process: changes what is open at random, for ever. Before each time that it is kept, or saved, the state is written into
  /// a file.
  int work(const QString& folder, unsigned seed) {
    std::mt19937 random(seed);
    Options options;
    options.model = "gru";
    options.given = {{"--task", "adding"}, {"--length", "20"}, {"--set", "width=8"}};
    options.layout = "Explore";
    openOnly(options);
    rest();
    window_->sessions()->setPatience(3'600'000);  // it is kept when this says so
    QFile journal(folder + "/journal");
    if (!journal.open(QIODevice::WriteOnly | QIODevice::Append | QIODevice::Unbuffered)) return 4;
    if (random() % 3 == 0) trainFor(10);
    std::puts("begins");
    std::fflush(stdout);
    QStringList done;
    for (;;) {
      for (std::size_t more = 1 + random() % 3; more > 0; --more) changeAtRandom(random, done);
      QApplication::processEvents();
      if (random() % 4 == 0) rest();
      const QString saved = folder + "/saved.reclab";
      if (random() % 4 == 0) {
        journal.write("saved " + lineOf(plain(written())));
        window_->setFileChooser({.open = {}, .save = [&](auto...) { return saved; }, .folder = {}});
        window_->action("saveSession")->trigger();
      } else {
        journal.write("kept " + lineOf(plain(written())));
        window_->sessions()->keepNow();
      }
      QTest::qWait(static_cast<int>(random() % 60));
    }
  }
  /// Writes the sessions of a version, small ones: of a task, of a file with pinned runs, and with a training that was forked.
  int write(const QString& folder) {
    QDir().mkpath(folder);
    const auto saves = [&](const QString& name) {
      const QString file = folder + '/' + name;
      window_->setFileChooser({.open = {}, .save = [&](auto...) { return file; }, .folder = {}});
      QSignalSpy saved(window_->sessions(), &SessionsFeature::sessionSaved);
      window_->action("saveSessionAs")->trigger();
      return QTest::qWaitFor([&] { return saved.count() == 1; }, patience);
    };
    open();
    if (!saves("task.reclab")) return 5;
    QFile data(folder + "/waves.csv");
    if (!data.open(QIODevice::WriteOnly) || data.write(test::twoWaves(60)) <= 0) return 5;
    data.close();
    window_->openFile(data.fileName());
    if (!QTest::qWaitFor([this] { return atRest() && session().setup().sequence->choice.is_file(); }, patience)) return 5;
    window_->action("pin")->trigger();
    Setup after = session().setup();
    after.preset = "elman";
    after.form = "auto";
    window_->lab()->change("model", [&] { session().apply(after, false); });
    rest();
    window_->action("pin")->trigger();
    window_->pins()->rename(1, "an <b>Elman</b> & more");
    if (!saves("pins.reclab")) return 5;
    close();
    test::forgetAll();
    open("gru", "adding", 12);
    begin();
    if (!QTest::qWaitFor([this] { return !session().training() && atRest(); }, patience)) return 5;
    session().lookAtStep(session().learning()->current, 5, false);
    rest();
    window_->action("fork")->trigger();
    begin();
    if (!QTest::qWaitFor([this] { return !session().training() && done() > 12; }, patience)) return 5;
    rest();
    if (!saves("training.reclab")) return 5;
    close();
    return 0;
  }

 private:
  /// Without what follows from where it is.
  static QJsonObject plain(QJsonObject lab) {
    lab.remove("session");
    return lab;
  }
  void openOnly(const Options& options) {
    window_ = std::make_unique<MainWindow>(&look_, options);
    window_->setFileChooser({});
    window_->show();
    static_cast<void>(QTest::qWaitForWindowExposed(window_.get()));
    window_->activateWindow();
    static_cast<void>(QTest::qWaitFor([this] { return session().library() && session().setup().sequence; }, patience));
  }
  bool opens() {
    // What is set need not run: learned weights may be of another width.
    return QTest::qWaitFor([this] { return !window_->sessions()->isBusy() && session().setup().sequence && !session().running(); },
                           patience);
  }
  /// The state that is open, and the pictures of the panels in sight, but of the one that measures, and the one whose components have the
  /// signs of the picture before.
  QByteArray told() {
    QJsonObject told;
    const auto drawn = [&] {
      QJsonObject pictures;
      for (PanelDock* dock : window_->area()->docks()) {
        if (!dock->inSight() || dock->panel()->id() == "timing" || dock->panel()->id() == "trajectories") continue;
        const QImage image = dock->panel()->grab().toImage().convertToFormat(QImage::Format_RGB32);
        QByteArray bytes(reinterpret_cast<const char*>(image.constBits()), image.sizeInBytes());
        if (const QString folder = qEnvironmentVariable("RECLAB_TOLD"); !folder.isEmpty())
          image.save(QStringLiteral("%1/%2-%3.png").arg(folder).arg(QApplication::applicationPid()).arg(dock->panel()->id()));
        pictures[dock->panel()->id()] = QStringLiteral("%1x%2 ").arg(image.width()).arg(image.height()) +
                                        QCryptographicHash::hash(bytes, QCryptographicHash::Sha1).toHex();
      }
      return pictures;
    };
    if (!session().whyNotShown().isEmpty()) {  // panels have the run before, where there was one
      told["state"] = plain(written());
      return lineOf(told);
    }
    // What is drawn late is there: the panels are fitted, nothing runs or is still asked for, and two pictures are the same.
    const auto whole = [&] {
      window_->area()->settle();
      return !session().running() && !window_->pins()->running() && std::ranges::all_of(window_->area()->docks(), [this](PanelDock* dock) {
        if (!dock->inSight() || dock->panel()->id() == "timing") return true;
        return dock->formerName().isEmpty() && std::ranges::none_of(kind_table(), [&](const KindInfo& row) {
                 return dock->info().needs.has(row.kind) && session().isPending(row.kind) &&
                        !(session().trace() && session().trace()->info.absent.contains(row.kind));
               });
      });
    };
    QJsonObject pictures = drawn();
    static_cast<void>(QTest::qWaitFor(
        [&] {
          QTest::qWait(300);
          if (!whole()) return false;
          const QJsonObject before = std::exchange(pictures, drawn());
          return before == pictures;
        },
        patience));
    told["pictures"] = pictures;
    told["state"] = plain(written());
    return lineOf(told);
  }
  QString save(const QString& name) {
    const QString file = folder_.filePath(name);
    window_->setFileChooser({.open = {}, .save = [&](auto...) { return file; }, .folder = {}});
    QSignalSpy saved(window_->sessions(), &SessionsFeature::sessionSaved);
    window_->action("saveSessionAs")->trigger();
    if (!QTest::qWaitFor([&] { return saved.count() == 1; }, patience)) qFatal("%s was not saved", qPrintable(file));
    return file;
  }
  /// What another process, with a home of its own, has open of a session.
  QJsonObject lookedAt(const QString& file) {
    QTemporaryDir home;
    QProcess process;
    process.start(QCoreApplication::applicationFilePath(), {"--look", home.path(), file});
    if (!process.waitForFinished(2 * patience) || process.exitStatus() != QProcess::NormalExit || process.exitCode() != 0) {
      qWarning("%s: %d, %s", qPrintable(file), process.exitCode(), process.readAllStandardError().constData());
      return {};
    }
    return QJsonDocument::fromJson(process.readAllStandardOutput()).object();
  }
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
  void changeSeed(std::uint64_t seed) {
    Setup after = session().setup();
    after.seed = seed;
    window_->lab()->change("seed", [&] { session().apply(after, false); });
    rest();
  }
  /// How a state that is none of these differs from that which is most like it.
  static QString said(int kill, const QSet<QByteArray>& states, const QJsonObject& state) {
    QString nearest;
    for (const QByteArray& one : states) {
      const QString differs = firstDifference(QJsonDocument::fromJson(one).object(), state);
      if (nearest.isEmpty() || differs.size() < nearest.size()) nearest = differs;
    }
    return QStringLiteral("kill %1: none of %2 states: %3").arg(kill).arg(states.size()).arg(nearest);
  }
  /// The state in a session of a task, without the places of docks.
  static QJsonObject stateIn(const QString& file) {
    QJsonObject state = readSession(bytesIn(file), file).state, arranged = state.value("arranged").toObject();
    for (const char* key : {"window", "docks", "panels"}) arranged.remove(QLatin1String(key));
    state["arranged"] = arranged;
    return state;
  }
  /// Boxes of a panel are filled by a run, and the process was killed while one was on its way.
  static QJsonObject withoutPanels(QJsonObject state) {
    state.remove("panels");
    return state;
  }
  void press(const QString& offer) {
    for (QPushButton* button : window_->sessions()->leftBanner()->findChildren<QPushButton*>())
      if (button->isVisible() && button->text() == offer) return QTest::mouseClick(button, Qt::LeftButton);
    QFAIL(qPrintable("there is no " + offer));
  }
  QString asked_;

 private slots:
  void init() {
    test::forgetAll();
    QDir(TrainingStore::standardFolder()).removeRecursively();
    QDir(Recovery::standardFolder()).removeRecursively();
    asked_.clear();
  }
  void cleanup() {
    if (window_) window_->closeUnasked();
    window_.reset();
  }

  void theTitleNamesTheSessionAndItsChanges() {
    open();
    QCOMPARE(window_->windowTitle(), QString("Recurrence Lab"));
    const QString file = save("a & b.reclab");
    QCOMPARE(window_->windowTitle(), QString("a & b[*] — Recurrence Lab"));
    QVERIFY(!window_->isWindowModified());
    changeSeed(3);
    QVERIFY(window_->isWindowModified());
    window_->undoStack()->undo();
    rest();
    QVERIFY(!window_->isWindowModified());
    trainFor(5);
    QVERIFY(window_->isWindowModified());
    QSignalSpy saved(window_->sessions(), &SessionsFeature::sessionSaved);
    window_->action("saveSession")->trigger();
    QTRY_COMPARE_WITH_TIMEOUT(saved.count(), 1, patience);
    QVERIFY(!window_->isWindowModified());
    // The next start knows which it is.
    changeSeed(4);
    answer("Close without saving");
    again();
    QVERIFY2(asked_.startsWith("a & b.reclab does not have what was done since it was saved: 1 change by hand"), qPrintable(asked_));
    QCOMPARE(window_->windowTitle(), QString("a & b[*] — Recurrence Lab"));
    QVERIFY(window_->isWindowModified());
    QCOMPARE(session().setup().seed, std::uint64_t{4});
    QCOMPARE(window_->sessions()->file(), file);
    answer("Save");
    QVERIFY(window_->close());
    const QJsonObject state = documentOf(bytesIn(file)).value("state").toObject();
    QCOMPARE(state.value("shown")["seed"].toString(), QString("4"));
  }

  /// All of it, in a process that has seen nothing of it; and in a window that has something else open.
  void statesAreSavedAndOpenedElsewhere() {
    open();
    trainFor(30);
    rest();
    std::mt19937 random(5);
    QStringList done;
    for (int i = 0; i < states; ++i) {
      done.clear();
      for (std::size_t more = 1 + random() % 6; more > 0; --more) {
        changeAtRandom(random, done);
        QApplication::processEvents();
      }
      rest();
      const QString file = save(QStringLiteral("state %1.reclab").arg(i));
      const QJsonObject there = lookedAt(file);
      QString differs = firstDifference(plain(written()), there.value("state"));
      // Pictures also show the way to them, as a trail of eigenvalues and the signs of components: they are those of a window that is new.
      again();
      if (differs.isEmpty()) differs = firstDifference(QJsonDocument::fromJson(told()).object(), there);
      QVERIFY2(differs.isEmpty(), qPrintable(QStringLiteral("state %1 after %2: %3").arg(i).arg(done.join(' '), differs)));
      if (states > 3 && i % 20 == 19) qInfo("%d states", i + 1);
    }
    const QJsonObject last = written();
    const QString lastFile = window_->sessions()->file();
    window_->openFile(folder_.filePath("state 0.reclab"));
    QVERIFY(opens());
    rest();
    QCOMPARE(window_->undoStack()->count(), 0);
    QCOMPARE(firstDifference(plain(written()), lookedAt(folder_.filePath("state 0.reclab")).value("state")), QString());
    window_->openFile(lastFile);
    QVERIFY(opens());
    rest();
    QCOMPARE(firstDifference(written(), last), QString());
    QVERIFY(!window_->isWindowModified());
  }

  void changesAreAskedAbout() {
    open();
    const QString one = save("one.reclab");
    changeSeed(2);
    const QString two = save("two.reclab");
    changeSeed(3);
    answer("Cancel");
    window_->openFile(one);
    QCOMPARE(window_->sessions()->file(), two);
    QCOMPARE(session().setup().seed, std::uint64_t{3});
    answer("Cancel");
    QVERIFY(!window_->close());
    answer("Save");
    window_->openFile(one);
    QVERIFY(opens());
    QCOMPARE(window_->sessions()->file(), one);
    QCOMPARE(session().setup().seed, std::uint64_t{1});
    window_->openFile(two);
    QVERIFY(opens());
    QCOMPARE(session().setup().seed, std::uint64_t{3});
    QMenu* recent = window_->findChild<QMenu*>("recentSessions");
    emit recent->aboutToShow();
    QStringList names;
    for (QAction* action : recent->actions()) names << action->text();
    QCOMPARE(names.mid(0, 2), (QStringList{"two.reclab", "one.reclab"}));
    recent->actions()[1]->trigger();
    QVERIFY(opens());
    QCOMPARE(session().setup().seed, std::uint64_t{1});
  }

  void whatIsInNoSessionIsAskedAbout() {
    open();
    const QString one = save("one.reclab");
    close();
    test::forgetAll();
    open();
    changeSeed(2);
    answer("Cancel");
    window_->openFile(one);
    QVERIFY2(asked_.startsWith("What is open is in no session, and would be gone: 1 change by hand."), qPrintable(asked_));
    QCOMPARE(session().setup().seed, std::uint64_t{2});
    const QString two = folder_.filePath("three");  // the ending is added
    window_->setFileChooser({.open = {}, .save = [&](auto...) { return two; }, .folder = {}});
    answer("Save");
    window_->openFile(one);
    QVERIFY(opens());
    QCOMPARE(session().setup().seed, std::uint64_t{1});
    QCOMPARE(readSession(bytesIn(two + ".reclab"), two).state.value("shown")["seed"].toString(), QString("2"));
  }

  void whatIsMissingIsSaidAndTheRestOpens() {
    open("gru");
    const QString data = WindowTest::written("waves.csv", test::twoWaves(60));
    window_->openFile(data);
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().setup().sequence->choice.is_file(), patience);
    rest();
    const QString file = save("a.reclab");
    QVERIFY(QFile::rename(data, folder_.filePath("other.csv")));
    window_->openFile(file);
    QVERIFY(opens());
    QTRY_COMPARE_WITH_TIMEOUT(window_->banner()->sentence(), QString("waves.csv is now other.csv."), patience);
    QVERIFY(QFile::remove(folder_.filePath("other.csv")));
    window_->openFile(file);
    QVERIFY(opens());
    QTRY_VERIFY_WITH_TIMEOUT(window_->banner()->sentence().startsWith("waves.csv is missing"), patience);
    QVERIFY(window_->banner()->sentence().contains("stands in for it"));
    QCOMPARE(session().setup().preset, std::string("gru"));
    const QString none = WindowTest::written("none.reclab", "{\"reclab session\": 1, \"state\": {\"shown\": {\"preset\": \"<b>x</b>\"}}}");
    window_->openFile(none);
    QTRY_VERIFY_WITH_TIMEOUT(window_->banner()->sentence().contains("none.reclab shows the model <b>x</b>"), patience);
    QCOMPARE(window_->sessions()->file(), file);  // what was open is
    // At a start, it begins as it does the first time.
    close();
    test::forgetAll();
    Options options;
    options.session = none;
    openOnly(options);
    QVERIFY(opens());
    QTRY_VERIFY_WITH_TIMEOUT(window_->banner()->sentence().contains("none.reclab shows the model <b>x</b>"), patience);
    QCOMPARE(session().setup().preset, std::string("lstm"));
  }

  /// As of a session or link on the command line that is none: what was open is there, and why the other is not.
  void whyNothingElseWasOpenedIsSaid() {
    open();
    changeSeed(7);
    close();
    Options options;
    options.problem = "a <b>session</b> & more cannot be opened.";
    openOnly(options);
    QVERIFY(opens());
    QTRY_COMPARE_WITH_TIMEOUT(window_->banner()->sentence(), options.problem, patience);
    QCOMPARE(session().setup().seed, std::uint64_t{7});
  }

  void aRunIsSharedAsALinkAndAFolder() {
    open("gru");
    window_->action("copyLink")->trigger();
    QVERIFY2(QApplication::clipboard()->text().startsWith("reclab:run?gru&--task&adding"), qPrintable(QApplication::clipboard()->text()));
    window_->openFile(WindowTest::written("waves.csv", test::twoWaves(60)));
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().setup().sequence->choice.is_file(), patience);
    rest();
    window_->action("copyLink")->trigger();
    QVERIFY(window_->statusLine()->sentence().contains("save a folder to send"));
    const QString folder = folder_.filePath("to send");
    window_->setFileChooser({.open = {}, .save = {}, .folder = [&](auto...) { return folder; }});
    QSignalSpy saved(window_->sessions(), &SessionsFeature::sessionSaved);
    window_->action("sendFolder")->trigger();
    QTRY_COMPARE_WITH_TIMEOUT(saved.count(), 1, patience);
    QVERIFY(QFileInfo::exists(folder + "/gru.reclab") && QFileInfo::exists(folder + "/data/waves.csv"));
    QVERIFY(window_->sessions()->file().isEmpty());  // it is a copy
  }

  void aChangeByHandIsKeptSoon() {
    open();
    QSignalSpy kept(window_->sessions(), &SessionsFeature::recoverable);
    window_->sessions()->setPatience(50);
    for (int i = 0; i < 5; ++i) {
      changeSeed(static_cast<std::uint64_t>(10 + i));
      QTRY_COMPARE_WITH_TIMEOUT(kept.count(), i + 1, patience);
      const SessionFile file = readSession(bytesIn(kept.back()[0].toString()), "kept");
      QCOMPARE(file.state.value("shown")["seed"].toString(), QString::number(10 + i));
    }
    QCOMPARE(QDir(QFileInfo(kept.back()[0].toString()).path()).entryList({"*.reclab"}).size(), 3);
    // Nothing changes, and nothing is written.
    QTest::qWait(300);
    QCOMPARE(kept.count(), 5);
    close();
    QVERIFY(QDir(Recovery::standardFolder()).isEmpty());
  }

  void aFileThatEndsTheProgramTwiceIsNotRestoredAThirdTime() {
    open();
    const QString file = save("a.reclab");
    close();
    QVERIFY(beginRestoring(file) && beginRestoring(file));  // as in two starts that ended
    Options options;
    options.session = file;
    openOnly(options);
    QVERIFY(opens());
    QTRY_VERIFY2_WITH_TIMEOUT(window_->banner()->sentence().contains("ended twice while it restored " + file),
                              qPrintable(window_->banner()->sentence()), patience);
    QVERIFY(window_->sessions()->file().isEmpty());
    window_->openFile(file);  // by hand
    QVERIFY(opens());
    QCOMPARE(window_->sessions()->file(), file);
    close();
    // The state of the last start likewise, which stays.
    QVERIFY(beginRestoring(LastSession::file()) && beginRestoring(LastSession::file()));
    const QByteArray lab = bytesIn(LastSession::file());
    openOnly({});
    QVERIFY(opens());
    QTRY_VERIFY_WITH_TIMEOUT(window_->banner()->sentence().contains("lab.json.not-restored"), patience);
    QCOMPARE(bytesIn(LastSession::file() + ".not-restored"), lab);
    QVERIFY(window_->sessions()->file().isEmpty());
  }

  /// What was open in a process that is killed at a random moment is offered until it is answered, and is a state that was; the session
  /// that it saved is one that was saved, whole.
  void whatAKilledWindowHadOpenIsThereAgain() {
    std::mt19937 random(17);
    int offered = 0, saved = 0;
    for (int i = 0; i < kills; ++i) {
      test::forgetAll();
      QDir(Recovery::standardFolder()).removeRecursively();
      QDir(TrainingStore::standardFolder()).removeRecursively();  // many trainings are asked about at a closing
      QTemporaryDir folder;
      QProcess process;
      process.start(QCoreApplication::applicationFilePath(),
                    {"--work", QSettings().fileName().section('/', 0, -3), folder.path(), QString::number(100 + i)});
      while (process.waitForReadyRead(patience) && !process.canReadLine()) {
      }
      QTest::qWait(static_cast<int>(random() % 2500));
      QVERIFY(process.state() == QProcess::Running);
      ::kill(static_cast<pid_t>(process.processId()), SIGKILL);
      QVERIFY(process.waitForFinished(patience));
      QSet<QByteArray> kept, saves;
      for (const QByteArray& line : bytesIn(folder.filePath("journal")).split('\n'))
        (line.startsWith("kept ") ? kept : saves).insert(line.mid(line.indexOf(' ') + 1) + '\n');
      if (QFileInfo::exists(folder.filePath("saved.reclab"))) {
        ++saved;
        const QJsonObject state = stateIn(folder.filePath("saved.reclab"));
        QVERIFY2(saves.contains(lineOf(state)), qPrintable(said(i, saves, state)));
        QCOMPARE(firstDifference(withoutPanels(lookedAt(folder.filePath("saved.reclab")).value("state").toObject()), withoutPanels(state)),
                 QString());
      }
      openOnly({});
      QVERIFY(opens());
      rest();
      Banner* banner = window_->sessions()->leftBanner();
      if (banner->sentence().isEmpty()) {  // killed before the first was written
        close();
        continue;
      }
      ++offered;
      QVERIFY(banner->sentence().startsWith("The program ended without being closed"));
      if (i == 0) {  // until it is answered
        close();
        openOnly({});
        QVERIFY(opens());
        rest();
        banner = window_->sessions()->leftBanner();
        QVERIFY(!banner->sentence().isEmpty());
      }
      QFileInfoList folders = QDir(Recovery::standardFolder()).entryInfoList(QDir::Dirs | QDir::NoDotAndDotDot);
      folders.removeIf([](const QFileInfo& one) {  // the window that offers it has been open for long enough to be kept, too
        return one.fileName().startsWith(QString::number(QCoreApplication::applicationPid()) + '-');
      });
      QCOMPARE(folders.size(), 1);
      const QStringList files = QDir(folders[0].filePath()).entryList({"*.reclab"}, QDir::Files, QDir::Name);
      const QJsonObject left = stateIn(folders[0].filePath() + '/' + files.back());
      QVERIFY2(kept.contains(lineOf(left)), qPrintable(said(i, kept, left)));
      press("Open it");
      QVERIFY(opens());
      rest();
      QCOMPARE(firstDifference(withoutPanels(plain(written())), withoutPanels(left)), QString());
      QTRY_VERIFY_WITH_TIMEOUT(banner->sentence().isEmpty(), patience);
      if (window_->sessions()->isChanged()) answer("Close without saving");
      close();
      QVERIFY(QDir(Recovery::standardFolder()).isEmpty());
      if (kills > 3 && i % 10 == 9) qInfo("%d kills: %d offered, %d sessions looked at", i + 1, offered, saved);
    }
    QVERIFY2(offered >= kills / 2, qPrintable(QString::number(offered)));
  }
};

int main(int argc, char** argv) {
  std::vector<char*> rest;
  for (int i = 0; i < argc; ++i)
    if (std::strcmp(argv[i], "--thorough") == 0) {
      states = 200;
      kills = 100;
      qputenv("QTEST_FUNCTION_TIMEOUT", "7200000");  // ms; five minutes unless told
    } else {
      rest.push_back(argv[i]);
    }
  const auto is = [&](const char* mode, int words) { return argc == words && std::strcmp(argv[1], mode) == 0; };
  const bool looks = is("--look", 4), works = is("--work", 5), writes = is("--write", 4);
  const test::TestApplication application(argc, argv, "sessions-test",
                                          looks || works || writes ? QString::fromLocal8Bit(argv[2]) : QString());
  TestSessions test;
  if (looks) return test.look(QString::fromLocal8Bit(argv[3]));
  if (writes) return test.write(QString::fromLocal8Bit(argv[3]));
  if (works) return test.work(QString::fromLocal8Bit(argv[3]), static_cast<unsigned>(std::atoi(argv[4])));
  return QTest::qExec(&test, static_cast<int>(rest.size()), rest.data());
}

#include "test_sessions.moc"
