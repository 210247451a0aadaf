// SPDX-License-Identifier: GPL-3.0-or-later
// Training: a model, its examples, and an optimiser, one batch after the other. On the CPU the same options give the same bits, for any
// number of threads.
#pragma once

#include <complex>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "array/error.h"
#include "execution/batch_rollout.h"
#include "learning/baselines.h"
#include "learning/examples.h"
#include "learning/learning_rule.h"
#include "learning/losses.h"
#include "learning/optimiser.h"
#include "learning/training_options.h"

namespace reclab {

/// The report of one step of training.
struct TrainingStep {
  std::int64_t step = 0;  ///< counted from 1: weights have been changed so often, once a batch
  double loss = 0.0;      ///< of its batch, the mean over its sequences, before the change
  double rate = 0.0;
  double gate_penalty = 0.0;         ///< of its batch, the mean over its sequences; no part of the loss
  double norm = 0.0, clipped = 0.0;  ///< of the gradient, before and after clipping; with truncation the largest of the parts
};
/// The quality of a model on the held-out sequences.
struct Evaluation {
  std::int64_t step = 0;
  double loss = 0.0;
  double metric = std::numeric_limits<double>::quiet_NaN();  ///< Trainer::metric()
};

class Trainer {
 public:
  /// Model and examples must outlive it. Throws Error for options that the model cannot be trained with.
  Trainer(Model& model, const Examples& examples, const TrainingOptions& options);
  ~Trainer();

  /// Trains on one batch. Throws TrainingDiverged; Cancelled when it is stopped. On any exception, weights and optimiser are those before
  /// the step (see whole()). It obeys `stop` alone, not the StopScope of its thread. If `keep`, the step can be undone.
  TrainingStep step(std::stop_token stop = {}, bool keep = false);
  /// Weights and optimiser as they were before the last step, which was made with `keep`.
  void undo();
  /// Whether the weights are those after steps() steps: not where a device or memory failed while they were changed, and again while they
  /// were put back.
  bool whole() const { return whole_; }
  /// |change| / |weight| of each weight by the last step with `watch_changes`, in the order of the weights; NaN of one that is 0 or was not
  /// trained.
  void watch_changes(bool watch) { watch_ = watch; }
  const std::vector<double>& changes() const { return changes_; }
  Evaluation evaluate(std::stop_token stop = {});

  std::int64_t steps() const { return steps_; }
  const TrainingOptions& options() const { return options_; }
  /// "accuracy", the share of steps that count at which the largest output is the target's; or "squared error", the mean over them of |y -
  /// target|^2.
  const std::string& metric() const { return metric_; }
  /// The best constant output on the held-out sequences, and on a series a linear predictor.
  const Baseline& baseline() const { return baseline_; }
  const std::string& baseline_text() const { return baseline_.text; }
  const std::optional<Baseline>& linear_predictor() const { return linear_predictor_; }
  std::int64_t held_out() const { return std::ssize(held_out_); }
  /// The most changes of the weights by one step.
  std::int64_t changes_per_step() const;
  std::int64_t bytes() const;

  const Optimiser& optimiser() const { return optimiser_; }
  const Model& model() const { return model_; }
  const std::vector<bool>& frozen() const { return frozen_; }  ///< whether a weight is not trained, in the order of the model's
  /// The arrays that the optimiser and the rule keep of the weights, by "m/<weight>": how many numbers each has; and all, as float64.
  std::map<std::string, std::int64_t> memory_entries() const;
  std::map<std::string, std::vector<double>> memory() const;
  /// Goes on as one that has made so many steps: `memory` is as it was after so many changes. The weights are set by the caller.
  void restore(std::int64_t steps, std::int64_t changes, const std::map<std::string, std::vector<double>>& memory);

 private:
  class JudgingLoss;
  Batch held_out_batch(std::size_t first);
  TrainingStep step_by_parts(std::stop_token stop);
  void keep();
  void go_back();
  void change(double rate, TrainingStep& report);
  void watch_weights();
  void see_changes();

  Model& model_;
  const Examples& examples_;
  TrainingOptions options_;
  std::vector<bool> frozen_;
  Optimiser optimiser_;
  std::deque<Sequence> held_out_, sequences_;
  std::unique_ptr<LearningRule> rule_;
  std::unique_ptr<BatchRollout> judging_;               // where the rule has none of whole batches
  std::vector<std::unique_ptr<JudgingLoss>> losses_;    // of the held-out sequences
  std::vector<DeviceArray> gradients_, before_, kept_;  // kept_: the weights of keep()
  DeviceArray work_, limit_;
  std::vector<double> changes_;
  bool watch_ = false, whole_ = true;
  std::int64_t steps_ = 0;
  std::string metric_;
  Baseline baseline_;
  std::optional<Baseline> linear_predictor_;
};

}  // namespace reclab
