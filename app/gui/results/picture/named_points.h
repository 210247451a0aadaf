// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QStringList>
#include <vector>

#include "plot/plot.h"

namespace reclab {

/// Points with names beside them, as many as cover neither a point nor another name: the highest first.
class NamedPoints : public QCPAbstractPlottable {
  Q_OBJECT
 public:
  NamedPoints(QCPAxis* keyAxis, QCPAxis* valueAxis);
  struct Point {
    double x, y;
    QString name;
    QColor colour;
  };
  void setPoints(std::vector<Point> points);

  double selectTest(const QPointF&, bool, QVariant* = nullptr) const override { return -1; }
  QCPRange getKeyRange(bool& found, QCP::SignDomain) const override;
  QCPRange getValueRange(bool& found, QCP::SignDomain, const QCPRange&) const override;

 protected:
  void draw(QCPPainter* painter) override;
  void drawLegendIcon(QCPPainter*, const QRectF&) const override {}

 private:
  std::vector<Point> points_;  ///< the highest first
};

}  // namespace reclab
