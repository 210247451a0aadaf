// SPDX-License-Identifier: GPL-3.0-or-later
// The editors of the window: what they show is what is set, and editing one thing changes nothing else.
#include <QComboBox>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QSignalSpy>
#include <QSlider>
#include <QSpinBox>
#include <QStandardItemModel>
#include <QTextDocument>
#include <QToolButton>
#include <QUndoStack>
#include <limits>

#include "gui/docks/panel_area.h"
#include "gui/learning/training_bar.h"
#include "gui/session/pins.h"
#include "gui/views/card_view.h"
#include "gui/views/inspector_view.h"
#include "gui/views/scrubber.h"
#include "gui/views/sequence_view.h"
#include "gui/views/status_line.h"
#include "gui/views/whole_box.h"
#include "models/registry.h"
#include "panels/gating/gating.h"
#include "panels/gradients/gradients.h"
#include "window_test.h"

using namespace reclab;
using test::patience;

class TestEditors : public test::WindowTest {
  Q_OBJECT

 private:
  const Setup& setup() { return session().setup(); }
  void open(const QString& model = "elman", const Settings& set = {}, std::uint64_t seed = 1, const QString& task = {}) {
    Options options = task.isEmpty() ? onWaves() : Options{};
    options.model = model;
    if (!set.empty()) options.given["--set"] = list_of_names(names_of_pairs(set));
    options.given["--seed"] = std::to_string(seed);
    if (!task.isEmpty()) options.given["--task"] = task.toStdString();
    if (!task.isEmpty()) options.given["--length"] = "60";
    WindowTest::open(options);
    QTRY_VERIFY_WITH_TIMEOUT(window_->inspector()->slider("width") != nullptr, patience);
  }
  QAction* columnAction(const QString& name) {
    for (QAction* action : window_->sequenceView()->columnsButton()->menu()->actions())
      if (action->text() == name) return action;
    return nullptr;
  }
  QDoubleSpinBox* boxOf(const QString& key) {
    QWidget* cell = window_->inspector()->slider(key)->parentWidget();
    return cell->findChild<QDoubleSpinBox*>();
  }
  std::string valueOf(const std::string& key) {
    for (const auto& [name, value] : session().trace()->info.hyper)
      if (name == key) return value;
    return {};
  }
  /// Typed as a hand does, in whichever editor.
  void type(QWidget* editor, const QString& text) {
    editor->setFocus();
    QTest::keyClick(editor, Qt::Key_A, Qt::ControlModifier);
    QTest::keyClicks(editor, text);
    QTest::keyClick(editor, Qt::Key_Return);
  }

 private slots:
  void cleanup() { close(); }

  /// Nor does the wheel give a box the focus, in which it would turn.
  void theWheelTurnsNothingThatWasNotClicked() {
    open();
    std::vector<QWidget*> editors;
    for (QAbstractSpinBox* box : window_->inspector()->findChildren<QAbstractSpinBox*>()) editors.push_back(box);
    for (QComboBox* box : window_->inspector()->findChildren<QComboBox*>()) editors.push_back(box);
    QVERIFY(editors.size() > 4);
    const Setup before = setup();
    for (QWidget* editor : editors) {
      QCOMPARE(editor->focusPolicy(), Qt::StrongFocus);
      if (!editor->isVisible() || editor->hasFocus()) continue;
      const QPointF at = editor->rect().center();
      QWheelEvent wheel(at, editor->mapToGlobal(at), {}, {0, -120}, Qt::NoButton, Qt::NoModifier, Qt::NoScrollPhase, false);
      QApplication::sendEvent(editor, &wheel);
    }
    QVERIFY(setup() == before);
  }

