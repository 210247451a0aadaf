// SPDX-License-Identifier: GPL-3.0-or-later
// A lesson by hand, from the first look to the next day: three models learn the adding problem beside one another, and are looked at,
// compared, forked, exported, closed and opened again. At each of its moments every panel is brought to the front, and each number that
// stands there is what the engine has.
#include <QCheckBox>
#include <QDir>
#include <QDirIterator>
#include <QSignalSpy>
#include <QTableWidget>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "files/archive.h"
#include "gui/comparing/compare_dialog.h"
#include "gui/comparing/side_by_side.h"
#include "gui/session/kept/training_store.h"
#include "gui/views/scrubber.h"
#include "training_test.h"
#include "witness.h"

using namespace reclab;
using test::patience;

class TestLesson : public test::TrainingTest {
  Q_OBJECT

 private:
  /// A table of data as a panel gives it: names with commas are in quotes.
  static QStringList cellsOf(const QString& line) {
    QStringList cells(1);
    bool quoted = false;
    for (const QChar c : line) {
      if (c == u'"')
        quoted = !quoted;
      else if (c == u',' && !quoted)
        cells << QString();
      else
        cells.back() += c;
    }
    return cells;
  }

  /// The numbers that the engine has of these kinds, with their powers of ten and the moduli of what is complex.
  const std::set<double>& numbersOf(const TracePtr& trace, const Kinds& kinds) {
    auto& found = numbers_[{trace.get(), kinds_text(kinds)}];
    if (!found.empty()) return found;
    for (const KindInfo& row : kind_table())
      if (kinds.has(row.kind))
        for (const TraceArray* array : trace->of(row.kind)) {
          if (array->real) found.insert(array->real->begin(), array->real->end());
          if (array->complex)
            for (const auto& z : *array->complex) found.insert({z.real(), z.imag(), std::abs(z)});
        }
    held_.push_back(trace);
    return found;
  }
  static std::string kinds_text(const Kinds& kinds) {
    std::string text;
    for (const KindInfo& row : kind_table()) text += kinds.has(row.kind) ? '1' : '0';
    return text;
  }

  /// Each number of a panel's data is one of the engine's, of the run that the column names.
  void numbersAreTheEngines(const Panel* panel) {
    static const QStringList plain{"output",   "gradients", "gradient-lab",
                                   "lyapunov", "gating",    "spectrum"};  // others show sums, directions, curves of learning
    if (!plain.contains(panel->id()) || !panel->emptyReason().isEmpty()) return;
    const QStringList lines = panel->dataAsCsv().split('\n', Qt::SkipEmptyParts);
    QVERIFY2(lines.size() > 1, qPrintable(panel->id()));
    const QStringList head = cellsOf(lines.front());
    const qsizetype run = head.indexOf("run");
    int numbers = 0;
    for (const QString& line : lines.mid(1)) {
      const QStringList cells = cellsOf(line);
      for (qsizetype i = 0; i < cells.size(); ++i) {
        static const QStringList places{"step",        "time",        "layer",       "eigenvalue",  "run", "mean",
                                        "quantile_10", "quantile_90", "share_below", "share_above", "mask"};
        const QString name = head.value(i);
        bool isNumber = false;
        const double value = cells[i].toDouble(&isNumber);
        if (!isNumber || !std::isfinite(value) || places.contains(name) || name.startsWith("mean") || name.startsWith("target/")) continue;
        const Panel::Run* of = &witness_.made().front();
        for (const Panel::Run& one : witness_.made())
          if (!one.label.isEmpty() && (name.endsWith('[' + one.label + ']') || (run >= 0 && cells.value(run) == one.label))) of = &one;
        ++numbers;
        if (!numbersOf(of->trace, panel->needs()).contains(value))
          QFAIL(qPrintable(QStringLiteral("%1, %2: the engine has no %3 of %4").arg(panel->id(), name, cells[i], of->label)));
      }
    }
    QVERIFY2(numbers > 10, qPrintable(panel->id()));
    numbers_of_engine_ += numbers;
  }

