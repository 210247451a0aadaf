// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <vector>

#include "gui/results/picture/plain_plottable.h"

namespace reclab {

/// The numbers of the cells of a map, written into them where all have room.
class CellNumbers : public PlainPlottable {
 public:
  using PlainPlottable::PlainPlottable;
  struct Number {
    int column, row;
    QString text;
    QColor ground;  ///< of the cell
  };
  void setNumbers(std::vector<Number> numbers) { numbers_ = std::move(numbers); }

 protected:
  void draw(QCPPainter* painter) override;

 private:
  std::vector<Number> numbers_;
};

}  // namespace reclab
