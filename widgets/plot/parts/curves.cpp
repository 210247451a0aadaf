// SPDX-License-Identifier: GPL-3.0-or-later
#include "plot/parts/curves.h"

namespace reclab {

void fillCurve(QCPGraph* graph, const Trace& trace, const TraceArray& array, std::int64_t column, std::int64_t later) {
  const std::vector<std::int64_t>& steps = stepsOf(trace, array);
  const std::int64_t rows = array.shape.empty() ? 0 : std::min<std::int64_t>(std::ssize(steps), array.shape[0]);
  fillCurve(
      graph, [&](std::int64_t row) { return steps[static_cast<std::size_t>(row)] + later; }, rows,
      [&](std::int64_t row) { return entryOf(array, row, column); });
}

std::optional<QCPRange> spanOf(const QCPAxisRect* rect, const std::optional<QCPRange>& keys) {
  std::optional<QCPRange> all;
  for (const QCPGraph* graph : rect->graphs()) {
    bool found = false;
    if (!graph->realVisibility()) continue;
    const QCPRange range = keys ? graph->getValueRange(found, QCP::sdBoth, *keys) : graph->getValueRange(found);
    if (found && std::isfinite(range.lower) && std::isfinite(range.upper)) all = all ? all->expanded(range) : range;
  }
  return all;
}

bool expandTo(QCPRange& range, const QCPGraph* graph) {
  bool found = false;
  const QCPRange its = graph->getValueRange(found);
  if (found) range = {std::min(range.lower, its.lower), std::max(range.upper, its.upper)};
  return found;
}

void expandTo(std::optional<QCPRange>& range, double value) {
  if (!std::isfinite(value)) return;
  if (range)
    range->expand(value);
  else
    range = QCPRange(value, value);
}

QCPRange padded(const QCPRange& range, double part, double least) {
  const double pad = std::max(part * range.size(), least);
  return {range.lower - pad, range.upper + pad};
}

QCPRange widened(const QCPRange& range, double part) {
  return padded(range, part, range.size() > 0.0 ? 0.0 : std::max(1e-3, part * std::abs(range.upper)));
}

}  // namespace reclab
