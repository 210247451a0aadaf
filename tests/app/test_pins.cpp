// SPDX-License-Identifier: GPL-3.0-or-later
// Runs that are pinned for comparison: what they are called, on which input they are, and that every panel has them.
#include <QDialog>
#include <QDir>
#include <QFileInfo>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QSignalSpy>
#include <QToolButton>
#include <QUndoStack>

#include "gui/comparing/compare_dialog.h"
#include "gui/docks/panel_area.h"
#include "gui/session/pins.h"
#include "gui/session/run_names.h"
#include "gui/views/inspector_view.h"
#include "gui/views/pin_chip.h"
#include "gui/views/scrubber.h"
#include "gui/views/sequence_view.h"
#include "gui/views/status_line.h"
#include "gui/views/whole_box.h"
#include "panels/gradients/gradients.h"
#include "places.h"
#include "window_test.h"

using namespace reclab;
using test::patience;

namespace {

RunInfo runOf(const char* model, double rho, int width = 32, std::uint64_t seed = 1) {
  RunInfo run;
  run.title = model;
  run.hyper = {{"width", std::to_string(width)}};
  if (rho >= 0) run.hyper.emplace_back("spectral_radius", QString::number(rho).toStdString());
  run.seed = seed;
  run.dtype = "float64";
  run.device = "cpu";
  run.form = "sequential";
  run.input_name = "noise";
  run.loss = "last: L = 1/2 |y_T|^2";
  return run;
}

}  // namespace

class TestPins : public test::WindowTest {
  Q_OBJECT

 private:
  const std::vector<Pin>& pins() { return window_->pins()->pins(); }
  std::vector<PinChip*> chips() {
    std::vector<PinChip*> all;
    for (PinChip* one : window_->findChildren<PinChip*>())
      if (one->isVisible()) all.push_back(one);
    return all;
  }
  void open(const QString& model = "elman") {
    Options options = onWaves();
    options.model = model;
    WindowTest::open(options);
  }
  void set(const char* key, const char* value) {
    emit window_->inspector()->edited(key, value, false, 0);
    QVERIFY(settle());
  }
  bool pinsAtRest() {
    return QTest::qWaitFor(
        [this] {
          return !window_->pins()->running() &&
                 std::all_of(pins().begin(), pins().end(), [](const Pin& one) { return one.comparable || !one.problem.isEmpty(); });
        },
        3 * patience);  // their threads give way to those of all other programs
  }

 private slots:
  void cleanup() { close(); }

  void aNameIsWhatDiffers() {
    const auto symbol = [](const std::string& key) { return std::string(key == "spectral_radius" ? "ρ" : ""); };
    const auto facets = [&](const RunInfo& run) { return facetsOf(run, symbol); };
    const Facets shown = facets(runOf("Elman network", 0.95));
    const auto names = [&](const std::vector<RunInfo>& runs) {
      std::vector<Facets> all;
      for (const RunInfo& run : runs) all.push_back(facets(run));
      return runNames(shown, all);
    };
    QCOMPARE(names({runOf("Elman network", 0.7)}), QStringList{"ρ = 0.7"});
    QCOMPARE(names({runOf("GRU", -1)}), QStringList{"GRU"});
    QCOMPARE(names({runOf("Elman network", 0.95, 32, 3)}), QStringList{"seed 3"});
    RunInfo single = runOf("Elman network", 0.95);
    single.dtype = "float32";
    QCOMPARE(names({single}), QStringList{"float32"});
    // A model is told before its settings, which are of another model anyway.
    QCOMPARE(names({runOf("GRU", -1, 64, 5)}), QStringList{"GRU"});
    // Two of one model are told from each other too, and from the one that is shown by as little as it takes.
    QCOMPARE(names({runOf("GRU", -1), runOf("GRU", -1, 64)}), (QStringList{"GRU, width 32", "GRU, width 64"}));
    QCOMPARE(names({runOf("Elman network", 0.7), runOf("Elman network", 0.9), runOf("GRU", -1)}),
             (QStringList{"ρ = 0.7", "ρ = 0.9", "GRU"}));
    QCOMPARE(names({runOf("Elman network", 0.7), runOf("Elman network", 0.7, 64)}), (QStringList{"width 32, ρ = 0.7", "width 64"}));
    QCOMPARE(names({runOf("Elman network", 0.95)}), QStringList{"Elman network"});  // nothing differs
    // What departs from a preset stays in the name, unless the run that is shown has the same value.
    const auto named = [&](const RunInfo& run) {
      const auto standard = [](const std::string& key) {
        return std::string(key == "width" ? "32" : key == "spectral_radius" ? "0.95" : key == "forget_bias" ? "1" : "");
      };
      return runNames(shown, {facetsOf(run, symbol, standard)}).front();
    };
    RunInfo lstm = runOf("LSTM", -1);
    lstm.hyper.emplace_back("forget_bias", "1");
    QCOMPARE(named(lstm), QString("LSTM"));
    lstm.hyper.back().second = "-4.3";
    QCOMPARE(named(lstm), QString("LSTM, forget bias -4.3"));
    QCOMPARE(named(runOf("Elman network", 0.7, 64)), QString("width 64, ρ = 0.7"));
    QCOMPARE(named(runOf("Elman network", 0.95)), QString("Elman network"));
    // The table has what differs and nothing else.
    const QString table = differenceTable({"a", "b"}, {shown, facets(runOf("Elman network", 0.7))}, {0.25, 0.5});
    QVERIFY(table.contains("spectral radius ρ") && table.contains("0.95") && table.contains("0.7") && table.contains("0.25"));
    QVERIFY(!table.contains("width") && !table.contains("seed"));
  }

