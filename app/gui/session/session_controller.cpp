// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/session/session_controller.h"

#include <QApplication>
#include <QDir>
#include <QFileInfo>
#include <QLocale>
#include <algorithm>
#include <exception>
#include <new>
#include <utility>

#include "array/backend.h"
#include "array/stop.h"
#include "gui/session/files.h"
#include "gui/session/words.h"
#include "models/registry.h"
#include "panel.h"
#include "schedule/schedule.h"

namespace reclab {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto frame = std::chrono::milliseconds(33);

/// The sentence for whatever a job threw.
QString sentenceOf(const std::exception_ptr& thrown) {
  try {
    std::rethrow_exception(thrown);
  } catch (const Error& error) {
    return inWindowWords(error.what());
  } catch (const std::bad_alloc&) {
    return QObject::tr("There is not enough memory for this; take a shorter sequence or a narrower model.");
  } catch (const std::exception& error) {
    return QObject::tr("Something went wrong inside the program: %1.").arg(QString::fromUtf8(error.what()));
  }
}

/// Passes progress on at most 30 times a second.
class Throttle {
 public:
  bool ready() {
    const auto now = Clock::now();
    if (now - last_ < frame) return false;
    last_ = now;
    return true;
  }

 private:
  Clock::time_point last_;
};

QString elapsed(double seconds) {
  return seconds < 1.0 ? QObject::tr("%1 ms").arg(qRound(seconds * 1000.0)) : QObject::tr("%1 s").arg(seconds, 0, 'f', 1);
}

}  // namespace

SessionController::SessionController(QObject* parent) : QObject(parent), timings_(10), layouts_(10) {
  qRegisterMetaType<TracePtr>("reclab::TracePtr");
  qRegisterMetaType<ModelPtr>("reclab::ModelPtr");
  qRegisterMetaType<LoadedSequencePtr>("reclab::LoadedSequencePtr");
  qRegisterMetaType<Outcome>("reclab::Outcome");
  qRegisterMetaType<FileKind>("reclab::FileKind");
  qRegisterMetaType<Tone>("reclab::Tone");
  qRegisterMetaType<Kind>("reclab::Kind");
  qRegisterMetaType<Request>("reclab::Request");
  for (QTimer* timer : {&rest_, &patience_, &timingSoon_}) timer->setSingleShot(true);
  rest_.setInterval(250);
  patience_.setInterval(400);
  connect(&rest_, &QTimer::timeout, this, [this] { start(false); });
  connect(&patience_, &QTimer::timeout, this, [this] {
    if (liveWaits_) start(true);
  });
  connect(&timingSoon_, &QTimer::timeout, this, &SessionController::considerTiming);
}

SessionController::~SessionController() = default;

void SessionController::open() {
  cards_.post([this](std::stop_token) {
    try {
      std::string noCuda;
      if (cuda_backend(&noCuda) != nullptr) noCuda.clear();
      auto library = std::make_shared<const Library>(Library{PresetLibrary(builtin_registry(), preset_folders()), tasks(), noCuda});
      later([this, library] {
        library_ = library;
        for (const std::string& problem : library->presets.problems()) emit said(inWindowWords(problem), Tone::warning);
        for (const QString& problem : problemsOfPlaces(library->presets.presets())) emit said(problem, Tone::warning);
        emit libraryReady();
      });
    } catch (...) {
      later([this, sentence = sentenceOf(std::current_exception())] { emit said(sentence, Tone::warning); });
    }
  });
}

void SessionController::apply(const Setup& setup, bool live) {
  setup_ = setup;
  emit setupChanged();
  describe();
  if (timingOf_ != costKey()) dropTiming();
  if (stepsOf_ != stepsKey()) forgetSteps();
  if (live) rest_.start();
  start(live);
}

void SessionController::run() { start(false); }

