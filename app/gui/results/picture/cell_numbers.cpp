// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/results/picture/cell_numbers.h"

#include <QFontMetrics>
#include <algorithm>

namespace reclab {

void CellNumbers::draw(QCPPainter* painter) {
  const QFont& font = themeOf(mParentPlot).small;
  const QFontMetrics metrics(font, mParentPlot);
  const double wide = std::abs(mKeyAxis->coordToPixel(1.0) - mKeyAxis->coordToPixel(0.0)),
               high = std::abs(mValueAxis->coordToPixel(1.0) - mValueAxis->coordToPixel(0.0));
  const bool fits = std::ranges::all_of(
      numbers_, [&](const Number& one) { return metrics.horizontalAdvance(one.text) + 6 <= wide && metrics.height() + 2 <= high; });
  if (!fits) return;
  painter->setFont(font);
  for (const Number& one : numbers_) {
    const QPointF middle(mKeyAxis->coordToPixel(one.column), mValueAxis->coordToPixel(one.row));
    painter->setPen(contrast(one.ground, Qt::white) > contrast(one.ground, Qt::black) ? Qt::white : Qt::black);
    painter->drawText(QRectF(middle.x() - 0.5 * wide, middle.y() - 0.5 * high, wide, high), Qt::AlignCenter, one.text);
  }
}

}  // namespace reclab
