// SPDX-License-Identifier: GPL-3.0-or-later
// The evaluation order of the delta rule.
#pragma once

#include "recurrence/plan.h"

namespace reclab::drawing {

/// A matrix memory whose steps in a chunk write over each other; inputs q, k, v and, where there are, beta, recall and log_decay [steps,
/// ...].
void rewrites(Plan& plan, const Drawn& drawn);
/// The same, read before each step writes.
void rewrites_read_before(Plan& plan, const Drawn& drawn);

}  // namespace reclab::drawing
