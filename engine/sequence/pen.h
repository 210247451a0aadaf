// SPDX-License-Identifier: GPL-3.0-or-later
// Digits written by a pen: each is a line through a few points, which are moved a little, slanted and scaled as a whole; a pixel is as dark
// as the pen is near. No library function but the square root takes part, so that the pixels are the same everywhere.
#pragma once

#include <cstddef>
#include <vector>

#include "array/rng.h"

namespace reclab {

class PenDigit {
 public:
  /// One of 0 to 9, written as the draws have it.
  PenDigit(std::size_t digit, Rng draw);
  /// The darkness, 0 where no pen was and 1 in the middle of its line, of a pixel with this middle and this side; right and down, in a
  /// square of side 1 that holds the digit.
  double at(double x, double y, double pixel) const;

 private:
  struct Point {
    double x, y;
  };
  using Line = std::vector<Point>;
  static const std::vector<Line>& lines();
  static double distance(Point at, Point from, Point to);
  Line line_;
  double pen_ = 0.0;
};

}  // namespace reclab
