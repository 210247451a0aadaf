// SPDX-License-Identifier: GPL-3.0-or-later
#include "learning/optimiser.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdio>
#include <numbers>
#include <utility>

#include "array/error.h"
#include "array/host.h"

namespace reclab {
namespace {

using Rule = OptimiserOptions::Rule;

template <class E, std::size_t N>
E named(const std::pair<E, const char*> (&all)[N], std::string_view name, const std::string& option, const std::string& what) {
  std::string known;
  for (const auto& [value, text] : all) {
    if (name == text) return value;
    known += (known.empty() ? "" : ", ") + std::string(text);
  }
  throw Error("there is no " + what + " \"" + std::string(name) + "\": choose " + known + ".",
              {.parameter = option, .value = std::string(name), .range = known});
}

constexpr std::pair<Rule, const char*> rules[] = {
    {Rule::sgd, "sgd"}, {Rule::rmsprop, "rmsprop"}, {Rule::adam, "adam"}, {Rule::adamw, "adamw"}};
constexpr std::pair<RateSchedule::Shape, const char*> shapes[] = {{RateSchedule::Shape::constant, "constant"},
                                                                  {RateSchedule::Shape::cosine, "cosine"}};

std::string first_name(const Rule rule) { return rule == Rule::adam || rule == Rule::adamw ? "m/" : "momentum/"; }

}  // namespace

const char* to_string(Rule rule) { return std::ranges::find(rules, rule, &std::pair<Rule, const char*>::first)->second; }
Rule optimiser_rule(std::string_view name) { return named(rules, name, "optimiser", "optimiser"); }
const char* to_string(RateSchedule::Shape shape) {
  return std::ranges::find(shapes, shape, &std::pair<RateSchedule::Shape, const char*>::first)->second;
}
RateSchedule::Shape schedule_shape(std::string_view name) { return named(shapes, name, "schedule", "schedule"); }

void check(const OptimiserOptions& options) {
  const auto within = [](const std::string& name, double value, bool fits, const std::string& range) {
    char text[32];
    std::snprintf(text, sizeof text, "%g", value);
    if (!fits)
      throw Error(name + " = " + text + " is out of range: choose " + range + ".", {.parameter = name, .value = text, .range = range});
  };
  const auto share = [&](const std::string& name, double value) { within(name, value, value >= 0.0 && value < 1.0, "from 0 to below 1"); };
  share("momentum", options.momentum);
  share("smoothing", options.smoothing);
  share("beta1", options.beta1);
  share("beta2", options.beta2);
  within("epsilon", options.epsilon, options.epsilon > 0.0 && std::isfinite(options.epsilon), "a number above 0");
  within("weight-decay", options.weight_decay, options.weight_decay >= 0.0 && std::isfinite(options.weight_decay), "0 or more");
  if (options.nesterov && !(options.rule == Rule::sgd && options.momentum > 0.0))
    throw Error("nesterov is a kind of momentum of sgd: choose the optimiser sgd and a momentum above 0.", {.parameter = "nesterov"});
}

double RateSchedule::at(std::int64_t step) const {
  if (step < warm_up) return rate * static_cast<double>(step + 1) / static_cast<double>(warm_up);
  if (shape == Shape::constant) return rate;
  if (step >= steps) return least;
  const double share = static_cast<double>(step - warm_up) / static_cast<double>(steps - warm_up);
  return least + (rate - least) * (1.0 + std::cos(std::numbers::pi * share)) / 2.0;
}

/// The backend's operations on all entries of a weight. No operand is where the result goes.
class Optimiser::Arithmetic {
 public:
  Arithmetic(Backend& backend, DType type, std::int64_t n) : backend_(backend), type_(type), n_(n) {
    shape_.rank = 1;
    shape_.size[0] = shape_.elements = n;
    shape_.stride_x[0] = shape_.stride_y[0] = 1;
  }
  void scale(const DeviceArray& x, double factor, DeviceArray& to, double plus = 0.0) const {
    backend_.unary(Unary::affine, type_, n_, x.data(), to.data(), factor, plus);
  }
  void map(Unary op, const DeviceArray& x, DeviceArray& to) const { backend_.unary(op, type_, n_, x.data(), to.data(), 0.0, 0.0); }
  void combine(Binary op, const DeviceArray& x, const DeviceArray& y, DeviceArray& to) const {
    backend_.binary(op, type_, shape_, x.data(), y.data(), to.data());
  }
  void add_to(const DeviceArray& x, const DeviceArray& to) const { backend_.add_scaled(type_, n_, 0, x.data(), to.data(), true); }

