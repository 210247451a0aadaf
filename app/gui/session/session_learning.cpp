// SPDX-License-Identifier: GPL-3.0-or-later
// What the session does with trainings: which weights are looked at, and how pictures follow.
#include <algorithm>
#include <limits>
#include <utility>

#include "gui/session/session_controller.h"

namespace reclab {
namespace {

constexpr int tellEvery = 150;            ///< ms from one state of the curves to the next
constexpr std::int64_t leastPause = 200;  ///< ms from one picture to the next

}  // namespace

void SessionController::connectTraining() {
  tellSoon_.setSingleShot(true);
  tellSoon_.setInterval(tellEvery);
  connect(&tellSoon_, &QTimer::timeout, this, &SessionController::tellLearning);
  connect(&trainings_, &TrainingWork::said, this, &SessionController::said);
  connect(&trainings_, &TrainingWork::moved, this, [this] {
    if (!tellSoon_.isActive()) tellSoon_.start();
    followOn();
  });
  connect(&trainings_, &TrainingWork::runningChanged, this, [this](bool running) {
    if (running) {
      following_ = true;
      sincePicture_.start();
    } else if (following_ && trainings_.current()) {
      lookAt(trainings_.current()->newest(), false);  // the last picture is a whole one
    }
    tellLearning();
  });
  connect(&runs_, &RunWork::ended, this, [this](Outcome, const QString&, double seconds) {
    if (trainings_.running()) pause_ = std::max<std::int64_t>(leastPause, static_cast<std::int64_t>(9000.0 * seconds));
  });
}

void SessionController::tellLearning() {
  tellSoon_.stop();
  Learning now = trainings_.state();
  if (const LearnedPtr looked = setup_.learnedWeights()) {
    now.shown = looked->training;
    now.shown_step = looked->step;
  }
  learning_ = std::make_shared<const Learning>(std::move(now));
  emit learningChanged(learning_);
}

/// The next picture, where it is time for one, of weights that came since the last.
void SessionController::followOn() {
  const auto current = trainings_.current();
  if (!following_ || !current || !trainings_.running() || runs_.running()) return;
  if (setup_.preset != current->setup().preset || setup_.settings() != current->setup().settings()) return;  // something else is looked at meanwhile
  if (sincePicture_.elapsed() < pause_) return;
  const LearnedPtr newest = current->newest();
  if (newest && newest != setup_.learnedWeights()) {
    sincePicture_.start();
    lookAt(newest, true);
  }
  current->wantNewest();
}

void SessionController::lookAt(const LearnedPtr& weights, bool live) {
  if (!weights || !ready()) return;
  if (setup_.learnedWeights() == weights && (live || runs_.complete())) return;
  Setup learned = setup_;
  learned.learned[learned.preset] = weights;
  take(learned);
  runs_.start(live);
}

void SessionController::train(const std::vector<Setup>& beside, std::int64_t steps) {
  if (!ready()) {
    emit said(tr("There is nothing to train yet; choose a model and a sequence first."), Tone::warning);
    return;
  }
  if (setup_.sequence->sequence.target_kind == TargetKind::none && setup_.sequence->choice.isFile) {
    // What is learned from a file without a target is what comes next: that is shown too.
    SequenceChoice with_target = setup_.sequence->choice;
    with_target.load.target = {"next"};
    trainsNext_ = [this, beside, steps] { train(beside, steps); };
    return loadSequence(with_target);
  }
  if (setup_.sequence->sequence.target_kind == TargetKind::none) {
    emit said(tr("%1 has no target, so there is nothing to learn: choose a task with a target, or a file.").arg(QString::fromStdString(setup_.sequence->sequence.name)), Tone::warning);
    return;
  }
  following_ = true;
  trainings_.train(library_, setup_, beside, steps);
  tellLearning();
}

void SessionController::forkTraining() {
  if (!ready() || !setup_.learnedWeights()) {
    emit said(tr("A fork begins from weights that were learned: train, and go to the step to begin from."), Tone::info);
    return;
  }
  following_ = true;
  trainings_.fork(library_, setup_);
  tellLearning();
}

void SessionController::resetTraining() {
  following_ = false;
  trainings_.forget();
  Setup drawn = setup_;
  drawn.learned.erase(drawn.preset);
  apply(drawn, false);
  tellLearning();
}

std::optional<Setup> SessionController::setupAt(std::uint64_t training, std::int64_t step) const {
  const auto learner = trainings_.find(training);
  if (!learner) return std::nullopt;
  const LearnedPtr weights = learner->nearest(step);
  if (!weights) return std::nullopt;
  Setup then = setup_;
  const Setup& its = learner->setup();
  // Those of another model, or of other sizes, are looked at in their own.
  then.preset = its.preset;
  if (const auto set = its.set.find(its.preset); set != its.set.end())
    then.set[its.preset] = set->second;
  else
    then.set.erase(its.preset);
  then.sequence = its.sequence;
  then.learned[then.preset] = weights;
  return then;
}

void SessionController::lookAtStep(std::uint64_t training, std::int64_t step, bool moving) {
  const auto then = setupAt(training, step);
  if (!then) return;
  following_ = false;
  if (then->learnedWeights() != setup_.learnedWeights() || !moving) apply(*then, moving);
  tellLearning();
}

void SessionController::followTraining() {
  following_ = true;
  if (trainings_.current()) lookAtStep(trainings_.current()->number(), std::numeric_limits<std::int64_t>::max(), false);
  following_ = true;
}

}  // namespace reclab