  /// Beside its name, its values and its lines, and on what is saved.
  void anInputThatIsMultipliedIsSaid() {
    open("lstm");
    const auto said = [this] {
      QString name;
      for (const FlatDock* dock : window_->findChildren<FlatDock*>())
        if (dock->objectName() == "dock.sequence") name = dock->header()->headline();
      QString labels;
      for (const QLabel* label : window_->findChild<SequenceView*>()->findChildren<QLabel*>()) labels += label->text() + '\n';
      auto* scrubber = window_->findChild<Scrubber*>();
      QString values;
      for (const QLabel* label : scrubber->findChildren<QLabel*>()) values += label->text() + '\n';
      const QString file = folder_.filePath("gradients.svg");
      PanelDock* dock = window_->area()->dock("gradients");
      dock->raise();
      dock->catchUp();
      const QString problem = dock->panel()->saveFigure(file, Panel::Format::svg);
      QFile saved(file);
      const QString figure = problem.isEmpty() && saved.open(QIODevice::ReadOnly) ? QString::fromUtf8(saved.readAll()) : problem;
      return QStringList{name, labels, values, figure.section("start.csv", 1, 1).left(4), scrubber->strip()->inputScale()};
    };
    for (const QString& one : said()) QVERIFY2(!one.contains("× ") && !one.contains("times"), qPrintable(one));
    QVERIFY(said().back().isEmpty());
    emit window_->inspector()->edited("input_scale", "6", false, 0);
    QVERIFY(settle());
    QTRY_COMPARE(said().back(), QString("6"));
    QVERIFY2(said()[0].endsWith("start.csv × 6"), qPrintable(said()[0]));
    QVERIFY2(said()[1].contains("the model reads the input times 6 (input scale)"), qPrintable(said()[1]));
    QVERIFY2(said()[2].contains(" × 6"), qPrintable(said()[2]));
    QVERIFY2(said()[3].startsWith(" × 6"), qPrintable(said()[3]));
    QVERIFY(window_->session()->trace()->info.notes.size() > 0 &&
            window_->session()->trace()->info.notes.front().terminal_text().starts_with("The model reads the input times 6"));
    // Another model reads it as it is.
    clickModel("elman");
    QTRY_VERIFY(said().back().isEmpty());
    QVERIFY2(said()[0].endsWith("start.csv"), qPrintable(said()[0]));
  }

