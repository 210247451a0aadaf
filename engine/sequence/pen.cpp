// SPDX-License-Identifier: GPL-3.0-or-later
#include "sequence/pen.h"

#include <algorithm>
#include <cmath>

namespace reclab {

const std::vector<PenDigit::Line>& PenDigit::lines() {
  static const std::vector<Line> all{
      {{.50, .08}, {.32, .18}, {.24, .50}, {.32, .82}, {.50, .92}, {.68, .82}, {.76, .50}, {.68, .18}, {.50, .08}},
      {{.35, .26}, {.55, .09}, {.55, .92}},
      {{.25, .26}, {.40, .10}, {.61, .10}, {.75, .27}, {.69, .46}, {.24, .91}, {.78, .91}},
      {{.25, .15}, {.50, .08}, {.72, .20}, {.68, .40}, {.45, .48}, {.71, .56}, {.75, .76}, {.55, .92}, {.25, .85}},
      {{.61, .92}, {.61, .08}, {.22, .63}, {.80, .63}},
      {{.75, .09}, {.31, .09}, {.28, .46}, {.55, .41}, {.76, .57}, {.73, .80}, {.51, .92}, {.25, .85}},
      {{.67, .10}, {.41, .30}, {.27, .60}, {.35, .85}, {.58, .91}, {.74, .73}, {.63, .53}, {.36, .55}},
      {{.22, .09}, {.78, .09}, {.44, .92}},
      {{.50, .48}, {.31, .35}, {.35, .13}, {.63, .12}, {.70, .32}, {.50, .48}, {.28, .66}, {.36, .90}, {.64, .90}, {.73, .68}, {.50, .48}},
      {{.70, .35}, {.55, .50}, {.32, .43}, {.31, .19}, {.54, .08}, {.70, .24}, {.68, .60}, {.50, .92}}};
  return all;
}

double PenDigit::distance(Point at, Point from, Point to) {
  const double x = to.x - from.x, y = to.y - from.y,
               share = std::clamp(((at.x - from.x) * x + (at.y - from.y) * y) / (x * x + y * y), 0.0, 1.0);
  const double dx = at.x - from.x - share * x, dy = at.y - from.y - share * y;
  return std::sqrt(dx * dx + dy * dy);
}

PenDigit::PenDigit(std::size_t digit, Rng draw) : line_(lines()[digit]) {
  const double slant = draw.uniform(-0.22, 0.22), wide = draw.uniform(0.72, 0.98), high = draw.uniform(0.76, 0.98);
  const double right = draw.uniform(-0.05, 0.05), down = draw.uniform(-0.05, 0.05);
  pen_ = draw.uniform(0.035, 0.065);
  for (Point& point : line_) {
    const double x = point.x - 0.5 + draw.uniform(-0.035, 0.035), y = point.y - 0.5 + draw.uniform(-0.035, 0.035);
    point = {0.5 + right + wide * (x - slant * y), 0.5 + down + high * y};
  }
}

double PenDigit::at(double x, double y, double pixel) const {
  double nearest = 2.0;
  for (std::size_t i = 1; i < line_.size(); ++i) nearest = std::min(nearest, distance({x, y}, line_[i - 1], line_[i]));
  return std::clamp(1.0 - (nearest - pen_) / pixel, 0.0, 1.0);
}

}  // namespace reclab
