// SPDX-License-Identifier: GPL-3.0-or-later
// Results of sweeps in the window: a sweep is made, computed, paused, gone on with and looked at; its pictures are those of the command
// line's numbers, and a click opens a cell's run.
#include <QAction>
#include <QCheckBox>
#include <QClipboard>
#include <QComboBox>
#include <QDir>
#include <QFileInfo>
#include <QLineEdit>
#include <QMenu>
#include <QPlainTextEdit>
#include <QProcess>
#include <QPushButton>
#include <QSignalSpy>
#include <QSpinBox>
#include <QXmlStreamReader>
#include <algorithm>

#include "array/error.h"
#include "experiment/command/typed_run.h"
#include "gui/results/atlases.h"
#include "gui/results/evaluate_form.h"
#include "gui/results/picture/result_picture.h"
#include "gui/results/result_choice.h"
#include "gui/results/results_feature.h"
#include "gui/results/results_window.h"
#include "gui/results/sweep_form.h"
#include "gui/views/status_line.h"
#include "window_test.h"

using namespace reclab;
using test::patience;

class TestResults : public test::WindowTest {
  Q_OBJECT

 private:
  ResultsWindow* results() { return window_->results()->window(); }
  SweepForm* form() { return window_->results()->form(); }
  ResultPicture* picture() { return results()->picture(); }
  QString tipOf(std::size_t group) { return picture()->tipAt(picture()->placeOf(group)); }
  template <class T>
  T* find(QWidget* in, const char* name) {
    T* found = in->findChild<T*>(name);
    if (found == nullptr) qFatal("there is no %s", name);
    return found;
  }
  void choose(const char* name, const QString& data) {
    auto* box = find<QComboBox>(results(), name);
    const int index = box->findData(data);
    QVERIFY2(index >= 0, qPrintable(data));
    box->setCurrentIndex(index);
    emit box->activated(index);
  }
  void openSmall() {
    Options options;
    options.model = "elman";
    options.given = {{"--task", "adding"}, {"--length", "8"}, {"--set", "width=4"}};
    open(options);
  }
  /// A table of a function of two settings and a seed that the test knows: 10 a + b, with seeds 0.1 apart.
  QString knownTable() {
    QByteArray text = "a,b,kind,seed,score\n";
    for (int a = 1; a <= 3; ++a)
      for (int b = 1; b <= 4; ++b)
        for (const char* kind : {"x", "y"})
          for (int seed = 0; seed < 3; ++seed)
            text += QByteArray::number(a) + ',' + QByteArray::number(b) + ',' + kind + ',' + QByteArray::number(seed) + ',' +
                    QByteArray::number(10 * a + b + 0.1 * (seed - 1) + (*kind == 'y' ? 100 : 0)) + '\n';
    return written("known.csv", text);
  }
  void openTable(const QString& file) {
    window_->action("results")->trigger();
    results()->open(file);
    QTRY_VERIFY_WITH_TIMEOUT(results()->table() != nullptr, patience);
    QVERIFY(QTest::qWaitForWindowExposed(results()));
  }
  std::size_t groupWith(const std::vector<std::pair<std::string, std::string>>& levels) {
    const ResultSummary& summary = picture()->summary();
    for (std::size_t g = 0; g < summary.groups.size(); ++g) {
      bool all = true;
      for (const auto& [name, level] : levels) {
        const auto at = std::ranges::find(summary.by, name) - summary.by.begin();
        const ResultAxis& axis = results()->table()->axis(name);
        all = all && axis.levels[summary.groups[g].levels[static_cast<std::size_t>(at)]] == level;
      }
      if (all) return g;
    }
    qFatal("there is no such group");
  }
  /// A sweep of elman over widths and seeds, made with the form.
  QString makeSweep(const QString& name, const QString& line, const std::vector<std::pair<QString, QString>>& axes, bool keeps = false) {
    window_->action("newSweep")->trigger();
    [&] { QTRY_VERIFY(form() != nullptr && form()->isVisible()); }();
    find<QPlainTextEdit>(form(), "sweep.line")->setPlainText(line);
    while (!form()->findChild<QComboBox*>(QStringLiteral("sweep.axis%1").arg(axes.size() - 1)))
      QTest::mouseClick(find<QPushButton>(form(), "sweep.more"), Qt::LeftButton);
    for (std::size_t i = 0; i < axes.size(); ++i) {
      form()->findChild<QComboBox*>(QStringLiteral("sweep.axis%1").arg(i))->setCurrentText(axes[i].first);
      form()->findChild<QLineEdit*>(QStringLiteral("sweep.values%1").arg(i))->setText(axes[i].second);
    }
    find<QCheckBox>(form(), "sweep.keeps")->setChecked(keeps);
    const QString folder = folder_.filePath(name);
    find<QLineEdit>(form(), "sweep.folder")->setText(folder);
    return folder;
  }
  void madeIt(const QString& folder) {
    QVERIFY2(form()->makeButton()->isEnabled(), qPrintable(form()->sentence()));
    QTest::mouseClick(form()->makeButton(), Qt::LeftButton);
    QTRY_VERIFY_WITH_TIMEOUT(results() != nullptr && results()->place() == folder && results()->table(), patience);
    QTRY_VERIFY(form() == nullptr);
  }

