// SPDX-License-Identifier: GPL-3.0-or-later
#include "panels/timing/timing_names.h"

#include <algorithm>

namespace reclab {

PointNames::PointNames(Plot* plot) : QCPLayerable(plot, QStringLiteral("legend")), plot_(plot) {}

void PointNames::applyDefaultAntialiasingHint(QCPPainter* painter) const { painter->setAntialiasing(true); }

void PointNames::draw(QCPPainter* painter) {
  const QFontMetrics metrics(plot_->theme().small, plot_);
  std::vector<QRectF> taken;  // points first
  for (const Name& name : names_)
    if (name.graph && name.graph->visible())
      taken.emplace_back(name.graph->keyAxis()->coordToPixel(name.x) - 5, name.graph->valueAxis()->coordToPixel(name.y) - 5, 10, 10);
  painter->setFont(plot_->theme().small);
  for (const Name& name : names_) {
    if (!name.graph || !name.graph->visible()) continue;
    const QRect area = name.graph->keyAxis()->axisRect()->rect();
    const double x = name.graph->keyAxis()->coordToPixel(name.x), y = name.graph->valueAxis()->coordToPixel(name.y);
    if (!area.contains(QPointF(x, y).toPoint())) continue;
    const double width = metrics.horizontalAdvance(name.text) + 2, height = metrics.height();
    const bool left = x + 8 + width > area.right() && x - 8 - width >= area.left();
    QRectF box(left ? x - 8 - width : x + 8, y - height / 2, width, height);
    // Up and down by turns, a little further each time, until there is room.
    const QRectF at = box;
    for (int turn = 1; turn < 16 && std::any_of(taken.begin(), taken.end(), [&](const QRectF& one) { return one.intersects(box); }); ++turn)
      box = at.translated(0, (turn % 2 ? -1 : 1) * (turn + 1) / 2 * height * 0.6);
    box.moveTop(std::clamp(box.top(), static_cast<double>(area.top()), std::max(static_cast<double>(area.top()), area.bottom() - height)));
    taken.push_back(box);
    painter->setPen(name.graph->property("ink").value<QColor>());
    painter->drawText(box, Qt::AlignCenter | Qt::TextDontClip, name.text);
  }
}

}  // namespace reclab