 private:
  Backend& backend_;
  DType type_;
  std::int64_t n_;
  Broadcast shape_;
};

Optimiser::Optimiser(Model& model, const OptimiserOptions& options, std::vector<bool> frozen)
    : model_(model), options_(options), frozen_(std::move(frozen)) {
  check(options);
  const auto& weights = model.weights();
  if (frozen_.empty()) frozen_.resize(weights.size());
  assert(frozen_.size() == weights.size());
  Backend& backend = model.backend();
  const bool averages = options.rule == Rule::adam || options.rule == Rule::adamw;
  first_.resize(weights.size());
  second_.resize(weights.size());
  std::int64_t largest = 1;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    if (frozen_[i]) continue;
    const std::int64_t n = weights[i].entries();
    largest = std::max(largest, n);
    const auto zeros = [&](DeviceArray& array) {
      array.resize(backend, model.real(), n);
      backend.zero(array.data(), array.bytes());
    };
    if (averages || options.momentum > 0.0) zeros(first_[i]);
    if (averages || options.rule == Rule::rmsprop) zeros(second_[i]);
  }
  for (DeviceArray* array : {&a_, &b_, &c_, &d_}) array->resize(backend, model.real(), largest);
}

std::int64_t Optimiser::bytes() const {
  std::size_t total = a_.bytes() + b_.bytes() + c_.bytes() + d_.bytes();
  for (const auto* arrays : {&first_, &second_, &kept_first_, &kept_second_})
    for (const DeviceArray& array : *arrays) total += array.bytes();
  return static_cast<std::int64_t>(total);
}

void Optimiser::step(double rate, std::span<const DeviceArray> gradients) {
  assert(gradients.size() == model_.weights().size());
  ++steps_;
  const auto& o = options_;
  const auto t = static_cast<double>(steps_);
  model_.update([&](std::size_t i, const Model::Weight& weight) {
    if (frozen_[i]) return;
    const Arithmetic on(model_.backend(), model_.real(), weight.entries());
    const DeviceArray &w = weight.values, *g = &gradients[i];
    /// m = keep m + new_share x
    const auto average = [&](DeviceArray& m, double keep, const DeviceArray& x, double new_share) {
      on.scale(m, keep, c_);
      on.scale(x, new_share, m);
      on.add_to(c_, m);
    };
    if (o.weight_decay > 0.0 && o.rule == Rule::adamw) {
      on.scale(w, -rate * o.weight_decay, a_);
      on.add_to(a_, w);
    } else if (o.weight_decay > 0.0) {
      on.scale(w, o.weight_decay, d_);
      on.add_to(*g, d_);
      g = &d_;
    }
    if (o.rule == Rule::adam || o.rule == Rule::adamw) {
      average(first_[i], o.beta1, *g, 1.0 - o.beta1);
      on.map(Unary::square, *g, a_);
      average(second_[i], o.beta2, a_, 1.0 - o.beta2);
      on.map(Unary::sqrt, second_[i], a_);
      on.scale(a_, 1.0 / std::sqrt(1.0 - std::pow(o.beta2, t)), b_, o.epsilon);
      on.combine(Binary::divide, first_[i], b_, a_);
      on.scale(a_, -rate / (1.0 - std::pow(o.beta1, t)), b_);
      on.add_to(b_, w);
      return;
    }
    if (o.rule == Rule::rmsprop) {
      on.map(Unary::square, *g, a_);
      average(second_[i], o.smoothing, a_, 1.0 - o.smoothing);
      on.map(Unary::sqrt, second_[i], a_);
      on.scale(a_, 1.0, b_, o.epsilon);
      on.combine(Binary::divide, *g, b_, a_);
      g = &a_;
    }
    if (o.momentum > 0.0) {
      average(first_[i], o.momentum, *g, 1.0);
      if (o.nesterov) {
        on.scale(first_[i], o.momentum, b_);
        on.add_to(*g, b_);
      }
      g = o.nesterov ? &b_ : &first_[i];
    }
    on.scale(*g, -rate, c_);
    on.add_to(c_, w);
  });
}

