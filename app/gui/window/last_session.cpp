// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/window/last_session.h"

#include <QSettings>
#include <utility>

#include "gui/frame/window_frame.h"
#include "gui/session/kept_setup.h"
#include "gui/session/pins.h"
#include "gui/session/sentences.h"
#include "gui/views/status_line.h"
#include "window_text.h"

namespace reclab {

LastSession::LastSession(WindowFrame* frame, Options options, std::optional<Setup> first)
    : QObject(frame), frame_(frame), session_(frame->session()), options_(std::move(options)), first_(std::move(first)) {
  connect(frame_, &WindowFrame::keeping, this, &LastSession::keep);
  connect(session_, &SessionController::sequenceRefused, this, &LastSession::beginAnew);
  connect(session_, &SessionController::runEnded, this, &LastSession::end);
}

void LastSession::open() { session_->open(!options_.named() && !first_ && !QSettings().contains("session/restoring")); }

void LastSession::begin() {
  try {
    const Library& library = *session_->library();
    QSettings settings;
    std::optional<KeptSetup> kept;
    // Where the note is still there, the last start ended while it restored this.
    const GetLearned learned = [this](const QJsonObject& weights) { return session_->getLearned(weights); };
    if (!options_.named() && !settings.contains("session/restoring"))
      kept = keptSetup(settings.value("session/setup").toByteArray(), library, learned);
    settings.setValue("session/restoring", true);
    settings.sync();
    restored_ = kept.has_value();
    Setup setup = first_ ? *first_ : kept ? kept->setup : beginning(options_, library);
    if (kept && !first_) setup.sequence = session_->sequenceOf(kept->sequence);
    session_->apply(setup, false);
    if (kept && !first_) {
      QStringList unlearned;
      if (kept->unlearned) unlearned << QString::fromStdString(library.presets.find(setup.preset).title);
      for (const KeptPin& pin : keptPins(settings.value("session/pins").toByteArray(), library, learned)) {
        if (frame_->pins()->add(pin.setup, nullptr, {}, pin.given, pin.colour).isEmpty())
          session_->follow(frame_->pins()->pins().back().id, pin.training);
        if (pin.unlearned)
          unlearned << (pin.given.isEmpty() ? QString::fromStdString(library.presets.find(pin.setup.preset).title) : pin.given);
      }
      session_->trainOnWith(settings.value("session/training").toStringList());
      if (!unlearned.isEmpty())
        connect(
            session_, &SessionController::runEnded, this,
            [this, unlearned] {
              frame_->say(
                  tr("Weights that were learned are there no more, of: %1. These runs are untrained now, with weights drawn from the seed.")
                      .arg(unlearned.join(QStringLiteral(", "))),
                  Tone::warning);
            },
            Qt::SingleShotConnection);
    }
    if (!options_.model.isEmpty()) emit frame_->modelPicked(QString::fromStdString(setup.preset));
    if (!setup.sequence) session_->loadSequence(kept ? kept->sequence : beginningSequence(options_, library));
  } catch (const Error& error) {
    frame_->say(windowText(error), Tone::warning);
  }
}

void LastSession::beginAnew() {
  // What was looked at last may be gone; then the window begins as it does the first time.
  if (session_->setup().sequence || !std::exchange(restored_, false)) return;
  connect(
      session_, &SessionController::runEnded, this, [this, why = frame_->banner()->sentence()] { frame_->banner()->show(why); },
      Qt::SingleShotConnection);
  session_->apply(beginning(options_, *session_->library()), false);
  session_->loadSequence(beginningSequence(options_, *session_->library()));
}

void LastSession::keep() const {
  if (!session_->setup().sequence) return;
  QSettings settings;
  const PutLearned learned = [this](const LearnedPtr& weights) { return session_->putLearned(weights); };
  settings.setValue("session/setup", toJson(session_->setup(), learned));
  std::vector<KeptPin> pins;
  for (const Pin& pin : frame_->pins()->pins())
    pins.push_back({pin.setup, pin.given, pin.colour, session_->idOfTraining(session_->trainingOf(pin.id))});
  settings.setValue("session/pins", toJson(pins, learned));
  settings.setValue("session/training", session_->trainedTogether());
  session_->keepNoOtherWeights();
}

/// What was restored has stood the first pictures.
void LastSession::end() {
  QSettings settings;
  if (!settings.contains("window/restoring") && !settings.contains("session/restoring")) return;
  settings.remove("window/restoring");
  settings.remove("session/restoring");
  settings.sync();
}

}  // namespace reclab
