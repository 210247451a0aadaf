// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "plot/heatmap.h"

namespace reclab {

/// Logarithms (base 10) [rows, units] as colours of one map whatever their sign, from the largest down over so many decades, and the bar beside them with
/// powers of ten: −∞ and NaN have no colour. Returns the range of the colours.
QCPRange showPowers(Heatmap& heatmap, ColourBar& bar, const std::vector<double>& logarithms, std::int64_t units, const std::vector<std::int64_t>& steps, double decades, const QString& label);

}  // namespace reclab
