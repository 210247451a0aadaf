// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include "sequence/sequence.h"

namespace reclab {

/// Makes each input channel's mean 0 and its deviation 1 (of the population), and keeps both. A constant channel becomes 0, its deviation
/// is kept as 1. Target and time stay. Error when a channel's values are too large for it.
void standardise(Sequence& sequence);

}  // namespace reclab