  /// Everything that there is to see, panel by panel.
  void lookAtAll(const char* moment) {
    ++moments_;
    for (PanelDock* dock : window_->area()->docks()) {
      window_->area()->open(dock);
      QVERIFY2(QTest::qWaitFor([&] { return dock->inSight() && test::Witness::rests(*window_); }, patience),
               qPrintable(QString("%1: %2 does not come to rest").arg(moment, dock->panel()->id())));
      QStringList wrong;
      QElapsedTimer since;
      since.start();
      do {
        QTest::qWait(1);
        wrong = witness_.look(*window_);
      } while (!wrong.isEmpty() && since.elapsed() < 5000);
      QVERIFY2(wrong.isEmpty(), qPrintable(QString("%1, with %2 in front:\n%3").arg(moment, dock->panel()->id(), wrong.join('\n'))));
      numbersAreTheEngines(dock->panel());
      if (QTest::currentTestFailed()) return;
    }
    headlines(moment);
    scrubberSaysTheInput();
    photograph(window_.get(), QStringLiteral("lesson-%1").arg(moments_));
  }

  /// Numbers in the headers of panels, by their definitions.
  void headlines(const char* moment) {
    const Trace& truth = *witness_.made().front().trace;
    PanelDock* spectrum = window_->area()->dock("spectrum");
    window_->area()->open(spectrum);
    spectrum->catchUp();
    const TraceArray* eigenvalues = truth.find("spectrum/0");
    QVERIFY2(eigenvalues && eigenvalues->complex, moment);
    const std::int64_t of = eigenvalues->row_size();
    std::int64_t row = -1;
    for (std::size_t i = 0; i < truth.steps.size(); ++i)
      if (truth.steps[i] == window_->time()->step()) row = static_cast<std::int64_t>(i);
    if (eigenvalues->shape[0] == 1) row = 0;
    QVERIFY(row >= 0 && row < eigenvalues->shape[0]);
    double largest = 0.0;
    for (std::int64_t i = 0; i < of; ++i)
      largest = std::max(largest, std::abs((*eigenvalues->complex)[static_cast<std::size_t>(row * of + i)]));
    QVERIFY2(spectrum->panel()->headline().contains(number(largest, 4)) || spectrum->panel()->headline().contains(number(largest, 3)),
             qPrintable(QString("%1: %2, and |λ|max is %3").arg(moment, spectrum->panel()->headline()).arg(largest, 0, 'g', 8)));
  }

  void scrubberSaysTheInput() {
    const Sequence& sequence = session().setup().sequence->sequence;
    const auto row = static_cast<std::size_t>(window_->time()->step());
    QStringList texts;
    for (const QLabel* label : window_->scrubber()->findChildren<QLabel*>()) texts << label->toolTip() << label->text();
    const QString where = QStringLiteral("step %1 of %2").arg(grouped(static_cast<std::int64_t>(row)), grouped(sequence.length)),
                  value = QLocale::c().toString(sequence.input[row * static_cast<std::size_t>(sequence.width)], 'g', 4);
    QVERIFY2(texts.contains(where), qPrintable(texts.join(" | ")));
    QVERIFY2(texts.join(" | ").contains("= " + value), qPrintable(texts.join(" | ") + " and not " + value));
    if (!sequence.mask.empty() && sequence.mask[row] > 0.0)
      QVERIFY2(texts.join(" | ").contains(
                   "target " + QLocale::c().toString(sequence.target[row * static_cast<std::size_t>(sequence.target_width)], 'g', 4)),
               qPrintable(texts.join(" | ")));
  }

  void train() {
    window_->action("train")->trigger();
    QTRY_VERIFY_WITH_TIMEOUT(session().training(), patience);
    QTRY_VERIFY_WITH_TIMEOUT(!session().training() && test::Witness::rests(*window_), patience);
  }

