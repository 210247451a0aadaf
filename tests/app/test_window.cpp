// SPDX-License-Identifier: GPL-3.0-or-later
// The window with real events: what a hand does, and what is on the screen and on the disk after it.
#include <QApplication>
#include <QCheckBox>
#include <QComboBox>
#include <QDir>
#include <QElapsedTimer>
#include <QJsonDocument>
#include <QJsonObject>
#include <QLabel>
#include <QLineEdit>
#include <QProgressBar>
#include <QPushButton>
#include <QSettings>
#include <QSignalSpy>
#include <QSlider>
#include <QSvgRenderer>
#include <QTest>
#include <QToolButton>
#include <algorithm>
#include <cmath>
#include <utility>

#include "files/npz.h"
#include "gui/docks/panel_area.h"
#include "gui/literature/models_view.h"
#include "gui/views/inspector_view.h"
#include "gui/views/scrubber.h"
#include "gui/views/sequence_view.h"
#include "gui/views/status_line.h"
#include "gui/views/whole_box.h"
#include "gui/window/main_window.h"
#include "load.h"
#include "panels/steps/steps_panel.h"
#include "panels/timing/timing.h"
#include "places.h"
#include "plot/plot.h"
#include "safetensors.h"
#include "window_test.h"

using namespace reclab;
using test::patience;

class TestWindow : public test::WindowTest {
  Q_OBJECT

 private:
  /// A desk that is soon idle.
  void open(const Options& options) {
    WindowTest::open(options);
    session().setTimingPatience(std::chrono::milliseconds(300), std::chrono::milliseconds(0));
  }
  /// What a newcomer sees, in place of the window that is there.
  void openFirst() {
    close();
    test::forgetAll();
    open({});
  }
  /// How many panels have a place, in front of others or behind.
  qsizetype shownDocks() const {
    return std::ranges::count_if(window_->area()->docks(), [](const PanelDock* dock) { return !dock->isHidden(); });
  }
  /// Brings every panel to the front once, and waits until it has something to show, or says that its model has nothing of the kind.
  void fillAll() {
    for (PanelDock* dock : window_->area()->docks()) {
      dock->raise();
      QTRY_VERIFY2_WITH_TIMEOUT(dock->answered(), qPrintable(dock->panel()->id()), patience);
    }
  }
  QToolButton* buttonOf(const QString& action) {
    for (QToolButton* button : window_->findChildren<QToolButton*>())
      if (button->defaultAction() == window_->action(action)) return button;
    return nullptr;
  }

 private slots:
  void init() {
    test::forgetAll();
    open(onWaves(200));
  }
  void cleanup() { close(); }

  void theStartFillsAllViews() {
    openFirst();
    QCOMPARE(session().setup().preset, std::string("lstm"));
    QCOMPARE(session().trace()->info.input_name, std::string("sunspots.csv"));
    QCOMPARE(window_->area()->docks().size(), panels().size());
    for (PanelDock* dock : window_->area()->docks()) {
      dock->raise();  // two share a place, as tabs
      QVERIFY2(dock->isVisible(), qPrintable(dock->panel()->id()));
      QTRY_VERIFY2_WITH_TIMEOUT(dock->answered(), qPrintable(dock->panel()->id() + ": " + dock->panel()->emptyReason()), patience);
      QVERIFY(dock->panel()->width() >= 200 && dock->panel()->height() >= 120);
    }
    QVERIFY(window_->statusLine()->facts().contains("CPU"));
    QVERIFY(window_->statusLine()->facts().contains("float64"));
  }

  void aLongSentenceEndsInDotsWhereItsRoomEnds() {
    session().setTimingPatience(std::chrono::minutes(10), std::chrono::milliseconds(0));
    QSignalSpy more(&session(), &SessionController::traceChanged);
    while (more.wait(700)) {  // then nothing comes that would bring the facts back meanwhile
    }
    StatusLine* line = window_->statusLine();
    line->say(QString("a sentence that goes on ").repeated(40), Tone::info);
    const auto labels = line->findChildren<QLabel*>();
    const auto words = std::find_if(labels.begin(), labels.end(), [&](QLabel* one) { return one->toolTip() == line->sentence(); });
    QVERIFY(words != labels.end());
    const auto fits = [&] {
      return (*words)->text().endsWith("…") && (*words)->fontMetrics().horizontalAdvance((*words)->text()) <= (*words)->width();
    };
    QApplication::processEvents();  // what ran has its place now
    const int width = (*words)->width();
    QVERIFY(fits());
    line->setRun(nullptr);
    QTRY_VERIFY((*words)->width() > width);
    line->say(line->sentence() + "now", Tone::info);
    QVERIFY(fits());
    line->setRun(session().trace());
    QTRY_COMPARE((*words)->width(), width);
    QVERIFY(fits());
  }

