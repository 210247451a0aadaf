// SPDX-License-Identifier: GPL-3.0-or-later
// Where all jobs of a window meet: it gives each its turn, by the rule of Turns.
#pragma once

#include <QObject>
#include <QString>
#include <exception>
#include <functional>
#include <vector>

#include "gui/jobs/turns.h"

namespace reclab {

class JobBase;

class Desk : public QObject {
  Q_OBJECT
 public:
  /// `sentence`: what is said to the user of whatever a job threw.
  explicit Desk(std::function<QString(const std::exception_ptr&)> sentence) : sentence_(std::move(sentence)) {}

  /// Whether a job would begin at once.
  bool isFreeFor(const JobBase& job) const;

 signals:
  /// A job waits, began, gave way or ended.
  void changed();

 private:
  friend class JobBase;
  void add(JobBase& job, Turns::Manners manners);
  void remove(const JobBase& job);
  void wants(JobBase& job);   ///< it waits: what gives way to it stops
  void update(JobBase& job);  ///< its state is another: others may begin
  void note(const JobBase& job);
  void giveTurns();
  std::function<QString(const std::exception_ptr&)> sentence_;
  Turns turns_;
  std::vector<JobBase*> jobs_;  ///< by their Turns::Id; null: gone
  bool givingWay_ = false;      ///< those that stop say so; none begins before all have
};

}  // namespace reclab