  void namesFollowTheRunThatIsShown() {
    open();
    set("spectral_radius", "0.7");
    window_->action("pin")->trigger();
    QCOMPARE(pins().size(), std::size_t(1));
    set("spectral_radius", "0.9");
    QCOMPARE(pins()[0].name, QString("ρ = 0.7"));
    QCOMPARE(chips()[0]->text(), QString("ρ = 0.7"));
    window_->action("pin")->trigger();
    set("spectral_radius", "1.1");
    QCOMPARE(pins()[1].name, QString("ρ = 0.9"));
    clickModel("gru");
    QCOMPARE(pins()[0].name, QString("Elman network, ρ = 0.7"));
    QCOMPARE(pins()[1].name, QString("Elman network, ρ = 0.9"));
    // Without the second the first would be told by its model, but it is not the preset's Elman network.
    window_->pins()->remove(1);
    QCOMPARE(pins()[0].name, QString("Elman network, ρ = 0.7"));
  }

  void aRunIsPinnedOnce() {
    open();
    window_->action("pin")->trigger();
    window_->action("pin")->trigger();
    QCOMPARE(pins().size(), std::size_t(1));
    QVERIFY(window_->statusLine()->sentence().contains("pinned already"));
    // Also with what has been computed of it since.
    QVERIFY(window_->pins()
                ->add(session().shownSetup(), std::make_shared<const Trace>(*session().trace()), session().shownRecording())
                .contains("pinned already"));
  }

  void aChipIsRenamedByMouseAndByKeyboard() {
    open();
    window_->action("pin")->trigger();
    set("spectral_radius", "0.5");
    PinChip* chip = chips()[0];
    QTest::mouseDClick(chip, Qt::LeftButton, {}, {20, chip->height() / 2});
    QVERIFY(chip->editor()->isVisible() && chip->editor()->hasFocus());
    QTest::keyClick(chip->editor(), Qt::Key_A, Qt::ControlModifier);
    QTest::keyClicks(chip->editor(), "the old one");
    QTest::keyClick(chip->editor(), Qt::Key_Return);
    QVERIFY(!chip->editor()->isVisible());
    QCOMPARE(pins()[0].name, QString("the old one"));
    QVERIFY(QApplication::activeModalWidget() == nullptr);  // the key that ended the name opened no table
    set("spectral_radius", "0.4");
    QCOMPARE(pins()[0].name, QString("the old one"));  // the user's own stays
    // By keyboard; Escape gives it up and stops nothing.
    chip->setFocus();
    QTest::keyClick(chip, Qt::Key_F2);
    QTRY_VERIFY(chip->editor()->isVisible());
    QTest::keyClicks(chip->editor(), "x");
    QTest::keyClick(chip->editor(), Qt::Key_Escape);
    QVERIFY(!chip->editor()->isVisible());
    QCOMPARE(pins()[0].name, QString("the old one"));
    // An empty name is the automatic one again.
    QTest::keyClick(chip, Qt::Key_F2);
    chip->editor()->clear();
    QTest::keyClick(chip->editor(), Qt::Key_Return);
    QCOMPARE(pins()[0].name, QString("ρ = 0.95"));
    // What differs, in a table.
    chip->setFocus();
    QTest::keyClick(chip, Qt::Key_Return);
    auto* table = window_->findChild<CompareDialog*>("compare");
    QVERIFY(table != nullptr && table->isVisible());
    QVERIFY(table->csv().contains("spectral radius"));
    QTest::keyClick(table, Qt::Key_Escape);
    QTest::keyClick(chip, Qt::Key_Delete);
    QVERIFY(pins().empty());
  }

