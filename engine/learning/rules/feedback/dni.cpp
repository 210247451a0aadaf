// SPDX-License-Identifier: GPL-3.0-or-later
// Decoupled neural interfaces for a recurrence: the adjoint of a state is a linear function of the state, the step's target and 1, whose
// matrix M learns from what the next step makes of the next adjoint, by normalised least mean squares over each batch,
//   M -= rate sum (M f[t] - J[t+1]' M f[t+1] - dL[t+1]/ds[t]) f[t]' / sum |f[t]|^2.
// M is 0 in the beginning, so the first step goes back over one step alone.
#include <memory>
#include <utility>
#include <vector>

#include "array/error.h"
#include "learning/feedback/synthetic_gradient.h"
#include "learning/losses.h"
#include "learning/online/sequence_rule.h"

namespace reclab::rules_by_name {
namespace {

constexpr const char* title = "Decoupled neural interfaces: synthetic gradients";

class Dni final : public SequenceRule {
 public:
  explicit Dni(const LearningSetup& setup)
      : SequenceRule(checked(setup), title),
        rate_(setup.options.dni_rate),
        memory_(setup.model, {}, std::vector<bool>(setup.model.weights().size())) {
    const Sequence& first = setup.examples.front();
    const std::int64_t outputs = SequenceLoss(LossKind::task, first).outputs();
    const std::size_t states = StepMap(setup.model, first.width, outputs).states();
    features_ = states + static_cast<std::size_t>(outputs) + 1;
    M_ = &memory_.add("synthesiser", states * features_);
  }
  bool exact() const override { return false; }
  WeightMemory* memory() override { return &memory_; }
  void changed() override {
    const std::vector<double> down = sum_of_rule();  // and sum |f|^2 behind it
    if (down.empty() || down.back() == 0.0) return;
    for (std::size_t i = 0; i < M_->size(); ++i) (*M_)[i] -= rate_ * down[i] / down.back();
  }

 private:
  static const LearningSetup& checked(const LearningSetup& setup) {
    if (!(setup.options.dni_rate >= 0.0 && setup.options.dni_rate < 2.0))
      throw Error("dni_rate is out of range: choose 0 or more, less than 2.", {.parameter = "dni_rate", .range = "0 or more, less than 2"});
    require_no_parts(setup.options, std::string(title) + " go back over one step alone");
    return setup;
  }
  std::size_t numbers(const StepMap& step) const override { return 2 * M_->size() + 4 * step.states(); }

  void take(StepMap& step, const Sequence& sequence, SequenceGradient& own, const std::stop_token& stop) const override {
    own.of_rule.assign(M_->size() + 1, 0.0);
    const auto synthesise = [&](std::size_t, std::span<const double> f) {
      std::vector<double> adjoint(step.states());
      for (std::size_t i = 0; i < adjoint.size(); ++i)
        for (std::size_t j = 0; j < f.size(); ++j) adjoint[i] += (*M_)[i * features_ + j] * f[j];
      return adjoint;
    };
    const auto see = [&](std::span<const double> f, std::span<const double> synthesised, std::span<const double> target) {
      for (std::size_t i = 0; i < synthesised.size(); ++i)
        for (std::size_t j = 0; j < f.size(); ++j) own.of_rule[i * features_ + j] += (synthesised[i] - target[i]) * f[j];
      for (const double one : f) own.of_rule.back() += one * one;
    };
    synthetic_gradient(step, sequence, synthesise, see, own, stop);
  }

  double rate_;
  std::size_t features_ = 0;
  WeightMemory memory_;
  std::vector<double>* M_ = nullptr;  // [states, features], in memory_
};

}  // namespace

LearningRuleInfo dni() {
  return {.title = title,
          .year = 2017,
          .name = "DNI",
          .gradient = GradientKind::biased,
          .past_facing = false,
          .memory = "2 d_s²",
          .time = "as a step of the model forward and back, d_s² for a full matrix",
          .memory_power = 2,
          .time_power = 2,
          .source =
              "M. Jaderberg and others, Decoupled neural interfaces using synthetic gradients, ICML 2017, section 2.1; for single steps O. "
              "Marschall, K. Cho, C. Savin, JMLR 21, 2020, section 4.3.3",
          .idea =
              "What all later losses say of a state is foretold by a linear function of that state and the step's target, so a weight "
              "learns at "
              "its own step and nothing is kept of the others. The function learns from its own forecast one step later: what it cannot "
              "foretell from the present state, no gradient has.",
          .make = [](const LearningSetup& setup) -> std::unique_ptr<LearningRule> { return std::make_unique<Dni>(setup); }};
}

}  // namespace reclab::rules_by_name
