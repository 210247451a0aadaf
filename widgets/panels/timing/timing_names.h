// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <vector>

#include "plot/plot.h"

namespace reclab {

/// Names beside points of an axis rect; those that would overlap move apart, and what is hidden has none.
class PointNames : public QCPLayerable {
  Q_OBJECT
 public:
  explicit PointNames(Plot* plot);
  void clear() { names_.clear(); }
  void add(QCPGraph* graph, double x, double y, const QString& text) { names_.push_back({graph, x, y, text}); }

 protected:
  void applyDefaultAntialiasingHint(QCPPainter* painter) const override;
  void draw(QCPPainter* painter) override;

 private:
  struct Name {
    QPointer<QCPGraph> graph;
    double x, y;
    QString text;
  };
  Plot* plot_;
  std::vector<Name> names_;
};

}  // namespace reclab