void SessionController::describe() {
  if (!library_ || setup_.preset.empty()) return;
  const std::int64_t width = setup_.sequence ? setup_.sequence->sequence.width : 1;
  std::string key = setup_.preset + '\n' + std::to_string(width);
  for (const auto& [name, value] : setup_.settings()) key += '\n' + name + '=' + value;
  if (key == describedOf_) return;
  describedOf_ = key;
  const std::uint64_t number = ++description_;
  cards_.replace([this, number, width, library = library_, id = setup_.preset, set = setup_.settings()](std::stop_token) {
    try {
      auto model = std::make_shared<ModelDescription>();
      model->preset = library->presets.find(id);
      model->standard = hyper_of(builtin_registry(), model->preset);
      model->hyper = hyper_of(builtin_registry(), model->preset, set);
      Preset changed = model->preset;
      changed.hyper.clear();
      for (const HyperSpec& row : model->hyper.table()) changed.hyper.emplace_back(row.key, model->hyper.value(row.key));
      model->card = card(builtin_registry(), changed, width);
      later([this, number, described = ModelPtr(model)] {
        if (number != description_) return;
        model_ = described;
        shapes_ = shapesOf(described->card);
        if (timing_ && !timingHolds()) {
          dropTiming();
          if (shown_) showJoined();
        }
        emit modelDescribed(described);
      });
    } catch (...) {
      later([this, number, sentence = sentenceOf(std::current_exception())] {
        if (number == description_) emit said(sentence, Tone::warning);
      });
    }
  });
}

void SessionController::start(bool live) {
  if (!library_ || !setup_.sequence || setup_.preset.empty()) return;
  // A newer request always ends an older one. But while a slider moves, each request is given the time for its first pictures, so
  // that the plots follow the hand: the newest value waits until then, or until patience ends.
  if (live && running_ && (firstStage_ || live_) && Clock::now() - started_ < std::chrono::milliseconds(400)) {
    liveWaits_ = true;
    return;
  }
  if (!live) rest_.stop();
  liveWaits_ = false;
  firstStage_ = true;
  complete_ = settled_ = false;
  live_ = live;
  stopping_ = false;
  started_ = Clock::now();
  patience_.start();
  interruptTiming();
  const std::uint64_t number = ++run_;
  const Probe probe = lastProbe_ = probeFor(visible_, live, focus_);
  runs_.replace([this, number, probe, live, library = library_, of = std::make_shared<const Setup>(setup_)](std::stop_token stop) {
    auto throttle = std::make_shared<Throttle>();
    const auto progress = [this, number, throttle](double fraction, std::string_view stage) {
      if (!throttle->ready()) return;
      later([this, number, fraction, text = QString::fromUtf8(stage.data(), static_cast<qsizetype>(stage.size()))] {
        if (number == run_ && running_) emit progressed(fraction, text);
      });
    };
    const auto publish = [this, number, live, of](TracePtr trace) {
      later([this, number, live, of, trace = inWindowWords(std::move(trace))] {
        if (number != run_ || stopping_) return;
        firstStage_ = false;
        show(trace, of);
        if (liveWaits_ && !live) start(true);  // a live run is short, and its end brings the spectrum
      });
    };
    try {
      const RunRequest request = requestFor(*of, library->presets.find(of->preset), probe);
      RunResult result = reclab::run(builtin_registry(), request, progress, stop, publish);
      if (result.trace->info.outcome == Outcome::cancelled) {  // what it recorded is given back here, not in the window's thread
        later([this, number] {
          if (number == run_) endRun(Outcome::cancelled, {});
        });
        return;
      }
      later([this, number, live, of, trace = inWindowWords(std::move(result.trace)), state = std::make_shared<const FinalState>(std::move(result.state))] {
        if (number != run_) return;
        complete_ = !live;
        show(trace, of, state);
        endRun(trace->info.outcome, QString::fromStdString(trace->info.sentence));
      });
    } catch (const Cancelled&) {
      later([this, number] {
        if (number == run_) endRun(Outcome::cancelled, {});
      });
    } catch (...) {
      later([this, number, sentence = sentenceOf(std::current_exception())] {
        if (number == run_) endRun(Outcome::failed, sentence);
      });
    }
  });
  if (!std::exchange(running_, true)) emit runningChanged(true);
}

