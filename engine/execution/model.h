// SPDX-License-Identifier: GPL-3.0-or-later
// Model: an architecture with its hyper-parameters and its weights, the latter on a backend in a precision. It outlives the rollouts that
// refer to it, and its weights can be changed in place: the next forward of every rollout runs with the new ones.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "array/device_array.h"
#include "models/network.h"

namespace reclab {

class Model {
 public:
  struct Weight {
    std::string name, text;
    Shape shape;
    DeviceArray values;  ///< stays where it is for as long as the model lives

    std::int64_t entries() const { return count(shape); }
  };

  /// The architecture must outlive the model. `parameters` are those of its Network with these hyper-parameters, in the network's order.
  /// Throws Error for an entry that is not finite in this precision.
  Model(const Architecture& architecture, const Hyper& hyper, const Parameters& parameters, Backend& backend, DType real);
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  const Architecture& architecture() const { return architecture_; }
  const Hyper& hyper() const { return hyper_; }
  Backend& backend() const { return backend_; }
  DType real() const { return real_; }
  std::int64_t bytes() const;

  /// All weights, in the order of the network's parameters.
  const std::vector<Weight>& weights() const { return weights_; }
  /// The weights as they are now, read back as float64.
  Parameters parameters() const;
  /// Sets all weights, which are those of the model's network in its order. Throws Error for an entry that is not finite in this precision,
  /// and Cancelled; some weights are then the new ones.
  void set(const Parameters& parameters);
  /// Throws Error for a name that there is none of, for another number of values, and for one that is not finite in this precision.
  void set(std::string_view name, std::span<const double> values);

  /// Changes the weights, for optimisers: `change` is called with each weight, in order, and changes the entries of weight.values with
  /// operations of the backend. The next forward alone checks that they stay finite.
  using Change = std::function<void(std::size_t index, const Weight& weight)>;
  void update(const Change& change);
  /// w += factor * step for all weights; a step of the gradients with a negative factor is gradient descent. `steps` are in the order of
  /// the weights, in the model's precision, on its backend. A product and a sum, each rounded once.
  void add(double factor, std::span<const DeviceArray> steps);

  /// The number of changes of the weights so far: a backward belongs to a forward with the same weights.
  std::uint64_t changes() const { return changes_; }

 private:
  /// The values in the model's precision; throws Error where one is not finite.
  std::vector<char> checked(const Weight& weight, std::span<const double> values) const;

  const Architecture& architecture_;
  Hyper hyper_;
  Backend& backend_;
  DType real_;
  std::vector<Weight> weights_;
  DeviceArray product_;  // factor * step, in add()
  std::uint64_t changes_ = 0;
};

}  // namespace reclab
