// SPDX-License-Identifier: GPL-3.0-or-later
// Marks at steps of a sequence, as where a stream drifts: dashed lines in every time axis, with a name as a tooltip.
#pragma once

#include <QColor>
#include <QPen>
#include <QString>
#include <vector>

#include "plot/parts/step_mark.h"

class QPointF;
class QWidget;

namespace reclab {

class Plot;

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
