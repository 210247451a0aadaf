// SPDX-License-Identifier: GPL-3.0-or-later
// Which picture of a table of results: a value. No widget.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "sweeps/results.h"

namespace reclab {

using ResultTablePtr = std::shared_ptr<const ResultTable>;

/// A map over two axes, curves with bands, a ranking with intervals, one measure against another, and parallel coordinates.
enum class ResultView : std::uint8_t { map, curves, ranking, points, parallel };

struct ResultChoice {
  ResultView view = ResultView::map;
  std::string measure, against;  ///< against: the measure at the bottom of points
  /// Names of axes, empty for none: the bottom axis; the upright one of a map, a curve or colour each; a picture each.
  std::string across, upright, apart;
  std::vector<std::pair<std::string, std::string>> only{};  ///< rows with these values of axes
  double confidence = 0.95;
  bool falling = false;      ///< a ranking begins with the greatest mean
  bool logarithmic = false;  ///< the measure is drawn on a logarithmic axis
  bool operator==(const ResultChoice&) const = default;
};

/// The axes with two values at least, in the order of the table. Only they tell rows apart.
std::vector<std::string> varied_axes(const ResultTable& table);
/// Whether the values of an axis are numbers that curves may go over.
bool is_scale(const ResultAxis& axis);

/// The first choice for a table: a map over the two axes with the most values that are no seeds, or curves where there is one.
ResultChoice usual_choice(const ResultTable& table);
/// The choice with what there is not in a table taken out, and no axis in two places.
ResultChoice fitted(ResultChoice choice, const ResultTable& table);

/// The summary that the picture is drawn from; of parallel coordinates, over all axes.
SummaryPlan plan_of(const ResultChoice& choice, const ResultTable& table);
/// The line of `reclab sweep summary` with the numbers of the picture.
std::string command_of(const ResultChoice& choice, const ResultTable& table);

/// The rows of the table that are of a plan and have these levels of the summary's axes.
std::vector<std::int64_t> rows_of(const ResultTable& table, const SummaryPlan& plan, const std::vector<std::string>& by,
                                  const std::vector<std::uint32_t>& levels);
/// "set.width = 8, seed = 3": a row by its values of the varied axes.
std::string words_of_row(const ResultTable& table, std::int64_t row);

}  // namespace reclab
