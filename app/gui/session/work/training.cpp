// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/session/work/training.h"

#include <QDir>
#include <algorithm>
#include <utility>

#include "array/stop.h"
#include "gui/session/pins.h"
#include "gui/session/requests.h"
#include "models/registry.h"
#include "window_text.h"

namespace reclab {
namespace {

constexpr std::int64_t memoryOfWeights = std::int64_t{64} << 20;  ///< of one training
constexpr qint64 betweenStates = 1000;                            ///< ms: so much of a training is made again when its device fails
constexpr std::chrono::seconds keepEvery{60};
constexpr std::chrono::milliseconds mostPatient{10}, betweenReports{40};

QString titleOf(const Preset& preset) { return QString::fromStdString(preset.title.empty() ? preset.id : preset.title); }

}  // namespace

TrainingRequest trainingRequestFor(const Setup& setup, const Preset& preset, const TrainingChoice& choice) {
  TrainingRequest request;
  static_cast<TrainingPlan&>(request) = choice;
  for (const TrainingField& field : training_fields())
    if (field.applies && !field.applies(choice)) field.set(request, field.row.standard);
  request.run = requestFor(setup, preset, {});
  request.run.sequence = {};
  request.run.state.clear();
  if (request.run.form == "auto") request.run.form = "sequential";
  SequenceChoice& from = request.from;
  from = setup.sequence->choice;
  if (from.is_file()) {
    std::erase(from.load.target, "next");
    // Of a file that is too short for them windows are as long as they can be.
    if (const std::int64_t longest = longest_window(setup.sequence->sequence.length, !from.load.target.empty(), request.windows);
        longest > 0)
      request.windows.length = std::min(choice.windows.length, longest);
    request.windows.seed = setup.seed;
  }
  return request;
}

Learner::Learner(std::uint64_t number, std::uint64_t run, LibraryPtr library, Setup setup, const TrainingChoice& choice, QString name)
    : number_(number), run_(run), library_(std::move(library)), setup_(std::move(setup)), choice_(choice), kept_(memoryOfWeights) {
  curve_.training = number;
  curve_.name = name.toStdString();
  if (const LearnedPtr from = setup_.learnedWeights()) {
    curve_.first = from->step;
    curve_.parent = from->training;
    curve_.waits = true;
  }
  curve_.done = curve_.first;
  curve_.wanted = curve_.first + choice.steps;
  curve_.clip = choice.options.clip_norm;
}

void Learner::choose(const TrainingChoice& choice) {
  const std::lock_guard training(training_mutex_);
  const std::lock_guard lock(mutex_);
  if (!curve_.waits) return;
  choice_ = choice;
  curve_.wanted = curve_.first + choice.steps;
  curve_.clip = choice.options.clip_norm;
  changed_ = true;
}

bool Learner::waits() {
  const std::lock_guard lock(mutex_);
  return curve_.waits;
}

void Learner::begin(std::stop_token stop) {
  TrainingRequest request = trainingRequestFor(setup_, library_->presets.find(setup_.preset), choice_);
  if (onCpu_) request.run.device = "cpu";
  auto training =
      resumes_.empty() ? std::make_unique<Training>(builtin_registry(), request) : resume(builtin_registry(), request, resumes_);
  if (resumes_.empty())
    training->begin(stop);
  else if (const std::int64_t wanted = curve_.wanted - curve_.first; wanted > request.steps)
    training->extend(wanted - request.steps);
  training_ = std::move(training);
  if (training_->device() != "cpu" && training_->trainer().steps() > 0) state_ = training_->state();  // the state that it goes on from
  sinceState_.start();
  const Trainer& trainer = training_->trainer();
  {
    const std::lock_guard lock(mutex_);
    curve_.waits = false;
    curve_.from = training_->examples().text();
    curve_.metric = trainer.metric();
    curve_.baseline = trainer.baseline_text();
    curve_.baseline_loss = trainer.baseline().loss;
    curve_.baseline_metric = trainer.baseline().metric;
    curve_.weights.clear();
    for (const Model::Weight& weight : training_->model().weights()) curve_.weights.push_back(weight.name);
  }
  updateHistory(true);
}

/// Updates the history, and the weights where they are kept. They are fetched before the window's thread could have to wait.
void Learner::updateHistory(bool keep) {
  LearnedPtr weights;
  if (keep && (kept_.all().empty() || kept_.all().back()->step < curve_.first + training_->trainer().steps())) {
    const StopScope whole{std::stop_token()};  // a stopped training comes here to keep its weights
    weights = training_->learned(number_);
    if (curve_.first > 0) {  // how often these weights have been changed in all
      auto all = std::make_shared<LearnedWeights>(*weights);
      all->step += curve_.first;
      weights = std::move(all);
    }
  }
  const std::lock_guard lock(mutex_);
  const auto& history = training_->history();
  for (std::size_t i = curve_.loss.size(); i < history.size(); ++i) {
    curve_.loss.push_back(history[i].loss);
    curve_.rate.push_back(history[i].rate);
    curve_.norm.push_back(history[i].norm);
    curve_.clipped.push_back(history[i].clipped);
  }
  const auto& judgements = training_->evaluations();
  for (std::size_t i = curve_.judged.size(); i < judgements.size(); ++i) {
    curve_.judged.push_back(curve_.first + judgements[i].step);
    curve_.judged_loss.push_back(judgements[i].loss);
    curve_.judged_metric.push_back(judgements[i].metric);
  }
  for (std::size_t i = curve_.changes.size(); i < training_->changes().size(); ++i) curve_.changes.push_back(training_->changes()[i]);
  curve_.done = curve_.first + training_->trainer().steps();
  curve_.wanted = curve_.first + training_->request().steps;
  over_ = training_->done();
  if (weights) kept_.add(std::move(weights));
  changed_ = true;
}

/// Moves the training from its device to the CPU, at the last state that was copied from it.
void Learner::leaveDevice(const DeviceError& error) {
  const StopScope whole{std::stop_token()};
  // One that its device failed before anything was learned since it was resumed is resumed once more.
  const bool resumes = !state_ && !resumes_.empty();
  if (resumes) training_.reset();
  const std::string note = training_ ? training_->leave_device(builtin_registry(), error, state_) : left_device(error, 0, 0);
  onCpu_ = true;
  const std::lock_guard lock(mutex_);
  curve_.note = note;
  if (resumes) {
    changed_ = true;
    return;  // curve and weights are those that were kept
  }
  const std::int64_t from = state_ ? state_->steps : 0;
  for (std::vector<double>* steps : {&curve_.loss, &curve_.rate, &curve_.norm, &curve_.clipped})
    steps->resize(std::min(steps->size(), static_cast<std::size_t>(from)));
  while (!curve_.judged.empty() && curve_.judged.back() > curve_.first + from) {
    for (std::vector<double>* judged : {&curve_.judged_loss, &curve_.judged_metric}) judged->pop_back();
    curve_.judged.pop_back();
  }
  curve_.changes.resize(std::min(curve_.changes.size(), curve_.judged.empty() ? 0 : curve_.judged.size() - 1));
  curve_.done = curve_.first + from;
  Checkpoints kept(memoryOfWeights);
  for (const LearnedPtr& one : kept_.all())
    if (one->step <= curve_.done) kept.add(one);
  kept_ = std::move(kept);
  changed_ = true;
}

bool Learner::advance(std::stop_token stop) {
  const std::lock_guard training(training_mutex_);
  for (;;) try {
      return step(stop);
    } catch (const DeviceError& error) {
      leaveDevice(error);
    }
}

bool Learner::step(std::stop_token stop) {
  if (!training_) begin(stop);
  if (const std::int64_t more = more_.exchange(0); more > 0) training_->extend(more);
  {
    const std::lock_guard lock(mutex_);
    if (!curve_.problem.empty()) return false;
    over_ = training_->done();
    if (over_) return false;
  }
  std::string problem;
  try {
    training_->advance(stop);
  } catch (const TrainingDiverged& diverged) {
    problem = windowText(diverged).toStdString();
  }
  updateHistory(wanted_.exchange(false) || kept_.wants(curve_.first + training_->trainer().steps()) || training_->done() ||
                !problem.empty());
  if (sinceState_.elapsed() >= betweenStates && training_->device() != "cpu") {
    const StopScope whole{std::stop_token()};
    state_ = training_->state();
    sinceState_.start();
  }
  const std::lock_guard lock(mutex_);
  curve_.problem = problem;
  changed_ = true;
  return problem.empty() && !over_;
}

void Learner::keepCheckpoint() {
  const std::lock_guard training(training_mutex_);
  if (!training_) return;
  try {
    updateHistory(true);
  } catch (const DeviceError& error) {
    leaveDevice(error);
  }
}

void Learner::write(const QString& folder) {
  const std::lock_guard training(training_mutex_);
  if (!training_) throw Error("Nothing has been trained yet: train first.");
  try {
    export_training(*training_, folder.toStdString());
  } catch (const DeviceError& error) {
    leaveDevice(error);
    export_training(*training_, folder.toStdString());
  }
}

LearningCurvePtr Learner::curve() {
  const std::lock_guard lock(mutex_);
  if (!published_ || changed_) {
    curve_.kept.clear();
    for (const LearnedPtr& one : kept_.all()) curve_.kept.push_back(one->step);
    if (!kept_.all().empty()) curve_.command = kept_.all().back()->command;
    published_ = std::make_shared<const LearningCurve>(curve_);
    changed_ = false;
  }
  return published_;
}

LearnedPtr Learner::newest() {
  const std::lock_guard lock(mutex_);
  return kept_.all().empty() ? nullptr : kept_.all().back();
}

LearnedPtr Learner::nearest(std::int64_t step) {
  const std::lock_guard lock(mutex_);
  return kept_.nearest(step);
}

bool Learner::over() {
  const std::lock_guard lock(mutex_);
  return over_ || !curve_.problem.empty();
}

void Learner::goOn(std::int64_t steps) {
  const std::lock_guard lock(mutex_);
  if (!over_ || !curve_.problem.empty()) return;
  over_ = false;
  more_ = steps;
}

TrainingWork::TrainingWork(Scheduler& scheduler)
    : job_(scheduler, {.niceness = 5},  // who draws comes first
           {.began = [this](const Key&) { emit runningChanged(true); },
            .part = [this](const Key&, const Nothing&) { emit moved(); },
            .ended =
                [this](const Key&, const Ending& ending) {
                  keepsSoon_.stop();
                  if (ending.how == Ending::How::failed) dropUnbegun();
                  emit moved();
                  emit runningChanged(false);
                  if (ending.how == Ending::How::failed) emit said(ending.sentence, Tone::warning);
                  keepSoon();
                }}),
      exports_(scheduler, {.order = JobBase::Order::all},
               {.finished =
                    [this](const ExportKey& key, const Nothing&) {
                      emit said(tr("The training is in %1: weights, history and what it takes to go on with reclab train --resume.")
                                    .arg(QDir::toNativeSeparators(key.folder)),
                                Tone::info);
                    },
                .ended =
                    [this](const ExportKey&, const Ending& ending) {
                      if (ending.how == Ending::How::failed) emit said(ending.sentence, Tone::warning);
                    }}),
      keeps_(scheduler, {.niceness = 10},
             {.finished =
                  [this](const Key&, const QString& problem) {
                    if (!problem.isEmpty() && problem != keepProblem_)
                      emit said(tr("What was learned cannot be kept for the next start: %1").arg(problem), Tone::warning);
                    keepProblem_ = problem;
                  },
              .ended = [](const Key&, const Ending&) {}}) {
  keepsSoon_.setInterval(keepEvery);
  connect(&keepsSoon_, &QTimer::timeout, this, &TrainingWork::keepSoon);
}

bool TrainingWork::isOf(const Learner& learner, const Setup& setup) const {
  Setup a = learner.setup(), b = setup;
  a.learned.clear();
  b.learned.clear();
  a.form = b.form;
  a.loss = b.loss;
  if (sameInput(a.sequence, b.sequence)) a.sequence = b.sequence;
  return a.sameRun(b);
}

std::shared_ptr<Learner> TrainingWork::add(std::uint64_t run, const LibraryPtr& library, const Setup& setup, const QString& name) {
  auto made = std::make_shared<Learner>(++newest_, run, library, setup, choice_, name);
  all_.push_back(made);
  ids_[made->number()] = made->id();
  while (all_.size() > most) all_.erase(all_.begin());
  return made;
}

void TrainingWork::train(const LibraryPtr& library, const Setup& setup, const std::vector<RunBeside>& beside, std::int64_t steps) {
  if (running()) return;
  const auto begin = [&](std::uint64_t run, Setup from) {
    from.learned.erase(from.preset);
    together_.push_back(add(run, library, from, titleOf(library->presets.find(from.preset))));
  };
  // Runs pinned since the others began train on the same batches: they catch up.
  const auto beginBeside = [&] {
    bool any = false;
    for (const RunBeside& other : beside) {
      const bool there = std::ranges::any_of(together_, [&](const auto& one) { return isOf(*one, other.setup); });
      if (!choice_.beside || there || together_.size() >= mostBeside) continue;
      begin(other.run, other.setup);
      any = true;
    }
    return any;
  };
  const auto member = std::ranges::find_if(together_, [&](const auto& one) { return isOf(*one, setup); });
  const bool waits = current_ && current_->waits();
  if (waits && isOf(*current_, setup)) {
    current_->choose(choice_);
    begunBy_ = choice_;
  } else if (!waits && member != together_.end() && begunBy_ == choice_) {
    current_ = *member;
    const bool joined = !current_->curve()->parent && beginBeside();
    const auto over = [](const auto& one) { return one->over(); };
    if (!joined && std::ranges::all_of(together_, over)) {
      if (choice_.options.rate.shape == RateSchedule::Shape::cosine)
        return emit said(tr("The learning rate has fallen to 0 at the end of its cosine. Fork goes on from these weights with a rate that "
                            "begins anew; a larger number of steps trains anew."),
                         Tone::info);
      for (const auto& one : together_) one->goOn(choice_.steps);
    }
  } else {
    if (waits) std::erase(all_, current_);  // a fork that was left for another model
    together_.clear();
    begin(0, setup);
    beginBeside();
    current_ = together_.front();
    begunBy_ = choice_;
  }
  start(steps);
}

std::shared_ptr<TrainingWork::Forgotten> TrainingWork::fork(const LibraryPtr& library, const Setup& setup) {
  const LearnedPtr from = setup.learnedWeights();
  if (!from) return nullptr;
  pause();
  if (current_ && current_->waits()) std::erase(all_, current_);
  current_ = add(0, library, setup, tr("%1, from step %2").arg(titleOf(library->presets.find(setup.preset))).arg(from->step));
  together_ = {current_};
  emit moved();
  emit said(tr("The fork waits at step %1: choose how it learns, then press Train.").arg(from->step), Tone::info);
  return std::make_shared<Forgotten>(inTurn());
}

void TrainingWork::leave(const std::shared_ptr<Forgotten>& fork, const Forgotten& before) {
  if (fork->current && fork->current->waits()) forget(fork);
  if (!current_ || current_ == fork->current) takeUp(before);
  emit moved();
}

void TrainingWork::takeUp(const Forgotten& before) {
  const auto there = [this](const auto& one) { return std::ranges::find(all_, one) != all_.end(); };
  if (!before.current || !there(before.current)) return;
  pause();
  together_ = before.together;
  std::erase_if(together_, [&](const auto& one) { return !there(one); });
  current_ = before.current;
  begunBy_ = before.begunBy;
  emit moved();
}

void TrainingWork::setAside(const QStringList& ids) {
  aside_ = {ids.begin(), ids.end()};
  if (current_ && isAside(current_)) {
    pause();
    together_.clear();
    current_.reset();
  }
  emit moved();
}

void TrainingWork::comeBackTo(const std::shared_ptr<Forgotten>& fork) {
  if (std::ranges::find(all_, fork->current) == all_.end()) {
    if (!bringBack(fork)) emit said(tr("That fork was taken back too long ago."), Tone::warning);
    return;
  }
  pause();
  together_ = fork->together;
  current_ = fork->current;
  begunBy_ = fork->begunBy;
  emit moved();
}

void TrainingWork::start(std::int64_t steps) {
  pause_->store(true);  // pauses any other training
  pause_ = std::make_shared<std::atomic<bool>>(false);
  if (!keptIn_.isEmpty()) keepsSoon_.start();
  round_->store(0.0);
  job_.start({current_->number()},
             [learners = together_, pause = pause_, paced = round_, left = steps](const Report<Nothing>& report,
                                                                                  std::stop_token stop) mutable -> Nothing {
               using Clock = std::chrono::steady_clock;
               auto told = Clock::now(), began = told;
               double round = 0.0;
               std::int64_t rounds = 0;  // the first one also makes models and judges them
               bool more = true;
               try {
                 while (more && !pause->load()) {
                   more = false;
                   for (const auto& one : learners) {
                     if (stop.stop_requested()) throw Cancelled();
                     more = one->advance(stop) || more;
                   }
                   if (left > 0 && --left == 0) break;
                   const auto now = Clock::now();
                   if (const double seconds = std::chrono::duration<double>(now - std::exchange(began, now)).count(); rounds++ > 0) {
                     // At first the mean, later mostly of the last fifty.
                     round += (seconds - round) / static_cast<double>(std::min<std::int64_t>(rounds - 1, 50));
                     paced->store(round);
                   }
                   if (now - told >= betweenReports) {
                     told = now;
                     report.part({});
                   }
                 }
               } catch (...) {
                 for (const auto& one : learners) try {
                     one->keepCheckpoint();
                   } catch (const std::exception&) {
                     // The first exception is reported; these weights are still there, and are fetched when it goes on or is exported.
                   }
                 throw;
               }
               for (const auto& one : learners) one->keepCheckpoint();
               return {};
             });
}

/// Removes trainings that could not begin.
void TrainingWork::dropUnbegun() {
  const auto unbegun = [](const auto& one) { return !one->newest() && !one->waits(); };
  std::erase_if(all_, unbegun);
  std::erase_if(together_, unbegun);
  if (!current_ || !unbegun(current_)) return;
  const auto newest = std::find_if(all_.rbegin(), all_.rend(), [this](const auto& one) { return !isAside(one); });
  current_ = !together_.empty() ? together_.front() : newest != all_.rend() ? *newest : nullptr;
  if (together_.empty() && current_) together_.push_back(current_);
  if (current_) begunBy_ = current_->choice();
}

void TrainingWork::pause() {
  if (!running()) return;
  pause_->store(true);
  // A picture that is drawn before the end is heard takes longer than most steps. A long step is left, and made again when it goes on.
  if (job_.returnsWithin(mostPatient)) return;
  job_.stop();
  job_.returnsWithin(mostPatient);
}

std::shared_ptr<TrainingWork::Forgotten> TrainingWork::forget(const std::shared_ptr<Forgotten>& again) {
  auto forgotten = again ? again : std::make_shared<Forgotten>(inTurn());
  const bool isCurrent = current_ && std::ranges::find(forgotten->together, current_) != forgotten->together.end();
  if (isCurrent) {
    pause_->store(true);
    job_.stop();
    together_.clear();
    current_.reset();
  }
  for (const auto& one : forgotten->together) {
    std::erase(all_, one);
    forgottenOnes_[one->number()] = one;
  }
  std::erase_if(forgotten_, [&](const std::weak_ptr<Forgotten>& one) { return one.expired() || one.lock() == forgotten; });
  forgotten_.push_back(forgotten);
  if (forgotten_.size() > mostForgotten) {
    forgotten_.front().lock()->together.clear();
    forgotten_.front().lock()->current.reset();
    forgotten_.erase(forgotten_.begin());
  }
  emit moved();
  return forgotten;
}

bool TrainingWork::bringBack(const std::shared_ptr<Forgotten>& forgotten) {
  if (forgotten->together.empty()) return false;
  if (running()) {  // another one, which stays in the list
    pause_->store(true);
    job_.stop();
  }
  std::erase_if(forgotten_, [&](const std::weak_ptr<Forgotten>& one) { return one.lock() == forgotten; });
  for (const auto& one : forgotten->together) one->setRemoved(false);
  all_.insert(all_.end(), forgotten->together.begin(), forgotten->together.end());
  std::ranges::sort(all_, {}, &Learner::number);
  together_ = forgotten->together;
  current_ = forgotten->current;
  begunBy_ = forgotten->begunBy;
  emit moved();
  return true;
}

void TrainingWork::exportTo(const QString& folder) {
  if (!current_) return emit said(tr("Nothing has been trained yet: train first."), Tone::warning);
  exports_.start({current_->number(), folder}, [learner = current_, folder](const Report<Nothing>&, std::stop_token) -> Nothing {
    learner->write(folder);
    return {};
  });
}

namespace {

/// All of them; the first sentence of those that cannot be kept.
QString keepAll(const std::vector<std::shared_ptr<Learner>>& all, const QString& folder) {
  QString problem;
  for (const auto& one : all) try {
      one->keep(folder + "/" + one->id());
    } catch (...) {
      if (problem.isEmpty()) problem = sentenceOf(std::current_exception());
    }
  return problem;
}

}  // namespace

void TrainingWork::keepIn(const QString& folder) { keptIn_ = folder; }

void TrainingWork::keepSoon() {
  if (keptIn_.isEmpty() || all_.empty()) return;
  keeps_.start({++keeping_}, [all = all_, folder = keptIn_](const Report<QString>&, std::stop_token) { return keepAll(all, folder); });
}

QString TrainingWork::keepNow() {
  keepsSoon_.stop();
  job_.stop();  // a step that has not ended is left
  return keptIn_.isEmpty() ? QString() : keepAll(all_, keptIn_);
}

QStringList TrainingWork::removeForgotten() {
  QStringList ids;
  for (const auto& [number, id] : ids_) {
    const auto forgotten = forgottenOnes_.find(number);
    if (forgotten == forgottenOnes_.end() || find(number)) continue;
    if (const auto one = forgotten->second.lock()) one->setRemoved(true);
    ids << id;
  }
  return ids;
}

void TrainingWork::takeBack(const std::vector<std::shared_ptr<Learner>>& learners) {
  for (const auto& one : learners) {
    all_.push_back(one);
    ids_[one->number()] = one->id();
    newest_ = std::max(newest_, one->number());
  }
  if (!learners.empty()) emit moved();
}

void TrainingWork::leaveAll() {
  const bool ran = running();
  pause_->store(true);
  keepsSoon_.stop();
  job_.drop();
  all_.clear();
  together_.clear();
  current_.reset();
  forgotten_.clear();
  forgottenOnes_.clear();
  aside_.clear();
  ids_.clear();
  newest_ = 0;
  round_->store(0.0);
  emit moved();
  if (ran) emit runningChanged(false);
}

QStringList TrainingWork::together() const {
  QStringList ids;
  if (current_) ids << current_->id();
  for (const auto& one : together_)
    if (one != current_) ids << one->id();
  return ids;
}

void TrainingWork::goOnWith(const QStringList& ids) {
  if (running()) return;
  for (const QString& id : ids)
    if (const auto one = findId(id)) together_.push_back(one);
  if (together_.empty() && !all_.empty()) together_.push_back(all_.back());
  if (together_.empty()) return;
  current_ = together_.front();
  begunBy_ = current_->choice();
  emit moved();
}

std::shared_ptr<Learner> TrainingWork::findId(const QString& id) const {
  const auto found = std::ranges::find(all_, id, [](const auto& one) { return one->id(); });
  return found == all_.end() ? nullptr : *found;
}

QString TrainingWork::idOf(std::uint64_t training) const {
  const auto found = ids_.find(training);
  return found == ids_.end() ? QString() : found->second;
}

std::uint64_t TrainingWork::numberOf(const QString& id) {
  for (const auto& [number, its] : ids_)
    if (its == id) return number;
  ids_[++newest_] = id;
  return newest_;
}

std::shared_ptr<Learner> TrainingWork::find(std::uint64_t training) const {
  const auto found = std::ranges::find(all_, training, [](const auto& one) { return one->number(); });
  return found == all_.end() ? nullptr : *found;
}

std::shared_ptr<Learner> TrainingWork::of(std::uint64_t run) const {
  const auto found = std::find_if(all_.rbegin(), all_.rend(), [&](const auto& one) { return one->run() == run && !isAside(one); });
  return found == all_.rend() ? nullptr : *found;
}

std::shared_ptr<Learner> TrainingWork::of(const Setup& setup) const {
  // Weights go with a model and its sizes, on any sequence.
  if (const LearnedPtr learned = setup.learnedWeights())
    if (const auto its = find(learned->training); its && its->setup().preset == setup.preset && its->setup().settings() == setup.settings())
      return its;
  const auto found =
      std::find_if(all_.rbegin(), all_.rend(), [&](const auto& one) { return !one->waits() && !isAside(one) && isOf(*one, setup); });
  return found == all_.rend() ? nullptr : *found;
}

std::shared_ptr<Learner> TrainingWork::among(const Setup& setup) const {
  const auto its = of(setup);
  if (std::ranges::find(together_, its) != together_.end()) return its;
  const auto found = std::ranges::find_if(together_, [&](const auto& one) { return isOf(*one, setup); });
  return found == together_.end() ? nullptr : *found;
}

std::shared_ptr<Learner> TrainingWork::beside(const Setup& setup) const {
  const auto found =
      std::find_if(all_.rbegin(), all_.rend(), [&](const auto& one) { return one->run() != 0 && !isAside(one) && isOf(*one, setup); });
  return found == all_.rend() ? nullptr : *found;
}

void TrainingWork::wantNewest() {
  for (const auto& one : together_) one->wantNewest();
}

Learning TrainingWork::state() const {
  Learning learning;
  for (const auto& one : all_)
    if (!isAside(one)) learning.trainings.push_back(one->curve());
  learning.current = current_ ? current_->number() : 0;
  for (const auto& one : together_) learning.together.push_back(one->number());
  learning.running = running();
  if (const double round = round_->load(); learning.running && round > 0.0) learning.pace = 1.0 / round;
  return learning;
}

}  // namespace reclab
