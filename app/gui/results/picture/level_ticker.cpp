// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/results/picture/level_ticker.h"

#include <QFontMetrics>
#include <algorithm>
#include <cmath>
#include <limits>

namespace reclab {

QString LevelTicker::written(std::size_t i) const {
  const QString& name = names_[static_cast<qsizetype>(i)];
  return name.size() > longest ? name.left(longest - 1) + QChar(0x2026) : name;
}

QVector<double> LevelTicker::createTickVector(double, const QCPRange& range) {
  QVector<double> ticks;
  if (axis_ == nullptr) return ticks;
  const QFontMetrics metrics(axis_->tickLabelFont());
  const bool across = axis_->orientation() == Qt::Horizontal;
  const bool falls = across == axis_->rangeReversed();  // the pixels of an upright axis count downwards
  double taken = -std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < places_.size(); ++i) {
    if (!range.contains(places_[i])) continue;
    const double at = (falls ? -1.0 : 1.0) * axis_->coordToPixel(places_[i]);
    const double half = across ? 0.5 * metrics.horizontalAdvance(written(i)) + 4.0 : 0.5 * metrics.height() - 1.0;
    if (at - half < taken) continue;
    ticks.append(places_[i]);
    taken = at + half;
  }
  return ticks;
}

QString LevelTicker::getTickLabel(double tick, const QLocale&, QChar, int) {
  const auto found = std::ranges::min_element(places_, {}, [tick](double place) { return std::abs(place - tick); });
  return found == places_.end() ? QString() : written(static_cast<std::size_t>(found - places_.begin()));
}

}  // namespace reclab
