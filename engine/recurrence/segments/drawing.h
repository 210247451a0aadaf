// SPDX-License-Identifier: GPL-3.0-or-later
// The evaluation order of a recurrence over segments.
#pragma once

#include "recurrence/plan.h"

namespace reclab::drawing {

/// Memory of one segment after another.
void segments(Plan& plan, const Drawn& drawn);
/// Reads of segments that do not wait for one another.
void contexts(Plan& plan, const Drawn& drawn);

}  // namespace reclab::drawing
