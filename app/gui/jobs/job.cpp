// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/jobs/job.h"

#include <algorithm>
#include <chrono>
#include <exception>

#include "array/demand.h"
#include "array/error.h"
#include "array/stop.h"

namespace reclab {

JobBase::JobBase(Scheduler& scheduler, const Kind& kind) : scheduler_(&scheduler), order_(kind.order), niceness_(kind.niceness) {
  ExclusionRules::Policy policy{kind.measures};
  for (const JobBase* other : kind.yieldsTo) policy.yieldsTo.push_back(other->id_);
  scheduler.add(*this, std::move(policy));
}

JobBase::~JobBase() {
  worker_.reset();
  if (scheduler_) scheduler_->remove(*this);
}

void JobBase::want(Prepare prepare, std::function<void()> began) {
  if (order_ == Order::newest) {
    waiting_.clear();
    open_.clear();
  }
  waiting_.push_back({std::move(prepare), std::move(began)});
  if (scheduler_) scheduler_->wants(*this);
  // It has to wait: the job that it replaces ends at once.
  if (order_ == Order::newest && !running() && worker_) forget(worker_->stop());
  if (waiting()) update();
}

void JobBase::begin() {
  std::optional<Task> task = waiting_.front().prepare();
  if (!task) return;
  const std::uint64_t number = ++number_;
  open_.push_back({number, std::move(waiting_.front()), std::move(task->ended)});
  waiting_.pop_front();
  if (!worker_) worker_ = std::make_unique<Worker>(niceness_);
  const auto later = [this](Message message) { QMetaObject::invokeMethod(&context_, std::move(message), Qt::QueuedConnection); };
  const auto inThread = [this, number, later, compute = std::move(task->compute), sentence = scheduler_->sentence_](std::stop_token stop) {
    const StopScope scope(stop);
    const Tell tell = [this, number, later](Message message) {
      later([this, number, message = std::move(message)] { hear(number, message); });
    };
    Message finished;
    Ending ending;
    try {
      if (stop.stop_requested()) throw Cancelled();
      finished = compute(tell, stop);
    } catch (const Cancelled&) {
      ending.how = Ending::How::stopped;
    } catch (...) {
      ending = {Ending::How::failed, sentence(std::current_exception())};
    }
    later([this, number, finished = std::move(finished), ending = std::move(ending)] { returned(number, finished, ending); });
  };
  if (order_ == Order::newest)
    forget(worker_->replace(inThread));
  else
    worker_->post(inThread);
  handed_.push_back(number);
  scheduler_->note(*this);
  if (const auto began = open_.back().wanted.began) began();
}

void JobBase::preempt() {
  for (Open& one : open_) waiting_.push_back(std::move(one.wanted));
  std::rotate(waiting_.begin(), waiting_.end() - static_cast<std::ptrdiff_t>(open_.size()), waiting_.end());
  open_.clear();
  if (worker_) forget(worker_->stop());
  scheduler_->note(*this);
  if (preempted_) preempted_();
}

/// So many of the newest that were handed to the thread never began.
void JobBase::forget(std::size_t count) {
  RECLAB_DEMAND(count <= handed_.size());
  handed_.resize(handed_.size() - count);
}

void JobBase::stop() {
  for (; !waiting_.empty(); waiting_.pop_front()) {
    if (std::optional<Task> task = waiting_.front().prepare()) {
      open_.push_back({++number_, {}, std::move(task->ended)});
      endSoon(number_);
    }
  }
  quiet_ = number_;
  const std::size_t forgotten = worker_ ? worker_->stop() : 0;
  for (std::size_t i = handed_.size() - forgotten; i < handed_.size(); ++i) endSoon(handed_[i]);
  forget(forgotten);
  update();
}

/// Ends a job that never began: queued like all other ends, after the caller has returned.
void JobBase::endSoon(std::uint64_t number) {
  QMetaObject::invokeMethod(
      &context_,
      [this, number] {
        end(number, {Ending::How::stopped});
        update();
      },
      Qt::QueuedConnection);
}

void JobBase::drop() {
  waiting_.clear();
  open_.clear();
  if (worker_) forget(worker_->stop());
  update();
}

void JobBase::dropAndWait() {
  drop();
  worker_.reset();  // the next one has a new thread
}

void JobBase::expectMore(bool more) {
  if (std::exchange(moreExpected_, more) != more) update();
}

std::vector<JobBase::Open>::iterator JobBase::open(std::uint64_t number) { return std::ranges::find(open_, number, &Open::number); }

/// The one place that drops stale messages: only open jobs are heard, which are the newest, or all of them by their order.
void JobBase::hear(std::uint64_t number, const Message& message) const {
  if (number > quiet_ && std::ranges::find(open_, number, &Open::number) != open_.end()) message();
}

void JobBase::returned(std::uint64_t number, const Message& finished, const Ending& ending) {
  RECLAB_DEMAND(!handed_.empty() && handed_.front() == number);
  handed_.pop_front();
  if (finished && open(number) != open_.end()) finished();
  end(number, ending);
  update();
}

void JobBase::end(std::uint64_t number, const Ending& ending) {
  const auto found = open(number);
  if (found == open_.end()) return;
  const auto ended = std::move(found->ended);
  open_.erase(found);
  if (scheduler_) scheduler_->note(*this);
  ended(ending);
}

std::function<void(double, std::string_view)> JobBase::throttled(std::function<void(double, QString)> tell) {
  using Clock = std::chrono::steady_clock;
  return [tell = std::move(tell), last = std::make_shared<Clock::time_point>()](double fraction, std::string_view stage) {
    const auto now = Clock::now();
    if (now - *last < std::chrono::milliseconds(33)) return;
    *last = now;
    tell(fraction, QString::fromUtf8(stage.data(), static_cast<qsizetype>(stage.size())));
  };
}

}  // namespace reclab
