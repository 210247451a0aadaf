// SPDX-License-Identifier: GPL-3.0-or-later
// Linear recurrences run by powers of their matrices, without their steps.
#pragma once

#include <utility>

#include "recurrence/memory.h"

namespace reclab {

/// The same matrices, and a memory that knows the transition of a recurrence with them: `copies` in all share them.
std::pair<Memory*, Var> dense_witness(Var A, std::int64_t copies);

/// Powers of matrices applied: columns X, AX, ..., A^(m-1) X side by side, m a power of two, and A^m.
struct Krylov {
  Var columns, power;
};
Krylov krylov(Var A, Var X, std::int64_t m);

std::int64_t power_of_two_from(std::int64_t least);

}  // namespace reclab
