// SPDX-License-Identifier: GPL-3.0-or-later
// Rules on the jobs of the window that may compute beside one another, and those that preempt others. They know no thread and no result.
#pragma once

#include <cstddef>
#include <vector>

namespace reclab {

class ExclusionRules {
 public:
  using Id = std::size_t;

  /// The rules of a kind of work.
  struct Policy {
    bool measures = false;  ///< nothing computes beside it: it gives way to all jobs that do not measure, and waits for those that do
    std::vector<Id> yieldsTo = {};  ///< kinds beside which it does not compute; they neither wait for it nor are preempted by it
  };
  struct State {
    bool waits = false;         ///< for its turn
    bool computes = false;      ///< and its result is still wanted
    bool stopping = false;      ///< its thread has not yet heard that it is wanted no more
    bool moreExpected = false;  ///< more of it is about to follow
  };

  Id add(Policy policy);
  void set(Id id, State state) { all_[id].state = state; }

  /// Whether one that waits may compute now.
  bool mayBegin(Id id) const;
  /// The jobs that compute and give way to this one: they stop, and wait.
  std::vector<Id> preemptedBy(Id id) const;

 private:
  struct One {
    Policy policy;
    State state;
  };
  bool yields(Id id, Id to) const;
  std::vector<One> all_;
};

}  // namespace reclab
