// SPDX-License-Identifier: GPL-3.0-or-later
// The window's part in training: the bar, the panel and the menus.
#include <QAction>
#include <QDir>
#include <QUndoStack>

#include "experiment/training/training.h"
#include "gui/dialogs/file_dialogs.h"
#include "gui/docks/panel_area.h"
#include "gui/learning/training_bar.h"
#include "gui/look/look.h"
#include "gui/session/commands.h"
#include "gui/session/pins.h"
#include "gui/session/words.h"
#include "gui/window/main_window.h"
#include "plot/theme.h"

namespace reclab {

void MainWindow::connectTraining() {
  connect(session_, &SessionController::trainingWanted, this, [this] { train(); });
  connect(session_, &SessionController::learningChanged, this, [this](const LearningPtr& learning) {
    tellLearning();
    training_->setVisible(!learning->trainings.empty());
    action("exportTraining")->setEnabled(learning->current != 0);
    action("resetTraining")->setEnabled(learning->current != 0);
    action("fork")->setEnabled(learning->shown != 0);
    action("trainStep")->setEnabled(!learning->running);
    QAction* trains = action("train");
    trains->setText(learning->running ? tr("Pause training") : tr("Train"));
    trains->setIconText(learning->running ? tr("Pause") : tr("Train"));
    trains->setIcon(icon(learning->running ? "pause" : "train"));
  });
  action("fork")->setEnabled(false);
  action("resetTraining")->setEnabled(false);
  connect(training_, &TrainingBar::trainWanted, this, [this] { train(); });
  connect(training_, &TrainingBar::stepWanted, this, [this] { train(1); });
  connect(training_, &TrainingBar::forkWanted, session_, &SessionController::forkTraining);
  connect(training_, &TrainingBar::resetWanted, this, &MainWindow::resetTraining);
  connect(training_, &TrainingBar::followWanted, session_, &SessionController::followTraining);
  connect(training_->strip(), &TrainingStrip::stepPicked, session_, &SessionController::lookAtStep);
  connect(training_->settings(), &TrainingSettings::changed, this,
          [this] { session_->setTrainingChoice(training_->settings()->choice()); });
}

void MainWindow::resetTraining() {
  if (!session_->learning() || session_->learning()->current == 0) return;
  undo_->push(new ForgetTraining(session_));
  say(tr("The training is forgotten, and the weights are drawn again; Undo (Ctrl+Z) brings all of it back."), Tone::info);
}

/// What lies in the folder is replaced where a person says so.
bool MainWindow::mayExportTraining(const QString& folder) {
  try {
    const TrainingFolder there = training_in(folder.toStdString());
    if (there.holds == TrainingFolder::Holds::nothing) return true;
    const QString place = QDir::toNativeSeparators(folder), file = QString::fromStdString(there.file);
    return mayReplace(this, tr("Export training"),
                      there.holds == TrainingFolder::Holds::training
                          ? tr("A training of %1 steps is in %2 already.").arg(grouped(there.steps), place)
                          : tr("%1 is in %2 already, and is no training's.").arg(file, place));
  } catch (const Error& error) {
    say(inWindowWords(error), Tone::warning);
    return false;
  }
}

void MainWindow::train(std::int64_t steps) {
  if (session_->training()) return session_->pauseTraining();
  session_->setTrainingChoice(training_->settings()->choice());
  session_->train(pins_->learners(), steps);
  area_->showLearning();
}

/// Its runs by the names and in the colours that they have in all other pictures.
void MainWindow::tellLearning() {
  if (!session_->learning()) return;
  auto learning = std::make_shared<Learning>(*session_->learning());
  learning->runs = pins_->named(*learning);
  training_->setLearning(learning);
  area_->setLearning(learning);
}

}  // namespace reclab
