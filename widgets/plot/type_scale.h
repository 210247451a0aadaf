// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

class QCustomPlot;

namespace reclab {

/// The size of type and lines next to that for reading at a desk, 1; larger for a room. Themes are derived anew after it was set.
double typeScale();
void setTypeScale(double scale);

/// Makes the lines and marks of a plot as much wider; those that were already stay as they are.
void scaleLines(QCustomPlot* plot);

}  // namespace reclab
