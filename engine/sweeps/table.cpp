// SPDX-License-Identifier: GPL-3.0-or-later
#include "sweeps/table.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <type_traits>
#include <utility>
#include <variant>

#include "array/error.h"
#include "files/files.h"
#include "files/npz.h"
#include "sweeps/lock.h"
#include "trace/writers.h"

namespace reclab {
namespace {

namespace fs = std::filesystem;

/// How a cell without a result stands.
CellState state_of(const SweepFolder& folder, const SweepCell& cell) {
  std::error_code none;
  if (CellLock::is_taken(folder.lock(cell))) return CellState::running;
  if (fs::exists(folder.failure(cell), none)) return CellState::failed;
  return fs::exists(folder.work(cell), none) ? CellState::interrupted : CellState::waiting;
}

std::string sentence_in(const fs::path& file) try {
  const auto json = nlohmann::json::parse(read_file(file), nullptr, false);
  return json.is_object() ? printable(json.value("sentence", std::string())) : std::string();
} catch (const std::exception&) {
  return {};
}

struct Row {
  SweepCell cell;
  std::vector<std::optional<HyperValue>> axes;
  std::vector<std::optional<double>> measures;
  CellState state = CellState::waiting;
  double seconds = std::numeric_limits<double>::quiet_NaN();
};

struct TableColumns {
  std::vector<std::string> axes, measures;
  /// An axis may have the name of a measure: both are columns.
  std::string title(const std::string& measure) const {
    return std::ranges::find(axes, measure) == axes.end() ? measure : "measure " + measure;
  }
};

TableColumns columns_of(const std::vector<SweepFolder>& folders) {
  TableColumns columns;
  const auto add = [](std::vector<std::string>& names, const std::string& name) {
    if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  };
  for (const SweepFolder& folder : folders) {
    for (const SweepAxis& axis : folder.plan().axes) add(columns.axes, axis.name);
    for (const std::string& measure : folder.plan().measures) add(columns.measures, measure);
  }
  return columns;
}

template <class Each>
void each_row(const std::vector<SweepFolder>& folders, const TableColumns& columns, const Each& each) {
  for (const SweepFolder& folder : folders) {
    CellReader reader(folder);
    while (auto cell = reader.next()) {
      Row row;
      row.axes.resize(columns.axes.size());
      row.measures.resize(columns.measures.size());
      std::vector<HyperValue> values = folder.plan().values(cell->index);
      for (std::size_t i = 0; i < values.size(); ++i)
        row.axes[static_cast<std::size_t>(std::ranges::find(columns.axes, folder.plan().axes[i].name) - columns.axes.begin())] =
            std::move(values[i]);
      if (const auto result = folder.result(*cell)) {
        row.state = result->diverged ? CellState::diverged : CellState::done;
        row.seconds = result->seconds;
        for (std::size_t i = 0; i < columns.measures.size(); ++i)
          if (const auto found = result->measures.find(columns.measures[i]); found != result->measures.end())
            row.measures[i] = found->second;
      } else {
        row.state = state_of(folder, *cell);
      }
      row.cell = std::move(*cell);
      each(row);
    }
  }
}

/// Integers where all are, numbers where all are, texts otherwise.
void add_axis(NpzWriter& writer, const std::string& name, const std::vector<HyperValue>& values) {
  const Shape shape{static_cast<std::int64_t>(values.size())};
  const auto is_one = [](const HyperValue& value) { return std::holds_alternative<std::int64_t>(value); };
  const auto is_text = [](const HyperValue& value) { return std::holds_alternative<std::string>(value); };
  if (std::ranges::all_of(values, is_one)) {
    std::vector<std::int64_t> integers;
    for (const HyperValue& value : values) integers.push_back(std::get<std::int64_t>(value));
    writer.add(name, shape, integers);
  } else if (std::ranges::any_of(values, is_text)) {
    std::vector<std::string> texts;
    for (const HyperValue& value : values) texts.push_back(as_text(value));
    writer.add(name, texts);
  } else {
    std::vector<double> numbers;
    for (const HyperValue& value : values)
      numbers.push_back(std::visit(
          [](const auto& one) {
            if constexpr (std::is_arithmetic_v<std::decay_t<decltype(one)>>)
              return static_cast<double>(one);
            else
              return 0.0;
          },
          value));
    writer.add(name, shape, numbers);
  }
}

void write_npz(const std::vector<SweepFolder>& folders, const fs::path& file) {
  const TableColumns columns = columns_of(folders);
  std::vector<std::vector<HyperValue>> axes(columns.axes.size());
  std::vector<std::vector<double>> measures(columns.measures.size());
  std::vector<std::string> cells, states;
  std::vector<double> seconds;
  each_row(folders, columns, [&](const Row& row) {
    for (std::size_t i = 0; i < axes.size(); ++i) axes[i].push_back(row.axes[i].value_or(std::numeric_limits<double>::quiet_NaN()));
    for (std::size_t i = 0; i < measures.size(); ++i)
      measures[i].push_back(row.measures[i].value_or(std::numeric_limits<double>::quiet_NaN()));
    cells.push_back(row.cell.name);
    states.emplace_back(cell_states[static_cast<std::size_t>(row.state)]);
    seconds.push_back(row.seconds);
  });
  const Shape shape{static_cast<std::int64_t>(cells.size())};
  AtomicFile whole(file);
  NpzWriter writer(whole);
  writer.add("cell", cells);
  for (std::size_t i = 0; i < axes.size(); ++i) add_axis(writer, columns.axes[i], axes[i]);
  for (std::size_t i = 0; i < measures.size(); ++i) writer.add(columns.title(columns.measures[i]), shape, measures[i]);
  writer.add("status", states);
  writer.add("seconds", shape, seconds);
  writer.finish();
  whole.commit();
}

}  // namespace

SweepStatus status_of(const SweepFolder& folder) {
  constexpr std::size_t most_failures = 10;
  SweepStatus status;
  CellReader reader(folder);
  while (const auto cell = reader.next()) {
    const auto result = folder.result(*cell);
    const CellState state = !result ? state_of(folder, *cell) : result->diverged ? CellState::diverged : CellState::done;
    ++status.count[static_cast<std::size_t>(state)];
    if (result) status.seconds += result->seconds;
    if (state == CellState::failed && status.failures.size() < most_failures)
      status.failures.emplace_back(cell->index, sentence_in(folder.failure(*cell)));
  }
  return status;
}

void collect(const std::vector<SweepFolder>& folders, const std::function<void(std::string_view)>& write) {
  const TableColumns columns = columns_of(folders);
  std::string line = "cell";
  for (const std::string& name : columns.axes) line += "," + csv_cell(name);
  for (const std::string& name : columns.measures) line += "," + csv_cell(columns.title(name));
  write(line + ",status,seconds\n");
  each_row(folders, columns, [&](const Row& row) {
    line = row.cell.name;
    for (const auto& value : row.axes) line += "," + (value ? csv_cell(as_text(*value)) : std::string());
    for (const auto& value : row.measures) line += "," + (value ? as_text(*value) : std::string());
    line += "," + std::string(cell_states[static_cast<std::size_t>(row.state)]) + ",";
    if (!std::isnan(row.seconds)) line += as_text(row.seconds);
    write(line + "\n");
  });
}

void collect(const std::vector<SweepFolder>& folders, const fs::path& file) {
  const std::string ending = file.extension().string();
  if (ending == ".npz") return write_npz(folders, file);
  if (ending != ".csv")
    throw Error(file.string() + " has no ending of a table; give a name that ends in .csv or .npz.", {.file = file.string()});
  AtomicFile whole(file);
  collect(folders, [&](std::string_view text) { whole.write(text); });
  whole.commit();
}

}  // namespace reclab
