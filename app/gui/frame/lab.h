// SPDX-License-Identifier: GPL-3.0-or-later
// The state of the lab: read, put back, and kept before each change that a hand makes, so that undo is a list of states. Choices by hand
// beside the setup and the pins need no code of their own for that: when a mouse button or a key goes up, the state is compared with the
// state when it went down.
#pragma once

#include <QJsonObject>
#include <QObject>
#include <QStringList>
#include <QTimer>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "gui/frame/lab_state.h"
#include "gui/session/kept_setup.h"

class QUndoStack;

namespace reclab {

class PanelArea;
class SessionController;
class TimeLink;

class Lab : public QObject {
  Q_OBJECT
 public:
  Lab(SessionController* session, Pins* pins, PanelArea* area, TimeLink* time, QObject* parent);
  ~Lab() override;

  QUndoStack* undo() const { return undo_; }
  LabState state() const;  ///< panels in sight are made for it
  /// Puts back all that differs: runs are run again, panels keep pictures that need not change. Undo leaves the time where it is, since
  /// moving the cursor to look is no step.
  void setState(const LabState& state);

  /// The state as JSON, with the panels that are behind others. Weights that were learned are written into files of their own, unless
  /// `put` says where they lie.
  QJsonObject written(const PutLearned& put = {}) const;
  /// Restores the parts that need no model, as the window opens: panels and parts, and the arrangement where there is one.
  void restoreView(const QJsonObject& json);
  /// Restores the runs and the view of them: nothing where a model is none that there is. Returns the names of those whose learned weights
  /// are there no more. `sequence`: the one that they are of; else one that no training has is loaded.
  std::optional<QStringList> restoreRuns(const QJsonObject& json, const LoadedSequencePtr& sequence = {});
  /// Restores all of a state in an open window, with the sequence of its runs, in place of what is there; nothing of it can be undone.
  std::optional<QStringList> open(const QJsonObject& json, const LoadedSequencePtr& sequence);
  QStringList ids() const;  ///< of panels and parts, as they are named in the JSON

  /// Further effects of an undone change (a training that is forgotten), and of one that is made again.
  struct Aside {
    std::function<void()> undo, redo;
  };
  /// Changes the setup or the pins by hand: one step of undo, where anything differs then. Changes of one gesture (0: none) with the same
  /// text are one step.
  void change(const QString& text, const std::function<void()>& does, int gesture = 0, Aside aside = {});

  /// Makes a change by hand that was asked for elsewhere than at its own control, as a step of undo.
  void act(const std::function<void()>& does);

  void settle();  ///< adds changes that came by themselves since the last step to it

  void add(LabPart part) { parts_.push_back(std::move(part)); }
  void putPart(const QString& id, const QVariantMap& choices);
  Arranged arranged() const { return held_ ? *held_ : readArranged_(); }
  void arrange(const Arranged& value);
  /// While the window shows other places for a time, as in a lecture, those before are the state: undo and the next start have them, and an
  /// arrangement that is put waits. They are put back when it ends.
  void holdArrangement(bool hold);
  bool holdsArrangement() const { return held_.has_value(); }
  /// Sets the functions that read and restore the places of docks and panels.
  void setArranging(std::function<Arranged()> read, std::function<void(const Arranged&)> put);

 signals:
  void changed();  ///< by a hand, or by undo: a state that was kept may be out of date

 protected:
  bool eventFilter(QObject* watched, QEvent* event) override;

 private:
  class Step;
  using Kept = std::shared_ptr<LabState>;
  void push(const QString& text, int gesture, LabState after, Aside aside);
  void hold();
  LabState read() const;
  void setChoices(const LabState& state) const;  ///< of panels and parts
  QString textOf(const LabState& before, const LabState& after) const;
  void setTime(const TimeView& time);
  void compare();  ///< makes a step of the changes by hand since the last
  void put(const Kept& state);

  SessionController* session_;
  Pins* pins_;
  PanelArea* area_;
  TimeLink* time_;
  QUndoStack* undo_;
  std::vector<LabPart> parts_;
  std::function<Arranged()> readArranged_ = [] { return Arranged(); };
  std::function<void(const Arranged&)> putArranged_ = [](const Arranged&) {};
  std::optional<Arranged> held_;
  Kept now_ = std::make_shared<LabState>();  ///< shared by the step before and the step after
  std::optional<LabState> awaited_;          ///< the state that was put back, until a hand changes something: runs are still to come
  std::optional<TimeView> awaitedTime_;      ///< of a state that was written
  QTimer soon_;
  QStringList touched_;  ///< panels in which the hand was since the last comparison: changes of others came by themselves
  bool pressed_ = false, putting_ = false;
  bool told_ = false;  ///< since the last comparison a state was put back or a change was a step: other differences came of that
};

}  // namespace reclab
