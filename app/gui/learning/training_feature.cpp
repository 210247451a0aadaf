// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/learning/training_feature.h"

#include <QAction>
#include <QDir>
#include <QMessageBox>
#include <QSettings>
#include <QStyle>
#include <QUndoStack>
#include <algorithm>
#include <iterator>

#include "experiment/training/training.h"
#include "gui/dialogs/field_editor.h"
#include "gui/dialogs/file_dialogs.h"
#include "gui/docks/panel_area.h"
#include "gui/frame/lab.h"
#include "gui/frame/window_frame.h"
#include "gui/learning/training_bar.h"
#include "gui/look/look.h"
#include "gui/session/files.h"
#include "gui/session/pins.h"
#include "gui/session/sentences.h"
#include "gui/views/first_hint.h"
#include "plot/theme.h"
#include "window_text.h"

namespace reclab {

TrainingFeature::TrainingFeature(WindowFrame* frame)
    : QObject(frame), frame_(frame), session_(frame->session()), bar_(new TrainingBar(frame->window())) {
  frame_->window()->addToolBar(Qt::BottomToolBarArea, bar_);
  bar_->hide();
  buildActions();
  connect(bar_, &TrainingBar::trainWanted, this, [this] { train(); });
  connect(bar_, &TrainingBar::stepWanted, this, [this] { train(1); });
  connect(bar_, &TrainingBar::forkWanted, this, &TrainingFeature::fork);
  connect(bar_, &TrainingBar::resetWanted, this, &TrainingFeature::reset);
  connect(bar_, &TrainingBar::followWanted, session_, &SessionController::followTraining);
  connect(bar_->strip(), &TrainingStrip::stepPicked, session_, &SessionController::lookAtStep);
  connect(bar_->settings(), &TrainingSettings::changed, this, [this] { session_->setTrainingChoice(bar_->settings()->choice()); });
  connect(session_, &SessionController::trainingWanted, this, [this] { train(); });
  connect(session_, &SessionController::learningChanged, this, &TrainingFeature::show);
  connect(session_, &SessionController::setupChanged, this, [this] {
    const LoadedSequencePtr& sequence = session_->setup().sequence;
    bar_->settings()->setFile(sequence && sequence->choice.is_file());
  });
  connect(frame_->pins(), &Pins::changed, this, &TrainingFeature::tell);
  frame_->offer({[this] { return paletteEntries(); }});
  frame_->lab()->add({"training", tr("options of training"), [this] { return bar_->settings()->saved(); },
                      [this](const QVariantMap& saved) { bar_->settings()->restore(saved); }});
  frame_->lab()->add({"trainings", tr("step of the lesson"),
                      [this] {
                        const QStringList aside = session_->trainingsAside();
                        return aside.isEmpty() ? QVariantMap() : QVariantMap{{"aside", QVariant(aside).toList()}};
                      },
                      [this](const QVariantMap& saved) { session_->setTrainingsAside(saved["aside"].toStringList()); }, true});
  connect(frame_, &WindowFrame::restored, this,  // independent of the restored visibility
          [this] { bar_->setVisible(session_->learning() && !session_->learning()->trainings.empty()); });
}

void TrainingFeature::buildActions() {
  QAction* trains = frame_->add("train", "train", tr("Train"), QKeySequence(tr("Ctrl+T")), [this] { train(); });
  trains->setToolTip(tr("Train the model on its sequence's task, or pause (Ctrl+T); all panels follow"));
  connect(trains, &QAction::triggered, frame_->hint(), [this] { frame_->hint()->done(FirstHint::train); });
  QAction* step = frame_->add("trainStep", {}, tr("One step of training"), {}, [this] { train(1); });
  QAction* fork = frame_->add("fork", "fork", tr("Fork the training"), {}, [this] { this->fork(); });
  QAction* resets = frame_->add("resetTraining", "reset", tr("Reset the training"), {}, [this] { reset(); });
  QAction* exports = frame_->add("exportTraining", {}, tr("Export training…"), {}, [this] {
    const QString folder = frame_->chooser()->folder(frame_->window(), tr("Export the training into a folder"),
                                                     folderNameOf(session_->trainingOf(), QStringLiteral("training")));
    if (!folder.isEmpty() && mayExport(folder)) session_->exportTraining(folder);
  });
  exports->setToolTip(tr("Weights, history and what it takes to go on with reclab train --resume"));
  for (QAction* of : {fork, resets, exports}) {
    of->setEnabled(false);  // while there is no training
    WindowFrame::setWhyNot(of, tr("Nothing has been trained yet."));
  }
  WindowFrame::setWhyNot(step, tr("It is training already; pause first."));
  frame_->offer(ActionPlace::barTrain, trains);
  for (QAction* one : {trains, step, fork, resets}) frame_->offer(ActionPlace::runTrain, one);
  frame_->offer(ActionPlace::fileExport, exports);

  connect(frame_, &WindowFrame::roomChanged, this, [trains](bool narrow) {
    WindowFrame::buttonOf(trains)->setToolButtonStyle(narrow ? Qt::ToolButtonIconOnly : Qt::ToolButtonTextBesideIcon);
  });
  connect(frame_, &WindowFrame::calmChanged, this, [trains](bool calm) {
    QToolButton* button = WindowFrame::buttonOf(trains);
    button->setProperty("accent", calm);
    button->style()->unpolish(button);
    button->style()->polish(button);
  });
}

std::vector<PaletteEntry> TrainingFeature::paletteEntries() const {
  std::vector<PaletteEntry> all;
  const TrainingChoice choice = bar_->settings()->choice();
  const LoadedSequencePtr& sequence = session_->setup().sequence;
  for (const TrainingField& field : training_fields()) {
    if (field.form.label.empty() || (field.of == Field::Of::file && !(sequence && sequence->choice.is_file()))) continue;
    PaletteSetting one{tr(field.form.label.c_str()), tr("training"), field.row, QString::fromStdString(as_text(field.get(choice)))};
    one.row.low = field.form.low;
    one.row.high = field.form.high;
    one.synonyms = tr(field.form.tip.c_str());
    for (const std::string& label : field.form.choices) one.labels << tr(label.c_str());
    if (field.applies && !field.applies(choice)) one.whyNot = tr("It does nothing beside the other options of training.");
    one.check = [&field](const QString& value) {
      if (!valueFrom(field, value))
        throw Error(tr("It takes a number from %1 to %2.").arg(field.form.low).arg(field.form.high).toStdString());
    };
    one.set = [&field, settings = bar_->settings()](const QString& value) {
      TrainingChoice next = settings->choice();
      if (const auto its = valueFrom(field, value)) field.set(next, *its);
      settings->setChoice(next);
    };
    std::ranges::move(entriesOf(one), std::back_inserter(all));
  }
  return all;
}

void TrainingFeature::show(const LearningPtr& learning) {
  tell();
  bar_->setVisible(!learning->trainings.empty());
  frame_->action("exportTraining")->setEnabled(learning->current != 0);
  frame_->action("resetTraining")->setEnabled(learning->current != 0);
  frame_->action("fork")->setEnabled(learning->shown != 0);
  frame_->action("trainStep")->setEnabled(!learning->running);
  QAction* trains = frame_->action("train");
  trains->setText(learning->running ? tr("Pause training") : tr("Train"));
  trains->setIconText(learning->running ? tr("Pause") : tr("Train"));
  trains->setIcon(icon(learning->running ? "pause" : "train"));
}

bool TrainingFeature::mayClose(bool asks) {
  const QString why = session_->keepTrainings();
  return !asks || ((why.isEmpty() || mayLose(why)) && askAboutOldest());
}

void TrainingFeature::fork() {
  const auto [undo, redo] = session_->forkTraining();
  if (undo) frame_->lab()->change(tr("fork of the training"), [] {}, 0, {undo, redo});
}

void TrainingFeature::reset() {
  if (!session_->learning() || session_->learning()->current == 0) return;
  const Setup before = session_->setup();
  const auto forgotten = std::make_shared<SessionController::Forgotten>();
  const auto forget = [this, forgotten] { *forgotten = session_->resetTraining(*forgotten); };
  frame_->lab()->change(tr("reset of the training"), forget, 0,
                        {[this, forgotten, before] { session_->bringBackTraining(*forgotten, before); }, forget});
  frame_->say(tr("The training is forgotten, and the weights are drawn again; Undo (Ctrl+Z) brings all of it back."));
}

/// Files in the folder are replaced only after a confirmation.
bool TrainingFeature::mayExport(const QString& folder) {
  try {
    const TrainingFolder there = training_in(folder.toStdString());
    if (there.holds == TrainingFolder::Holds::nothing) return true;
    const QString place = QDir::toNativeSeparators(folder), file = QString::fromStdString(there.file);
    return mayReplace(frame_->window(), tr("Export training"),
                      there.holds == TrainingFolder::Holds::training
                          ? tr("A training of %1 steps is in %2 already.").arg(grouped(there.steps), place)
                          : tr("%1 is in %2 already, and is no training's.").arg(file, place));
  } catch (const Error& error) {
    frame_->say(windowText(error), Tone::warning);
    return false;
  }
}

void TrainingFeature::train(std::int64_t steps) {
  if (session_->training()) return session_->pauseTraining();
  session_->setTrainingChoice(bar_->settings()->choice());
  session_->train(frame_->pins()->learners(), steps);
  frame_->area()->showLearning();
}

/// Its runs by the names and in the colours that they have in all other pictures.
void TrainingFeature::tell() {
  if (!session_->learning()) return;
  auto learning = std::make_shared<Learning>(*session_->learning());
  learning->runs = frame_->pins()->named(*learning);
  bar_->setLearning(learning);
  frame_->area()->setResult("train", learning);
}

/// Trainings on the disk become more and more. False where the window is to stay open.
bool TrainingFeature::askAboutOldest() {
  const QStringList oldest = session_->oldestTrainings();
  QSettings settings;
  const QString allowed = QStringLiteral("training/oldKept");
  if (oldest.size() <= settings.value(allowed).toInt()) return true;
  constexpr auto most = static_cast<int>(TrainingStore::most);
  QMessageBox question(QMessageBox::Question, tr("Kept trainings"),
                       tr("%1 trainings lie in %2; %3 of them are older than the newest %4.")
                           .arg(oldest.size() + most)
                           .arg(QDir::toNativeSeparators(TrainingStore::standardFolder()))
                           .arg(oldest.size())
                           .arg(most),
                       QMessageBox::NoButton, frame_->window());
  question.setTextFormat(Qt::PlainText);
  question.setInformativeText(tr("reclab train --resume goes on with each of them."));
  const auto* removes = question.addButton(tr("Remove the oldest %1").arg(oldest.size()), QMessageBox::DestructiveRole);
  auto* keeps = question.addButton(tr("Keep all"), QMessageBox::AcceptRole);
  question.addButton(tr("Cancel"), QMessageBox::RejectRole);
  question.setDefaultButton(keeps);
  question.exec();
  if (question.clickedButton() == removes)
    session_->removeTrainings(oldest);
  else if (question.clickedButton() == keeps)
    settings.setValue(allowed, static_cast<int>(oldest.size()) + most);  // asked again when there are as many more
  else
    return false;
  return true;
}

/// Asks before the window closes over a training that is not kept.
bool TrainingFeature::mayLose(const QString& why) {
  QMessageBox question(QMessageBox::Warning, tr("What was learned cannot be kept"), why, QMessageBox::NoButton, frame_->window());
  question.setTextFormat(Qt::PlainText);
  question.setInformativeText(tr("The trainings of this window would be gone. The current one can be exported into another folder."));
  auto* exports = question.addButton(tr("Export training…"), QMessageBox::AcceptRole);
  auto* closes = question.addButton(tr("Close without it"), QMessageBox::DestructiveRole);
  question.setDefaultButton(question.addButton(tr("Cancel"), QMessageBox::RejectRole));
  question.exec();
  if (question.clickedButton() == exports) frame_->action("exportTraining")->trigger();
  return question.clickedButton() == closes;
}

}  // namespace reclab
