// SPDX-License-Identifier: GPL-3.0-or-later
// What computes and when: timings never beside anything else and kept while they hold, exports one after the other; and what comes back
// after a restart, even from a layout that Qt does not survive.
#include <QAction>
#include <QApplication>
#include <QClipboard>
#include <QComboBox>
#include <QDataStream>
#include <QDir>
#include <QJsonArray>
#include <QLabel>
#include <QMenu>
#include <QMouseEvent>
#include <QProcess>
#include <QPushButton>
#include <QSettings>
#include <QSignalSpy>
#include <QSlider>
#include <QTemporaryDir>
#include <QTest>
#include <array>
#include <cmath>

#include "experiment/device.h"
#include "gui/docks/panel_area.h"
#include "gui/lessons/lesson_player.h"
#include "gui/lessons/lessons_feature.h"
#include "gui/session/pins.h"
#include "gui/session/sentences.h"
#include "gui/views/first_hint.h"
#include "gui/views/inspector_view.h"
#include "gui/views/scrubber.h"
#include "gui/views/status_line.h"
#include "gui/window/main_window.h"
#include "learning/trainer.h"
#include "panels/timing/timing.h"
#include "sequence/missing.h"
#include "window_test.h"
#include "window_text.h"

using namespace reclab;
using std::chrono::milliseconds;
using test::patience;

namespace {

/// A state that has its seal and that QMainWindow::restoreState does not survive: a dock area of a number that there is not.
QByteArray deadly() {
  QByteArray state;
  QDataStream stream(&state, QIODevice::WriteOnly);
  stream.setVersion(QDataStream::Qt_5_0);
  stream << int(0xff) << int(1) << quint8(0xfd) << int(1) << int(0x01000000) << QSize(10, 10) << quint8(0xfc) << quint8(1) << int(0);
  return QByteArray::number(qChecksum(state)) + ':' + state.toBase64();
}

}  // namespace

class TestSession : public test::WindowTest {
  Q_OBJECT

  void openSmall() {
    Options options;
    options.model = "elman";
    options.given["--task"] = "noise";
    options.given["--length"] = "60";
    options.given["--set"] = "width=6";
    open(options);
  }
  TimingPanel* timing() { return panelOf<TimingPanel>(); }
  /// Something that is timed in a second or two.
  StudyChoice little(StudyChoice::Act act = StudyChoice::Act::compute) {
    return {"time", {{"forms", "sequential"}, {"lengths", "16"}}, act};
  }
  /// Something that goes on until it is stopped.
  StudyChoice much() { return {"time", {{"forms", "sequential"}, {"lengths", "65536"}}}; }
  void change(const std::function<void(Setup&)>& how) {
    Setup after = session().setup();
    how(after);
    session().apply(after, false);
    QVERIFY(settle());
  }

 private slots:
  void init() {
    test::forgetAll();
    openSmall();
    window_->area()->dock("timing")->raise();
    QTRY_VERIFY(window_->area()->dock("timing")->inSight());
  }
  void cleanup() { close(); }

  void anIdleDeskIsTimedAndABusyOneIsNot() {
    QTest::qWait(700);
    QVERIFY2(!session().timing(), "nobody asked, and the program is a second old");
    QVERIFY2(timing()->emptyReason().contains("Time the forms"), qPrintable(timing()->emptyReason()));
    session().request(little(StudyChoice::Act::choose));
    session().touched();
    session().setTimingPatience(milliseconds(500), milliseconds(0));
    for (int i = 0; i < 12; ++i) {  // a hand that moves
      QTest::mouseMove(window_->scrubber()->strip(), QPoint(20 + i, 10));
      QTest::qWait(100);
      QVERIFY2(!session().timing(), "a hand moves");
    }
    QTRY_VERIFY_WITH_TIMEOUT(session().timing(), patience);
    QTRY_VERIFY_WITH_TIMEOUT(!session().timing() && timing()->emptyReason().isEmpty(), patience);
    // Once is enough.
    QTest::qWait(1200);
    QVERIFY(!session().timing());
    // Nor out of sight.
    window_->area()->dock("steps")->raise();
    change([](Setup& setup) { setup.setValue("width", "7"); });
    QTest::qWait(1200);
    QVERIFY(!session().timing() && session().trace()->timed == nullptr);
    window_->area()->dock("timing")->raise();
    QTRY_VERIFY_WITH_TIMEOUT(session().timing(), patience);
  }

