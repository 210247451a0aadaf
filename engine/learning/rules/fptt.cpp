// SPDX-License-Identifier: GPL-3.0-or-later
// Forward propagation through time (A. Kag, V. Saligrama, ICML 2021, algorithm 1; in parts of several steps FPTT-K): after each part of a
// sequence the weights w change by the gradient of the part's loss, which goes back to the part's first step alone, and of
// alpha/2 |w - m - u|^2, which draws them to the running mean m of earlier weights. After the change
//   u -= w - m,  m = (1 - beta) m + beta (w - u),
// with u the paper's lambda / alpha, so that alpha = 0 is defined: truncated backpropagation.
#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "learning/learning_rule.h"

namespace reclab::rules_by_name {
namespace {

constexpr const char* title = "Forward propagation through time with a running mean";

class Fptt final : public LearningRule {
 public:
  explicit Fptt(const LearningSetup& setup)
      : model_(setup.model),
        options_(setup.options),
        frozen_(setup.frozen.empty() ? std::vector<bool>(setup.model.weights().size()) : setup.frozen),
        memory_(setup.model, {"running-mean", "dual"}, frozen_) {
    const auto within = [](const char* key, double value, double high) {
      if (!(value >= 0.0 && value <= high))
        throw Error(std::string(key) + " is out of range: choose 0 to " + std::to_string(static_cast<long>(high)) + ".",
                    {.parameter = key, .range = "0 to " + std::to_string(static_cast<long>(high))});
    };
    within("fptt_alpha", options_.fptt_alpha, 1e6);
    within("fptt_beta", options_.fptt_beta, 1.0);
    if (options_.advance > 0)
      throw Error(
          std::string(title) + " changes the weights after each of its parts: leave advance at 0, and choose their steps by truncate.",
          {.parameter = "advance", .value = std::to_string(options_.advance), .range = "0"});
    options_.rule = "bptt";
    options_.truncate = std::max<std::int64_t>(1, options_.truncate);
    truncated_ = make_learning_rule({model_, options_, setup.length, setup.examples});
    std::int64_t largest = 1;
    for (const Model::Weight& weight : model_.weights()) {
      gradients_.emplace_back(model_.backend(), model_.real(), weight.entries());
      largest = std::max(largest, weight.entries());
    }
    scratch_.resize(model_.backend(), model_.real(), largest);
    begin_mean();
  }

  void begin(const std::deque<Sequence>& batch, std::int64_t number) override {
    if (number == 1) begin_mean();  // its weights may have been set since
    truncated_->begin(batch, number);
  }
  bool left() const override { return truncated_->left(); }

  Part learn(std::stop_token stop) override {
    const Part part = truncated_->learn(std::move(stop));
    if (!part.counts) return part;
    const double share = options_.fptt_alpha * static_cast<double>(options_.batch);  // the gradients are sums over the batch
    const std::span<const DeviceArray> losses = truncated_->gradients();
    for (std::size_t i = 0; i < gradients_.size(); ++i) {
      const DeviceArray& gradient = gradients_[i];
      model_.backend().copy(gradient.data(), losses[i].data(), gradient.bytes());
      if (frozen_[i] || share == 0.0) continue;
      const std::span<DeviceArray> kept = memory_.of(i);
      add(share, model_.weights()[i].values, gradient);
      add(-share, kept[mean], gradient);
      add(-share, kept[dual], gradient);
    }
    return part;
  }
  std::span<const DeviceArray> gradients() const override { return gradients_; }

  void changed() override {
    const double beta = options_.fptt_beta;
    for (std::size_t i = 0; i < gradients_.size(); ++i) {
      if (frozen_[i]) continue;
      const std::span<DeviceArray> kept = memory_.of(i);
      const DeviceArray& weight = model_.weights()[i].values;
      add(-1.0, weight, kept[dual]);
      add(1.0, kept[mean], kept[dual]);
      add(-beta, kept[mean], kept[mean]);
      add(beta, weight, kept[mean]);
      add(-beta, kept[dual], kept[mean]);
    }
  }
  WeightMemory* memory() override { return &memory_; }

  bool exact() const override { return false; }
  std::int64_t parts() const override { return truncated_->parts(); }
  std::int64_t bytes() const override {
    std::size_t total = scratch_.bytes();
    for (const DeviceArray& array : gradients_) total += array.bytes();
    return static_cast<std::int64_t>(total) + truncated_->bytes() + memory_.bytes();
  }
  BatchRollout* whole() override { return truncated_->whole(); }

 private:
  enum Kept : std::size_t { mean, dual };

  /// to += factor x; both may be the same array.
  void add(double factor, const DeviceArray& x, const DeviceArray& to) {
    model_.backend().unary(Unary::affine, model_.real(), x.entries(), x.data(), scratch_.data(), factor, 0.0);
    model_.backend().add_scaled(model_.real(), x.entries(), 0, scratch_.data(), to.data(), true);
  }
  void begin_mean() {
    for (std::size_t i = 0; i < frozen_.size(); ++i) {
      if (frozen_[i]) continue;
      const std::span<DeviceArray> kept = memory_.of(i);
      model_.backend().copy(kept[mean].data(), model_.weights()[i].values.data(), kept[mean].bytes());
      model_.backend().zero(kept[dual].data(), kept[dual].bytes());
    }
  }

  Model& model_;
  TrainingOptions options_;  // of the rule that it takes the losses' gradients from
  std::vector<bool> frozen_;
  WeightMemory memory_;
  std::unique_ptr<LearningRule> truncated_;
  std::vector<DeviceArray> gradients_;
  DeviceArray scratch_;  // of the largest weight
};

}  // namespace

LearningRuleInfo fptt() {
  return {
      .title = title,
      .year = 2021,
      .name = "FPTT",
      .gradient = GradientKind::biased,
      .past_facing = false,
      .memory = "K d_s + 2 |θ|",
      .time = "|θ|, d_s² for a full matrix",
      .memory_power = 2,
      .time_power = 2,
      .source = "A. Kag, V. Saligrama, ICML 2021, algorithm 1",
      .idea =
          "After each part of K steps the weights go down the part's loss, whose gradient goes back within the part alone, and are drawn "
          "to the running mean of those before. The mean carries from part to part what gradients do not; a target acts on the steps of "
          "its own part.",
      .make = [](const LearningSetup& setup) -> std::unique_ptr<LearningRule> { return std::make_unique<Fptt>(setup); }};
}

}  // namespace reclab::rules_by_name
