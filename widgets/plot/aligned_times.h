// SPDX-License-Identifier: GPL-3.0-or-later
// Plots that stand under each other have their time axes under each other: a step is at one place in all of them.
#pragma once

#include <QObject>
#include <QPointer>
#include <QTimer>
#include <vector>

#include "plot/plot.h"

namespace reclab {

class AlignedTimes : public QObject {
  Q_OBJECT
 public:
  /// Aligns all plots in a widget, which are there already.
  explicit AlignedTimes(QWidget* within);

 protected:
  bool eventFilter(QObject* of, QEvent* event) override;

 private:
  void align();

  QWidget* within_;
  std::vector<QPointer<Plot>> plots_;
  QTimer soon_;
};

}  // namespace reclab
