// SPDX-License-Identifier: GPL-3.0-or-later
#include "plot/parts/table.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>

#include "plot/parts/curves.h"

namespace reclab {

QString csvCell(const QString& text) {
  if (!text.contains(u',') && !text.contains(u'"') && !text.contains(u'\n')) return text;
  return u'"' + QString(text).replace(u'"', QStringLiteral("\"\"")) + u'"';
}

QByteArray csvNumber(double value) {
  if (std::isnan(value)) return {};
  if (std::isinf(value)) return value > 0 ? QByteArray("inf") : QByteArray("-inf");
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  return QByteArray(text, end - text);
}

StepTable::StepTable(const Trace& times, bool named) : times_(times), time_(QStringLiteral("time")) {
  if (named) time_ = times.time_name == "step" ? QString() : QString::fromStdString(times.time_name);
}

void StepTable::addSteps(const std::vector<std::int64_t>& steps) {
  std::vector<std::int64_t> both;
  std::ranges::set_union(lines_, steps, std::back_inserter(both));
  lines_ = std::move(both);
}

void StepTable::add(const QString& name, const std::vector<std::int64_t>& steps, std::function<QByteArray(std::int64_t)> cell) {
  columns_.push_back({name, &steps, std::move(cell)});
}

void StepTable::add(const QString& name, const Trace& trace, const TraceArray* array, std::int64_t column) {
  if (array == nullptr || column >= array->row_size()) return;
  add(name, stepsOf(trace, *array),
      [array, column](std::int64_t row) { return row < array->shape[0] ? csvNumber(entryOf(*array, row, column)) : QByteArray(); });
}

QString StepTable::csv() const {
  QByteArray text = "step";
  if (!time_.isEmpty()) text += ',' + csvCell(time_).toUtf8();
  for (const Column& column : columns_) text += ',' + csvCell(column.name).toUtf8();
  text += '\n';
  std::vector<std::size_t> at(columns_.size(), 0);
  for (const std::int64_t step : lines_) {
    const std::int64_t row = times_.row_of_step(step);
    const bool timed = row >= 0 && row < std::ssize(times_.time) && times_.steps[static_cast<std::size_t>(row)] == step;
    text += csvNumber(step);
    if (!time_.isEmpty()) text += ',' + (timed ? csvNumber(times_.time[static_cast<std::size_t>(row)]) : QByteArray());
    for (std::size_t i = 0; i < columns_.size(); ++i) {
      const std::vector<std::int64_t>& steps = *columns_[i].steps;
      while (at[i] < steps.size() && steps[at[i]] < step) ++at[i];
      text += ',';
      if (at[i] < steps.size() && steps[at[i]] == step) text += columns_[i].cell(static_cast<std::int64_t>(at[i]));
    }
    text += '\n';
  }
  return QString::fromUtf8(text);
}

}  // namespace reclab
