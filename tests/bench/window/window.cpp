// SPDX-License-Identifier: GPL-3.0-or-later
// reclab-window-bench ROW...: what a person waits for, in a real window with real events. One JSON object a row on standard output, a line
// on standard error; 1 where a row misses its target.
//   C9   from the movement of a slider in the Inspector to the first new picture, painted
//   C10  from the start of the process to the first picture of a run, painted
//   C12  from the movement of the time cursor to the last of all pictures that follow it, painted
//   W1   steps of training a second with all panels following, beside those of a training without a window
//   W2   memory over 100,000 steps of training
//   W3   from the click on Pause to a training that stands
//   W4   from the choice of a checkpoint to its run, and to the first new picture, painted
//   W5   from a key in the palette to its rows, painted
//   W6   pictures a second of a stream that is held to 10,000 steps a second, with all panels following, and what one costs the window's
//        thread, beside the steps of a stream without a window or a limit
#include <sys/wait.h>
#include <unistd.h>

#include <QElapsedTimer>
#include <QEventLoop>
#include <QLineEdit>
#include <QListView>
#include <QProcess>
#include <QSlider>
#include <QSpinBox>
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <functional>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "experiment/training/training.h"
#include "gui/docks/panel_area.h"
#include "gui/learning/training_bar.h"
#include "gui/palette/palette.h"
#include "gui/palette/palette_feature.h"
#include "gui/streams/stream_settings.h"
#include "gui/streams/stream_view.h"
#include "gui/views/inspector_view.h"
#include "gui/views/scrubber.h"
#include "models/registry.h"
#include "plot/plot_panel.h"
#include "window_test.h"

using namespace reclab;
using Json = nlohmann::ordered_json;

namespace {

double now() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

struct Spread {
  double median, worst;
};
Spread spreadOf(std::vector<double> values) {
  std::ranges::sort(values);
  return {values[values.size() / 2], values.back()};
}

/// The seconds that this thread has computed, whatever else ran.
double threadSeconds() {
  timespec spent{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
  return static_cast<double>(spent.tv_sec) + 1e-9 * static_cast<double>(spent.tv_nsec);
}

/// Of the last minute: what else the machine did before.
double loadAverage() {
  double minute = 0.0;
  return getloadavg(&minute, 1) == 1 ? minute : -1.0;
}

double residentMiB() {
  std::ifstream statm("/proc/self/statm");
  double whole = 0.0, resident = 0.0;
  statm >> whole >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE)) / (1 << 20);
}

/// The moment at which a plot with a picture for which `is` holds has been painted.
class Painted : public QObject {
 public:
  Painted(PanelArea* area, std::function<bool(const Panel*)> is) : is_(std::move(is)) {
    for (PanelDock* dock : area->docks()) {
      connect(dock, &PanelDock::panelMade, this, [this, dock] { follow(dock->panel()); });
      if (dock->made() != nullptr) follow(dock->made());
    }
  }
  void again() {
    at = 0.0;
    waiting_ = nullptr;
  }
  /// In an event loop, as in the program: QTest::qWaitFor() sleeps for 10 ms after each turn of one.
  bool wait(int ms) {
    QTimer limit;
    limit.setSingleShot(true);
    connect(&limit, &QTimer::timeout, &loop_, &QEventLoop::quit);
    limit.start(ms);
    if (at == 0.0) loop_.exec();
    return at > 0.0;
  }
  double at = 0.0;

 protected:
  bool eventFilter(QObject* of, QEvent* event) override {
    if (of == waiting_ && event->type() == QEvent::Paint && at == 0.0)
      QTimer::singleShot(0, this, [this] {
        at = at > 0.0 ? at : now();
        loop_.quit();
      });
    return false;
  }

 private:
  void follow(const Panel* panel) {
    for (Plot* plot : panel->findChildren<Plot*>())
      connect(plot, &QCustomPlot::afterReplot, this, [this, plot, panel] {
        if (at > 0.0 || waiting_ != nullptr || !plot->isVisible() || !panel->emptyReason().isEmpty() || !is_(panel)) return;
        waiting_ = plot;
        plot->installEventFilter(this);
      });
  }
  std::function<bool(const Panel*)> is_;
  QObject* waiting_ = nullptr;
  QEventLoop loop_;
};