 private slots:
  void init() { test::forgetAll(); }
  void cleanup() { close(); }

  /// Each picture of a table is drawn from the numbers that the test put there.
  void theirPicturesAreOfTheTable() {
    openSmall();
    openTable(knownTable());
    // What varies most and is a number: across b, upright a, a picture each kind.
    QCOMPARE(results()->choice().view, ResultView::map);
    QCOMPARE(results()->choice().across, std::string("b"));
    QCOMPARE(results()->choice().upright, std::string("a"));
    QCOMPARE(results()->choice().apart, std::string("kind"));
    const std::size_t one = groupWith({{"kind", "y"}, {"a", "2"}, {"b", "3"}});
    QVERIFY(std::abs(picture()->summary().groups[one].mean.mean - 123.0) < 1e-12);
    QTRY_VERIFY2(tipOf(one).contains("mean 123") && tipOf(one).contains("kind = y"), qPrintable(tipOf(one)));  // when it is laid out
    QCOMPARE(picture()->rowsAt(picture()->placeOf(one)).size(), std::size_t{3});
    photograph(results(), "results-map");

    choose("results.view", "curves");
    const std::size_t point = groupWith({{"kind", "x"}, {"a", "3"}, {"b", "4"}});
    QTRY_VERIFY2(tipOf(point).contains("mean 34"), qPrintable(tipOf(point)));
    // Student's interval of three values 0.1 apart: 4.3027 * 0.1 / sqrt(3).
    QVERIFY(std::abs(picture()->summary().groups[point].mean.high - 34.0 - 4.302652729911275 * 0.1 / std::sqrt(3.0)) < 1e-9);
    photograph(results(), "results-curves");

    choose("results.view", "ranking");
    QCOMPARE(picture()->summary().groups.front().mean.mean, 11.0);
    QTest::mouseClick(find<QCheckBox>(results(), "results.falling"), Qt::LeftButton, {}, QPoint(8, 8));
    QVERIFY(std::abs(picture()->summary().groups.front().mean.mean - 134.0) < 1e-12);
    photograph(results(), "results-ranking");

    choose("results.view", "parallel");
    QVERIFY2(picture()->caption().isEmpty(), qPrintable(picture()->caption()));
    photograph(results(), "results-parallel");

    // Rows with one value of a setting alone; and an axis that is chosen where another is changes places with it.
    choose("results.view", "map");
    choose("results.only.kind", "x");
    for (const ResultGroup& group : picture()->summary().groups) QVERIFY(group.mean.mean < 40.0);
    choose("results.across", "a");
    QCOMPARE(results()->choice().upright, std::string("b"));
    // The line prints the same: a word that a shell has to quote is quoted.
    QVERIFY2(results()->command().startsWith("reclab sweep summary ") && results()->command().contains("--only kind=x"),
             qPrintable(results()->command()));
    QTest::mouseClick(find<QToolButton>(results(), "results.copy"), Qt::LeftButton);
    QCOMPARE(QApplication::clipboard()->text(), results()->command());
    std::vector<std::string> words = shell_words(results()->command().toStdString());
    QStringList arguments;
    for (std::size_t i = 1; i < words.size(); ++i) arguments << QString::fromStdString(words[i]);
    const QString csv = folder_.filePath("summary.csv");
    QProcess reclab;
    reclab.start(SweepRunner::program(), arguments + QStringList{"--export", csv});
    QVERIFY(reclab.waitForFinished(patience) && reclab.exitCode() == 0);
    QFile file(csv);
    QVERIFY(file.open(QIODevice::ReadOnly));
    QCOMPARE(QString::fromUtf8(file.readAll()), QString::fromStdString(summary_csv(*results()->table(), picture()->summary())));
  }