  void theKeyboardStaysWithTheRunsWhenOneIsUnpinned() {
    open("lstm");
    window_->action("pin")->trigger();
    set("forget_bias", "3");
    window_->action("pin")->trigger();
    set("forget_bias", "-1");
    QVERIFY(pinsAtRest());
    const auto shut = [this] {
      auto* cross = chips().front()->findChild<QToolButton*>();
      QTest::mouseClick(cross, Qt::LeftButton);
      QTest::qWait(50);
    };
    shut();
    QCOMPARE(chips().size(), std::size_t{1});
    QVERIFY(window_->focusWidget() == chips().front());
    shut();
    QVERIFY(chips().empty());
    QVERIFY2(window_->focusWidget() == window_->findChild<TimeStrip*>(),
             window_->focusWidget() ? window_->focusWidget()->metaObject()->className() : "nothing");
  }

  void twoPinsLeaveTheGradientsTheirPicture() {
    Options options = onWaves();
    options.model = "lstm";
    WindowTest::open(options, {1280, 800});
    window_->action("pin")->trigger();
    set("forget_bias", "3");
    window_->action("pin")->trigger();
    set("forget_bias", "-1");
    QVERIFY(pinsAtRest());
    PanelDock* dock = window_->area()->dock("gradients");
    dock->raise();
    QTRY_VERIFY(dock->inSight());
    QVERIFY(settle());
    auto* panel = panelOf<GradientsPanel>();
    for (const QSize& size : {QSize(1280, 800), QSize(1700, 1100)}) {
      window_->resize(size);
      QTest::qWait(200);
      panel->plot()->replot();
      photograph(window_.get(), QString("gradients-with-two-pins-%1").arg(size.width()));
      const double share = static_cast<double>(panel->rect()->outerRect().height()) / panel->plot()->height();
      QVERIFY2(share >= 0.55, qPrintable(QString("%1 of %2 pixels").arg(share).arg(panel->plot()->height())));
      const auto* verdict = panel->plot()->findChild<Paragraph*>();
      QVERIFY2(size.width() < 1700 || verdict->outerRect().height() >= verdict->lineHeight(),
               qPrintable(QString::number(verdict->outerRect().height())));  // in the small window the headline has it
    }
  }