/// When the last widget of the program was painted, once none has been for a while.
class LastPaint : public QObject {
 public:
  LastPaint() {
    qApp->installEventFilter(this);
    quiet_.setSingleShot(true);
    quiet_.setInterval(100);
    connect(&quiet_, &QTimer::timeout, &loop_, &QEventLoop::quit);
  }
  /// The moment, and how many paint events there were since `began`.
  std::pair<double, int> after(double began) {
    last_ = began;
    count_ = 0;
    quiet_.start();
    loop_.exec();
    return {last_, count_};
  }

 protected:
  bool eventFilter(QObject*, QEvent* event) override {
    if (event->type() == QEvent::Paint) {
      ++count_;
      QTimer::singleShot(0, this, [this] {  // when it and those beside it are done
        last_ = now();
        quiet_.start();
      });
    }
    return false;
  }

 private:
  QTimer quiet_;
  QEventLoop loop_;
  double last_ = 0.0;
  int count_ = 0;
};

class Bench : public test::WindowTest {
 public:
  Json slider() {
    Json parts = Json::array();
    double worst_median = 0.0;
    for (const auto& [model, key] : {std::pair{"elman", "spectral_radius"}, {"lstm", "forget_bias"}}) {
      Options options;
      options.model = model;
      options.given["--task"] = "noise";
      options.given["--length"] = "500";
      options.given["--set"] = "width=64";
      open(options, {1600, 1000});
      QTest::qWait(1500);
      QString wanted;
      // Of the value that the slider stands at, and of no other.
      bool come = false;
      QObject::connect(&session(), &SessionController::traceChanged, window_.get(), [&](const TracePtr& trace) {
        come = hyperOf(trace, key).toDouble() == wanted.toDouble() && !trace->matching("gradient/state/").empty();
      });
      Painted painted(window_->area(), [&](const Panel* panel) { return come && panel->isOfRun(); });
      QSlider* slider = window_->inspector()->slider(key);
      const auto at = [&](double share) { return QPoint(static_cast<int>(6 + share * (slider->width() - 12)), slider->height() / 2); };
      std::vector<double> seconds;
      const double from = static_cast<double>(slider->value()) / slider->maximum();
      QTest::mousePress(slider, Qt::LeftButton, {}, at(from));
      for (int i = 0; i < 50; ++i) {
        come = false;
        painted.again();
        const double began = now();
        QTest::mouseMove(slider, at(0.25 + 0.5 * i / 50.0));
        const QPointF place = at(0.25 + 0.5 * i / 50.0);
        QMouseEvent move(QEvent::MouseMove, place, slider->mapToGlobal(place), Qt::NoButton, Qt::LeftButton, {});
        QApplication::sendEvent(slider, &move);
        for (const auto& [name, value] : session().setup().settings())
          if (name == key) wanted = QString::fromStdString(value);
        if (!painted.wait(5000)) continue;  // the same value as before
        seconds.push_back(painted.at - began);
        QTest::qWait(120);  // what else it brings has come: each move is one of its own
      }
      QTest::mouseRelease(slider, Qt::LeftButton, {}, at(0.75));
      if (!settle()) throw std::runtime_error("the window does not rest");
      close();
      const Spread spread = spreadOf(seconds);
      worst_median = std::max(worst_median, spread.median);
      parts.push_back({{"part", std::string(model) + ", width 64, 500 steps"},
                       {"ours_seconds", spread.median},
                       {"worst_seconds", spread.worst},
                       {"runs", seconds.size()}});
    }
    return {{"row", "C9"},
            {"text", "a slider's movement to the first new picture, painted"},
            {"ours_seconds", worst_median},
            {"target_seconds", 0.06},
            {"met", worst_median < 0.06},
            {"parts", parts}};
  }

