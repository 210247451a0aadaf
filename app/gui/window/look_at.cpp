// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/window/look_at.h"

#include <algorithm>
#include <utility>

#include "gui/frame/window_frame.h"

namespace reclab {

LookAt::LookAt(WindowFrame* frame) : QObject(frame), frame_(frame) {
  connect(frame_, &WindowFrame::modelPicked, this, [this](const QString& preset) { tell(preset, true); });
  connect(frame_->session(), &SessionController::setupChanged, this, [this] {
    const QString preset = QString::fromStdString(frame_->session()->setup().preset);
    if (told_ != preset) tell(preset, false);
  });
}

/// Tells the panels the preset's places to look at. Closed panels stay closed. The first is raised when the user opens the model.
void LookAt::tell(const QString& preset, bool raise) {
  if (!frame_->session()->library()) return;
  const auto& presets = frame_->session()->library()->presets.presets();
  const auto found = std::find_if(presets.begin(), presets.end(), [&](const Preset& one) { return one.id == preset.toStdString(); });
  if (found == presets.end()) return;
  told_ = preset;
  for (PanelDock* dock : frame_->area()->docks())
    dock->tell("place", [library = frame_->session()->library(), &preset = *found](Panel& panel) { tellPlace(preset, &panel); });
  if (leaves_ && leaves_->preset != preset) {
    const Raised leaves = *std::exchange(leaves_, std::nullopt);
    if (leaves.dock && leaves.before && leaves.dock->inSight() && !leaves.before->isHidden()) {
      leaves.before->raise();
      raised_.remove(leaves.preset);
    }
  }
  if (!raise || raised_.contains(preset) || found->look_at.empty()) return;
  raised_.insert(preset);
  PanelDock* first = frame_->area()->dock(QString::fromStdString(found->look_at.front()).section(':', 0, 0));
  if (first == nullptr || first->isHidden()) return;
  if (!first->inSight() && first->panel()->isOfRun())  // a place to work in, as the composer is, stays
    for (PanelDock* one : frame_->area()->docks())
      if (one->inSight() && frame_->area()->tabifiedDockWidgets(first).contains(one)) leaves_ = Raised{preset, first, one};
  first->raise();
}

/// A link of the card: the user wants to see this place, so its panel is opened where it is closed.
void LookAt::open(const QString& place) {
  PanelDock* dock = frame_->area()->dock(place.section(':', 0, 0));
  if (dock == nullptr) return;
  frame_->area()->open(dock);
  dock->panel()->lookAt(QString::fromStdString(frame_->session()->setup().preset), place.section(':', 1), true);
}

}  // namespace reclab
