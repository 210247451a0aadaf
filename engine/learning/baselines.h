// SPDX-License-Identifier: GPL-3.0-or-later
// Baselines that a model has to be better than, on the same held-out sequences.
#pragma once

#include <deque>
#include <optional>
#include <string>

#include "learning/examples.h"

namespace reclab {

struct Baseline {
  double loss = 0.0;
  double metric = 0.0;  ///< as Trainer::metric()
  std::string text;     ///< the baseline in words
};

/// The best constant output on these sequences: the classes by their frequency, or the target's mean. Throws Error where no step counts.
Baseline best_constant(const std::deque<Sequence>& held_out);

/// Ridge regression on the inputs of the last steps, fitted to the training sequences, for targets that are numbers and count at most of
/// the steps, as those of a series. None for other targets.
std::optional<Baseline> linear_predictor(const Examples& examples, const std::deque<Sequence>& held_out);

}  // namespace reclab
