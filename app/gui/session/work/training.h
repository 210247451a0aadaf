// SPDX-License-Identifier: GPL-3.0-or-later
// Trainings: models that learn, one or several on the same batches, each with the weights that it had on its way. A view of one is a run
// like any other, of weights that are kept.
#pragma once

#include <QElapsedTimer>
#include <QTimer>
#include <QUuid>
#include <atomic>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "experiment/training/training.h"
#include "gui/jobs/job.h"
#include "gui/session/sentences.h"
#include "gui/session/setup.h"
#include "gui/session/work/training_choice.h"
#include "trace/learning.h"

namespace reclab {

/// The request that trains a setup. Throws Error for a sequence that nothing can be learned from.
TrainingRequest trainingRequestFor(const Setup& setup, const Preset& preset, const TrainingChoice& choice);

/// A model that learns, between its thread and the window's.
class Learner {
 public:
  /// `run`: the id of its run among the compared ones, 0 for the current run. A training of trained weights continues from them, and waits
  /// until it is asked to.
  Learner(std::uint64_t number, std::uint64_t run, LibraryPtr library, Setup setup, const TrainingChoice& choice, QString name);

  const Setup& setup() const { return setup_; }  ///< as it began
  std::uint64_t number() const { return number_; }
  std::uint64_t run() const { return run_; }
  void setRun(std::uint64_t run) { run_ = run; }  ///< of one that was kept
  /// Whether its folder in the store is removed for good: what another thread is writing there then goes, too.
  void setRemoved(bool removed) { removed_ = removed; }
  const QString& id() const { return id_; }  ///< its own among all that there ever are, and the name of its folder
  const TrainingChoice& choice() const { return choice_; }

  // For the thread that trains.
  /// Makes a step; false where there is nothing more to do. Throws Error, and Cancelled with everything as it was before the step.
  bool advance(std::stop_token stop);
  void keepCheckpoint();  ///< keeps the weights as they are
  /// Writes the folder of the training. Throws Error.
  void write(const QString& folder);
  /// Writes the files that kept() reads, where it changed since; false where it has learned nothing yet. Throws Error.
  /// `whole` is called then, while nothing changes them.
  bool keep(const QString& folder, const std::function<void()>& whole = {});
  /// Restores a training that was kept, under the number that `number` makes of the one that it had; the training itself goes on from its
  /// files when it is asked to. Throws Error.
  static std::shared_ptr<Learner> kept(const QString& folder, const std::function<std::uint64_t(std::uint64_t before)>& number,
                                       const LibraryPtr& library, const std::function<LoadedSequencePtr(const SequenceChoice&)>& load);

  // For the window's thread.
  LearningCurvePtr curve();  ///< as it is now; the same while nothing happens
  LearnedPtr newest();       ///< weights
  LearnedPtr nearest(std::int64_t step);
  void wantNewest() { wanted_ = true; }       ///< those after the next step
  bool over();                                ///< it came to its end, or diverged
  bool waits();                               ///< it has not been asked to go on yet
  void choose(const TrainingChoice& choice);  ///< for its start, while it waits
  void goOn(std::int64_t steps);              ///< so many more than it has done

 private:
  void begin(std::stop_token stop);
  bool step(std::stop_token stop);
  void updateHistory(bool keep);
  void leaveDevice(const DeviceError& error);
  bool writeAll(const QString& folder);
  QString id_ = QUuid::createUuid().toString(QUuid::WithoutBraces);
  const std::uint64_t number_;
  std::uint64_t run_;
  const LibraryPtr library_;
  const Setup setup_;
  TrainingChoice choice_;      ///< with training_mutex_
  std::mutex training_mutex_;  ///< of training_, held for a step
  std::unique_ptr<Training> training_;
  std::filesystem::path resumes_;       ///< the folder that it goes on from; empty: it begins
  std::int64_t keptSteps_ = 0;          ///< as its folder has it
  bool onCpu_ = false;                  ///< the chosen device failed
  std::optional<TrainingState> state_;  ///< of a training on a device, as it last was here; none: as it begins
  QElapsedTimer sinceState_;
  std::atomic<bool> wanted_{false}, removed_{false};
  std::atomic<std::int64_t> more_{0};  ///< steps that were asked for beyond those of the choice
  /// The mutex of all below is held for moments alone, since the window's thread waits for it. kept_ changes in the thread that trains.
  std::mutex mutex_;
  LearningCurve curve_;
  LearningCurvePtr published_;  ///< curve_, copied when it was asked for last
  bool changed_ = true, over_ = false;
  Checkpoints kept_;
};

/// A run that is trained beside the current one.
struct RunBeside {
  std::uint64_t run = 0;
  Setup setup;
};

class TrainingWork : public QObject {
  Q_OBJECT
 public:
  static constexpr std::size_t most = 12;       ///< trainings that are kept
  static constexpr std::size_t mostBeside = 6;  ///< that learn in turn
  explicit TrainingWork(Scheduler& scheduler);

  void setChoice(const TrainingChoice& choice) { choice_ = choice; }
  const TrainingChoice& choice() const { return choice_; }