  void whatWasTimedIsKeptWhileItHolds() {
    emit timing() -> requested(little());
    QTRY_VERIFY_WITH_TIMEOUT(session().timing(), patience);
    QTRY_VERIFY_WITH_TIMEOUT(!session().timing() && session().trace()->timed, patience);
    const TracePtr timed = session().trace();
    const auto seconds = [](const TracePtr& trace) {
      const TraceArray* found = trace->find("timing/sequential/seconds");
      return found ? found->real : nullptr;
    };
    QVERIFY(seconds(timed));
    const auto kept = [&] { return session().trace()->timed && seconds(session().trace()) == seconds(timed); };
    int began = 0;
    connect(&session(), &SessionController::studyMoved, this,
            [&](const std::string& study, const StudyState& state) { began += study == "time" && state.running; });
    change([](Setup& setup) { setup.seed = 9; });
    QVERIFY2(kept(), "a seed changes no cost");
    change([](Setup& setup) { setup.setValue("spectral_radius", "0.5"); });
    QVERIFY2(kept(), "a radius changes no cost");
    QVERIFY2(timing()->caption().contains("spectral_radius"), qPrintable(timing()->caption()));
    session().setTimingPatience(milliseconds(100), milliseconds(0));
    QTest::qWait(500);
    QCOMPARE(began, 0);
    session().setTimingPatience(milliseconds(1'000'000), milliseconds(0));
    change([](Setup& setup) { setup.setValue("width", "8"); });
    QVERIFY2(session().trace()->timed == nullptr, "a width does");
    change([](Setup& setup) { setup.setValue("width", "6"); });
    emit timing() -> requested(little());
    QTRY_VERIFY_WITH_TIMEOUT(!session().timing() && session().trace()->timed, patience);
    change([](Setup& setup) { setup.dtype = "f32"; });
    QVERIFY2(session().trace()->timed == nullptr, "a precision does");
    emit timing() -> requested(little());
    QTRY_VERIFY_WITH_TIMEOUT(!session().timing() && session().trace()->timed, patience);
    SequenceChoice longer;
    longer.task = "noise";
    longer.make.length = 80;
    session().loadSequence(longer);
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().trace()->info.length == 80, patience);
    QVERIFY2(session().trace()->timed == nullptr, "a length does");
    // A real number that is a size.
    change([](Setup& setup) { setup.preset = "gla"; });
    emit timing() -> requested(little());
    QTRY_VERIFY_WITH_TIMEOUT(!session().timing() && session().trace()->timed, patience);
    change([](Setup& setup) { setup.setValue("expand_v", "2"); });
    QTRY_VERIFY_WITH_TIMEOUT(session().trace()->timed == nullptr, patience);
  }

  void nothingIsMeasuredBesideSomethingElse() {
    QStringList beside;
    const auto look = [&] {
      if (session().timing() && (session().running() || session().exporting())) beside << "timing beside a run or an export";
    };
    connect(&session(), &SessionController::studyMoved, this, look);
    connect(&session(), &SessionController::runningChanged, this, look);
    emit timing() -> requested(much());
    QTRY_VERIFY_WITH_TIMEOUT(session().timing(), patience);
    // A run comes first, and the panel says so; what was asked for begins anew after it.
    session().run();
    QVERIFY(!session().timing() && session().running());
    QVERIFY2(timing()->emptyReason().contains("begins anew as soon as"), qPrintable(timing()->emptyReason()));
    QTRY_VERIFY_WITH_TIMEOUT(!session().running() && session().timing(), patience);
    // So does an export.
    QSignalSpy exported(&session(), &SessionController::exported);
    session().exportRun(folder_.filePath("beside"), false);
    QVERIFY(!session().timing() && session().exporting());
    QTRY_VERIFY_WITH_TIMEOUT(!exported.isEmpty() && session().timing(), patience);
    // Asked for while something runs it waits, and says so.
    session().request(little(StudyChoice::Act::stop));
    session().run();
    emit timing() -> requested(much());
    QVERIFY(!session().timing());
    QVERIFY2(timing()->emptyReason().contains("as soon as what runs is done"), qPrintable(timing()->emptyReason()));
    QTRY_VERIFY_WITH_TIMEOUT(session().timing(), patience);
    // Stopped by hand it does not come again by itself.
    session().setTimingPatience(milliseconds(100), milliseconds(0));
    session().stop();
    QTest::qWait(600);
    QVERIFY(!session().timing());
    QVERIFY2(beside.isEmpty(), qPrintable(beside.join(", ")));
  }

  void exportsThatWaitAreStoppedToo() {
    SequenceChoice longer;
    longer.task = "noise";
    longer.make.length = 200'000;
    session().loadSequence(longer);
    QTRY_VERIFY_WITH_TIMEOUT(session().setup().sequence->sequence.length == 200'000, patience);
    session().stop();
    QTRY_VERIFY_WITH_TIMEOUT(!session().running(), patience);
    QSignalSpy exported(&session(), &SessionController::exported);
    session().exportRun(folder_.filePath("first"), false);
    session().exportRun(folder_.filePath("second"), false);
    QTest::qWait(100);
    QVERIFY(session().exporting());
    session().stop();
    QTRY_VERIFY_WITH_TIMEOUT(!session().exporting(), 5000);
    QVERIFY2(window_->statusLine()->sentence().contains("stopped"), qPrintable(window_->statusLine()->sentence()));
    QVERIFY(exported.isEmpty() && !QDir(folder_.filePath("second")).exists("manifest.json"));
    // Only one that waits.
    session().exportRun(folder_.filePath("third"), false);
    session().stop();
    QTRY_VERIFY_WITH_TIMEOUT(!session().exporting(), 5000);
    QVERIFY(!window_->statusLine()->sentence().contains("Recording"));
  }

  void theSecondOfTwoExportsIsStillAnExport() {
    QSignalSpy exported(&session(), &SessionController::exported);
    QList<bool> still;
    connect(&session(), &SessionController::exported, this, [&] { still << session().exporting(); });
    session().exportRun(folder_.filePath("one"), false);
    session().exportRun(folder_.filePath("two"), false);
    QTRY_COMPARE_WITH_TIMEOUT(exported.size(), 2, patience);
    QCOMPARE(still, (QList<bool>{true, false}));  // the first one's end is not the second one's
  }

  void aRestartBringsBackWhatWasLookedAt() {
    QByteArray text = "t,a,b\n";
    for (int i = 0; i < 90; ++i)
      text += QByteArray::number(i) + ',' + QByteArray::number(std::sin(0.2 * i)) + ',' + QByteArray::number(i % 7) + '\n';
    const QString file = written("mine.csv", text);
    window_->openFile(file);
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().trace()->info.input_name == "mine.csv", patience);
    SequenceChoice choice = session().setup().sequence->choice;
    choice.load.columns = {"b"};
    choice.load.standardise = false;
    session().loadSequence(choice);
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().trace()->input_names == std::vector<std::string>{"b"}, patience);
    change([](Setup& setup) {
      setup.preset = "gru";
      setup.setValue("width", "11");
      setup.seed = 12345678901234ULL;
      setup.dtype = "f32";
    });
    // Colours are those that were free when a run was pinned, not those of places in the row.
    change([](Setup& setup) { setup.setValue("width", "10"); });
    window_->action("pin")->trigger();
    change([](Setup& setup) { setup.setValue("width", "11"); });
    window_->action("pin")->trigger();
    change([](Setup& setup) { setup.setValue("width", "12"); });
    window_->action("pin")->trigger();
    window_->pins()->remove(0);
    const auto colour = [this](std::size_t i) { return window_->pins()->columns()[i + 1].colour; };
    const std::array colours{colour(0), colour(1)};
    QVERIFY(colours[0] == pinColour(1) && colours[1] == pinColour(2));
    window_->pins()->rename(1, "the wide one");
    change([](Setup& setup) { setup.setValue("width", "11"); });
    const auto pinned = [this](std::size_t i) { return *window_->pins()->pins()[i].trace->find("output")->real; };
    const std::vector<double> first = pinned(0), second = pinned(1);
    close();
    open({});
    const Setup& setup = session().setup();
    QCOMPARE(setup.preset, std::string("gru"));
    QCOMPARE(setup.settings(), (Settings{{"width", "11"}}));
    QCOMPARE(setup.set.at("elman"), (Settings{{"width", "6"}}));
    QCOMPARE(setup.seed, std::uint64_t{12345678901234ULL});
    QCOMPARE(setup.dtype, std::string("f32"));
    QVERIFY(setup.sequence->choice == choice);
    // What was pinned is run again.
    const std::vector<Pin>& pins = window_->pins()->pins();
    QCOMPARE(pins.size(), std::size_t{2});
    QTRY_VERIFY_WITH_TIMEOUT(pins[0].comparable && pins[1].comparable, patience);
    QVERIFY(pinned(0) == first && pinned(1) == second);
    QCOMPARE(pins[1].name, QString("the wide one"));
    QVERIFY(pins[0].given.isEmpty());
    QVERIFY(colour(0) == colours[0] && colour(1) == colours[1]);
    // The file is among those that were opened, and opens from there.
    auto* recent = window_->findChild<QMenu*>("recent");
    emit recent->aboutToShow();
    QVERIFY(recent->actions().front()->text() == "mine.csv" && recent->actions().front()->isEnabled());
    recent->actions().front()->trigger();
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().trace()->input_names.size() == 2, patience);
    // The line that repeats it.
    window_->action("copyCommand")->trigger();
    QVERIFY2(QApplication::clipboard()->text().startsWith("reclab run gru"), qPrintable(QApplication::clipboard()->text()));
    // With all that an export has, whatever panels are open.
    QVERIFY(session().trace()->info.command.find("--record") != std::string::npos);
    QVERIFY2(
        !QApplication::clipboard()->text().contains("--record") && QApplication::clipboard()->text().contains("--seed 12345678901234 "),
        qPrintable(QApplication::clipboard()->text()));
    // What is gone is said, and the window begins as it does the first time.
    close();
    QVERIFY(QFile::remove(file));
    open({});
    QCOMPARE(session().setup().preset, std::string("lstm"));
    QVERIFY(window_->banner()->sentence().contains("mine.csv"));
    // Nor does anything else in the settings do harm.
    for (const QByteArray& broken : {QByteArray("{"), QByteArray(R"({"preset":"nowhere","sequence":{"task":"noise"}})"),
                                     QByteArray(R"({"preset":"gru","sequence":{"task":"nothing"}})"),
                                     QByteArray(R"({"preset":"gru","set":{"gru":[["width","-4"]]},"sequence":{"task":"noise"}})")}) {
      close();
      const QJsonObject shown = QJsonDocument::fromJson(broken).object();
      QJsonObject pin = shown, lab = test::keptLab();
      pin["id"] = "1";
      lab["shown"] = shown;
      lab["pins"] = QJsonArray{pin, 7, QJsonObject(), pin};
      test::keepLab(lab);
      open({});
      QCOMPARE(window_->pins()->pins().size(), std::size_t(broken.contains("nothing")));  // that one lacks its input alone
    }
  }

  void aFileThatWasNamedInOneFolderIsFoundFromAnother() {
    written("near.csv", test::twoWaves(80));
    close();
    const QString before = QDir::currentPath();
    QVERIFY(QDir::setCurrent(folder_.path()));
    Options options;
    options.model = "gru";
    options.given["--input"] = "near.csv";
    open(options);
    close();
    QVERIFY(QDir::setCurrent(before));
    open({});
    QCOMPARE(session().setup().preset, std::string("gru"));
    QCOMPARE(QString::fromStdString(session().setup().sequence->choice.file), QDir(folder_.path()).filePath("near.csv"));
  }

  void aRestartBringsBackTheParametersOfATask() {
    SequenceChoice choice;
    choice.task = "copy";
    choice.make = {.length = 70, .seed = 3, .set = {{"delay", "9"}, {"alphabet", "5"}}};
    session().loadSequence(choice);
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().setup().sequence->choice == choice, patience);
    close();
    open({});
    QVERIFY(session().setup().sequence->choice == choice);
    // Those of a task that is not what it was are left out.
    close();
    QJsonObject lab = test::keptLab();
    lab["shown"] =
        QJsonDocument::fromJson(R"({"preset":"gru","sequence":{"task":"copy","length":"80","seed":"1","set":[["dely","9"]]}})").object();
    test::keepLab(lab);
    open({});
    QVERIFY(session().setup().sequence->choice.task == "copy" && session().setup().sequence->choice.make == (TaskOptions{.length = 80}));
  }

  void theHintGoesWhenAllWasTried() {
    QVERIFY(window_->hint()->isVisible());
    const auto click = [&](const QString& text) {
      for (auto* words : window_->hint()->findChildren<QPushButton*>())
        if (words->text() == text && words->isVisible() && words->isEnabled()) return QTest::mouseClick(words, Qt::LeftButton);
      QFAIL(qPrintable("nothing to try is called " + text));
    };
    click("a first lesson: three minutes");
    QTRY_VERIFY_WITH_TIMEOUT(window_->lessons()->player()->lesson() != nullptr, patience);
    QCOMPARE(window_->lessons()->player()->lesson()->id, std::string("window"));
    QVERIFY(window_->hint()->isHidden());
    window_->lessons()->player()->close();
    QVERIFY(window_->hint()->isVisible());
    QVERIFY(window_->hint()->isDone(FirstHint::lesson) && !window_->hint()->isDone(FirstHint::drag));
    close();
    openSmall();
    QVERIFY(window_->hint()->isVisible());                // with what was tried before
    QVERIFY(window_->hint()->isDone(FirstHint::lesson));  // and is not offered again
    QVERIFY(!window_->hint()->isDone(FirstHint::drag) && !window_->hint()->isDone(FirstHint::train));
    window_->action("train")->trigger();
    QVERIFY(window_->hint()->isDone(FirstHint::train));
    session().pauseTraining();
    QTRY_VERIFY_WITH_TIMEOUT(window_->inspector()->slider("width") != nullptr, patience);
    window_->inspector()->slider("width")->setValue(300);
    QTRY_VERIFY(window_->hint()->isHidden());
    close();
    openSmall();
    QVERIFY(window_->hint()->isHidden());
    // The menu of help brings it back, and its words lead to the control that is meant.
    window_->action("firstThings")->trigger();
    QVERIFY(window_->hint()->isVisible() && !window_->hint()->isDone(FirstHint::drag));
    click("drag a slider");
    QVERIFY(qobject_cast<QSlider*>(QApplication::focusWidget()) != nullptr);
  }

  void aLayoutThatQtDoesNotSurviveIsMetOnce() {
    const QString settings = folder_.filePath("settings");
    const auto start = [&] {
      QProcess process;
      QProcessEnvironment environment = QProcessEnvironment::systemEnvironment();
      environment.insert("RECLAB_ONE_START", settings);
      environment.insert("QT_QPA_PLATFORM", "offscreen");
      process.setProcessEnvironment(environment);
      process.setProcessChannelMode(QProcess::MergedChannels);
      process.start(QCoreApplication::applicationFilePath(), QStringList());
      if (!process.waitForFinished(patience)) return std::pair{-1, process.readAll()};
      return std::pair{process.exitStatus() == QProcess::NormalExit ? process.exitCode() : -2, process.readAll()};
    };
    auto [status, said] = start();  // which writes its layout
    QVERIFY2(status == 0, said);
    {
      QFile kept(QDir(settings).filePath("recurrence-lab/session-test/lab.json"));
      QVERIFY(kept.open(QIODevice::ReadWrite));
      QJsonObject lab = QJsonDocument::fromJson(kept.readAll()).object(), arranged = lab["arranged"].toObject();
      QVERIFY(arranged.contains("panels"));
      arranged["panels"] = QString::fromLatin1(deadly());
      lab["arranged"] = arranged;
      QVERIFY(kept.resize(0));
      kept.write(QJsonDocument(lab).toJson());
    }
    std::tie(status, said) = start();
    if (status == 0) QSKIP("this Qt survives it");
    QCOMPARE(status, -2);
    std::tie(status, said) = start();
    QVERIFY2(status == 0, said);
    QVERIFY2(said.contains("the standard one"), said);
    std::tie(status, said) = start();
    QVERIFY2(status == 0 && !said.contains("the standard one"), said);
  }

  void whatCanBeDoneIsSaidAsItIsOnTheScreen() {
    const auto said = [](const Sentence& sentence) { return windowText(sentence); };
    QCOMPARE(said("nothing --of the kind"), QString("nothing --of the kind"));
    QCOMPARE(said("not finite in float32" + Remedy{": ", "choose ", {"dtype", "f64"}} + ", or another state."),
             QString("not finite in float32: choose float64 under Precision, or another state."));
    QCOMPARE(said("no device" + Remedy{"; ", "choose ", {"device", "cpu"}} + "."), QString("no device; choose CPU under Device."));
    QCOMPARE(said("it has 2 columns" + Remedy{": ", "choose as many under ", {"columns"}} + Remedy{", or ", "other weights"} + "."),
             QString("it has 2 columns: choose as many under Columns, or other weights."));
    QCOMPARE(said("it is empty: fill it in" + missing_cure()), QString("it is empty: fill it in, or choose what becomes of missing cells"));
    QCOMPARE(windowText(no_memory("at step 3", "run")), QString("the computer's memory ran out at step 3, the run needs more of it: "
                                                                "take a shorter sequence or a smaller width."));
    QCOMPARE(windowText(TrainingDiverged(3, "the loss became non-finite", "loss")),
             QString("Training ended at step 3, where the loss became non-finite: choose a smaller learning rate, or clip the gradient's "
                     "norm."));
    QCOMPARE(said("Every 4th step was recorded" + Remedy{"; ", "", {"every", "1"}, " records them all"} + ". More."),
             QString("Every 4th step was recorded. More."));
  }

  /// What a remedy may name in the window is there to be found.
  void controlsAreNamedAsTheyAreOnTheScreen() {
    QStringList names;
    for (const QLabel* label : window_->findChildren<QLabel*>()) names << label->text();
    for (const QAbstractButton* button : window_->findChildren<QAbstractButton*>()) names << button->text();
    for (const char* control : {"columns", "time", "target", "task", "length", "standardise", "dtype", "device", "form", "seed"}) {
      const QString name = windowText(Remedy{"", "", {control}});
      QVERIFY2(!name.isEmpty() && names.contains(name), qPrintable(control + QString(": ") + name));
    }
  }

  /// A name of the user's is no option, however it is spelt; neither is what a command for a terminal says.
  void namesOfFilesAndColumnsStayAsTheyAre() {
    const Error whole("--seed: column --time is no number" + Remedy{": ", "choose ", {"columns"}} + ", or `reclab train gru --export DIR`.",
                      {.file = "--seed", .place = "column --time"});
    const QString text = "--seed: column --time is no number: choose Columns, or `reclab train gru --export DIR`.";
    QCOMPARE(windowText(whole), text);
    QCOMPARE(sentenceOf(std::make_exception_ptr(whole)), text);
    QCOMPARE(windowText(Error("a\x1b[31m.csv is empty.")), QString("a\\x1b[31m.csv is empty."));
  }

  void aFileNamedAsAnOptionIsNamedAsItIs() {
    const QString file = written("run--seed.csv", "a--time,b\n1,2\n2,x\n3,4\n");
    window_->openFile(file);
    QTRY_VERIFY_WITH_TIMEOUT(!window_->banner()->sentence().isEmpty(), patience);
    const QString said = window_->banner()->sentence();
    QVERIFY2(said.contains("run--seed.csv"), qPrintable(said));
    QFile::remove(file);
    window_->openFile(written("run--dtype.csv", "a--time\nx\ny\n"));
    QTRY_VERIFY_WITH_TIMEOUT(window_->banner()->sentence().contains("run--dtype.csv"), patience);
  }

  void secondsAreSaidAsPreciselyAsTheyAreMeant() {
    const auto both = [](double seconds) { return QStringList{secondsInWords(seconds), roughSecondsInWords(seconds)}; };
    QCOMPARE(both(4e-5), (QStringList{"40 µs", "40 µs"}));
    QCOMPARE(both(0.0042), (QStringList{"4.2 ms", "4.2 ms"}));
    QCOMPARE(both(0.12), (QStringList{"120 ms", "120 ms"}));
    QCOMPARE(both(1.5), (QStringList{"1.50 s", "1.5 s"}));
    QCOMPARE(both(12.0), (QStringList{"12.0 s", "12.0 s"}));
    QCOMPARE(both(270.0), (QStringList{"4.5 min", "270.0 s"}));
  }

  void noSentenceOfTheWindowNamesAnOption() {
    QStringList found;
    connect(&session(), &SessionController::said, this, [&](const QString& sentence) {
      if (sentence.contains("--")) found << sentence;
    });
    for (const Preset& preset : session().library()->presets.presets()) {
      Setup after = session().setup();
      after.preset = preset.id;
      session().apply(after, false);
      QTRY_VERIFY2_WITH_TIMEOUT(atRest(), preset.id.c_str(), patience);
      for (PanelDock* dock : window_->area()->docks()) {
        dock->catchUp();
        const QString reason = dock->panel()->emptyReason();
        if (qEnvironmentVariableIsSet("RECLAB_SENTENCES") && !reason.isEmpty())
          qInfo("%s, %s: %s", preset.id.c_str(), qPrintable(dock->panel()->id()), qPrintable(reason));
        if (reason.contains("--") || reason.contains("record them") || reason.contains("state/"))
          found << QString::fromStdString(preset.id) + ": " + reason;
        if (reason.contains("Press Run") || reason.contains("press Run"))
          found << QString::fromStdString(preset.id) + ", which ran: " + reason;
        if (dock->panel()->headline().contains("--")) found << dock->panel()->headline();
      }
      // What there is not is told from what was not recorded.
      const QString gating = window_->area()->dock("gating")->panel()->emptyReason();
      if (!gating.isEmpty()) QVERIFY2(gating.contains("has no gates"), qPrintable(gating));
      for (const Sentence& note : session().trace()->info.notes)
        if (windowText(note).contains("--")) found << windowText(note);
    }
    QVERIFY2(found.isEmpty(), qPrintable(found.join('\n')));
  }
};

/// One start of the window with the settings of a folder: it shows its panels, is closed, and keeps its layout.
int oneStart() {
  Look look;
  look.apply(ThemeChoice::light);
  Options options;
  options.model = "elman";
  options.given["--task"] = "noise";
  options.given["--length"] = "40";
  options.layout = "Explore";  // all panels, at the first start too
  MainWindow window(&look, options);
  QString said;
  QObject::connect(window.session(), &SessionController::said, [](const QString&) {});
  window.show();
  said = window.statusLine()->sentence();
  const bool ran = QTest::qWaitFor([&] { return !window.session()->running() && window.session()->trace(); }, patience);
  const auto shown = std::ranges::count_if(window.area()->docks(), [](const PanelDock* dock) { return !dock->isHidden(); });
  window.close();
  std::printf("%s\n", qPrintable(said));
  return ran && shown == std::ssize(panels()) ? 0 : 3;
}

int main(int argc, char** argv) {
  const test::TestApplication application(argc, argv, "session-test", qEnvironmentVariable("RECLAB_ONE_START"));
  if (qEnvironmentVariableIsSet("RECLAB_ONE_START")) return oneStart();
  TestSession test;
  return QTest::qExec(&test, argc, argv);
}

#include "test_session.moc"