void SessionController::endRun(Outcome outcome, const QString& sentence) {
  if (!std::exchange(running_, false)) return;
  firstStage_ = false;
  patience_.stop();
  emit runningChanged(false);
  if (outcome == Outcome::cancelled)
    emit said(tr("Stopped after %1; what is shown was complete before.").arg(elapsed(std::chrono::duration<double>(Clock::now() - started_).count())),
              Tone::info);
  else if (outcome == Outcome::finished)
    emit said(sentence.isEmpty() ? summary() : sentence, Tone::info);
  else
    emit said(sentence, Tone::warning);
  emit runEnded(outcome);
  if (liveWaits_) {
    start(true);
  } else if (!rest_.isActive()) {  // the hand is at rest
    if (outcome == Outcome::finished && needs_of(visible_).has(Kind::schedule)) wantSteps(stepsWanted_);  // a tab behind another is open too
    considerTiming();
  }
  settled_ = complete_;
  emit awaitedChanged();
}

QString SessionController::summary() const {
  const RunInfo& run = shown_->info;
  QStringList words{tr("%1 on %2, %3 steps").arg(QString::fromStdString(run.title.empty() ? run.preset : run.title), QString::fromStdString(run.input_name),
                                                 QLocale(QLocale::English).toString(static_cast<qlonglong>(run.length)))};
  // What is about some arrays alone stands in the panel that shows them.
  for (const std::string& note : run.notes)
    if (std::none_of(run.note_kinds.begin(), run.note_kinds.end(), [&](const auto& about) { return about.second == note; })) words << QString::fromStdString(note);
  return words.join(". ");
}

namespace {
/// A later run of the same setup, with what only the earlier one has computed yet. Both have the same numbers; an array of fewer rows, as that
/// of the cursor's step alone, does not replace one of more.
TracePtr continued(const TracePtr& before, const TracePtr& now) {
  if (before->steps != now->steps) return now;
  auto both = std::make_shared<Trace>(*now);
  for (const auto& array : before->arrays()) {
    const TraceArray* newer = now->find(array->key);
    const bool longer = newer && !array->shape.empty() && !newer->shape.empty() && array->shape[0] > newer->shape[0];
    if (!newer || longer) both->put(*array);
  }
  return both;
}
}  // namespace

Probe SessionController::shownProbe() const {
  Probe nothing;
  nothing.kinds = {};
  return running_ || !complete_ ? nothing : lastProbe_;
}

void SessionController::show(const TracePtr& trace, const std::shared_ptr<const Setup>& setup, std::shared_ptr<const FinalState> state) {
  state_ = std::move(state);
  if (std::exchange(given_, trace).lock() == trace) return;  // the last stage that was published is the result
  const bool finished = trace->info.outcome == Outcome::finished;
  const bool same = run_alone_ && shownSetup_ && finished && run_alone_->info.outcome == Outcome::finished && setup->sameRun(*shownSetup_);
  run_alone_ = same ? continued(run_alone_, trace) : trace;
  shownSetup_ = setup;
  showJoined();
}

void SessionController::showJoined() {
  TracePtr old = std::exchange(shown_, joined());
  std::erase_if(setups_, [](const auto& one) { return one.first.expired(); });
  setups_.emplace_back(shown_, shownSetup_);
  emit traceChanged(shown_);
  discard(std::move(old));
}

QString SessionController::nameOfFormer(const TracePtr& trace) const {
  for (const auto& [shown, setup] : setups_)
    if (trace && shown.lock() == trace) return reclab::nameOfFormer(trace->info, *setup, setup_);
  return {};
}

bool SessionController::awaits(Kind kind) const {
  if (kind == Kind::timing) return !settled_ || timingSoon_.isActive() || timingRuns_ || timingAsked_;
  if (kind == Kind::schedule) return !settled_ || stepsRunOf_ == stepsKey();
  // What is recorded as the sequence passes is all in the first stage.
  return info_of(kind).stage == Stage::late && !complete_;
}

