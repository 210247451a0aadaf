// SPDX-License-Identifier: GPL-3.0-or-later
// The last steps of a stream, which are a sequence like any other: what a model makes of them can be recorded, drawn and trained on.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "sequence/sequence.h"
#include "streams/rules/stream_rule.h"
#include "streams/source.h"
#include "streams/state.h"

namespace reclab {

class StreamRing {
 public:
  /// `room`: how many steps it has at most. `predictors`: how many predictions each step has.
  StreamRing(const StreamForm& form, std::int64_t room, std::size_t predictors);
  /// `predictions`: of each predictor [steps, outputs], made before anything was learned from these steps.
  void add(const StreamBlock& block, const std::vector<std::vector<double>>& predictions);
  std::int64_t length() const { return std::min(room_, steps_); }
  std::int64_t first() const { return steps_ - length(); }  ///< the step of the stream that its first one is
  /// The steps with their targets, unless there are none yet; their time is that of the stream.
  Sequence sequence() const;
  std::vector<double> predictions(std::size_t predictor) const;  ///< [length, outputs]; NaN after it diverged
  std::vector<std::int64_t> regimes() const;                     ///< [length], as StreamStep::regime
  /// Steps of the stream at which another regime begins than that of the step before, which is in the ring too.
  std::vector<std::int64_t> drifts() const;
  void keep(StreamState& state);

 private:
  /// Of rows of one width, of which each step overwrites that of `room` steps before.
  template <class T>
  std::vector<T> in_order(const std::vector<T>& rows) const;
  StreamForm form_;
  std::int64_t room_, steps_ = 0;
  std::vector<double> input_, target_;          // [room, ...]
  std::vector<std::int64_t> counts_, regimes_;  // [room]
  std::vector<std::vector<double>> predictions_;
};

}  // namespace reclab
