// SPDX-License-Identifier: GPL-3.0-or-later
#include "sweeps/results.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <set>
#include <system_error>
#include <unordered_map>

#include "array/error.h"
#include "files/files.h"
#include "measures/expression.h"
#include "parameters/nearest.h"
#include "trace/writers.h"

namespace reclab {
namespace {

namespace fs = std::filesystem;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();

/// The records of a CSV file, one after the other.
class CsvReader {
 public:
  CsvReader(std::string_view text, std::string file) : text_(text), file_(std::move(file)) {
    if (text_.starts_with("\xef\xbb\xbf")) at_ = 3;
  }

  /// False at the end. Lines without a character are passed over.
  bool next(std::vector<std::string>& fields) {
    while (at_ < text_.size() && (text_[at_] == '\n' || text_[at_] == '\r')) step();
    if (at_ == text_.size()) return false;
    begin_ = line_;
    fields.clear();
    for (;; step()) {
      fields.push_back(field());
      if (at_ == text_.size() || text_[at_] != ',') return true;
    }
  }
  std::string place() const { return "line " + std::to_string(begin_); }
  [[noreturn]] void mistake(const std::string& what) const {
    throw Error(file_ + ", " + place() + ": " + what, {.file = file_, .place = place()});
  }

 private:
  void step() { line_ += text_[at_++] == '\n'; }

  std::string field() {
    if (at_ == text_.size() || text_[at_] != '"') {
      const std::size_t from = at_;
      at_ = std::min(text_.find_first_of(",\r\n", from), text_.size());
      return std::string(text_.substr(from, at_ - from));
    }
    std::string made;
    for (step();; step()) {
      if (at_ == text_.size()) mistake("a quotation mark has no other one that ends the text; add it.");
      if (text_[at_] == '"') {
        step();
        if (at_ == text_.size() || text_[at_] != '"') break;
      }
      made += text_[at_];
    }
    if (at_ < text_.size() && text_[at_] != ',' && text_[at_] != '\n' && text_[at_] != '\r')
      mistake("there are characters behind a quotation mark that ends a text; put a comma between them, or double the mark.");
    return made;
  }

  std::string_view text_;
  std::string file_;
  std::size_t at_ = 0;
  std::int64_t line_ = 1, begin_ = 1;
};

/// The texts of a column: each is kept once.
struct Texts {
  std::string name;
  std::vector<std::string> levels;
  std::vector<std::uint32_t> level;
  std::unordered_map<std::string, std::uint32_t> known{};

