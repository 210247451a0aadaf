// SPDX-License-Identifier: GPL-3.0-or-later
// How a model is picked, from the list, the map or the card, and the map in a window of its own.
#include <QScreen>

#include "gui/literature/map_view.h"
#include "gui/literature/map_window.h"
#include "gui/views/models_view.h"
#include "gui/window/main_window.h"
#include "models/registry.h"

namespace reclab {

void MainWindow::pickModel(const QString& id) {
  if (id.toStdString() == session_->setup().preset) return;
  Setup after = session_->setup();
  after.preset = id.toStdString();
  after.form = "auto";  // another model may not have the form that this one was run in
  change(session_->asLearned(after), tr("model %1").arg(id));
  lookAtPlaces(id, true);
}

/// A preset with other settings, as one change; without any, as it was last looked at. What it has as these say is not set by hand; weights and
/// states of files were for other settings.
void MainWindow::openModel(const ModelChoice& model) {
  if (!session_->library()) return;
  if (model.settings.empty()) return pickModel(QString::fromStdString(model.preset));
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
  change(after, tr("model %1").arg(QString::fromStdString(model.title)));
}

/// The weights that came with the preset, with the sizes and the task that they learned with, as one change; or what is drawn.
void MainWindow::showTrained(bool trained) {
  if (!session_->library()) return;
  Setup after = session_->setup();
  const Preset& preset = session_->library()->presets.find(after.preset);
  const bool drawn = !after.learnedWeights() && !after.weights.contains(after.preset);
  if (!preset.trained || (trained ? isTrained(after, preset) : drawn)) return showSetup();
  after.learned.erase(after.preset);
  after.states.erase(after.preset);
  after.weights.erase(after.preset);
  after.set.erase(after.preset);
  if (!trained) return change(after, tr("drawn weights"));
  const Preset as = as_trained(preset);
  const Hyper standard = hyper_of(builtin_registry(), preset), values = hyper_of(builtin_registry(), as);
  for (const HyperSpec& row : standard.table())
    if (standard.text(row.key) != values.text(row.key)) after.setValue(row.key, values.text(row.key));
  after.weights[after.preset] = preset.trained->weights;
  SequenceChoice sequence;
  sequence.task = as.task;
  sequence.options = as.task_options();
  withSequence_ = {sequence, after};
  session_->loadSequence(sequence);
}

/// Again when the properties have come, and when the theme is another.
void MainWindow::showLibrary() {
  if (!session_->library()) return;
  models_->setLibrary(session_->library(), session_->properties());
  models_->setCurrent(QString::fromStdString(session_->setup().preset));
  if (mapWindow_ != nullptr) mapWindow_->setLiterature(models_->literature());
}

void MainWindow::showMap(const QString& marked) {
  if (mapWindow_ == nullptr) {
    mapWindow_ = new MapWindow(&chooser_, this);
    mapWindow_->resize(QSize(1500, 900).boundedTo(screen()->availableSize() * 0.94));
    connect(mapWindow_, &MapWindow::picked, this, &MainWindow::pickModel);
    connect(mapWindow_, &MapWindow::compareWanted, session_, &SessionController::compare);
    connect(mapWindow_, &MapWindow::said, this, [this](const QString& sentence, bool bad) { say(sentence, bad ? Tone::warning : Tone::info); });
    connect(session_, &SessionController::compared, mapWindow_, &MapWindow::setComparison);
    connect(session_, &SessionController::notCompared, mapWindow_, &MapWindow::setProblem);
    mapWindow_->setLiterature(models_->literature());
    mapWindow_->setCurrent(QString::fromStdString(session_->setup().preset));
  }
  mapWindow_->show();
  mapWindow_->raise();
  mapWindow_->activateWindow();
  if (!marked.isEmpty()) mapWindow_->map()->setMarked(marked);
}

}  // namespace reclab
