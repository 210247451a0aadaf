// SPDX-License-Identifier: GPL-3.0-or-later
// The numbers by which runs are compared at a glance: pure functions of a trace.
#pragma once

#include <QString>
#include <vector>

#include "trace/trace.h"

namespace reclab {

struct RunNumber {
  QString words, tip;
  double value;  ///< NaN where the run has none
};

/// Always the same rows, in the same order: value of the loss, number of weights, largest |λ|, log10 of |dL/ds| at the first over that at
/// the last step, largest Lyapunov exponent, seconds of the run. A null trace has no numbers.
std::vector<RunNumber> numbersOf(const Trace* trace);

}  // namespace reclab
