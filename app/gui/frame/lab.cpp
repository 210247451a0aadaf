// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/frame/lab.h"

#include <QApplication>
#include <QEvent>
#include <QMouseEvent>
#include <QUndoCommand>
#include <QUndoStack>
#include <QWidget>
#include <utility>

#include "gui/docks/panel_area.h"
#include "gui/session/session_controller.h"

namespace reclab {

QString changeOfView(const LabState& before, const LabState& after) {
  for (auto panel = after.panels.begin(); panel != after.panels.end(); ++panel)
    if (before.panels.value(panel.key()) != panel.value())
      for (const PanelInfo& info : panels())
        if (info.id == panel.key()) return Lab::tr("view of %1").arg(info.title);
  if (!(before.arranged == after.arranged)) return Lab::tr("arrangement");
  // While a training is followed its weights come by themselves.
  if (before.follows != after.follows || (!after.follows && before.setup.learned != after.setup.learned))
    return Lab::tr("step of training");
  return {};
}

/// From one state to the next. The change was made already when it is pushed.
class Lab::Step : public QUndoCommand {
 public:
  Step(Lab* lab, const QString& text, int gesture, Kept before, Kept after, Aside aside)
      : QUndoCommand(text), lab_(lab), gesture_(gesture), before_(std::move(before)), after_(std::move(after)), aside_(std::move(aside)) {}
  int id() const override { return gesture_ > 0 ? 1 : -1; }
  bool mergeWith(const QUndoCommand* next) override {
    const auto* other = static_cast<const Step*>(next);
    if (other->gesture_ != gesture_ || other->text() != text()) return false;
    after_ = other->after_;
    return true;
  }
  void redo() override {
    if (std::exchange(made_, false)) return;
    if (aside_.redo) aside_.redo();
    lab_->put(after_);
  }
  void undo() override {
    if (aside_.undo) aside_.undo();
    lab_->put(before_);
  }

 private:
  Lab* lab_;
  int gesture_;
  Kept before_, after_;
  Aside aside_;
  bool made_ = true;
};

Lab::Lab(SessionController* session, Pins* pins, PanelArea* area, QObject* parent)
    : QObject(parent), session_(session), pins_(pins), area_(area), undo_(new QUndoStack(this)) {
  soon_.setSingleShot(true);
  soon_.setInterval(0);
  connect(&soon_, &QTimer::timeout, this, &Lab::compare);
  qApp->installEventFilter(this);
}

Lab::~Lab() = default;

void Lab::setArranging(std::function<Arranged()> read, std::function<void(const Arranged&)> put) {
  readArranged_ = std::move(read);
  putArranged_ = std::move(put);
}

LabState Lab::state() const {
  LabState state{session_->setup(), session_->followsTraining(), pins_->value(), {}, readArranged_()};
  for (const PanelDock* dock : area_->docks())
    if (QVariantMap choices = dock->panel()->choices(); !choices.isEmpty()) state.panels[dock->panel()->id()] = std::move(choices);
  return state;
}

void Lab::setState(const LabState& state) {
  putting_ = true;
  const LabState now = this->state();
  if (!(state.arranged == now.arranged)) putArranged_(state.arranged);
  for (const PanelDock* dock : area_->docks()) {
    const QString id = dock->panel()->id();
    if (state.panels.value(id) != now.panels.value(id)) dock->panel()->setChoices(state.panels.value(id));
  }
  if (state.pins != now.pins) pins_->setValue(state.pins);
  if (state.setup != now.setup || state.follows != now.follows) session_->restore(state.setup, state.follows);
  putting_ = false;
}

void Lab::put(const Kept& state) {
  now_ = state;
  put_ = true;
  setState(*state);
}

void Lab::change(const QString& text, const std::function<void()>& does, int gesture, Aside aside) {
  if (!pressed_) settle();
  LabState after = *now_;  // the view is read when a hand has changed it
  const auto read = [&](LabState& state) {
    state.setup = session_->setup();
    state.follows = session_->followsTraining();
    state.pins = pins_->value();
  };
  read(*now_);
  does();
  read(after);
  if (!(after == *now_)) push(text, gesture, std::move(after), std::move(aside));
}

void Lab::push(const QString& text, int gesture, LabState after, Aside aside) {
  const Kept before = std::exchange(now_, std::make_shared<LabState>(std::move(after)));
  undo_->push(new Step(this, text, gesture, before, now_, std::move(aside)));
}

void Lab::settle() { *now_ = state(); }

void Lab::compare() {
  pressed_ = false;
  LabState after = state();
  if (std::exchange(put_, false)) return void(*now_ = std::move(after));
  if (const QString text = changeOfView(*now_, after); text.isEmpty())
    *now_ = std::move(after);
  else
    push(text, 0, std::move(after), {});
}

bool Lab::eventFilter(QObject* watched, QEvent* event) {
  if (!watched->isWidgetType() || putting_) return false;
  switch (event->type()) {
    case QEvent::MouseButtonPress:
    case QEvent::MouseButtonDblClick:
    case QEvent::KeyPress:
    case QEvent::Wheel:
      // The first of a gesture; an event goes on to the parents of a widget that does not take it.
      if (!std::exchange(pressed_, true) && !soon_.isActive()) settle();
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
