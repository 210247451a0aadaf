// SPDX-License-Identifier: GPL-3.0-or-later
#include "learning/optimiser_rule.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "array/error.h"
#include "learning/find_listed.h"

namespace reclab {
namespace {

constexpr double unbounded = std::numeric_limits<double>::infinity();

void check_range(const Field& field, double value) {
  const HyperSpec& row = field.row;
  if ((field.above_low ? value > row.low : value >= row.low) && value < row.high) return;
  std::string name = row.key;
  std::ranges::replace(name, '_', '-');
  const std::string low = as_text(row.low);
  const std::string range = row.high < unbounded ? "from " + low + " to below " + as_text(row.high)
                            : field.above_low    ? "a number above " + low
                                                 : low + " or more";
  throw Error(name + " = " + as_text(value) + " is out of range: choose " + range + ".",
              {.parameter = name, .value = as_text(value), .range = range});
}

}  // namespace

const HyperValue& OptimiserOptions::value(std::string_view key) const {
  if (const auto given = values.find(key); given != values.end()) return given->second;
  return std::ranges::find(optimiser_fields(), key, [](const Field& field) { return std::string_view(field.row.key); })->row.standard;
}

void OptimiserOptions::set(const std::string& key, const HyperValue& to) {
  values.erase(key);
  if (value(key) != to) values.emplace(key, to);
}

WeightStep::WeightStep(Backend& backend, DType type, std::int64_t entries) : backend_(backend), type_(type), n_(entries) {
  shape_.rank = 1;
  shape_.size[0] = shape_.elements = n_;
  shape_.stride_x[0] = shape_.stride_y[0] = 1;
}
void WeightStep::scale(const DeviceArray& x, double factor, DeviceArray& to, double plus) const {
  backend_.unary(Unary::affine, type_, n_, x.data(), to.data(), factor, plus);
}
void WeightStep::map(Unary op, const DeviceArray& x, DeviceArray& to) const {
  backend_.unary(op, type_, n_, x.data(), to.data(), 0.0, 0.0);
}
void WeightStep::combine(Binary op, const DeviceArray& x, const DeviceArray& y, DeviceArray& to) const {
  backend_.binary(op, type_, shape_, x.data(), y.data(), to.data());
}
void WeightStep::add_to(const DeviceArray& x, const DeviceArray& to) const { backend_.add_scaled(type_, n_, 0, x.data(), to.data(), true); }
void WeightStep::average(DeviceArray& m, double keep, const DeviceArray& x, double new_share) const {
  scale(m, keep, scratch[2]);
  scale(x, new_share, m);
  add_to(scratch[2], m);
}
void WeightStep::descend(const DeviceArray& direction, double length, DeviceArray& by) const {
  scale(direction, -length, by);
  add_to(by, *weight);
}
const DeviceArray& WeightStep::decayed_gradient() const {
  const double decay = options->real("weight_decay");
  if (!(decay > 0.0)) return *gradient;
  scale(*weight, decay, scratch[3]);
  add_to(*gradient, scratch[3]);
  return scratch[3];
}

const OptimiserRule& optimiser_rule(std::string_view id) { return find_listed(optimiser_rules(), id, "optimiser", "optimiser"); }

bool has_field(const OptimiserRule& rule, std::string_view key) {
  return std::ranges::any_of(rule.fields, [&](const Field& field) { return field.row.key == key; });
}

const std::vector<Field>& optimiser_fields() {
  static const std::vector<Field> all = [] {
    std::vector<Field> fields;
    for (const OptimiserRule& rule : optimiser_rules())
      for (const Field& field : rule.fields)
        if (std::ranges::none_of(fields, [&](const Field& other) { return other.row.key == field.row.key; })) fields.push_back(field);
    return fields;
  }();
  return all;
}

void check(const OptimiserOptions& options) {
  for (const Field& field : optimiser_fields())
    if (field.row.kind == HyperKind::real) check_range(field, options.real(field.row.key));
  for (const OptimiserRule& rule : optimiser_rules())
    if (rule.check) rule.check(options);
}

Field momentum_field() {
  return {.row = hyper_real("momentum", {}, 0.0, 0.0, 1.0, "Of sgd and rmsprop"),
          .form = {"momentum", "Of SGD and RMSProp: the share of the last change that goes on", 0, 0.999999, {}}};
}
Field epsilon_field() {
  return {.row = hyper_real("epsilon", {}, 1e-8, 0.0, unbounded, "Added to the root of that average"), .above_low = true, .usual = "1e-8"};
}
Field weight_decay_field() {
  return {.row = hyper_real("weight_decay", {}, 0.0, 0.0, unbounded, "0 for none"),
          .form = {"weight decay", "Pulls weights towards 0: added to the gradient, or with AdamW to the weights themselves", 0, 1e3, {}}};
}

}  // namespace reclab
