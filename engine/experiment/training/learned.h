// SPDX-License-Identifier: GPL-3.0-or-later
// Weights that a training has come to, as a run takes them, and those of a training that are kept.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "models/network.h"

namespace reclab {

struct LearnedWeights {
  std::uint64_t training = 0;  ///< its number, of those of this program
  std::int64_t step = 0;       ///< changes that have been made to them
  Parameters values;           ///< in the order of the network's
  std::string from;            ///< the training data, in words
  std::string command;         ///< the line that trains so far, with --export to the folder `folder`
  std::string folder;          ///< the folder whose weights.safetensors they are
  std::int64_t bytes() const;
};
using LearnedPtr = std::shared_ptr<const LearnedWeights>;

/// Weights along a training, within a limit of bytes: at first of every step; where there is no room for more, every second goes and from
/// then on half as many come. The first and the newest always stay.
class Checkpoints {
 public:
  static constexpr std::int64_t most = 512;  ///< however small they are
  explicit Checkpoints(std::int64_t limit) : limit_(limit) {}

  /// Whether the weights after so many steps are to be kept, apart from being the newest.
  bool wants(std::int64_t step) const { return step % every_ == 0; }
  /// Adds weights, in the order of their steps; the newest, if wants() is false for it, goes as the next comes.
  void add(LearnedPtr weights);
  const std::vector<LearnedPtr>& all() const { return kept_; }
  /// The one nearest to a step, of two that are as near the later; null where there is none.
  LearnedPtr nearest(std::int64_t step) const;
  std::int64_t bytes() const;
  std::int64_t every() const { return every_; }

 private:
  void thin();
  std::int64_t limit_, every_ = 1;
  std::vector<LearnedPtr> kept_;
};

}  // namespace reclab
