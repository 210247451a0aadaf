// SPDX-License-Identifier: GPL-3.0-or-later
// Real-time recurrent learning (R. J. Williams, D. Zipser, Neural Computation 1(2), 1989): the derivatives of the state by the weights,
// P[t] = ds[t]/dtheta, go forward with it, P[t] = J[t] P[t-1] + D[t] with J[t] = ds[t]/ds[t-1] and D[t] the derivative of the one step, so
// that the gradient of each step's loss is known at that step: dL[t]/dtheta = (dL[t]/ds[t-1]) P[t-1] + that of the one step. With weights
// that stay it is the gradient of backpropagation through time; where they change within a sequence, P goes on as the weights before came
// to it.
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "array/cpu/processor/threads.h"
#include "array/host.h"
#include "execution/elapsed_times.h"
#include "execution/step_map.h"
#include "learning/learning_rule.h"
#include "learning/losses.h"

namespace reclab::rules_by_name {
namespace {

constexpr double most_numbers = 1 << 28;  // of P, twice, in float64: 4 GiB

bool all_finite(std::span<const double> values) {
  return std::ranges::all_of(values, [](double x) { return std::isfinite(x); });
}

class Rtrl final : public LearningRule {
 public:
  explicit Rtrl(const LearningSetup& setup) : model_(setup.model), length_(setup.length) {
    const TrainingOptions& options = setup.options;
    if (options.truncate > 0)
      throw Error(
          "Real-time recurrent learning goes forward with the derivatives of all steps, so there is nothing to truncate: leave truncate at "
          "0.",
          {.parameter = "truncate", .value = std::to_string(options.truncate), .range = "0"});
    advance_ = options.advance > 0 ? std::min(options.advance, length_) : length_;
    const Sequence& first = setup.examples.front();
    const SequenceLoss loss(LossKind::task, first);
    const auto add = [&] { own_.emplace_back().step = std::make_unique<StepMap>(model_, first.width, loss.outputs()); };
    add();
    StepMap& step = *own_.front().step;
    if (step.knows_time() && ElapsedTimes::uneven(Batch(first, loss)))
      throw Error(
          "Real-time recurrent learning takes steps of equal time, and those of " + first.name + " are not: choose backpropagation.",
          {.parameter = "rule"});
    const double numbers =
        2.0 * static_cast<double>(options.batch) * static_cast<double>(step.states()) * static_cast<double>(step.weights());
    if (numbers > most_numbers)
      throw Error("Real-time recurrent learning keeps the derivatives of " + std::to_string(step.states()) + " entries of the state by " +
                      std::to_string(step.weights()) + " weights for each sequence of a batch of " + std::to_string(options.batch) +
                      ", which is too much: choose a narrower model, or a smaller batch.",
                  {.parameter = "rule", .value = "rtrl"});
    while (std::ssize(own_) < options.batch) add();
    for (const Model::Weight& weight : model_.weights()) gradients_.emplace_back(model_.backend(), model_.real(), weight.entries());
  }

  void begin(const std::deque<Sequence>& batch, std::int64_t number) override {
    number_ = number;
    learned_ = 0;
    for (std::size_t b = 0; b < own_.size(); ++b) {
      Own& own = own_[b];
      own.sequence = &batch[b];
      own.loss = std::make_unique<SequenceLoss>(LossKind::task, batch[b]);
      own.state = own.step->start();
      for (std::vector<double>* array : {&own.influence, &own.moved})  // their values from the batch before are not read: P[-1] is 0
        if (array->empty()) *array = zeros(static_cast<std::int64_t>(own.step->states() * own.step->weights()));
    }
  }
  bool left() const override { return learned_ < length_; }

  Part learn(std::stop_token stop) override {
    const std::int64_t first = std::exchange(learned_, std::min(learned_ + advance_, length_));
    cpu::parallel(std::ssize(own_), [&](std::int64_t b) {
      Own& own = own_[static_cast<std::size_t>(b)];
      own.value = 0.0;
      own.counts = false;
      own.bad.reset();
      own.gradient.assign(own.step->weights(), 0.0);
      for (std::int64_t t = first; t < learned_ && !own.bad && !stop.stop_requested(); ++t) take(own, t);
    });
    if (stop.stop_requested()) throw Cancelled();
    Part part;
    std::vector<double> total(own_.front().step->weights());
    for (const Own& own : own_) {
      if (own.bad) throw TrainingDiverged(number_, own.bad->first, own.bad->second);
      part.loss += own.value;
      part.counts |= own.counts;
      for (std::size_t i = 0; i < total.size(); ++i) total[i] += own.gradient[i];
    }
    std::size_t at = 0;
    for (DeviceArray& gradient : gradients_) {
      const auto entries = static_cast<std::size_t>(gradient.entries());
      const auto values = narrowed(model_.real(), std::span(total).subspan(at, entries));
      model_.backend().upload(gradient.data(), values.data(), values.size());
      at += entries;
    }
    return part;
  }
  std::span<const DeviceArray> gradients() const override { return gradients_; }

