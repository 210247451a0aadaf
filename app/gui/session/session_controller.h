// SPDX-License-Identifier: GPL-3.0-or-later
// Owns what is looked at and computes it, never on the GUI thread. The window tells it what is wanted and hears what came of it.
#pragma once

#include <QObject>
#include <QSet>
#include <QStringList>
#include <QTimer>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <utility>

#include "gui/session/requests.h"
#include "gui/session/setup.h"
#include "gui/session/worker.h"

namespace reclab {

enum class Tone { info, busy, warning };

class SessionController : public QObject {
  Q_OBJECT
 public:
  explicit SessionController(QObject* parent = nullptr);
  ~SessionController() override;

  void open();  ///< reads the presets; libraryReady follows
  const LibraryPtr& library() const { return library_; }
  const Setup& setup() const { return setup_; }
  const TracePtr& trace() const { return shown_; }
  const Setup& shownSetup() const { return shownSetup_ ? *shownSetup_ : setup_; }  ///< what the trace is of, while a newer setup() may be running
  /// What the trace records: nothing for sure while its run goes on.
  Probe shownProbe() const;
  bool running() const { return running_; }
  const Probe& asked() const { return lastProbe_; }  ///< what the newest run was to record
  bool exporting() const { return exporting_ > 0; }
  bool timing() const { return timingRuns_; }

  /// Makes it what is looked at, and runs it. live: more changes are about to follow (a slider moves).
  void apply(const Setup& setup, bool live);
  void run();
  void stop();
  /// Loads; sequenceLoaded follows, or a sentence, with everything as it was.
  void loadSequence(const SequenceChoice& choice);
  /// Weights or an initial state: sees whether the file fits the present model; fileFits follows, or a sentence, with everything as it was.
  void loadFile(FileKind kind, const QString& file);
  /// One of the above, by what is in the file; the choice is for a sequence.
  void openFile(const SequenceChoice& choice);
  /// Writes the weights or the final state of what is shown; saved follows, or a sentence.
  void saveFile(FileKind kind, const QString& file);
  void setVisiblePanels(const QStringList& ids);
  void setFocus(std::int64_t step) { focus_ = step; }  ///< the cursor: its spectrum comes first
  /// What a trace that was shown is of, when that is not what is set now: "Elman network, spectral radius = 0.7"; empty when it is.
  QString nameOfFormer(const TracePtr& trace) const;
  /// Whether arrays of this kind, which the trace that is shown does not have, may still come: a run or a timing is under way,
  /// or was stopped before it came to them.
  bool awaits(Kind kind) const;
  /// What a panel asks for.
  void request(const Request& request);
  /// What is timed beside a run while the panel is visible, without being asked for.
  void setTimingChoice(const TimingChoice& choice) { timingChoice_ = choice; }
  void wantTiming(const TimingChoice& choice);  ///< now, or as soon as what runs is done; instead of what is being timed
  /// Runs that are not this one's own, beside which nothing can be measured.
  void setOthersRunning(bool running);
  void stopTiming();                            ///< what was timed until now stays
  /// Whether the panel that shows timings is in sight: then what is not timed yet is timed by itself, once nothing runs and no hand has
  /// moved for a while.
  void setTimingInSight(bool inSight);
  void touched();  ///< a hand moved
  /// How long the desk must have been idle, and how old the program must be, before a timing begins by itself.
  void setTimingPatience(std::chrono::milliseconds idle, std::chrono::milliseconds first);
  void wantSteps(std::int64_t steps);  ///< the step view of the forms, of so many steps
  /// Runs once more with everything recorded, and writes it.
  void exportRun(const QString& folder, bool csv);
  /// Frees a large run somewhere else than on the GUI thread.
  void discard(TracePtr trace);