void SessionController::discard(TracePtr trace) {
  if (trace && trace.use_count() == 1) files_.post([trace = std::move(trace)](std::stop_token) {});
}

void SessionController::stop() {
  rest_.stop();
  liveWaits_ = false;
  if (timingRuns_ || timingAsked_) stopTiming();
  if (exporting_ > 0) {
    // One that runs says itself that it was stopped; one that waited does not begin any more.
    const std::size_t waited = exports_.stop();
    exporting_ -= waited;
    if (waited > 0) emit said(tr("The export was stopped; nothing was written."), Tone::warning);
  }
  if (!running_) return considerTiming();
  stopping_ = true;
  // If the run had not begun it will not report; this one does in its place, and is not heard otherwise.
  runs_.replace([this, number = run_](std::stop_token) {
    later([this, number] {
      if (number == run_) endRun(Outcome::cancelled, {});
    });
  });
}

void SessionController::loadSequence(const SequenceChoice& choice) {
  const std::uint64_t number = ++load_;
  if (choice.isFile) emit said(tr("Reading %1…").arg(QFileInfo(QString::fromStdString(choice.file)).fileName()), Tone::busy);
  files_.post([this, number, choice](std::stop_token) {
    try {
      LoadedSequencePtr loaded = loadChoice(choice);
      later([this, number, loaded] {
        if (number == load_) emit sequenceLoaded(loaded);
      });
    } catch (...) {
      later([this, number, sentence = sentenceOf(std::current_exception())] {
        if (number != load_) return;
        emit said(sentence, Tone::warning);
        emit setupChanged();  // editors show again what is
        emit sequenceRefused();
      });
    }
  });
}

void SessionController::openFile(const SequenceChoice& choice) {
  const std::uint64_t number = ++load_;
  files_.post([this, number, choice](std::stop_token) {
    try {
      const FileKind kind = kind_of_file(choice.file);
      later([this, number, kind, choice] {
        if (number != load_) return;
        if (kind == FileKind::sequence)
          loadSequence(choice);
        else
          loadFile(kind, QString::fromStdString(choice.file));
      });
    } catch (...) {
      later([this, number, sentence = sentenceOf(std::current_exception())] {
        if (number == load_) emit said(sentence, Tone::warning);
      });
    }
  });
}

void SessionController::loadFile(FileKind kind, const QString& file) {
  if (!library_ || !setup_.sequence || setup_.preset.empty()) {
    emit said(tr("There is no model to load %1 into yet; choose a model and a sequence first.").arg(QFileInfo(file).fileName()), Tone::warning);
    return;
  }
  const std::uint64_t number = ++load_;
  emit said(tr("Reading %1…").arg(QFileInfo(file).fileName()), Tone::busy);
  Setup setup = setup_;
  setup.weights.clear();  // the sentence is to be about this file alone
  setup.states.clear();
  setup.files(kind)[setup.preset] = file.toStdString();
  files_.post([this, number, kind, file, library = library_, setup](std::stop_token stop) {
    try {
      const StopScope scope(stop);  // weights of wide models are drawn for minutes before they are compared
      check_files(builtin_registry(), requestFor(setup, library->presets.find(setup.preset), {}));
      later([this, number, kind, file, preset = QString::fromStdString(setup.preset)] {
        if (number == load_) emit fileFits(kind, preset, file);
      });
    } catch (const MisfitError& error) {
      later([this, number, file, preset = QString::fromStdString(setup.preset), sentence = sentenceOf(std::current_exception()), sizes = error.settings] {
        if (number != load_) return;
        emit said(sentence, Tone::warning);
        if (!sizes.empty()) emit sizesFit(preset, file, sizes);
      });
    } catch (...) {
      later([this, number, sentence = sentenceOf(std::current_exception())] {
        if (number == load_) emit said(sentence, Tone::warning);
      });
    }
  });
}

