// SPDX-License-Identifier: GPL-3.0-or-later
// The sequences of a batch, each with its influence, a thread each. With weights that stay, the gradient of an exact influence is that of
// backpropagation through time; where they change within a sequence, the influence goes on as the weights before came to it.
#include <algorithm>
#include <cmath>
#include <utility>

#include "array/cpu/processor/threads.h"
#include "learning/losses.h"
#include "learning/online/batch_gradient.h"
#include "learning/online/influence.h"

namespace reclab {
namespace {

constexpr double most_numbers = 1 << 28;  // of the influences of a batch, in float64; RTRL has two of a sequence: 4 GiB

bool all_finite(std::span<const double> values) {
  return std::ranges::all_of(values, [](double x) { return std::isfinite(x); });
}

class OnlineRule final : public LearningRule {
 public:
  OnlineRule(const LearningRuleInfo& info, const LearningSetup& setup, const std::function<OnlineMethod(const OnlineSetup&)>& make)
      : model_(setup.model), length_(setup.length), seed_(setup.options.seed), total_(setup.model) {
    const TrainingOptions& options = setup.options;
    if (options.truncate > 0)
      throw Error(info.title + " goes forward with the derivatives of all steps, so there is nothing to truncate: leave truncate at 0.",
                  {.parameter = "truncate", .value = std::to_string(options.truncate), .range = "0"});
    advance_ = options.advance > 0 ? std::min(options.advance, length_) : length_;
    const Sequence& first = setup.examples.front();
    const SequenceLoss loss(LossKind::task, first);
    const auto add = [&] { own_.emplace_back().step = std::make_unique<StepMap>(model_, first.width, loss.outputs()); };
    add();
    StepMap& step = *own_.front().step;
    require_even_steps(info.title, step, first, loss);
    const OnlineMethod method = make({model_, options, first.width, loss.outputs()});
    numbers_ = static_cast<double>(options.batch) * method.numbers;
    if (numbers_ > most_numbers)
      throw Error(info.title + " keeps the derivatives of " + std::to_string(step.states()) + " entries of the state by " +
                      std::to_string(step.weights()) + " weights for each sequence of a batch of " + std::to_string(options.batch) +
                      ", which is too much: choose a narrower model, or a smaller batch.",
                  {.parameter = "rule", .value = info.id});
    exact_ = method.exact;
    while (std::ssize(own_) < options.batch) add();
    for (Own& own : own_) own.influence = method.influence();
  }

  void begin(const std::deque<Sequence>& batch, std::int64_t number) override {
    number_ = number;
    learned_ = 0;
    for (std::size_t b = 0; b < own_.size(); ++b) {
      Own& own = own_[b];
      own.sequence = &batch[b];
      own.loss = std::make_unique<SequenceLoss>(LossKind::task, batch[b]);
      own.state = own.step->start();
      own.influence->start(signs_of(seed_, number, static_cast<std::int64_t>(b)));
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
      const auto pass = [&](bool rehearsal) {
        for (std::int64_t t = first; t < learned_ && !own.bad && !stop.stop_requested(); ++t) take(own, t, rehearsal);
      };
      if (own.influence->rehearses()) {
        pass(true);
        own.state = own.step->start();
        own.value = 0.0;
      }
      pass(false);
    });
    return total_.sum(own_, number_, stop);
  }
  std::span<const DeviceArray> gradients() const override { return total_.arrays(); }

  bool exact() const override { return exact_; }
  std::int64_t parts() const override { return (length_ + advance_ - 1) / advance_; }
  std::int64_t bytes() const override { return static_cast<std::int64_t>(numbers_ * sizeof(double)) + total_.bytes(); }

 private:
  /// The state of the forward recursion of one sequence.
  struct Own : SequenceGradient {
    std::unique_ptr<StepMap> step{};
    std::unique_ptr<Influence> influence{};
    const Sequence* sequence = nullptr;
    std::unique_ptr<SequenceLoss> loss{};
    std::vector<double> state{};
  };

  void take(Own& own, std::int64_t t, bool rehearsal) const {
    StepMap& step = *own.step;
    const std::size_t width = step.inputs();
    step.evaluate(own.state, std::span(own.sequence->input).subspan(static_cast<std::size_t>(t) * width, width));
    const std::string where = " became non-finite at step " + std::to_string(t) + " of a sequence";
    for (const StepMap::Part& part : step.parts())
      if (!all_finite(std::span(step.next()).subspan(part.first, part.entries))) own.bad = {part.name + where, part.name};
    if (!own.bad && !all_finite(step.output())) own.bad = {"output" + where, "output"};
    if (own.bad) return;
    std::vector<double> adjoint;
    if (own.sequence->mask[static_cast<std::size_t>(t)] != 0.0) {
      own.counts = true;
      adjoint.resize(step.outputs());
      own.value += own.loss->segment(t, 1, static_cast<std::int64_t>(step.outputs()), step.output(), adjoint);
      if (!std::isfinite(own.value)) {
        own.bad = {"the loss" + where, "loss"};
        return;
      }
    }
    Influence& influence = *own.influence;
    if (rehearsal)
      influence.rehearse(step, adjoint);
    else if (!adjoint.empty() || influence.rehearses())
      influence.credit(step, adjoint, true, own.gradient);
    if (t + 1 == length_) return;
    if (!rehearsal) influence.advance(step, true);
    own.state = step.next();
  }

  Model& model_;
  std::int64_t length_, advance_ = 0, number_ = 0, learned_ = 0;
  std::uint64_t seed_;
  double numbers_ = 0.0;  // of all influences
  bool exact_ = false;
  std::vector<Own> own_;
  BatchGradient total_;
};

}  // namespace

std::unique_ptr<LearningRule> online_rule(const LearningRuleInfo& info, const LearningSetup& setup) {
  return online_rule(info, setup, info.online);
}
std::unique_ptr<LearningRule> online_rule(const LearningRuleInfo& info, const LearningSetup& setup,
                                          const std::function<OnlineMethod(const OnlineSetup&)>& method) {
  return std::make_unique<OnlineRule>(info, setup, method);
}

}  // namespace reclab
