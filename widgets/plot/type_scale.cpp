// SPDX-License-Identifier: GPL-3.0-or-later
#include "plot/type_scale.h"

#include <qcustomplot.h>

namespace reclab {
namespace {

double scale_now = 1.0;
bool was_scaled = false;  ///< else no plot has a line to be set back

/// The width of a line as it was given, kept beside the one that it is drawn with: a width that is another one was given since.
double scaled(QObject* of, const char* name, double width) {
  const QByteArray given = QByteArray("given_") + name, drawn = QByteArray("drawn_") + name;
  const QVariant before = of->property(drawn.constData());
  if (!before.isValid() || before.toDouble() != width) of->setProperty(given.constData(), width);
  const double now = of->property(given.constData()).toDouble() * scale_now;
  of->setProperty(drawn.constData(), now);
  return now;
}

QPen scaled(QObject* of, const char* name, QPen pen) {
  pen.setWidthF(scaled(of, name, pen.widthF()));
  return pen;
}

template <class Item>
void scaleItem(QCPAbstractItem* item) {
  if (auto* one = qobject_cast<Item*>(item)) one->setPen(scaled(one, "pen", one->pen()));
}

}  // namespace

double typeScale() { return scale_now; }

void setTypeScale(double scale) {
  scale_now = scale;
  was_scaled = was_scaled || scale != 1.0;
}

void scaleLines(QCustomPlot* plot) {
  if (!was_scaled) return;
  for (int i = 0; i < plot->plottableCount(); ++i) {
    QCPAbstractPlottable* one = plot->plottable(i);
    if (one->pen().style() != Qt::NoPen) one->setPen(scaled(one, "pen", one->pen()));
    const auto mark = [one](auto* curve) {
      QCPScatterStyle style = curve->scatterStyle();
      if (style.isNone()) return;
      style.setSize(scaled(one, "mark", style.size()));
      curve->setScatterStyle(style);
    };
    if (auto* graph = qobject_cast<QCPGraph*>(one)) mark(graph);
    if (auto* curve = qobject_cast<QCPCurve*>(one)) mark(curve);
  }
  for (int i = 0; i < plot->itemCount(); ++i) {
    QCPAbstractItem* item = plot->item(i);
    scaleItem<QCPItemLine>(item);
    scaleItem<QCPItemStraightLine>(item);
    scaleItem<QCPItemRect>(item);
    scaleItem<QCPItemEllipse>(item);
    scaleItem<QCPItemCurve>(item);
  }
  for (QCPAxisRect* rect : plot->axisRects())
    for (QCPAxis* axis : rect->axes()) {
      axis->setBasePen(scaled(axis, "base", axis->basePen()));
      axis->setTickPen(scaled(axis, "tick", axis->tickPen()));
      axis->grid()->setPen(scaled(axis, "grid", axis->grid()->pen()));
    }
}

}  // namespace reclab
