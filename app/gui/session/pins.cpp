// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/session/pins.h"

#include <QApplication>
#include <algorithm>
#include <limits>
#include <utility>

#include "gui/look/look.h"
#include "gui/session/session_controller.h"
#include "models/registry.h"
#include "plot/theme.h"

namespace reclab {
namespace {

bool records(const RecordingOptions& has, const RecordingOptions& wanted) {
  const bool rows = has.dense_rows == 0 || (wanted.dense_rows > 0 && has.dense_rows >= wanted.dense_rows);
  return has.kinds.has_all(wanted.kinds) && (rows || !wanted.kinds.has_any(kinds_of(Stage::late)));
}

/// A repeated run keeps its earlier timings.
TracePtr timedAs(const TracePtr& trace, const TracePtr& before) {
  if (!before || !before->timed) return trace;
  auto both = std::make_shared<Trace>(*trace);
  for (const TraceArray* array : before->of(Kind::timing)) both->put(*array);
  both->timed = before->timed;
  return both;
}

/// Of the run that is shown.
QColor ownColour() { return Theme::of(QApplication::palette(), QApplication::font()).series(0); }

double lossOf(const TracePtr& trace) { return trace ? trace->info.loss_value : std::numeric_limits<double>::quiet_NaN(); }

QString titleOf(const Pin& pin, const LibraryPtr& library) {
  if (library)
    for (const Preset& preset : library->presets.presets())
      if (preset.id == pin.setup.preset) return QString::fromStdString(preset.title);
  return QString::fromStdString(pin.setup.preset);
}

}  // namespace

bool sameInput(const LoadedSequencePtr& a, const LoadedSequencePtr& b) {
  if (a == b) return true;
  return a && b && a->choice == b->choice && a->sequence.sha256 == b->sequence.sha256 && a->sequence.length == b->sequence.length;
}

// The window's own run comes first. While weights move the runs beside it follow as quickly as it does, and are made whole when they rest.
Pins::Pins(SessionController* session, QObject* parent)
    : QObject(parent),
      session_(session),
      job_(session->scheduler(), {.niceness = 10, .yieldsTo = {&session->runJob()}}, hears()),
      quick_(session->scheduler(), {.niceness = 10}, hears()) {
  connect(session, &SessionController::trainingStepChanged, this, &Pins::next);
  connect(session, &SessionController::streamChanged, this, &Pins::next);
  connect(session, &SessionController::learningChanged, this, [this](const LearningPtr& learning) {
    std::vector<std::uint64_t> trainings;
    for (const LearningCurvePtr& one : learning->trainings) trainings.push_back(one->training);
    if (std::exchange(trainings_, trainings) != trainings)
      for (Pin& pin : pins_) pin.problem.clear();  // with other weights it may run
    next();
  });
}
Pins::~Pins() = default;

Pins::Runs::Hears Pins::hears() {
  return {.began = [this](const Key& key) { mark(key.pin); },
          .finished = [this](const Key& key, const TracePtr& trace) { take(key, trace); },
          .ended =
              [this](const Key& key, const Ending& ending) {
                for (Pin& pin : pins_)
                  if (pin.id == key.pin) pin.problem = ending.sentence;
                update();
                mark({});
                next();
              },
          .preempted = [this] { mark({}); }};
}

LearnedPtr Pins::weightsFor(const Pin& pin) const {
  const LearnedPtr at = session_->learnedBy(pin.id);
  if (!at || !pin.weights || pin.weights->training != at->training) return at;
  // The pin's own weights may be kept no longer, and still be no farther from the current step.
  const std::int64_t step = session_->trainingStep();
  return std::abs(pin.weights->step - step) <= std::abs(at->step - step) ? pin.weights : at;
}

bool Pins::needsRun(const Pin& pin) const {
  if (!pin.problem.isEmpty()) return false;
  return !pin.trace || !sameInput(pin.setup.sequence, input_) || !records(pin.recording, wanted_) || pin.weights != weightsFor(pin);
}

bool Pins::moves(const Pin& pin) const {
  if (!pin.problem.isEmpty() || !session_->moving()) return false;
  const LearnedPtr wanted = weightsFor(pin);
  return wanted && pin.weights != wanted;
}

bool Pins::needsWhole(const Pin& pin) const { return needsRun(pin) && !(session_->moving() && weightsFor(pin)); }

void Pins::follow() {
  const LoadedSequencePtr& now = session_->shownSetup().sequence;
  if (!sameInput(std::exchange(input_, now), now)) {
    if (running()) mark({});
    job_.drop();  // it is of the input before
    quick_.drop();
    for (Pin& pin : pins_) pin.problem.clear();
  }
  update();
  emit followed();
  next();
}

void Pins::setRecording(const RecordingOptions& wanted) {
  wanted_ = wanted;
  next();
}

QString Pins::add(const Setup& setup, const TracePtr& trace, const RecordingOptions& recording, const QString& given, int colour) {
  if (pins_.size() >= most) return tr("%1 runs are pinned already; unpin one of them first.").arg(most);
  for (const Pin& one : pins_)
    if (trace && (one.trace == trace || one.setup.sameRun(setup))) return tr("This run is pinned already, as %1.").arg(one.name);
  Pin pin;
  pin.id = ++newest_;
  pin.setup = setup;
  pin.trace = trace;
  pin.recording = recording;
  pin.given = given;
  const auto taken = [this](int one) { return std::ranges::any_of(pins_, [one](const Pin& other) { return other.colour == one; }); };
  if (colour < 0 || colour >= static_cast<int>(most) || taken(colour))  // the first that is free, so that the others keep theirs
    for (colour = 0; taken(colour);) ++colour;
  pin.colour = colour;
  pins_.push_back(std::move(pin));
  update();
  emit changed();
  next();
  return {};
}

void Pins::remove(std::size_t index) {
  if (index >= pins_.size()) return;
  if (pins_[index].running) {
    job_.drop();
    quick_.drop();
  }
  seconds_.erase(pins_[index].id);
  session_->discard(std::exchange(pins_[index].trace, {}));
  pins_.erase(pins_.begin() + static_cast<std::ptrdiff_t>(index));
  update();
  emit changed();
  next();
}

void Pins::rename(std::size_t index, const QString& name) {
  if (index >= pins_.size()) return;
  pins_[index].given = name.simplified();
  update();
}

std::vector<PinValue> Pins::value() const {
  std::vector<PinValue> all;
  for (const Pin& pin : pins_) all.push_back({pin.id, pin.setup, pin.given, pin.colour});
  return all;
}

void Pins::setValue(const std::vector<PinValue>& value) {
  for (std::size_t i = pins_.size(); i-- > 0;)
    if (std::ranges::none_of(value, [&](const PinValue& one) { return one.id == pins_[i].id; })) remove(i);
  std::vector<Pin> all;
  for (const PinValue& one : value) {
    const auto now = std::ranges::find(pins_, one.id, &Pin::id);
    Pin pin;
    if (now != pins_.end() && now->setup.sameRun(one.setup)) pin = *now;  // else its curves are those of another run
    pin.id = one.id;
    newest_ = std::max(newest_, one.id);
    pin.setup = one.setup;
    pin.given = one.given;
    pin.colour = one.colour;
    all.push_back(std::move(pin));
  }
  pins_ = std::move(all);
  update();
  emit changed();
  next();
}

std::vector<Panel::Run> Pins::runs() const {
  std::vector<Panel::Run> all;
  for (const Pin& pin : pins_) {
    if (!pin.comparable) continue;
    const RunInfo& run = pin.trace->info;
    QStringList facts{QString::fromStdString(run.title.empty() ? run.preset : run.title)};
    for (const auto& [key, value] : run.hyper) facts << QString::fromStdString(key).replace('_', ' ') + ' ' + QString::fromStdString(value);
    facts << tr("seed %1").arg(run.seed);
    if (run.learned) facts << tr("after %1 steps of training").arg(grouped(run.learned->steps));
    all.push_back({pin.trace, pinColour(pin.colour), pin.name, facts.join(", "), !needsRun(pin)});
  }
  return all;
}

Facets Pins::facets(const Trace& trace, const std::string& preset) const {
  auto found = symbols_.find(preset);
  if (found == symbols_.end()) {
    std::map<std::string, std::pair<std::string, std::string>> rows;
    for (const Preset& one : session_->library()->presets.presets()) {
      if (one.id != preset) continue;
      const Hyper hyper = hyper_of(builtin_registry(), one);
      for (const HyperSpec& row : hyper.table()) rows[row.key] = {row.symbol, hyper.text(row.key)};
    }
    found = symbols_.emplace(preset, std::move(rows)).first;
  }
  const auto row = [&](const std::string& key) {
    const auto one = found->second.find(key);
    return one == found->second.end() ? std::pair<std::string, std::string>() : one->second;
  };
  return facetsOf(
      trace.info, [&](const std::string& key) { return row(key).first; }, [&](const std::string& key) { return row(key).second; });
}

Facets Pins::facets(const Pin& pin) const { return pin.trace ? facets(*pin.trace, pin.setup.preset) : Facets{}; }

Facets Pins::facetsOfShown() const { return session_->trace() ? facets(*session_->trace(), session_->shownSetup().preset) : Facets{}; }

void Pins::update() {
  if (pins_.empty()) return;
  std::vector<Facets> all;
  for (const Pin& pin : pins_) all.push_back(facets(pin));
  const QStringList names = runNames(facetsOfShown(), all);
  bool other = false;
  for (std::size_t i = 0; i < pins_.size(); ++i) {
    Pin& pin = pins_[i];
    const QString& found = names[static_cast<qsizetype>(i)];
    pin.plain = !pin.given.isEmpty() ? pin.given : !found.isEmpty() ? found : titleOf(pin, session_->library());
    const QString name = isUntrained(pin) ? tr("%1, untrained").arg(pin.plain) : pin.plain;
    const bool comparable = pin.trace && session_->trace() && sameInput(pin.setup.sequence, input_);
    other = other || name != pin.name || comparable != pin.comparable;
    pin.name = name;
    pin.comparable = comparable;
  }
  if (other) emit changed();
}

/// Whether a run beside a trained one is to be marked as untrained, unless its name says so.
bool Pins::isUntrained(const Pin& pin) const {
  const TracePtr& shown = session_->trace();
  if (!shown || !shown->info.learned || !pin.trace || pin.trace->info.learned || !pin.trace->info.weights.empty()) return false;
  const Facets its = facets(pin);
  const auto weights = std::ranges::find(its, QStringLiteral("weights"), &Facet::key);
  return weights == its.end() || !pin.plain.contains(weights->name);
}

bool Pins::has(const Setup& setup) const {
  return std::ranges::any_of(pins_, [&](const Pin& one) {
    Setup its = one.setup, same = setup;
    its.sequence = setup.sequence;
    // Its own training does not count, at any step.
    if (const LearnedPtr learned = setup.learnedWeights(); learned && learned->training == session_->trainingOf(one.id))
      same.learned.erase(same.preset);
    return its.sameRun(same);
  });
}

Setup Pins::setupOf(std::size_t index) const {
  Setup setup = pins_[index].setup;
  if (const LearnedPtr weights = weightsFor(pins_[index])) setup.learned[setup.preset] = weights;
  return setup;
}

std::vector<RunBeside> Pins::learners() const {
  std::vector<RunBeside> all;
  for (const Pin& pin : pins_)
    if (!pin.setup.learnedWeights()) all.push_back({pin.id, pin.setup});
  return all;
}

/// The name of the run that is shown among the others; empty where nothing is compared.
QString Pins::nameOfShown(const std::vector<Facets>& all) const {
  return all.empty() ? QString() : runNames(all.front(), {facetsOfShown()}).front();
}

std::vector<LearningRun> Pins::named(const Learning& learning) const {
  // A curve is of all steps of its training: the step whose weights are looked at is no part of its name.
  const auto withoutStep = [](Facets its) {
    std::erase_if(its, [](const Facet& one) { return one.key == u"weights"; });
    return its;
  };
  const QString own = pins_.empty() ? QString() : runNames(withoutStep(facets(pins_.front())), {withoutStep(facetsOfShown())}).front();
  std::vector<LearningRun> runs;
  for (const LearningCurvePtr& curve : learning.trainings) {
    LearningRun run{curve->training, curve->name, {}};
    const auto follows = std::ranges::find_if(pins_, [&](const Pin& pin) { return session_->trainingOf(pin.id) == curve->training; });
    const auto kept = std::ranges::find_if(pins_, [&](const Pin& pin) {
      const LearnedPtr weights = pin.setup.learnedWeights();
      return weights && weights->training == curve->training;
    });
    if (follows != pins_.end()) {
      run.name = follows->plain.toStdString();
      run.colour = pinColour(follows->colour).name().toStdString();
    } else if (curve->training == learning.line && learning.line_shown) {
      if (!own.isEmpty() && curve->parent == 0) run.name = own.toStdString();
      run.colour = ownColour().name().toStdString();
    } else if (kept != pins_.end()) {
      run.colour = pinColour(kept->colour).name().toStdString();
    }
    runs.push_back(std::move(run));
  }
  // Of several by one name those that are in no picture are told by their numbers.
  const std::vector<LearningRun> before = runs;
  for (LearningRun& run : runs) {
    const auto alike = std::ranges::count(before, run.name, &LearningRun::name);
    const bool last = run.colour.empty() ? false : std::ranges::none_of(before, [&](const LearningRun& other) {
      return other.name == run.name && !other.colour.empty() && other.training > run.training;
    });
    if (alike > 1 && !last) run.name = tr("%1 (%2)").arg(QString::fromStdString(run.name)).arg(run.training).toStdString();
  }
  return runs;
}

std::vector<Pins::Column> Pins::columns() const {
  std::vector<Facets> all;
  for (const Pin& pin : pins_) all.push_back(facets(pin));
  const QString name = nameOfShown(all);
  std::vector<Column> columns{{name.isEmpty() ? tr("shown") : tr("shown: %1").arg(name), ownColour(), facetsOfShown(), session_->trace()}};
  for (std::size_t i = 0; i < pins_.size(); ++i) columns.push_back({pins_[i].name, pinColour(pins_[i].colour), all[i], pins_[i].trace});
  return columns;
}

QString Pins::table(std::size_t index) const {
  const Pin& pin = pins_[index];
  return differenceTable({pin.name, tr("shown")}, {facets(pin), facetsOfShown()}, {lossOf(pin.trace), lossOf(session_->trace())});
}

void Pins::next() {
  if (session_->streams()) return;  // its input is another one before a run of it would be done
  const bool ready = session_->library() && input_;
  const auto any = [&](auto is) { return ready && std::ranges::any_of(pins_, [&](const Pin& one) { return (this->*is)(one); }); };
  const bool moving = any(&Pins::moves), needed = any(&Pins::needsWhole);
  if (!moving && quick_.waiting()) quick_.drop();
  if (moving && !quick_.running() && !quick_.waiting()) quick_.startInTurn([this] { return whatToRun(true); });
  if (!needed && job_.waiting()) job_.drop();
  if (needed && !job_.running() && !job_.waiting()) job_.startInTurn([this] { return whatToRun(false); });
}

std::optional<Pins::Runs::Work> Pins::whatToRun(bool quick) const {
  // Of those whose weights follow the step of training, the one farthest from it.
  const Pin* pin = nullptr;
  std::int64_t farthest = -1;
  for (const Pin& one : pins_) {
    if (quick ? !moves(one) : !needsWhole(one)) continue;
    const LearnedPtr weights = weightsFor(one);
    const std::int64_t far = !quick                                                       ? 0
                             : !one.weights || one.weights->training != weights->training ? std::numeric_limits<std::int64_t>::max()
                                                                                          : std::abs(one.weights->step - weights->step);
    if (far > farthest) pin = &one;
    farthest = std::max(farthest, far);
  }
  if (pin == nullptr) return std::nullopt;
  Setup setup = pin->setup;
  setup.sequence = input_;
  Key key{pin->id, input_, quick ? session_->quickRecording() : wanted_, weightsFor(*pin)};
  if (key.weights) setup.learned[setup.preset] = key.weights;
  return std::pair(
      key, [setup = std::move(setup), recording = key.recording, library = session_->library()](const auto&, std::stop_token stop) {
        TracePtr trace = run(builtin_registry(), requestFor(setup, library->presets.find(setup.preset), recording), {}, stop).trace;
        if (trace->info.outcome == Outcome::cancelled) throw Cancelled();
        return trace;
      });
}

void Pins::take(const Key& key, const TracePtr& trace) {
  for (Pin& pin : pins_) {
    if (pin.id != key.pin) continue;
    // A whole run of weights that it has moved on from meanwhile.
    const std::int64_t step = session_->trainingStep();
    const bool passed = key.weights && pin.weights && pin.weights->training == key.weights->training &&
                        std::abs(pin.weights->step - step) < std::abs(key.weights->step - step);
    if (passed && sameInput(pin.setup.sequence, key.input)) continue;
    pin.setup.sequence = key.input;
    pin.recording = key.recording;
    pin.weights = key.weights;
    session_->discard(std::exchange(pin.trace, timedAs(trace, pin.trace)));
    if (key.weights) seconds_[pin.id] = trace->info.seconds;
  }
  double seconds = 0.0;
  for (const auto& [pin, its] : seconds_) seconds += its;
  session_->setSecondsBeside(seconds);
}

void Pins::mark(std::optional<std::uint64_t> running) {
  for (Pin& pin : pins_) pin.running = pin.id == running;
  emit changed();
}

}  // namespace reclab
