// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <vector>

#include "plot/plot.h"

namespace reclab {

/// The numbers of the cells of a map, written into them where all have room.
class CellNumbers : public QCPAbstractPlottable {
  Q_OBJECT
 public:
  CellNumbers(QCPAxis* keyAxis, QCPAxis* valueAxis);
  struct Number {
    int column, row;
    QString text;
    QColor ground;  ///< of the cell
  };
  void setNumbers(std::vector<Number> numbers) { numbers_ = std::move(numbers); }

  double selectTest(const QPointF&, bool, QVariant* = nullptr) const override { return -1; }
  QCPRange getKeyRange(bool& found, QCP::SignDomain) const override;
  QCPRange getValueRange(bool& found, QCP::SignDomain, const QCPRange&) const override;

 protected:
  void draw(QCPPainter* painter) override;
  void drawLegendIcon(QCPPainter*, const QRectF&) const override {}

 private:
  std::vector<Number> numbers_;
};

}  // namespace reclab
