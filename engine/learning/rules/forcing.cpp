// SPDX-License-Identifier: GPL-3.0-or-later
// Generalised teacher forcing (F. Hess, Z. Monfared, M. Brenner, D. Durstewitz, ICML 2023) and sparse teacher forcing (J. M. Mikhaeil, Z.
// Monfared, D. Durstewitz, NeurIPS 2022): the model runs on its own output, u[t] = a x[t] + (1 - a) y[t-1], with data x at every `every`-th
// step, and the loss of that loop goes back through its states and through what was fed back.
#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "array/cpu/processor/threads.h"
#include "learning/forcing/closed_loop.h"
#include "learning/learning_rule.h"
#include "learning/losses.h"
#include "learning/online/batch_gradient.h"

namespace reclab::rules_by_name {
namespace {

constexpr const char* title = "Generalised teacher forcing";

class ForcingRule final : public LearningRule {
 public:
  explicit ForcingRule(const LearningSetup& setup)
      : model_(setup.model), forcing_(setup.options.forcing), length_(setup.length), total_(setup.model) {
    const TrainingOptions& options = setup.options;
    if (!(forcing_.strength >= 0.0 && forcing_.strength <= 1.0))
      throw Error("forcing is a share of the data: choose 0 to 1.", {.parameter = "forcing", .range = "0 to 1"});
    if (forcing_.every < 1) throw Error("forcing_every is out of range: choose 1 or more.", {.parameter = "forcing_every"});
    const auto whole = [](const char* key, std::int64_t value) {
      if (value > 0)
        throw Error(std::string(title) + " goes back over whole sequences: leave " + key + " at 0, and choose shorter sequences.",
                    {.parameter = key, .value = std::to_string(value), .range = "0"});
    };
    whole("truncate", options.truncate);
    whole("advance", options.advance);
    const Sequence& first = setup.examples.front();
    require_own_future(first, title);
    const SequenceLoss loss(LossKind::task, first);
    own_.resize(static_cast<std::size_t>(options.batch));
    for (Own& own : own_) own.step = std::make_unique<StepMap>(model_, first.width, loss.outputs());
    require_even_steps(title, *own_.front().step, first, loss);
  }

  void begin(const std::deque<Sequence>& batch, std::int64_t number) override {
    number_ = number;
    left_ = true;
    for (std::size_t b = 0; b < own_.size(); ++b) own_[b].sequence = &batch[b];
  }
  bool left() const override { return left_; }

  Part learn(std::stop_token stop) override {
    left_ = false;
    cpu::parallel(std::ssize(own_), [&](std::int64_t b) {
      try {
        take(own_[static_cast<std::size_t>(b)], stop);
      } catch (const Cancelled&) {  // of all, below
      }
    });
    return total_.sum(own_, number_, stop);
  }
  std::span<const DeviceArray> gradients() const override { return total_.arrays(); }

  bool exact() const override { return forcing_.strength == 1.0 && forcing_.every == 1; }
  std::int64_t parts() const override { return 1; }
  std::int64_t bytes() const override {
    const StepMap& step = *own_.front().step;
    const std::size_t numbers = static_cast<std::size_t>(length_) * (step.states() + step.inputs() + 2 * step.outputs()) + step.weights();
    return static_cast<std::int64_t>(own_.size() * numbers * sizeof(double)) + total_.bytes();
  }

 private:
  struct Own : SequenceGradient {
    std::unique_ptr<StepMap> step{};
    const Sequence* sequence = nullptr;
  };

  void take(Own& own, const std::stop_token& stop) const {
    const Sequence& sequence = *own.sequence;
    own.gradient.assign(own.step->weights(), 0.0);
    own.bad.reset();
    own.value = 0.0;
    own.counts = std::ranges::any_of(sequence.mask, [](double m) { return m != 0.0; });
    ClosedLoop loop(*own.step, sequence);
    loop.run(forcing_, stop);
    if (!loop.bad_array().empty()) {
      own.bad = {loop.bad_array() + " became non-finite at step " + std::to_string(loop.bad_step()) + " of a sequence", loop.bad_array()};
      return;
    }
    if (!own.counts) return;
    const SequenceLoss loss(LossKind::task, sequence);
    std::vector<double> adjoints(loop.outputs().size());
    own.value = loss.segment(0, length_, sequence.width, loop.outputs(), adjoints);
    if (!std::isfinite(own.value)) {
      own.bad = {"the loss of a sequence became non-finite", "loss"};
      return;
    }
    loop.pull_back(adjoints, own.gradient, stop);
  }

  Model& model_;
  Forcing forcing_;
  std::int64_t length_, number_ = 0;
  bool left_ = false;
  std::vector<Own> own_;
  BatchGradient total_;
};

}  // namespace

LearningRuleInfo forcing() {
  return {.title = title,
          .year = 2023,
          .name = "teacher forcing",
          .gradient = GradientKind::biased,
          .past_facing = false,
          .memory = "T d_s",
          .time = "|θ|, d_s² for a full matrix",
          .memory_power = 1,
          .time_power = 2,
          .source =
              "F. Hess, Z. Monfared, M. Brenner, D. Durstewitz, ICML 2023; sparse: J. M. Mikhaeil, Z. Monfared, D. Durstewitz, NeurIPS "
              "2022",
          .idea =
              "The model runs on its own output, into which the data are mixed by a share, and the loss of that loop goes back through its "
              "states and through what was fed back. Forcing keeps a chaotic run near the data, and so its gradients bounded.",
          .make = [](const LearningSetup& setup) -> std::unique_ptr<LearningRule> { return std::make_unique<ForcingRule>(setup); }};
}

}  // namespace reclab::rules_by_name
