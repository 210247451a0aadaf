// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>

namespace reclab {

/// The unit of the sequence's own time, and the length of a step in it.
struct StepTime {
  double spacing = 1.0;
  QString unit;  ///< "year", "s"; empty: a step is the unit
};

}  // namespace reclab
