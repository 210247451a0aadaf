// SPDX-License-Identifier: GPL-3.0-or-later
// Optimisers, with the conventions of torch.optim, and how a rate of learning goes over training. Everything is done with operations of the
// model's backend, where its weights lie.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "array/device_array.h"
#include "execution/model.h"

namespace reclab {

struct OptimiserOptions {
  /// sgd: w -= rate * d, d = g, or with momentum d = m, m = momentum m + g (the first m is g), or by Nesterov d = g + momentum m.
  /// rmsprop (T. Tieleman, G. Hinton, 2012): v = smoothing v + (1 - smoothing) g^2, d = g / (sqrt(v) + epsilon), with momentum m = momentum
  /// m + d. adam (D. P. Kingma, J. Ba, ICLR 2015): w -= rate m' / (sqrt(v') + epsilon), m' and v' the averages of g and g^2 over what they
  /// weigh so far. adamw (I. Loshchilov, F. Hutter, ICLR 2019): adam, after w *= 1 - rate * weight_decay.
  enum class Rule : std::uint8_t { sgd, rmsprop, adam, adamw };
  Rule rule = Rule::adam;
  double momentum = 0.0;
  bool nesterov = false;
  double smoothing = 0.99;            ///< of rmsprop, alpha in torch
  double beta1 = 0.9, beta2 = 0.999;  ///< of adam and adamw
  double epsilon = 1e-8;
  double weight_decay = 0.0;  ///< added to the gradient times the weight; of adamw it acts on the weight itself

  bool operator==(const OptimiserOptions&) const = default;
};
const char* to_string(OptimiserOptions::Rule rule);
/// Throws Error naming those that there are.
OptimiserOptions::Rule optimiser_rule(std::string_view name);
/// Throws Error for a number that is out of its range, naming it.
void check(const OptimiserOptions& options);

/// The rate of learning at each step, counted from 0.
struct RateSchedule {
  enum class Shape : std::uint8_t { constant, cosine };
  double rate = 1e-3;  ///< the largest
  Shape shape = Shape::constant;
  std::int64_t warm_up = 0;  ///< the rate rises in so many equal parts to the largest: rate (step + 1) / warm_up
  std::int64_t steps =
      0;  ///< cosine: where the rate has become `least`: least + (rate - least) (1 + cos(pi (step - warm_up) / (steps - warm_up))) / 2
  double least = 0.0;

  double at(std::int64_t step) const;
  bool operator==(const RateSchedule&) const = default;
};
const char* to_string(RateSchedule::Shape shape);
RateSchedule::Shape schedule_shape(std::string_view name);

class Optimiser {
 public:
  /// The model must outlive it. Weights that are frozen keep their bits; none where the list is empty, else one entry a weight.
  Optimiser(Model& model, const OptimiserOptions& options, std::vector<bool> frozen = {});

  /// Changes the weights by a step; `gradients` are in the order of the model's weights, in its precision, on its backend.
  void step(double rate, std::span<const DeviceArray> gradients);
  std::int64_t steps() const { return steps_; }
  const OptimiserOptions& options() const { return options_; }
  std::int64_t bytes() const;

  /// Copies what it keeps to where it lies, for go_back(), which takes it back to there.
  void keep();
  void go_back();

  /// The arrays of memory(), and how many numbers each has.
  std::map<std::string, std::int64_t> memory_entries() const;
  /// What it keeps between steps, by "m/<weight>" or "momentum/<weight>", and "v/<weight>", as float64.
  std::map<std::string, std::vector<double>> memory() const;
  /// As it was after so many steps. Throws Error where the arrays are not those of this optimiser and model.
  void restore(std::int64_t steps, const std::map<std::string, std::vector<double>>& memory);

 private:
  class Arithmetic;
  Model& model_;
  OptimiserOptions options_;
  std::vector<bool> frozen_;
  std::int64_t steps_ = 0, kept_steps_ = 0;
  std::vector<DeviceArray> kept_first_, kept_second_;  // of keep()
  std::vector<DeviceArray> first_, second_;  // averages of g (or what momentum keeps) and of g^2, one a weight; empty where there is none
  DeviceArray a_, b_, c_, d_;                // of the largest weight
};

/// sqrt of the sum of all squares, in float64. Waits. Not finite where an entry is not.
double norm_of(Backend& backend, DType type, std::span<const DeviceArray> arrays, const std::vector<bool>& left_out = {});

}  // namespace reclab
