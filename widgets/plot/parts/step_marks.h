// SPDX-License-Identifier: GPL-3.0-or-later
// Marks at steps of a sequence, as where a stream drifts: dashed lines in every time axis, with a name as a tooltip.
#pragma once

#include <QColor>
#include <QPen>
#include <QString>
#include <cstdint>
#include <vector>

class QPointF;
class QWidget;

namespace reclab {

class Plot;

struct StepMark {
  std::int64_t step = 0;  ///< of the sequence, from 0
  QString text;           ///< what begins there
  bool operator==(const StepMark&) const = default;
};

/// Sets the marks of every plot inside the widget.
void setStepMarks(QWidget* within, const std::vector<StepMark>& marks);
/// Those of a plot.
std::vector<StepMark> stepMarksOf(const Plot* plot);
/// The text of the mark under a position; empty where there is none.
QString stepMarkAt(const Plot* plot, const QPointF& position);
/// The pen of such a line in an ink.
QPen stepMarkPen(QColor ink);
constexpr double stepMarkReach = 4.0;  ///< pixels beside a line that are its

}  // namespace reclab
