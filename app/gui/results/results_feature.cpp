// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/results/results_feature.h"

#include <QDir>
#include <QFileInfo>
#include <QMainWindow>
#include <QScreen>

#include "experiment/command/command.h"
#include "experiment/command/typed_run.h"
#include "experiment/training/plan.h"
#include "gui/dialogs/field_editor.h"
#include "gui/frame/lab.h"
#include "gui/frame/window_frame.h"
#include "gui/look/look.h"
#include "gui/results/evaluate_form.h"
#include "gui/results/results_window.h"
#include "gui/results/sweep_form.h"
#include "gui/session/files.h"
#include "gui/session/pins.h"
#include "gui/session/requests.h"
#include "gui/session/work/training.h"
#include "gui/start/options.h"
#include "window_text.h"

namespace reclab {

ResultsFeature::ResultsFeature(WindowFrame* frame) : QObject(frame), frame_(frame) {
  QAction* results = frame_->add("results", "table", tr("Results of sweeps…"), {}, [this] { show({}); });
  results->setToolTip(tr("Tables of many runs: maps over two settings, curves with bands, rankings, parallel axes"));
  QAction* makes = frame_->add("newSweep", "task", tr("New sweep…"), {}, [this] { makeSweep(); });
  makes->setToolTip(tr("This run or training for many seeds, sizes, settings: a cell each, computed here or elsewhere"));
  QAction* judges = frame_->add("evaluate", "task", tr("Evaluate…"), {}, [this] { evaluate(); });
  judges->setToolTip(tr("This model and the pinned ones on many new sequences: loss and metric by length, position, delay and class"));
  frame_->offer(ActionPlace::runCompare, judges);
  frame_->offer(ActionPlace::runCompare, makes);
  frame_->offer(ActionPlace::runCompare, results);
}

bool ResultsFeature::open(const QString& path) {
  const QFileInfo info(path);
  const QString folder = info.isDir() ? path : info.absolutePath();
  if (!QFileInfo::exists(folder + "/cells.jsonl") ||
      (!info.isDir() && info.fileName() != u"cells.jsonl" && info.fileName() != u"plan.json"))
    return false;
  show(QDir(folder).absolutePath());
  return true;
}

void ResultsFeature::show(const QString& place) {
  QMainWindow* main = frame_->window();
  if (window_ == nullptr) {
    window_ = new ResultsWindow(frame_->chooser(), main);
    window_->resize(QSize(1180, 760).boundedTo(main->screen()->availableSize() * 0.94));
    connect(window_, &ResultsWindow::newWanted, this, &ResultsFeature::makeSweep);
    connect(window_, &ResultsWindow::cellWanted, this, &ResultsFeature::openCell);
    connect(window_, &ResultsWindow::said, frame_, &WindowFrame::tell);
  }
  window_->show();
  window_->raise();
  window_->activateWindow();
  if (!place.isEmpty()) window_->open(place);
}

/// The training that Train would begin, over seeds: what one asks first of any result.
void ResultsFeature::makeSweep() {
  const SessionController* session = frame_->session();
  if (!session->library() || !session->setup().sequence || form_ != nullptr) return;
  try {
    const Setup& setup = session->setup();
    const Preset& preset = session->library()->presets.find(setup.preset);
    SweepDraft draft;
    draft.line = QString::fromStdString(command_of(trainingRequestFor(setup, preset, session->trainingChoice())));
    draft.axes = {{"seed", "1, 2, 3"}};
    draft.measures = "loss";
    QStringList options{"seed", "preset"};
    if (session->model())
      for (const HyperSpec& row : session->model()->card.hyper) options << "set." + QString::fromStdString(row.key);
    for (const TrainingField& field : training_fields())
      if (!field.flag.empty()) options << QString::fromStdString(field.flag).mid(2);
    for (const Field& field : sequence_fields())
      if (!field.flag.empty() && field.of != Field::Of::file) options << QString::fromStdString(field.flag).mid(2);
    options.removeDuplicates();
    form_ = new SweepForm(session->library(), frame_->chooser(), draft, options,
                          window_ != nullptr && window_->isVisible() ? static_cast<QWidget*>(window_) : frame_->window());
    form_->setAttribute(Qt::WA_DeleteOnClose);
    connect(form_, &QObject::destroyed, this, [this] { form_ = nullptr; });
    connect(form_, &SweepForm::made, this, &ResultsFeature::show);
    form_->open();
  } catch (const Error& error) {
    frame_->say(windowText(error), Tone::warning);
  }
}

/// The run as it is shown, with the weights that it has, and the pinned ones by their names.
void ResultsFeature::evaluate() {
  SessionController* session = frame_->session();
  if (evaluation_ != nullptr) return;
  if (!session->library() || !session->trace() || !session->shownSetup().sequence)
    return frame_->say(tr("There is no run yet that could be evaluated."), Tone::warning);
  const Setup shown = session->shownSetup();
  const auto model_of = [&](const Setup& setup, const QString& name) {
    return JudgedRequest{name.toStdString(), requestFor(setup, session->library()->presets.find(setup.preset), {})};
  };
  const QString title = QString::fromStdString(session->library()->presets.find(shown.preset).title);
  std::vector<JudgedRequest> models{model_of(shown, title)};
  std::map<std::string, int> runs{{title.toStdString(), -1}};
  for (const Pin& pin : frame_->pins()->pins()) {
    Setup setup = pin.setup;
    setup.sequence = shown.sequence;
    if (pin.weights) setup.learned[setup.preset] = pin.weights;
    models.push_back(model_of(setup, pin.name));
    runs.emplace(pin.name.toStdString(), pin.colour);
  }
  evaluation_ = new EvaluateForm(session->library(), std::move(models), session->scheduler(), frame_->window());
  evaluation_->setAttribute(Qt::WA_DeleteOnClose);
  connect(evaluation_, &QObject::destroyed, this, [this] { evaluation_ = nullptr; });
  connect(evaluation_, &EvaluateForm::evaluated, this,
          [this, title, runs](const EvaluationPtr& table) { showEvaluation(table, title, runs); });
  evaluation_->open();
}

void ResultsFeature::showEvaluation(const EvaluationPtr& table, const QString& title, const std::map<std::string, int>& runs) {
  const QString file = evaluations_.filePath(QStringLiteral("evaluation-%1.csv").arg(++number_));
  if (const QString problem = writeText(file, QString::fromStdString(csv_of(*table))); !problem.isEmpty())
    return frame_->say(problem, Tone::warning);
  Atlas shown{tr("%1, evaluated").arg(title), {}, QString::fromStdString(table->command), file, {}, {}, runs};
  shown.text = tr("On %1. Intervals: %2.").arg(QString::fromStdString(table->data), QString::fromStdString(table->intervals));
  for (const NotEvaluated& one : table->missing)
    shown.text += QStringLiteral(" %1 on %2: %3").arg(QString::fromStdString(one.model)).arg(one.length).arg(windowText(one.why));
  shown.choice.view = ResultView::curves;
  shown.choice.measure = "loss";
  shown.choice.across = "length";
  shown.choice.upright = "model";
  shown.choice.only = {{"by", "length"}};
  show({});
  window_->open(shown);
}

/// A training that is kept with its weights is opened with these; else the window is set up as its line says, ready to be trained.
void ResultsFeature::openCell(const TypedRun& run, const QString& folder) {
  if (!folder.isEmpty()) {
    emit trainingWanted(folder);
  } else {
    try {
      const Library& library = *frame_->session()->library();
      const Options options = optionsOf(run);
      const Setup setup = beginning(options, library);
      if (run.trains) {
        const TrainingRequest training = training_request_of(run.given, library.presets.find(run.id));
        frame_->lab()->putPart("training", savedOf(training_fields(), training));
      }
      emit frame_->runWanted(setup, beginningSequence(options, library), tr("a cell of a sweep"));
    } catch (const Error& error) {
      frame_->say(windowText(error), Tone::warning);
      return;
    }
  }
  frame_->window()->raise();
  frame_->window()->activateWindow();
}

}  // namespace reclab
