// SPDX-License-Identifier: GPL-3.0-or-later
#include "panels/sensitivity/sensitivity_data.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "plot/parts/curves.h"
#include "plot/parts/heatmap.h"

namespace reclab {

constexpr double a_hundredth = 2.0;  // decades

QString mixingMemory(const Trace& trace, const QString& wanted) {
  QString found;
  for (const TraceArray* array : trace.of(Kind::mixing)) {
    const QString name = QString::fromStdString(array->key).section(u'/', 1);
    if (name == wanted) return name;
    if (found.isEmpty() || found.section(u'/', 0, 0) == name.section(u'/', 0, 0)) found = name;
  }
  return found;
}

const TraceArray* mixingUnnormalised(const Trace& trace, const QString& memory) {
  return trace.find(prefix_of(Kind::mixing_unnormalised) + memory.toStdString());
}

SensitivityBlocks sensitivityBlocks(const Trace& trace, const SensitivityChoice& choice) {
  SensitivityBlocks blocks;
  const QString memory = mixingMemory(trace, choice.memory);
  const TraceArray* array =
      choice.mixing ? trace.find(prefix_of(Kind::mixing) + memory.toStdString()) : trace.find(key_of(Kind::sensitivity));
  if (const TraceArray* plain = mixingUnnormalised(trace, memory); choice.mixing && plain && !choice.normalised) array = plain;
  const std::size_t dimensions = choice.mixing ? 3 : 2;
  if (!array || array->shape.size() != dimensions || array->size() == 0 || array->axes.size() != dimensions ||
      std::ssize(array->axes[1].labels) != array->shape[1])
    return blocks;
  if (!choice.mixing && !array->real) return blocks;
  blocks.array = array;
  blocks.rows = stepsOf(trace, *array);
  for (const std::string& label : array->axes[1].labels) blocks.columns.push_back(QString::fromStdString(label).toLongLong());
  if (!choice.mixing) {
    auto values = std::make_shared<std::vector<double>>(*array->real);
    for (double& x : *values) x = std::isnan(x) ? x : std::pow(10.0, x);
    blocks.values = std::move(values);
    blocks.logarithms = array->real;
    return blocks;
  }
  const std::int64_t groups = array->shape[2], group = std::clamp(choice.group, std::int64_t{0}, groups - 1);
  const auto all = realValues(*array);
  auto values = std::make_shared<std::vector<double>>(), logarithms = std::make_shared<std::vector<double>>();
  for (std::size_t i = static_cast<std::size_t>(group); i < all->size(); i += static_cast<std::size_t>(groups)) {
    values->push_back((*all)[i]);
    logarithms->push_back(std::log10(std::abs((*all)[i])));
  }
  blocks.values = std::move(values);
  blocks.logarithms = std::move(logarithms);
  return blocks;
}

std::int64_t SensitivityBlocks::columnNear(std::int64_t step) const {
  const auto after = std::ranges::lower_bound(columns, step);
  if (after == columns.end()) return std::ssize(columns) - 1;
  const std::int64_t column = after - columns.begin();
  return column > 0 && step - *(after - 1) < *after - step ? column - 1 : column;
}

SensitivityBlocks::Reach SensitivityBlocks::reachOf(std::int64_t row) const {
  Reach reach;
  const std::int64_t t = rows[static_cast<std::size_t>(row)];
  double largest = -std::numeric_limits<double>::infinity();
  for (std::int64_t column = 0; column < std::ssize(columns); ++column)
    if (const double x = at(row, column); std::isfinite(x) && x > largest)
      largest = x, reach.strongest = columns[static_cast<std::size_t>(column)];
  reach.largest = largest;
  for (std::int64_t column = 0; column < std::ssize(columns); ++column) {
    const std::int64_t s = columns[static_cast<std::size_t>(column)];
    if (at(row, column) < largest - a_hundredth || std::isnan(at(row, column))) continue;
    reach.back = std::max(reach.back, t - s);
    reach.ahead = std::max(reach.ahead, s - t);
  }
  return reach;
}

}  // namespace reclab