  void add(const std::string& text) {
    const auto [found, is_new] = known.try_emplace(text, static_cast<std::uint32_t>(levels.size()));
    if (is_new) levels.push_back(text);
    level.push_back(found->second);
  }
  bool numbers() const {
    return std::ranges::all_of(levels, [](const std::string& text) { return text.empty() || number_in(text); });
  }
};

bool can_be_option(std::string_view name) {
  return !name.empty() && std::ranges::all_of(name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
  });
}

/// Whether a name is that of a measure of trainings. "steps" is an option too, and one wherever it stands among options.
bool of_training(const std::string& name) {
  return name != "steps" && std::ranges::any_of(training_measures(), [&](const auto& one) { return one.first == name; });
}

/// Whether a column of numbers is a measure by its name.
bool named_as_measure(const std::string& name) { return !can_be_option(name) || of_training(name); }

ResultAxis axis_of(Texts&& texts) {
  ResultAxis axis{std::move(texts.name), std::move(texts.levels), {}, std::move(texts.level)};
  for (const std::string& text : axis.levels)
    if (const auto value = number_in(text); value && !std::isnan(*value)) axis.numbers.push_back(*value);
  if (axis.numbers.size() != axis.levels.size()) axis.numbers.clear();
  if (axis.numbers.empty()) return axis;
  std::vector<std::uint32_t> order(axis.levels.size()), place(axis.levels.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, {}, [&](std::uint32_t i) { return axis.numbers[i]; });
  ResultAxis sorted{axis.name, {}, {}, std::move(axis.level)};
  for (std::uint32_t i = 0; i < order.size(); ++i) {
    place[order[i]] = i;
    sorted.levels.push_back(std::move(axis.levels[order[i]]));
    sorted.numbers.push_back(axis.numbers[order[i]]);
  }
  for (std::uint32_t& one : sorted.level) one = place[one];
  return sorted;
}

ResultMeasure measure_of(const Texts& texts) {
  std::vector<double> values;
  for (const std::string& text : texts.levels) values.push_back(number_in(text).value_or(nan));
  ResultMeasure made{texts.name, {}};
  made.values.reserve(texts.level.size());
  for (const std::uint32_t i : texts.level) made.values.push_back(values[i]);
  return made;
}

/// `axes`: how many of the columns between "cell" and "status" are, where that is known.
ResultTable table_of(std::string_view text, const std::string& file, std::optional<std::size_t> axes, std::string measure, bool guesses) {
  CsvReader reader(text, file);
  std::vector<std::string> fields;
  if (!reader.next(fields)) throw Error(file + " is empty; give a table with a header line.", {.file = file});
  std::vector<Texts> columns;
  std::set<std::string> names;
  for (std::string& name : fields) {
    if (!names.insert(name).second) reader.mistake("two columns have the name \"" + printable(name) + "\"; give one of them another name.");
    columns.push_back({std::move(name), {}, {}});
  }
  if (!measure.empty() && !names.contains(measure))
    throw Error(file + " has no column \"" + printable(measure) + "\"; choose one of " +
                    nearest_names(measure, {names.begin(), names.end()}, 8) + ".",
                {.file = file, .value = measure});
  while (reader.next(fields)) {
    if (fields.size() != columns.size())
      reader.mistake("the row has " + std::to_string(fields.size()) + " columns, and the header line " + std::to_string(columns.size()) +
                     "; make them the same.");
    for (std::size_t i = 0; i < fields.size(); ++i) columns[i].add(fields[i]);
  }
  ResultTable table{file, {}, {}, {}, {}};
  const std::size_t rows = columns.front().level.size();
  if (rows == 0) throw Error(file + " has a header line and no row; give a table with rows.", {.file = file});
  const bool of_sweep = names.contains("cell");
  table.states.assign(rows, CellState::done);
  const auto takes = [&](const char* name) {
    const auto found = of_sweep ? std::ranges::find(columns, name, &Texts::name) : columns.end();
    std::optional<Texts> taken;
    if (found == columns.end()) return taken;
    taken = std::move(*found);
    columns.erase(found);
    return taken;
  };
  if (const auto cells = takes("cell"))
    for (const std::uint32_t i : cells->level) table.cells.push_back(cells->levels[i]);
  if (const auto status = takes("status")) {
    std::vector<CellState> states;
    for (const std::string& one : status->levels) {
      const auto found = std::ranges::find(cell_states, one);
      if (found == cell_states.end())
        throw Error(file + ": \"" + printable(one) + "\" in the column status is none of " +
                        listed({cell_states.begin(), cell_states.end()}, "and") + "; correct it.",
                    {.file = file, .value = one});
      states.push_back(static_cast<CellState>(found - cell_states.begin()));
    }
    for (std::size_t i = 0; i < rows; ++i) table.states[i] = states[status->level[i]];
  }
  const auto seconds = takes("seconds");
  if (guesses && !of_sweep && measure.empty() &&
      std::ranges::none_of(columns, [](const Texts& column) { return column.numbers() && of_training(column.name); })) {
    const auto varies = [&](const Texts& column) { return column.numbers() && 2 * column.levels.size() > rows; };
    const auto first = std::ranges::find_if(columns, varies);
    const auto last = std::ranges::find_if(columns.rbegin(), columns.rend(), &Texts::numbers);
    if (first != columns.end() && rows > 2)
      measure = first->name;
    else if (last != columns.rend())
      measure = last->name;
  }
  bool measures = false;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    Texts& column = columns[i];
    const bool numbers = column.numbers();
    if (column.name == measure && !numbers)
      throw Error(file + ": the column \"" + printable(measure) + "\" has other texts than numbers; choose another measure.",
                  {.file = file, .value = measure});
    measures = measures || (axes ? i >= *axes : numbers && (measure.empty() ? named_as_measure(column.name) : column.name == measure));
    if (measures && numbers)
      table.measures.push_back(measure_of(column));
    else
      table.axes.push_back(axis_of(std::move(column)));
  }
  if (seconds && seconds->numbers()) table.measures.push_back(measure_of(*seconds));
  if (table.measures.empty())
    throw Error(file + " has no column that is known as a measure; name one of its columns of numbers as the measure.", {.file = file});
  return table;
}

template <class Column>
const Column& found_in(const std::vector<Column>& columns, std::string_view name, const std::string& file, const std::string& kind) {
  if (const auto found = std::ranges::find(columns, name, &Column::name); found != columns.end()) return *found;
  std::vector<std::string> names;
  for (const Column& one : columns) names.push_back(printable(one.name));
  throw Error(file + " has no " + kind + " \"" + printable(name) + "\"; " +
                  (names.empty() ? "it has none." : "choose one of " + nearest_names(name, names, 8) + "."),
              {.file = file, .value = std::string(name)});
}

}  // namespace

const ResultAxis& ResultTable::axis(std::string_view name) const { return found_in(axes, name, file, "axis"); }
const ResultMeasure& ResultTable::measure(std::string_view name) const { return found_in(measures, name, file, "measure"); }

std::int64_t ResultGroup::rows() const { return std::accumulate(count.begin(), count.end(), std::int64_t{0}); }

ResultTable read_results(const fs::path& place, const std::string& measure, bool guesses) {
  std::error_code none;
  if (!fs::is_directory(place, none)) return table_of(read_file(place), place.string(), std::nullopt, measure, guesses);
  const SweepFolder folder(place);
  std::string text;
  collect({folder}, [&](std::string_view piece) { text += piece; });
  return table_of(text, place.string(), folder.plan().axes.size(), {}, false);
}

