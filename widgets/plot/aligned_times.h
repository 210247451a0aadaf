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
  /// Aligns all plots in a widget: those that are there already, and those that are added.
  explicit AlignedTimes(QWidget* within);
  void add(QWidget* part);  ///< the plots in a part of it that was made later

 protected:
  bool eventFilter(QObject* of, QEvent* event) override;

 private:
  void align();

  QWidget* within_;
  std::vector<QPointer<Plot>> plots_;
  QTimer soon_;
};

}  // namespace reclab
