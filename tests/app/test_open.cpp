// SPDX-License-Identifier: GPL-3.0-or-later
// Files that a hand opens: sequences, weights and states, dropped or chosen, and what the screen shows where they do not fit.
#include <QApplication>
#include <QClipboard>
#include <QComboBox>
#include <QDir>
#include <QDropEvent>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QMimeData>
#include <QPushButton>
#include <QSettings>
#include <QSignalSpy>
#include <QStandardPaths>
#include <QTest>
#include <QToolButton>
#include <QTreeWidget>
#include <algorithm>
#include <cmath>
#include <map>

#include "files/npz.h"
#include "gui/docks/panel_area.h"
#include "gui/literature/models_view.h"
#include "gui/session/files.h"
#include "gui/views/first_hint.h"
#include "gui/views/inspector_view.h"
#include "gui/views/scrubber.h"
#include "gui/views/sequence_view.h"
#include "gui/views/status_line.h"
#include "gui/views/whole_box.h"
#include "gui/window/main_window.h"
#include "panels/steps/steps_panel.h"
#include "panels/timing/timing.h"
#include "places.h"
#include "plot/plot.h"
#include "safetensors.h"
#include "window_test.h"

using namespace reclab;
using test::patience;

class TestOpen : public test::WindowTest {
  Q_OBJECT

