// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/jobs/desk.h"

#include <utility>

#include "gui/jobs/job.h"

namespace reclab {

void Desk::add(JobBase& job, Turns::Manners manners) {
  job.id_ = turns_.add(std::move(manners));
  jobs_.push_back(&job);
}

void Desk::remove(const JobBase& job) {
  jobs_[job.id_] = nullptr;
  turns_.set(job.id_, {});
  QMetaObject::invokeMethod(this, &Desk::giveTurns,
                            Qt::QueuedConnection);  // not now: whoever owns the job may be going, with the others' jobs
}

bool Desk::isFreeFor(const JobBase& job) const { return turns_.mayBegin(job.id_); }

void Desk::note(const JobBase& job) { turns_.set(job.id_, job.state()); }

void Desk::wants(JobBase& job) {
  note(job);
  const bool outer = !std::exchange(givingWay_, true);
  for (const Turns::Id id : turns_.displacedBy(job.id_)) jobs_[id]->giveWay();
  if (outer) givingWay_ = false;
  giveTurns();
}

void Desk::update(JobBase& job) {
  note(job);
  giveTurns();
}

void Desk::giveTurns() {
  if (givingWay_) return;
  for (std::size_t i = 0; i < jobs_.size(); ++i)
    if (jobs_[i] != nullptr && jobs_[i]->waiting() && turns_.mayBegin(i)) jobs_[i]->begin();
  emit changed();
}

}  // namespace reclab
