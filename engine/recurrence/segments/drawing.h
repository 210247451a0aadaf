// SPDX-License-Identifier: GPL-3.0-or-later
// How a recurrence over segments goes over time.
#pragma once

#include "recurrence/plan.h"

namespace reclab::drawing {

/// Memory of one segment after another.
void segments(Plan& plan, const Drawn& drawn);
/// Of segments that do not wait for one another.
void contexts(Plan& plan, const Drawn& drawn);

}  // namespace reclab::drawing
