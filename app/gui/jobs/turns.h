// SPDX-License-Identifier: GPL-3.0-or-later
// The rule of who waits for whom, of all that the window computes. It knows no thread and no result.
#pragma once

#include <cstddef>
#include <vector>

namespace reclab {

class Turns {
 public:
  using Id = std::size_t;

  /// How a kind of work gets on with the others.
  struct Manners {
    bool measures = false;            ///< nothing computes beside it: it gives way to all that does not measure, and waits for what does
    std::vector<Id> givesWayTo = {};  ///< beside which it does not compute; they neither wait for it nor give way to it
  };
  struct State {
    bool waits = false;      ///< for its turn
    bool computes = false;   ///< and what it computes is still wanted
    bool windsDown = false;  ///< its thread has not yet heard that it is wanted no more
    bool announced = false;  ///< more of it is about to follow
  };

  Id add(Manners manners);
  void set(Id id, State state) { all_[id].state = state; }

  /// Whether one that waits may compute now.
  bool mayBegin(Id id) const;
  /// Those that compute and give way to this one: they stop, and wait.
  std::vector<Id> displacedBy(Id id) const;

 private:
  struct One {
    Manners manners;
    State state;
  };
  bool givesWay(Id id, Id to) const;
  std::vector<One> all_;
};

}  // namespace reclab
