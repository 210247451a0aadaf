// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/frame/lab.h"

#include <QAction>
#include <QApplication>
#include <QComboBox>
#include <QEvent>
#include <QJsonArray>
#include <QMouseEvent>
#include <QTime>
#include <QUndoCommand>
#include <QUndoStack>
#include <QWidget>
#include <algorithm>
#include <utility>

#include "experiment/command/run_fields.h"
#include "gui/docks/panel_area.h"
#include "gui/frame/lab_json.h"
#include "gui/session/session_controller.h"
#include "gui/time/time_link.h"

namespace reclab {

namespace {

/// The values that a state has where they are others than before it, for the history: "0.9", "length 400", "Log axis on".
QString valuesOf(const LabState& before, const LabState& after) {
  QStringList values;
  const auto text = [](const HyperValue& value) { return QString::fromStdString(as_text(value)); };
  const auto words = [](const std::string& key) { return QString::fromStdString(key).replace('_', ' '); };
  if (before.setup.preset == after.setup.preset) {
    const Settings had = before.setup.settings(), has = after.setup.settings();
    for (const auto& one : has)
      if (std::ranges::find(had, one) == had.end()) values << QString::fromStdString(one.second);
  }
  for (const auto& field : run_settings_fields())
    if (const HyperValue value = field.get(after.setup); value != field.get(before.setup)) values << text(value);
  if (before.setup.sequence && after.setup.sequence)
    for (const auto& field : sequence_fields()) {
      const HyperValue value = field.get(after.setup.sequence->choice);
      if (value != field.get(before.setup.sequence->choice) && is_of(field, after.setup.sequence->choice) && field.row.key != "task" &&
          field.row.key != "file")
        values << words(field.row.key) + ' ' + text(value);
    }
  if (after.arranged.layout != before.arranged.layout) values << panelLayouts()[static_cast<std::size_t>(after.arranged.layout)].name;
  for (auto panel = after.panels.begin(); panel != after.panels.end() && before.arranged == after.arranged; ++panel) {
    const QVariantMap had = before.panels.value(panel.key()), &has = panel.value();
    for (auto one = has.begin(); one != has.end(); ++one)
      if (one.key().startsWith("action/") && !had.contains(one.key()))
        values << QObject::tr("%1 on").arg(one.key().section('/', 1));
      else if (had.value(one.key()) != one.value() && one.value().canConvert<QString>() && !one.value().toString().isEmpty())
        values << one.value().toString();
    for (auto one = had.begin(); one != had.end(); ++one)
      if (one.key().startsWith("action/") && !has.contains(one.key())) values << QObject::tr("%1 off").arg(one.key().section('/', 1));
  }
  return values.join(QStringLiteral(", "));
}

}  // namespace

/// From one state to the next. The change was made already when it is pushed.
class Lab::Step : public QUndoCommand {
 public:
  Step(Lab* lab, const QString& text, int gesture, Kept before, Kept after, Aside aside)
      : lab_(lab), gesture_(gesture), before_(std::move(before)), after_(std::move(after)), aside_(std::move(aside)) {
    tell(text);
  }
  int id() const override { return gesture_ > 0 ? 1 : -1; }
  bool mergeWith(const QUndoCommand* next) override {
    const auto* other = static_cast<const Step*>(next);
    if (other->gesture_ != gesture_ || other->actionText() != actionText()) return false;
    after_ = other->after_;
    tell(actionText());
    return true;
  }
  void redo() override {
    if (std::exchange(made_, false)) return;
    lab_->hold();
    if (aside_.redo) aside_.redo();
    lab_->put(after_);
  }
  void undo() override {
    lab_->hold();
    if (aside_.undo) aside_.undo();
    lab_->put(before_);
  }

