// SPDX-License-Identifier: GPL-3.0-or-later
// A study beside the run, as a panel asked for it: of the present setup, or of a model of its own.
#pragma once

#include "gui/jobs/job.h"
#include "gui/session/sentences.h"
#include "gui/session/setup.h"
#include "request.h"
#include "studies/study.h"

namespace reclab {

/// The key of a study's result: its values, and all of the setup but the form, and but the loss where the result does not depend on it.
struct StudyKey {
  Setup setup;  ///< nothing for one that takes no model
  FieldTexts values;
  StudyKey(const Study& study, const Setup& of, FieldTexts with);
  bool sameSetup(const StudyKey& other) const { return setup.sameRun(other.setup); }
  bool operator==(const StudyKey& other) const { return values == other.values && sameSetup(other); }
};

class StudyWork : public QObject {
  Q_OBJECT
 public:
  struct Subject {
    LibraryPtr library;  ///< null while it is read
    const Setup& setup;
    bool shown = false;  ///< the run of this setup
  };
  StudyWork(const Study& study, Scheduler& scheduler, std::function<Subject()> subject);

  const Study& study() const { return study_; }
  /// Computes it now, or as soon as its run is there.
  void choose(const FieldTexts& values);
  void start();  ///< unless it is there, or on its way
  void stop();   ///< by hand: a result that is there stays
  void setupChanged();
  bool isAtIt() const { return job_.isAt(key()); }                              ///< for the present setup
  StudyResult result() const { return holds(key()) ? found_ : StudyResult(); }  ///< for the present setup, where it is there
  TracePtr trace() const { return result().get<Trace>(); }

 signals:
  /// Emitted with a result, or with the reason why there is none.
  void came(QString problem);
  void said(QString sentence, reclab::Tone tone);
  void moved(const reclab::StudyState& state);

 private:
  void tell(bool running);
  /// Whether the result is of this; where a hand asks for it, the last one is until another comes.
  bool holds(const StudyKey& now) const { return foundOf_ && (study_.on_request ? foundOf_->sameSetup(now) : *foundOf_ == now); }
  StudyKey key() const { return {study_, subject_().setup, values_}; }
  void take(const StudyKey& key, const StudyResult& found, const QString& problem = {});
  const Study& study_;
  std::function<Subject()> subject_;
  FieldTexts values_;
  bool wanted_ = false;
  StudyState state_;
  StudyResult found_;
  std::optional<StudyKey> foundOf_;
  Job<StudyKey, StudyResult> job_;
};

}  // namespace reclab
