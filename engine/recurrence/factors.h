// SPDX-License-Identifier: GPL-3.0-or-later
// What memories with a diagonal transition share.
#pragma once

#include "recurrence/memory.h"

namespace reclab {

/// Entries from `offset` on of an array on the device, whatever its type.
void read_factors(Backend& backend, DType type, const void* from, std::int64_t offset, std::span<std::complex<double>> factors);

}  // namespace reclab
