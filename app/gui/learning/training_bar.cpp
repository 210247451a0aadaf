// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/learning/training_bar.h"

#include <QFontMetrics>
#include <QMenu>
#include <QVBoxLayout>
#include <QWidgetAction>
#include <algorithm>

#include "gui/look/look.h"
#include "plain_text.h"
#include "plot/theme.h"

namespace reclab {

TrainingBar::TrainingBar(QWidget* parent) : QToolBar(tr("Training"), parent) {
  setObjectName("training");
  setMovable(false);
  setFloatable(false);
  setContextMenuPolicy(Qt::PreventContextMenu);
  setIconSize({16, 16});
  const auto button = [this](const QString& name, const QString& iconName, const QString& text, const QString& tip,
                             void (TrainingBar::*wanted)()) {
    auto* made = new QToolButton(this);
    made->setObjectName("training." + name);
    made->setIcon(icon(iconName));
    made->setText(text);
    made->setToolTip(safeTip(tip));
    made->setFocusPolicy(Qt::TabFocus);
    connect(made, &QToolButton::clicked, this, wanted);
    addWidget(made);
    return made;
  };
  train_ = button("train", "train", tr("Train"), {}, &TrainingBar::trainWanted);
  train_->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
  step_ = button("step", "step-forward", tr("One step of training"), tr("One step of training"), &TrainingBar::stepWanted);
  fork_ = button("fork", "fork", tr("Fork"),
                 tr("A new training from the weights that are looked at. It waits until you have chosen how it learns and press Train; its "
                    "optimiser begins anew"),
                 &TrainingBar::forkWanted);
  reset_ = button("reset", "reset", tr("Reset"), tr("Forget this training and draw the weights again; Undo (Ctrl+Z) brings it back"),
                  &TrainingBar::resetWanted);
  settings_ = new TrainingSettings;
  how_ = new QToolButton(this);
  how_->setObjectName("field");
  how_->setAccessibleName(tr("Options of training"));
  how_->setToolTip(tr("How it is trained; what is changed here holds from the next beginning on, of a training or of a fork"));
  how_->setFocusPolicy(Qt::TabFocus);
  how_->setPopupMode(QToolButton::InstantPopup);
  auto* menu = new QMenu(how_);
  auto* action = new QWidgetAction(menu);
  action->setDefaultWidget(settings_);
  menu->addAction(action);
  how_->setMenu(menu);
  addWidget(how_);
  auto* words = new QWidget(this);
  auto* column = new QVBoxLayout(words);
  column->setContentsMargins(8, 0, 4, 0);
  column->setSpacing(0);
  where_ = plainLabel({}, words);
  where_->setFont(uiFont());
  where_->setTextFormat(Qt::PlainText);  // names may be a user's own
  what_ = label({}, "muted", words);
  what_->setFont(numberFont());
  column->addStretch();
  column->addWidget(where_);
  column->addWidget(what_);
  column->addStretch();
  addWidget(words);
  strip_ = new TrainingStrip(this);
  addWidget(strip_);
  follow_ = button("follow", "right", tr("Follow"), tr("Look at the newest weights, and follow training"), &TrainingBar::followWanted);
  const auto tell = [this] { how_->setText(settings_->summary() + QStringLiteral(" ▾")); };
  connect(settings_, &TrainingSettings::changed, this, tell);
  tell();
  setLearning(nullptr);
}

void TrainingBar::setLearning(const LearningPtr& learning) {
  learning_ = learning;
  const LearningCurve* now = learning ? learning->find(learning->current) : nullptr;
  const bool running = learning && learning->running;
  train_->setIcon(icon(running ? "pause" : "train"));
  train_->setText(running ? tr("Pause") : tr("Train"));
  train_->setToolTip(safeTip(running
                                 ? tr("Pause training after this step; Train goes on")
                                 : tr("Train the model on new samples of the sequence's task at every step, or on windows of the file")));
  step_->setEnabled(!running);
  fork_->setEnabled(learning && learning->shown != 0);
  reset_->setEnabled(now != nullptr);
  const LearningCurve* line = learning ? learning->find(learning->line) : nullptr;
  follow_->setEnabled(line != nullptr && (!learning->line_shown || learning->line_step != line->done));
  strip_->setLearning(learning);
  if (line == nullptr) {
    where_->setText(tr("not trained"));
    what_->setText({});
  } else if (now != nullptr && now->waits) {
    where_->setText(QString::fromStdString(learning->name_of(*now)));
    what_->setText(tr("waits: choose how it learns, then Train"));
  } else {
    // The training of the time line, and whether the pictures are of these weights.
    where_->setText(tr("%1: step %2 of %3")
                        .arg(QString::fromStdString(learning->name_of(*line)), grouped(learning->line_step),
                             grouped(std::max(line->done, line->wanted))));
    QStringList said;
    if (!learning->line_shown) said << tr("not what is looked at");
    if (const auto at = line->at(learning->line_step)) said << tr("batch loss %1").arg(reclab::number(line->loss[*at]));
    if (running && learning->pace > 0.0) {
      // Trainings take turns, so the time left is that of the longest.
      std::int64_t left = 0;
      for (const std::uint64_t one : learning->together)
        if (const LearningCurve* curve = learning->find(one)) left = std::max(left, curve->wanted - curve->done);
      const auto runs = std::ssize(learning->together);
      said << (runs > 1 ? tr("%1 steps/s of each of %2").arg(reclab::number(learning->pace, 2)).arg(runs)
                        : tr("%1 steps/s").arg(reclab::number(learning->pace, 2)));
      const double seconds = static_cast<double>(left) / learning->pace;
      said << (seconds < 120.0    ? tr("%1 s left").arg(reclab::number(seconds, 2))
               : seconds < 7200.0 ? tr("%1 min left").arg(reclab::number(seconds / 60.0, 2))
                                  : tr("%1 h left").arg(reclab::number(seconds / 3600.0, 2)));
    }
    what_->setText(said.join(QStringLiteral(",  ")));
  }
  // Wide enough for later texts, so that the strip does not move.
  const QFontMetrics metrics(what_->font());
  const int most = std::max(metrics.horizontalAdvance(what_->text()), QFontMetrics(where_->font()).horizontalAdvance(where_->text())) + 4;
  where_->setMinimumWidth(std::max({where_->minimumWidth(), 150, most}));
}

}  // namespace reclab
