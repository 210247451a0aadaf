// SPDX-License-Identifier: GPL-3.0-or-later
// Comparisons: ready ones in two clicks, a table of what differs, runs side by side, and six colours that are told apart.
#include <QFileInfo>
#include <QMenu>
#include <QTableWidget>
#include <QTimer>
#include <QToolButton>
#include <QUndoStack>
#include <array>
#include <cmath>
#include <set>

#include "gui/comparing/compare_dialog.h"
#include "gui/comparing/ready.h"
#include "gui/comparing/run_numbers.h"
#include "gui/comparing/side_by_side.h"
#include "gui/docks/panel_area.h"
#include "gui/learning/training_bar.h"
#include "gui/session/pins.h"
#include "gui/views/inspector_view.h"
#include "gui/views/status_line.h"
#include "models/registry.h"
#include "panels/spectrum/spectrum.h"
#include "plot/parts/table.h"
#include "plot/plot.h"
#include "plot/value_axis.h"
#include "window_test.h"

using namespace reclab;
using test::patience;

namespace {

using Vector = std::array<double, 3>;
using Matrix = std::array<Vector, 3>;

Vector product(const Matrix& m, const Vector& v) {
  Vector made{};
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j) made[i] += m[i][j] * v[j];
  return made;
}
double linear(double channel) { return channel <= 0.04045 ? channel / 12.92 : std::pow((channel + 0.055) / 1.055, 2.4); }

/// How far two colours are apart in Oklab, seen through a matrix of linear RGB.
Vector seen(const QColor& colour, const Matrix& through) {
  Vector rgb = product(through, {linear(colour.redF()), linear(colour.greenF()), linear(colour.blueF())});
  for (double& channel : rgb) channel = std::clamp(channel, 0.0, 1.0);
  Vector cones = product({{{0.4122214708, 0.5363325363, 0.0514459929},
                           {0.2119034982, 0.6806995451, 0.1073969566},
                           {0.0883024619, 0.2817188376, 0.6299787005}}},
                         rgb);
  for (double& cone : cones) cone = std::cbrt(cone);
  return product({{{0.2104542553, 0.7936177850, -0.0040720468},
                   {1.9779984951, -2.4285922050, 0.4505937099},
                   {0.0259040371, 0.7827717662, -0.8086757660}}},
                 cones);
}
double apart(const QColor& a, const QColor& b, const Matrix& through) {
  const Vector x = seen(a, through), y = seen(b, through);
  return std::sqrt((x[0] - y[0]) * (x[0] - y[0]) + (x[1] - y[1]) * (x[1] - y[1]) + (x[2] - y[2]) * (x[2] - y[2]));
}

}  // namespace

class TestComparing : public test::WindowTest {
  Q_OBJECT

 private:
  const std::vector<Pin>& pins() { return window_->pins()->pins(); }
  void open(const QString& model = "elman", int rows = 120) {
    Options options = onWaves(rows);
    options.model = model;
    WindowTest::open(options);
  }
  bool pinsAtRest() {
    return QTest::qWaitFor(
        [this] {
          return atRest() && !window_->pins()->running() &&
                 std::ranges::all_of(pins(), [](const Pin& one) { return one.comparable || !one.problem.isEmpty(); });
        },
        patience);
  }
  /// Two clicks: on the button of the tool bar, and on an entry of its menu.
  void choose(const QString& title) {
    auto* button = window_->findChild<QToolButton*>("compareButton");
    QVERIFY(button != nullptr && button->isVisible());
    QTimer::singleShot(0, this, [this, title] {
      QMenu* menu = window_->compareMenu();
      QVERIFY(menu->isVisible());
      for (QAction* one : menu->actions())
        if (one->text() == title) return QTest::mouseClick(menu, Qt::LeftButton, {}, menu->actionGeometry(one).center());
      menu->close();
      QFAIL(qPrintable("the menu has no " + title));
    });
    QTest::mouseClick(button, Qt::LeftButton);
  }

 private slots:
  void cleanup() {
    close();
    look_.apply(ThemeChoice::light);
  }