  /// Trains the setup, and others beside it on the same batches: goes on where that is one of those that were trained last, or a fork that
  /// waits; else from the beginning. `steps`: then it pauses; 0: until the end.
  void train(const LibraryPtr& library, const Setup& setup, const std::vector<RunBeside>& beside, std::int64_t steps = 0);
  /// Trainings that learn in turn, with all that they kept, the current one, and the choice that they were begun by.
  struct Forgotten {
    std::vector<std::shared_ptr<Learner>> together;
    std::shared_ptr<Learner> current;
    TrainingChoice begunBy;
  };
  /// A training from the weights that the setup has learned, for train() to begin with the choice then. Null where the setup has learned
  /// none.
  std::shared_ptr<Forgotten> fork(const LibraryPtr& library, const Setup& setup);
  /// Makes those that learned in turn before the fork current again, where they are still there. A fork that waits goes; one that has
  /// learned stays in the list.
  void leave(const std::shared_ptr<Forgotten>& fork, const Forgotten& before);
  void comeBackTo(const std::shared_ptr<Forgotten>& fork);
  Forgotten inTurn() const { return {together_, current_, begunBy_}; }
  /// Sets, by their ids, the trainings that are neither listed nor gone on with, though they are kept: those of another subject.
  void setAside(const QStringList& ids);
  QStringList aside() const { return {aside_.begin(), aside_.end()}; }
  void takeUp(const Forgotten& before);  ///< makes these current again, where they are still there
  void pause();
  static constexpr std::size_t mostForgotten = 4;  ///< that can be brought back; of older ones the trainings go
  /// The current training and those beside it, or those that were forgotten before and brought back.
  std::shared_ptr<Forgotten> forget(const std::shared_ptr<Forgotten>& again = {});
  /// Brings trainings back as if they had never been forgotten; false where they are no more kept.
  bool bringBack(const std::shared_ptr<Forgotten>& forgotten);
  void exportTo(const QString& folder);  ///< the current training, when its step is done

  /// Takes the trainings that were kept, at the start.
  void takeBack(const std::vector<std::shared_ptr<Learner>>& learners);
  void leaveAll();  ///< has none, as at the start; those that were kept stay on the disk
  /// The ids of those that learn together, the current first; and has them learn together, of those that there are.
  QStringList together() const;
  void goOnWith(const QStringList& ids);
  const std::vector<std::shared_ptr<Learner>>& all() const { return all_; }
  std::shared_ptr<Learner> findId(const QString& id) const;
  /// The id of a training, also of one that is no more kept; and its number, or a new one.
  QString idOf(std::uint64_t training) const;
  std::uint64_t numberOf(const QString& id);
  /// Writes all of it below the folder, in a thread of its own: at the end of each training, and every minute of it.
  void keepIn(const QString& folder);
  QString keepNow();  ///< here, before the program ends; a sentence where that cannot be
  QStringList removeForgotten();

  const JobBase& job() const { return job_; }
  bool running() const { return job_.running() || job_.waiting(); }
  std::shared_ptr<Learner> current() const { return current_; }
  std::shared_ptr<Learner> find(std::uint64_t training) const;
  std::shared_ptr<Learner> of(std::uint64_t run) const;  ///< the newest of a run beside; null where it has learned nothing
  std::shared_ptr<Learner> of(
      const Setup& setup) const;  ///< that whose weights it has, or else the newest that began as this is set; null: none
  std::shared_ptr<Learner> among(const Setup& setup) const;   ///< the same, of those that learn in turn
  std::shared_ptr<Learner> beside(const Setup& setup) const;  ///< the newest of the runs beside that is so; null: none
  void wantNewest();                                          ///< of all that learn in turn
  /// Everything, for the panel; which weights are looked at is the caller's to say.
  Learning state() const;

 signals:
  void moved();  ///< steps were made; often
  void runningChanged(bool running);
  void said(QString sentence, reclab::Tone tone);

 private:
  struct Nothing {};
  struct Key {
    std::uint64_t number = 0;
    bool operator==(const Key&) const = default;
  };
  struct ExportKey {
    std::uint64_t number = 0;
    QString folder;
    bool operator==(const ExportKey&) const = default;
  };
  std::shared_ptr<Learner> add(std::uint64_t run, const LibraryPtr& library, const Setup& setup, const QString& name);
  bool isOf(const Learner& learner, const Setup& setup) const;
  bool isAside(const std::shared_ptr<Learner>& one) const { return aside_.contains(one->id()); }
  void start(std::int64_t steps);
  void dropUnbegun();
  TrainingChoice choice_;
  std::vector<std::shared_ptr<Learner>> all_;
  std::shared_ptr<Learner> current_;
  std::vector<std::shared_ptr<Learner>> together_;  ///< those that learn in turn, current_ among them
  std::shared_ptr<std::atomic<double>> round_ =
      std::make_shared<std::atomic<double>>(0.0);    ///< seconds of a step of each, smoothed; 0: not known
  std::vector<std::weak_ptr<Forgotten>> forgotten_;  ///< the newest last
  TrainingChoice begunBy_;                           ///< the choice that current_ began with
  std::uint64_t newest_ = 0;
  std::map<std::uint64_t, QString> ids_;                           ///< of all that ever were
  std::map<std::uint64_t, std::weak_ptr<Learner>> forgottenOnes_;  ///< by their numbers; some may be back
  std::set<QString> aside_;
  std::uint64_t keeping_ = 0;
  QString keptIn_;
  QTimer keepsSoon_;
  QString keepProblem_;  ///< said once
  std::shared_ptr<std::atomic<bool>> pause_ = std::make_shared<std::atomic<bool>>(false);
  Job<Key, Nothing> job_;
  Job<ExportKey, Nothing> exports_;
  void keepSoon();
  Job<Key, QString> keeps_;
};

}  // namespace reclab