  /// The table of what differs, by hand: every cell of numbers, and every setting.
  void tableIsTrue() {
    window_->action("differences")->trigger();
    auto* dialog = window_->findChild<CompareDialog*>();
    QVERIFY(dialog != nullptr);
    for (QCheckBox* box : dialog->findChildren<QCheckBox*>()) box->setChecked(true);  // settings that are alike too
    const QTableWidget* table = dialog->table();
    QCOMPARE(static_cast<std::size_t>(table->columnCount()), witness_.made().size());
    int cells = 0;
    for (int column = 0; column < table->columnCount(); ++column) {
      const Trace& truth = *witness_.made()[static_cast<std::size_t>(column)].trace;
      double weights = 0.0, radius = 0.0;
      for (const TraceArray* array : truth.of(Kind::param)) weights += static_cast<double>(array->size());
      for (const TraceArray* array : truth.of(Kind::spectrum))
        for (const auto& z : *array->complex) radius = std::max(radius, std::abs(z));
      const auto says = [&](const QString& row, const QString& value) {
        for (int i = 0; i < table->rowCount(); ++i)
          if (table->verticalHeaderItem(i)->text() == row) {
            QVERIFY2(table->item(i, column)->text() == value,
                     qPrintable(QString("%1 of run %2: %3, it is %4").arg(row).arg(column).arg(table->item(i, column)->text(), value)));
            ++cells;
            return;
          }
        QFAIL(qPrintable("there is no row " + row));
      };
      says("value of the loss", number(truth.info.loss_value, 4));
      says("number of weights", number(weights, 4));
      says("largest |λ|", number(radius, 4));
      if (QTest::currentTestFailed()) return;
    }
    QCOMPARE(cells, 3 * table->columnCount());
    dialog->close();
  }

  /// Side by side, each run has panels of its own.
  void sideBySideIsTrue() {
    window_->action("sideBySide")->trigger();
    SideBySide* side = window_->sideBySide();
    QVERIFY(side != nullptr);
    QTRY_VERIFY_WITH_TIMEOUT(side->columns() == witness_.made().size() && test::Witness::rests(*window_), patience);
    int panels_seen = 0;
    for (const QString& id : side->kinds())
      for (std::size_t i = 0; i < side->columns(); ++i) {
        Panel* panel = side->panel(id, i);
        if (panel == nullptr || id == "timing" || id == "steps") continue;
        const std::unique_ptr<Panel> fresh(std::ranges::find(panels(), id, &PanelInfo::id)->make(nullptr));
        fresh->resize(panel->size());
        fresh->setChoices(panel->choices());
        fresh->setTrace(witness_.made()[i].trace);
        fresh->setTime(window_->time()->step());
        fresh->finish();
        panel->finish();
        QString shown = panel->dataAsCsv(), is = fresh->dataAsCsv();
        for (QString* text : {&shown, &is}) text->replace(",-", ",");  // of directions
        QVERIFY2(shown == is && !shown.isEmpty(),
                 qPrintable(QString("%1 of run %2: %3 and %4").arg(id).arg(i).arg(shown.left(300), is.left(300))));
        ++panels_seen;
      }
    QVERIFY(panels_seen >= 3);
    window_->action("sideBySide")->trigger();
    QTRY_VERIFY_WITH_TIMEOUT(test::Witness::rests(*window_), patience);
  }

  /// What is exported is what is shown: every array, and the weights of the training.
  void exportsAreTrue() {
    const QString place = folder_.filePath("run"), learned = folder_.filePath("training");
    QSignalSpy exported(&session(), &SessionController::exported);
    session().exportRun(place, false);
    QTRY_COMPARE_WITH_TIMEOUT(exported.count(), 1, patience);
    const Trace& truth = *witness_.made().front().trace;
    int arrays = 0;
    for (QDirIterator files(place, {"*.npz"}, QDir::Files, QDirIterator::Subdirectories); files.hasNext();) {
      const Archive file(files.next().toStdString());
      for (const std::string& name : file.names()) {
        const TraceArray* its = truth.find(name);
        if (its == nullptr) continue;
        const NpyArray array = file.read(name);
        if (its->real && array.shape.size() + 1 == its->shape.size()) {  // the state at the end
          QVERIFY2(array.real == std::vector<double>(its->real->end() - its->row_size(), its->real->end()), name.c_str());
        } else if (its->real) {
          QVERIFY2(array.real == *its->real, name.c_str());
        }
        if (its->complex) QVERIFY2(array.complex == *its->complex, name.c_str());
        ++arrays;
      }
    }
    QVERIFY2(arrays > 10, qPrintable(QString::number(arrays)));
    session().exportTraining(learned);
    QTRY_VERIFY_WITH_TIMEOUT(QFile::exists(learned + "/training.json"), patience);
    const Archive weights((learned + "/weights.npz").toStdString());
    int compared = 0;
    const LearningCurve* current = session().learning()->find(session().learning()->current);
    QVERIFY(current && session().learning()->shown == current->training && session().learning()->shown_step == current->done);
    for (const std::string& name : weights.names())
      if (const TraceArray* its = truth.find(name)) {
        QVERIFY2(weights.read(name).real == *its->real, name.c_str());
        ++compared;
      }
    QVERIFY(compared >= 4);
  }

