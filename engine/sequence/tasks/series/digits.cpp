// SPDX-License-Identifier: GPL-3.0-or-later
// Digits written by a pen: each is a line through a few points, which are moved a little, slanted and scaled as a whole; a pixel is as dark
// as the pen is near. No library function but the square root takes part, so that the pixels are the same everywhere.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "sequence/task.h"

namespace reclab::tasks_by_name {

namespace {

struct Point {
  double x, y;  ///< right and down, in a square of side 1
};
using Line = std::vector<Point>;

const std::array<Line, 10>& digits_as_lines() {
  static const std::array<Line, 10> lines{
      {{{.50, .08}, {.32, .18}, {.24, .50}, {.32, .82}, {.50, .92}, {.68, .82}, {.76, .50}, {.68, .18}, {.50, .08}},
       {{.35, .26}, {.55, .09}, {.55, .92}},
       {{.25, .26}, {.40, .10}, {.61, .10}, {.75, .27}, {.69, .46}, {.24, .91}, {.78, .91}},
       {{.25, .15}, {.50, .08}, {.72, .20}, {.68, .40}, {.45, .48}, {.71, .56}, {.75, .76}, {.55, .92}, {.25, .85}},
       {{.61, .92}, {.61, .08}, {.22, .63}, {.80, .63}},
       {{.75, .09}, {.31, .09}, {.28, .46}, {.55, .41}, {.76, .57}, {.73, .80}, {.51, .92}, {.25, .85}},
       {{.67, .10}, {.41, .30}, {.27, .60}, {.35, .85}, {.58, .91}, {.74, .73}, {.63, .53}, {.36, .55}},
       {{.22, .09}, {.78, .09}, {.44, .92}},
       {{.50, .48}, {.31, .35}, {.35, .13}, {.63, .12}, {.70, .32}, {.50, .48}, {.28, .66}, {.36, .90}, {.64, .90}, {.73, .68}, {.50, .48}},
       {{.70, .35}, {.55, .50}, {.32, .43}, {.31, .19}, {.54, .08}, {.70, .24}, {.68, .60}, {.50, .92}}}};
  return lines;
}

double distance(Point at, Point from, Point to) {
  const double x = to.x - from.x, y = to.y - from.y,
               share = std::clamp(((at.x - from.x) * x + (at.y - from.y) * y) / (x * x + y * y), 0.0, 1.0);
  const double dx = at.x - from.x - share * x, dy = at.y - from.y - share * y;
  return std::sqrt(dx * dx + dy * dy);
}

/// Row by row, 0 where no pen was and 1 in the middle of its line.
std::vector<double> pixels_of(std::size_t digit, std::int64_t side, Rng draw) {
  Line line = digits_as_lines()[digit];
  const double slant = draw.uniform(-0.22, 0.22), wide = draw.uniform(0.72, 0.98), high = draw.uniform(0.76, 0.98);
  const double right = draw.uniform(-0.05, 0.05), down = draw.uniform(-0.05, 0.05), pen = draw.uniform(0.035, 0.065);
  for (Point& point : line) {
    const double x = point.x - 0.5 + draw.uniform(-0.035, 0.035), y = point.y - 0.5 + draw.uniform(-0.035, 0.035);
    point = {0.5 + right + wide * (x - slant * y), 0.5 + down + high * y};
  }
  const double pixel = 1.0 / static_cast<double>(side);
  std::vector<double> drawn;
  for (std::int64_t row = 0; row < side; ++row)
    for (std::int64_t column = 0; column < side; ++column) {
      const Point at{(static_cast<double>(column) + 0.5) * pixel, (static_cast<double>(row) + 0.5) * pixel};
      double nearest = 2.0;
      for (std::size_t i = 1; i < line.size(); ++i) nearest = std::min(nearest, distance(at, line[i - 1], line[i]));
      drawn.push_back(std::clamp(1.0 - (nearest - pen) / pixel, 0.0, 1.0));
    }
  return drawn;
}

void make(Sequence& sequence, const Hyper& parameters, const Rng& rng) {
  const std::int64_t side = parameters.integer("side");
  const std::string& order = parameters.choice("order");
  const std::int64_t digit = rng.split("digit").integer(10);
  const std::vector<double> drawn = pixels_of(static_cast<std::size_t>(digit), side, rng.split("pen"));
  std::vector<std::size_t> places(drawn.size());
  std::iota(places.begin(), places.end(), std::size_t{0});
  if (order == "permuted") {  // one permutation for all sequences of this size
    Rng draw = Rng(0).split("permutation");
    for (std::size_t i = places.size() - 1; i > 0; --i)
      std::swap(places[i], places[static_cast<std::size_t>(draw.integer(static_cast<std::int64_t>(i) + 1))]);
  }
  std::vector<std::string> names{"pixel"};
  if (order == "row") {
    names.clear();
    for (std::int64_t column = 0; column < side; ++column) names.push_back("column " + std::to_string(column));
  }
  set_width(sequence, names);
  for (std::size_t i = 0; i < places.size(); ++i) sequence.input[i] = drawn[places[i]];
  answer(sequence, static_cast<std::size_t>(sequence.length) - 1, digit, 10);
}

}  // namespace

Task digits() {
  return {
      .info =
          {.name = {},
           .title = "Sequential digits",
           .text =
               "A digit from 0 to 9, drawn by a pen that is never the same, is read pixel by pixel, row by row, or in one fixed order that "
               "scatters its pixels; the target, at the end, is which digit it was. What is seen first must be held until the last, and "
               "with permuted pixels what belongs together is far apart. Guessing among ten has a cross-entropy of log 10 = 2.30.",
           .default_length = 196,
           .source = "Le, Jaitly and Hinton 2015, A simple way to initialize recurrent networks of rectified linear units, there of MNIST; "
                     "the digits are drawn here",
           .parameters = {hyper_choice("order", "pixel", {"row", "pixel", "permuted"},
                                       "row: a row of pixels at each step; pixel: one pixel at each, row by row; permuted: one at each, in "
                                       "a fixed random order"),
                          hyper_integer("side", "n", 14, 7, 64,
                                        "How many pixels a side has; there are n rows, or n² single pixels, and blanks until the end")}},
      .least =
          [](const Hyper& parameters) {
            const std::int64_t side = parameters.integer("side");
            const bool rows = parameters.choice("order") == "row";
            return std::pair(rows ? side : side * side, rows ? std::to_string(side) + " rows" : std::to_string(side * side) + " pixels");
          },
      .make = make};
}

}  // namespace reclab::tasks_by_name
