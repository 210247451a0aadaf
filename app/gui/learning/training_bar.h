// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QLabel>
#include <QToolBar>
#include <QToolButton>

#include "gui/learning/training_settings.h"
#include "gui/learning/training_strip.h"
#include "trace/learning.h"

namespace reclab {

/// The bar above the time line: train, pause, a step, back to the beginning, a fork; the options of training; and the time of training.
class TrainingBar : public QToolBar {
  Q_OBJECT
 public:
  explicit TrainingBar(QWidget* parent);
  void setLearning(const LearningPtr& learning);
  TrainingStrip* strip() const { return strip_; }
  TrainingSettings* settings() const { return settings_; }
  QToolButton* trainButton() const { return train_; }
  QToolButton* stepButton() const { return step_; }
  QToolButton* forkButton() const { return fork_; }
  QToolButton* resetButton() const { return reset_; }
  QToolButton* followButton() const { return follow_; }
  QString where() const { return where_->text(); }
  QString what() const { return what_->text(); }

 signals:
  void trainWanted();  ///< or a pause, where it trains
  void stepWanted();
  void forkWanted();
  void resetWanted();
  void followWanted();
  void closed();

 private:
  LearningPtr learning_;
  QToolButton *train_, *step_, *fork_, *reset_, *follow_, *how_;
  TrainingSettings* settings_;
  QLabel *where_, *what_;
  TrainingStrip* strip_;
};

}  // namespace reclab