  std::int64_t parts() const override { return (length_ + advance_ - 1) / advance_; }
  std::int64_t bytes() const override {
    std::size_t total = 0;
    for (const DeviceArray& array : gradients_) total += array.bytes();
    const StepMap& step = *own_.front().step;
    total += own_.size() * 2 * step.states() * step.weights() * sizeof(double);
    return static_cast<std::int64_t>(total);
  }

 private:
  /// The state of the forward recursion of one sequence.
  struct Own {
    std::unique_ptr<StepMap> step{};
    const Sequence* sequence = nullptr;
    std::unique_ptr<SequenceLoss> loss{};
    std::vector<double> state{}, influence{}, moved{};  // P is [state, weights], row after row
    std::vector<double> gradient{};                     // of the part's loss so far
    double value = 0.0;
    bool counts = false;
    std::optional<std::pair<std::string, std::string>> bad{};  // the array that became non-finite, in words, and its name
  };

  /// to += factor * row
  static void add(std::span<double> to, double factor, std::span<const double> row) {
    for (std::size_t i = 0; i < to.size(); ++i) to[i] += factor * row[i];
  }

  void take(Own& own, std::int64_t t) const {
    StepMap& step = *own.step;
    const std::size_t n = step.states(), p = step.weights(), width = step.inputs(),
                      before = t > 0 ? n : 0;  // rows of P[t-1] that are not 0
    const auto influence = [&](std::vector<double>& of, std::size_t i) { return std::span(of).subspan(i * p, p); };
    step.evaluate(own.state, std::span(own.sequence->input).subspan(static_cast<std::size_t>(t) * width, width));
    const std::string where = " became non-finite at step " + std::to_string(t) + " of a sequence";
    for (const StepMap::Part& part : step.parts())
      if (!all_finite(std::span(step.next()).subspan(part.first, part.entries))) own.bad = {part.name + where, part.name};
    if (!own.bad && !all_finite(step.output())) own.bad = {"output" + where, "output"};
    if (own.bad) return;
    if (own.sequence->mask[static_cast<std::size_t>(t)] != 0.0) {
      own.counts = true;
      std::vector<double> adjoint(step.outputs());
      own.value += own.loss->segment(t, 1, static_cast<std::int64_t>(step.outputs()), step.output(), adjoint);
      if (!std::isfinite(own.value)) {
        own.bad = {"the loss" + where, "loss"};
        return;
      }
      step.pull_back({}, adjoint);
      add(own.gradient, 1.0, step.weight_adjoint());
      for (std::size_t j = 0; j < before; ++j) add(own.gradient, step.state_adjoint()[j], influence(own.influence, j));
    }
    if (t + 1 == length_) return;
    std::vector<double> unit(n);
    for (std::size_t i = 0; i < n; ++i) {
      unit[i] = 1.0;
      step.pull_back(unit, {});
      unit[i] = 0.0;
      const auto row = influence(own.moved, i);
      std::ranges::copy(step.weight_adjoint(), row.begin());
      for (std::size_t j = 0; j < before; ++j)
        if (const double entry = step.state_adjoint()[j]; entry != 0.0) add(row, entry, influence(own.influence, j));
    }
    std::swap(own.influence, own.moved);
    own.state = step.next();
  }

  Model& model_;
  std::int64_t length_, advance_ = 0, number_ = 0, learned_ = 0;
  std::vector<Own> own_;
  std::vector<DeviceArray> gradients_;
};

}  // namespace

LearningRuleInfo rtrl() {
  return {.title = "Real-time recurrent learning",
          .year = 1989,
          .name = "RTRL",
          .make = [](const LearningSetup& setup) -> std::unique_ptr<LearningRule> { return std::make_unique<Rtrl>(setup); }};
}

}  // namespace reclab::rules_by_name
