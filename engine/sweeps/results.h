// SPDX-License-Identifier: GPL-3.0-or-later
// Tables of results, read back: those that a sweep collects and other CSV files with a header line. And their summary: a measure by the
// values of some axes, with intervals over all that is left.
#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "evaluation/interval.h"
#include "parameters/field.h"
#include "sweeps/table.h"

namespace reclab {

/// A column by which rows are told apart.
struct ResultAxis {
  std::string name;
  std::vector<std::string> levels;   ///< its values as written: rising where all are numbers, else in the order in which they come
  std::vector<double> numbers;       ///< of each level where all are numbers; empty otherwise
  std::vector<std::uint32_t> level;  ///< of each row
};
struct ResultMeasure {
  std::string name;
  std::vector<double> values;  ///< of each row; NaN where there is none
};
struct ResultTable {
  std::string file;  ///< where it was read from
  std::vector<ResultAxis> axes;
  std::vector<ResultMeasure> measures;
  std::vector<CellState> states;   ///< of each row; done where the table has no column "status"
  std::vector<std::string> cells;  ///< the names of the cells; empty where the table has no column "cell"
  std::int64_t rows() const { return static_cast<std::int64_t>(states.size()); }
  /// Throws Error for a name that is none.
  const ResultAxis& axis(std::string_view name) const;
  const ResultMeasure& measure(std::string_view name) const;
};

/// The table of a CSV file (RFC 4180, a header line), or of the folder of a sweep as it stands. A folder's plan says which columns are
/// measures. In a file they are numbers: `measure`, where it is not empty, and all that stand behind it; else those from the first on whose
/// name is that of a measure of trainings or cannot be that of an option. The columns "cell", "status" and "seconds" are known by their
/// names where the first is there. With `guesses` a table of no
/// sweep, and without a measure of trainings, has the first column of numbers of which more than half are others, else the last one of
/// numbers. Throws Error with file and line.
ResultTable read_results(const std::filesystem::path& place, const std::string& measure = {}, bool guesses = false);

struct SummaryPlan {
  std::string measure{};                                    ///< empty: the first
  std::vector<std::string> by{};                            ///< axes; none: all but "seed"
  std::vector<std::pair<std::string, std::string>> only{};  ///< rows with these values of axes
  double confidence = 0.95;
  enum class Order : std::uint8_t { axes, rising, falling } order = Order::axes;  ///< by the values of the axes, or by the mean
};
/// In the order of the command line.
const std::vector<PlanField<SummaryPlan>>& summary_fields();

/// The rows with the same values of the axes of a summary.
struct ResultGroup {
  std::vector<std::uint32_t> levels;                     ///< one of each axis
  std::array<std::int64_t, cell_states.size()> count{};  ///< rows of each state
  std::int64_t values = 0;                               ///< rows that are done and have a finite value, over which the others go
  Estimate mean{};
  double least = std::numeric_limits<double>::quiet_NaN(), greatest = std::numeric_limits<double>::quiet_NaN();
  std::int64_t of(CellState state) const { return count[static_cast<std::size_t>(state)]; }
  std::int64_t rows() const;
};
struct ResultSummary {
  std::string measure;
  std::vector<std::string> by;
  double confidence = 0.95;
  std::vector<ResultGroup> groups;  ///< those without a value stand last where the order is that of the mean
};
/// Student's interval of the mean over the rows of each group (evaluation/interval.h); of a row alone that of the table, where it has
/// columns NAME_low and NAME_high beside the measure NAME. Throws Error for a name or a value that is none.
ResultSummary summary_of(const ResultTable& table, const SummaryPlan& plan);

/// As CSV: the axes, then rows, values, mean, low, high, least, greatest, diverged, failed, missing.
std::string summary_csv(const ResultTable& table, const ResultSummary& summary);

}  // namespace reclab