void SessionController::saveFile(FileKind kind, const QString& file) {
  const bool weights = kind == FileKind::weights;
  if (!shown_ || (!weights && (!state_ || state_->empty()))) {
    emit said(weights ? tr("There is no run whose weights could be saved yet; choose a model and a sequence first.")
                      : tr("What is shown has no final state, because it was not run to its end; run it once more."),
              Tone::warning);
    return;
  }
  files_.post([this, weights, file, trace = shown_, state = state_](std::stop_token) {
    QString sentence;
    try {
      if (weights)
        save_weights(*trace, file.toStdString());
      else
        save_state(*state, file.toStdString());
    } catch (...) {
      sentence = sentenceOf(std::current_exception());
    }
    later([this, weights, file, sentence] {
      if (!sentence.isEmpty()) return emit said(sentence, Tone::warning);
      emit said((weights ? tr("The weights are in %1.") : tr("The final state is in %1.")).arg(QDir::toNativeSeparators(file)), Tone::info);
      emit saved(file);
    });
  });
}

void SessionController::setVisiblePanels(const QStringList& ids) {
  if (ids == visible_) return;
  visible_ = ids;
  if (!lastProbe_.kinds.has_all(probeFor(ids, false).kinds)) start(false);
}

std::string SessionController::setupKey() const {
  std::string key = setup_.preset + ' ' + setup_.device + ' ' + setup_.dtype + ' ' + std::to_string(setup_.seed);
  // The setup, or undo, holds each sequence that was loaded, so its address names it.
  key += ' ' + std::to_string(reinterpret_cast<std::uintptr_t>(setup_.sequence.get()));
  for (const auto* files : {&setup_.weights, &setup_.states})
    if (const auto file = files->find(setup_.preset); file != files->end()) key += ' ' + file->second.string();
  for (const auto& [name, value] : setup_.settings()) key += ' ' + name + '=' + value;
  return key;
}

std::string SessionController::costKey() const {
  // Weights, and so seeds and files, change no cost. Nor do real numbers but where they are sizes, which show in the shapes, nor what the
  // weights begin with.
  std::string key = setup_.preset + ' ' + setup_.device + ' ' + setup_.dtype;
  if (run_alone_ && setup_.device == "auto") key += ' ' + run_alone_->info.device;
  if (setup_.sequence) key += ' ' + std::to_string(setup_.sequence->sequence.length) + ' ' + std::to_string(setup_.sequence->sequence.width);
  const bool known = model_ && model_->preset.id == setup_.preset;
  for (const auto& [name, value] : setup_.settings()) {
    if (name == "init" || name.ends_with("_init")) continue;
    const auto real = [&, &key_ = name](const HyperSpec& row) { return row.key == key_ && row.kind == HyperKind::real; };
    if (known && std::any_of(model_->hyper.table().begin(), model_->hyper.table().end(), real)) continue;
    key += ' ' + name + '=' + value;
  }
  return key;
}

bool SessionController::timingHolds() const { return timing_ && timingOf_ == costKey() && timingShapes_ == shapes_; }

void SessionController::setTimingInSight(bool inSight) {
  timingInSight_ = inSight;
  considerTiming();
}

void SessionController::touched() {
  touched_ = Clock::now();  // a timer that waits looks at it when it is due
}

void SessionController::setTimingPatience(std::chrono::milliseconds idle, std::chrono::milliseconds first) {
  idle_ = idle;
  first_ = first;
  considerTiming();
}

void SessionController::considerTiming() {
  scheduleTiming();
  emit awaitedChanged();
}

void SessionController::scheduleTiming() {
  timingSoon_.stop();
  if (busy() || timingRuns_ || !shown_) return;  // the end of each of these asks again
  if (timingAsked_) return startTiming();
  if (!timingInSight_ || (timingHolds() && timingWhole_) || timingRefused_ == costKey()) return;
  using std::chrono::milliseconds;
  const auto now = Clock::now();
  const auto left = [&](Clock::time_point since, milliseconds patience) { return std::chrono::ceil<milliseconds>(since + patience - now); };
  const auto wait = std::max(left(touched_, idle_), left(opened_, first_));
  if (wait > milliseconds(0))
    timingSoon_.start(wait);
  else if (QApplication::activeModalWidget() != nullptr || QApplication::activePopupWidget() != nullptr)
    timingSoon_.start(idle_);
  else
    startTiming();
}

