// SPDX-License-Identifier: GPL-3.0-or-later
// The evaluation order of dense linear recurrences.
#pragma once

#include "recurrence/plan.h"

namespace reclab::drawing {

/// s_t = A_t s_{t-1} + b_t in chunks that are run twice; inputs A^T, b and the initial state.
void matrices(Plan& plan, const Drawn& drawn);

}  // namespace reclab::drawing
