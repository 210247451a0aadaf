// SPDX-License-Identifier: GPL-3.0-or-later
// The evaluation order of matrix memories.
#pragma once

#include "recurrence/plan.h"

namespace reclab::drawing {

/// A matrix memory: scores within a chunk, the memory from chunk to chunk; inputs q, k, v and perhaps the logarithms of
/// decays by key, or by key and value.
void blocks(Plan& plan, const Drawn& drawn);

}  // namespace reclab::drawing
