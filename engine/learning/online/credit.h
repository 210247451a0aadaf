// SPDX-License-Identifier: GPL-3.0-or-later
// How near the gradients of online rules come to the true ones, step by step: of a step's loss alone, by all weights up to that step.
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "execution/loss.h"
#include "learning/online/influence.h"
#include "sequence/sequence.h"

namespace reclab {

struct CreditPlan {
  std::vector<std::string> rules{"uoro", "snap"};
  std::int64_t repeats = 8;     ///< of a rule that draws signs, with others each time
  std::int64_t signs = 0;       ///< another number: other signs for the same weights
  std::int64_t delays = 16;     ///< 0, 1, ... steps between the loss and the step at which the weights act
  std::int64_t snap_order = 1;  ///< TrainingOptions::snap_order
  std::int64_t rbp_terms = 20;  ///< TrainingOptions::rbp_terms
};

/// An estimate beside the true gradient: the cosine of their angle, and the ratio of their norms. The mean over repeats, NaN where the
/// truth is 0.
struct Nearness {
  std::vector<double> cosine{}, ratio{};
};

struct CreditOfRule {
  std::string rule{};
  bool exact = false;
  std::int64_t repeats = 1;           ///< of the plan where it draws signs, else 1
  Nearness whole{};                   ///< [T], of all weights; NaN at steps without a loss
  std::vector<Nearness> by_weight{};  ///< [T] each, in the order of the model's weights
  Nearness by_delay{};                ///< [delays], over all steps: the weights act at the step so long before the loss, and at no other
  std::vector<double> bias{};         ///< [T], |mean over repeats - truth| / |truth|
  std::vector<double> deviation{};    ///< [T], the root of the mean of |estimate - mean|^2 over repeats, / |truth|
  Nearness sum{};                     ///< [1], of the gradient of the whole loss
  double bytes = 0.0;                 ///< of the influence
  double seconds = 0.0;               ///< of a step, without the step itself: the least of the repeats
};

/// The credit that each of the rules gives. Throws Error for a rule that does not take the model or has no gradients of single steps, and
/// for a model and a length whose true gradients are too large.
std::vector<CreditOfRule> credit_of(const Model& model, const Sequence& sequence, const Loss& loss, const CreditPlan& plan,
                                    std::uint64_t seed, const std::function<void(double fraction, const std::string& rule)>& progress,
                                    std::stop_token stop);

}  // namespace reclab
