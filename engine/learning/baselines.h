// SPDX-License-Identifier: GPL-3.0-or-later
// Baselines that a model has to be better than, on the same held-out sequences.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "learning/examples.h"

namespace reclab {

struct Baseline {
  double loss = 0.0;
  double metric = 0.0;  ///< as Trainer::metric()
  std::string text;     ///< the baseline in words
};

/// The best constant output on sequences that come one after another: the classes by their frequency, or the target's mean. A sequence
/// without a step that counts is left out.
class BestConstant {
 public:
  void add(const Sequence& sequence);
  std::int64_t sequences() const { return whole_; }
  /// Of at least one sequence.
  Baseline best() const;

 private:
  bool classes_ = false;
  std::int64_t whole_ = 0;
  std::vector<double> sum_, squares_;  // of each class or column of the target
};
/// Of these. Throws Error where no step counts.
Baseline best_constant(const std::deque<Sequence>& held_out);

/// Ridge regression on the inputs of the last steps.
class LinearPredictor {
 public:
  /// Fitted to the training sequences, for targets that are numbers and count at most of the steps of `like`, as those of a series. None
  /// for other targets, and where no step counts.
  static std::optional<LinearPredictor> fitted(const Examples& examples, const Sequence& like);
  std::string text() const;
  /// The outputs at a step, in place of the target.
  std::vector<double> at(const Sequence& sequence, std::int64_t step) const;

 private:
  std::int64_t past_ = 0;
  std::vector<double> weight_, bias_;
};
/// The error of that on sequences.
std::optional<Baseline> linear_predictor(const Examples& examples, const std::deque<Sequence>& held_out);

}  // namespace reclab
