// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "plot/parts/heatmap.h"

namespace reclab {

/// 10 to a power as a number; "0" or "not finite" where there is none.
QString powerText(double log10);

/// The logarithms that colours stand for, and the least that there is.
struct PowerColours {
  double low = 0.0, high = 0.0, least = 0.0;
};
/// Logarithms (base 10) [rows, units] as colours of one map for both signs, and the bar beside them with powers of ten: from the largest
/// down over so many decades, and in any case down to 1. −∞ and NaN have no colour.
PowerColours showPowers(Heatmap& heatmap, ColourBar& bar, const std::vector<double>& logarithms, std::int64_t units,
                        const std::vector<std::int64_t>& steps, double decades, const QString& label);
/// A sentence on the numbers that have the lowest colour because they lie below all of them; empty where there are none.
QString clippedText(const PowerColours& colours);

}  // namespace reclab
