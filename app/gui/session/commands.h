// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QUndoCommand>
#include <utility>
#include <vector>

#include "gui/session/pins.h"
#include "gui/session/session_controller.h"

namespace reclab {

/// One change of what is looked at: the model, a hyper-parameter, the sequence, the seed. All that a slider passes on its way is one.
class ChangeSetup : public QUndoCommand {
 public:
  ChangeSetup(SessionController* session, const Setup& after, const QString& text, int gesture, bool live)
      : QUndoCommand(text), session_(session), before_(session->setup()), after_(after), gesture_(gesture), live_(live) {}
  int id() const override { return gesture_ > 0 ? 1 : -1; }
  bool mergeWith(const QUndoCommand* next) override {
    const auto* other = static_cast<const ChangeSetup*>(next);
    if (other->gesture_ != gesture_ || other->text() != text()) return false;
    after_ = other->after_;
    return true;
  }
  void redo() override {
    session_->apply(after_, live_);
    live_ = false;
  }
  void undo() override { session_->apply(before_, false); }

 private:
  SessionController* session_;
  Setup before_, after_;
  int gesture_;
  bool live_;
};

/// A training that is forgotten, with all that it learned. It is kept here, so that undo brings all of it back.
class ForgetTraining : public QUndoCommand {
 public:
  explicit ForgetTraining(SessionController* session)
      : QUndoCommand(QObject::tr("reset of the training")), session_(session), before_(session->setup()) {}
  void redo() override { forgotten_ = session_->resetTraining(forgotten_); }
  void undo() override { session_->bringBackTraining(forgotten_, before_); }

 private:
  SessionController* session_;
  Setup before_;
  SessionController::Forgotten forgotten_;
};

/// A change of the runs that are kept beside what is looked at, which is made already.
class ChangePins : public QUndoCommand {
 public:
  ChangePins(Pins* pins, std::vector<PinValue> before, const QString& text)
      : QUndoCommand(text), pins_(pins), before_(std::move(before)), after_(pins->value()) {}
  void redo() override {
    if (!std::exchange(made_, false)) pins_->setValue(after_);
  }
  void undo() override { pins_->setValue(before_); }

 private:
  Pins* pins_;
  std::vector<PinValue> before_, after_;
  bool made_ = true;
};

}  // namespace reclab
