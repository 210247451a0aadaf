// SPDX-License-Identifier: GPL-3.0-or-later
// Plots that stand side by side have one range of values: the one that holds the curves of all, or the range that a hand gave to one of
// them.
#pragma once

#include <QObject>
#include <QPointer>
#include <QTimer>
#include <optional>
#include <vector>

#include "panel.h"
#include "plot/plot.h"
#include "plot/value_axis.h"

namespace reclab {

class LinkedAxes : public QObject {
  Q_OBJECT
 public:
  /// Links the panels, all of one kind: their plots are alike, rect by rect.
  LinkedAxes(const std::vector<Panel*>& panels, QObject* parent);

 protected:
  bool eventFilter(QObject* of, QEvent* event) override;

 private:
  using Group = std::vector<QPointer<ValueAxis>>;
  /// A rect without a value axis of its own, as the plane of eigenvalues: both of its axes.
  struct Free {
    QPointer<Plot> plot;
    QPointer<QCPAxisRect> rect;
    std::optional<QCPRange> wanted[2];  ///< none before it has a picture
    QCPRange given[2] = {};
  };
  void join(const Group& group);
  void follow(const Group& group, const ValueAxis* hand);
  /// Whether two ranges differ only by keeping a circle round.
  static bool near(const QCPRange& a, const QCPRange& b);
  void joinFree(std::vector<Free>& group);

  std::vector<Group> values_;
  std::vector<std::vector<Free>> free_;
  std::vector<QPointer<Plot>> plots_;
  QPointer<Plot> hand_;  ///< that in which the mouse changes something
  QTimer soon_;
  bool busy_ = false;
};

}  // namespace reclab
