// SPDX-License-Identifier: GPL-3.0-or-later
// The session's part in trainings: the choice of the weights that are looked at, and the pictures that follow.
#include <algorithm>
#include <limits>
#include <utility>

#include "gui/session/session_controller.h"
#include "window_text.h"

namespace reclab {
namespace {

constexpr int tellEvery = 150;            ///< ms from one state of the curves to the next
constexpr std::int64_t leastPause = 200;  ///< ms from one picture to the next

}  // namespace

void SessionController::connectTraining() {
  trainings_.keepIn(store_.folder());
  tellSoon_.setSingleShot(true);
  tellSoon_.setInterval(tellEvery);
  connect(&tellSoon_, &QTimer::timeout, this, &SessionController::tellLearning);
  // A training's message is not overwritten by that of a run that ends after it.
  connect(&trainings_, &TrainingWork::said, this, [this](const QString& sentence, Tone tone) {
    if (!runs_.running()) return emit said(sentence, tone);
    connect(
        &runs_, &RunWork::ended, this, [this, sentence, tone] { emit said(sentence, tone); },
        static_cast<Qt::ConnectionType>(Qt::QueuedConnection | Qt::SingleShotConnection));
  });
  connect(&trainings_, &TrainingWork::moved, this, [this] {
    if (!tellSoon_.isActive()) tellSoon_.start();
    followOn();
  });
  connect(&trainings_, &TrainingWork::runningChanged, this, [this](bool running) {
    if (running) {
      following_ = true;
      runBefore_ = runs_.running();
      sincePicture_.start();
    } else if (following_) {
      if (const auto looked = trainings_.among(setup_))
        lookAt(looked->newest(), false);  // the last picture is a whole one
      else if (const auto current = trainings_.current(); current && current->newest())
        setLine(current->newest()->step);
    }
    tellLearning();
  });
  connect(&runs_, &RunWork::ended, this, [this](Outcome, const QString&, double seconds) {
    if (trainings_.running()) pause_ = std::max<std::int64_t>(leastPause, static_cast<std::int64_t>(9000.0 * (seconds + secondsBeside_)));
  });
}

void SessionController::tellLearning() {
  tellSoon_.stop();
  Learning now = trainings_.state();
  // While pictures follow by themselves it is said of which weights they are; under a hand, where the hand is.
  const Setup& looked = following_ ? shownSetup() : setup_;
  const auto its = trainings_.of(looked);
  if (const LearnedPtr learned = looked.learnedWeights()) {
    now.shown = learned->training;
    now.shown_step = learned->step;
  }
  const auto line = its ? its : trainings_.current();
  if (line) {
    const LearningCurvePtr curve = line->curve();
    const bool begins = its && now.shown == 0 && curve->first == 0;  // the training begins from the drawn weights
    const bool learned = now.shown == line->number(), drawn = begins && (line_ == 0 || (following_ && now.running));
    now.line = line->number();
    now.line_step = learned ? now.shown_step : drawn ? 0 : std::clamp(line_, curve->first, curve->done);
    now.line_shown = learned || drawn;
  }
  learning_ = std::make_shared<const Learning>(std::move(now));
  emit learningChanged(learning_);
}

void SessionController::setLine(std::int64_t step) {
  if (std::exchange(line_, step) != step) emit trainingStepChanged();
}

/// The next picture, where it is time for one, of weights that came since the last.
void SessionController::followOn() {
  const auto looked = trainings_.among(setup_),
             leads = looked ? looked : trainings_.current();  // something else may be looked at meanwhile
  if (!following_ || !leads || !trainings_.running()) return;
  if (runs_.running() && !runBefore_) return;
  if (sincePicture_.elapsed() < pause_) return;
  const LearnedPtr newest = leads->newest();
  if (newest && (looked ? newest != setup_.learnedWeights() : newest->step != line_)) {
    sincePicture_.start();
    runBefore_ = false;
    if (looked)
      lookAt(newest, true);
    else
      setLine(newest->step);
  }
  trainings_.wantNewest();
}

void SessionController::lookAt(const LearnedPtr& weights, bool live) {
  if (!weights || !ready()) return;
  if (setup_.learnedWeights() == weights && (live || runs_.complete())) return;
  Setup learned = setup_;
  learned.learned[learned.preset] = weights;
  take(learned);
  runs_.start(live);
}

void SessionController::train(const std::vector<RunBeside>& beside, std::int64_t steps) {
  holdStream();
  if (!ready()) {
    emit said(tr("There is nothing to train yet; choose a model and a sequence first."), Tone::warning);
    return;
  }
  if (setup_.sequence->sequence.target_kind == TargetKind::none && setup_.sequence->choice.is_file()) {
    // A training on a file without a target predicts the next value: that is shown too.
    SequenceChoice with_target = setup_.sequence->choice;
    with_target.load.target = {"next"};
    trainsNext_ = [this, beside, steps] { train(beside, steps); };
    return loadSequence(with_target);
  }
  if (setup_.sequence->sequence.target_kind == TargetKind::none) {
    emit said(tr("%1 has no target, so there is nothing to learn: choose a task with a target, or a file.")
                  .arg(QString::fromStdString(setup_.sequence->sequence.name)),
              Tone::warning);
    return;
  }
  following_ = true;
  pause_ = leastPause;
  if (!setup_.learnedWeights()) setLine(0);
  std::vector<RunBeside> others = beside;
  for (RunBeside& one : others) one.setup.sequence = setup_.sequence;
  trainings_.train(library_, setup_, others, steps);
  tellLearning();
}

SessionController::Fork SessionController::forkTraining() {
  if (!ready() || !setup_.learnedWeights()) {
    emit said(tr("A fork begins from weights that were learned: train, and go to the step to begin from."), Tone::info);
    return {};
  }
  const TrainingWork::Forgotten before = trainings_.inTurn();
  const Forgotten fork = trainings_.fork(library_, setup_);
  tellLearning();
  return {[this, before, fork] {
            following_ = false;
            trainings_.leave(fork, before);
            tellLearning();
          },
          [this, fork] {
            trainings_.comeBackTo(fork);
            tellLearning();
          }};
}

SessionController::Fork SessionController::putTrainingsAside() {
  const auto ids = [this] {
    QStringList all;
    for (const auto& one : trainings_.all()) all << one->id();
    return all;
  };
  if (trainings_.all().empty()) return {};
  const auto put = [this, ids] {
    following_ = false;
    setTrainingsAside(ids());
  };
  const auto before = std::make_shared<TrainingWork::Forgotten>(trainings_.inTurn());
  const QStringList aside = trainings_.aside();
  put();
  return {[this, before, aside] {
            setTrainingsAside(aside);
            trainings_.takeUp(*before);
            tellLearning();
          },
          put};
}

void SessionController::setTrainingsAside(const QStringList& ids) {
  trainings_.setAside(ids);
  tellLearning();
}

SessionController::Forgotten SessionController::resetTraining(const Forgotten& again) {
  following_ = false;
  Forgotten forgotten = trainings_.forget(again);
  Setup drawn = setup_;
  drawn.learned.erase(drawn.preset);
  apply(drawn, false);
  tellLearning();
  return forgotten;
}

void SessionController::bringBackTraining(const Forgotten& forgotten, const Setup& before) {
  following_ = false;
  const bool whole = trainings_.bringBack(forgotten);
  apply(before, false);
  tellLearning();
  if (!whole)
    emit said(tr("The weights that were looked at are back; the training that they are of was forgotten too long ago."), Tone::warning);
}

std::optional<Setup> SessionController::setupAt(std::uint64_t training, std::int64_t step) const {
  const auto learner = trainings_.find(training);
  if (!learner) return std::nullopt;
  const LearnedPtr weights = learner->nearest(step);
  if (!weights) return std::nullopt;
  Setup then = setup_;
  const Setup& its = learner->setup();
  // Weights of another model, or of other sizes, bring their own setup.
  if (std::exchange(then.preset, its.preset) != its.preset) then.form = "auto";  // another model may not have this one's
  if (const auto set = its.set.find(its.preset); set != its.set.end())
    then.set[its.preset] = set->second;
  else
    then.set.erase(its.preset);
  then.sequence = its.sequence;
  then.seed = its.seed;
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

void SessionController::restore(const Setup& setup, bool follows) {
  following_ = false;
  holdStream();
  if (setup != setup_) apply(setup, false);
  following_ = follows;
  tellLearning();
}

void SessionController::followTraining() {
  const auto looked = trainings_.among(setup_), leads = looked ? looked : trainings_.current();
  if (leads) lookAtStep(leads->number(), std::numeric_limits<std::int64_t>::max(), false);
  following_ = true;
  tellLearning();
}

std::uint64_t SessionController::trainingOf(std::uint64_t run) const {
  const auto learner = trainings_.of(run);
  return learner ? learner->number() : 0;
}

LearnedPtr SessionController::learnedBy(std::uint64_t run) const {
  const auto learner = trainings_.of(run);
  return learner ? learner->nearest(line_) : nullptr;
}

Setup SessionController::asLearned(Setup setup) const {
  auto learner = trainings_.among(setup);
  if (!learner) learner = trainings_.beside(setup);
  if (const LearnedPtr weights = learner ? learner->nearest(line_) : nullptr) setup.learned[setup.preset] = weights;
  return setup;
}

void SessionController::takeBack(const KeptTrainings& kept) {
  keptWeights_ = kept.weights;
  trainings_.takeBack(kept.learners);
  for (const QString& problem : kept.problems) emit said(problem, Tone::warning);
}

QString SessionController::keepTrainings() {
  store_.remove(trainings_.removeForgotten());
  return trainings_.keepNow();
}

void SessionController::beginWith(const KeptTrainings& kept) {
  holdStream();
  stream_.reset();
  following_ = false;
  trainsNext_ = nullptr;
  trainings_.leaveAll();
  gotten_.clear();
  ran_.clear();
  takeBack(kept);
}

QJsonObject SessionController::nameLearned(const LearnedPtr& weights) const {
  if (weights->training == 0) return {};  // of a stream, whose place has a file of them
  const QString training = trainings_.idOf(weights->training);
  QJsonObject object{{"training", training},
                     {"step", QString::number(weights->step)},
                     {"from", QString::fromStdString(weights->from)},
                     {"command", QString::fromStdString(weights->command)},
                     {"folder", QString::fromStdString(weights->folder)}};
  if (!training.isEmpty() && weights->bytes() <= TrainingStore::largest)
    object["file"] = QStringLiteral("%1-%2.npz").arg(training).arg(weights->step);
  return object;
}

QJsonObject SessionController::putLearned(const LearnedPtr& weights) {
  QJsonObject object = nameLearned(weights);
  const QString name = object["file"].toString();
  if (name.isEmpty()) return object;
  try {
    if (!written_.contains(name)) writeWeights(store_.fileOf(name).toStdString(), weights->values);
    written_.insert(name);
  } catch (const Error& error) {
    object.remove("file");
    emit said(windowText(error), Tone::warning);
  }
  return object;
}

LearnedPtr SessionController::getLearned(const QJsonObject& object) {
  const QString training = object["training"].toString(), file = object["file"].toString();
  const std::int64_t step = object["step"].toString().toLongLong();
  if (training.isEmpty()) return nullptr;
  if (const auto learner = trainings_.findId(training))
    if (const LearnedPtr its = learner->nearest(step); its && its->step == step) return its;
  LearnedPtr& same = gotten_[{training, step}];  // of several pins with these weights
  const auto values = keptWeights_.find(file);
  if (same || values == keptWeights_.end()) return same;
  auto weights = std::make_shared<LearnedWeights>();
  weights->training = trainings_.numberOf(training);
  weights->step = step;
  weights->values = values->second;
  weights->from = object["from"].toString().toStdString();
  weights->command = object["command"].toString().toStdString();
  weights->folder = object["folder"].toString().toStdString();
  return same = std::move(weights);
}

void SessionController::follow(std::uint64_t run, const QString& training) {
  if (const auto learner = trainings_.findId(training)) learner->setRun(run);
}

void SessionController::trainOnWith(const QStringList& ids) {
  trainings_.goOnWith(ids);
  if (const auto looked = trainings_.current(); looked && looked->newest() && !setup_.learnedWeights()) setLine(looked->newest()->step);
  tellLearning();
}

LoadedSequencePtr SessionController::sequenceOf(const SequenceChoice& choice) const {
  for (const auto& one : trainings_.all())
    if (one->setup().sequence && one->setup().sequence->choice == choice) return one->setup().sequence;
  return nullptr;
}

}  // namespace reclab
