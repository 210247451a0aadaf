// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/session/work/stream.h"

#include <QDir>
#include <algorithm>
#include <utility>

#include "array/stop.h"
#include "experiment/training/learned.h"
#include "models/registry.h"

namespace reclab {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds counted{1};  ///< of the rates

}  // namespace

void PicturesShown::begin(const StreamNumbers& from) { *this = PicturesShown(from.leftOut, from.steps); }

void PicturesShown::add(std::int64_t first, std::int64_t steps) {
  leftOut_ += std::max<std::int64_t>(0, first - pictured_);
  pictured_ = std::max(pictured_, steps);
  ++count_;
  const auto now = Clock::now();
  last_.emplace_back(now, steps);
  while (last_.size() > 2 && now - last_[1].first >= counted) last_.pop_front();
}

double PicturesShown::rate(bool ofSteps) const {
  if (last_.size() < 2) return 0.0;
  const double seconds = std::chrono::duration<double>(last_.back().first - last_.front().first).count();
  const std::int64_t passed = ofSteps ? last_.back().second - last_.front().second : std::ssize(last_) - 1;
  return seconds > 0.0 ? static_cast<double>(passed) / seconds : 0.0;
}

LiveStream::LiveStream(LibraryPtr library, Setup setup, StreamRequest request, QString folder)
    : library_(std::move(library)),
      setup_(std::move(setup)),
      request_(std::move(request)),
      folder_(std::move(folder)),
      pace_(request_.pace) {}

LiveStream::LiveStream(LibraryPtr library, const StreamFiles& kept, const QString& from, QString folder)
    : library_(std::move(library)),
      setup_(kept.setup),
      request_(kept.request),
      from_(from),
      folder_(std::move(folder)),
      pace_(request_.pace),
      leftOut_(kept.numbers.leftOut),
      pictured_(kept.numbers.steps),
      numbers_(kept.numbers) {}

void LiveStream::begin(std::stop_token stop) {
  if (from_.isEmpty())
    run_ = std::make_unique<StreamRun>(builtin_registry(), request_, nullptr, std::move(stop));
  else
    run_ = resume_stream(builtin_registry(), request_, from_.toStdString());
  if (from_.isEmpty()) return;
  StreamPlace from{from_, run_->steps(), loadChoice(ringIn(from_))};
  const std::lock_guard lock(mutex_);
  place_ = std::move(from);
}

void LiveStream::follow(const std::function<void()>& tell, std::stop_token stop) {
  const std::lock_guard followed(run_mutex_);
  const StopScope whole{std::stop_token()};  // a block that is begun is learned from
  if (!run_) begin(stop);
  left_ = Clock::now();
  pictures_ = 0;
  takePicture();  // that of the time before
  std::shared_ptr<const PrequentialCurve> drawn;
  StreamCurvesPtr curves;
  const auto publish = [&](StreamPicturePtr picture) {
    if (std::exchange(drawn, picture->curve) != picture->curve) curves = curvesOf(*run_);
    // With the first picture there is a place in its own folder, so that what is open can be had again whatever happens.
    if (!place().folder.startsWith(folder_ + '/'))
      leave();
    else if (Clock::now() - left_ >= keepsEvery_)
      writeCheckpoint();
    StreamNumbers numbers = numbersOf(*run_);
    numbers.curves = curves;
    std::vector<StepMark> drifts = marksOf(*run_);
    ++pictures_;
    bool told = false;
    {
      const std::lock_guard lock(mutex_);
      newest_ = {std::move(picture), std::move(drifts)};
      numbers_ = std::move(numbers);
      told = std::exchange(told_, true);
    }
    if (!told) tell();
  };
  std::exception_ptr failed;
  try {
    follow_stream(*run_, between, publish, std::move(stop), pace_);
  } catch (const Error&) {
    failed = std::current_exception();
  }
  if (run_->steps() > 0) leave();
  QDir(checkpointIn(folder_)).removeRecursively();
  if (failed) std::rethrow_exception(failed);
}

/// At the step that it stands at, if it has not been left there.
void LiveStream::leave() {
  left_ = Clock::now();
  if (const StreamPlace now = place(); !now.folder.isEmpty() && now.steps == run_->steps()) return;
  StreamNumbers numbers = numbersToKeep();
  run_->set_pace(pace_.rate());
  StreamPlace place = leaveStream(*run_, setup_, numbers, folder_ + "/" + QString::number(run_->steps()));
  const std::lock_guard lock(mutex_);
  place_ = std::move(place);
  numbers_ = std::move(numbers);
}