void Optimiser::keep() {
  const auto copy = [&](const std::vector<DeviceArray>& from, std::vector<DeviceArray>& to) {
    to.resize(from.size());
    for (std::size_t i = 0; i < from.size(); ++i)
      if (from[i]) model_.backend().copy(to[i].resize(model_.backend(), model_.real(), from[i].entries()), from[i].data(), from[i].bytes());
  };
  copy(first_, kept_first_);
  copy(second_, kept_second_);
  kept_steps_ = steps_;
}

void Optimiser::go_back() {
  assert(kept_first_.size() == first_.size());
  const auto copy = [&](const std::vector<DeviceArray>& from, const std::vector<DeviceArray>& to) {
    for (std::size_t i = 0; i < from.size(); ++i)
      if (from[i]) model_.backend().copy(to[i].data(), from[i].data(), from[i].bytes());
  };
  copy(kept_first_, first_);
  copy(kept_second_, second_);
  steps_ = kept_steps_;
}

std::map<std::string, std::int64_t> Optimiser::memory_entries() const {
  std::map<std::string, std::int64_t> all;
  for (std::size_t i = 0; i < first_.size(); ++i) {
    const Model::Weight& weight = model_.weights()[i];
    if (first_[i]) all.emplace(first_name(options_.rule) + weight.name, weight.entries());
    if (second_[i]) all.emplace("v/" + weight.name, weight.entries());
  }
  return all;
}

std::map<std::string, std::vector<double>> Optimiser::memory() const {
  std::map<std::string, std::vector<double>> all;
  for (std::size_t i = 0; i < first_.size(); ++i) {
    const Model::Weight& weight = model_.weights()[i];
    const auto read = [&](const DeviceArray& array) { return to_double(model_.backend(), model_.real(), array.data(), weight.entries()); };
    if (first_[i]) all.emplace(first_name(options_.rule) + weight.name, read(first_[i]));
    if (second_[i]) all.emplace("v/" + weight.name, read(second_[i]));
  }
  return all;
}

void Optimiser::restore(std::int64_t steps, const std::map<std::string, std::vector<double>>& memory) {
  assert(steps >= 0);
  std::size_t used = 0;
  const auto find = [&](const DeviceArray& array, const std::string& name, std::int64_t n) -> const std::vector<double>* {
    if (!array) return nullptr;
    const auto found = memory.find(name);
    if (found == memory.end())
      throw Error("what the optimiser " + std::string(to_string(options_.rule)) + " keeps of " + name + " is missing.", {.place = name});
    if (std::ssize(found->second) != n)
      throw Error("what the optimiser keeps of " + name + " has " + std::to_string(found->second.size()) + " numbers for a weight of " +
                      std::to_string(n) + ".",
                  {.place = name});
    ++used;
    return &found->second;
  };
  const auto each = [&](const auto& f) {
    for (std::size_t i = 0; i < first_.size(); ++i) {
      const Model::Weight& weight = model_.weights()[i];
      f(first_[i], first_name(options_.rule) + weight.name, weight.entries());
      f(second_[i], "v/" + weight.name, weight.entries());
    }
  };
  each([&](DeviceArray& array, const std::string& name, std::int64_t n) {
    find(array, name, n);
  });  // all of them are looked at before one is changed
  if (used != memory.size())
    throw Error("there is more than the optimiser " + std::string(to_string(options_.rule)) + " keeps of these weights.", {});
  each([&](DeviceArray& array, const std::string& name, std::int64_t n) {
    if (const auto* values = find(array, name, n)) {
      const auto bytes = narrowed(model_.real(), *values);
      model_.backend().upload(array.data(), bytes.data(), bytes.size());
    }
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
