// SPDX-License-Identifier: GPL-3.0-or-later
#include "gui/jobs/turns.h"

#include <algorithm>
#include <utility>

namespace reclab {

Turns::Id Turns::add(Manners manners) {
  all_.push_back({std::move(manners), {}});
  return all_.size() - 1;
}

bool Turns::givesWay(Id id, Id to) const {
  const Manners& own = all_[id].manners;
  return (own.measures && !all_[to].manners.measures) || std::ranges::find(own.givesWayTo, to) != own.givesWayTo.end();
}

bool Turns::mayBegin(Id id) const {
  for (Id other = 0; other < all_.size(); ++other) {
    const State& state = all_[other].state;
    const bool computes = state.computes || state.windsDown;
    if (other == id) continue;
    // What waits itself comes before all that give way to it; otherwise they would begin only to stop again.
    if (givesWay(id, other) && (computes || state.waits || state.announced)) return false;
    if (all_[id].manners.measures && computes) return false;
  }
  return true;
}

std::vector<Turns::Id> Turns::displacedBy(Id id) const {
  std::vector<Id> displaced;
  for (Id other = 0; other < all_.size(); ++other)
    if (other != id && all_[other].state.computes && givesWay(other, id)) displaced.push_back(other);
  return displaced;
}

}  // namespace reclab
