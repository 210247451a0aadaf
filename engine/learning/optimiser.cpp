// SPDX-License-Identifier: GPL-3.0-or-later
#include "learning/optimiser.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "array/demand.h"
#include "array/error.h"

namespace reclab {

Optimiser::Optimiser(Model& model, const OptimiserOptions& options, std::vector<bool> frozen)
    : model_(model),
      options_(options),
      rule_(optimiser_rule(options.rule)),
      frozen_(frozen.empty() ? std::vector<bool>(model.weights().size()) : std::move(frozen)),
      memory_(model, rule_.kept(options), frozen_) {
  check(options);
  std::int64_t largest = 1;
  for (std::size_t i = 0; i < frozen_.size(); ++i)
    if (!frozen_[i]) largest = std::max(largest, model.weights()[i].entries());
  for (int k = 0; k < 4; ++k) scratch_.emplace_back(model.backend(), model.real(), largest);
}

std::int64_t Optimiser::bytes() const {
  std::size_t total = 0;
  for (const DeviceArray& array : scratch_) total += array.bytes();
  return static_cast<std::int64_t>(total) + memory_.bytes();
}

void Optimiser::step(double rate, std::span<const DeviceArray> gradients) {
  RECLAB_DEMAND(gradients.size() == model_.weights().size());
  ++steps_;
  model_.update([&](std::size_t i, const Model::Weight& weight) {
    if (frozen_[i]) return;
    WeightStep step(model_.backend(), model_.real(), weight.entries());
    step.options = &options_;
    step.rate = rate;
    step.number = steps_;
    step.weight = &weight.values;
    step.gradient = &gradients[i];
    step.kept = memory_.of(i);
    step.scratch = scratch_;
    rule_.step(step);
  });
}

void Optimiser::keep() {
  memory_.keep();
  kept_steps_ = steps_;
}

void Optimiser::go_back() {
  memory_.go_back();
  steps_ = kept_steps_;
}

void Optimiser::restore(std::int64_t steps, const std::map<std::string, std::vector<double>>& memory) {
  RECLAB_DEMAND(steps >= 0);
  if (memory.size() > memory_entries().size()) throw Error("there is more than the optimiser " + rule_.id + " keeps of these weights.", {});
  memory_.restore(memory, "the optimiser " + rule_.id);
  steps_ = steps;
}

double norm_of(Backend& backend, DType type, std::span<const DeviceArray> arrays, const std::vector<bool>& left_out) {
  double sum = 0.0;
  for (std::size_t i = 0; i < arrays.size(); ++i)
    if (left_out.empty() || !left_out[i]) sum += std::exp2(2.0 * backend.log2_norm(type, arrays[i].entries(), arrays[i].data(), 0));
  return std::sqrt(sum);
}

}  // namespace reclab
