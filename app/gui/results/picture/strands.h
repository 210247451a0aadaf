// SPDX-License-Identifier: GPL-3.0-or-later
// Rows of a table as lines across upright axes, one a column: parallel coordinates (A. Inselberg, The Visual Computer 1, 1985).
#pragma once

#include <vector>

#include "gui/results/picture/plain_plottable.h"

namespace reclab {

class Strands : public PlainPlottable {
 public:
  using PlainPlottable::PlainPlottable;
  /// Heights [rows, columns] from 0 to 1, row-major; a line has a gap where one is NaN. A shade from 0 to 1 of each row picks its colour;
  /// a row without one, NaN, is drawn in grey, under the others.
  void setData(std::vector<double> heights, int columns, std::vector<double> shades);
  int rows() const { return columns_ > 0 ? static_cast<int>(std::ssize(heights_)) / columns_ : 0; }
  /// The row whose line is nearest to a position in the plot's pixels, at most `reach` away; -1: none.
  int rowAt(const QPointF& position, double reach = 6.0) const;

 protected:
  void draw(QCPPainter* painter) override;

 private:
  double heightOf(int row, int column) const {
    return heights_[static_cast<std::size_t>(row) * static_cast<std::size_t>(columns_) + static_cast<std::size_t>(column)];
  }
  QPointF pointOf(int row, int column) const;
  std::vector<double> heights_, shades_;
  int columns_ = 0;
};

}  // namespace reclab
