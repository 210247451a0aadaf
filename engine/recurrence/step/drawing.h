// SPDX-License-Identifier: GPL-3.0-or-later
// The evaluation order of the Newton forms of a stepped recurrence.
#pragma once

#include "recurrence/plan.h"

namespace reclab::drawing {

/// A Newton form.
void iterations(Plan& plan, const Drawn& drawn);

}  // namespace reclab::drawing
