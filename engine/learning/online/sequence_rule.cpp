// SPDX-License-Identifier: GPL-3.0-or-later
#include "learning/online/sequence_rule.h"

#include <algorithm>
#include <utility>

#include "array/cpu/processor/threads.h"
#include "array/error.h"
#include "learning/losses.h"

namespace reclab {

SequenceRule::SequenceRule(const LearningSetup& setup, const std::string& title) : total_(setup.model) {
  const Sequence& first = setup.examples.front();
  const SequenceLoss loss(LossKind::task, first);
  own_.resize(static_cast<std::size_t>(setup.options.batch));
  for (Own& own : own_) own.step = std::make_unique<StepMap>(setup.model, first.width, loss.outputs());
  require_even_steps(title, *own_.front().step, first, loss);
}

void SequenceRule::begin(const std::deque<Sequence>& batch, std::int64_t number) {
  number_ = number;
  left_ = true;
  for (std::size_t b = 0; b < own_.size(); ++b) own_[b].sequence = &batch[b];
}

LearningRule::Part SequenceRule::learn(std::stop_token stop) {
  left_ = false;
  look_at_weights();
  cpu::parallel(std::ssize(own_), [&](std::int64_t b) {
    Own& own = own_[static_cast<std::size_t>(b)];
    own.gradient.assign(own.step->weights(), 0.0);
    own.of_rule.clear();
    own.bad.reset();
    own.value = 0.0;
    own.counts = std::ranges::any_of(own.sequence->mask, [](double m) { return m != 0.0; });
    try {
      take(*own.step, *own.sequence, own, stop);
    } catch (const Cancelled&) {  // of all, below
    }
  });
  return total_.sum(own_, number_, stop);
}

std::vector<double> SequenceRule::sum_of_rule() const {
  std::vector<double> sum;
  for (const Own& own : own_) {
    sum.resize(std::max(sum.size(), own.of_rule.size()));
    for (std::size_t i = 0; i < own.of_rule.size(); ++i) sum[i] += own.of_rule[i];
  }
  return sum;
}

std::int64_t SequenceRule::bytes() const {
  const StepMap& step = *own_.front().step;
  return static_cast<std::int64_t>(own_.size() * (numbers(step) + step.weights()) * sizeof(double)) + total_.bytes();
}

void require_no_parts(const TrainingOptions& options, const std::string& why, const std::string& cure) {
  for (const auto& [key, value] : {std::pair{"truncate", options.truncate}, std::pair{"advance", options.advance}})
    if (value > 0)
      throw Error(why + ": leave " + key + " at 0" + cure + ".", {.parameter = key, .value = std::to_string(value), .range = "0"});
}

void require_numbers(const std::string& title, const Sequence& first) {
  if (first.target_kind != TargetKind::regress)
    throw Error(title + " takes targets that are numbers, and those of " + first.name + " are not: choose another task.",
                {.parameter = "task", .value = first.name});
}

}  // namespace reclab
