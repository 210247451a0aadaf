// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/jobs/exclusion_rules.h"

#include <algorithm>
#include <utility>

namespace reclab {

ExclusionRules::Id ExclusionRules::add(Policy policy) {
  all_.push_back({std::move(policy), {}});
  return all_.size() - 1;
}

bool ExclusionRules::yields(Id id, Id to) const {
  const Policy& own = all_[id].policy;
  return (own.measures && !all_[to].policy.measures) || std::ranges::find(own.yieldsTo, to) != own.yieldsTo.end();
}

bool ExclusionRules::mayBegin(Id id) const {
  for (Id other = 0; other < all_.size(); ++other) {
    const State& state = all_[other].state;
    const bool computes = state.computes || state.stopping;
    if (other == id) continue;
    // A waiting job precedes all that give way to it; otherwise they would begin only to stop again.
    if (yields(id, other) && (computes || state.waits || state.moreExpected)) return false;
    if (all_[id].policy.measures && computes) return false;
  }
  return true;
}

std::vector<ExclusionRules::Id> ExclusionRules::preemptedBy(Id id) const {
  std::vector<Id> displaced;
  for (Id other = 0; other < all_.size(); ++other)
    if (other != id && all_[other].state.computes && yields(other, id)) displaced.push_back(other);
  return displaced;
}

}  // namespace reclab