  Json cursor() {
    Json parts = Json::array();
    double worst_median = 0.0;
    for (const auto& [model, length] : {std::pair{"lstm", 500}, {"lstm", 10'000}, {"transformer", 500}}) {
      Options options;
      options.model = model;
      options.given["--task"] = "noise";
      options.given["--length"] = std::to_string(length);
      options.given["--set"] = "width=64";
      open(options, {1600, 1000});
      QTest::qWait(1500);
      if (!settle()) throw std::runtime_error("the window does not rest");
      TimeStrip* strip = window_->scrubber()->strip();
      LastPaint painted;
      std::vector<double> seconds;
      int paints = 0;
      const auto place = [&](int i) {
        return QPointF(strip->pixelOf(static_cast<std::int64_t>(length) * (i + 5) / 60), strip->height() / 2.0);
      };
      QTest::mousePress(strip, Qt::LeftButton, {}, place(0).toPoint());
      painted.after(now());
      for (int i = 1; i <= 50; ++i) {
        const std::int64_t before = window_->time()->step();
        QMouseEvent move(QEvent::MouseMove, place(i), strip->mapToGlobal(place(i)), Qt::NoButton, Qt::LeftButton, {});
        const double began = now();
        QApplication::sendEvent(strip, &move);
        const auto [last, count] = painted.after(began);
        if (window_->time()->step() == before || count == 0) throw std::runtime_error("the cursor does not move");
        seconds.push_back(last - began);
        paints += count;
      }
      QTest::mouseRelease(strip, Qt::LeftButton, {}, place(50).toPoint());
      if (!settle()) throw std::runtime_error("the window does not rest");
      close();
      const Spread spread = spreadOf(seconds);
      worst_median = std::max(worst_median, spread.median);
      parts.push_back({{"part", std::string(model) + ", width 64, " + std::to_string(length) + " steps"},
                       {"ours_seconds", spread.median},
                       {"worst_seconds", spread.worst},
                       {"paints_a_movement", static_cast<double>(paints) / static_cast<double>(seconds.size())},
                       {"runs", seconds.size()}});
    }
    constexpr double target = 1.0 / 30.0;
    return {{"row", "C12"},
            {"text", "a movement of the time cursor to the last picture that follows it, painted"},
            {"ours_seconds", worst_median},
            {"target_seconds", target},
            {"met", worst_median < target},
            {"parts", parts}};
  }

  /// In a process of its own: the window as it starts for the first time.
  int first() {
    window_ = std::make_unique<MainWindow>(&look_, [] {
      Options options;
      options.layout = "Explore";
      return options;
    }());
    Painted painted(window_->area(), [](const Panel* panel) { return panel->isOfRun(); });
    window_->show();
    if (!painted.wait(60'000)) return 1;
    std::printf("%.6f\n", painted.at);
    std::fflush(stdout);
    close();
    return 0;
  }
  Json start(const char* program) {
    std::vector<double> seconds;
    for (int i = 0; i < 11; ++i) {
      QProcess child;
      const double began = now();
      child.start(program, {"--first"});
      if (!child.waitForFinished(90'000)) throw std::runtime_error("the window showed no picture");
      if (i > 0) seconds.push_back(child.readAllStandardOutput().trimmed().toDouble() - began);  // the first one warms the caches
    }
    const Spread spread = spreadOf(seconds);
    return {{"row", "C10"},
            {"text", "start of the process to the first picture, warm"},
            {"ours_seconds", spread.median},
            {"worst_seconds", spread.worst},
            {"target_seconds", 0.5},
            {"met", spread.median < 0.5}};
  }

  Json following() {
    // One that is slow enough to be watched: half a second a step would be too few, a millisecond needs no pictures.
    Json parts = Json::array();
    double least = 1.0;
    for (const auto& [model, length] : {std::pair{"lstm", 100}, {"mamba", 200}}) {
      open(model, length, 10'000'000, 32);
      const TrainingRequest request =
          trainingRequestFor(session().setup(), session().library()->presets.find(model), window_->trainingBar()->settings()->choice());
      std::vector<double> alone, with;
      constexpr double span = 12.0;
      for (int i = 0; i < 2; ++i) {
        Training training(builtin_registry(), request);
        training.begin();
        const double from = now();
        std::thread thread([&] {
          while (now() - from < span) training.advance();
        });
        thread.join();  // the window is idle meanwhile
        alone.push_back(static_cast<double>(training.trainer().steps()) / (now() - from));
        train();
        QTest::qWait(1000);
        const std::int64_t before = done();
        const double since = now();
        QTest::qWait(static_cast<int>(1000.0 * span));
        with.push_back(static_cast<double>(done() - before) / (now() - since));
        pause();
      }
      const double share = (with[0] + with[1]) / (alone[0] + alone[1]);
      least = std::min(least, share);
      parts.push_back({{"part", std::string(model) + ", " + std::to_string(length) + " steps, batch 32"},
                       {"steps_a_second_alone", alone},
                       {"steps_a_second_followed", with},
                       {"share", share}});
      close();
    }
    return {{"row", "W1"},        {"text", "training with all panels following, as a share of training without a window"},
            {"share", least},     {"target_share", 0.9},
            {"met", least > 0.9}, {"parts", parts}};
  }

  Json memory() {
    open("gru", 20, 100'000, 8, 8);
    train();
    const auto until = [&](std::int64_t steps) { return QTest::qWaitFor([&] { return done() >= steps; }, 600'000); };
    Json resident = Json::array();
    double first = 0.0, last = 0.0;
    for (const std::int64_t steps : {10'000, 25'000, 50'000, 75'000, 100'000}) {
      if (!until(steps)) throw std::runtime_error("the training did not come so far");
      last = residentMiB();
      if (first == 0.0) first = last;
      resident.push_back({{"steps", done()}, {"resident_mib", last}});
    }
    if (!QTest::qWaitFor([&] { return !session().training() && atRest(); }, 60'000)) throw std::runtime_error("the training does not end");
    const LearningCurve& curve = *session().learning()->trainings.back();
    // The curves themselves are four numbers a step; the weights that are kept have a limit of 64 MiB.
    const bool met = last - first < 64.0 && curve.kept.size() <= 512;
    Json made = {{"row", "W2"},
                 {"text", "memory over 100,000 steps of training in the window"},
                 {"resident_mib", resident},
                 {"grown_mib", last - first},
                 {"kept", curve.kept.size()},
                 {"target_mib", 64.0},
                 {"met", met}};
    close();
    return made;
  }

  Json pausing() {
    Json parts = Json::array();
    double worst = 0.0;
    for (const auto& [model, length, batch] : {std::tuple{"lstm", 100, 32}, {"gru", 20, 8}, {"mamba", 1000, 32}}) {
      open(model, length, 10'000'000, batch);
      // A run at rest is not enough: panels in sight are made after it, and the first picture of a scene compiles its shaders.
      const auto docks = window_->area()->docks();
      const auto made = [&] {
        return std::ranges::all_of(docks, [](PanelDock* one) { return !one->inSight() || (one->made() && one->answered()); });
      };
      if (!settle() || !QTest::qWaitFor(made, 60'000)) throw std::runtime_error("the window does not rest");
      LastPaint().after(now());
      std::vector<double> seconds;
      double stood = 0.0;  // once the window is told; what it paints in the same turn of the event loop comes after that
      QObject::connect(&session(), &SessionController::learningChanged, window_.get(), [&] {
        if (stood == 0.0 && !session().training()) stood = now();
      });
      for (int i = 0; i < 50; ++i) {
        train();
        QTest::qWait(150 + 17 * (i % 10));
        stood = 0.0;
        const double clicked = now();
        QTest::mouseClick(window_->trainingBar()->trainButton(), Qt::LeftButton);
        if (!test::turnUntil([&] { return !session().training(); })) throw std::runtime_error("the training does not pause");
        seconds.push_back((stood > 0.0 ? stood : now()) - clicked);
      }
      const Spread spread = spreadOf(seconds);
      worst = std::max(worst, spread.worst);
      parts.push_back({{"part", std::string(model) + ", " + std::to_string(length) + " steps, batch " + std::to_string(batch)},
                       {"ours_seconds", spread.median},
                       {"worst_seconds", spread.worst},
                       {"runs", seconds.size()}});
      close();
    }
    return {{"row", "W3"},
            {"text", "a click on Pause to a training that stands"},
            {"worst_seconds", worst},
            {"target_seconds", 0.06},
            {"met", worst < 0.06},
            {"parts", parts}};
  }

  Json scrub() {
    constexpr int checkpoints = 50;
    open("lstm", 500, checkpoints + 10, 8, 64);
    train();
    if (!QTest::qWaitFor([&] { return !session().training() && atRest(); }, 120'000)) throw std::runtime_error("the training does not end");
    const std::uint64_t training = session().learning()->trainings.back()->training;
    std::int64_t wanted = 0;
    double came = 0.0;
    QObject::connect(&session(), &SessionController::traceChanged, window_.get(), [&](const TracePtr& trace) {
      const auto& learned = trace->info.learned;
      if (came == 0.0 && learned && learned->steps == wanted && !trace->matching("gradient/state/").empty()) came = now();
    });
    Painted painted(window_->area(), [&](const Panel* panel) { return came > 0.0 && panel->isOfRun(); });
    std::vector<double> runs, pictures;
    for (wanted = checkpoints; wanted > 0; --wanted) {
      came = 0.0;
      painted.again();
      const double began = now();
      session().lookAtStep(training, wanted, true);
      if (!painted.wait(5000)) throw std::runtime_error("a checkpoint is not shown");
      runs.push_back(came - began);
      pictures.push_back(painted.at - began);
      QTest::qWait(120);  // what else it brings has come: each move is one of its own
    }
    if (!settle()) throw std::runtime_error("the window does not rest");
    close();
    const Spread run = spreadOf(runs), picture = spreadOf(pictures);
    return {{"row", "W4"},
            {"text", "a checkpoint that is chosen to its run and its first picture: lstm, width 64, 500 steps"},
            {"run_seconds", run.median},
            {"worst_run_seconds", run.worst},
            {"ours_seconds", picture.median},
            {"worst_seconds", picture.worst},
            {"runs", runs.size()},
            {"target_seconds", 0.05},
            {"met", run.median < 0.05}};
  }

  Json palette() {
    open("elman", 200, 10, 8);
    PaletteFeature* feature = window_->commandPalette();
    const double asked = now();
    window_->action("palette")->trigger();
    const double opened = now() - asked;
    QLineEdit* line = feature->palette()->line();
    QStringList queries;
    for (const Preset& preset : session().library()->presets.presets()) queries << QString::fromStdString(preset.title);
    for (const PanelInfo& panel : panels()) queries << panel.title;
    for (const TaskInfo& task : session().library()->tasks) queries << QString::fromStdString(task.title);
    while (queries.size() < 200) queries << "spectral radius 0." + QString::number(queries.size());
    queries = queries.mid(0, 200);
    std::vector<double> keys;
    for (const QString& query : queries) {
      line->clear();
      for (const QChar letter : query) {
        if (letter.unicode() > 126) continue;
        const double began = now();
        QTest::keyClick(line, letter.toLatin1());
        feature->palette()->list()->viewport()->repaint();
        keys.push_back(now() - began);
      }
    }
    const std::size_t entries = feature->entries().size();
    close();
    const Spread key = spreadOf(keys);
    return {{"row", "W5"},
            {"text", "a key in the palette to its rows: 200 queries"},
            {"ours_seconds", key.median},
            {"worst_seconds", key.worst},
            {"opened_seconds", opened},
            {"keys", keys.size()},
            {"entries", entries},
            {"target_seconds", 0.016},
            {"met", key.worst < 0.016}};
  }

  /// An LSTM of width 32 on the last 200 steps. A picture counts when its run is there and a plot has been painted since.
  Json streaming() {
    constexpr double span = 12.0;
    constexpr std::int64_t wanted = 10'000;
    const double load = loadAverage();
    open("lstm", 200, 10, 8, 32);
    window_->action("stream")->trigger();
    window_->streamView()->findChild<QSpinBox*>("stream.pace")->setValue(static_cast<int>(wanted));
    StreamRequest request = window_->streamView()->settings()->choice();
    const Setup setup = session().setup();
    request.run = modelOfStream(setup, session().library()->presets.find(setup.preset));
    request.source.seed = setup.seed;
    double alone = 0.0;
    std::thread thread([&] {
      StreamRun run(builtin_registry(), request);
      const double from = now();
      while (now() - from < span / 2.0) run.advance();
      alone = static_cast<double>(run.steps()) / (now() - from);
    });
    thread.join();  // the window is idle meanwhile
    window_->streamView()->startButton()->click();
    if (!QTest::qWaitFor([&] { return session().streaming().numbers.steps > 1000; }, 60'000)) throw std::runtime_error("no stream begins");
    Painted painted(window_->area(), [](const Panel*) { return true; });
    std::int64_t pictures = 0, last = 0;
    const std::int64_t before = session().streaming().numbers.steps;
    const double since = now(), worked = threadSeconds();
    while (now() - since < span) {
      painted.again();
      if (!painted.wait(1000)) continue;
      const auto learned = session().trace()->info.learned;
      if (learned && std::exchange(last, learned->steps) != learned->steps) ++pictures;
    }
    const Streaming end = session().streaming();
    const double busy = threadSeconds() - worked, seconds = now() - since, pace = static_cast<double>(end.numbers.steps - before) / seconds,
                 shown = static_cast<double>(pictures) / seconds;
    window_->streamView()->pauseButton()->click();
    if (!QTest::qWaitFor([&] { return !session().streams() && atRest(); }, 60'000)) throw std::runtime_error("the stream does not stand");
    const std::int64_t leftOut = session().streaming().numbers.leftOut, steps = session().streaming().numbers.steps;
    close();
    return {{"row", "W6"},
            {"text", "pictures a second of a stream, LSTM of width 32, ring of 200, held to 10,000 steps a second"},
            {"pictures_a_second", shown},
            {"steps_a_second", pace},
            {"steps_a_second_alone", alone},
            {"window_thread_seconds_a_picture", pictures > 0 ? busy / static_cast<double>(pictures) : 0.0},
            {"window_thread_share", busy / seconds},
            {"load_average_before", load},
            {"processors", std::thread::hardware_concurrency()},
            {"steps", steps},
            {"steps_in_no_picture", leftOut},
            {"target_pictures_a_second", 30.0},
            {"target_steps_a_second", static_cast<double>(wanted)},
            // A pace that is held is met to within its last block and picture.
            {"met", shown >= 30.0 && pace >= 0.99 * static_cast<double>(wanted)}};
  }

  using test::WindowTest::close;

 private:
  using test::WindowTest::open;
  void open(const char* model, int length, std::int64_t steps, std::int64_t batch, int width = 0) {
    Options options;
    options.model = model;
    options.given["--task"] = "adding";
    options.given["--length"] = std::to_string(length);
    if (width > 0) options.given["--set"] = "width=" + std::to_string(width);
    open(options, {1600, 1000});
    TrainingChoice choice;
    choice.steps = steps;
    choice.options.batch = batch;
    choice.options.rate.rate = 1e-3;
    window_->trainingBar()->settings()->setChoice(choice);
  }
  void train() {
    if (window_->trainingBar()->isVisible())
      QTest::mouseClick(window_->trainingBar()->trainButton(), Qt::LeftButton);
    else
      window_->action("train")->trigger();
    if (!QTest::qWaitFor([this] { return session().training() && done() >= 0; }, 60'000))
      throw std::runtime_error("the training does not begin");
  }
  void pause() {
    session().pauseTraining();
    if (!QTest::qWaitFor([this] { return !session().training() && atRest(); }, 60'000))
      throw std::runtime_error("the training does not pause");
  }
  std::int64_t done() const {
    const LearningPtr& learning = session().learning();
    return learning && !learning->trainings.empty() ? learning->trainings.back()->done : -1;
  }
};

}  // namespace

int main(int count, char** words) {
  const test::TestApplication application(count, words, "window-bench");
  Bench bench;
  if (count == 2 && std::string(words[1]) == "--first") return bench.first();
  const std::map<std::string, std::function<Json()>> rows{
      {"C9", [&] { return bench.slider(); }},    {"C10", [&] { return bench.start(words[0]); }}, {"C12", [&] { return bench.cursor(); }},
      {"W1", [&] { return bench.following(); }}, {"W2", [&] { return bench.memory(); }},         {"W3", [&] { return bench.pausing(); }},
      {"W4", [&] { return bench.scrub(); }},     {"W5", [&] { return bench.palette(); }},        {"W6", [&] { return bench.streaming(); }}};
  int status = count > 1 ? 0 : 2;
  if (count < 2) std::cerr << "reclab-window-bench: name rows, of C9, C10, C12 and W1 to W6.\n";
  for (int i = 1; i < count; ++i) {
    const auto row = rows.find(words[i]);
    if (row == rows.end()) {
      std::cerr << "reclab-window-bench: there is no row " << words[i] << "; the rows are C9, C10, C12 and W1 to W6.\n";
      return 2;
    }
    try {
      const Json result = row->second();
      std::cout << result.dump() << std::endl;
      std::cerr << result["row"].get<std::string>() << "  " << result["text"].get<std::string>() << ": "
                << (result["met"].get<bool>() ? "met" : "missed") << '\n';
      if (!result["met"].get<bool>()) status = 1;
    } catch (const std::exception& error) {
      std::cerr << "reclab-window-bench: " << error.what() << '\n';
      status = 2;
    }
    bench.close();
  }
  return status;
}
