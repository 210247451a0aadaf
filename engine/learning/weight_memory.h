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

/// Arrays that learning keeps from one change of the weights to the next: an optimiser's moments, a rule's running mean. Those of a weight
/// have its shape and precision and lie on its backend; others are float64 on the host.
class WeightMemory {
 public:
  /// Zeros, one array of each name for each weight that is not frozen. The model must outlive it.
  WeightMemory(Model& model, std::vector<std::string> names, const std::vector<bool>& frozen);

  /// Those of a weight, in the order of the names; empty where it is frozen.
  std::span<DeviceArray> of(std::size_t weight) { return arrays_[weight]; }
  /// One more, of no weight, zeros; it stays where it is.
  std::vector<double>& add(std::string name, std::size_t entries);
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
  /// Calls f for each array of a weight and its name, in the order of the weights and of the names.
  template <class F>
  void each(const F& f) const;

  Model& model_;
  std::vector<std::string> names_;
  std::vector<std::vector<DeviceArray>> arrays_, before_;  // [weight][name]; before_: of keep()
  std::map<std::string, std::vector<double>> own_, own_before_;
};

}  // namespace reclab
