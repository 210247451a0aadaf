// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstddef>
#include <deque>
#include <memory>
#include <span>
#include <stop_token>
#include <string>
#include <vector>

#include "learning/learning_rule.h"
#include "learning/online/batch_gradient.h"

namespace reclab {

/// A rule that takes each sequence of a batch by itself, whole, a thread each, and has the sum of their gradients.
class SequenceRule : public LearningRule {
 public:
  /// Throws Error for a model whose step cannot be taken alone, and for steps of unequal time that it knows; `title` is the rule's.
  SequenceRule(const LearningSetup& setup, const std::string& title);

  void begin(const std::deque<Sequence>& batch, std::int64_t number) final;
  bool left() const final { return left_; }
  Part learn(std::stop_token stop) final;
  std::span<const DeviceArray> gradients() const final { return total_.arrays(); }
  std::int64_t parts() const final { return 1; }
  std::int64_t bytes() const final;

 protected:
  /// The loss and the gradient of a sequence, which are 0 until then; `counts` is set. Several are taken at the same time. Throws
  /// Cancelled.
  virtual void take(StepMap& step, const Sequence& sequence, SequenceGradient& own, const std::stop_token& stop) const = 0;
  /// Before the sequences of a batch are taken.
  virtual void look_at_weights() {}
  /// The sum of SequenceGradient::of_rule over the sequences of the last batch, in their order.
  std::vector<double> sum_of_rule() const;
  /// The float64 numbers that are kept of a sequence, beside its gradient.
  virtual std::size_t numbers(const StepMap& step) const = 0;

 private:
  struct Own : SequenceGradient {
    std::unique_ptr<StepMap> step{};
    const Sequence* sequence = nullptr;
  };
  std::int64_t number_ = 0;
  bool left_ = false;
  std::vector<Own> own_;
  BatchGradient total_;
};

/// Throws Error where a batch is to be learned from in parts: "<why>: leave truncate at 0<cure>."
void require_no_parts(const TrainingOptions& options, const std::string& why, const std::string& cure = {});
/// Throws Error, which begins with the rule's title, for targets that are no numbers.
void require_numbers(const std::string& title, const Sequence& first);

}  // namespace reclab
