// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "plot/plot.h"

namespace reclab {

/// A drawing in the coordinates of two axes that is not selected, has no place in a legend, and leaves the ranges of its axes to others.
class PlainPlottable : public QCPAbstractPlottable {
 public:
  PlainPlottable(QCPAxis* keyAxis, QCPAxis* valueAxis) : QCPAbstractPlottable(keyAxis, valueAxis) { setSelectable(QCP::stNone); }
  double selectTest(const QPointF&, bool, QVariant* = nullptr) const override { return -1; }
  QCPRange getKeyRange(bool& found, QCP::SignDomain) const override { return noRange(found); }
  QCPRange getValueRange(bool& found, QCP::SignDomain, const QCPRange&) const override { return noRange(found); }

 protected:
  void drawLegendIcon(QCPPainter*, const QRectF&) const override {}

 private:
  static QCPRange noRange(bool& found) {
    found = false;
    return {};
  }
};

}  // namespace reclab
