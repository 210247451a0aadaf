// SPDX-License-Identifier: GPL-3.0-or-later
// Stacks of unlike layers: an architecture that is made of others, one above the other. Its hyper-parameters are theirs, each with the
// number of its part in front ("0.width", "1.heads").
#pragma once

#include <utility>
#include <vector>

#include "models/architecture.h"

namespace reclab {

/// The parts, first the lowest, with the values that their hyper-parameters have by default in this stack. The architectures must outlive
/// it.
Architecture stack_of(const std::vector<std::pair<const Architecture*, Hyper>>& parts);

/// The hyper-parameters of one part of a stack.
Hyper hyper_of_stack(const Architecture& stack, const Hyper& hyper, std::size_t part);

}  // namespace reclab
