// SPDX-License-Identifier: GPL-3.0-or-later
// The score of outputs on one sequence, and the means of scores over sequences. Inside the floor only.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "evaluation/interval.h"
#include "learning/losses.h"

namespace reclab {

/// The parts into which the steps that count are told apart.
enum class ScoredBy : std::uint8_t {
  length,    ///< all of a sequence
  position,  ///< the first of them, the second, ...; of more than `most_positions` so many equal parts
  delay,     ///< the steps since the target was shown (Sequence::shown): 0, 1, 2 to 3, 4 to 7, ...
  classes,   ///< the class that is the target
  horizon    ///< steps ahead of the last step that was given
};
inline constexpr std::array scored_by{ScoredBy::length, ScoredBy::position, ScoredBy::delay, ScoredBy::classes, ScoredBy::horizon};
inline constexpr std::int64_t most_positions = 64;
std::string_view to_string(ScoredBy by);  ///< "length", "position", "delay", "class", "horizon"

/// Of one part of one sequence.
struct ScoreSum {
  double loss = 0.0, metric = 0.0, weight = 0.0;
  std::int64_t from = -1, to = -1;  ///< the part: positions, delays, a class, a horizon
};

class SequenceScore {
 public:
  /// The sequence, which has a target, must outlive it.
  explicit SequenceScore(const Sequence& sequence);
  /// The outputs at a step, in the order of the steps: the loss is -log softmax(y)[target] or ½ |y - target|², the metric whether the
  /// largest output is the target's or |y - target|². A step that does not count is passed over.
  void add(std::int64_t step, std::span<const double> y);
  const std::vector<ScoreSum>& of(ScoredBy by) const { return sums_[static_cast<std::size_t>(by)]; }

 private:
  void add(ScoredBy by, std::int64_t bin, std::int64_t from, std::int64_t to, const ScoreSum& step);
  const Sequence& sequence_;
  std::int64_t counted_ = 0, seen_ = 0;
  std::array<std::vector<ScoreSum>, scored_by.size()> sums_;
};

/// The loss of a sequence in a rollout that keeps the score.
class ScoringLoss final : public SequenceLoss {
 public:
  explicit ScoringLoss(const Sequence& sequence) : SequenceLoss(LossKind::task, sequence), score_(sequence) {}
  bool sees_outputs() const override { return true; }
  void see(std::int64_t first, std::int64_t steps, std::int64_t width, std::span<const double> output) const override {
    for (std::int64_t t = 0; t < steps; ++t)
      score_.add(first + t, output.subspan(static_cast<std::size_t>(t * width), static_cast<std::size_t>(width)));
  }
  const SequenceScore& score() const { return score_; }

 private:
  mutable SequenceScore score_;
};

/// Means over sequences of their means over the steps of a part. Sequences come in their order.
class ScoreMeans {
 public:
  struct Part {
    std::int64_t from = -1, to = -1;
    SequenceMean loss, metric;
  };
  void add(const SequenceScore& score);
  void add(ScoredBy by, std::size_t bin, const ScoreSum& sum);
  const std::vector<Part>& of(ScoredBy by) const { return parts_[static_cast<std::size_t>(by)]; }

 private:
  std::array<std::vector<Part>, scored_by.size()> parts_;
};

}  // namespace reclab