  /// A measure against another one: a point for each setting, with the means of both.
  void aMeasureAgainstAnother() {
    openSmall();
    openTable(written("both.csv", "model,seed,loss,size\nx,1,1,10\nx,2,3,10\ny,1,5,1000\ny,2,5,1000\n"));
    choose("results.view", "points");
    choose("results.against", "size");
    const std::size_t x = groupWith({{"model", "x"}}), y = groupWith({{"model", "y"}});
    QTRY_VERIFY2(tipOf(x).contains("loss: mean 2") && tipOf(x).contains("size: mean 10"), qPrintable(tipOf(x)));
    QTRY_VERIFY(picture()->placeOf(y).x() > picture()->placeOf(x).x() && picture()->placeOf(y).y() < picture()->placeOf(x).y());
    QCOMPARE(picture()->csv().section('\n', 0, 0).section(',', -1), QString("size"));
    QCOMPARE(picture()->csv().section('\n', 1, 1).section(',', -1), QString("10"));
    QCOMPARE(results()->command().count(" && "), 1);
  }

  /// Points have a picture for each value of a setting, all with the same axes, whatever else is measured; of seeds too.
  void pointsHaveAPictureForEachValue() {
    openSmall();
    openTable(written("three.csv",
                      "model,task,seed,bits,metric,state_bits\nx,copy,1,2,0,8\nx,mqar,1,4,0,8\ny,copy,1,6,0,64\ny,mqar,1,5,0,64\n"
                      "x,copy,2,4,0,8\nx,mqar,2,4,0,8\ny,copy,2,6,0,64\ny,mqar,2,5,0,64\n"));
    choose("results.view", "points");
    choose("results.against", "state_bits");
    choose("results.apart", "task");
    const auto of = [&](const char* model, const char* task) { return picture()->placeOf(groupWith({{"model", model}, {"task", task}})); };
    QTRY_VERIFY(!of("x", "copy").isNull() && !of("y", "mqar").isNull());
    QVERIFY(tipOf(groupWith({{"model", "x"}, {"task", "copy"}})).contains("bits: mean 3"));
    const auto between = [&](const char* task) { return of("y", task) - of("x", task); };
    QTRY_VERIFY(of("x", "mqar") != of("x", "copy") && between("copy").y() < 0 && between("copy").x() > 0);  // when it is laid out
    QTRY_VERIFY(std::abs(between("copy").x() - between("mqar").x()) < 1e-6);
    QTRY_VERIFY(std::abs(between("copy").y() - 3 * between("mqar").y()) < 1e-6);  // three bits and one
    photograph(results(), "points-by-task");
    choose("results.apart", "seed");
    QTRY_COMPARE(picture()->summary().groups.size(), std::size_t{8});
    for (std::size_t group = 0; group < 8; ++group) QVERIFY(!picture()->placeOf(group).isNull());
  }

