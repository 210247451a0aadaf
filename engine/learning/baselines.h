// SPDX-License-Identifier: GPL-3.0-or-later
// What a model has to be better than, on the same sequences that are held out.
#pragma once

#include <deque>
#include <optional>
#include <string>

#include "learning/examples.h"

namespace reclab {

struct Baseline {
  double loss = 0.0;
  double metric = 0.0;  ///< as Trainer::metric()
  std::string text;     ///< what it is, in words
};

/// The best constant output on these sequences: the classes by their frequency, or the target's mean. Throws Error where no step counts.
Baseline best_constant(const std::deque<Sequence>& held_out);

/// For targets that are numbers and count at most of the steps, as those of a series: ridge regression on the inputs of the last steps,
/// fitted to sequences that are learned from. None for other targets.
std::optional<Baseline> linear_predictor(const Examples& examples, const std::deque<Sequence>& held_out);

}  // namespace reclab