  test::Witness witness_;
  std::map<std::pair<const Trace*, std::string>, std::set<double>> numbers_;
  std::vector<TracePtr> held_;  ///< so that no other trace has the place of one
  int moments_ = 0, numbers_of_engine_ = 0;

 private slots:
  void cleanup() { close(); }

  void everyNumberIsTheEngines() {
    test::forgetAll();
    QSettings().setValue("hintSeen", true);
    QDir(TrainingStore::standardFolder()).removeRecursively();
    open("elman", "adding", 40);
    window_->resize(1900, 1100);  // with room for the settings beside the gradient lab
    session().setTimingPatience(std::chrono::hours(1), std::chrono::hours(1));
    witness_.chose(bar()->settings()->choice());
    lookAtAll("as it is opened");

    for (const char* id : {"gru", "lstm"}) {
      Setup beside = session().setup();
      beside.preset = id;
      QCOMPARE(window_->pins()->add(beside, nullptr, {}), QString());
    }
    lookAtAll("with GRU and LSTM beside it");

    train();
    QCOMPARE(session().learning()->trainings.size(), std::size_t{3});
    lookAtAll("after 40 steps of each");

    TrainingStrip* strip = bar()->strip();
    QTest::mouseClick(strip, Qt::LeftButton, {}, QPoint(strip->pixelOf(15), strip->height() / 2));
    QTRY_VERIFY_WITH_TIMEOUT(looked() && looked()->steps < 40 && looked()->steps > 0, patience);
    lookAtAll("back along the time of training");

    for (int i = 0; i < 4; ++i) QTest::keyClick(window_->scrubber()->strip(), Qt::Key_Right);
    window_->time()->setRange(4, 16);
    lookAtAll("at another step of a part of the sequence");
    window_->time()->resetRange();

    QTest::keyClick(strip, Qt::Key_End);
    QTRY_VERIFY_WITH_TIMEOUT(looked() && looked()->steps == 40 && test::Witness::rests(*window_), patience);
    clickModel("gru");
    QTRY_VERIFY_WITH_TIMEOUT(looked() && looked()->steps == 40, patience);
    lookAtAll("GRU, picked in the list");
    tableIsTrue();
    sideBySideIsTrue();

    QTest::mouseClick(strip, Qt::LeftButton, {}, QPoint(strip->pixelOf(20), strip->height() / 2));
    QTRY_VERIFY_WITH_TIMEOUT(looked() && looked()->steps < 40, patience);
    click(bar()->forkButton());
    TrainingChoice slower = bar()->settings()->choice();
    slower.options.rate.rate = 0.001;
    slower.steps = 25;
    bar()->settings()->setChoice(slower);
    witness_.chose(slower);
    lookAtAll("a fork that waits");
    train();
    QCOMPARE(session().learning()->trainings.size(), std::size_t{4});
    lookAtAll("the fork, trained");
    exportsAreTrue();

    QTest::keyClick(window_.get(), Qt::Key_Z, Qt::ControlModifier);
    QTRY_VERIFY_WITH_TIMEOUT(test::Witness::rests(*window_), patience);
    lookAtAll("after an undo");

    const QString facts = window_->statusLine()->facts().section(" | ", 3);  // but for its form and times
    close();
    window_ = std::make_unique<MainWindow>(&look_, Options{});
    window_->setFileChooser({});
    session().setTimingPatience(std::chrono::hours(1), std::chrono::hours(1));
    window_->show();
    QVERIFY(QTest::qWaitForWindowExposed(window_.get()));
    window_->activateWindow();
    QTRY_VERIFY_WITH_TIMEOUT(session().library() && session().trace() && test::Witness::rests(*window_), patience);
    QCOMPARE(session().learning()->trainings.size(), std::size_t{4});
    QCOMPARE(window_->pins()->pins().size(), std::size_t{2});
    QCOMPARE(window_->statusLine()->facts().section(" | ", 3), facts);
    lookAtAll("opened again");
    QCOMPARE(moments_, 10);
    qInfo("%d values and texts compared, and %d numbers of tables found among the engine's", witness_.compared(), numbers_of_engine_);
  }
};

int main(int argc, char** argv) { return test::runWindowTest<TestLesson>(argc, argv, "lesson-test"); }
#include "test_lesson.moc"