 private:
  /// A desk that is soon idle.
  void open(const Options& options) {
    WindowTest::open(options);
    session().setTimingPatience(std::chrono::milliseconds(300), std::chrono::milliseconds(0));
  }
  void drop(const QString& file) {
    QMimeData data;
    data.setUrls({QUrl::fromLocalFile(file)});
    drop(data);
  }
  void drop(const QMimeData& data) { drop(data, window_.get()); }
  void drop(const QMimeData& data, QWidget* on) {
    const QPoint at = on->rect().center();
    QDragEnterEvent enter(at, Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
    QApplication::sendEvent(on, &enter);
    QVERIFY(enter.isAccepted());
    QDropEvent event(at, Qt::CopyAction, &data, Qt::LeftButton, Qt::NoModifier);
    QApplication::sendEvent(on, &event);
  }

 private slots:
  void init() {
    test::forgetAll();
    open(onWaves(200));
  }
  void cleanup() { close(); }

  void everyPresetLooksAtWhatThereIs() {
    const auto& presets = session().library()->presets.presets();
    QVERIFY(presets.size() > 20);
    QCOMPARE(problemsOfPlaces(presets), QStringList());
  }

  void theTreeHasEveryPresetUnderItsFamily() {
    const auto& presets = session().library()->presets.presets();
    std::map<std::string, const QTreeWidgetItem*> heading;
    for (const Preset& preset : presets) {
      const QTreeWidgetItem* item = window_->models()->itemOf(QString::fromStdString(preset.id));
      QVERIFY2(item != nullptr && item->parent() != nullptr, preset.id.c_str());
      const auto first = heading.emplace(preset.family, item->parent()).first;
      QVERIFY2(first->second == item->parent(), preset.id.c_str());
    }
    int leaves = 0;
    for (const auto& [family, item] : heading) leaves += item->childCount();
    QCOMPARE(leaves, static_cast<int>(presets.size()));
  }

  void aPresetThatLooksAtNoPanelIsToldAtTheStartAndOpens() {
    close();
    const QString text = R"({"schema": 1, "id": "mine", "architecture": "gru", "title": "Mine", "family": "gated", "idea": "An idea.",
                             "look_at": ["gatting", "gating"], "source": {"authors": "A", "year": 1997, "title": "T"}})";
    const QString file = written("mine.json", text.toUtf8());
    qputenv("RECLAB_PRESETS", QFileInfo(file).path().toUtf8());
    Options options;
    options.model = "mine";
    options.given["--task"] = "noise";
    options.given["--length"] = "30";
    QStringList told;
    window_ = std::make_unique<MainWindow>(&look_, options);
    connect(window_->session(), &SessionController::said, this, [&](const QString& sentence) { told << sentence; });
    window_->show();
    QVERIFY(settle());
    qunsetenv("RECLAB_PRESETS");
    QVERIFY(QFile::remove(file));
    QCOMPARE(session().trace()->info.preset, std::string("mine"));
    QCOMPARE(told.filter("look_at").size(), 1);
    QVERIFY2(told.filter("look_at")[0].startsWith(file + ": look_at names no panel: \"gatting\"; the panels are "),
             qPrintable(told.join(" / ")));
  }

  void aDroppedFileRuns() {
    drop(written("waves.csv", test::twoWaves(150)));
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().trace()->info.input_name == "waves.csv", patience);
    QCOMPARE(session().trace()->info.length, std::int64_t(150));
    QCOMPARE(session().trace()->input_names, (std::vector<std::string>{"slow", "fast"}));
    QCOMPARE(window_->time()->length(), std::int64_t(150));
    QVERIFY(window_->banner()->sentence().isEmpty());
    // One of its columns alone.
    const auto columns = window_->sequenceView()->columnsButton()->menu()->actions();
    QCOMPARE(columns.size(), qsizetype(2));
    columns.front()->trigger();
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().trace()->input_names == std::vector<std::string>{"fast"}, patience);
    // And back to the start.
    window_->undoStack()->undo();
    window_->undoStack()->undo();
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().trace()->info.input_name == "start.csv", patience);
  }

  void theOpenActionAsksForAFile() {
    const QString file = written("chosen.csv", test::twoWaves(90));
    window_->setFileChooser({[&](QWidget*, const QString&, const QString&) { return file; }, {}, {}});
    QTest::keyClick(window_.get(), Qt::Key_O, Qt::ControlModifier);
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().trace()->info.input_name == "chosen.csv", patience);
  }

  void aBadFileLeavesTheScreenAsItWas() {
    const TracePtr before = session().trace();
    const auto sequence = session().setup().sequence;
    const int undoBefore = window_->undoStack()->count();
    const auto reasons = [&] {  // why a panel has nothing to show, which those out of sight may
      QStringList all;
      for (PanelDock* dock : window_->area()->docks()) all << dock->panel()->emptyReason();
      return all;
    };
    reasons();  // makes those that were not in sight, of which one reads what there is to choose; the timing begins by itself
    QTRY_VERIFY_WITH_TIMEOUT(!reasons().join(' ').contains("are being read"), patience);
    QTRY_VERIFY_WITH_TIMEOUT(window_->area()->dock("timing")->panel()->emptyReason().isEmpty(), patience);
    const QStringList reasonsBefore = reasons();
    QVERIFY(reasonsBefore.contains(QString()));
    for (const auto& [name, text] :
         {std::pair<const char*, QByteArray>{"ragged.csv", "t,v\n1,2\n3\n"}, {"words.csv", "t,v\n1,two\n2,3\n"}, {"empty.csv", ""}}) {
      drop(written(name, text));
      QTRY_VERIFY2_WITH_TIMEOUT(window_->banner()->sentence().contains(name), name, patience);
      QVERIFY(window_->banner()->isVisible());
      QVERIFY(window_->statusLine()->sentence().contains(name));
      QCOMPARE(session().setup().sequence, sequence);
      QCOMPARE(session().trace()->info.input_name, before->info.input_name);
      QCOMPARE(window_->undoStack()->count(), undoBefore);
      QVERIFY(QApplication::activeModalWidget() == nullptr);
    }
    QCOMPARE(reasons(), reasonsBefore);
  }

  void aFileWithMissingCellsIsReadAsIsChosen() {
    const TracePtr before = session().trace();
    QComboBox* box = window_->sequenceView()->missingBox();
    QVERIFY(!box->isEnabled() && box->currentIndex() < 0);
    QVERIFY2(box->toolTip().contains("no missing cell"), qPrintable(box->toolTip()));
    drop(written("gaps.csv", "t,a,b\n0,1,10\n1,2,NA\n2,,30\n3,4,40\n4,5,50\n5,7,\n"));
    QTRY_VERIFY_WITH_TIMEOUT(window_->banner()->sentence().contains("gaps.csv"), patience);
    const QString sentence = window_->banner()->sentence();
    QVERIFY2(
        sentence.contains("line 3, column 3 (b)") && sentence.contains("choose what becomes of missing cells") && !sentence.contains("--"),
        qPrintable(sentence));
    QCOMPARE(window_->banner()->offers(), (QStringList{"Leave rows out", "Hold the last value", "Interpolate", "Hold and mark"}));
    QCOMPARE(session().trace()->info.input_name, before->info.input_name);
    // The offer reads it.
    QTest::mouseClick(window_->banner()->findChild<QPushButton*>("offer.2"), Qt::LeftButton);
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().trace()->info.input_name == "gaps.csv", patience);
    QVERIFY(window_->banner()->sentence().isEmpty());
    const auto input = [this] { return *session().setup().sequence; };
    QVERIFY(input().choice.load.missing == Missing::interpolate && input().sequence.length == 6);
    QVERIFY(box->isEnabled());
    QCOMPARE(box->currentText(), QString("interpolate"));
    const auto said = [this] {
      QString all;
      for (const QLabel* one : window_->sequenceView()->findChildren<QLabel*>()) all += one->text() + '\n';
      return all;
    };
    QVERIFY2(said().contains("3 of 12 cells missing, interpolated"), qPrintable(said()));
    QVERIFY(std::ranges::any_of(session().trace()->info.notes, [](const Sentence& note) {
      return note.terminal_text().starts_with("3 of the 12 cells of the input were missing, in a and b");
    }));
    QVERIFY(session().trace()->info.command.find("--missing interpolate") != std::string::npos);
    // The box changes it, and undo takes that back.
    box->setFocus();
    QTest::keyClick(box, Qt::Key_Down);
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().trace()->input_names == (std::vector<std::string>{"a", "b", "a known", "b known"}),
                             patience);
    QCOMPARE(box->currentText(), QString("hold and mark"));
    QCOMPARE(window_->sequenceView()->columnsButton()->text(), QString("a, b"));
    QTest::keyClick(box, Qt::Key_Home);
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().trace()->info.length == 3, patience);
    QVERIFY2(said().contains("3 rows left out"), qPrintable(said()));
    window_->undoStack()->undo();
    window_->undoStack()->undo();
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && box->currentText() == "interpolate" && session().trace()->info.length == 6, patience);
    // A target may be chosen among its columns, and all of them stay in the lists.
    QComboBox* target = window_->sequenceView()->targetBox();
    QCOMPARE(target->count(), 4);  // none, next value, a, b
    target->setFocus();
    QTest::keyClick(target, Qt::Key_End);
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().trace()->input_names == std::vector<std::string>{"a"}, patience);
    QVERIFY2(said().contains("2 steps without a target"), qPrintable(said()));
    QCOMPARE(window_->sequenceView()->columnsButton()->menu()->actions().size(), qsizetype(2));
    // The next start has it again.
    close();
    open({});
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().trace()->info.input_name == "gaps.csv", patience);
    QVERIFY(input().choice.load.missing == Missing::interpolate);
    QCOMPARE(window_->sequenceView()->missingBox()->currentText(), QString("interpolate"));
  }

  void aTimeThatIsMissingIsOfferedToBeLeftOutAlone() {
    drop(written("timed.csv", "time,a\n1,5\n,6\n3,7\n4,8\n"));
    QTRY_VERIFY_WITH_TIMEOUT(window_->banner()->sentence().contains("timed.csv"), patience);
    QCOMPARE(window_->banner()->offers(), QStringList{"Leave rows out"});
    QTest::mouseClick(window_->banner()->findChild<QPushButton*>("offer.0"), Qt::LeftButton);
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().trace()->info.length == 3, patience);
    QCOMPARE(session().trace()->time, (std::vector<double>{1, 3, 4}));
  }

  void aFileThatLostCellsIsOfferedAtTheNextStart() {
    const QString file = written("later.csv", "a,b\n1,2\n3,4\n5,6\n");
    drop(file);
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().trace()->info.input_name == "later.csv", patience);
    close();
    written("later.csv", "a,b\n1,2\n,4\n5,6\n");
    open({});
    QTRY_VERIFY_WITH_TIMEOUT(window_->banner()->sentence().contains("later.csv") && window_->banner()->offers().size() == 4, patience);
    QVERIFY(session().trace()->info.input_name != "later.csv");
    QTest::mouseClick(window_->banner()->findChild<QPushButton*>("offer.1"), Qt::LeftButton);
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().trace()->info.input_name == "later.csv", patience);
    QCOMPARE(session().setup().sequence->sequence.input.size(), std::size_t{6});
    QCOMPARE(window_->sequenceView()->missingBox()->currentText(), QString("hold the last value"));
  }

  void weightsOfOnesOwnRun() {
    const QString mine = folder_.filePath("mine.npz"), other = folder_.filePath("other.bin");
    const auto output = [&] { return *session().trace()->find("output")->real; };
    const auto fact = [&](const QString& text) { return window_->statusLine()->facts().contains(text); };
    const auto drawn = output();
    window_->setFileChooser(
        {[&](QWidget*, const QString&, const QString&) { return mine; },
         [&](QWidget*, const QString&, const QString& name, const QString&) { return name == "lstm-weights.npz" ? mine : QString(); },
         {}});
    QSignalSpy saved(&session(), &SessionController::saved);
    window_->action("saveWeights")->trigger();
    QVERIFY(saved.wait(patience));
    QVERIFY(window_->statusLine()->sentence().contains("mine.npz"));
    QVERIFY(fact("seed 1") && !window_->action("forget")->isEnabled());

    window_->inspector()->seedBox()->setValue(5);
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && fact("seed 5"), patience);
    const auto five = output();
    QVERIFY(five != drawn);
    window_->action("weights")->trigger();
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && fact("weights mine.npz"), patience);
    QVERIFY(output() == drawn && !fact("seed"));
    QVERIFY(window_->banner()->sentence().isEmpty());
    // One thing to undo, and to do again.
    QTest::keyClick(window_.get(), Qt::Key_Z, Qt::ControlModifier);
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && fact("seed 5") && output() == five, patience);
    QTest::keyClick(window_.get(), Qt::Key_Y, Qt::ControlModifier);
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && fact("weights mine.npz") && output() == drawn, patience);
    QVERIFY(window_->action("forget")->isEnabled());
    window_->action("forget")->trigger();
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && fact("seed 5") && output() == five, patience);
    // Dropped, of the other kind, under a name that says nothing.
    test::npz_to_safetensors(mine.toStdString(), "param/", other.toStdString());
    drop(other);
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && fact("weights other.bin") && output() == drawn, patience);
    // They are this model's; another one has its own, and they are still there on the way back.
    clickModel("gru");
    QVERIFY(fact("seed 5"));
    clickModel("lstm");
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && fact("weights other.bin") && output() == drawn, patience);
    // From the command line too.
    window_->close();
    Options options = onWaves(200);
    options.model = "lstm";
    options.given["--weights"] = mine.toStdString();
    open(options);
    QTRY_VERIFY_WITH_TIMEOUT(fact("weights mine.npz"), patience);
    QVERIFY(output() == drawn);
  }

  void aRunBeginsWhereAnotherEnded() {
    const QString file = folder_.filePath("end.npz");
    window_->setFileChooser({[&](QWidget*, const QString&, const QString&) { return file; },
                             [&](QWidget*, const QString&, const QString&, const QString&) { return file; },
                             {}});
    const auto output = [&] { return *session().trace()->find("output")->real; };
    const auto begun = [&] { return window_->statusLine()->facts().contains("begun from end.npz"); };
    const auto before = output();
    QSignalSpy saved(&session(), &SessionController::saved);
    window_->action("saveState")->trigger();
    QVERIFY(saved.wait(patience));
    const NpzFile end(file.toStdString());
    QVERIFY(end.has("state/0/h") && end.has("state/0/c"));
    window_->action("state")->trigger();
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && begun(), patience);
    const auto after = output();
    QVERIFY(after != before);
    window_->undoStack()->undo();
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && !begun() && output() == before, patience);
    drop(file);  // told from weights by what is in it
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && begun() && output() == after, patience);
    // What the export of this run says, reclab can repeat.
    const QString out = folder_.filePath("begun");
    window_->setFileChooser({{}, {}, [&](QWidget*, const QString&, const QString&) { return out; }});
    QSignalSpy exported(&session(), &SessionController::exported);
    window_->action("exportRun")->trigger();
    QVERIFY(exported.wait(patience));
    QVERIFY(NpzFile(QDir(out).filePath("trace.npz").toStdString()).read("output").real == after);
    QVERIFY(session().trace()->info.command.find("--state " + file.toStdString()) != std::string::npos);
  }

  /// Weights as PyTorch saves them (tests/oracle/pytorch_files.py), by the dialog and what it offers; the outputs are PyTorch's.
  void weightsOfPyTorchRunByTheDialog() {
    const QString golden = QString::fromStdString(test::source("tests/oracle/golden/pytorch/commands/"));
    const std::vector<std::tuple<QString, QString, QStringList>> cases{
        {"lstm-module", "lstm", {"Take its sizes: width 5"}},
        {"gru-cell", "gru", {"Take its sizes: width 5"}},
        {"lstm-head", "lstm", {"Take its sizes: width 5"}},
        {"cell-beside-convolutions", "lstm", {"Take its part decoder.rnn", "Take its sizes: width 5"}},
        {"encoder-and-decoder", "gru", {"Choose a part…", "decoder", "Take its sizes: width 4"}}};
    for (const auto& [file, model, offers] : cases) {
      const NpzFile expected((golden + file + ".npz").toStdString());
      const NpyArray input = expected.read("input");
      QByteArray text = "x0,x1,x2";
      for (std::size_t i = 0; i < input.real.size(); ++i) text += (i % 3 ? "," : "\n") + QByteArray::number(input.real[i], 'g', 17);
      close();
      Options options;
      options.model = model;
      options.given["--input"] = (written(file + ".csv", text + "\n")).toStdString();
      options.given["--set"] = "input_scale=1";
      open(options);
      SequenceChoice choice = session().setup().sequence->choice;
      choice.load.standardise = false;
      session().loadSequence(choice);
      QTRY_VERIFY_WITH_TIMEOUT(atRest() && *session().trace()->find("input")->real == input.real, patience);
      window_->setFileChooser({[&](QWidget*, const QString&, const QString&) { return golden + file + ".safetensors"; }, {}, {}});
      window_->action("weights")->trigger();
      for (const QString& offer : offers) {
        if (offer == "decoder") {
          QMenu* menu = nullptr;
          QTRY_VERIFY_WITH_TIMEOUT((menu = window_->findChild<QMenu*>("parts")) != nullptr, patience);
          QCOMPARE(menu->actions().size(), qsizetype(2));
          QCOMPARE(menu->actions()[0]->text(), offer);
          menu->actions()[0]->trigger();
          menu->close();
          continue;
        }
        auto* button = window_->banner()->findChild<QPushButton*>();
        QTRY_VERIFY2_WITH_TIMEOUT(button->isVisible() && button->text() == offer,
                                  qPrintable(window_->banner()->sentence() + " / " + button->text()), patience);
        QTest::mouseClick(button, Qt::LeftButton);
      }
      QTRY_VERIFY_WITH_TIMEOUT(atRest() && !session().trace()->info.weights.empty(), patience);
      const std::vector<double> found = *session().trace()->find("output")->real, wanted = expected.read("output").real;
      QCOMPARE(found.size(), wanted.size());
      for (std::size_t i = 0; i < found.size(); ++i) QVERIFY2(std::abs(found[i] - wanted[i]) < 1e-12, qPrintable(file));
    }
  }

  void aFileThatDoesNotFitLeavesTheScreenAsItWas() {
    const auto before = session().trace()->find("output")->real;
    const QString facts = window_->statusLine()->facts(), mine = folder_.filePath("fits.npz"), end = folder_.filePath("fits-state.npz");
    QString next = mine;
    window_->setFileChooser({[&](QWidget*, const QString&, const QString&) { return next; },
                             [&](QWidget*, const QString&, const QString&, const QString&) { return next; },
                             {}});
    QSignalSpy saved(&session(), &SessionController::saved);
    window_->action("saveWeights")->trigger();
    QVERIFY(saved.wait(patience));
    next = end;
    window_->action("saveState")->trigger();
    QVERIFY(saved.wait(patience));
    QFile file(mine);
    QVERIFY(file.open(QIODevice::ReadOnly));
    const QByteArray whole = file.readAll();
    const int undoBefore = window_->undoStack()->count();
    const auto stays = [&](const QString& sentence) {
      QTRY_VERIFY2_WITH_TIMEOUT(window_->banner()->sentence().contains(sentence),
                                qPrintable(sentence + " is not in " + window_->banner()->sentence()), patience);
      QVERIFY(window_->banner()->isVisible() && window_->statusLine()->sentence().contains(sentence));
      QVERIFY(!session().running() && session().trace()->find("output")->real == before);
      QVERIFY(session().setup().weights.empty() && session().setup().states.empty());
      QCOMPARE(window_->statusLine()->facts(), facts);
      QCOMPARE(window_->undoStack()->count(), undoBefore);
      QVERIFY(QApplication::activeModalWidget() == nullptr);
    };
    drop(written("half.npz", whole.left(whole.size() / 2)));
    stays("half.npz is not a whole NPZ archive");
    drop(written("long.safetensors", QByteArray("\xff\x00\x00\x00\x00\x00\x00\x00{}", 10)));
    stays("long.safetensors is cut short: its header has 255 bytes and 2 follow");
    next = written("text.npz", "hello");
    window_->action("weights")->trigger();
    stays("text.npz is not an NPZ archive");
    next = mine;
    window_->action("state")->trigger();  // weights as a state
    stays("the state state/0/");
    next = folder_.filePath("nowhere.npz");
    window_->action("state")->trigger();
    stays("nowhere.npz");
    window_->setFileChooser(
        {{}, [](QWidget*, const QString&, const QString&, const QString&) { return QString("/proc/nowhere.npz"); }, {}});
    window_->action("saveWeights")->trigger();
    stays("/proc/nowhere.npz");
    // Weights of another size: entry, both shapes and the cure.
    window_->inspector()->slider("width")->setValue(0);
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().trace()->find("param/0/weight_ih")->shape.front() == 4, patience);
    const auto narrow = session().trace()->find("output")->real;
    drop(mine);
    QTRY_VERIFY_WITH_TIMEOUT(window_->banner()->sentence().contains("the entry 0/weight_ih has shape [128, 2] where the model has [4, 2]"),
                             patience);
    QVERIFY(window_->banner()->sentence().contains("the weights were made for width = 32"));
    QVERIFY(session().trace()->find("output")->real == narrow && session().setup().weights.empty());
    // The banner takes them from the file, in one step that can be undone.
    auto* offer = window_->banner()->findChild<QPushButton*>();
    QVERIFY(offer && offer->isVisible());
    QCOMPARE(offer->text(), QString("Take its sizes: width 32"));
    const int steps = window_->undoStack()->count();
    QTest::mouseClick(offer, Qt::LeftButton);
    QTRY_VERIFY_WITH_TIMEOUT(
        atRest() && window_->statusLine()->facts().contains("weights fits.npz") && *session().trace()->find("output")->real == *before,
        patience);
    QVERIFY(window_->banner()->isHidden());
    QCOMPARE(window_->undoStack()->count(), steps + 1);
    window_->undoStack()->undo();
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && *session().trace()->find("output")->real == *narrow, patience);
  }

  void aPastedTableIsASequence() {
    window_->scrubber()->strip()->setFocus();
    const int steps = window_->undoStack()->count();
    QByteArray rows = test::twoWaves(70).replace(',', '\t');  // as a spreadsheet copies it
    QApplication::clipboard()->setText(QString::fromUtf8(rows));
    QTest::keyClick(window_.get(), Qt::Key_V, Qt::ControlModifier);
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().trace()->info.length == 70, patience);
    QCOMPARE(session().trace()->input_names, (std::vector<std::string>{"slow", "fast"}));
    QCOMPARE(window_->undoStack()->count(), steps + 1);
    window_->undoStack()->undo();
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().trace()->info.input_name == "start.csv", patience);
    window_->undoStack()->redo();
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().trace()->info.length == 70, patience);
    // The next start has it again.
    close();
    open({});
    QCOMPARE(session().setup().sequence->sequence.length, std::int64_t{70});
    // In a field it is the field's.
    QLineEdit* search = window_->models()->searchField();
    search->setFocus();
    QApplication::clipboard()->setText("1,2\n3,4\n");
    QTest::keyClick(search, Qt::Key_V, Qt::ControlModifier);
    QVERIFY(search->text().startsWith("1,2"));
    QCOMPARE(session().setup().sequence->sequence.length, std::int64_t{70});
  }

  void whatCannotBePastedSaysWhy() {
    const auto before = session().setup().sequence;
    window_->scrubber()->strip()->setFocus();
    for (const char* text : {"", "   \n", "dear all,\nthese are words\n"}) {
      window_->banner()->hide();
      window_->banner()->show("");
      QApplication::clipboard()->setText(text);
      window_->action("paste")->trigger();
      QTRY_VERIFY2_WITH_TIMEOUT(!window_->banner()->sentence().isEmpty(), text, patience);
    }
    QCOMPARE(session().setup().sequence, before);
  }

  void whatIsDroppedOnAFieldOrAFloatingPanelIsOpened() {
    const auto dropOn = [&](QWidget* on, const char* name) {
      QMimeData data;
      data.setUrls({QUrl::fromLocalFile(written(name, test::twoWaves(80)))});
      data.setText(data.urls().front().toString());  // as a file manager has it
      drop(data, on);
      QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().trace()->info.input_name == name, patience);
    };
    dropOn(window_->models()->searchField(), "onfield.csv");
    QVERIFY(window_->models()->searchField()->text().isEmpty());
    PanelDock* dock = window_->area()->dock("gradients");
    window_->area()->open(dock);
    dock->setFloating(true);
    QVERIFY(QTest::qWaitForWindowExposed(dock));
    dropOn(dock->panel(), "onpanel.csv");
    dock->setFloating(false);
  }

  void aDroppedPresetIsShownAndKeptWhereAsked() {
    const QByteArray mine =
        R"({"schema": 1, "id": "mine", "architecture": "gru", "title": "Mine <b>bold</b>", "family": "gated", "idea": "An idea.",
            "hyper": {"width": 5}, "source": {"authors": "A", "year": 1997, "title": "T"}})";
    const std::size_t models = session().library()->presets.presets().size();
    drop(written("mine.json", mine));
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().trace()->info.preset == "mine", patience);
    QCOMPARE(hyperOf(session().trace(), "width"), QString("5"));
    QCOMPARE(session().library()->presets.presets().size(), models + 1);
    QVERIFY(window_->models()->itemOf("mine") != nullptr);
    QCOMPARE(window_->banner()->offers(), QStringList("Keep it"));
    window_->undoStack()->undo();
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().setup().preset == "lstm", patience);
    window_->undoStack()->redo();
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().setup().preset == "mine", patience);
    // A second one of that id, and a file that is no preset, are said, and change nothing.
    drop(written("other.json", mine));
    QTRY_VERIFY2_WITH_TIMEOUT(window_->banner()->sentence().contains("is taken by"), qPrintable(window_->banner()->sentence()), patience);
    drop(written("wrong.json", "[1, 2]"));
    QTRY_VERIFY2_WITH_TIMEOUT(window_->banner()->sentence().contains("wrong.json"), qPrintable(window_->banner()->sentence()), patience);
    QCOMPARE(session().setup().preset, std::string("mine"));
    drop(folder_.filePath("mine.json"));
    QTRY_COMPARE_WITH_TIMEOUT(window_->banner()->offers(), QStringList("Keep it"), patience);
    for (auto* button : window_->banner()->findChildren<QPushButton*>())
      if (button->text() == "Keep it") button->click();
    const QString kept = QStandardPaths::writableLocation(QStandardPaths::GenericDataLocation) + "/recurrence-lab/presets/mine.json";
    QVERIFY2(QFile::exists(kept), qPrintable(kept));
    QVERIFY(QFile::remove(folder_.filePath("mine.json")));
    close();
    open({});
    QCOMPARE(session().setup().preset, std::string("mine"));
    QVERIFY(QFile::remove(kept));
  }

  void anExportedRunIsShownAgain() {
    drop(written("o'clock & waves.csv", test::twoWaves(60)));  // its name is quoted in the command
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().trace()->info.length == 60, patience);
    Setup setup = session().setup();
    setup.preset = "gru";
    setup.setValue("width", "6");
    setup.seed = 5;
    session().apply(setup, false);
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().trace()->info.preset == "gru", patience);
    const double loss = session().trace()->info.loss_value;
    const QString folder = folder_.filePath("a run");
    QSignalSpy done(&session(), &SessionController::exported);
    session().exportRun(folder, false);
    QTRY_COMPARE_WITH_TIMEOUT(done.size(), 1, patience);
    clickModel("lstm");
    session().loadSequence({.task = "noise"});
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().setup().sequence->choice.task == "noise", patience);
    drop(folder);
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().trace()->info.preset == "gru" && session().trace()->info.seed == 5, patience);
    QCOMPARE(hyperOf(session().trace(), "width"), QString("6"));
    QCOMPARE(session().trace()->info.loss_value, loss);
    QCOMPARE(session().trace()->info.input_name, std::string("o'clock & waves.csv"));
    window_->undoStack()->undo();
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().setup().preset == "lstm", patience);
    drop(folder + "/manifest.json");
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().trace()->info.preset == "gru", patience);
    // A folder of anything else, and a file of another machine, are refused with a sentence.
    QVERIFY(QDir(folder_.path()).mkpath("plain"));
    drop(folder_.filePath("plain"));
    QVERIFY2(window_->banner()->sentence().contains("none of an exported run"), qPrintable(window_->banner()->sentence()));
    QMimeData far;
    far.setUrls({QUrl("https://example.org/a.csv")});
    drop(far);
    QVERIFY(window_->banner()->sentence().contains("https://example.org/a.csv is not a file of this computer"));
  }

  void anExportedTrainingIsShownWithItsWeights() {
    SequenceChoice task;
    task.task = "adding";
    task.make.length = 20;
    session().loadSequence(task);
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().setup().sequence->choice.task == "adding", patience);
    TrainingChoice choice;
    choice.options.batch = 2;
    session().setTrainingChoice(choice);
    session().train({}, 3);
    QTRY_VERIFY_WITH_TIMEOUT(session().learning() && !session().training() && session().setup().learnedWeights() && atRest(), patience);
    QTRY_VERIFY_WITH_TIMEOUT(session().setup().learnedWeights()->step == 3 && atRest(), patience);
    const double loss = session().trace()->info.loss_value;
    const QString folder = folder_.filePath("training");
    session().exportTraining(folder);
    QTRY_VERIFY_WITH_TIMEOUT(QFile::exists(folder + "/training.json"), patience);
    clickModel("gru");
    drop(folder);
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().trace()->info.preset == "lstm", patience);
    QVERIFY(session().trace()->info.weights.ends_with("weights.safetensors"));
    QVERIFY2(std::abs(session().trace()->info.loss_value - loss) < 1e-9 * std::max(1.0, loss),
             qPrintable(QString("%1 and %2").arg(session().trace()->info.loss_value).arg(loss)));
  }

  void samplesAndFilesOpenedBeforeAreOneClickAway() {
    QVERIFY(window_->hint()->isVisible());
    QToolButton* data = nullptr;
    for (auto* button : window_->hint()->findChildren<QToolButton*>())
      if (button->menu() != nullptr) data = button;
    QVERIFY(data != nullptr);
    emit data->menu()->aboutToShow();
    const auto named = [&](const QString& text) -> QAction* {
      for (QAction* action : data->menu()->actions())
        if (action->text() == text) return action;
      return nullptr;
    };
    QVERIFY(named("sunspots.csv") != nullptr && named("ecg.npy") != nullptr && named("Paste a table") != nullptr);
    named("ecg.npy")->trigger();
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().trace()->info.input_name == "ecg.npy", patience);
    emit data->menu()->aboutToShow();
    QVERIFY(named("Opened before") == nullptr);  // a sample stands among the samples alone
    drop(written("own.csv", "v\n1\n2\n3\n4\n"));
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().trace()->info.input_name == "own.csv", patience);
    emit data->menu()->aboutToShow();
    QVERIFY(named("Opened before") != nullptr && named("own.csv") != nullptr);
  }
};

int main(int argc, char** argv) { return test::runWindowTest<TestOpen>(argc, argv, "window-test"); }

#include "test_open.moc"
