// SPDX-License-Identifier: GPL-3.0-or-later
// The view of the forms, step by step: what each of them does, and in which order.
#pragma once

#include <filesystem>

#include "gui/jobs/job.h"
#include "gui/session/sentences.h"
#include "gui/session/setup.h"

namespace reclab {

/// What decides how it looks: all that is set but the form and the loss.
struct ScheduleKey {
  std::string preset, device, dtype;
  std::uint64_t seed = 1;
  LoadedSequencePtr sequence;
  std::filesystem::path weights, state;
  LearnedPtr learned;
  Settings settings;
  std::int64_t steps = 0;
  ScheduleKey(const Setup& setup, std::int64_t ofSteps);
  bool operator==(const ScheduleKey&) const = default;
};

class ScheduleWork : public QObject {
  Q_OBJECT
 public:
  struct Subject {
    LibraryPtr library;
    const Setup& setup;
  };
  explicit ScheduleWork(Desk& desk, std::function<Subject()> subject);

  void choose(std::int64_t steps) { steps_ = steps; }
  void start();  ///< unless it is there, or on its way
  void setupChanged();
  bool isAtIt() const { return job_.isAt(key()); }                                   ///< at what is set now
  TracePtr trace() const { return laid_ && laidOf_ == key() ? laid_ : TracePtr(); }  ///< of what is set now; null while there is none

 signals:
  void came();
  void said(QString sentence, reclab::Tone tone);

 private:
  ScheduleKey key() const { return {subject_().setup, steps_}; }
  void take(const ScheduleKey& key, const TracePtr& laid);
  std::function<Subject()> subject_;
  std::int64_t steps_ = 16;
  TracePtr laid_;
  std::optional<ScheduleKey> laidOf_;
  Job<ScheduleKey, TracePtr> job_;
};

}  // namespace reclab
