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
#include "gui/results/results_window.h"
#include "gui/results/sweep_form.h"
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

/// A training that is kept with its weights is opened with these; else the window is set up as its line says, ready to be trained.
void ResultsFeature::openCell(const QStringList& words, const QString& folder) {
  if (!folder.isEmpty()) {
    emit trainingWanted(folder);
  } else {
    try {
      std::vector<std::string> line;
      for (const QString& word : words) line.push_back(word.toStdString());
      const TypedRun run = typed_run(line);
      const Library& library = *frame_->session()->library();
      Options options;
      options.model = QString::fromStdString(run.id);
      options.given = run.given;
      const Setup setup = beginning(options, library);
      if (run.trains) {
        const TrainingRequest training = training_request_of(run.given, library.presets.find(run.id));
        QVariantMap choices;
        for (const TrainingField& field : training_fields())
          choices.insert(QString::fromStdString(field.row.key), savedOf(field.get(training)));
        frame_->lab()->putPart("training", choices);
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
