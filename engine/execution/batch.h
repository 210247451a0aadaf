// SPDX-License-Identifier: GPL-3.0-or-later
// Batch: sequences that a rollout runs side by side, each with the loss that is taken of its own outputs.
#pragma once

#include <cstdint>
#include <vector>

#include "execution/loss.h"
#include "sequence/sequence.h"

namespace reclab {

/// A sequence and its loss, which must live for as long as a rollout runs on them: until its end, or until it is given the next batch.
struct Example {
  const Sequence* sequence;
  const Loss* loss;
};

/// The loss of a batch is the sum of those of its examples, each normalised as its own Loss says and nothing divided by their number, so
/// that the gradient is the sum of those of single runs; for the mean, divide the learning rate.
///
/// Sequences need not be equally long: a shorter one is followed by zeros, of which no loss is taken, and its results at its own steps are
/// those that it has alone. A layer that runs from the end of the sequence to its start would begin with those zeros, so a rollout with one
/// refuses them. All have the same width, and their losses are of the same term and ask for the same number of outputs; else the
/// constructor throws an Error.
class Batch {
 public:
  /// One sequence, so many times.
  Batch(const Sequence& sequence, const Loss& loss, std::int64_t copies = 1);
  explicit Batch(std::vector<Example> examples);

  const std::vector<Example>& examples() const { return examples_; }
  std::int64_t size() const { return std::ssize(examples_); }
  std::int64_t length() const { return length_; }  ///< of the longest sequence
  std::int64_t width() const { return width_; }
  std::int64_t outputs() const { return outputs_; }
  LossForm loss_form() const { return loss_form_; }
  bool equally_long() const { return shortest_ == length_; }
  std::int64_t shortest() const { return shortest_; }

 private:
  std::vector<Example> examples_;
  std::int64_t length_ = 0, shortest_ = 0, width_ = 0, outputs_ = 0;  // known when a rollout's last batch is gone
  LossForm loss_form_;
};

}  // namespace reclab
