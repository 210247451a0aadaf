// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/results/picture/strands.h"

#include <QLineF>
#include <algorithm>
#include <cmath>
#include <numeric>

namespace reclab {

void Strands::setData(std::vector<double> heights, int columns, std::vector<double> shades) {
  heights_ = std::move(heights);
  shades_ = std::move(shades);
  columns_ = columns;
}

QPointF Strands::pointOf(int row, int column) const {
  return {mKeyAxis->coordToPixel(column), mValueAxis->coordToPixel(heightOf(row, column))};
}

int Strands::rowAt(const QPointF& position, double reach) const {
  int found = -1;
  for (int row = 0; row < rows(); ++row)
    for (int column = 0; column + 1 < columns_; ++column) {
      const QPointF a = pointOf(row, column), b = pointOf(row, column + 1), along = b - a;
      if (std::isnan(a.y()) || std::isnan(b.y()) || position.x() < a.x() || position.x() > b.x()) continue;
      const double length = QPointF::dotProduct(along, along);
      const double share = length > 0.0 ? std::clamp(QPointF::dotProduct(position - a, along) / length, 0.0, 1.0) : 0.0;
      if (const double away = QLineF(position, a + share * along).length(); away <= reach) {
        reach = away;
        found = row;
      }
    }
  return found;
}

void Strands::draw(QCPPainter* painter) {
  const Theme& theme = themeOf(mParentPlot);
  std::vector<int> order(static_cast<std::size_t>(rows()));
  std::iota(order.begin(), order.end(), 0);
  const auto shade = [&](int row) { return shades_[static_cast<std::size_t>(row)]; };
  std::ranges::stable_partition(order, [&](int row) { return std::isnan(shade(row)); });
  const double alpha = std::clamp(60.0 / std::sqrt(1.0 + rows()), 0.15, 0.9);
  for (const int row : order) {
    QColor ink = std::isnan(shade(row))
                     ? theme.axis
                     : QColor::fromRgb(viridis()[static_cast<std::size_t>(std::lround(255.0 * std::clamp(shade(row), 0.0, 1.0)))]);
    ink.setAlphaF(static_cast<float>(alpha));
    painter->setPen(QPen(ink, 1.3));
    QPolygonF line;
    const auto end = [&] {
      if (line.size() > 1) painter->drawPolyline(line);
      line.clear();
    };
    for (int column = 0; column < columns_; ++column) {
      if (std::isnan(heightOf(row, column)))
        end();
      else
        line << pointOf(row, column);
    }
    end();
  }
}

}  // namespace reclab
