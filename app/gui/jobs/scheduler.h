// SPDX-License-Identifier: GPL-3.0-or-later
// The scheduler of all jobs of a window: it starts and preempts them by ExclusionRules.
#pragma once

#include <QObject>
#include <QString>
#include <exception>
#include <functional>
#include <vector>

#include "gui/jobs/exclusion_rules.h"

namespace reclab {

class JobBase;

class Scheduler : public QObject {
  Q_OBJECT
 public:
  /// `sentence`: the user's sentence for an exception of a job.
  explicit Scheduler(std::function<QString(const std::exception_ptr&)> sentence) : sentence_(std::move(sentence)) {}

  /// Whether a job would begin at once.
  bool isFreeFor(const JobBase& job) const;

 signals:
  /// A job waits, began, gave way or ended.
  void changed();

 private:
  friend class JobBase;
  void add(JobBase& job, ExclusionRules::Policy policy);
  void remove(const JobBase& job);
  void wants(JobBase& job);   ///< it waits: jobs that give way to it stop
  void update(JobBase& job);  ///< its state is another: others may begin
  void note(const JobBase& job);
  void startNext();
  std::function<QString(const std::exception_ptr&)> sentence_;
  ExclusionRules rules_;
  std::vector<JobBase*> jobs_;  ///< by their ExclusionRules::Id; null: gone
  bool preempting_ = false;     ///< jobs are being stopped; none begins before all have been
};

}  // namespace reclab
