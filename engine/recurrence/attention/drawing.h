// SPDX-License-Identifier: GPL-3.0-or-later
// The evaluation order of attention.
#pragma once

#include "recurrence/plan.h"

namespace reclab::drawing {

/// Attention in which each step reads all earlier ones: inputs q, k, v. All steps at once,
void pairs(Plan& plan, const Drawn& drawn);
/// or one step after another.
void rows(Plan& plan, const Drawn& drawn);

}  // namespace reclab::drawing
