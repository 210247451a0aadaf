// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/results/picture/named_points.h"

#include <QFontMetrics>
#include <algorithm>

namespace reclab {
namespace {

constexpr double radius = 3.5;  // pixels
constexpr int gap = 3;          // between a point and its name

}  // namespace

void NamedPoints::setPoints(std::vector<Point> points) {
  points_ = std::move(points);
  std::ranges::stable_sort(points_, std::ranges::greater{}, &Point::y);
}

void NamedPoints::draw(QCPPainter* painter) {
  const Theme& theme = themeOf(mParentPlot);
  const QFontMetrics metrics(theme.small, mParentPlot);
  const QRectF area = clipRect();
  std::vector<QRectF> taken;
  std::vector<QPointF> places;
  for (const Point& one : points_) {
    places.emplace_back(mKeyAxis->coordToPixel(one.x), mValueAxis->coordToPixel(one.y));
    taken.emplace_back(places.back().x() - radius, places.back().y() - radius, 2 * radius, 2 * radius);
  }
  painter->setFont(theme.small);
  for (std::size_t i = 0; i < points_.size(); ++i) {
    painter->setPen(QPen(theme.base, 1));
    painter->setBrush(points_[i].colour);
    painter->drawEllipse(places[i], radius, radius);
  }
  for (std::size_t i = 0; i < points_.size(); ++i) {
    const QSizeF size(metrics.horizontalAdvance(points_[i].name), metrics.height());
    const double right = places[i].x() + radius + gap, left = places[i].x() - radius - gap - size.width(),
                 middle = places[i].y() - size.height() / 2, centre = places[i].x() - size.width() / 2;
    for (const QPointF corner :
         {QPointF(right, middle), QPointF(left, middle), QPointF(centre, places[i].y() - radius - gap - size.height() + 2),
          QPointF(centre, places[i].y() + radius + gap - 2)}) {
      const QRectF place(corner, size);
      if (!area.contains(place) || std::ranges::any_of(taken, [&](const QRectF& one) { return one.intersects(place); })) continue;
      taken.push_back(place);
      painter->setPen(legible(points_[i].colour, theme));
      painter->drawText(place, Qt::AlignCenter | Qt::TextDontClip, points_[i].name);
      break;
    }
  }
}

}  // namespace reclab
