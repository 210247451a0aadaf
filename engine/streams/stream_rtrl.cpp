// SPDX-License-Identifier: GPL-3.0-or-later
// Real-time recurrent learning (R. J. Williams, D. Zipser, Neural Computation 1(2), 1989) as it was meant: the derivatives of the state by
// the weights, P[t] = J[t] P[t-1] + D[t], go on for ever, and the weights change as they go.
#include <algorithm>
#include <cmath>

#include "array/error.h"
#include "array/host.h"
#include "execution/step_map.h"
#include "learning/learning_rule.h"
#include "streams/stream_rule.h"

namespace reclab {
namespace {

constexpr double most_numbers = 1 << 28;  // of P, twice, in float64: 4 GiB

class StreamRtrl final : public StreamRule {
 public:
  explicit StreamRtrl(const StreamRuleSetup& setup)
      : model_(setup.model), form_(setup.form), step_(setup.model, form_.width(), form_.outputs()), state_(step_.start()) {
    if (2.0 * static_cast<double>(step_.states()) * static_cast<double>(step_.weights()) > most_numbers)
      throw Error("Real-time recurrent learning keeps the derivatives of " + std::to_string(step_.states()) + " entries of the state by " +
                      std::to_string(step_.weights()) + " weights, which is too much: choose a narrower model.",
                  {.parameter = "rule", .value = "rtrl"});
    influence_.resize(step_.states() * step_.weights());
    moved_.resize(influence_.size());
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
      if (learn && block.counts[static_cast<std::size_t>(t)]) {
        step_.pull_back({}, adjoint(block, t, 1.0 / static_cast<double>(counted)));
        add(total, 1.0, step_.weight_adjoint());
        for (std::size_t j = 0; j < step_.states(); ++j) add(total, step_.state_adjoint()[j], row(influence_, j));
      }
      move();
      state_ = step_.next();
    }
    if (!learn) return false;
    std::size_t at = 0;
    for (DeviceArray& gradient : gradients_) {
      const auto entries = static_cast<std::size_t>(gradient.entries());
      const auto values = narrowed(model_.real(), std::span(total).subspan(at, entries));
      model_.backend().upload(gradient.data(), values.data(), values.size());
      at += entries;
    }
    return true;
  }
  std::span<const DeviceArray> gradients() const override { return gradients_; }
  void keep(StreamState& state) override {
    state.same("state", state_);
    state.same("influence", influence_);
  }
  std::int64_t bytes() const override {
    std::size_t total = 2 * influence_.size() * sizeof(double);
    for (const DeviceArray& array : gradients_) total += array.bytes();
    return static_cast<std::int64_t>(total);
  }

 private:
  std::span<double> row(std::vector<double>& of, std::size_t i) const {
    return std::span(of).subspan(i * step_.weights(), step_.weights());
  }
  static void add(std::span<double> to, double factor, std::span<const double> row) {
    if (factor != 0.0)
      for (std::size_t i = 0; i < to.size(); ++i) to[i] += factor * row[i];
  }

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

  /// P[t] of P[t-1].
  void move() {
    std::vector<double> unit(step_.states());
    for (std::size_t i = 0; i < step_.states(); ++i) {
      unit[i] = 1.0;
      step_.pull_back(unit, {});
      unit[i] = 0.0;
      std::ranges::copy(step_.weight_adjoint(), row(moved_, i).begin());
      for (std::size_t j = 0; j < step_.states(); ++j) add(row(moved_, i), step_.state_adjoint()[j], row(influence_, j));
    }
    std::swap(influence_, moved_);
  }

  Model& model_;
  const StreamForm form_;
  StepMap step_;
  std::vector<double> state_, influence_, moved_;  // P is [state, weights]
  std::vector<DeviceArray> gradients_;
};

}  // namespace

std::unique_ptr<StreamRule> stream_rtrl(const StreamRuleSetup& setup) { return std::make_unique<StreamRtrl>(setup); }

}  // namespace reclab
