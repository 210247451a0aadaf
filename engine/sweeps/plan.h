// SPDX-License-Identifier: GPL-3.0-or-later
// A sweep as a plan: a line of `reclab train` or `reclab run`, axes along which options of it vary, and the measures of each result. A
// point of the grid of all axes is a cell.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiment/command/typed_run.h"
#include "measures/expression.h"
#include "parameters/hyper.h"

namespace reclab {

struct SweepAxis {
  /// An option without its minuses, "seed"; an entry of one that takes KEY=VALUE, "set.width"; or "preset", which model it is.
  std::string name;
  std::vector<HyperValue> values;
  bool drawn = false;  ///< at random: all such axes go together, the i-th value of each in one cell
};

struct SweepPlan {
  std::string json;  ///< the text that it was read from
  TypedRun base;
  std::vector<SweepAxis> axes;
  std::vector<std::string> measures;  ///< names and expressions, measures/expression.h; of a training those of training_measures() too
  bool keeps_trainings = false;       ///< weights and history of each cell, as of an export

  std::int64_t cells() const;
  /// A value for each axis; the last axis goes fastest.
  std::vector<HyperValue> values(std::int64_t cell) const;
  /// The line of a cell. Throws Error for an option that there is not, and for a value that it does not take.
  TypedRun line(std::int64_t cell) const;
};

/// {"base": "reclab train lstm --steps 50", "axes": {"seed": [1, 2], "set.width": {"from": 4, "to": 64, "count": 5, "scale": "log"}},
/// "measure": ["loss"]}. An axis is a list; a range, from, to and count, linear where "scale" is not "log", of integers where "whole" is
/// true; or draws, where "random" says how many in place of count, "seed" (1) from which stream, and "of", a list, may take the range's
/// place. "keep": "training" keeps trainings. Throws Error with file, place and cure, for keys that are none too.
SweepPlan sweep_plan(std::string_view json, const std::string& file);

/// The value of a measure or an expression. Throws Error.
double value_of(const std::string& measure, const Measuring& measuring);
/// Measures that a training has by itself, with a sentence each: "loss" is of what is held out.
const std::vector<std::pair<std::string, std::string>>& training_measures();

}  // namespace reclab
