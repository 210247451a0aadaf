// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/session/work/run.h"

#include <tuple>
#include <utility>

#include "models/registry.h"

namespace reclab {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds live_patience{400}, hand_rests{250}, soon_enough{350};

/// Whether it is the weights that do not go together with the rest: those of a training, or those of a file.
bool isOfWeights(const Error& error, const Setup& setup) {
  if (dynamic_cast<const MisfitError*>(&error) != nullptr || error.where().parameter == "weights") return true;
  const auto file = setup.weights.find(setup.preset);
  return file != setup.weights.end() && error.where().file == file->second.string();
}

RunStage runOf(const RunWork::Subject& subject, const Report<RunStage>& report, const std::stop_token& stop, StandingModel& standing) {
  const Setup& setup = *subject.key.setup;
  const auto publish = [&](TracePtr trace) { report.part({std::move(trace), {}}); };
  RunResult result = run(builtin_registry(), requestFor(setup, subject.library->presets.find(setup.preset), subject.key.recording),
                         report.progress, stop, publish, &standing);
  if (result.trace->info.outcome == Outcome::cancelled) throw Cancelled();  // its arrays are freed here, not in the window's thread
  return {std::move(result.trace), std::make_shared<const FinalState>(std::move(result.state))};
}

}  // namespace

bool RunKey::operator==(const RunKey& other) const {
  const auto all = [](const RecordingOptions& one) {
    return std::tie(one.kinds, one.only, one.dense_rows, one.singular_values, one.focus);
  };
  return live == other.live && all(recording) == all(other.recording) && setup->sameRun(*other.setup);
}

RunWork::RunWork(Scheduler& scheduler, std::function<std::optional<Subject>(bool live)> subject)
    : subject_(std::move(subject)),
      job_(scheduler, {},
           {.progressed = [this](const RunKey&, double fraction, const QString& stage) { emit progressed(fraction, stage); },
            .part =
                [this](const RunKey& key, const RunStage& stage) {
                  firstStage_ = false;
                  emit came(stage, key.setup);
                  if (liveWaits_ && !key.live) start(true);  // a live run is short, and its end brings the spectrum
                },
            .finished =
                [this](const RunKey& key, const RunStage& result) {
                  complete_ = !key.live;
                  if (key.live && Clock::now() - started_ > soon_enough) liveRunsAreFast_ = false;
                  outcome_ = result.trace->info.outcome;
                  sentence_ = QString::fromStdString(result.trace->info.sentence);
                  emit came(result, key.setup);
                },
            .ended = [this](const RunKey&, const Ending& ending) { end(ending); }}) {
  for (QTimer* timer : {&rest_, &patience_}) timer->setSingleShot(true);
  rest_.setInterval(hand_rests);
  patience_.setInterval(live_patience);
  connect(&rest_, &QTimer::timeout, this, [this] {
    emit dragPaused();
    start(false);
  });
  connect(&patience_, &QTimer::timeout, this, [this] {
    if (liveWaits_) start(true);
  });
}

void RunWork::moved() {
  rest_.start();
  job_.expectMore(true);
}

void RunWork::start(bool live) {
  // A newer request always ends an older one. But while a slider moves, each request is given the time for its first pictures, so
  // that the plots follow the hand: the newest value waits until then, or until patience ends.
  if (live && running() && (firstStage_ || live_) && Clock::now() - started_ < live_patience) {
    liveWaits_ = true;
    return;
  }
  if (!live)
    liveRunsAreFast_ = true;
  else if (live_ && running())
    liveRunsAreFast_ = false;  // patience has ended
  auto subject = subject_(live);
  if (!live) rest();
  if (!subject) return job_.expectMore(rest_.isActive());
  liveWaits_ = false;
  firstStage_ = true;
  complete_ = settled_ = false;
  live_ = live;
  started_ = Clock::now();
  patience_.start();
  asked_ = subject->key.recording;
  const bool before = running();
  RunKey key = subject->key;
  misfit_ = std::make_shared<std::atomic<bool>>(false);
  job_.start(std::move(key),
             [subject = *std::move(subject), misfit = misfit_, standing = standing_](const Report<RunStage>& report, std::stop_token stop) {
               try {
                 return runOf(subject, report, stop, *standing);
               } catch (const Error& error) {
                 *misfit = isOfWeights(error, *subject.key.setup);
                 throw;
               }
             });
  job_.expectMore(rest_.isActive());
  if (!before) emit runningChanged(true);
}

void RunWork::rest() {
  if (!rest_.isActive()) return;
  rest_.stop();
  emit dragPaused();
}

void RunWork::stop() {
  rest();
  liveWaits_ = false;
  job_.stop();
  job_.expectMore(false);
}

void RunWork::end(const Ending& ending) {
  firstStage_ = false;
  patience_.stop();
  emit runningChanged(false);
  const bool finished = ending.how == Ending::How::finished;
  const Outcome outcome = finished ? outcome_ : ending.how == Ending::How::failed ? Outcome::failed : Outcome::cancelled;
  emit ended(outcome, finished ? sentence_ : ending.sentence, std::chrono::duration<double>(Clock::now() - started_).count());
  if (outcome == Outcome::failed && *misfit_) emit weightsMisfit();
  if (liveWaits_)
    start(true);
  else if (!rest_.isActive())
    emit rests(outcome);
  settled_ = complete_;
  emit followUpStarted();
}

}  // namespace reclab
