// SPDX-License-Identifier: GPL-3.0-or-later
#include "learning/optimiser.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "array/demand.h"
#include "array/error.h"
#include "array/host.h"

namespace reclab {

Optimiser::Optimiser(Model& model, const OptimiserOptions& options, std::vector<bool> frozen)
    : model_(model), options_(options), rule_(optimiser_rule(options.rule)), names_(rule_.kept(options)), frozen_(std::move(frozen)) {
  check(options);
  const auto& weights = model.weights();
  if (frozen_.empty()) frozen_.resize(weights.size());
  RECLAB_DEMAND(frozen_.size() == weights.size());
  Backend& backend = model.backend();
  kept_.resize(weights.size());
  std::int64_t largest = 1;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (frozen_[i]) continue;
    largest = std::max(largest, weights[i].entries());
    for (std::size_t k = 0; k < names_.size(); ++k) {
      DeviceArray& array = kept_[i].emplace_back(backend, model.real(), weights[i].entries());
      backend.zero(array.data(), array.bytes());
    }
  }
  for (int k = 0; k < 4; ++k) scratch_.emplace_back(backend, model.real(), largest);
}

std::int64_t Optimiser::bytes() const {
  std::size_t total = 0;
  for (const DeviceArray& array : scratch_) total += array.bytes();
  for (const auto* all : {&kept_, &before_})
    for (const auto& arrays : *all)
      for (const DeviceArray& array : arrays) total += array.bytes();
  return static_cast<std::int64_t>(total);
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
    step.kept = kept_[i];
    step.scratch = scratch_;
    rule_.step(step);
  });
}

void Optimiser::keep() {
  before_.resize(kept_.size());
  for (std::size_t i = 0; i < kept_.size(); ++i) {
    before_[i].resize(kept_[i].size());
    for (std::size_t k = 0; k < kept_[i].size(); ++k) {
      const DeviceArray& from = kept_[i][k];
      model_.backend().copy(before_[i][k].resize(model_.backend(), model_.real(), from.entries()), from.data(), from.bytes());
    }
  }
  kept_steps_ = steps_;
}

void Optimiser::go_back() {
  RECLAB_DEMAND(before_.size() == kept_.size());
  for (std::size_t i = 0; i < kept_.size(); ++i)
    for (std::size_t k = 0; k < kept_[i].size(); ++k) model_.backend().copy(kept_[i][k].data(), before_[i][k].data(), kept_[i][k].bytes());
  steps_ = kept_steps_;
}

template <class F>
void Optimiser::each_kept(const F& f) const {
  for (std::size_t i = 0; i < kept_.size(); ++i)
    for (std::size_t k = 0; k < kept_[i].size(); ++k) f(kept_[i][k], names_[k] + "/" + model_.weights()[i].name);
}

std::map<std::string, std::int64_t> Optimiser::memory_entries() const {
  std::map<std::string, std::int64_t> all;
  each_kept([&](const DeviceArray& array, const std::string& name) { all.emplace(name, array.entries()); });
  return all;
}

std::map<std::string, std::vector<double>> Optimiser::memory() const {
  std::map<std::string, std::vector<double>> all;
  each_kept([&](const DeviceArray& array, const std::string& name) {
    all.emplace(name, to_double(model_.backend(), model_.real(), array.data(), array.entries()));
  });
  return all;
}

void Optimiser::restore(std::int64_t steps, const std::map<std::string, std::vector<double>>& memory) {
  RECLAB_DEMAND(steps >= 0);
  std::size_t used = 0;
  each_kept([&](const DeviceArray& array, const std::string& name) {  // all of them are looked at before one is changed
    const auto found = memory.find(name);
    if (found == memory.end()) throw Error("what the optimiser " + rule_.id + " keeps of " + name + " is missing.", {.place = name});
    if (std::ssize(found->second) != array.entries())
      throw Error("what the optimiser keeps of " + name + " has " + std::to_string(found->second.size()) + " numbers for a weight of " +
                      std::to_string(array.entries()) + ".",
                  {.place = name});
    ++used;
  });
  if (used != memory.size()) throw Error("there is more than the optimiser " + rule_.id + " keeps of these weights.", {});
  each_kept([&](const DeviceArray& array, const std::string& name) {
    const auto bytes = narrowed(model_.real(), memory.at(name));
    model_.backend().upload(array.data(), bytes.data(), bytes.size());
  });
  steps_ = steps;
}

double norm_of(Backend& backend, DType type, std::span<const DeviceArray> arrays, const std::vector<bool>& left_out) {
  double sum = 0.0;
  for (std::size_t i = 0; i < arrays.size(); ++i)
    if (left_out.empty() || !left_out[i]) sum += std::exp2(2.0 * backend.log2_norm(type, arrays[i].entries(), arrays[i].data(), 0));
  return std::sqrt(sum);
}

}  // namespace reclab
