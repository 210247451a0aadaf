// SPDX-License-Identifier: GPL-3.0-or-later
// The evaluation order of attention.
#pragma once

#include "recurrence/plan.h"

namespace reclab::drawing {

/// Each step reads all that came before: inputs q, k, v. All at once,
void pairs(Plan& plan, const Drawn& drawn);
/// or one step after another.
void rows(Plan& plan, const Drawn& drawn);

}  // namespace reclab::drawing
