// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "array/device_array.h"
#include "execution/step_map.h"
#include "learning/learning_rule.h"

namespace reclab {

/// The loss of a part of one sequence, and its gradient.
struct SequenceGradient {
  std::vector<double> gradient{};  ///< dL/dtheta, all weights behind each other
  std::vector<double> of_rule{};   ///< the same of weights that the rule has of its own
  double value = 0.0;
  bool counts = false;                                       ///< whether a step has a target
  std::optional<std::pair<std::string, std::string>> bad{};  ///< where training ends: the reason, and the array
};

/// The gradient of a batch of which each sequence has its own, in the model's precision, on its backend.
class BatchGradient {
 public:
  /// The model must outlive it.
  explicit BatchGradient(Model& model);
  std::span<const DeviceArray> arrays() const { return arrays_; }
  std::int64_t bytes() const;

  /// Adds up those of a batch. Throws TrainingDiverged at the step `number` where one is bad, or Cancelled where they were stopped.
  template <class Each>
  LearningRule::Part sum(const std::vector<Each>& batch, std::int64_t number, const std::stop_token& stop) {
    std::vector<const SequenceGradient*> all;
    for (const SequenceGradient& one : batch) all.push_back(&one);
    return sum(all, number, stop);
  }

 private:
  LearningRule::Part sum(const std::vector<const SequenceGradient*>& batch, std::int64_t number, const std::stop_token& stop);
  Model& model_;
  std::vector<DeviceArray> arrays_;
};

/// Throws Error where the steps of the examples are not of equal time and the model's step knows it; `title` is the rule's.
void require_even_steps(const std::string& title, const StepMap& step, const Sequence& first, const Loss& loss);

}  // namespace reclab
