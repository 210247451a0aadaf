// SPDX-License-Identifier: GPL-3.0-or-later
#include "learning/online/batch_gradient.h"

#include "execution/elapsed_times.h"
#include "learning/online/influence.h"

namespace reclab {

BatchGradient::BatchGradient(Model& model) : model_(model) {
  for (const Model::Weight& weight : model.weights()) arrays_.emplace_back(model.backend(), model.real(), weight.entries());
}

std::int64_t BatchGradient::bytes() const {
  std::size_t total = 0;
  for (const DeviceArray& array : arrays_) total += array.bytes();
  return static_cast<std::int64_t>(total);
}

LearningRule::Part BatchGradient::sum(const std::vector<const SequenceGradient*>& batch, std::int64_t number, const std::stop_token& stop) {
  if (stop.stop_requested()) throw Cancelled();
  LearningRule::Part part;
  std::vector<double> total(batch.front()->gradient.size());
  for (const SequenceGradient* own : batch) {
    if (own->bad) throw TrainingDiverged(number, own->bad->first, own->bad->second);
    part.loss += own->value;
    part.counts |= own->counts;
    for (std::size_t i = 0; i < total.size(); ++i) total[i] += own->gradient[i];
  }
  upload_gradients(model_, total, arrays_);
  return part;
}

void require_even_steps(const std::string& title, const StepMap& step, const Sequence& first, const Loss& loss) {
  if (step.knows_time() && ElapsedTimes::uneven(Batch(first, loss)))
    throw Error(title + " takes steps of equal time, and those of " + first.name + " are not: choose backpropagation.",
                {.parameter = "rule"});
}

}  // namespace reclab
