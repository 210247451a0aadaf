// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QWidget>

#include "trace/learning.h"

namespace reclab {

/// The time of a training: its loss from the first step to the last, the steps whose weights are kept, and which of them are looked at.
/// Drag, or the keyboard, to look at others.
class TrainingStrip : public QWidget {
  Q_OBJECT
 public:
  explicit TrainingStrip(QWidget* parent = nullptr);
  void setLearning(const LearningPtr& learning);
  std::int64_t step() const { return learning_ ? learning_->line_step : 0; }
  int pixelOf(std::int64_t step) const;

 signals:
  void stepPicked(std::uint64_t training, std::int64_t step, bool moving);

 protected:
  bool event(QEvent* event) override;
  void paintEvent(QPaintEvent* event) override;
  void mousePressEvent(QMouseEvent* event) override;
  void mouseMoveEvent(QMouseEvent* event) override;
  void mouseReleaseEvent(QMouseEvent* event) override;
  void keyPressEvent(QKeyEvent* event) override;
  QSize sizeHint() const override { return {400, 40}; }

 private:
  const LearningCurve* curve() const;
  std::int64_t last() const;
  void pick(double x, bool moving);
  void keep(std::int64_t places);  ///< so many kept weights further
  LearningPtr learning_;
};

}  // namespace reclab
