// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/session/work/timing.h"

#include <QApplication>
#include <algorithm>
#include <utility>

#include "models/registry.h"

namespace reclab {

TimingKey timingKeyOf(const Setup& setup, const ModelPtr& model, const std::string& ranOn) {
  TimingKey key;
  key.preset = setup.preset;
  key.device = setup.device;
  key.dtype = setup.dtype;
  if (setup.device == "auto") key.ranOn = ranOn;
  if (setup.sequence) {
    key.length = setup.sequence->sequence.length;
    key.inputWidth = setup.sequence->sequence.width;
  }
  const bool known = model && model->preset.id == setup.preset;
  for (const auto& [name, value] : setup.settings()) {
    if (name == "init" || name.ends_with("_init")) continue;
    const auto real = [&name_ = name](const HyperSpec& row) { return row.key == name_ && row.kind == HyperKind::real; };
    if (known && std::ranges::any_of(model->hyper.table(), real)) continue;
    key.settings.emplace_back(name, value);
  }
  return key;
}

TimingWork::TimingWork(Scheduler& scheduler, std::function<Subject()> subject)
    : scheduler_(scheduler),
      subject_(std::move(subject)),
      job_(scheduler, {.niceness = 10, .measures = true},
           {.began =
                [this](const TimedKey& key) {
                  soon_.stop();
                  if (timedOf_ != key) timed_.reset();
                  timedOf_ = key;
                  whole_ = false;
                  tell(true, {});
                },
            .progressed =
                [this](const TimedKey&, double fraction, const QString& stage) {
                  state_.fraction = fraction;
                  state_.stage = stage;
                  emit moved(state_);
                },
            .part =
                [this](const TimedKey&, const TracePtr& timed) {
                  timed_ = timed;
                  emit came();
                },
            .finished =
                [this](const TimedKey&, const TracePtr& timed) {
                  timed_ = timed;
                  emit came();
                },
            .ended =
                [this](const TimedKey&, const Ending& ending) {
                  if (ending.how == Ending::How::finished)
                    whole_ = true;
                  else
                    refused_ = subject_().key.cost;  // it would fail again
                  tell(false, state_.waits);
                  tellPending();
                  if (ending.how == Ending::How::failed) emit said(ending.sentence, Tone::warning);
                },
            .preempted =
                [this] {
                  if (!byHand_) job_.drop();  // by itself it comes when the scheduler has been idle again
                  tell(false,
                       byHand_ ? tr("The timing was stopped, for nothing else may run beside it; it begins anew as soon as what runs is "
                                    "done.")
                               : tr("The timing was stopped, for nothing else may run beside it; it begins anew when nothing runs and no "
                                    "hand moves for a while."));
                  tellPending();
                }}) {
  soon_.setSingleShot(true);
  connect(&soon_, &QTimer::timeout, this, &TimingWork::consider);
  connect(&scheduler_, &Scheduler::changed, this, &TimingWork::consider);
}

void TimingWork::begin(bool byHand) {
  byHand_ = byHand;
  job_.startInTurn([this]() -> std::optional<Job<TimedKey, TracePtr>::Work> {
    const Subject subject = subject_();
    if (!subject.library || !subject.setup.sequence || !subject.shown) return std::nullopt;
    FieldTexts values = choice_;
    // As the run: where it really ran, for the automatic choice may be another at another length.
    const auto device = std::ranges::find(values, "device", [](const auto& one) { return one.first; });
    if (device == values.end() || device->second.empty()) values.emplace_back("device", subject.ranOn);
    return std::pair(subject.key, [&study = study_, library = subject.library, setup = subject.setup, values = std::move(values)](
                                      const Report<TracePtr>& report, std::stop_token stop) {
      const StudyInput input{builtin_registry(), library->presets, requestFor(setup, library->presets.find(setup.preset), {})};
      const auto part = [&](const StudyResult& found) { report.part(found.get<Trace>()); };
      TracePtr timed = study.compute(input, values, {report.progress, part}, stop).get<Trace>();
      if (stop.stop_requested()) throw Cancelled();
      return timed;
    });
  });
}

void TimingWork::want(const FieldTexts& choice) {
  choice_ = choice;
  refused_.reset();
  end();
  begin(true);
  if (job_.waiting() && !scheduler_.isFreeFor(job_)) tell(false, tr("The forms will be timed as soon as what runs is done."));
  tellPending();
}

void TimingWork::stop() {
  refused_ = subject_().key.cost;
  end();
  tell(false, {});
}

void TimingWork::end() {
  soon_.stop();
  const bool before = running();
  job_.drop();
  if (before) tell(false, state_.waits);
  tellPending();
}

void TimingWork::forget() {
  if (running()) end();  // one that waits is asked for still
  timed_.reset();
  timedOf_.reset();
  whole_ = false;
}

void TimingWork::setupChanged() {
  if (timedOf_ && timedOf_->cost != subject_().key.cost) forget();
}

bool TimingWork::modelChanged() {
  if (!timed_ || holds()) return false;
  forget();
  return true;
}

void TimingWork::setInSight(bool inSight) {
  inSight_ = inSight;
  consider();
}

void TimingWork::setPatience(std::chrono::milliseconds idle, std::chrono::milliseconds first) {
  idle_ = idle;
  first_ = first;
  consider();
}

void TimingWork::consider() {
  schedule();
  tellPending();
}

void TimingWork::schedule() {
  soon_.stop();
  if (wanted() || !inSight_ || !scheduler_.isFreeFor(job_)) return;
  const Subject subject = subject_();
  if (!subject.shown || (whole_ && holds()) || refused_ == subject.key.cost) return;
  using std::chrono::milliseconds;
  const auto now = std::chrono::steady_clock::now();
  const auto left = [&](auto since, milliseconds patience) { return std::chrono::ceil<milliseconds>(since + patience - now); };
  const auto wait = std::max(left(touched_, idle_), left(opened_, first_));
  if (wait > milliseconds(0))
    soon_.start(wait);
  else if (QApplication::activeModalWidget() != nullptr || QApplication::activePopupWidget() != nullptr)
    soon_.start(idle_);
  else
    begin(false);
}

void TimingWork::tell(bool running, const QString& waits) {
  state_ = {running, 0.0, {}, waits};
  emit moved(state_);
}

void TimingWork::tellPending() {
  if (std::exchange(toldPending_, isPending()) != isPending()) emit pendingChanged();
}

}  // namespace reclab
