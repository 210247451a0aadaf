// SPDX-License-Identifier: GPL-3.0-or-later
// Trainings: models that learn, one or several on the same batches, each with the weights that it had on its way. What is looked at of them is a run
// like any other, of weights that are kept.
#pragma once

#include <QElapsedTimer>
#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

#include "experiment/training/training.h"
#include "gui/jobs/job.h"
#include "gui/session/setup.h"
#include "gui/session/words.h"
#include "trace/learning.h"
#include "training_choice.h"

namespace reclab {

/// What a setup is trained by. Throws Error for a sequence that nothing can be learned from.
TrainingRequest trainingRequestFor(const Setup& setup, const Preset& preset, const TrainingChoice& choice);

/// A model that learns, between its thread and the window's.
class Learner {
 public:
  Learner(std::uint64_t number, LibraryPtr library, Setup setup, const TrainingChoice& choice, QString name);

  const Setup& setup() const { return setup_; }  ///< as it began
  std::uint64_t number() const { return number_; }

  // In the thread that trains.
  /// A step; false where there is nothing more to do. Throws Error, and Cancelled with everything as it was before the step.
  bool advance(std::stop_token stop);
  void rest();  ///< keeps the weights as they are
  /// Writes the folder of the training. Throws Error.
  void write(const QString& folder);

  // In the window's.
  LearningCurvePtr curve();             ///< as it is now; the same while nothing happens
  LearnedPtr newest();                  ///< weights
  LearnedPtr nearest(std::int64_t step);
  void wantNewest() { wanted_ = true; }  ///< those after the next step
  bool over();                          ///< it came to its end, or diverged
  void goOn(std::int64_t steps);        ///< so many more than it has done

 private:
  void begin(std::stop_token stop);
  void take(bool keep);
  const std::uint64_t number_;
  const LibraryPtr library_;
  const Setup setup_;
  const TrainingChoice choice_;
  std::mutex training_mutex_;  ///< of training_, held for a step
  std::unique_ptr<Training> training_;
  std::atomic<bool> wanted_{false};
  std::atomic<std::int64_t> more_{0};  ///< steps that were asked for beyond those of the choice
  std::mutex mutex_;  ///< of all below
  LearningCurve curve_;
  LearningCurvePtr told_;  ///< curve_, copied when it was asked for last
  bool changed_ = true, over_ = false;
  Checkpoints kept_;
  QElapsedTimer since_;
  double paced_ = 0.0;  ///< seconds of the last steps, smoothed; 0: none yet
};

class TrainingWork : public QObject {
  Q_OBJECT
 public:
  static constexpr std::size_t most = 6;  ///< trainings that are kept
  explicit TrainingWork(Desk& desk);

  void setChoice(const TrainingChoice& choice) { choice_ = choice; }
  const TrainingChoice& choice() const { return choice_; }

  /// Trains what is set, and others beside it on the same batches: goes on where that is what was trained last, else from the beginning.
  /// `steps`: then it pauses; 0: until the end.
  void train(const LibraryPtr& library, const Setup& setup, const std::vector<Setup>& beside, std::int64_t steps = 0);
  /// From the weights that the setup has learned, with what is chosen now.
  void fork(const LibraryPtr& library, const Setup& setup);
  void pause();
  void forget();  ///< the current training, and what it kept
  void exportTo(const QString& folder);  ///< the current training, when its step is done

  bool running() const { return job_.running() || job_.waiting(); }
  std::shared_ptr<Learner> current() const { return current_; }
  std::shared_ptr<Learner> find(std::uint64_t training) const;
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
  std::shared_ptr<Learner> add(const LibraryPtr& library, const Setup& setup, const QString& name);
  bool isOf(const Learner& learner, const Setup& setup) const;
  void start(std::int64_t steps);
  TrainingChoice choice_;
  std::vector<std::shared_ptr<Learner>> all_;
  std::shared_ptr<Learner> current_;
  std::vector<std::shared_ptr<Learner>> together_;  ///< current_ first
  TrainingChoice begunBy_;                          ///< the choice that current_ began with
  std::uint64_t newest_ = 0;
  std::shared_ptr<std::atomic<bool>> pause_ = std::make_shared<std::atomic<bool>>(false);
  QTimer patience_;
  Job<Key, Nothing> job_;
  Job<ExportKey, Nothing> exports_;
};

}  // namespace reclab
