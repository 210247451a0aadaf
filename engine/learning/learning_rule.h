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
#include "learning/weight_memory.h"
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
    double loss = 0.0;          ///< of its steps: the sum over the sequences
    bool counts = false;        ///< whether one of them has a target, so that there are gradients
    double gate_penalty = 0.0;  ///< that is added to the loss in the gradients, the sum over the sequences
  };
  /// Takes the next part. Throws TrainingDiverged, and Error where it cannot have gradients; Cancelled when it is stopped, after which only
  /// begin() is of use.
  virtual Part learn(std::stop_token stop) = 0;
  /// dL/dtheta of the last part's loss, in the order of the model's weights, in its precision, on its backend.
  virtual std::span<const DeviceArray> gradients() const = 0;
  /// The weights were changed by the last part's gradients.
  virtual void changed() {}
  /// Whether learn() has changed the weights itself, so that there is nothing for an optimiser to do. Where it throws, the weights and
  /// memory() are to be put back.
  virtual bool changes_weights() const { return false; }
  /// The arrays that it keeps of the weights from one change to the next, which are kept, undone and saved with the optimiser's; null where
  /// there are none.
  virtual WeightMemory* memory() { return nullptr; }

  /// Whether its gradients are those of backpropagation over whole sequences, for this model and weights that stay.
  virtual bool exact() const = 0;
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
  std::vector<bool> frozen{};            ///< weights that are not trained, in the order of the model's; none where it is empty
};

struct OnlineSetup;   // learning/online/influence.h
struct OnlineMethod;  // the same

/// How the gradient of a rule stands to that of backpropagation, for weights that stay: it is the same; it is so in the mean over the signs
/// that are drawn; or it is neither.
enum class GradientKind : std::uint8_t { exact, unbiased, biased };
std::string_view to_string(GradientKind kind);

struct LearningRuleInfo {
  std::string id{};     ///< the name of its file
  std::string title{};  ///< "Backpropagation through time"
  int year = 0;         ///< of its paper: the order in which they are listed
  std::string name{};   ///< in lists of the window: "BPTT"
  GradientKind gradient = GradientKind::exact;
  bool past_facing = true;  ///< it goes forward with the influence of the weights; else an adjoint comes back from later steps
  bool local = false;       ///< the change of a weight is made of values of the units that it joins and of a feedback
  bool sparse = false;      ///< of the influence of the weights it carries some entries, and leaves the others out
  /// For one sequence, of T steps of d_s entries of the state and |theta| weights: the numbers that are kept, and the operations of a step.
  std::string memory{}, time{};
  /// The powers of d_s in both, for a full recurrent matrix: |theta| is d_s^2, and T is no part of it.
  double memory_power = 0.0, time_power = 0.0;
  std::string source{};  ///< the paper and its equation
  std::string idea{};    ///< two sentences: how it comes to its gradient, and what that leaves out or costs
  /// Throws Error for a model or options that it cannot learn with. Null for a rule that is a method of `online` alone.
  std::unique_ptr<LearningRule> (*make)(const LearningSetup&) = nullptr;
  /// Throws Error for a model that it does not take. Null for a rule that is not online.
  OnlineMethod (*online)(const OnlineSetup&) = nullptr;
};
/// The rule of setup.options. Throws Error for a model or options that it cannot learn with.
std::unique_ptr<LearningRule> make_learning_rule(const LearningSetup& setup);

/// All, the oldest first.
const std::vector<LearningRuleInfo>& learning_rules();
/// Throws Error naming those that there are.
const LearningRuleInfo& learning_rule(std::string_view id);

}  // namespace reclab
