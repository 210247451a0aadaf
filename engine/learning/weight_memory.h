// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "array/device_array.h"
#include "execution/model.h"

namespace reclab {

/// Arrays that learning keeps of the weights from one change to the next: an optimiser's moments, a rule's running mean. Each has the shape
/// and the precision of its weight and lies on its backend.
class WeightMemory {
 public:
  /// Zeros, one array of each name for each weight that is not frozen. The model must outlive it.
  WeightMemory(Model& model, std::vector<std::string> names, const std::vector<bool>& frozen);

  /// Those of a weight, in the order of the names; empty where it is frozen.
  std::span<DeviceArray> of(std::size_t weight) { return arrays_[weight]; }
  std::int64_t bytes() const;

  /// Copies them on the backend, for go_back(), which restores them.
  void keep();
  void go_back();

  /// By "m/<weight>": how many numbers each has; and all of them, as float64.
  std::map<std::string, std::int64_t> entries() const;
  std::map<std::string, std::vector<double>> values() const;
  /// Sets all; arrays of other names are passed over. Throws Error, naming the owner, where one is missing or has another number of
  /// entries; none is changed then.
  void restore(const std::map<std::string, std::vector<double>>& values, std::string_view owner);

 private:
  /// Calls f for each array and its name, in the order of the weights and of the names.
  template <class F>
  void each(const F& f) const;

  Model& model_;
  std::vector<std::string> names_;
  std::vector<std::vector<DeviceArray>> arrays_, before_;  // [weight][name]; before_: of keep()
};

}  // namespace reclab