void SessionController::request(const Request& request) {
  if (const auto* schedule = std::get_if<ScheduleChoice>(&request.choice)) return wantSteps(schedule->steps);
  const auto* timing = std::get_if<TimingChoice>(&request.choice);
  if (request.act == Request::Act::stop)
    stopTiming();
  else if (timing != nullptr && request.act == Request::Act::choose)
    timingChoice_ = *timing;
  else if (timing != nullptr)
    wantTiming(*timing);
}

void SessionController::wantTiming(const TimingChoice& choice) {
  timingChoice_ = choice;
  timingAsked_ = true;
  timingRefused_.clear();
  endTiming();
  if (busy()) emit waits(Kind::timing, tr("The forms will be timed as soon as what runs is done."));
  considerTiming();
}

void SessionController::stopTiming() {
  timingAsked_ = false;
  timingRefused_ = costKey();
  endTiming();
  emit waits(Kind::timing, {});
}

void SessionController::setOthersRunning(bool running) {
  if (std::exchange(othersRun_, running) == running) return;
  if (running)
    interruptTiming();
  else
    considerTiming();
}

void SessionController::endTiming() {
  timingSoon_.stop();
  timings_.stop();
  ++timingRun_;
  if (!std::exchange(timingRuns_, false)) return;
  emit computing(Kind::timing, false);
  emit awaitedChanged();
}

void SessionController::dropTiming() {
  endTiming();
  timing_.reset();
  timingOf_.clear();
  timingShapes_.clear();
  timingWhole_ = false;
}

void SessionController::interruptTiming() {
  timingSoon_.stop();
  if (!timingRuns_) return;
  timingAsked_ = timingByHand_;  // what was asked for begins anew when the machine is free
  endTiming();
  emit waits(Kind::timing, timingAsked_ ? tr("The timing was stopped, for nothing else may run beside it; it begins anew as soon as what runs is done.")
                                : tr("The timing was stopped, for nothing else may run beside it; it begins anew when nothing runs and no hand moves for a while."));
}

void SessionController::startTiming() {
  if (busy() || !library_ || !setup_.sequence || !shown_) return;
  if (!timingHolds()) timing_.reset();
  timingByHand_ = std::exchange(timingAsked_, false);
  const std::uint64_t number = ++timingRun_;
  timingOf_ = costKey();
  timingShapes_ = shapes_;
  timingWhole_ = false;
  emit waits(Kind::timing, {});
  TimingChoice chosen = timingChoice_;
  // As the run: where it really ran, for the automatic choice may be another at another length.
  if (chosen.device.isEmpty() && run_alone_) chosen.device = QString::fromStdString(run_alone_->info.device);
  timings_.replace([this, number, library = library_, setup = setup_, choice = std::move(chosen)](std::stop_token stop) {
    const auto publish = [this, number](TracePtr timing) {
      later([this, number, timing = inWindowWords(std::move(timing))] {
        if (number != timingRun_ || !shown_) return;
        timing_ = timing;
        showJoined();
      });
    };
    auto throttle = std::make_shared<Throttle>();
    const auto progress = [this, number, throttle](double fraction, std::string_view stage) {
      if (!throttle->ready()) return;
      later([this, number, fraction, text = QString::fromUtf8(stage.data(), static_cast<qsizetype>(stage.size()))] {
        if (number == timingRun_) emit computed(Kind::timing, fraction, text);
      });
    };
    QString sentence;
    try {
      const auto [request, timing_request] = timingRequestFor(setup, library->presets.find(setup.preset), choice);
      const TracePtr timing = time_forms(builtin_registry(), request, timing_request, progress, stop, publish);
      if (!stop.stop_requested()) publish(timing);
    } catch (const Cancelled&) {
    } catch (...) {
      sentence = sentenceOf(std::current_exception());
    }
    later([this, number, sentence] {
      if (number != timingRun_) return;
      timingRuns_ = false;
      if (sentence.isEmpty())
        timingWhole_ = true;
      else
        timingRefused_ = costKey();  // it would fail again
      emit computing(Kind::timing, false);
      emit awaitedChanged();
      if (!sentence.isEmpty()) emit said(sentence, Tone::warning);
    });
  });
  timingRuns_ = true;
  emit computing(Kind::timing, true);
}

