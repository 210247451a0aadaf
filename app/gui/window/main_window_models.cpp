// SPDX-License-Identifier: GPL-3.0-or-later
// How a model is opened, and what is offered where its run failed or its weights do not fit.
#include "gui/docks/flat_dock.h"
#include "gui/views/status_line.h"
#include "gui/window/main_window.h"
#include "models/registry.h"

namespace reclab {

/// A preset with other settings, as one change; without any, as it was last looked at. What it has as these say is not set by hand; weights
/// and states of files were for other settings.
void MainWindow::openModel(const ModelChoice& model) {
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
  if (!trained) return frame_->change(after, tr("drawn weights"));
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

void MainWindow::nameModel() {
  const ModelPtr& model = session_->model();
  const QString why = session_->library() ? session_->whyNotShown() : QString(),
                title = model ? QString::fromStdString(model->preset.title) : QString();
  for (FlatDock* dock : frame_->docks()) {
    const QString id = dock->objectName();
    if (id == "dock.models")
      dock->header()->setHeadline(
          why.isEmpty() ? QString()
                        : tr("%1 is not shown: %2")
                              .arg(QString::fromStdString(session_->library()->presets.find(session_->setup().preset).title), why));
    else if (id == "dock.inspector" || id == "dock.card")
      dock->header()->setHeadline(why.isEmpty() ? title : tr("%1, not shown").arg(title));
  }
}

/// Weights are of the sizes, the sequence and the loss that they learned with.
void MainWindow::offerOtherWeights() {
  const Setup now = session_->setup();
  frame_->banner()->offer(tr("Draw anew"), [this] {
    Setup after = session_->setup();
    after.learned.erase(after.preset);
    after.weights.erase(after.preset);
    frame_->banner()->hide();
    frame_->change(after, tr("drawn weights"));
  });
  const std::optional<Setup> fits = session_->setupThatFits();
  if (!fits || fits->sameRun(now)) return;
  QStringList words;
  if (fits->sequence != now.sequence && fits->sequence)
    words << tr("%1, %2").arg(QString::fromStdString(fits->sequence->sequence.name)).arg(fits->sequence->sequence.length);
  if (fits->settings() != now.settings()) {
    const Hyper then = hyper_of(builtin_registry(), session_->library()->presets.find(now.preset), fits->settings()),
                set = hyper_of(builtin_registry(), session_->library()->presets.find(now.preset), now.settings());
    for (const HyperSpec& row : then.table())
      if (then.text(row.key) != set.text(row.key)) words << QString::fromStdString(row.key + " " + then.text(row.key)).replace('_', ' ');
  }
  if (fits->loss != now.loss) words << tr("loss %1").arg(QString::fromStdString(fits->loss));
  if (words.isEmpty()) return;
  frame_->banner()->offer(tr("Back to %1").arg(words.join(QStringLiteral(", "))), [this, fits = *fits] {
    frame_->banner()->hide();
    frame_->change(fits, tr("back to what its weights learned with"));
  });
}

void MainWindow::offerMissing(const SequenceChoice& choice, const QStringList& cures) {
  // At the start the window begins with something else, and says why after that.
  if (!session_->setup().sequence) {
    connect(session_, &SessionController::runEnded, this, [this, choice, cures] { offerMissing(choice, cures); }, Qt::SingleShotConnection);
    return;
  }
  if (frame_->banner()->sentence().isEmpty()) return;
  for (const auto& [how, text] : {std::pair{Missing::leave_out, tr("Leave rows out")},
                                  {Missing::hold, tr("Hold the last value")},
                                  {Missing::interpolate, tr("Interpolate")},
                                  {Missing::mask, tr("Hold and mark")}})
    if (cures.contains(QString::fromUtf8(to_string(how))))
      frame_->banner()->offer(text, [this, choice, how = how] {
        SequenceChoice other = choice;
        other.load.missing = how;
        session_->loadSequence(other);
      });
}

/// Where the panels are still of another run than what is set.
void MainWindow::offerAfterStop() {
  const TracePtr& trace = session_->trace();
  const QString former = trace ? session_->nameOfFormer(trace) : QString();
  if (former.isEmpty() || session_->running()) return;
  frame_->banner()->show(tr("The run was stopped, so the panels still show %1.").arg(former));
  frame_->banner()->offer(tr("Run"), [this] {
    frame_->banner()->hide();
    session_->run();
  });
  frame_->banner()->offer(tr("Back to %1").arg(QString::fromStdString(trace->info.title.empty() ? trace->info.preset : trace->info.title)),
                          [this, before = session_->shownSetup()] {
                            frame_->banner()->hide();
                            frame_->change(before, tr("back to what is shown"));
                          });
}

}  // namespace reclab