ResultSummary summary_of(const ResultTable& table, const SummaryPlan& plan) {
  const ResultMeasure& measure = plan.measure.empty() ? table.measures.at(0) : table.measure(plan.measure);
  ResultSummary summary{measure.name, plan.by, plan.confidence, {}};
  const auto end_of = [&](const char* which) -> const ResultMeasure* {
    const auto found = std::ranges::find(table.measures, measure.name + which, &ResultMeasure::name);
    return found == table.measures.end() ? nullptr : &*found;
  };
  const ResultMeasure *low = end_of("_low"), *high = end_of("_high");
  if (plan.by.empty())
    for (const ResultAxis& axis : table.axes)
      if (axis.name != "seed") summary.by.push_back(axis.name);
  std::vector<const ResultAxis*> by;
  for (const std::string& name : summary.by) by.push_back(&table.axis(name));
  std::vector<std::pair<const ResultAxis*, std::uint32_t>> only;
  for (const auto& [name, text] : plan.only) {
    const ResultAxis& axis = table.axis(name);
    auto found = std::ranges::find(axis.levels, text);
    if (const auto number = number_in(text); found == axis.levels.end() && number && !axis.numbers.empty())
      found = axis.levels.begin() + (std::ranges::find(axis.numbers, *number) - axis.numbers.begin());
    if (found == axis.levels.end())
      throw Error("\"" + printable(text) + "\" is no value of the axis \"" + printable(name) + "\" in " + table.file + "; choose one of " +
                      nearest_names(text, axis.levels, 8) + ".",
                  {.file = table.file, .parameter = name, .value = text});
    only.emplace_back(&axis, static_cast<std::uint32_t>(found - axis.levels.begin()));
  }

  // Rows of one group side by side, in their order.
  std::vector<std::size_t> rows;
  for (std::size_t row = 0; row < table.states.size(); ++row)
    if (std::ranges::all_of(only, [&](const auto& one) { return one.first->level[row] == one.second; })) rows.push_back(row);
  const auto compare = [&](std::size_t a, std::size_t b) {
    for (const ResultAxis* axis : by)
      if (axis->level[a] != axis->level[b]) return axis->level[a] < axis->level[b];
    return false;
  };
  std::ranges::stable_sort(rows, compare);
  for (std::size_t i = 0; i < rows.size();) {
    ResultGroup& group = summary.groups.emplace_back();
    for (const ResultAxis* axis : by) group.levels.push_back(axis->level[rows[i]]);
    SequenceMean mean;
    std::size_t last = 0;
    for (const std::size_t first = rows[i]; i < rows.size() && !compare(first, rows[i]); ++i) {
      const double value = measure.values[rows[i]];
      ++group.count[static_cast<std::size_t>(table.states[rows[i]])];
      if (table.states[rows[i]] != CellState::done || !std::isfinite(value)) continue;
      ++group.values;
      last = rows[i];
      mean.add(value);
      group.least = std::fmin(group.least, value);
      group.greatest = std::fmax(group.greatest, value);
    }
    group.mean = mean.estimate(plan.confidence);
    if (group.values != 1 || !low || !high) continue;
    group.mean.low = low->values[last];
    group.mean.high = high->values[last];
  }
  if (plan.order != SummaryPlan::Order::axes)
    std::ranges::stable_sort(summary.groups, [&](const ResultGroup& a, const ResultGroup& b) {
      if (a.values == 0 || b.values == 0) return a.values > 0 && b.values == 0;
      return plan.order == SummaryPlan::Order::rising ? a.mean.mean < b.mean.mean : a.mean.mean > b.mean.mean;
    });
  return summary;
}

std::string summary_csv(const ResultTable& table, const ResultSummary& summary) {
  std::string text;
  for (const std::string& name : summary.by) text += csv_cell(name) + ",";
  text += "rows,values,mean,low,high,least,greatest,diverged,failed,missing\n";
  std::vector<const ResultAxis*> by;
  for (const std::string& name : summary.by) by.push_back(&table.axis(name));
  for (const ResultGroup& group : summary.groups) {
    for (std::size_t i = 0; i < by.size(); ++i) text += csv_cell(by[i]->levels[group.levels[i]]) + ",";
    text += std::to_string(group.rows()) + "," + std::to_string(group.values);
    for (const double value : {group.mean.mean, group.mean.low, group.mean.high, group.least, group.greatest})
      text += "," + (std::isnan(value) ? std::string() : as_text(HyperValue(value)));
    const std::int64_t missing = group.of(CellState::running) + group.of(CellState::interrupted) + group.of(CellState::waiting);
    text += "," + std::to_string(group.of(CellState::diverged)) + "," + std::to_string(group.of(CellState::failed)) + "," +
            std::to_string(missing) + "\n";
  }
  return text;
}

}  // namespace reclab
