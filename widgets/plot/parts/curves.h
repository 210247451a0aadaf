// SPDX-License-Identifier: GPL-3.0-or-later
// Values over steps as curves, and how far they reach.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <type_traits>
#include <vector>

#include "plot/plot.h"

namespace reclab {

/// The value of a curve where it has a gap.
constexpr double no_value = std::numeric_limits<double>::quiet_NaN();

/// The step of each row of an array.
inline const std::vector<std::int64_t>& stepsOf(const Trace& trace, const TraceArray& array) {
  return array.steps.empty() ? trace.steps : array.steps;
}

/// An entry of an array that has one for each row and column; row-major.
inline double entryOf(const TraceArray& array, std::int64_t row, std::int64_t column = 0) {
  return (*array.real)[static_cast<std::size_t>(row * array.row_size() + column)];
}

/// value(row) at keys[row] or keys(row) for so many rows; a gap where it is not finite. Where that is more than `most` points, the extremes
/// of neighbouring rows; 0: however many there are.
template <class Keys, class Value>
void fillCurve(QCPGraph* graph, const Keys& keys, std::int64_t rows, const Value& value, std::int64_t most = 0) {
  QVector<QCPGraphData> points;
  const auto add = [&](std::int64_t row, double v) {
    double key;
    if constexpr (std::is_invocable_v<Keys, std::int64_t>)
      key = static_cast<double>(keys(row));
    else
      key = static_cast<double>(keys[static_cast<std::size_t>(row)]);
    points.append({key, std::isfinite(v) ? v : no_value});
  };
  const std::int64_t together = most > 0 ? std::max<std::int64_t>(1, (2 * rows + most - 1) / most) : 1;
  points.reserve(static_cast<qsizetype>(most > 0 ? std::min(rows, most) : rows));
  for (std::int64_t first = 0; first < rows; first += together) {
    std::int64_t least = first, largest = first;
    double low = value(first), high = low;
    for (std::int64_t row = first + 1; row < std::min(rows, first + together); ++row) {
      const double v = value(row);
      if (!(v >= low)) low = v, least = row;
      if (!(v <= high)) high = v, largest = row;
    }
    add(std::min(least, largest), least < largest ? low : high);
    if (least != largest) add(std::max(least, largest), least < largest ? high : low);
  }
  graph->data()->set(points, true);
}

/// A column of an array over its steps, each drawn so many steps later.
void fillCurve(QCPGraph* graph, const Trace& trace, const TraceArray& array, std::int64_t column = 0, std::int64_t later = 0);

/// The range of the curves that are seen in a rect, over all keys or those of a range; nothing where none has a point there.
std::optional<QCPRange> spanOf(const QCPAxisRect* rect, const std::optional<QCPRange>& keys = {});
/// Makes a range hold a curve too. False where the curve has no point.
bool expandTo(QCPRange& range, const QCPGraph* graph);
/// Makes a range, which may be none yet, hold a value too, unless that is not finite.
void expandTo(std::optional<QCPRange>& range, double value);
/// The range with a part of it more at both ends, and at least so much.
QCPRange padded(const QCPRange& range, double part, double least);
/// The range with a part of it more at both ends; where it is one value, a part of that.
QCPRange widened(const QCPRange& range, double part);

}  // namespace reclab
