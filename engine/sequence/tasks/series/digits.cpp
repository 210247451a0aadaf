// SPDX-License-Identifier: GPL-3.0-or-later
#include <numeric>

#include "sequence/pen.h"
#include "sequence/task.h"

namespace reclab::tasks_by_name {

namespace {

/// Row by row.
std::vector<double> pixels_of(std::size_t digit, std::int64_t side, const Rng& draw) {
  const PenDigit pen(digit, draw);
  const double pixel = 1.0 / static_cast<double>(side);
  std::vector<double> drawn;
  for (std::int64_t row = 0; row < side; ++row)
    for (std::int64_t column = 0; column < side; ++column)
      drawn.push_back(pen.at((static_cast<double>(column) + 0.5) * pixel, (static_cast<double>(row) + 0.5) * pixel, pixel));
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
