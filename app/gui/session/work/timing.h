// SPDX-License-Identifier: GPL-3.0-or-later
// Timings of the forms, which nothing may disturb: asked for by hand, or taken by themselves when the panel is in sight and no hand has
// moved for a while. They are kept as long as the present setup has the same costs.
#pragma once

#include <QTimer>
#include <chrono>

#include "gui/jobs/job.h"
#include "gui/session/requests.h"
#include "gui/session/sentences.h"
#include "request.h"
#include "studies/study.h"

namespace reclab {

/// The settings that the cost of a form depends on. Weights, and so seeds and files, change no cost; nor do real numbers but where they are
/// sizes, which shows in the shapes, nor initial values.
struct TimingKey {
  std::string preset, device, dtype;
  std::string ranOn;  ///< of the automatic choice
  std::int64_t length = 0, inputWidth = 0;
  Settings settings;
  bool operator==(const TimingKey&) const = default;
};
/// `model`: which of the settings are real numbers; null while it is not known.
TimingKey timingKeyOf(const Setup& setup, const ModelPtr& model, const std::string& ranOn);

/// The key of a timing that was made: the cost's key and the sizes of everything that is computed with.
struct TimedKey {
  TimingKey cost;
  std::string shapes;
  bool operator==(const TimedKey&) const = default;
};

class TimingWork : public QObject {
  Q_OBJECT
 public:
  struct Subject {
    TimedKey key;
    LibraryPtr library;
    const Setup& setup;
    std::string ranOn;   ///< the run that is shown
    bool shown = false;  ///< there is one
  };
  TimingWork(Scheduler& scheduler, std::function<Subject()> subject);

  const Study& study() const { return study_; }
  void setChoice(const FieldTexts& choice) { choice_ = choice; }
  void want(const FieldTexts& choice);  ///< now, or as soon as the running work is done; instead of a timing under way
  void stop();                          ///< by hand: the timings until now stay, and it is not timed by itself again
  void setInSight(bool inSight);
  void touched() { touched_ = std::chrono::steady_clock::now(); }
  void setPatience(std::chrono::milliseconds idle, std::chrono::milliseconds first);
  void setupChanged();
  bool modelChanged();  ///< whether the former timing holds no more

  bool running() const { return job_.running(); }
  bool wanted() const { return job_.running() || job_.waiting(); }
  bool isPending() const { return wanted() || soon_.isActive(); }
  TracePtr trace() const { return holds() ? timed_ : TracePtr(); }  ///< as far as it is of the present setup

 signals:
  void moved(const reclab::StudyState& state);
  void came();
  void pendingChanged();
  void said(QString sentence, reclab::Tone tone);

 private:
  void begin(bool byHand);
  void end();       // the timing under way
  void forget();    // and the former one
  void consider();  // now, later or not at all
  void schedule();
  bool holds() const { return timed_ && timedOf_ == subject_().key; }
  void tellPending();
  void tell(bool running, const QString& waits);
  Scheduler& scheduler_;
  std::function<Subject()> subject_;
  const Study& study_ = reclab::study("time");
  FieldTexts choice_ = study_.in_window;
  StudyState state_;
  TracePtr timed_;
  std::optional<TimedKey> timedOf_;
  std::optional<TimingKey> refused_;  ///< it was stopped by hand or failed, and is not timed by itself again
  bool byHand_ = false, whole_ = false, inSight_ = false, toldPending_ = false;
  std::chrono::steady_clock::time_point opened_ = std::chrono::steady_clock::now(), touched_ = opened_;
  std::chrono::milliseconds idle_{5'000}, first_{20'000};
  QTimer soon_;
  Job<TimedKey, TracePtr> job_;
};

}  // namespace reclab