std::string SessionController::stepsKey() const { return setupKey() + " steps " + std::to_string(stepsWanted_); }

TracePtr SessionController::joined() const {
  TracePtr all = run_alone_;
  if (timingHolds()) all = withTiming(all, timing_);
  if (steps_ && stepsOf_ == stepsKey()) all = merged(all, steps_);
  return all;
}

void SessionController::forgetSteps() {
  layouts_.stop();
  ++stepsRun_;
  steps_.reset();
  stepsOf_.clear();
  stepsRunOf_.clear();
}

void SessionController::wantSteps(std::int64_t steps) {
  stepsWanted_ = steps;
  if (running_ && firstStage_) return;  // what is shown is not yet of this setup; the panel asks again when it is
  if (shown_ && stepsOf_ != stepsKey() && stepsRunOf_ != stepsKey()) startSteps();
}

void SessionController::startSteps() {
  if (!library_ || !setup_.sequence || setup_.preset.empty()) return;
  forgetSteps();
  interruptTiming();
  const std::uint64_t number = stepsRun_;
  const std::string key = stepsRunOf_ = stepsKey();
  layouts_.replace([this, number, key, steps = stepsWanted_, library = library_, setup = setup_](std::stop_token stop) {
    TracePtr laid;
    QString sentence;
    try {
      laid = inWindowWords(form_schedule(builtin_registry(), requestFor(setup, library->presets.find(setup.preset), {}), steps, stop));
    } catch (const Cancelled&) {
      return;
    } catch (...) {
      sentence = sentenceOf(std::current_exception());
      laid = no_schedule(sentence.toStdString());  // so that the panel says it too
    }
    later([this, number, key, laid, sentence] {
      if (number != stepsRun_ || key != stepsKey() || !shown_) return;
      if (!sentence.isEmpty()) emit said(sentence, Tone::warning);
      steps_ = laid;
      stepsOf_ = key;
      stepsRunOf_.clear();
      showJoined();
      considerTiming();
    });
  });
}

void SessionController::exportRun(const QString& folder, bool csv) {
  if (!library_ || !setup_.sequence || setup_.preset.empty()) {
    emit said(tr("There is no run to export yet; choose a model and a sequence first."), Tone::warning);
    return;
  }
  ++exporting_;
  interruptTiming();
  emit said(tr("Recording everything for %1…").arg(QDir::toNativeSeparators(folder)), Tone::busy);
  exports_.post([this, folder, csv, library = library_, setup = setup_](std::stop_token stop) {
    QString sentence;
    try {
      auto throttle = std::make_shared<Throttle>();
      const auto progress = [this, throttle](double fraction, std::string_view stage) {
        if (!throttle->ready()) return;
        later([this, fraction, text = QString::fromUtf8(stage.data(), static_cast<qsizetype>(stage.size()))] { emit progressed(fraction, text); });
      };
      const RunRequest request = requestFor(setup, library->presets.find(setup.preset), Probe{});
      const RunResult result = reclab::run(builtin_registry(), request, progress, stop);
      if (result.trace->info.outcome == Outcome::cancelled) throw Cancelled();
      export_run(result, folder.toStdString(), csv);
    } catch (const Cancelled&) {
      sentence = tr("The export was stopped; nothing was written.");
    } catch (...) {
      sentence = sentenceOf(std::current_exception());
    }
    later([this, folder, sentence] {
      --exporting_;
      emit progressed(1.0, {});
      if (sentence.isEmpty()) {
        emit said(tr("The run is in %1: manifest.json, trace.npz and state.npz.").arg(QDir::toNativeSeparators(folder)), Tone::info);
        emit exported(folder);
      } else {
        emit said(sentence, Tone::warning);
      }
      considerTiming();
    });
  });
}

}  // namespace reclab