  /// The tables that come with the program are whole, have a row a cell of their plans, and a click opens such a run.
  void itsAtlasesAreWhole() {
    openSmall();
    window_->action("results")->trigger();
    QVERIFY(results()->atlases().size() >= 3);
    for (const Atlas& atlas : results()->atlases()) {
      results()->open(atlas);
      QTRY_VERIFY_WITH_TIMEOUT(results()->place() == atlas.file && results()->table(), patience);
      QCOMPARE(results()->choice().view, atlas.choice.view);
      QCOMPARE(results()->choice().measure, atlas.choice.measure);
      QCOMPARE(results()->choice().upright, atlas.choice.upright);
      QCOMPARE(results()->choice().apart, atlas.choice.apart);
      QVERIFY2(results()->choice().only == atlas.choice.only, qPrintable(atlas.title));
      QVERIFY2(!picture()->summary().groups.empty() && picture()->caption().contains(atlas.text), qPrintable(atlas.title));
      QVERIFY2(std::ranges::all_of(
                   results()->table()->states,
                   [](CellState state) { return state == CellState::done || state == CellState::diverged || state == CellState::failed; }),
               qPrintable(atlas.title));
      photograph(results(), "atlas-" + QFileInfo(atlas.file).baseName());
      if (atlas.plans.empty()) continue;
      const std::int64_t last = results()->table()->rows() - 1;
      const TypedRun run = lineOf(atlas.plans, last);
      QVERIFY_EXCEPTION_THROWN(lineOf(atlas.plans, last + 1), Error);
      // The line is that of the row: each axis that is an option has its value.
      for (const ResultAxis& axis : results()->table()->axes)
        if (const auto given = run.given.find("--" + axis.name); given != run.given.end())
          QCOMPARE(given->second, axis.levels[axis.level[static_cast<std::size_t>(last)]]);
      emit picture() -> rowsPicked({last}, {});
      QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().setup().preset == run.id, patience);
    }
  }

  /// The model that is looked at and a pinned one, on sequences of several lengths: the numbers of the command line.
  void modelsAreEvaluated() {
    openSmall();
    window_->action("pin")->trigger();
    clickModel("gru");
    window_->action("evaluate")->trigger();
    EvaluateForm* form = window_->results()->evaluation();
    QVERIFY(form != nullptr && form->isVisible());
    auto* lengths = find<QLineEdit>(form, "evaluate.lengths");
    lengths->setText("8, eight");
    QVERIFY2(!form->startButton()->isEnabled() && form->sentence().contains("eight"), qPrintable(form->sentence()));
    lengths->setText("8, 16, 4");
    find<QSpinBox>(form, "evaluate.sequences")->setValue(5);
    QVERIFY2(form->startButton()->isEnabled(), qPrintable(form->sentence()));
    QTest::mouseClick(form->startButton(), Qt::LeftButton);
    QTRY_VERIFY_WITH_TIMEOUT(results() != nullptr && results()->table(), patience);
    QTRY_VERIFY(window_->results()->evaluation() == nullptr);
    QCOMPARE(results()->choice().across, std::string("length"));
    const ResultAxis& models = results()->table()->axis("model");
    QVERIFY2(models.levels.size() >= 3, "both, and a baseline");
    QCOMPARE(results()->table()->axis("length").levels, (std::vector<std::string>{"4", "8", "16"}));
    photograph(results(), "results-evaluation");
    const std::vector<std::string> words = shell_words(results()->command().toStdString());
    QStringList arguments;
    for (std::size_t i = 1; i < words.size(); ++i) arguments << QString::fromStdString(words[i]);
    const QString folder = folder_.filePath("evaluated");
    QProcess reclab;
    reclab.start(SweepRunner::program(), arguments + QStringList{"--export", folder});
    QVERIFY2(reclab.waitForFinished(patience) && reclab.exitCode() == 0, qPrintable(results()->command()));
    const ResultTable again = read_results((folder + "/evaluation.csv").toStdString());
    QCOMPARE(again.measure("loss").values, results()->table()->measure("loss").values);
    QCOMPARE(again.measure("metric_high").values.size(), results()->table()->measure("metric_high").values.size());
  }

  /// Every picture as vectors that can be read back, with the names of a table as they are, and its numbers as a table.
  void itsFiguresAndNumbersAreFiles() {
    openSmall();
    QByteArray text = "\"a & <b>\",other,score\n";
    for (int a = 1; a <= 3; ++a)
      for (int b = 1; b <= 2; ++b)
        text += QByteArray::number(a) + ',' + QByteArray::number(b) + ',' + QByteArray::number(10.5 * a + b) + '\n';
    openTable(written("odd.csv", text));
    FigureAnswer answer{folder_.filePath("figures/new"), "picture", Panel::Format::svg, {}};
    const QString table = folder_.filePath("numbers.csv");
    FileChooser chooser;
    chooser.save = [&](QWidget*, const QString&, const QString&, const QString&) { return table; };
    chooser.figure = [&](QWidget*, const FigureQuestion&) { return std::optional(answer); };
    window_->setFileChooser(chooser);
    for (const char* view : {"map", "curves", "ranking", "points", "parallel"}) {
      choose("results.view", view);
      for (const Panel::Format format : {Panel::Format::svg, Panel::Format::pdf}) {
        answer.stem = view;
        answer.format = format;
        find<QAction>(results(), "results.saveFigure")->trigger();
        QFile file(answer.file());
        QVERIFY2(file.open(QIODevice::ReadOnly), qPrintable(window_->statusLine()->sentence()));
        const QByteArray written = file.readAll();
        if (format == Panel::Format::pdf) {
          QVERIFY(written.startsWith("%PDF") && written.size() > 1000);
          continue;
        }
        QXmlStreamReader svg(written);
        QString all;
        while (!svg.atEnd())
          if (svg.readNext() == QXmlStreamReader::Characters) all += svg.text();
        QVERIFY2(!svg.hasError(), qPrintable(svg.errorString()));
        QVERIFY2(all.contains("score"), view);
        QVERIFY2(QByteArray(view) == "points" || all.contains("a & <b>"), view);
      }
      find<QAction>(results(), "results.saveTable")->trigger();
      QFile numbers(table);
      QVERIFY(numbers.open(QIODevice::ReadOnly));
      QCOMPARE(QString::fromUtf8(numbers.readAll()), picture()->csv());
    }
    QVERIFY(picture()->csv().startsWith("a & <b>,other,"));
  }

  void aTableThatIsNoneIsSaid() {
    openSmall();
    window_->action("results")->trigger();
    results()->open(written("torn.csv", "a,b,score\n1,2\n"));
    QTRY_VERIFY_WITH_TIMEOUT(results()->sentence().contains("line 2"), patience);
    QVERIFY(results()->table() == nullptr);
    // A name in it is no markup.
    results()->open(written("names.csv", "<b>a</b>,score\n<img src=x>,1\ny,2\n"));
    QTRY_VERIFY_WITH_TIMEOUT(results()->table() != nullptr, patience);
  }

  /// Made with the form, computed, paused and gone on with; then a click opens a cell's run with its settings.
  void aSweepIsMadeComputedAndOpened() {
    openSmall();
    const QString folder = makeSweep("sweep", "reclab train elman --task adding --length 8 --steps 3 --batch 2",
                                     {{"seed", "1, 2"}, {"set.width", "4..8 in 2"}});
    QCOMPARE(form()->sentence(), QString("4 cells."));
    madeIt(folder);
    QCOMPARE(results()->state(), QString("0 of 4 cells are done."));
    QVERIFY(results()->sentence().contains("No cell"));
    QTest::mouseClick(results()->runButton(), Qt::LeftButton);
    QTRY_COMPARE_WITH_TIMEOUT(results()->state(), QString("4 of 4 cells are done."), patience);
    QTRY_VERIFY_WITH_TIMEOUT(!results()->runner()->running(), patience);
    QVERIFY(!results()->runButton()->isEnabled());
    choose("results.view", "curves");
    const std::size_t eight = groupWith({{"set.width", "8"}});
    QCOMPARE(picture()->summary().groups[eight].values, std::int64_t{2});
    QTRY_COMPARE(picture()->rowsAt(picture()->placeOf(eight)).size(), std::size_t{2});
    QTest::mouseClick(picture(), Qt::LeftButton, {}, picture()->placeOf(eight).toPoint());
    QMenu* menu = results()->findChild<QMenu*>("results.rows");
    QVERIFY(menu != nullptr && menu->actions().size() == 2);
    menu->actions()[1]->trigger();
    menu->close();
    QTRY_VERIFY_WITH_TIMEOUT(session().setup().seed == 2 && atRest() && hyperOf(session().trace(), "width") == "8", patience);
    QCOMPARE(session().trainingChoice().steps, std::int64_t{3});
    QCOMPARE(session().trainingChoice().options.batch, std::int64_t{2});
  }

  void aTrainingThatIsKeptIsOpenedWithItsWeights() {
    openSmall();
    const QString folder =
        makeSweep("kept", "reclab train elman --task adding --length 8 --steps 4 --batch 2 --set width=4", {{"seed", "5, 6"}}, true);
    madeIt(folder);
    QTest::mouseClick(results()->runButton(), Qt::LeftButton);
    QTRY_COMPARE_WITH_TIMEOUT(results()->state(), QString("2 of 2 cells are done."), patience);
    choose("results.view", "parallel");
    // The line of the row with seed 6 passes its value at the axis of the seed.
    QSignalSpy wanted(results(), &ResultsWindow::cellWanted);
    emit picture() -> rowsPicked({1}, {});
    QCOMPARE(wanted.size(), 1);
    QVERIFY2(!wanted.front()[1].toString().isEmpty(), "its folder");
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().setup().seed == 6 && !session().setup().weights.empty(), patience);
  }

  /// A pause leaves checkpoints, and what goes on from them ends with the numbers of a sweep that nobody disturbed.
  void aPauseLosesNothing() {
    openSmall();
    const QString line = "reclab train elman --task adding --length 40 --steps 20000 --batch 8 --set width=16";
    const QString folder = makeSweep("paused", line, {{"seed", "1, 2"}});
    madeIt(folder);
    find<QSpinBox>(results(), "results.jobs")->setValue(1);
    QTest::mouseClick(results()->runButton(), Qt::LeftButton);
    QTRY_VERIFY_WITH_TIMEOUT(results()->state().contains("1 in progress"), patience);
    QTest::mouseClick(results()->runButton(), Qt::LeftButton);
    QTRY_VERIFY_WITH_TIMEOUT(!results()->runner()->running() && !results()->reading(), patience);
    // In the middle of a cell, or, where the click met the moment between two of them, with the first one done.
    QTRY_VERIFY2_WITH_TIMEOUT(results()->state().contains("1 with a checkpoint") || results()->state() == "1 of 2 cells are done.",
                              qPrintable(results()->state()), patience);
    QVERIFY2(results()->runButton()->text() != "Pause" && results()->runButton()->isEnabled(), qPrintable(results()->runButton()->text()));
    QTest::mouseClick(results()->runButton(), Qt::LeftButton);
    QTRY_VERIFY_WITH_TIMEOUT(results()->state().startsWith("2 of 2 cells are done"), 3 * patience);
    const ResultTablePtr paused = results()->table();

    const QString other = makeSweep("whole", line, {{"seed", "1, 2"}});
    madeIt(other);
    QTest::mouseClick(results()->runButton(), Qt::LeftButton);
    QTRY_VERIFY_WITH_TIMEOUT(results()->state().startsWith("2 of 2 cells are done"), 3 * patience);
    QCOMPARE(results()->table()->measure("loss").values, paused->measure("loss").values);
  }

  void theFormSaysWhatIsWrong() {
    openSmall();
    makeSweep("wrong", "reclab train elman --task adding --length 8 --steps 3", {{"set.widht", "4, 8"}});
    QVERIFY2(form()->sentence().contains("widht") || form()->makeButton()->isEnabled(), qPrintable(form()->sentence()));
    if (form()->makeButton()->isEnabled()) {
      QTest::mouseClick(form()->makeButton(), Qt::LeftButton);
      QTRY_VERIFY_WITH_TIMEOUT(form()->sentence().contains("width"), patience);  // the nearest name
    }
    QVERIFY(!QFileInfo::exists(folder_.filePath("wrong/cells.jsonl")));
    find<QLineEdit>(form(), "sweep.values0")->setText("4, 4");
    QVERIFY2(form()->sentence().contains("twice") && !form()->makeButton()->isEnabled(), qPrintable(form()->sentence()));
    form()->reject();
    QTRY_VERIFY(form() == nullptr);
  }

  /// A folder that is dropped on the window is that of a sweep, as one that is opened here.
  void itsFolderIsOpenedByADrop() {
    openSmall();
    const QString folder = makeSweep("dropped", "reclab train elman --task adding --length 8 --steps 2 --batch 2", {{"seed", "1, 2"}});
    madeIt(folder);
    results()->close();
    results()->open(knownTable());
    window_->openFile(folder);
    QTRY_VERIFY_WITH_TIMEOUT(results()->isVisible() && results()->place() == folder && results()->table(), patience);
  }
};

int main(int argc, char** argv) { return test::runWindowTest<TestResults>(argc, argv, "results-test"); }
#include "test_results.moc"