  void everyPanelHasThePins() {
    open("lstm");
    set("forget_bias", "3");
    window_->action("pin")->trigger();
    set("forget_bias", "-1");
    QVERIFY(pinsAtRest());
    QCOMPARE(pins()[0].name, QString("forget bias 3"));
    QVERIFY(window_->pins()->runs().size() == 1);
    for (PanelDock* dock : window_->area()->docks()) {
      dock->raise();
      dock->catchUp();
      const QString id = dock->panel()->id();
      if (id == "timing" || id == "steps" || id == "composer" || id == "learning" || id == "credit")
        continue;  // of what was timed; of one run; of none; of trainings; of what was compared
      if (dock->answered() && !dock->panel()->emptyReason().isEmpty()) continue;  // the model has nothing of the kind
      // What is recorded for a panel in front alone comes now, of the pinned run too.
      QTRY_VERIFY2_WITH_TIMEOUT(dock->panel()->dataAsCsv().contains("forget bias 3"), qPrintable(id), 20'000);
    }
  }

  void pinsAreRunAgainOnAnotherInput() {
    open("lstm");
    window_->action("pin")->trigger();
    set("forget_bias", "-1");
    QVERIFY(pinsAtRest());
    const auto before = pins()[0].trace;
    QVERIFY(pins()[0].comparable);
    // No run is ever drawn beside one of another input.
    bool mixed = false;
    connect(&session(), &SessionController::traceChanged, this, [&](const TracePtr& shown) {
      for (const Panel::Run& run : window_->pins()->runs()) mixed = mixed || run.trace->info.length != shown->info.length;
    });
    connect(window_->pins(), &Pins::changed, this, [&] {
      for (const Panel::Run& run : window_->pins()->runs()) mixed = mixed || run.trace->info.length != session().trace()->info.length;
    });
    window_->openFile(written("longer.csv", test::twoWaves(250, 0.3)));
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().trace()->info.length == 250, patience);
    QVERIFY(pinsAtRest());
    QVERIFY(pins()[0].trace != before);
    QCOMPARE(pins()[0].trace->info.length, std::int64_t{250});
    QCOMPARE(pins()[0].trace->info.input_sha256, session().trace()->info.input_sha256);
    QVERIFY(!mixed);
    // And its numbers are those of a run of these settings on that input.
    const auto pinned = *pins()[0].trace->find("output")->real;
    set("forget_bias", "1");
    QCOMPARE(*session().trace()->find("output")->real, pinned);
    // Another way to read the same file is another input too.
    set("forget_bias", "-1");
    const auto menu = window_->sequenceView()->columnsButton()->menu()->actions();
    menu.front()->trigger();
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().trace()->input_names.size() == 1, patience);
    QVERIFY(pinsAtRest());
    QCOMPARE(pins()[0].trace->input_names.size(), std::size_t(1));
  }

  void aPinThatCannotRunOnAnInputSaysSo() {
    open("lstm");
    const QString weights = written("w.npz", {});
    window_->setFileChooser({[&](QWidget*, const QString&, const QString&) { return weights; },
                             [&](QWidget*, const QString&, const QString&, const QString&) { return weights; },
                             {}});
    QSignalSpy saved(&session(), &SessionController::saved);
    window_->action("saveWeights")->trigger();
    QVERIFY(saved.wait(patience));
    window_->action("weights")->trigger();
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && !session().trace()->info.weights.empty(), patience);
    window_->action("pin")->trigger();
    window_->action("forget")->trigger();
    QVERIFY(settle());
    QVERIFY(pinsAtRest() && pins()[0].comparable);
    // Weights for two inputs, on one.
    window_->sequenceView()->columnsButton()->menu()->actions().front()->trigger();
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().trace()->input_names.size() == 1, patience);
    QVERIFY(pinsAtRest());
    QVERIFY(!pins()[0].comparable);
    QVERIFY2(pins()[0].problem.contains("weight_ih"), qPrintable(pins()[0].problem));
    QVERIFY(window_->pins()->runs().empty());
    QVERIFY(chips()[0]->text().contains("not on this input"));
    // Back on its own it is there again.
    window_->undoStack()->undo();
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().trace()->input_names.size() == 2, patience);
    QVERIFY(pinsAtRest());
    QVERIFY(pins()[0].comparable);
  }

  void fivePinsAtBothSizesInBothThemes() {
    open("bidirectional-lstm");
    window_->resize(1600, 1000);
    for (const char* bias : {"3", "2", "0", "-1", "-2"}) {
      set("forget_bias", bias);
      window_->action("pin")->trigger();
    }
    set("forget_bias", "1");
    QVERIFY(pinsAtRest());
    window_->action("pin")->trigger();  // a sixth is refused in words
    QVERIFY(pins().size() == Pins::most && window_->statusLine()->sentence().contains("unpin one"));
    window_->banner()->hide();
    QStringList names;
    for (const Pin& pin : pins()) names << pin.name;
    QCOMPARE(names, (QStringList{"forget bias 3", "forget bias 2", "forget bias 0", "forget bias -1", "forget bias -2"}));
    const QDir shots(QDir(QString::fromStdString(test::built())).filePath("screenshots"));
    QVERIFY(QDir().mkpath(shots.path()));
    for (const auto& [name, choice] : {std::pair{"light", ThemeChoice::light}, {"dark", ThemeChoice::dark}}) {
      look_.apply(choice);
      for (const QSize& size : {QSize(1600, 1000), QSize(1280, 800)}) {
        window_->resize(size);
        window_->action("resetLayout")->trigger();
        QTest::qWait(400);
        QCOMPARE(chips().size(), Pins::most);
        for (const PinChip* chip : chips())
          QVERIFY(chip->visibleRegion().boundingRect().width() == chip->width());  // none behind the end of the bar
        QVERIFY(window_->grab().save(shots.filePath(QString("pins-%1-%2.png").arg(name).arg(size.width()))));
      }
    }
    look_.apply(ThemeChoice::light);
    // The figures name them all.
    const QString out = QFileInfo(written("here", {})).absolutePath() + "/figures";
    window_->setFileChooser({{}, {}, {}, [&](QWidget*, const FigureQuestion& question) -> std::optional<FigureAnswer> {
                               return FigureAnswer{out, {}, question.format, {}};
                             }});
    window_->action("figures.svg")->trigger();
    for (const char* id : {"gradients", "spectrum", "gating", "trajectories"}) {
      QFile file(QDir(out).filePath(QString::fromStdString(session().setup().preset) + '-' + id + ".svg"));
      QVERIFY(file.open(QIODevice::ReadOnly));
      const QString svg = QString::fromUtf8(file.readAll());
      for (const QString& one : names) QVERIFY2(svg.contains(one), qPrintable(QString(id) + " lacks " + one));
    }
  }

  /// What is pinned, unpinned and named is taken back and made again, with its name and colour, and runs again.
  void undoTakesBackWhatIsPinned() {
    open();
    window_->action("pin")->trigger();
    set("spectral_radius", "0.7");
    window_->action("pin")->trigger();
    set("spectral_radius", "1.2");
    emit chips()[1] -> renamed("the narrow one");
    const std::vector<PinValue> both = window_->pins()->value();
    QCOMPARE(both.size(), std::size_t{2});
    emit chips()[0] -> unpinWanted();
    QCOMPARE(pins().size(), std::size_t{1});
    window_->undoStack()->undo();
    QVERIFY(window_->pins()->value() == both);
    QVERIFY(pinsAtRest());
    QVERIFY(pins()[0].trace && pins()[0].comparable && pins()[1].name == "the narrow one");
    window_->action("unpinAll")->trigger();
    QVERIFY(pins().empty());
    window_->undoStack()->undo();
    QVERIFY(window_->pins()->value() == both);
    window_->undoStack()->undo();  // the name
    QVERIFY(pinsAtRest());
    QVERIFY2(pins()[1].given.isEmpty() && pins()[1].name.contains("0.7"), qPrintable(pins()[1].name));
    while (window_->undoStack()->canUndo()) window_->undoStack()->undo();
    QVERIFY(pins().empty() && settle());
    while (window_->undoStack()->canRedo()) window_->undoStack()->redo();
    QVERIFY(pins().empty());  // as after the last change
    window_->undoStack()->undo();
    QVERIFY(window_->pins()->value() == both);
    QVERIFY(pinsAtRest());
    QVERIFY(pins()[0].comparable && pins()[1].comparable);
  }

  void aPinnedRunCanBeLookedAtAgain() {
    open();
    set("spectral_radius", "0.7");
    window_->action("pin")->trigger();
    set("spectral_radius", "1.2");
    emit chips()[0] -> lookWanted();
    QVERIFY(settle());
    const auto values = session().setup().settings();
    QCOMPARE(values.front().second, std::string("0.7"));
    window_->undoStack()->undo();
    QVERIFY(settle());
    QCOMPARE(session().setup().settings().front().second, std::string("1.2"));
  }
};

int main(int argc, char** argv) { return test::runWindowTest<TestPins>(argc, argv, "pins-test"); }

#include "test_pins.moc"
