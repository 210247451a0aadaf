// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/jobs/scheduler.h"

#include <utility>

#include "gui/jobs/job.h"

namespace reclab {

void Scheduler::add(JobBase& job, ExclusionRules::Policy policy) {
  job.id_ = rules_.add(std::move(policy));
  jobs_.push_back(&job);
}

void Scheduler::remove(const JobBase& job) {
  jobs_[job.id_] = nullptr;
  rules_.set(job.id_, {});
  QMetaObject::invokeMethod(this, &Scheduler::startNext,
                            Qt::QueuedConnection);  // not now: the job's owner may be in its destructor, with other jobs
}

bool Scheduler::isFreeFor(const JobBase& job) const { return rules_.mayBegin(job.id_); }

void Scheduler::note(const JobBase& job) { rules_.set(job.id_, job.state()); }

void Scheduler::wants(JobBase& job) {
  note(job);
  const bool outer = !std::exchange(preempting_, true);
  for (const ExclusionRules::Id id : rules_.preemptedBy(job.id_)) jobs_[id]->preempt();
  if (outer) preempting_ = false;
  startNext();
}

void Scheduler::update(JobBase& job) {
  note(job);
  startNext();
}

void Scheduler::startNext() {
  if (preempting_) return;
  for (std::size_t i = 0; i < jobs_.size(); ++i)
    if (jobs_[i] != nullptr && jobs_[i]->waiting() && rules_.mayBegin(i)) jobs_[i]->begin();
  emit changed();
}

}  // namespace reclab
