// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/session/pins.h"

#include <QApplication>
#include <algorithm>
#include <limits>
#include <utility>

#include "gui/session/session_controller.h"
#include "gui/window/look.h"
#include "models/registry.h"
#include "plot/theme.h"

namespace reclab {
namespace {

bool records(const Probe& has, const Probe& wanted) {
  const bool rows = has.dense_rows == 0 || (wanted.dense_rows > 0 && has.dense_rows >= wanted.dense_rows);
  return has.kinds.has_all(wanted.kinds) && (rows || !wanted.kinds.has_any(kinds_of(Stage::late)));
}

/// A run again has what was timed of it before.
TracePtr timedAs(const TracePtr& trace, const TracePtr& before) {
  if (!before || !before->timed) return trace;
  auto both = std::make_shared<Trace>(*trace);
  for (const TraceArray* array : before->of(Kind::timing)) both->put(*array);
  both->timed = before->timed;
  return both;
}

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

// The window's own run comes first.
Pins::Pins(SessionController* session, QObject* parent)
    : QObject(parent),
      session_(session),
      job_(session->desk(), {.niceness = 10, .givesWayTo = {&session->runJob()}},
           {.began = [this](const Key& key) { mark(key.pin); },
            .finished = [this](const Key& key, const TracePtr& trace) { take(key, trace); },
            .ended = [this](const Key& key, const Ending& ending) {
              for (Pin& pin : pins_)
                if (pin.id == key.pin) pin.problem = ending.sentence;
              update();
              mark({});
              next();
            },
            .gaveWay = [this] { mark({}); }}) {}
Pins::~Pins() = default;

bool Pins::needsRun(const Pin& pin) const {
  if (!pin.problem.isEmpty()) return false;
  return !pin.trace || !sameInput(pin.setup.sequence, input_) || !records(pin.probe, wanted_);
}

void Pins::follow() {
  const LoadedSequencePtr& now = session_->shownSetup().sequence;
  if (!sameInput(std::exchange(input_, now), now)) {
    if (job_.running()) mark({});
    job_.drop();  // it is of the input before
    for (Pin& pin : pins_) pin.problem.clear();
  }
  update();
  emit followed();
  next();
}

void Pins::setProbe(const Probe& wanted) {
  wanted_ = wanted;
  next();
}

QString Pins::add(const Setup& setup, const TracePtr& trace, const Probe& probe, const QString& given) {
  if (pins_.size() >= most) return tr("%1 runs are pinned already; unpin one of them first.").arg(most);
  for (const Pin& one : pins_)
    if (trace && one.trace == trace) return tr("This run is pinned already, as %1.").arg(one.name);
  Pin pin;
  pin.id = ++newest_;
  pin.setup = setup;
  pin.trace = trace;
  pin.probe = probe;
  pin.given = given;
  int colour = 0;  // the first that is free, so that the others keep theirs
  while (std::any_of(pins_.begin(), pins_.end(), [&](const Pin& one) { return one.colour == colour; })) ++colour;
  pin.colour = colour;
  pins_.push_back(std::move(pin));
  update();
  emit changed();
  next();
  return {};
}

void Pins::remove(std::size_t index) {
  if (index >= pins_.size()) return;
  if (pins_[index].running) job_.drop();
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

std::vector<Panel::Run> Pins::runs() const {
  std::vector<Panel::Run> all;
  for (const Pin& pin : pins_) {
    if (!pin.comparable) continue;
    const RunInfo& run = pin.trace->info;
    QStringList facts{QString::fromStdString(run.title.empty() ? run.preset : run.title)};
    for (const auto& [key, value] : run.hyper) facts << QString::fromStdString(key).replace('_', ' ') + ' ' + QString::fromStdString(value);
    facts << tr("seed %1").arg(run.seed);
    all.push_back({pin.trace, pinColour(pin.colour), pin.name, facts.join(", ")});
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
  return facetsOf(trace.info, [&](const std::string& key) { return row(key).first; }, [&](const std::string& key) { return row(key).second; });
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
    const QString name = !pin.given.isEmpty() ? pin.given : !found.isEmpty() ? found : titleOf(pin, session_->library());
    const bool comparable = pin.trace && session_->trace() && sameInput(pin.setup.sequence, input_);
    other = other || name != pin.name || comparable != pin.comparable;
    pin.name = name;
    pin.comparable = comparable;
  }
  if (other) emit changed();
}

bool Pins::has(const Setup& setup) const {
  return std::ranges::any_of(pins_, [&](const Pin& one) {
    Setup its = one.setup;
    its.sequence = setup.sequence;
    return its.sameRun(setup);
  });
}

std::vector<Pins::Column> Pins::columns() const {
  const QColor own = Theme::of(QApplication::palette(), QApplication::font()).series(0);
  std::vector<Facets> all;
  for (const Pin& pin : pins_) all.push_back(facets(pin));
  // What the run that is shown is called among the others.
  const QString name = all.empty() ? QString() : runNames(all.front(), {facetsOfShown()}).front();
  std::vector<Column> columns{{name.isEmpty() ? tr("shown") : tr("shown: %1").arg(name), own, facetsOfShown(), session_->trace()}};
  for (std::size_t i = 0; i < pins_.size(); ++i) columns.push_back({pins_[i].name, pinColour(pins_[i].colour), all[i], pins_[i].trace});
  return columns;
}

QString Pins::table(std::size_t index) const {
  const Pin& pin = pins_[index];
  return differenceTable({pin.name, tr("shown")}, {facets(pin), facetsOfShown()}, {lossOf(pin.trace), lossOf(session_->trace())});
}

void Pins::next() {
  const bool needed = session_->library() && input_ && std::ranges::any_of(pins_, [this](const Pin& one) { return needsRun(one); });
  if (!needed && job_.waiting()) job_.drop();
  if (needed && !job_.running() && !job_.waiting()) job_.startInTurn([this] { return whatToRun(); });
}

std::optional<Pins::Runs::Work> Pins::whatToRun() const {
  const auto pin = std::ranges::find_if(pins_, [this](const Pin& one) { return needsRun(one); });
  if (pin == pins_.end()) return std::nullopt;
  Setup setup = pin->setup;
  setup.sequence = input_;
  return std::pair(Key{pin->id, input_, wanted_}, [setup = std::move(setup), probe = wanted_, library = session_->library()](const auto&, std::stop_token stop) {
    TracePtr trace = run(builtin_registry(), requestFor(setup, library->presets.find(setup.preset), probe), {}, stop).trace;
    if (trace->info.outcome == Outcome::cancelled) throw Cancelled();
    return trace;
  });
}

void Pins::take(const Key& key, const TracePtr& trace) {
  for (Pin& pin : pins_) {
    if (pin.id != key.pin) continue;
    pin.setup.sequence = key.input;
    pin.probe = key.probe;
    session_->discard(std::exchange(pin.trace, timedAs(trace, pin.trace)));
  }
}

void Pins::mark(std::optional<std::uint64_t> running) {
  for (Pin& pin : pins_) pin.running = pin.id == running;
  emit changed();
}

}  // namespace reclab
