// SPDX-License-Identifier: GPL-3.0-or-later
// Online learning rules as they were meant: the influence of the weights on the state, or its estimate, goes on for ever, and the weights
// change as it goes. The signs of a step depend on seed and step alone, so a place in them is a number.
#include <algorithm>
#include <cmath>

#include "array/error.h"
#include "learning/online/influence.h"
#include "streams/rules/stream_rule.h"

namespace reclab {
namespace {

constexpr double most_numbers = 1 << 28;  // in float64: 2 GiB

class StreamOnline final : public StreamRule {
 public:
  explicit StreamOnline(const StreamRuleSetup& setup)
      : model_(setup.model),
        form_(setup.form),
        seed_(setup.options.seed),
        step_(setup.model, form_.width(), form_.outputs()),
        state_(step_.start()) {
    const LearningRuleInfo& info = learning_rule(setup.options.rule);
    TrainingOptions options = setup.options;
    options.advance = 0;  // of a sequence that ends
    const OnlineMethod method = info.online({model_, options, form_.width(), form_.outputs()});
    numbers_ = method.numbers;
    if (numbers_ > most_numbers)
      throw Error(info.title + " keeps the derivatives of " + std::to_string(step_.states()) + " entries of the state by " +
                      std::to_string(step_.weights()) + " weights, which is too much: choose a narrower model, or another rule.",
                  {.parameter = "rule", .value = info.id});
    influence_ = method.influence();
    if (influence_->rehearses())
      throw Error(info.title + " goes over a sequence twice, and a stream passes once: choose another rule.",
                  {.parameter = "rule", .value = info.id});
    influence_->start([this] { return signs_(); });
    for (const Model::Weight& weight : model_.weights()) gradients_.emplace_back(model_.backend(), model_.real(), weight.entries());
  }

  bool take(const StreamBlock& block, std::int64_t from, std::int64_t steps, std::span<double> outputs, bool learn) override {
    const auto counted = std::count(block.counts.begin() + from, block.counts.begin() + from + steps, true);
    learn = learn && counted > 0;
    std::vector<double> total(step_.weights());
    for (std::int64_t t = from; t < from + steps; ++t) {
      step_.evaluate(state_, std::span(block.input).subspan(static_cast<std::size_t>(t * form_.width()), step_.inputs()));
      const auto finite = [](double x) { return std::isfinite(x); };
      if (!std::ranges::all_of(step_.next(), finite) || !std::ranges::all_of(step_.output(), finite))
        throw TrainingDiverged(block.first + t, "the state became non-finite", "state");
      std::ranges::copy(step_.output(), outputs.begin() + (t - from) * form_.outputs());
      signs_ = signs_of(seed_, block.first + t, 0);
      if (learn && block.counts[static_cast<std::size_t>(t)])
        influence_->credit(step_, adjoint(block, t, 1.0 / static_cast<double>(counted)), true, total);
      influence_->advance(step_, true);
      state_ = step_.next();
    }
    if (!learn) return false;
    upload_gradients(model_, total, gradients_);
    return true;
  }
  std::span<const DeviceArray> gradients() const override { return gradients_; }
  void keep(StreamState& state) override {
    state.same("state", state_);
    influence_->keep([&](const std::string& name, std::vector<double>& values) { state.same("influence/" + name, values); });
  }
  std::int64_t bytes() const override {
    double total = numbers_ * sizeof(double);
    for (const DeviceArray& array : gradients_) total += static_cast<double>(array.bytes());
    return static_cast<std::int64_t>(total);
  }

 private:
  /// Of the step's loss by the outputs, times `weight`.
  std::vector<double> adjoint(const StreamBlock& block, std::int64_t t, double weight) const {
    const bool classes = form_.target_kind == TargetKind::classify;
    std::vector<double> targets(block.target.begin() + t * form_.target_width, block.target.begin() + (t + 1) * form_.target_width),
        slope(step_.outputs());
    double value = 0.0;
    cpu_backend().loss(DType::f64, classes ? LossTerm::cross_entropy : LossTerm::squared_error, {1, 1, form_.outputs()},
                       step_.output().data(), targets.data(), &weight, &value, slope.data());
    return slope;
  }

  Model& model_;
  const StreamForm form_;
  std::uint64_t seed_;
  StepMap step_;
  std::vector<double> state_;
  std::unique_ptr<Influence> influence_;
  Signs signs_;
  double numbers_ = 0.0;
  std::vector<DeviceArray> gradients_;
};

}  // namespace

std::unique_ptr<StreamRule> stream_online(const StreamRuleSetup& setup) { return std::make_unique<StreamOnline>(setup); }

}  // namespace reclab