 private:
  /// Its line in the history, with the time of day, and its name in a menu.
  void tell(const QString& text) {
    const QString values = valuesOf(*before_, *after_);
    setText(QTime::currentTime().toString("HH:mm:ss") + "   " + (values.isEmpty() ? text : text + ": " + values) + '\n' + text);
  }
  Lab* lab_;
  int gesture_;
  Kept before_, after_;
  Aside aside_;
  bool made_ = true;
};

Lab::Lab(SessionController* session, Pins* pins, PanelArea* area, TimeLink* time, QObject* parent)
    : QObject(parent), session_(session), pins_(pins), area_(area), time_(time), undo_(new QUndoStack(this)) {
  soon_.setSingleShot(true);
  soon_.setInterval(0);
  connect(&soon_, &QTimer::timeout, this, &Lab::compare);
  // A choice in a panel that depends on the model can be restored only once that model's run is there, and the panel has it: one that waits
  // for some of its arrays, or comes into sight later, has it after the session.
  connect(
      session_, &SessionController::traceChanged, this,
      [this] {
        if (awaited_) setChoices(*awaited_);
        if (awaitedTime_ && awaitedTime_->length == time_->length()) setTime(*std::exchange(awaitedTime_, {}));
      },
      Qt::QueuedConnection);
  connect(
      area_, &PanelArea::traceGiven, this,
      [this] {
        if (awaited_) setChoices(*awaited_);
      },
      Qt::QueuedConnection);
  qApp->installEventFilter(this);
}

Lab::~Lab() = default;

void Lab::setArranging(std::function<Arranged()> read, std::function<void(const Arranged&)> put) {
  readArranged_ = std::move(read);
  putArranged_ = std::move(put);
}

void Lab::arrange(const Arranged& value) {
  if (held_)
    *held_ = value;
  else
    putArranged_(value);
}

void Lab::holdArrangement(bool hold) {
  if (hold == held_.has_value()) return;
  if (hold)
    held_ = readArranged_();
  else
    putArranged_(*std::exchange(held_, {}));
}

LabState Lab::state() const {
  for (PanelDock* dock : area_->docks())
    if (dock->inSight()) dock->panel();
  return read();
}

/// With the kept choices of a panel in sight that is not made yet: a click does not wait for it.
LabState Lab::read() const {
  LabState state;
  state.setup = session_->steadySetup();
  state.follows = session_->followsTraining();
  state.pins = pins_->value();
  state.arranged = arranged();
  state.time = awaitedTime_.value_or(TimeView{time_->step(), time_->first(), time_->last(), time_->length()});
  for (const PanelDock* dock : area_->docks())
    if (dock->inSight()) state.panels[dock->info().id] = dock->choices();
  for (const LabPart& part : parts_) state.parts[part.id] = part.read();
  return state;
}

/// In words for a menu, the first difference in choices beside the setup and the pins: "view of Gradients", "arrangement"; empty where
/// nothing does.
QString Lab::textOf(const LabState& before, const LabState& after) const {
  if (!(before.arranged == after.arranged)) return tr("arrangement");
  for (auto panel = after.panels.begin(); panel != after.panels.end(); ++panel)
    if (before.panels.value(panel.key()) != panel.value()) return tr("view of %1").arg(area_->dock(panel.key())->info().title);
  for (const LabPart& part : parts_)
    if (before.parts.value(part.id) != after.parts.value(part.id)) return part.text;
  // While a training is followed its weights come by themselves.
  if (before.follows != after.follows || (!after.follows && before.setup.learned != after.setup.learned)) return tr("step of training");
  return {};
}

void Lab::setState(const LabState& state) {
  putting_ = true;
  const LabState now = this->state();
  if (!(state.arranged == now.arranged)) arrange(state.arranged);
  setChoices(state);
  if (state.pins != now.pins) pins_->setValue(state.pins);
  if (state.setup != now.setup || state.follows != now.follows) session_->restore(state.setup, state.follows);
  putting_ = false;
}

void Lab::setChoices(const LabState& state) const {
  for (PanelDock* dock : area_->docks())
    if (const QString id = dock->info().id; state.panels.contains(id)) dock->setChoices(state.panels[id]);
  for (const LabPart& part : parts_)
    if (state.parts.contains(part.id) && state.parts[part.id] != part.read()) part.put(state.parts[part.id]);
}

void Lab::putPart(const QString& id, const QVariantMap& choices) {
  for (const LabPart& part : parts_)
    if (part.id == id) part.put(choices);
}

void Lab::setTime(const TimeView& time) {
  time_->setRange(time.first, time.last);
  time_->setStep(time.step);
}

QJsonObject Lab::written(const PutLearned& put) const {
  area_->settle();
  // Panels that came into sight by that have the run now, and their choices with it. Before its run there is nothing to be set to, and a
  // run before it may have no such choice.
  const bool shown = session_->trace() && !session_->running() && session_->whyNotShown().isEmpty();
  if (awaited_ && shown) setChoices(*awaited_);
  LabState state = this->state();
  for (const PanelDock* dock : area_->docks())
    if (!dock->inSight()) state.panels[dock->info().id] = dock->choices();
  if (awaited_ && !shown) state.panels = awaited_->panels;
  QJsonObject json = toJson(
      state, put ? put : [this](const LearnedPtr& weights) { return session_->putLearned(weights); },
      [this](std::uint64_t run) { return session_->idOfTraining(session_->trainingOf(run)); });
  json["together"] = QJsonArray::fromStringList(session_->trainedTogether());
  return json;
}

void Lab::restoreView(const QJsonObject& json) {
  const WrittenView view = viewOf(json);
  LabState state;
  state.panels = view.panels;
  state.parts = view.parts;
  for (const LabPart& part : parts_)
    if (part.ofRuns) state.parts.remove(part.id);
  setChoices(state);
}

QStringList Lab::ids() const {
  QStringList ids;
  for (const PanelDock* dock : area_->docks()) ids << dock->info().id;
  for (const LabPart& part : parts_) ids << part.id;
  return ids;
}

std::optional<QStringList> Lab::open(const QJsonObject& json, const LoadedSequencePtr& sequence) {
  undo_->clear();
  touched_.clear();
  if (const auto arranged = viewOf(json).arranged) putArranged_(*arranged);
  auto unlearned = restoreRuns(json, sequence);
  if (!unlearned) return unlearned;
  // What the state does not name is as it is in a new window.
  for (const PanelDock* dock : area_->docks())
    if (const QString id = dock->info().id; !awaited_->panels.contains(id)) awaited_->panels[id] = {};
  for (const LabPart& part : parts_)
    if (!awaited_->parts.contains(part.id)) awaited_->parts[part.id] = {};
  setChoices(*awaited_);
  *now_ = state();
  told_ = true;
  return unlearned;
}

std::optional<QStringList> Lab::restoreRuns(const QJsonObject& json, const LoadedSequencePtr& sequence) {
  const std::optional<WrittenRuns> runs =
      runsOf(json, *session_->library(), [this](const QJsonObject& weights) { return session_->getLearned(weights); });
  if (!runs) return {};
  const WrittenView view = viewOf(json);
  Setup setup = runs->shown.setup;
  setup.sequence = sequence ? sequence : session_->sequenceOf(*runs->shown.sequence);
  session_->restore(setup, runs->follows);
  pins_->setValue(runs->pins);
  for (const auto& [pin, training] : runs->trainings) session_->follow(pin, training);
  session_->trainOnWith(json["together"].toVariant().toStringList());
  awaited_ = state();
  awaited_->panels = view.panels;
  awaited_->parts = view.parts;
  setChoices(*awaited_);
  awaitedTime_ = view.time;
  if (!setup.sequence) session_->loadSequence(*runs->shown.sequence);
  QStringList unlearned = runs->unlearned;
  if (runs->shown.unlearned) unlearned.prepend(QString::fromStdString(session_->library()->presets.find(setup.preset).title));
  return unlearned;
}

void Lab::put(const Kept& state) {
  now_ = state;
  told_ = true;
  awaited_ = *state;
  setState(*state);
  emit changed();
}

void Lab::change(const QString& text, const std::function<void()>& does, int gesture, Aside aside) {
  session_->holdStream();  // what it has learned is a state before the change
  if (!pressed_) settle();
  LabState after = *now_;  // the view is read when a hand has changed it
  const auto readRuns = [&](LabState& state) {
    state.setup = session_->steadySetup();
    state.follows = session_->followsTraining();
    state.pins = pins_->value();
  };
  readRuns(*now_);
  does();
  readRuns(after);
  if (after == *now_ && !aside.undo) return;  // a side effect is to be undone, too
  push(text, gesture, std::move(after), std::move(aside));
  told_ = true;
}

/// A stream that goes on is left where it stands, and that is the state from which another one is come to.
void Lab::hold() {
  if (!session_->streams()) return;
  session_->holdStream();
  *now_ = state();
}

void Lab::push(const QString& text, int gesture, LabState after, Aside aside) {
  const Kept before = std::exchange(now_, std::make_shared<LabState>(std::move(after)));
  undo_->push(new Step(this, text, gesture, before, now_, std::move(aside)));
  emit changed();
}

void Lab::act(const std::function<void()>& does) {
  if (!std::exchange(pressed_, true)) settle();
  does();
  for (const PanelDock* dock : area_->docks()) touched_ << dock->info().id;
  compare();
}

void Lab::settle() {
  awaited_.reset();
  if (time_->length() > 1) awaitedTime_.reset();  // else nothing has run yet
  told_ = false;
  *now_ = read();
}

void Lab::compare() {
  pressed_ = false;
  LabState after = read();
  const QStringList touched = std::exchange(touched_, {});
  if (awaited_) return;  // the restored state is not complete yet
  for (auto panel = after.panels.begin(); panel != after.panels.end(); ++panel)
    if (!touched.contains(panel.key())) now_->panels[panel.key()] = panel.value();
  const QString text = std::exchange(told_, false) ? QString() : textOf(*now_, after);
  if (!text.isEmpty()) return push(text, 0, std::move(after), {});
  *now_ = std::move(after);
  emit changed();
}

bool Lab::eventFilter(QObject* watched, QEvent* event) {
  if (!watched->isWidgetType() || putting_) return false;
  switch (event->type()) {
    case QEvent::MouseButtonPress:
    case QEvent::MouseButtonDblClick:
    case QEvent::ShortcutOverride:  // comes before a key is pressed; the list of a combo box takes Return by it
    case QEvent::KeyPress:
    case QEvent::Wheel:
      if (soon_.isActive()) {  // the gesture before is done
        soon_.stop();
        compare();
      }
      // The first of a gesture; an event goes on to the parents of a widget that does not take it.
      if (!std::exchange(pressed_, true)) settle();
      for (const QObject* one = watched; one != nullptr; one = one->parent())
        if (const auto* panel = qobject_cast<const Panel*>(one)) touched_ << panel->id();
      if (event->type() == QEvent::Wheel) soon_.start();
      break;
    case QEvent::MouseButtonRelease:
      if (static_cast<const QMouseEvent*>(event)->buttons() == Qt::NoButton) soon_.start();
      break;
    case QEvent::KeyRelease: soon_.start(); break;
    default: return false;
  }
  return false;
}

}  // namespace reclab