/// Where the program ends without a word, it goes on from there.
void LiveStream::writeCheckpoint() {
  run_->set_pace(pace_.rate());
  leaveStream(*run_, setup_, numbersToKeep(), checkpointIn(folder_));
  left_ = Clock::now();
}

/// Its last steps are shown as it is left.
StreamNumbers LiveStream::numbersToKeep() const {
  StreamNumbers numbers = numbersOf(*run_);
  numbers.curves = curvesOf(*run_);
  numbers.leftOut = leftOut_ + std::max<std::int64_t>(0, run_->ring()->first() - pictured_);
  return numbers;
}

void LiveStream::exportTo(const QString& folder) {
  const std::lock_guard followed(run_mutex_);
  if (!run_) begin({});
  run_->set_pace(pace_.rate());
  export_stream(*run_, folder.toStdString());
}

void LiveStream::keep() {
  const std::lock_guard followed(run_mutex_);
  if (run_ && run_->steps() > 0) leave();
}

bool LiveStream::kept() const {
  const std::lock_guard lock(mutex_);
  return place_.steps == numbers_.steps;
}

LivePicture LiveStream::takePicture() {
  const std::lock_guard lock(mutex_);
  told_ = false;
  return std::exchange(newest_, {});
}

StreamNumbers LiveStream::numbers() const {
  const std::lock_guard lock(mutex_);
  return numbers_;
}

StreamPlace LiveStream::place() const {
  const std::lock_guard lock(mutex_);
  return place_;
}

StreamRequest LiveStream::request() const {
  StreamRequest now = request_;
  now.pace = pace_.rate();
  return now;
}

std::string LiveStream::command() const { return command_of(request()); }

std::string LiveStream::commandTo(std::int64_t steps, const std::string& export_to) const {
  StreamRequest so_far = request_;
  so_far.length = steps;
  so_far.pace = 0;  // nobody watches it
  return command_of(so_far) + " --export " + export_to;
}

StreamWork::StreamWork(Scheduler& scheduler, const JobBase& trainings)
    : job_(scheduler, {.niceness = 5, .yieldsTo = {&trainings}},  // who draws comes first
           {.part = [this](const Key&, const Nothing&) { emit pictured(); },
            .ended = [this](const Key&, const Ending& ending) { emit stood(ending.sentence); },
            .preempted = [this] { hold(); }}),
      exports_(scheduler, {.order = JobBase::Order::all},
               {.finished =
                    [this](const ExportKey& key, const Nothing&) {
                      emit said(tr("The stream is in %1: errors, weights, its last steps, and what it takes to go on with "
                                   "reclab stream --resume.")
                                    .arg(QDir::toNativeSeparators(key.folder)),
                                Tone::info);
                    },
                .ended =
                    [this](const ExportKey&, const Ending& ending) {
                      if (ending.how == Ending::How::failed) emit said(ending.sentence, Tone::warning);
                    }}) {}

void StreamWork::start(const std::shared_ptr<LiveStream>& stream) {
  pause_ = std::stop_source();
  failed_ = std::make_shared<QString>();
  job_.start({++number_},
             [stream, pause = pause_.get_token(), failed = failed_](const Report<Nothing>& report, const std::stop_token& stop) -> Nothing {
               // Two may stop it: a person, after which all is heard as ever, and the scheduler.
               std::stop_source either;
               const auto ask = [&either] { either.request_stop(); };
               const std::stop_callback by_hand(pause, ask), by_scheduler(stop, ask);
               try {
                 stream->follow([&report] { report.part({}); }, either.get_token());
               } catch (const Cancelled&) {  // before its first step
               } catch (...) {
                 *failed = sentenceOf(std::current_exception());
                 throw;
               }
               return {};
             });
}

void StreamWork::pause() { pause_.request_stop(); }

void StreamWork::hold() {
  if (!running() && !job_.waiting()) return;
  pause_.request_stop();
  job_.dropAndWait();
  emit stood(*failed_);
}

void StreamWork::exportTo(const std::shared_ptr<LiveStream>& stream, const QString& folder) {
  exports_.start({folder}, [stream, folder](const Report<Nothing>&, const std::stop_token&) -> Nothing {
    stream->exportTo(folder);
    return {};
  });
}

}  // namespace reclab