  void anotherNumberInATitleLaysOutNothing() {
    struct Layouts : QObject {
      int asked = 0;
      bool eventFilter(QObject*, QEvent* event) override {
        asked += event->type() == QEvent::LayoutRequest;
        return false;
      }
    } layouts;
    session().setTimingPatience(std::chrono::minutes(10), std::chrono::milliseconds(0));
    QSignalSpy more(&session(), &SessionController::traceChanged);
    while (more.wait(700)) {  // then nothing comes that has another number of its own
    }
    window_->area()->installEventFilter(&layouts);
    FlatHeader* header = window_->area()->dock("spectrum")->header();
    for (const char* number : {"1.25", "another number"}) {
      header->setHeadline(number);
      QCoreApplication::sendPostedEvents();
    }
    QCOMPARE(layouts.asked, 0);
    const auto labels = header->findChildren<QLabel*>();
    QVERIFY(std::ranges::any_of(labels, [](const QLabel* one) { return one->text() == "another number" && one->isVisible(); }));
  }

  void aClickInTheTreePicksAModel() {
    const TracePtr before = session().trace();
    clickModel("lru");
    QCOMPARE(session().trace()->info.preset, std::string("lru"));
    QCOMPARE(session().trace()->info.input_name, before->info.input_name);  // on the same sequence
    // One of the three large buttons.
    QPushButton* mamba = nullptr;
    for (QPushButton* button : window_->models()->findChildren<QPushButton*>())
      if (button->property("preset").toString() == "mamba") mamba = button;
    QVERIFY(mamba != nullptr);
    QTest::mouseClick(mamba, Qt::LeftButton);
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().trace()->info.preset == "mamba", patience);
    QVERIFY(window_->models()->itemOf("mamba")->isSelected());
    // Undo goes back one model at a time.
    QTest::keyClick(window_.get(), Qt::Key_Z, Qt::ControlModifier);
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().trace()->info.preset == "lru", patience);
  }

  void theSearchNarrowsTheTree() {
    QTest::keyClicks(window_->models()->searchField(), "mamba");
    QVERIFY(!window_->models()->itemOf("mamba")->isHidden());
    QVERIFY(window_->models()->itemOf("lstm")->isHidden());
  }

  void aSliderRunsWhileItMoves() {
    QTRY_VERIFY_WITH_TIMEOUT(window_->inspector()->slider("width") != nullptr, patience);
    QSlider* slider = window_->inspector()->slider("width");
    const QString width = hyperOf(session().trace(), "width");
    const int undoBefore = window_->undoStack()->count();
    const auto at = [&](double share) { return QPoint(static_cast<int>(6 + share * (slider->width() - 12)), slider->height() / 2); };
    const double from = static_cast<double>(slider->value()) / slider->maximum();
    QSignalSpy shown(&session(), &SessionController::traceChanged);
    QTest::mousePress(slider, Qt::LeftButton, {}, at(from));
    QVERIFY(slider->isSliderDown());
    // Towards a smaller model, in small steps, until something was drawn while the button is still down.
    int moves = 0;
    for (; moves < 200 && (moves < 10 || shown.count() < 2); ++moves) {
      QTest::mouseMove(slider, at(from - 0.02 * (1 + moves % 10)));
      QTest::qWait(30);
    }
    QVERIFY2(shown.count() >= 2, "no run was shown while the slider moved");
    const auto last = shown.back().front().value<TracePtr>();
    QVERIFY(hyperOf(last, "width") != width);
    QTest::mouseRelease(slider, Qt::LeftButton, {}, at(from - 0.2));
    const QString wanted = QString::fromStdString(session().setup().settings().front().second);
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && hyperOf(session().trace(), "width") == wanted, patience);
    // The whole way is one thing to undo.
    QCOMPARE(window_->undoStack()->count(), undoBefore + 1);
    window_->undoStack()->undo();
    QTRY_COMPARE_WITH_TIMEOUT(hyperOf(session().trace(), "width"), width, patience);
    window_->undoStack()->redo();
    QTRY_COMPARE_WITH_TIMEOUT(hyperOf(session().trace(), "width"), wanted, patience);
  }

  void theStripScrubsAndBrushes() {
    TimeStrip* strip = window_->scrubber()->strip();
    const std::int64_t length = window_->time()->length();
    QTest::mousePress(strip, Qt::LeftButton, {}, {strip->pixelOf(length / 4), strip->height() / 2});
    QCOMPARE(window_->time()->step() > length / 4 - length / 50, true);
    QTest::mouseMove(strip, {strip->pixelOf(length / 2), strip->height() / 2});
    QTest::mouseRelease(strip, Qt::LeftButton, {}, {strip->pixelOf(length / 2), strip->height() / 2});
    QVERIFY(std::abs(static_cast<double>(window_->time()->step() - length / 2)) <= static_cast<double>(length) / 50.0);
    const std::int64_t at = window_->time()->step();
    QTest::keyClick(window_.get(), Qt::Key_Right);
    QCOMPARE(window_->time()->step(), at + 1);
    QTest::keyClick(window_.get(), Qt::Key_Left);
    QTest::keyClick(window_.get(), Qt::Key_Left);
    QCOMPARE(window_->time()->step(), at - 1);
    // A brushed range is every panel's range, and a double-click gives all back.
    QSignalSpy ranges(window_->time(), &TimeLink::rangeChanged);
    QTest::mousePress(strip, Qt::LeftButton, Qt::ShiftModifier, {strip->pixelOf(length / 3), 10});
    QTest::mouseMove(strip, {strip->pixelOf(2 * length / 3), 10});
    QTest::mouseRelease(strip, Qt::LeftButton, Qt::ShiftModifier, {strip->pixelOf(2 * length / 3), 10});
    QTRY_VERIFY(!ranges.isEmpty());
    QVERIFY(window_->time()->first() > length / 4 && window_->time()->last() < 3 * length / 4);
    QTest::mouseDClick(strip, Qt::LeftButton, {}, {strip->pixelOf(length / 2), 10});
    QTRY_VERIFY(window_->time()->whole());
  }

  void spacePlaysAndPauses() {
    window_->time()->setStep(0);
    QTest::keyClick(window_.get(), Qt::Key_Space);
    QVERIFY(window_->scrubber()->playing());
    QTRY_VERIFY(window_->time()->step() > 20);
    QTest::keyClick(window_.get(), Qt::Key_Space);
    QVERIFY(!window_->scrubber()->playing());
    const std::int64_t at = window_->time()->step();
    QTest::qWait(150);
    QCOMPARE(window_->time()->step(), at);
  }

  void spaceInAFieldIsText() {
    QLineEdit* field = window_->models()->searchField();
    QVERIFY(field != nullptr);
    field->setFocus();
    QTest::keyClick(field, Qt::Key_Space);
    QVERIFY(!window_->scrubber()->playing());
    QCOMPARE(field->text(), QString(" "));
  }

  void exportedFilesReadBack() {
    fillAll();
    const QString out = folder_.filePath("out");
    window_->setFileChooser({{},
                             {},
                             [&](QWidget*, const QString&, const QString&) { return out; },
                             [&](QWidget*, const FigureQuestion& question) -> std::optional<FigureAnswer> {
                               return FigureAnswer{out, {}, question.format, {}};
                             }});

    window_->action("figures.svg")->trigger();
    window_->action("figures.png")->trigger();
    window_->action("figures.pdf")->trigger();
    window_->action("exportData")->trigger();
    for (const PanelInfo& info : panels()) {
      const Panel* panel = window_->area()->dock(info.id)->panel();
      const QString stem = QDir(out).filePath(stemOf(*panel, "lstm"));
      QVERIFY2(!panel->isOfRun() || stem.endsWith("/lstm-" + info.id), qPrintable(stem));
      if (!panel->emptyReason().isEmpty()) {  // said, and no file
        for (const char* suffix : {".svg", ".png", ".pdf", ".csv"}) QVERIFY2(!QFile::exists(stem + suffix), qPrintable(stem));
        continue;
      }
      QVERIFY2(QSvgRenderer(stem + ".svg").isValid(), qPrintable(stem));
      const QImage picture(stem + ".png");
      QVERIFY2(picture.width() > 100 && picture.height() > 60, qPrintable(stem));
      QFile pdf(stem + ".pdf"), data(stem + ".csv");
      QVERIFY(pdf.open(QIODevice::ReadOnly) && pdf.read(5) == "%PDF-");
      QVERIFY2(data.open(QIODevice::ReadOnly), qPrintable(stem));
      const QList<QByteArray> lines = data.readAll().trimmed().split('\n');
      QVERIFY2(lines.size() > 1, qPrintable(stem));
      const auto cells = [](const QByteArray& line) {  // a comma between quotes is part of a cell
        bool quoted = false;
        return std::ranges::count_if(line, [&](char c) { return c == '"' ? (quoted = !quoted, false) : c == ',' && !quoted; });
      };
      QCOMPARE(cells(lines[0]), cells(lines[1]));
    }

    QSignalSpy exported(&session(), &SessionController::exported);
    QTest::keyClick(window_.get(), Qt::Key_E, Qt::ControlModifier);
    QVERIFY(exported.wait(patience));
    QFile manifest(QDir(out).filePath("manifest.json"));
    QVERIFY(manifest.open(QIODevice::ReadOnly));
    const QJsonObject said = QJsonDocument::fromJson(manifest.readAll()).object();
    QCOMPARE(said["preset"].toString(), QString("lstm"));
    const NpzFile arrays(QDir(out).filePath("trace.npz").toStdString());
    const std::int64_t length = session().setup().sequence->sequence.length;
    QCOMPARE(arrays.read("input").shape, (Shape{length, 2}));
    QCOMPARE(arrays.read("spectrum/0").shape.front(), length);  // in full, though the screen had fewer
    QVERIFY(arrays.has("param/0/weight_hh"));
  }

  void anUnwritableFolderIsASentence() {
    window_->setFileChooser({{},
                             {},
                             [](QWidget*, const QString&, const QString&) { return QString("/proc/nowhere"); },
                             [](QWidget*, const FigureQuestion& question) -> std::optional<FigureAnswer> {
                               return FigureAnswer{"/proc/nowhere", {}, question.format, {}};
                             }});
    window_->action("figures.png")->trigger();
    QVERIFY(window_->banner()->sentence().contains("/proc/nowhere"));
    window_->banner()->hide();
    window_->action("exportRun")->trigger();
    QTRY_VERIFY_WITH_TIMEOUT(window_->banner()->sentence().contains("/proc/nowhere"), patience);
  }

  void pinnedRunsStay() {
    QTest::mouseClick(buttonOf("pin"), Qt::LeftButton);
    clickModel("gru");
    const auto chips = [&] { return window_->findChildren<QFrame*>("chip").size(); };
    QCOMPARE(chips(), qsizetype(1));
    auto* chip = window_->findChild<QFrame*>("chip");
    QTest::mouseClick(chip->findChild<QToolButton*>(), Qt::LeftButton);
    QTRY_COMPARE(chips(), qsizetype(0));
  }

  void theFormsAreTimedAsChosen() {
    // Whatever is shown beside a run is of that run's model, in all of this.
    QStringList stale;
    connect(&session(), &SessionController::traceChanged, this, [&](const TracePtr& trace) {
      if (trace->timed && trace->timed->preset != trace->info.preset) stale << QString::fromStdString(trace->timed->preset);
    });
    auto* panel = panelOf<TimingPanel>();
    QTRY_VERIFY_WITH_TIMEOUT(panel->emptyReason().isEmpty(), patience);  // by itself, beside the run
    QTest::mouseDClick(window_->area()->dock("timing")->header(), Qt::LeftButton, {}, {40, 10});
    auto* forms = panel->findChild<QToolButton*>("field");
    auto* start = panel->findChild<QPushButton*>("timingStart");
    QTRY_VERIFY(forms->isVisible() && start->isVisible());
    const auto lengths = [&](const std::string& form) {
      const TraceArray* found = session().trace()->find("timing/" + form + "/length");
      return found ? *found->real : std::vector<double>();
    };
    const auto pick = [](QComboBox* box, const QString& text) {
      box->setFocus();
      for (int guard = 0; box->currentText() != text && guard < 40; ++guard)
        QTest::keyClick(box, box->currentIndex() < box->findText(text) ? Qt::Key_Down : Qt::Key_Up);
      QCOMPARE(box->currentText(), text);
    };
    const auto idle = [&] { return start->text() == "Time the forms"; };
    const auto press = [&] { QTest::mouseClick(start, Qt::LeftButton); };

    // Longer than anyone waits: its progress is seen, and it is stopped.
    pick(panel->findChild<QComboBox*>("timingTo"), "65,536");
    if (!idle()) press();  // what is timed by itself may still go on
    QVERIFY(idle());
    press();
    QTRY_VERIFY_WITH_TIMEOUT(!idle(), patience);  // at once, or as soon as what runs is done
    auto* bar = panel->findChild<QProgressBar*>();
    QTRY_VERIFY_WITH_TIMEOUT(bar->isVisible() && panel->caption().contains("%"), patience);
    QTRY_VERIFY_WITH_TIMEOUT(bar->value() > 0, patience);
    press();
    QVERIFY(idle() && !bar->isVisible());
    QSignalSpy shown(&session(), &SessionController::traceChanged);

    // One form at two lengths, in a batch and narrower; nothing of the one that was stopped comes after it.
    QTest::mouseClick(forms, Qt::LeftButton);
    for (QCheckBox* box : panel->findChildren<QCheckBox*>()) {
      QVERIFY(box->isVisible());
      if (box->text() != "sequential") QTest::mouseClick(box, Qt::LeftButton, {}, {8, box->height() / 2});
    }
    QTest::keyClick(panel->findChild<QCheckBox*>()->window(), Qt::Key_Escape);
    pick(panel->findChild<QComboBox*>("timingTo"), "128");
    pick(panel->findChild<QComboBox*>("timingBatch"), "2");
    pick(panel->findChild<QComboBox*>("timingWidth"), "8");
    QCOMPARE(shown.size(), 0);
    press();
    // Where other work begins meanwhile, it is stopped and begins anew: the caption tells when it is whole.
    QTRY_VERIFY2_WITH_TIMEOUT(idle() && panel->caption().startsWith("CPU, float64, batch 2, width 8"), qPrintable(panel->caption()),
                              patience);
    QCOMPARE(lengths("sequential"), (std::vector<double>{64, 128}));
    for (const TraceArray* array : session().trace()->matching("timing/"))
      if (QString::fromStdString(array->key).count('/') > 1)
        QVERIFY2(array->key.starts_with("timing/sequential/") || array->key.starts_with("timing/roof/"), array->key.c_str());
    QCOMPARE(session().trace()->timed->batch, std::int64_t{2});
    QCOMPARE(hyperOf(session().trace(), "width") == "8", false);  // the run keeps its own

    // Another precision is timed anew, without being asked.
    QComboBox* precision = nullptr;
    for (QComboBox* box : window_->findChildren<QComboBox*>())
      if (box->findText("float32") >= 0 && !panel->isAncestorOf(box)) precision = box;
    QVERIFY(precision != nullptr);
    pick(precision, "float32");
    QTRY_VERIFY_WITH_TIMEOUT(atRest() && session().trace()->timed && session().trace()->timed->dtype == "float32" && idle(), patience);
    QCOMPARE(lengths("sequential"), (std::vector<double>{64, 128}));
    QTRY_VERIFY2_WITH_TIMEOUT(panel->caption().startsWith("CPU, float32, batch 2, width 8"), qPrintable(panel->caption()), patience);

    // Another model, while this one is being timed: its own curves, and its own forms and width.
    pick(panel->findChild<QComboBox*>("timingTo"), "65,536");
    press();
    QTRY_VERIFY_WITH_TIMEOUT(!idle(), patience);  // at once, or as soon as what runs is done
    clickModel("gru");
    QTRY_VERIFY_WITH_TIMEOUT(session().trace()->timed != nullptr, patience);
    QCOMPARE(session().trace()->timed->preset, std::string("gru"));
    QVERIFY(panel->choice().at("forms").empty() && panel->choice().at("width").empty());
    QCOMPARE(std::ranges::count(panel->choice().at("lengths"), ','), std::ptrdiff_t{10});
    QVERIFY2(stale.isEmpty(), qPrintable(stale.join(' ')));

    // What was chosen is chosen the next time.
    close();
    open(onWaves(200));
    panel = panelOf<TimingPanel>();
    QCOMPARE(panel->choice().at("batch"), std::string("2"));
    QVERIFY(panel->choice().at("lengths").ends_with(",65536"));
  }

  void whatCannotBeTimedIsASentence() {
    auto* panel = panelOf<TimingPanel>();
    QTRY_VERIFY_WITH_TIMEOUT(panel->emptyReason().isEmpty(), patience);
    emit panel->requested(StudyChoice{"time", {{"forms", "telepathic"}, {"lengths", "64"}}});
    QTRY_VERIFY2_WITH_TIMEOUT(window_->banner()->sentence().contains("telepathic"), qPrintable(window_->banner()->sentence()), patience);
    auto* start = panel->findChild<QPushButton*>("timingStart");
    QVERIFY(start->isVisible() && start->text() != "Stop");
  }

  void aDoubleClickOnATitleEnlarges() {
    PanelDock* spectrum = window_->area()->dock("spectrum");
    const int before = spectrum->width();
    QTest::mouseDClick(spectrum->header(), Qt::LeftButton, {}, {40, 10});
    QTRY_VERIFY(spectrum->width() > before);
    QCOMPARE(window_->area()->visiblePanels(), QStringList{"spectrum"});
    QTest::mouseDClick(spectrum->header(), Qt::LeftButton, {}, {40, 10});
    QTRY_COMPARE(shownDocks(), qsizetype(panels().size()));
  }

  void aMillionStepsAreStoppedAtOnce() {
    fillAll();  // what is drawn for the first time takes longer
    SequenceChoice choice;
    choice.task = "noise";
    choice.make.length = 1'000'000;
    choice.make.seed = 1;
    test::Load load;
    // Milliseconds from beat to beat, without those for which the event loop had no processor: they are other programs'.
    QElapsedTimer clock;
    clock.start();
    const auto now = [&clock] { return 1e-6 * static_cast<double>(clock.nsecsElapsed()) - 1e3 * test::kept_waiting(); };
    double beat = now(), longest = 0.0;
    QTimer heart;
    heart.setTimerType(Qt::PreciseTimer);
    connect(&heart, &QTimer::timeout, this, [&] {
      const double at = now();
      longest = std::max(longest, at - std::exchange(beat, at));
    });
    heart.start(2);
    session().loadSequence(choice);
    QVERIFY(test::turnUntil([&] { return session().setup().sequence->sequence.length == 1'000'000 && session().running(); }));
    QVERIFY(test::turnFor(700));  // well into the run
    QVERIFY(session().running());
    QSignalSpy ended(&session(), &SessionController::runEnded);
    QElapsedTimer sinceClick;
    sinceClick.start();
    QTest::mouseClick(buttonOf("stop"), Qt::LeftButton);
    QVERIFY(test::turnUntil([&] { return !ended.isEmpty(); }));
    const qint64 stopped = sinceClick.elapsed();
    QCOMPARE(ended.front().front().value<Outcome>(), Outcome::cancelled);
    QVERIFY(test::turnFor(100));
    heart.stop();
    load.end();
    const QString measured =
        QString("stopped after %1 ms, the event loop was held for at most %2 ms; ").arg(stopped).arg(longest, 0, 'f', 0) +
        QString::fromStdString(load.text(0.1));
    qInfo("%s", qPrintable(measured));
    QVERIFY2(static_cast<double>(stopped) <= 1e3 * load.allowed(0.1), qPrintable(measured));
    QVERIFY2(longest <= 1e3 * load.allowed(0.05), qPrintable(measured));
  }

  void aBrokenLayoutIsNoHarm() {
    close();
    const QJsonObject kept = test::keptLab(), arranged = kept["arranged"].toObject();
    const QString state = arranged["panels"].toString();
    QVERIFY(!state.isEmpty());
    for (const QJsonValue& broken :
         {QJsonValue("nonsense"), QJsonValue(state.left(state.size() / 2)), QJsonValue("12:" + state), QJsonValue(7)}) {
      QJsonObject lab = kept, spoiled = arranged;
      for (const char* key : {"panels", "docks", "window", "layout"}) spoiled[QLatin1String(key)] = broken;
      lab["arranged"] = spoiled;
      test::keepLab(lab);
      QSettings().setValue("theme", "plaid");
      open(onWaves(200));
      QCOMPARE(shownDocks(), qsizetype{1});  // what a first start opens
      close();
    }
    // Both files as garbage.
    for (const QString& name : {QSettings().fileName(), LastSession::file()}) {
      QFile file(name);
      QVERIFY(file.open(QIODevice::WriteOnly | QIODevice::Truncate));
      file.write(QByteArray(300, '\xfe'));
      file.close();
    }
    open(onWaves(200));
    QCOMPARE(shownDocks(), qsizetype{1});
  }

  void theLayoutIsKept() {
    window_->area()->dock("timing")->hide();
    close();
    open(onWaves(200));
    QVERIFY(!window_->area()->visiblePanels().contains("timing"));
    window_->action("resetLayout")->trigger();
    QVERIFY(window_->area()->visiblePanels().contains("timing"));
  }

  void theFormsAreLaidOutAndAnotherLengthIsToo() {
    PanelDock* dock = window_->area()->dock("steps");
    auto* panel = qobject_cast<StepsPanel*>(dock->panel());
    QVERIFY(panel != nullptr);
    dock->raise();
    QTRY_VERIFY_WITH_TIMEOUT(panel->emptyReason().isEmpty() && panel->view()->schedule(), patience);
    QCOMPARE(panel->view()->schedule()->form, QString("newton"));  // an LSTM's
    QCOMPARE(panel->view()->schedule()->steps, 16);
    QTRY_VERIFY(dock->header()->headline().startsWith("newton: "));
    clickModel("lru");
    QTRY_VERIFY_WITH_TIMEOUT(panel->view()->schedule() && panel->view()->schedule()->form == "scan", patience);
    QCOMPARE(panel->headline(), QString("scan: 26 compositions in 7 rounds; step by step: 16 in 16"));
    auto* steps = panel->findChild<QComboBox*>("steps");
    steps->setFocus();
    QTest::keyClick(steps, Qt::Key_Down);
    QCOMPARE(steps->currentData().toInt(), 32);
    QTRY_VERIFY_WITH_TIMEOUT(panel->view()->schedule() && panel->view()->schedule()->steps == 32, patience);
    QCOMPARE(session().trace()->find("schedule/steps")->real->at(0), 32.0);
    // Its keys are its own while it has the focus, and the window's otherwise.
    panel->plot()->setFocus();
    const int rounds = panel->view()->position();
    const auto step = window_->time()->step();
    QTest::keyClick(panel->plot(), Qt::Key_Left);
    QCOMPARE(panel->view()->position(), rounds - 1);
    QCOMPARE(window_->time()->step(), step);
    QTest::keyClick(panel->plot(), Qt::Key_Space);
    QVERIFY(panel->playing() && !window_->scrubber()->playing());
    window_->area()->dock("timing")->raise();
    QTRY_VERIFY(!panel->playing());
  }

  void plotsUnderEachOtherHaveTheirStepsUnderEachOther() {
    window_->resize(1400, 900);
    const auto plot = [this](const char* id) { return window_->area()->dock(id)->panel()->findChild<Plot*>(); };
    const auto ends = [](Plot* of) {
      const QCPAxisRect* rect = of->axisRect(0);
      return std::pair{of->mapToGlobal(QPoint(rect->left(), 0)).x(), of->mapToGlobal(QPoint(rect->right(), 0)).x()};
    };
    Plot *above = plot("gradients"), *below = plot("gating");
    window_->area()->arrange({"pair", {{"gradients"}, {"gating"}}});
    QTRY_VERIFY_WITH_TIMEOUT(window_->area()->dock("gating")->panel()->emptyReason().isEmpty() && atRest(), patience);
    QTRY_VERIFY(above->timeSpan() && below->timeSpan());
    QVERIFY(above->timeSpan()->left != below->timeSpan()->left &&
            above->timeSpan()->right != below->timeSpan()->right);  // alone they would differ
    QTRY_COMPARE(ends(above), ends(below));
    // Another number at the axis, another model: still.
    clickModel("gru");
    QTRY_COMPARE(ends(above), ends(below));
    // Beside each other each has its own.
    window_->area()->arrange({"row", {{"gradients", "gating"}}});
    QTRY_COMPARE(above->axisRect(0)->left(), above->timeSpan()->left);
    QTRY_COMPARE(below->axisRect(0)->right(), below->timeSpan()->right);
  }

  void enlargingAPanelAndBackKeepsEveryLayout() {
    window_->resize(1500, 950);
    const auto places = [this] {
      QMap<QString, QRect> all;
      for (PanelDock* dock : window_->area()->docks())
        if (dock->isVisible()) all[dock->panel()->id() + (dock->inSight() ? "" : " behind")] = dock->inSight() ? dock->geometry() : QRect();
      return all;
    };
    for (const bool byHand : {false, true})
      for (const PanelLayout& layout : window_->area()->layouts()) {
        window_->area()->arrange(layout);
        QTest::qWait(60);
        if (byHand) {  // another panel, and a border that was moved
          PanelDock* more = nullptr;
          for (PanelDock* dock : window_->area()->docks())
            if (dock->isHidden()) more = dock;
          if (more != nullptr) more->toggleViewAction()->trigger();
          QDockWidget* first = window_->area()->dock(layout.rows.front().front().section('|', 0, 0));
          window_->area()->resizeDocks({first}, {first->height() - 40}, Qt::Vertical);
          QTest::qWait(60);
          if (more != nullptr) QVERIFY2(more->inSight() && window_->area()->rect().contains(more->geometry()), qPrintable(layout.name));
        }
        const auto before = places();
        for (PanelDock* dock : window_->area()->docks()) {
          if (!dock->inSight()) continue;
          for (int i = 0; i < 2; ++i) {
            QTest::mouseDClick(dock->header(), Qt::LeftButton, {}, {20, 10});
            QTest::qWait(40);
            if (i == 0) QVERIFY2(places().size() == 1 && dock->inSight(), qPrintable(layout.name + QStringList(places().keys()).join(' ')));
          }
          QVERIFY2(places() == before, qPrintable(QString("%1, %2: %3 and before %4")
                                                      .arg(layout.name, dock->panel()->id(), QStringList(places().keys()).join(' '),
                                                           QStringList(before.keys()).join(' '))));
        }
      }
  }

  void theFirstLookIsCalmAndTheRestAClickAway() {
    close();
    test::forgetAll();
    Options first;
    first.layout = "First steps";
    open(first);
    const auto seen = [this](const char* id) { return window_->findChild<QDockWidget*>(id)->isVisible(); };
    QCOMPARE(std::ranges::count_if(window_->area()->docks(), [](const PanelDock* dock) { return dock->isVisible(); }), 1);
    QVERIFY(seen("dock.inspector") && !seen("dock.card") && !seen("dock.sequence"));
    int sliders = 0, things = 0;
    for (const QWidget* one : window_->findChildren<QWidget*>()) {
      if (!one->isVisible()) continue;
      sliders += qobject_cast<const QSlider*>(one) != nullptr;
      things += qobject_cast<const QAbstractButton*>(one) != nullptr || qobject_cast<const QComboBox*>(one) != nullptr ||
                qobject_cast<const QSlider*>(one) != nullptr;
    }
    QCOMPARE(sliders, 3);
    QVERIFY2(things <= 30, qPrintable(QString::number(things)));
    for (const char* id : {"lstm", "mamba", "lru", "elman", "gru"}) {
      session().apply(
          [&] {
            Setup after = session().setup();
            after.preset = id;
            return after;
          }(),
          false);
      QVERIFY(settle());
      QStringList shown;
      for (const QSlider* one : window_->inspector()->findChildren<QSlider*>())
        if (one->isVisible()) shown << one->objectName();
      QVERIFY2(shown.size() == 3, qPrintable(QString("%1 has %2").arg(id).arg(shown.join(' '))));
      QVERIFY2(shown.contains("slider.input_gain") && !shown.contains("slider.input_scale"),
               qPrintable(QString("%1 has %2").arg(id).arg(shown.join(' '))));
    }
    QVERIFY(buttonOf("train")->isVisible() && buttonOf("train")->property("accent").toBool());
    // The list of models, and all settings.
    QVERIFY(!window_->models()->tree()->isVisible());
    QTest::mouseClick(window_->findChild<QPushButton*>("allModels"), Qt::LeftButton);
    QVERIFY(window_->models()->tree()->isVisible() && window_->models()->searchField()->isVisible());
    QTest::mouseClick(window_->findChild<QPushButton*>("allSettings"), Qt::LeftButton);
    QVERIFY(window_->inspector()->seedBox()->isVisible());
    // Training brings its picture.
    window_->action("train")->trigger();
    QTRY_VERIFY_WITH_TIMEOUT(window_->area()->dock("learning")->inSight(), patience);
    session().pauseTraining();
    QVERIFY(settle());
    // Another layout has everything, and this one comes back.
    QComboBox* box = nullptr;
    for (QComboBox* one : window_->findChildren<QComboBox*>())
      if (one->findText("Explore") >= 0) box = one;
    emit box->activated(box->findText("Explore"));
    QVERIFY(seen("dock.card") && seen("dock.sequence") && seen("dock.models") && shownDocks() > 8);
    QTRY_VERIFY(window_->findChild<QToolButton*>("primary")->isVisible() && !buttonOf("train")->property("accent").toBool());
    emit box->activated(box->findText("First steps"));
    QVERIFY(!seen("dock.card") && !window_->models()->tree()->isVisible());
    QStringList places;
    const auto placed = [this] {
      QStringList all;
      for (PanelDock* dock : window_->area()->docks())
        if (dock->isVisible()) all << dock->panel()->id();
      return all;
    };
    for (const char* with : {"", "learning"}) {
      if (*with != 0) window_->area()->showLearning();
      places = placed();
      QVERIFY2(*with == 0 || places.contains(with), qPrintable(places.join(' ')));
      close();
      open({});  // as it was left
      QCOMPARE(placed(), places);
    }
    const QSize fit = window_->area()->fit(), size = window_->size();
    window_->resize(size.width() > 1200 ? QSize(1000, size.height()) : QSize(1700, size.height()));
    QTRY_VERIFY(window_->area()->fit() != fit);
    QCOMPARE(placed(), places);  // also with the room of another screen
    window_->resize(size);
    QVERIFY(!seen("dock.card") && !window_->findChild<QToolButton*>("primary")->isVisible() && !window_->models()->tree()->isVisible());
  }

  void bothThemesAtBothSizes() {
    openFirst();
    fillAll();
    const QDir shots(QDir(QString::fromStdString(test::built())).filePath("screenshots"));
    QVERIFY(QDir().mkpath(shots.path()));
    for (const auto& [name, choice] : {std::pair{"light", ThemeChoice::light}, {"dark", ThemeChoice::dark}}) {
      look_.apply(choice);
      for (const QSize& size : {QSize(1600, 1000), QSize(1280, 800)}) {
        window_->resize(size);
        window_->action("resetLayout")->trigger();
        QTest::qWait(400);
        QCOMPARE(window_->size(), size);  // nothing in it asks for more
        const QImage picture = window_->grab().toImage();
        const bool dark = choice == ThemeChoice::dark;
        QCOMPARE(picture.pixelColor(picture.width() / 2, picture.height() - 4).lightness() < 128, dark);
        QVERIFY(picture.save(shots.filePath(QString("%1-%2.png").arg(name).arg(size.width()))));
      }
    }
    look_.apply(ThemeChoice::light);
  }
};

int main(int argc, char** argv) { return test::runWindowTest<TestWindow>(argc, argv, "window-test"); }

#include "test_window.moc"
