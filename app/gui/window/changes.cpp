// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/window/changes.h"

#include <QFileInfo>
#include <utility>

#include "gui/docks/panel_area.h"
#include "gui/frame/window_frame.h"
#include "gui/session/kept_setup.h"
#include "gui/views/inspector_view.h"
#include "gui/views/status_line.h"
#include "models/registry.h"

namespace reclab {

Changes::Changes(WindowFrame* frame, InspectorView* inspector) : QObject(frame), frame_(frame), session_(frame->session()) {
  connect(inspector, &InspectorView::edited, this, &Changes::editSetting);
  connect(inspector, &InspectorView::seedEdited, this, [this](quint64 seed, int gesture) {
    Setup after = session_->setup();
    after.seed = seed;
    frame_->change(after, tr("seed"), gesture);
  });
  connect(inspector, &InspectorView::lossEdited, this, [this](const QString& loss) {
    Setup after = session_->setup();
    after.loss = loss_kind(loss.toStdString()).value_or(LossKind::automatic);
    if (after.loss != session_->setup().loss) frame_->change(after, tr("loss"));
  });
  connect(inspector, &InspectorView::trainedWanted, this, &Changes::showTrained);
  connect(inspector, &InspectorView::resetWanted, this, [this] {
    Setup after = session_->setup();
    after.set.erase(after.preset);
    frame_->change(after, tr("back to the preset"));
  });
  connect(session_, &SessionController::modelWanted, this, &Changes::openModel);
  // Panels count their gestures themselves, the inspector's are others.
  connect(session_, &SessionController::settingWanted, this, [this](const SettingChoice& setting) {
    editSetting(QString::fromStdString(setting.key), QString::fromStdString(setting.value), setting.live,
                setting.gesture > 0 ? setting.gesture + 1'000'000'000 : 0);
  });
  connect(frame_, &WindowFrame::runWanted, this, &Changes::showWith);
  connect(session_, &SessionController::sequenceLoaded, this, &Changes::takeSequence);
  connect(session_, &SessionController::fileFits, this, &Changes::takeFile);
}

void Changes::takeSequence(const LoadedSequencePtr& loaded) {
  const std::optional<Awaited> awaited = std::exchange(withSequence_, {});
  const bool with = awaited && awaited->sequence == loaded->choice;
  Setup after = with ? awaited->setup : session_->setup();
  after.sequence = loaded;
  const bool targetless = after.loss == LossKind::task && loaded->sequence.target_kind == TargetKind::none;
  if (targetless) after.loss = LossKind::automatic;
  if (session_->setup().sequence) {
    frame_->banner()->hide();
    if (loaded->choice.is_file()) noteRecentFile(QString::fromStdString(loaded->choice.file));
    const bool another = after.preset != session_->setup().preset;
    frame_->change(after, with ? awaited->text : tr("sequence %1").arg(QString::fromStdString(loaded->sequence.name)));
    if (another) emit frame_->modelPicked(QString::fromStdString(after.preset));
  } else {
    session_->apply(after, false);  // the start is nothing to undo
  }
  if (targetless)
    frame_->say(tr("%1 has no target, so the loss is that of the last step.").arg(QString::fromStdString(loaded->sequence.name)),
                Tone::warning);
}

void Changes::takeFile(FileKind kind, const QString& preset, const QString& file) {
  Setup after = session_->setup();
  if (preset.toStdString() != after.preset) return;  // another model was picked meanwhile
  after.files(kind)[after.preset] = file.toStdString();
  if (kind == FileKind::weights) after.learned.erase(after.preset);
  frame_->banner()->hide();
  noteRecentFile(QFileInfo::exists(file) ? file : file.left(file.lastIndexOf(':')));  // of a part the file
  frame_->change(after, (kind == FileKind::weights ? tr("weights %1") : tr("initial state %1")).arg(QFileInfo(file).fileName()));
}

/// A preset with other settings, as one change; without any, as it was last looked at. Settings equal to the preset's own do not count as
/// set by hand; weights and states of files were for other settings.
void Changes::openModel(const ModelChoice& model) {
  if (!session_->library()) return;
  if (model.settings.empty()) return frame_->pickModel(QString::fromStdString(model.preset));
  Setup after = session_->setup();
  const Hyper standard = hyper_of(builtin_registry(), session_->library()->presets.find(model.preset));
  if (after.preset != model.preset) after.form = "auto";
  after.preset = model.preset;
  after.weights.erase(model.preset);
  after.states.erase(model.preset);
  for (const auto& [key, value] : model.settings) {
    std::erase_if(after.set[model.preset], [&key = key](const auto& one) { return one.first == key; });
    if (standard.text(key) != value) after.setValue(key, value);
  }
  frame_->change(after, tr("model %1").arg(QString::fromStdString(model.title)));
}

/// The weights that came with the preset, with the sizes and the task that they learned with, as one change; or the drawn ones.
void Changes::showTrained(bool trained) {
  if (!session_->library()) return;
  Setup after = session_->setup();
  const Preset& preset = session_->library()->presets.find(after.preset);
  const bool drawn = !after.learnedWeights() && !after.weights.contains(after.preset);
  if (!preset.trained || (trained ? isTrained(after, preset) : drawn)) return emit unchanged();
  if (!trained) {
    after.learned.erase(after.preset);
    after.states.erase(after.preset);
    after.weights.erase(after.preset);
    after.set.erase(after.preset);
    return frame_->change(after, tr("drawn weights"));
  }
  useTrained(after, preset);
  showWith(after, as_trained(preset).own_sequence(), tr("trained weights"));
}

void Changes::showWith(const Setup& setup, const SequenceChoice& sequence, const QString& text) {
  withSequence_ = {sequence, setup, text};
  session_->loadSequence(sequence);
}

void Changes::editSetting(const QString& key, const QString& text, bool live, int gesture) {
  Setup after = session_->setup();
  after.setValue(key.toStdString(), text.toStdString());
  frame_->area()->holdAxes(live);
  session_->setFollowed(live ? frame_->area()->waitedFor() : Kinds());
  frame_->change(after, tr("%1 of %2").arg(key, QString::fromStdString(after.preset)), gesture, live);
}

}  // namespace reclab
