// SPDX-License-Identifier: GPL-3.0-or-later
// Learning rules on a sequence without an end: the state is carried on, and nothing begins anew.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "array/device_array.h"
#include "execution/model.h"
#include "learning/training_options.h"
#include "streams/source.h"

namespace reclab {

/// Some steps of a stream one after another: [steps, ...], row after row.
struct StreamBlock {
  std::int64_t first = 0, steps = 0;  ///< first: from the stream's beginning
  std::vector<double> input, target;
  std::vector<std::int64_t> regimes;
  std::vector<bool> counts;
  void clear(std::int64_t at);
  void add(const StreamStep& step);
};

class StreamRule {
 public:
  virtual ~StreamRule() = default;
  /// Goes over the block's steps [from, from + steps), at most as many as the weights change after: writes their outputs [steps, outputs],
  /// which are those of the weights as they are, and the gradient of the mean loss of the steps that count. False where no step counts, and
  /// where `learn` is false: there is no gradient then. Throws TrainingDiverged.
  virtual bool take(const StreamBlock& block, std::int64_t from, std::int64_t steps, std::span<double> outputs, bool learn) = 0;
  virtual std::span<const DeviceArray> gradients() const = 0;
  /// Between two calls of take().
  virtual void keep(StreamState& state) = 0;
  virtual std::int64_t bytes() const = 0;
};

struct StreamRuleSetup {
  Model& model;
  const StreamForm& form;
  const TrainingOptions& options;
  bool reset = false;  ///< every window of backpropagation begins at rest
};
/// Backpropagation truncated as BPTT(truncate; advance), or an online rule. Throws Error for a rule that goes over its steps twice, for a
/// model that the rule does not take, and for one whose state grows, or that reads from the end.
std::unique_ptr<StreamRule> stream_rule(const StreamRuleSetup& setup);
std::unique_ptr<StreamRule> stream_bptt(const StreamRuleSetup& setup);
std::unique_ptr<StreamRule> stream_online(const StreamRuleSetup& setup);

}  // namespace reclab