  void sixColoursAreToldApart() {
    const Matrix eyes[] = {{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}},
                           // Machado, Oliveira and Fernandes 2009: without the cones for long, for middle and for short waves.
                           {{{0.152286, 1.052583, -0.204868}, {0.114503, 0.786281, 0.099216}, {-0.003882, -0.048116, 1.051998}}},
                           {{{0.367322, 0.860646, -0.227968}, {0.280085, 0.672501, 0.047413}, {-0.011820, 0.042940, 0.968881}}},
                           {{{1.255528, -0.076749, -0.178779}, {-0.078411, 0.930809, 0.147602}, {0.004733, 0.691367, 0.303900}}}};
    for (const ThemeChoice choice : {ThemeChoice::light, ThemeChoice::dark}) {
      look_.apply(choice);
      const Theme theme = Theme::of(QApplication::palette(), QApplication::font());
      QList<QColor> six{theme.series(0)};
      for (int i = 0; i < static_cast<int>(Pins::most); ++i) six << pinColour(i);
      QCOMPARE(six.size(), 6);
      // On the dark ground they are the colours of small numbers too.
      for (const QColor& one : six) QVERIFY2(contrast(one, theme.base) >= (theme.dark ? 4.5 : 3.0), qPrintable(one.name()));
      for (const Matrix& eye : eyes)
        for (int i = 0; i < 6; ++i)
          for (int j = 0; j < i; ++j)
            QVERIFY2(apart(six[i], six[j], eye) > 0.09,
                     qPrintable(QString("%1 %2 %3").arg(six[i].name(), six[j].name()).arg(apart(six[i], six[j], eye))));
      for (int i = 1; i < 6; ++i)
        for (int j = 1; j < 7; ++j) QVERIFY2(apart(six[i], theme.series(j), eyes[0]) > 0.04, qPrintable(six[i].name()));
    }
  }

  void everyReadyComparisonCanBeRun() {
    open();
    const Library& library = *session().library();
    const auto all = readyComparisons(dataFile("comparisons.json"), library, session().setup());
    QVERIFY(all.size() >= 3);
    for (const ReadyComparison& one : all) {
      QVERIFY2(!one.title.isEmpty() && !one.why.isEmpty() && one.runs.size() >= 2 && one.runs.size() <= Pins::most + 1,
               qPrintable(one.title));
      for (const Setup& setup : one.runs) hyper_of(builtin_registry(), library.presets.find(setup.preset));
    }
    const QString bad = written("bad.json", R"([{"title": "x", "why": "y", "runs": [{"preset": "elman", "set": {"no_such": "1"}}]}])");
    QVERIFY_THROWS_EXCEPTION(Error, readyComparisons(bad, library, session().setup()));
  }

  /// What a hand left behind is not compared, and one input gain is all that departs from presets without being a run's own.
  void aReadyComparisonTakesPresetValuesOnEqualTerms() {
    open();
    const Library& library = *session().library();
    const auto fresh = readyComparisons(dataFile("comparisons.json"), library, session().setup());
    // An afternoon later: other settings, weights of a file and a state, of every model that is compared.
    Setup used = session().setup();
    for (const ReadyComparison& one : fresh)
      for (const Setup& run : one.runs) {
        used.preset = run.preset;
        used.setValue("width", "8");
        used.setValue("input_scale", "5");
        if (run.preset == "lstm") used.setValue("forget_bias", "-0.1");
        used.weights[run.preset] = "mine.npz";
        used.states[run.preset] = "end.npz";
      }
    used.preset = "elman";
    const auto later = readyComparisons(dataFile("comparisons.json"), library, used);
    QCOMPARE(later.size(), fresh.size());
    for (std::size_t i = 0; i < later.size(); ++i) {
      std::set<std::string> gains;
      for (std::size_t j = 0; j < later[i].runs.size(); ++j) {
        const Setup& run = later[i].runs[j];
        QVERIFY2(run.settings() == fresh[i].runs[j].settings(), qPrintable(later[i].title));
        QVERIFY2(!run.weights.contains(run.preset) && !run.states.contains(run.preset) && run.learnedWeights() == nullptr,
                 qPrintable(later[i].title));
        const Hyper hyper = hyper_of(builtin_registry(), library.presets.find(run.preset), run.settings());
        QCOMPARE(hyper.text("input_scale"), std::string("1"));
        gains.insert(hyper.has("input_gain") ? hyper.text("input_gain") : "1");
      }
      QVERIFY2(gains.size() == 1, qPrintable(later[i].title));
    }
  }

  void handsAreNotCompared() {
    open("lstm");
    emit window_->inspector()->edited("forget_bias", "-0.1", false, 0);
    QVERIFY(settle());
    clickModel("elman");
    choose(QStringLiteral("Elman · GRU · LSTM"));
    QVERIFY(pinsAtRest());
    QCOMPARE(pins()[1].name, QString("LSTM"));
    QCOMPARE(hyperOf(pins()[1].trace, "forget_bias"), QString("1"));
    for (const Pin& pin : pins()) {
      QCOMPARE(hyperOf(pin.trace, "input_gain"), hyperOf(session().trace(), "input_gain"));
      QCOMPARE(hyperOf(pin.trace, "input_scale"), QString("1"));
    }
    // A pin of one's own keeps its setting in its name, beside other models too.
    while (!pins().empty()) window_->pins()->remove(0);
    clickModel("lstm");
    QCOMPARE(hyperOf(session().trace(), "forget_bias"), QString("-0.1"));
    window_->action("pin")->trigger();
    clickModel("elman");
    QVERIFY(pinsAtRest());
    QVERIFY2(pins()[0].name.startsWith("LSTM") && pins()[0].name.contains("forget bias -0.1"), qPrintable(pins()[0].name));
  }

  void elmanGruAndLstmInTwoClicks() {
    open();
    choose(QStringLiteral("Elman · GRU · LSTM"));
    QVERIFY(pinsAtRest());
    QCOMPARE(session().setup().preset, std::string("elman"));
    QCOMPARE(pins().size(), std::size_t{2});
    QCOMPARE(pins()[0].name, QString("GRU"));
    QCOMPARE(pins()[1].name, QString("LSTM"));
    for (const Pin& pin : pins())
      QVERIFY2(pin.comparable && pin.trace->info.input_sha256 == session().trace()->info.input_sha256, qPrintable(pin.name + pin.problem));
    QCOMPARE(window_->undoStack()->count(), 1);    // what was looked at is one of them: the others are pinned
    choose(QStringLiteral("Elman · GRU · LSTM"));  // once more adds nothing
    QVERIFY(pinsAtRest());
    QCOMPARE(pins().size(), std::size_t{2});
    QCOMPARE(window_->undoStack()->count(), 1);
    window_->undoStack()->undo();
    QVERIFY(pins().empty());
    window_->undoStack()->redo();
    QVERIFY(pinsAtRest());
    QCOMPARE(pins().size(), std::size_t{2});
    QCOMPARE(pins()[1].name, QString("LSTM"));
    // From elsewhere the first of them is gone to, which is one change to undo.
    window_->action("unpinAll")->trigger();
    QVERIFY(pins().empty());
    clickModel("lru");
    choose(QStringLiteral("Elman · GRU · LSTM"));
    QVERIFY(pinsAtRest());
    QCOMPARE(session().setup().preset, std::string("elman"));
    QCOMPARE(pins().size(), std::size_t{2});
    QCOMPARE(window_->undoStack()->undoText(), QString("comparing Elman · GRU · LSTM"));
    window_->undoStack()->undo();
    QVERIFY(pinsAtRest());
    QCOMPARE(session().setup().preset, std::string("lru"));
    QVERIFY(pins().empty());
    photograph(window_.get(), "comparing");
  }

  void whatOnlyPinnedRunsHaveIsSaid() {
    open();
    choose(QStringLiteral("Elman · GRU · LSTM"));
    QVERIFY(pinsAtRest());
    const auto why = [&](const char* id) {
      PanelDock* dock = window_->area()->dock(id);
      dock->raise();
      dock->catchUp();
      return dock->panel()->emptyReason();
    };
    QTRY_COMPARE(why("gating"),
                 QStringLiteral("Elman network has no gates. GRU and LSTM, which are pinned, have: see them side by side (Ctrl+B)."));
    QTRY_VERIFY2(why("kernels").endsWith("such as S4D, LRU or SGConv."), qPrintable(why("kernels")));  // none of them has
    while (!pins().empty()) window_->pins()->remove(0);
    QTRY_VERIFY2(why("gating").endsWith("such as LSTM, GRU or Mamba."), qPrintable(why("gating")));
  }

  /// Six runs in one plot: one output of each, that all of them have.
  void ofManyRunsOneOutputEach() {
    open("elman");
    for (const char* id : {"gru", "s4d"}) {
      Setup beside = session().setup();
      beside.preset = id;
      QCOMPARE(window_->pins()->add(beside, nullptr, {}), QString());
    }
    QVERIFY(pinsAtRest());
    PanelDock* dock = window_->area()->dock("output");
    dock->raise();
    dock->catchUp();
    const QString names = dock->panel()->findChild<Plot*>()->leftOut() + dock->panel()->dataAsCsv().section('\n', 0, 0);
    QVERIFY2(!names.contains("none of these outputs"), qPrintable(names));
    for (const char* run : {"GRU", "S4D"}) QVERIFY2(names.contains(run), qPrintable(names));
  }

  void seedsChoicesAndTooMany() {
    open();
    choose("Three seeds");
    QVERIFY(pinsAtRest());
    QCOMPARE(pins().size(), std::size_t{2});
    QCOMPARE(pins()[0].trace->info.seed, session().trace()->info.seed + 1);
    QCOMPARE(pins()[0].name, QString("seed %1").arg(session().setup().seed + 1));
    // Five more do not fit: said, with a way to go on.
    choose("Every recurrent init");
    QCOMPARE(pins().size(), std::size_t{2});
    QVERIFY2(window_->banner()->sentence().contains("pinned already"), qPrintable(window_->banner()->sentence()));
    auto* offer = window_->banner()->findChild<QPushButton*>();
    QVERIFY(offer != nullptr && offer->isVisible());
    QTest::mouseClick(offer, Qt::LeftButton);
    QVERIFY(pinsAtRest());
    QCOMPARE(pins().size(), Pins::most);
    QStringList names;
    for (const Pin& pin : pins()) names << pin.name;
    QCOMPARE(names, (QStringList{"recurrent init uniform", "recurrent init identity", "recurrent init diagonal",
                                 "recurrent init antisymmetric", "recurrent init rotations"}));
    // Every panel names all of them, in both themes.
    for (const ThemeChoice choice : {ThemeChoice::light, ThemeChoice::dark}) {
      look_.apply(choice);
      QVERIFY(pinsAtRest());
      for (const Panel::Run& run : window_->pins()->runs())
        QVERIFY(std::ranges::any_of(std::array{0, 1, 2, 3, 4}, [&](int i) { return run.colour == pinColour(i); }));
      for (const char* id : {"gradients", "spectrum", "trajectories", "output"}) {
        PanelDock* dock = window_->area()->dock(id);
        dock->raise();
        dock->catchUp();
        const QString csv = dock->panel()->dataAsCsv();
        for (const QString& name : names) QVERIFY2(csv.contains(name), qPrintable(QString(id) + " lacks " + name));
      }
    }
  }

  void theTableSaysWhatDiffersAndIsSaved() {
    open();
    choose(QStringLiteral("Elman network: below, at and above ρ = 1"));
    QVERIFY(pinsAtRest());
    const QString path = QFileInfo(written("here", {})).absolutePath() + "/table.csv";
    window_->setFileChooser({{}, [&](QWidget*, const QString&, const QString&, const QString&) { return path; }, {}});
    window_->action("differences")->trigger();
    auto* dialog = window_->findChild<CompareDialog*>();
    QVERIFY(dialog != nullptr && dialog->isVisible());
    QTableWidget* table = dialog->table();
    const auto row = [&](const QString& words) {
      for (int i = 0; i < table->rowCount(); ++i)
        if (table->verticalHeaderItem(i)->text() == words) return i;
      return -1;
    };
    QCOMPARE(table->columnCount(), 3);
    const int rho = row(QStringLiteral("spectral radius ρ"));
    QVERIFY(rho >= 0 && row("seed") < 0 && row("width H") < 0);
    QCOMPARE(table->item(rho, 0)->text(), QString("0.7"));
    QCOMPARE(table->item(rho, 2)->text(), QString("1.4"));
    // An orthogonal matrix times ρ under a tanh: no eigenvalue is larger than ρ, and the gradient shrinks with it.
    const auto numbers = numbersOf(pins()[1].trace.get()), less = numbersOf(session().trace().get());
    QVERIFY(numbers[2].value <= 1.4 + 1e-9 && less[2].value <= 0.7 + 1e-9 && less[3].value < numbers[3].value);
    QCOMPARE(numbers[0].value, pins()[1].trace->info.loss_value);
    QTest::mouseClick(dialog->findChild<QPushButton*>("saveCsv"), Qt::LeftButton);
    QFile file(path);
    QVERIFY(file.open(QIODevice::ReadOnly));
    const QString csv = QString::fromUtf8(file.readAll());
    QVERIFY2(csv.contains(QStringLiteral("spectral radius ρ,0.7,1,1.4\n")) && csv.startsWith("what,"), qPrintable(csv));
    QVERIFY2(csv.contains(QString::fromLatin1(csvNumber(numbers[3].value))), qPrintable(csv));
    QCOMPARE(csv.count('\n'), table->rowCount() + 1);
    photograph(dialog, "differences");
    // It follows.
    window_->pins()->remove(1);
    QCOMPARE(table->columnCount(), 2);
    emit window_->inspector()->edited("width", "16", false, 0);
    QVERIFY(pinsAtRest());
    QTRY_VERIFY(row("width H") >= 0);
  }

  void sideBySideHasOneTimeAndOneRangeOfValues() {
    open();
    choose(QStringLiteral("Elman network: below, at and above ρ = 1"));
    QVERIFY(pinsAtRest());
    window_->action("sideBySide")->trigger();
    SideBySide* side = window_->sideBySide();
    QVERIFY(side != nullptr && side->isVisible() && !window_->area()->isVisible());
    QCOMPARE(side->columns(), std::size_t{3});
    QVERIFY(pinsAtRest());
    for (std::size_t i = 0; i < 3; ++i) {
      QTRY_VERIFY_WITH_TIMEOUT(side->panel("gradients", i)->emptyReason().isEmpty() && side->panel("spectrum", i)->emptyReason().isEmpty(),
                               patience);
      QVERIFY(!side->panel("gradients", i)->dataAsCsv().contains(QStringLiteral("ρ = ")));  // nothing is pinned into it
    }
    const auto axis = [&](std::size_t i) { return side->panel("gradients", i)->findChild<ValueAxis*>(); };
    QTRY_COMPARE(axis(0)->axis()->range(), axis(2)->axis()->range());
    for (std::size_t i = 0; i < 3; ++i) {
      QTRY_COMPARE(axis(i)->axis()->range(), axis(0)->axis()->range());
      QVERIFY(axis(i)->axis()->range().contains(axis(i)->wanted().lower) && axis(i)->axis()->range().contains(axis(i)->wanted().upper));
    }
    QVERIFY(axis(0)->wanted() != axis(2)->wanted());  // it is not that they are alike
    // The planes of eigenvalues too: three circles of one size.
    const auto plane = [&](std::size_t i, QCPAxis::AxisType which) {
      return static_cast<SpectrumPanel*>(side->panel("spectrum", i))->rect()->axis(which)->range();
    };
    const auto alike = [&] {
      return std::ranges::all_of(std::array{QCPAxis::atBottom, QCPAxis::atLeft}, [&](QCPAxis::AxisType which) {
        return std::ranges::all_of(std::array<std::size_t, 2>{1, 2},
                                   [&](std::size_t i) { return std::abs(plane(i, which).size() / plane(0, which).size() - 1.0) < 0.03; });
      });
    };
    QTRY_VERIFY_WITH_TIMEOUT(alike(), patience);
    for (std::size_t i = 0; i < 3; ++i) side->panel("spectrum", i)->findChild<Plot*>()->replot();
    QTest::qWait(100);
    QVERIFY(alike());
    QVERIFY2(plane(0, QCPAxis::atBottom).upper > 1.2,
             qPrintable(QString::number(plane(0, QCPAxis::atBottom).upper)));  // those of ρ = 1.4 lie outside the unit circle
    // Each run has the colour of its name, on either ground.
    const auto drawn = [&](std::size_t i) {
      const auto runs = window_->pins()->columns();
      const QList<QCPGraph*> graphs = side->panel("gradients", i)->findChild<Plot*>()->axisRect()->graphs();
      return std::ranges::any_of(graphs, [&](const QCPGraph* one) { return one->pen().color() == runs[i].colour; }) &&
             std::ranges::none_of(graphs, [&](const QCPGraph* one) {
               return std::ranges::any_of(
                   runs, [&](const auto& run) { return run.colour != runs[i].colour && one->pen().color() == run.colour; });
             });
    };
    for (const ThemeChoice ground : {ThemeChoice::dark, ThemeChoice::light}) {
      look_.apply(ground);
      for (std::size_t i = 0; i < 3; ++i) QTRY_VERIFY(drawn(i));
    }
    // A zoom of one is of all, and so is putting it back.
    axis(1)->zoom(axis(1)->axis()->axisRect()->rect().center().y(), 0.5);
    for (std::size_t i = 0; i < 3; ++i) QVERIFY(axis(i)->locked() && axis(i)->axis()->range() == axis(1)->axis()->range());
    axis(2)->reset();
    for (std::size_t i = 0; i < 3; ++i) {
      QVERIFY(!axis(i)->locked());
      QTRY_COMPARE(axis(i)->axis()->range(), axis(0)->axis()->range());
    }
    // One cursor and one range of steps.
    window_->time()->setStep(33);
    window_->time()->setRange(20, 60);
    for (std::size_t i = 0; i < 3; ++i) {
      auto* plot = side->panel("gradients", i)->findChild<Plot*>();
      QTRY_COMPARE(plot->cursorStep(), std::int64_t{33});
      QTRY_VERIFY(plot->firstStep() == 20 && plot->lastStep() == 60);
    }
    photograph(window_.get(), "side-by-side");
    // What is changed is seen in the first alone; another pin is another column; panels can be chosen.
    const QString other = side->panel("gradients", 1)->dataAsCsv(), first = side->panel("gradients", 0)->dataAsCsv();
    emit window_->inspector()->edited("spectral_radius", "0.5", false, 0);
    QVERIFY(pinsAtRest());
    QTRY_VERIFY(side->panel("gradients", 0)->dataAsCsv() != first);
    QCOMPARE(side->panel("gradients", 1)->dataAsCsv(), other);
    window_->action("pin")->trigger();
    emit window_->inspector()->edited("spectral_radius", "0.6", false, 0);
    QVERIFY(pinsAtRest());
    QCOMPARE(side->columns(), std::size_t{4});
    side->setKinds({"output", "nonsense"});
    QCOMPARE(side->kinds(), QStringList{"output"});
    QVERIFY(pinsAtRest());
    QVERIFY(side->panel("output", 3) != nullptr && side->panel("gradients", 0) == nullptr);
    side->setKinds({});  // one stays
    QCOMPARE(side->kinds(), QStringList{"output"});
    window_->action("sideBySide")->trigger();
    QVERIFY(!side->isVisible() && window_->area()->isVisible());
  }

  void stepsOfATrainingAreCompared() {
    Options options;
    options.model = "gru";
    options.given["--task"] = "adding";
    options.given["--length"] = "20";
    options.given["--set"] = "width=8";
    WindowTest::open(options);
    TrainingChoice choice;
    choice.steps = 40;
    choice.options.batch = 8;
    window_->trainingBar()->settings()->setChoice(choice);
    window_->action("train")->trigger();
    QTRY_VERIFY_WITH_TIMEOUT(
        !session().training() && session().learning() && session().learning()->trainings.back()->done == 40 && atRest(), patience);
    choose("Along its training");
    QVERIFY(pinsAtRest());
    QCOMPARE(pins().size(), std::size_t{4});
    QCOMPARE(session().trace()->info.learned->steps, std::int64_t{40});
    QCOMPARE(pins().back().trace->info.learned->steps, std::int64_t{0});
    for (std::size_t i = 1; i < pins().size(); ++i)
      QVERIFY(pins()[i].trace->info.learned->steps < pins()[i - 1].trace->info.learned->steps);
  }
};

int main(int argc, char** argv) { return test::runWindowTest<TestComparing>(argc, argv, "comparing-test"); }

#include "test_comparing.moc"
