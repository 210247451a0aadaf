// SPDX-License-Identifier: GPL-3.0-or-later
// Learning rules, which turn the loss of a batch into the gradients that an optimiser changes the weights by. A rule is a row of a table
// that the build writes from the files of learning/rules/, each of which defines `LearningRuleInfo <id>()`.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "array/device_array.h"
#include "array/error.h"
#include "execution/batch_rollout.h"
#include "execution/model.h"
#include "learning/training_options.h"
#include "sequence/sequence.h"

namespace reclab {

/// A loss or a gradient that is not finite: weights and optimiser are those before the step.
class TrainingDiverged final : public Error {
 public:
  TrainingDiverged(std::int64_t step, const std::string& what, std::string array);
  std::int64_t step;
  std::string array;
};

/// The sequences of one batch are learned from in parts of some steps; after each part the weights may change.
class LearningRule {
 public:
  virtual ~LearningRule() = default;

  /// The next batch, from the first step of its sequences on; it lives until the next one. `number`: of the step of training, counted
  /// from 1.
  virtual void begin(const std::deque<Sequence>& batch, std::int64_t number) = 0;
  /// Whether a part of the batch is left.
  virtual bool left() const = 0;
  struct Part {
    double loss = 0.0;    ///< of its steps: the sum over the sequences
    bool counts = false;  ///< whether one of them has a target, so that there are gradients
  };
  /// Takes the next part. Throws TrainingDiverged; Cancelled when it is stopped, after which only begin() is of use.
  virtual Part learn(std::stop_token stop) = 0;
  /// dL/dtheta of the last part's loss, in the order of the model's weights, in its precision, on its backend.
  virtual std::span<const DeviceArray> gradients() const = 0;

  virtual std::int64_t parts() const = 0;  ///< of a batch
  virtual std::int64_t bytes() const = 0;
  /// A rollout of whole batches that it does not need between them; null where it has none.
  virtual BatchRollout* whole() { return nullptr; }
};

/// The arguments of LearningRuleInfo::make. All must outlive the rule.
struct LearningSetup {
  Model& model;
  const TrainingOptions& options;
  std::int64_t length;                   ///< steps of every sequence
  const std::deque<Sequence>& examples;  ///< a batch like those that it will learn from, or more
};

struct LearningRuleInfo {
  std::string id{};     ///< the name of its file
  std::string title{};  ///< "Backpropagation through time"
  int year = 0;         ///< of its paper: the order in which they are listed
  std::string name{};   ///< in lists of the window: "BPTT"
  /// Throws Error for a model or options that it cannot learn with.
  std::unique_ptr<LearningRule> (*make)(const LearningSetup&) = nullptr;
};

/// All, the oldest first.
const std::vector<LearningRuleInfo>& learning_rules();
/// Throws Error naming those that there are.
const LearningRuleInfo& learning_rule(std::string_view id);

}  // namespace reclab
