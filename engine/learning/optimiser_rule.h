// SPDX-License-Identifier: GPL-3.0-or-later
// Optimisers: each is a row of a table that the build writes from the files of learning/optimisers/, each of which defines `OptimiserRule
// <id>()`. A new one needs nothing else: its options are on the command line, in the window and in kept files.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "array/backend.h"
#include "array/device_array.h"
#include "parameters/field.h"
#include "parameters/hyper.h"

namespace reclab {

/// An optimiser and its options.
struct OptimiserOptions {
  std::string rule = "adam";
  std::map<std::string, HyperValue, std::less<>> values{};  ///< of options, by key; one that is not there has its default

  double real(std::string_view key) const { return std::get<double>(value(key)); }
  bool flag(std::string_view key) const { return std::get<bool>(value(key)); }
  const HyperValue& value(std::string_view key) const;
  void set(const std::string& key, const HyperValue& value);
  bool operator==(const OptimiserOptions&) const = default;
};

/// One step of one weight. Every array has as many entries as the weight, in the model's precision, where the weight lies.
class WeightStep {
 public:
  WeightStep(Backend& backend, DType type, std::int64_t entries);

  const OptimiserOptions* options = nullptr;
  double rate = 0.0;
  std::int64_t number = 1;  ///< of the step, counted from 1
  const DeviceArray* weight = nullptr;
  const DeviceArray* gradient = nullptr;
  std::span<DeviceArray> kept;     ///< as OptimiserRule::kept names them
  std::span<DeviceArray> scratch;  ///< four, with room for the weight

  // No operand may be the result's array.
  void scale(const DeviceArray& x, double factor, DeviceArray& to, double plus = 0.0) const;  ///< to = factor x + plus
  void map(Unary op, const DeviceArray& x, DeviceArray& to) const;
  void combine(Binary op, const DeviceArray& x, const DeviceArray& y, DeviceArray& to) const;
  void add_to(const DeviceArray& x, const DeviceArray& to) const;                           ///< to += x
  void average(DeviceArray& m, double keep, const DeviceArray& x, double new_share) const;  ///< m = keep m + new_share x; by scratch[2]
  void descend(const DeviceArray& direction, double length, DeviceArray& by) const;         ///< weight -= length direction
  /// The gradient with `weight_decay` times the weight added; in scratch[3] where that is not 0.
  const DeviceArray& decayed_gradient() const;

 private:
  Backend& backend_;
  DType type_;
  std::int64_t n_;
  Broadcast shape_;
};

struct OptimiserRule {
  std::string id{};     ///< the name of its file
  std::string title{};  ///< "RMSProp"
  int year = 0;         ///< of its paper: the order in which they are listed
  std::vector<Field>
      fields{};  ///< its options: flags, or real numbers from `low` to below `high`; one that another has too is the same row
  /// The arrays that are kept between steps, one of each a weight: "m", "v".
  std::vector<std::string> (*kept)(const OptimiserOptions&) = nullptr;
  void (*step)(const WeightStep&) = nullptr;
  /// Throws Error for options that do not go together, checked for every choice of optimiser; may be null.
  void (*check)(const OptimiserOptions&) = nullptr;
};

/// All, the oldest first.
const std::vector<OptimiserRule>& optimiser_rules();
/// Throws Error naming those that there are.
const OptimiserRule& optimiser_rule(std::string_view id);
/// The options of all, each once.
const std::vector<Field>& optimiser_fields();
bool has_field(const OptimiserRule& rule, std::string_view key);
/// Throws Error for a number that is out of its range, naming it, and for options that do not go together.
void check(const OptimiserOptions& options);

// Options that several optimisers have.
Field momentum_field();
Field epsilon_field();
Field weight_decay_field();

}  // namespace reclab
