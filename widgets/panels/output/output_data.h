// SPDX-License-Identifier: GPL-3.0-or-later
// The outputs of a run with their target: values, probabilities of classes, and errors.
#pragma once

#include <QString>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "trace/trace.h"

namespace reclab {

/// The errors of the output over the recorded steps that count, and those of the best constant: the target's mean, or the frequencies of
/// its classes.
struct OutputScore {
  std::int64_t counted = 0;    ///< recorded steps that count
  double loss = 0.0;           ///< half the squared error, or the cross-entropy in nats, in the mean; NaN where an output is not finite
  double constant = 0.0;       ///< the same of the best constant
  double right = 0.0;          ///< of classes: the share of steps whose largest logit is the target's
  double most_frequent = 0.0;  ///< the same of the answer that is most often right
  std::vector<double> answer;  ///< the best constant: a mean for each channel, or a frequency for each class
};

class OutputData {
 public:
  OutputData() = default;
  /// The outputs of a run; null and one without an output give none.
  explicit OutputData(std::shared_ptr<const Trace> trace);

  bool some() const { return rows_ > 0 && channels_ > 0; }
  bool classes() const { return classes_; }  ///< the outputs are logits of classes
  bool hasTarget() const { return target_ != nullptr; }
  std::int64_t rows() const { return rows_; }
  std::int64_t channels() const { return channels_; }
  const Trace& trace() const { return *trace_; }
  const std::vector<std::int64_t>& steps() const;
  std::int64_t rowOf(std::int64_t step) const { return trace_->row_of_step(*output_, step); }  ///< the nearest

  /// "y" of one, "y 3" of several, "class 3", or the name that it has.
  QString name(std::int64_t channel) const;
  double value(std::int64_t row, std::int64_t channel) const { return (*values_)[static_cast<std::size_t>(row * channels_ + channel)]; }
  double probability(std::int64_t row, std::int64_t channel) const;  ///< of classes()
  /// The weight of a row's target: 0 where it does not count.
  double weight(std::int64_t row) const;
  /// The target of a channel: for classes the probability, 1 or 0. Nothing where the target does not count.
  std::optional<double> target(std::int64_t row, std::int64_t channel) const;
  std::int64_t targetClass(std::int64_t row) const;  ///< of classes(); -1 where it does not count
  bool anyFinite() const;
  /// Channels by how much they vary, the most first.
  std::vector<std::int64_t> byVariance() const;
  /// The score; nothing without a target that counts at a recorded step.
  std::optional<OutputScore> score() const;

 private:
  std::shared_ptr<const Trace> trace_;
  const TraceArray *output_ = nullptr, *target_ = nullptr, *mask_ = nullptr;
  std::shared_ptr<const std::vector<double>> values_;
  std::vector<double> log_sums_;  ///< of classes: log Σ exp of each row
  std::int64_t rows_ = 0, channels_ = 0;
  bool classes_ = false;
};

}  // namespace reclab