  void numbersAreShownWholeAndEnterKeepsThem() {
    const char* rho = "0.123456789012345";
    open("elman", {{"spectral_radius", rho}});
    QDoubleSpinBox* box = boxOf("spectral_radius");
    QCOMPARE(box->text(), QString(rho));
    const auto output = *session().trace()->find("output")->real;
    box->setFocus();
    QTest::keyClick(box, Qt::Key_Return);
    QTest::qWait(50);
    QVERIFY(settle());
    QCOMPARE(valueOf("spectral_radius"), std::string(rho));
    QCOMPARE(*session().trace()->find("output")->real, output);
    QCOMPARE(window_->undoStack()->count(), 0);
    // What is typed is what is set, to the last digit.
    type(box, "0.98765432109876543");
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && valueOf("spectral_radius").starts_with("0.9876543210987654"), patience);
    QCOMPARE(box->text().toDouble(), 0.98765432109876543);
  }

  /// The sentence names the field, its range and what stays.
  void aNumberThatIsNotTakenIsSaid() {
    open("elman", {}, 1, "copy");
    const auto said = [this] { return window_->statusLine()->sentence(); };
    const QString before = boxOf("spectral_radius")->text();
    type(boxOf("spectral_radius"), "77");
    QCOMPARE(said(), QString("77 was not taken: Spectral radius goes from 0 to 2; it is still %1.").arg(before));
    QCOMPARE(boxOf("spectral_radius")->text(), before);
    auto* length = window_->sequenceView()->findChild<QSpinBox*>("length");
    const int steps = length->value();
    type(length, "0");
    QCOMPARE(said(), QString("0 was not taken: Length goes from 1 to 1000000000; it is still %1.").arg(steps));
    // More digits than fit are no other number.
    auto* symbols = qobject_cast<QSpinBox*>(window_->sequenceView()->parameterEditor("delay"));
    QVERIFY(symbols != nullptr);
    const int value = symbols->value();
    type(symbols, "99999999999");
    QCOMPARE(symbols->value(), value);
    QVERIFY2(said().startsWith("99999999999 was not taken: "), qPrintable(said()));
    // So it is where training is set up.
    auto* rate = window_->trainingBar()->settings()->findChild<QLineEdit*>("training.rate");
    QVERIFY(rate != nullptr);
    const QString stays = rate->text();
    rate->setText("1e6");
    QTest::keyClick(rate, Qt::Key_Return);
    QCOMPARE(rate->text(), stays);
    QVERIFY2(said().startsWith("1e6 was not taken: ") && said().endsWith("it is still " + stays + "."), qPrintable(said()));
    // By leaving the field, too.
    boxOf("spectral_radius")->setFocus();
    QTest::keyClick(boxOf("spectral_radius"), Qt::Key_A, Qt::ControlModifier);
    QTest::keyClicks(boxOf("spectral_radius"), "-4");
    length->setFocus();
    QVERIFY2(said().startsWith("-4 was not taken: "), qPrintable(said()));
    QTest::qWait(50);
    QVERIFY(settle());
    QCOMPARE(window_->undoStack()->count(), 0);
  }

  void everyValueOfASliderIsShortAndIsWhatRan() {
    // Wherever a hand leaves a slider, and however often a key goes on: of every hyper-parameter of every model.
    open("elman");
    int numbers = 0;
    const auto digits = [](double value) {
      QString text = exact(value);
      text = text.section('e', 0, 0).remove('-').remove('.');
      while (text.startsWith('0') && text.size() > 1) text.remove(0, 1);
      while (text.endsWith('0') && text.size() > 1) text.chop(1);
      return text.size();
    };
    for (const Preset& preset : session().library()->presets.presets()) {
      const Hyper hyper = hyper_of(builtin_registry(), preset);
      for (const HyperSpec& spec : hyper.table()) {
        if (spec.kind != HyperKind::real) continue;
        ++numbers;
        const auto whole = digits(spec.step > 0.0 ? spec.step : 1.0) + 4;
        for (int position = 0; position <= 1000; position += 7) {
          const double value = valueAt(spec, position);
          if (value == spec.low || value == spec.high) continue;
          QVERIFY2(digits(value) <= whole, qPrintable(QString("%1 %2: %3").arg(preset.id.c_str(), spec.key.c_str(), exact(value))));
        }
        double value = valueAt(spec, 500);
        for (int i = 0; i < 40; ++i) {
          const double next = steppedBy(spec, value, i < 20 ? 1 : -1);
          QVERIFY2(next == spec.low || next == spec.high || digits(next) <= whole,
                   qPrintable(QString("%1 %2: %3").arg(preset.id.c_str(), spec.key.c_str(), exact(next))));
          QVERIFY2(next != value || next == spec.high || next == spec.low,
                   qPrintable(QString("%1 %2 stays %3").arg(preset.id.c_str(), spec.key.c_str(), exact(value))));
          value = next;
        }
      }
    }
    QVERIFY(numbers > 100);
    QCOMPARE(onGrid(2.4000000000000004, 0.1), 2.4);
    QCOMPARE(onGrid(-0.30000000000000004, 0.05, -10.0), -0.3);
    QCOMPARE(onGrid(3.3e-8, 1e-9), 3.3e-8);
  }

  void theArrowKeysGoByTheStepThatIsShown() {
    open("elman");
    QSlider* slider = window_->inspector()->slider("spectral_radius");
    QDoubleSpinBox* box = boxOf("spectral_radius");
    QCOMPARE(box->text(), QString("0.95"));
    for (const char* wanted : {"0.96", "0.97", "0.98"}) {
      QTest::keyClick(slider, Qt::Key_Right);
      QCOMPARE(box->text(), QString(wanted));
      QTRY_VERIFY_WITH_TIMEOUT(atRest() && valueOf("spectral_radius") == wanted, patience);
    }
    QTest::keyClick(box, Qt::Key_Down);
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && valueOf("spectral_radius") == "0.97", patience);
    // A drag, to the end of it.
    slider->setSliderDown(true);
    for (int position = 300; position < 900; position += 17) slider->setSliderPosition(position);
    slider->setSliderDown(false);
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && valueOf("spectral_radius") == box->text().toStdString(), patience);
    QVERIFY2(box->text().size() <= 5, qPrintable(box->text()));
    QTRY_VERIFY_WITH_TIMEOUT(QString::fromStdString(session().trace()->info.command).contains("spectral_radius=" + box->text()), patience);
    window_->action("pin")->trigger();
    QVERIFY(window_->pins()->pins().size() == 1);
  }

  void largeWholeNumbersAreShownWhole() {
    open("hippo-legs", {{"l_max", "12345678"}, {"width", "8"}});
    QDoubleSpinBox* box = boxOf("l_max");
    QCOMPARE(box->text(), QString("12345678"));
    box->setFocus();
    QTest::keyClick(box, Qt::Key_Return);
    QTest::qWait(50);
    QVERIFY(settle());
    QCOMPARE(valueOf("l_max"), std::string("12345678"));
  }

  void anySeedIsShownAndKept() {
    const std::uint64_t seed = 18446744073709551615ULL;
    open("elman", {}, seed);
    WholeBox* box = window_->inspector()->seedBox();
    QCOMPARE(box->text(), QString("18446744073709551615"));
    box->setFocus();
    QTest::keyClick(box, Qt::Key_Return);
    QCOMPARE(setup().seed, seed);
    QTest::keyClick(box, Qt::Key_Up);
    QCOMPARE(setup().seed, seed);  // there is none above it
    QTest::keyClick(box, Qt::Key_Down);
    QCOMPARE(setup().seed, seed - 1);
    type(box, "9000000000");
    QCOMPARE(setup().seed, std::uint64_t{9000000000});
    type(box, "word");  // letters are not taken
    QVERIFY(setup().seed == 9000000000 && box->text() == "9000000000");
    QVERIFY(settle());
  }

  void editingOneFieldOfATaskKeepsTheOthers() {
    open("elman");
    SequenceChoice choice;
    choice.task = "noise";
    choice.make.length = 80;
    choice.make.seed = 10'000'000'000ULL;
    choice.make.standardise = true;
    session().loadSequence(choice);
    QTRY_VERIFY_WITH_TIMEOUT(setup().sequence->choice == choice, patience);
    SequenceView* view = window_->sequenceView();
    QCOMPARE(view->seedBox()->text(), QString("10000000000"));
    type(view->lengthBox(), "90");
    choice.make.length = 90;
    QTRY_VERIFY_WITH_TIMEOUT(setup().sequence->choice.make.length == 90, patience);
    QVERIFY(setup().sequence->choice == choice);
    type(view->seedBox(), "7");
    choice.make.seed = 7;
    QTRY_VERIFY_WITH_TIMEOUT(setup().sequence->choice.make.seed == 7, patience);
    QVERIFY(setup().sequence->choice == choice);
    QVERIFY(settle());
  }

  void aTasksOwnParametersHaveRowsAndUndo() {
    open("elman");
    SequenceChoice choice;
    choice.task = "copy";
    choice.make.length = 90;
    choice.make.seed = 4;
    session().loadSequence(choice);
    QTRY_VERIFY_WITH_TIMEOUT(setup().sequence->choice == choice, patience);
    SequenceView* view = window_->sequenceView();
    const auto box = [&](const char* key) { return qobject_cast<QSpinBox*>(view->parameterEditor(key)); };
    QVERIFY(box("delay") && box("symbols") && box("alphabet") && !view->parameterEditor("period"));
    QCOMPARE(box("alphabet")->value(), 8);
    const auto is = [&](const TaskSettings& set) {
      return QTest::qWaitFor([&] { return atRest() && setup().sequence->choice.make.set == set; }, patience);
    };
    type(box("delay"), "40");
    QVERIFY(is({{"delay", "40"}}));
    type(box("symbols"), "5");
    QVERIFY(is({{"delay", "40"}, {"symbols", "5"}}));
    QVERIFY(setup().sequence->choice.make.length == 90 && setup().sequence->choice.make.seed == 4);
    QCOMPARE(session().trace()->info.input_name, std::string("copy (delay = 40, symbols = 5)"));
    QVERIFY2(session().trace()->info.command.find("--task copy --length 90 --task-seed 4 --task-set delay=40 --task-set symbols=5") !=
                 std::string::npos,
             session().trace()->info.command.c_str());
    window_->findChild<QAction*>("action.undo")->trigger();
    QVERIFY(is({{"delay", "40"}}));
    QCOMPARE(box("symbols")->value(), 10);
    window_->findChild<QAction*>("action.redo")->trigger();
    QVERIFY(is({{"delay", "40"}, {"symbols", "5"}}));
    QCOMPARE(box("symbols")->value(), 5);
    type(box("symbols"), "10");  // the default again
    QVERIFY(is({{"delay", "40"}}));
    // Another task has others.
    choice.task = "noise";
    session().loadSequence(choice);
    QVERIFY(is({}));
    QVERIFY(!view->parameterEditor("delay"));
    auto* correlation = qobject_cast<QAbstractSpinBox*>(view->parameterEditor("correlation"));
    QVERIFY(correlation);
    type(correlation, "0.123456789");
    QVERIFY(is({{"correlation", "0.123456789"}}));
    QCOMPARE(correlation->text(), QString("0.123456789"));
  }

  void whatDrawsNoWeightIsGreyedWithTheReason() {
    open("elman");
    const auto cell = [&](const char* key) { return window_->inspector()->slider(key)->parentWidget(); };
    QTRY_VERIFY_WITH_TIMEOUT(!cell("input_deviation")->isEnabled(), patience);
    QVERIFY2(cell("input_deviation")->toolTip().contains("It has no effect with input init = uniform"),
             qPrintable(cell("input_deviation")->toolTip()));
    QVERIFY(cell("spectral_radius")->isEnabled() && cell("width")->isEnabled());
    emit window_->inspector()->edited("recurrent_init", "uniform", false, 1);
    QTRY_VERIFY_WITH_TIMEOUT(!cell("spectral_radius")->isEnabled(), patience);
    QVERIFY2(cell("spectral_radius")->toolTip().contains("It has no effect with recurrent init = uniform"),
             qPrintable(cell("spectral_radius")->toolTip()));
    // In the gradient lab, which repeats it, too.
    auto* beside = window_->area()->dock("gradient-lab")->panel()->findChild<QSlider*>("lab.spectral_radius");
    QVERIFY(beside != nullptr);
    QTRY_VERIFY_WITH_TIMEOUT(!beside->isEnabled(), patience);
    QVERIFY2(beside->parentWidget()->toolTip().contains("It has no effect with recurrent init = uniform"),
             qPrintable(beside->parentWidget()->toolTip()));
    emit window_->inspector()->edited("recurrent_init", "rotations", false, 2);
    QTRY_VERIFY_WITH_TIMEOUT(cell("spectral_radius")->isEnabled() && cell("angle_min")->isEnabled() && beside->isEnabled(), patience);
    QVERIFY(!cell("angle_min")->toolTip().contains("no effect"));
  }

  void theCardSaysOfWhichRunItsSentencesAre() {
    Options options;
    options.model = "s4d";
    WindowTest::open(options);
    auto* card = window_->findChild<CardView*>();
    QVERIFY(card != nullptr);
    QTRY_VERIFY_WITH_TIMEOUT(card->toPlainText().contains("each one rings"), patience);
    const auto other = [&] {
      return card->toPlainText().contains("In grey: what is to be seen in the preset's own run, on the task impulse with 400 steps");
    };
    QTest::qWait(200);
    QVERIFY(!other());
    const auto colourOf = [&](const QString& words) {
      const QTextCursor found = card->document()->find(words);
      return found.isNull() ? QColor() : found.charFormat().foreground().color();
    };
    const QColor muted = window_->palette().color(QPalette::PlaceholderText);
    QVERIFY(colourOf("each one rings") != muted);
    // A pin beside it.
    window_->action("pin")->trigger();
    QTRY_VERIFY_WITH_TIMEOUT(other(), patience);
    QCOMPARE(colourOf("each one rings").name(), muted.name());
    QVERIFY(colourOf("A linear system in continuous time").name() != muted.name());  // that is so whatever is run
    window_->pins()->remove(0);
    QTRY_VERIFY_WITH_TIMEOUT(!other(), patience);
    // Other settings, and back.
    emit window_->inspector()->edited("dt_max", "0.02", false, 1);
    QTRY_VERIFY_WITH_TIMEOUT(other(), patience);
    window_->findChild<QAction*>("action.undo")->trigger();
    QTRY_VERIFY_WITH_TIMEOUT(!other(), patience);
    // Another task.
    SequenceChoice choice;
    choice.task = "noise";
    session().loadSequence(choice);
    QTRY_VERIFY_WITH_TIMEOUT(other(), patience);
  }

  void whatLoadedWeightsDecideIsGreyed() {
    open("lstm");
    const QString file = written("w32.npz", {});
    window_->setFileChooser({[&](QWidget*, const QString&, const QString&) { return file; },
                             [&](QWidget*, const QString&, const QString&, const QString&) { return file; },
                             {}});
    WholeBox* seed = window_->inspector()->seedBox();
    QVERIFY(seed->isEnabled());
    QSignalSpy saved(&session(), &SessionController::saved);
    window_->action("saveWeights")->trigger();
    QVERIFY(saved.wait(patience));
    window_->action("weights")->trigger();
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && !session().trace()->info.weights.empty(), patience);
    seed = window_->inspector()->seedBox();
    QVERIFY(!seed->isEnabled());
    QVERIFY2(seed->toolTip().contains("The weights come from w32.npz"), qPrintable(seed->toolTip()));
    QWidget* bias = window_->inspector()->slider("forget_bias")->parentWidget();
    QVERIFY(!bias->isEnabled() && bias->toolTip().contains("w32.npz"));
    QVERIFY(window_->inspector()->slider("width")->parentWidget()->isEnabled());
    // Another model has weights of its own.
    clickModel("gru");
    QVERIFY(window_->inspector()->seedBox()->isEnabled());
    clickModel("lstm");
    QVERIFY(!window_->inspector()->seedBox()->isEnabled());
    window_->action("forget")->trigger();
    QVERIFY(window_->inspector()->seedBox()->isEnabled());
    QVERIFY(window_->inspector()->slider("forget_bias")->parentWidget()->isEnabled());
    QVERIFY(settle());
  }

  void theLossIsChosenNamedAndUndone() {
    open("elman", {}, 1, "adding");
    const auto loss = [this] { return session().trace()->info.loss; };
    QVERIFY(loss().starts_with("task:"));
    QComboBox* box = window_->inspector()->lossBox();
    QCOMPARE(box->currentText(), QString("auto"));
    const auto gradient = [this] { return *session().trace()->find("gradient/state/0/h")->real; };
    const auto before = gradient();
    box->setFocus();
    QTest::keyClick(box, Qt::Key_Down);
    QTest::keyClick(box, Qt::Key_Down);
    QCOMPARE(box->currentText(), QString("mean"));
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && loss().starts_with("mean:"), patience);
    QVERIFY(gradient() != before);
    const QString value = number(session().trace()->info.loss_value, 5);
    QVERIFY2(window_->inspector()->lossText().contains("the mean over all steps") && window_->inspector()->lossText().contains(value),
             qPrintable(window_->inspector()->lossText()));
    auto* gradients = panelOf<GradientsPanel>();
    QVERIFY(gradients->lossText().contains("the mean over all steps") && gradients->lossText().contains(value));
    QVERIFY2(window_->statusLine()->facts().contains("L " + number(session().trace()->info.loss_value, 4)),
             qPrintable(window_->statusLine()->facts()));
    window_->undoStack()->undo();
    window_->undoStack()->undo();
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && loss().starts_with("task:"), patience);
    QCOMPARE(box->currentText(), QString("auto"));
    QVERIFY(gradient() == before);
  }

  void aTargetLossNeedsATarget() {
    open("elman");
    const auto offered = [this] {
      QComboBox* box = window_->inspector()->lossBox();
      return qobject_cast<QStandardItemModel*>(box->model())->item(box->findData("task"))->isEnabled();
    };
    QVERIFY(!offered());  // a file without a target
    SequenceChoice task;
    task.task = "adding";
    task.make.length = 40;
    session().loadSequence(task);
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().trace()->info.loss.starts_with("task"), patience);
    QVERIFY(offered());
    emit window_->inspector()->lossEdited("task");
    QVERIFY(settle());
    QCOMPARE(setup().loss, LossKind::task);
    // A sequence without one is still run, and it is said how.
    task.task = "noise";
    session().loadSequence(task);
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().trace()->info.loss.starts_with("last"), patience);
    QVERIFY(!offered());
    QCOMPARE(setup().loss, LossKind::automatic);
  }

  void aColumnOrTheNextValueIsTheTarget() {
    open("elman");
    QComboBox* box = window_->sequenceView()->targetBox();
    QCOMPARE(box->currentText(), QString("none"));
    const auto trace = [this] { return session().trace(); };
    QVERIFY(trace()->info.loss.starts_with("last"));
    box->setFocus();
    QTest::keyClick(box, Qt::Key_Down);
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && trace()->info.loss.starts_with("task"), patience);
    QCOMPARE(box->currentText(), QString("next value"));
    QCOMPARE(trace()->input_names.size(), std::size_t(2));
    const TraceArray* target = trace()->find("target");
    QVERIFY(target != nullptr && target->row_size() == 2);
    QCOMPARE((*target->real)[0], setup().sequence->sequence.input[2]);  // the input one step on
    // A column: it is the target, and no input any more.
    QTest::keyClick(box, Qt::Key_Down);
    QTest::keyClick(box, Qt::Key_Down);
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && trace()->input_names == std::vector<std::string>{"slow"}, patience);
    QCOMPARE(box->currentText(), QString("fast"));
    QCOMPARE(window_->sequenceView()->columnsButton()->menu()->actions().size(), qsizetype(2));
    QVERIFY(!columnAction("fast")->isChecked());
    QVERIFY(trace()->info.loss.starts_with("task"));
    const auto labels = window_->sequenceView()->findChildren<QLabel*>();
    QVERIFY(std::any_of(labels.begin(), labels.end(), [](const QLabel* one) { return one->text().contains("target: fast"); }));
    // With its tick under Columns it is both, and without it the target alone again.
    columnAction("fast")->trigger();
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && trace()->input_names == (std::vector<std::string>{"slow", "fast"}), patience);
    QCOMPARE(box->currentText(), QString("fast"));
    QVERIFY(columnAction("fast")->isChecked() && trace()->find("target")->row_size() == 1);
    QCOMPARE((*trace()->find("target")->real)[3], (*trace()->find("input")->real)[7]);
    QVERIFY2(trace()->info.command.find("--columns slow --columns fast") != std::string::npos, trace()->info.command.c_str());
    columnAction("fast")->trigger();
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && trace()->input_names == std::vector<std::string>{"slow"}, patience);
    QVERIFY(setup().sequence->choice.load.columns.empty());
    window_->undoStack()->undo();
    window_->undoStack()->undo();
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && trace()->input_names == std::vector<std::string>{"slow"}, patience);
    window_->undoStack()->undo();
    window_->undoStack()->undo();
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && trace()->info.loss.starts_with("last"), patience);
    QCOMPARE(box->currentText(), QString("none"));
  }

  void aModelOpensWhereItsPresetSaysToLook() {
    open("lstm");
    auto* gates = panelOf<GatingPanel>()->findChild<QComboBox*>("gate");
    QTRY_VERIFY_WITH_TIMEOUT(gates->currentData().toString() == "gate/0/forget", patience);
    clickModel("gru");
    QCOMPARE(gates->currentData().toString(), QString("gate/0/update"));
    // What is picked by hand stays that model's.
    gates->setFocus();
    QTest::keyClick(gates, Qt::Key_Up);
    const QString picked = gates->currentData().toString();
    QVERIFY(picked != "gate/0/update");
    clickModel("lstm");
    QCOMPARE(gates->currentData().toString(), QString("gate/0/forget"));
    clickModel("gru");
    QCOMPARE(gates->currentData().toString(), picked);
    // A link of the card is a wish: the panel is opened where it is closed.
    PanelDock* gating = window_->area()->dock("gating");
    gating->hide();
    auto* card = window_->findChild<CardView*>();
    QVERIFY2(card->toHtml().contains("look:gating:update"), "the card has no link");
    emit card->lookWanted("gating:update");
    QVERIFY(!gating->isHidden());
    QTRY_COMPARE_WITH_TIMEOUT(gates->currentData().toString(), QString("gate/0/update"), patience);
    QVERIFY(settle());
  }

  void theAttentionMapIsALinkOfTheTransformersCard() {
    open("transformer");
    auto* card = window_->findChild<CardView*>();
    QTRY_VERIFY2_WITH_TIMEOUT(card->toHtml().contains("look:sensitivity:mixing"), "the card has no link", patience);
    emit card->lookWanted("sensitivity:mixing");
    PanelDock* dock = window_->area()->dock("sensitivity");
    QTRY_VERIFY(dock->inSight());
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && dock->panel()->emptyReason().isEmpty() && dock->panel()->dataAsCsv().size() > 1000, patience);
  }

  void aPanelThatAModelBringsForwardGoesBackWithIt() {
    open("lstm");
    PanelDock* output = window_->area()->dock("output");
    QVERIFY(!output->isHidden() && !output->inSight());
    const auto inFront = [this, output]() -> PanelDock* {
      for (PanelDock* one : window_->area()->docks())
        if (one->inSight() && (one == output || window_->area()->tabifiedDockWidgets(output).contains(one))) return one;
      return nullptr;
    };
    PanelDock* before = inFront();
    QVERIFY(before != nullptr && before != output);
    clickModel("echo-state");
    QTRY_VERIFY(output->inSight());
    clickModel("gru");
    QTRY_VERIFY(inFront() == before);
    clickModel("echo-state");
    QTRY_VERIFY(output->inSight());
    // What a hand brings forward meanwhile stays.
    before->raise();
    QTRY_VERIFY(before->inSight());
    output->raise();
    QTRY_VERIFY(output->inSight());
    before->raise();
    QTRY_VERIFY(before->inSight());
    clickModel("gru");
    QVERIFY(settle() && inFront() == before);
  }

  void theFieldsOfTheSequenceKeepTheirRoomWhileItLearns() {
    Options options = onWaves(700);
    options.model = "elman";
    WindowTest::open(options, {1280, 800});
    window_->action("train")->trigger();
    QTRY_VERIFY_WITH_TIMEOUT(session().learning() && session().learning()->running, patience);
    session().pauseTraining();
    QVERIFY(settle());
    QTest::qWait(300);
    photograph(window_.get(), "sequence-while-training");
    const SequenceView* view = window_->sequenceView();
    QVERIFY(view->isVisible());
    QList<const QWidget*> fields;
    for (const QWidget* one : view->findChildren<QWidget*>())
      if (one->isVisible() &&
          (qobject_cast<const QComboBox*>(one) || qobject_cast<const QAbstractButton*>(one) || qobject_cast<const QLabel*>(one)))
        fields << one;
    QVERIFY(fields.size() >= 10);
    const auto placeOf = [view](const QWidget* one) { return QRect(one->mapTo(view, QPoint()), one->size()); };
    for (const QWidget* one : fields) {
      QVERIFY2(one->height() >= one->fontMetrics().height(),
               qPrintable(QString("%1 is %2 high").arg(one->metaObject()->className()).arg(one->height())));
      for (const QWidget* other : fields)
        QVERIFY2(
            one == other || one->isAncestorOf(other) || other->isAncestorOf(one) ||
                !placeOf(one).adjusted(0, 1, 0, -1).intersects(placeOf(other).adjusted(0, 1, 0, -1)),
            qPrintable(QString("%1 %2 lies over %3 %4")
                           .arg(one->metaObject()->className(), one->objectName(), other->metaObject()->className(), other->objectName())));
    }
  }

  void symbolsAreMarksNotLines() {
    const auto copy = loadChoice([] {
      SequenceChoice choice;
      choice.task = "copy";
      choice.make.length = 50;
      return choice;
    }());
    QCOMPARE(copy->overview.symbols, copy->sequence.width);
    for (std::int64_t t = 0; t < 50; ++t)
      for (std::int64_t j = 0; j < copy->sequence.width; ++j)
        QCOMPARE(copy->overview.raster[static_cast<std::size_t>(t * copy->sequence.width + j)] > 0,
                 copy->sequence.input[static_cast<std::size_t>(t * copy->sequence.width + j)] == 1.0);
    SequenceChoice noise;
    QCOMPARE(loadChoice(noise)->overview.symbols, std::int64_t{0});
    // Ten lines would cover the ground everywhere; marks leave nine tenths of it free.
    SeriesView view;
    view.resize(500, 100);
    view.setSequence(copy);
    const QImage picture = view.grab().toImage();
    const QRgb ground = view.palette().color(QPalette::Base).rgb();
    int inked = 0;
    for (int x = 0; x < picture.width(); ++x)
      for (int y = 0; y < picture.height(); ++y) inked += picture.pixel(x, y) != ground;
    const double share = inked / double(picture.width() * picture.height());
    QVERIFY2(share > 0.05 && share < 0.12, qPrintable(QString::number(share)));
  }

  void standardisedValuesHaveTheirUnit() {
    open("elman");
    window_->time()->setStep(7);
    const Sequence& sequence = setup().sequence->sequence;
    QVERIFY(sequence.standardised);
    const auto said = [this] {
      QStringList all;
      for (const QLabel* one : window_->scrubber()->findChildren<QLabel*>()) all << one->text();
      return all.join('|');
    };
    const QString original = QLocale::c().toString(std::sin(7 * 0.05), 'g', 5), seen = QLocale::c().toString(sequence.input[14], 'g', 3);
    // The cursor speaks 30 times a second at most.
    QTRY_VERIFY2(said().contains("slow = " + original + " (standardised " + seen + ")"), qPrintable(said()));
  }
};

int main(int argc, char** argv) { return test::runWindowTest<TestEditors>(argc, argv, "editors-test"); }

#include "test_editors.moc"
