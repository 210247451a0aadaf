// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "array/device_array.h"
#include "execution/model.h"
#include "learning/optimiser_rule.h"
#include "learning/weight_memory.h"

namespace reclab {

/// Changes the weights of a model by gradients, with the conventions of torch.optim. Everything is done with operations of the model's
/// backend, where its weights lie.
class Optimiser {
 public:
  /// The model must outlive it. Weights that are frozen keep their bits; none where the list is empty, else one entry a weight.
  Optimiser(Model& model, const OptimiserOptions& options, std::vector<bool> frozen = {});

  /// Changes the weights by a step; `gradients` are in the order of the model's weights, in its precision, on its backend.
  void step(double rate, std::span<const DeviceArray> gradients);
  std::int64_t steps() const { return steps_; }
  const OptimiserOptions& options() const { return options_; }
  std::int64_t bytes() const;

  /// Copies its arrays on the backend, for go_back(), which restores them.
  void keep();
  void go_back();

  /// The arrays of memory(), and how many numbers each has.
  std::map<std::string, std::int64_t> memory_entries() const { return memory_.entries(); }
  /// The arrays that it keeps between steps, by "m/<weight>" or "momentum/<weight>", and "v/<weight>", as float64.
  std::map<std::string, std::vector<double>> memory() const { return memory_.values(); }
  /// Sets the optimiser as it was after so many steps. Throws Error where the arrays are not those of this optimiser and model.
  void restore(std::int64_t steps, const std::map<std::string, std::vector<double>>& memory);

 private:
  Model& model_;
  OptimiserOptions options_;
  const OptimiserRule& rule_;
  std::vector<bool> frozen_;
  WeightMemory memory_;
  std::int64_t steps_ = 0, kept_steps_ = 0;
  std::vector<DeviceArray> scratch_;  // of the largest weight
};

/// sqrt of the sum of all squares, in float64. Waits. Not finite where an entry is not.
double norm_of(Backend& backend, DType type, std::span<const DeviceArray> arrays, const std::vector<bool>& left_out = {});

}  // namespace reclab
