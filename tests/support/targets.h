// SPDX-License-Identifier: GPL-3.0-or-later
// Sequences that are given a target, without which a network has no head.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "sequence/sequence.h"

namespace reclab::test {

/// Numbers to regress on, as many a step as there are columns; every step counts.
inline void aim_at(Sequence& sequence, std::vector<double> target, std::int64_t columns) {
  sequence.target_kind = TargetKind::regress;
  sequence.target_width = columns;
  sequence.target = std::move(target);
  sequence.mask.assign(static_cast<std::size_t>(sequence.length), 1.0);
}

}  // namespace reclab::test
