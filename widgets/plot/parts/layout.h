// SPDX-License-Identifier: GPL-3.0-or-later
// The layout of the pictures of a plot: under each other, their edges in line, some of them put away; straight lines across them, and maps.
#pragma once

#include <initializer_list>
#include <vector>

#include "plot/parts/heatmap.h"

namespace reclab {

/// Texts, legends and pictures under each other, from the top of a plot.
void stack(Plot* plot, std::initializer_list<QCPLayoutElement*> rows);
/// A grid of pictures that stand close to each other.
QCPLayoutGrid* closeGrid();
/// The axes of these pictures begin and end at the same pixels, at these sides.
void lineUp(std::initializer_list<QCPLayoutElement*> pictures, QCP::MarginSides sides);

/// Hides a rect that stays in its cell, which then has no height, or no width where it is folded horizontally; or shows it again.
void fold(QCPAxisRect* rect, bool away, Qt::Orientation along = Qt::Vertical);

struct PictureCell {
  QCPLayoutElement* element;
  int row = 0, column = 0;
  double stretch = 1.0;  ///< of the row
};
/// Shows these alone of all elements of a grid, each in its cell: an element without a cell takes no room.
void showCells(QCPLayoutGrid* grid, std::initializer_list<QCPLayoutElement*> all, const std::vector<PictureCell>& shown);

/// Names the value axis of a rect, whose height is known, in brief where there is no room for all of the name.
void nameValues(QCPAxisRect* rect, const QString& name, const QString& brief);
/// Hides the lines at the ticks.
void hideGrid(QCPAxisRect* rect);

/// A line from edge to edge of a rect.
class StraightLine : public QCPItemStraightLine {
 public:
  StraightLine(QCPAxisRect* rect, const QString& layer);
  void setLevel(double value);  ///< at one value
  void setUpright(double key);  ///< at one step
};

/// A heatmap in a rect of its own, and a bar with the values of its colours, of the same height.
struct MapPicture {
  /// `shape` as Plot::makeRect takes it.
  explicit MapPicture(Plot* plot, std::function<void()> shape = {});
  QCPAxisRect* rect;
  ColourBar* bar;
  Heatmap* heatmap;
  /// The upright axis counts units from 0, or names the step that each is of, where the steps are evenly apart.
  void setUnits(std::int64_t units);
  void setUnits(const std::vector<std::int64_t>& steps);
};

}  // namespace reclab
