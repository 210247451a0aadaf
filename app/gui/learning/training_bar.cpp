// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/learning/training_bar.h"

#include <QFontMetrics>
#include <QMenu>
#include <QVBoxLayout>
#include <QWidgetAction>
#include <algorithm>

#include "gui/window/look.h"
#include "plot/theme.h"

namespace reclab {

TrainingBar::TrainingBar(QWidget* parent) : QToolBar(tr("Training"), parent) {
  setObjectName("training");
  setMovable(false);
  setFloatable(false);
  setContextMenuPolicy(Qt::PreventContextMenu);
  setIconSize({16, 16});
  const auto button = [this](const QString& name, const QString& iconName, const QString& text, const QString& tip, void (TrainingBar::*wanted)()) {
    auto* made = new QToolButton(this);
    made->setObjectName("training." + name);
    made->setIcon(icon(iconName));
    made->setText(text);
    made->setToolTip(tip);
    made->setFocusPolicy(Qt::TabFocus);
    connect(made, &QToolButton::clicked, this, wanted);
    addWidget(made);
    return made;
  };
  train_ = button("train", "train", tr("Train"), {}, &TrainingBar::trainWanted);
  train_->setToolButtonStyle(Qt::ToolButtonTextBesideIcon);
  step_ = button("step", "step-forward", tr("One step of training"), tr("One step of training"), &TrainingBar::stepWanted);
  fork_ = button("fork", "fork", tr("Fork"), tr("A new training from the weights that are looked at, with what is chosen now; its optimiser begins anew"), &TrainingBar::forkWanted);
  reset_ = button("reset", "reset", tr("Reset"), tr("Forget this training and draw the weights again"), &TrainingBar::resetWanted);
  settings_ = new TrainingSettings;
  how_ = new QToolButton(this);
  how_->setObjectName("field");
  how_->setToolTip(tr("How it is trained; what is changed here holds from the next beginning or fork on"));
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
  where_ = new QLabel(words);
  where_->setFont(uiFont());
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
  const auto tell = [this] {
    how_->setText(settings_->summary() + QStringLiteral(" ▾"));
  };
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
  train_->setToolTip(running ? tr("Pause training after this step; Train goes on") : tr("Train the model on new samples of the sequence's task at every step, or on windows of the file"));
  step_->setEnabled(!running);
  fork_->setEnabled(learning && learning->shown != 0);
  reset_->setEnabled(now != nullptr);
  follow_->setEnabled(now != nullptr && (learning->shown != learning->current || learning->shown_step != now->done));
  strip_->setLearning(learning);
  if (now == nullptr) {
    where_->setText(tr("not trained"));
    what_->setText({});
  } else {
    const LearningCurve* looked = learning->find(learning->shown);
    where_->setText(looked != nullptr ? tr("step %1 of %2").arg(grouped(learning->shown_step), grouped(std::max(looked->done, looked->wanted))) : tr("drawn weights"));
    QStringList said;
    if (looked != nullptr && learning->shown_step >= 1 && learning->shown_step <= std::ssize(looked->loss))
      said << tr("loss %1").arg(reclab::number(looked->loss[static_cast<std::size_t>(learning->shown_step - 1)]));
    if (running) {
      said << tr("%1 steps/s").arg(reclab::number(now->pace, 2));
      if (now->pace > 0.0) said << tr("%1 s left").arg(reclab::number(static_cast<double>(now->wanted - now->done) / now->pace, 2));
    }
    what_->setText(said.join(QStringLiteral(",  ")));
  }
  // Wide enough for what is to come, so that the strip does not tremble.
  const QFontMetrics metrics(what_->font());
  where_->setMinimumWidth(std::max({where_->minimumWidth(), 150, metrics.horizontalAdvance(what_->text()) + 4}));
}

}  // namespace reclab
