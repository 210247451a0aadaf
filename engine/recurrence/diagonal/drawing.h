// SPDX-License-Identifier: GPL-3.0-or-later
// The evaluation order of diagonal recurrences.
#pragma once

#include "recurrence/plan.h"

namespace reclab::drawing {

/// s_t = a_t s_{t-1} + b_t, from the inputs a, b and the initial state: step by step,
void diagonal(Plan& plan, const Drawn& drawn);
/// all at once (array/order.h),
void tree(Plan& plan, const Drawn& drawn);
/// chunk by chunk (array/order.h).
void chunks(Plan& plan, const Drawn& drawn);

}  // namespace reclab::drawing
