// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <QString>

namespace reclab {

/// What a step is called, and how long it is in units of the sequence's own time.
struct StepTime {
  double spacing = 1.0;
  QString unit;  ///< "year", "s"; empty: a step is the unit
};

}  // namespace reclab