 signals:
  void libraryReady();
  void setupChanged();
  void modelDescribed(reclab::ModelPtr model);
  void sequenceLoaded(reclab::LoadedSequencePtr sequence);
  void sequenceRefused();  ///< after the sentence that says why
  void traceChanged(reclab::TracePtr trace);
  void runningChanged(bool running);
  void progressed(double fraction, QString stage);
  /// Of what is computed beside the run: that it began or ended, how far it is, and, a sentence, that it waits for a run or an export, or was
  /// stopped by one; empty when it does no more.
  void computing(reclab::Kind kind, bool runs);
  void computed(reclab::Kind kind, double fraction, QString stage);
  void waits(reclab::Kind kind, QString why);
  void runEnded(reclab::Outcome outcome);
  void awaitedChanged();  ///< what awaits() says may be another now
  void said(QString sentence, reclab::Tone tone);
  void exported(QString folder);
  /// Weights were refused that these hyper-parameters would fit.
  void sizesFit(QString preset, QString file, reclab::Settings sizes);
  void fileFits(reclab::FileKind kind, QString preset, QString file);
  void saved(QString file);

 private:
  void start(bool live);
  void describe();
  void startTiming();
  void endTiming();
  void dropTiming();       ///< what was measured holds no more
  void interruptTiming();  ///< something else is to compute: nothing is measured beside it
  void considerTiming();   ///< now, later or not at all
  void scheduleTiming();
  bool busy() const { return running_ || othersRun_ || exporting_ > 0 || !stepsRunOf_.empty(); }
  bool timingHolds() const;
  void startSteps();
  void forgetSteps();
  TracePtr joined() const;  ///< the run with what was timed and laid out beside it
  void show(const TracePtr& trace, const std::shared_ptr<const Setup>& setup, std::shared_ptr<const FinalState> state = {});
  void showJoined();  ///< gives out what joined() is now
  QString summary() const;  ///< what is shown, for the status line
  void endRun(Outcome outcome, const QString& sentence);
  std::string setupKey() const;  ///< everything that is set
  std::string costKey() const;   ///< of it, what can change what a form costs
  std::string stepsKey() const;
  template <class Function>
  void later(Function&& function) {  // from a worker to the GUI thread
    QMetaObject::invokeMethod(this, std::forward<Function>(function), Qt::QueuedConnection);
  }

  Setup setup_;
  LibraryPtr library_;
  QStringList visible_;
  TracePtr shown_, run_alone_, timing_;  ///< run_alone_: shown_ without timings
  TimingChoice timingChoice_;
  std::shared_ptr<const FinalState> state_;  ///< that what is shown ended in; null before it has
  std::string timingOf_, describedOf_;  ///< keys: what the timing is of, what was last described
  std::string shapes_, timingShapes_;   ///< of the parameters and states: as last described, and of what was timed
  std::string timingRefused_;           ///< what was stopped by hand and is not timed by itself again
  ModelPtr model_;                      ///< as last described
  std::uint64_t run_ = 0, description_ = 0, load_ = 0, timingRun_ = 0;  ///< numbers of the newest request of each kind
  bool running_ = false, firstStage_ = false, liveWaits_ = false, timingAsked_ = false, stopping_ = false, timingRuns_ = false;
  bool timingByHand_ = false, timingWhole_ = false, timingInSight_ = false, othersRun_ = false;
  std::size_t exporting_ = 0;  ///< exports that run or wait
  Probe lastProbe_;
  std::int64_t focus_ = 0;
  /// Of which setup the traces are that are shown, or still kept by a panel.
  std::vector<std::pair<std::weak_ptr<const Trace>, std::shared_ptr<const Setup>>> setups_;
  std::weak_ptr<const Trace> given_;          ///< the newest trace of a run, as it came
  std::shared_ptr<const Setup> shownSetup_;   ///< that of run_alone_
  bool live_ = false;                         ///< the newest run is one
  bool complete_ = false, settled_ = false;   ///< all stages of run_alone_ are there; and what follows a run has begun
  std::chrono::steady_clock::time_point started_;
  std::chrono::steady_clock::time_point opened_ = std::chrono::steady_clock::now(), touched_ = opened_;
  std::chrono::milliseconds idle_{5'000}, first_{20'000};
  QTimer rest_, patience_, timingSoon_;
  TracePtr steps_;
  std::string stepsOf_, stepsRunOf_;  ///< keys: what steps_ is of, and what is being laid out
  std::int64_t stepsWanted_ = 16;
  std::uint64_t stepsRun_ = 0;
  Worker runs_, cards_, files_, exports_, timings_, layouts_;  // last: joined before what they report to is gone
};

}  // namespace reclab
