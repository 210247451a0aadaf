// SPDX-License-Identifier: GPL-3.0-or-later
// The layout of the map of a literature. No widget: a table of places that a test can look at.
#pragma once

#include <QPointF>
#include <QRectF>
#include <QSizeF>
#include <functional>
#include <vector>

#include "gui/literature/literature.h"

namespace reclab {

/// A chart, years from left to right and families one under the other, where it is wide; where it is narrow a list, a model a line, the
/// years going down and the families side by side. Names stand to the right of their dots; in a chart that is not zoomed out no name meets
/// another name or a dot.
struct MapLayout {
  enum class Shape { chart, list };
  struct Lane {
    double from, to;  ///< in a chart from its top, heading and all, to its bottom; in a list from its left to its right
    int family;
  };
  struct Year {
    double at;  ///< in a chart the left of its column, in a list the place of its first line
    int year;
  };
  Shape shape = Shape::chart;
  QSizeF size;
  double axis = 0.0;          ///< height of the headings that stay at the top: the years of a chart, the sections of a list
  double line = 0.0;          ///< from one line to the next
  double column = 0.0;        ///< of a chart: from one year to the next
  double names = 0.0;         ///< of a list: where names begin
  std::vector<QPointF> dots;  ///< of each model
  std::vector<double> room;   ///< for its name, from the dot on
  std::vector<Lane> lanes;
  std::vector<Year> years;
};

constexpr double mapDot = 4.0;      ///< its radius
constexpr double mapNameGap = 9.0;  ///< from a dot's middle to its name
constexpr double widestMapName = 150.0;
constexpr double widestMapList = 560.0;  ///< a view that is narrower shows a list

MapLayout layOut(const Literature& literature, QSizeF view, double zoom, const std::function<double(const QString&)>& widthOf);
/// The zoom, 1 at most, at which all of it is in sight.
double zoomThatFits(const Literature& literature, QSizeF view, const std::function<double(const QString&)>& widthOf);

}  // namespace reclab
