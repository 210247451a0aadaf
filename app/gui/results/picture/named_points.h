// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QStringList>
#include <vector>

#include "gui/results/picture/plain_plottable.h"

namespace reclab {

/// Points with names beside them, as many as cover neither a point nor another name: the highest first.
class NamedPoints : public PlainPlottable {
 public:
  using PlainPlottable::PlainPlottable;
  struct Point {
    double x, y;
    QString name;
    QColor colour;
  };
  void setPoints(std::vector<Point> points);

 protected:
  void draw(QCPPainter* painter) override;

 private:
  std::vector<Point> points_;  ///< the highest first
};

}  // namespace reclab
