// SPDX-License-Identifier: GPL-3.0-or-later
// The run of the present setup, which follows a slider that moves. It gives way to nothing; a newer one ends an older one.
#pragma once

#include <QTimer>
#include <atomic>
#include <chrono>
#include <memory>

#include "experiment/standing.h"
#include "gui/jobs/job.h"
#include "gui/session/requests.h"

namespace reclab {

struct RunKey {
  std::shared_ptr<const Setup> setup;
  RecordingOptions recording;
  bool live = false;  ///< the quick answer while a slider moves
  bool operator==(const RunKey& other) const;
};

/// A stage of a run, or its result, which has the state that it ended in.
struct RunStage {
  TracePtr trace;
  std::shared_ptr<const FinalState> state;
};

class RunWork : public QObject {
  Q_OBJECT
 public:
  struct Subject {
    LibraryPtr library;
    RunKey key;
  };
  /// `subject`: the run to be made now; nothing where something is missing.
  RunWork(Scheduler& scheduler, std::function<std::optional<Subject>(bool live)> subject);

  void start(bool live);
  void stop();
  /// A slider moved: when it rests there is a run in full.
  void moved();

  const JobBase& job() const { return job_; }
  bool running() const { return job_.running(); }
  bool dragging() const { return rest_.isActive(); }            ///< a slider moved, and has not paused yet
  bool hasShown() const { return !running() || !firstStage_; }  ///< the trace is of this run, or no run goes on
  bool complete() const { return complete_; }                   ///< all stages of the shown run are there
  bool settled() const { return settled_; }                     ///< and the work that follows a run has begun
  const RecordingOptions& asked() const { return asked_; }
  /// Whether all runs while a slider moves were soon at their end, so that late kinds can be waited for.
  bool liveRunsAreFast() const { return liveRunsAreFast_; }

 signals:
  void runningChanged(bool running);
  void progressed(double fraction, QString stage);
  void came(reclab::RunStage stage, std::shared_ptr<const reclab::Setup> of);
  void ended(reclab::Outcome outcome, QString sentence, double seconds);
  void weightsMisfit();                 ///< after ended: it failed since its weights are of other sizes, another sequence or another loss
  void rests(reclab::Outcome outcome);  ///< it ended, and no other is about to follow
  void dragPaused();                    ///< a slider has rested
  void followUpStarted();               ///< of the computations that follow a run in full

 private:
  void end(const Ending& ending);
  void rest();  ///< no more moves are waited for
  std::function<std::optional<Subject>(bool)> subject_;
  std::shared_ptr<StandingModel> standing_ = std::make_shared<StandingModel>();  ///< the job's alone, whose runs follow one another
  Job<RunKey, RunStage> job_;
  RecordingOptions asked_;
  bool live_ = false;        ///< the newest is one
  bool liveWaits_ = false;   ///< the newest place of the slider has no run yet
  bool firstStage_ = false;  ///< nothing of the newest has come
  bool liveRunsAreFast_ = true;
  bool complete_ = false, settled_ = false;
  Outcome outcome_ = Outcome::finished;
  QString sentence_;
  std::shared_ptr<std::atomic<bool>> misfit_ = std::make_shared<std::atomic<bool>>(false);  ///< of the newest
  std::chrono::steady_clock::time_point started_;
  QTimer rest_, patience_;
};

}  // namespace reclab
