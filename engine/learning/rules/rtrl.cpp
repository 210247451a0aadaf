// SPDX-License-Identifier: GPL-3.0-or-later
// Real-time recurrent learning (R. J. Williams, D. Zipser, Neural Computation 1(2), 1989): all of P, by P[t] = J[t] P[t-1] + D[t].
#include <algorithm>
#include <utility>

#include "array/host.h"
#include "learning/online/influence.h"

namespace reclab::rules_by_name {
namespace {

class WholeInfluence final : public Influence {
 public:
  WholeInfluence(std::size_t states, std::size_t weights) : states_(states), weights_(weights) {}

  void start(const Signs&) override {
    rows_ = 0;  // their values from the sequence before are not read
    for (std::vector<double>* array : {&influence_, &moved_})
      if (array->empty()) *array = zeros(static_cast<std::int64_t>(states_ * weights_));
  }
  void advance(StepMap& step, bool acts) override {
    std::vector<double> unit(states_);
    for (std::size_t i = 0; i < states_; ++i) {
      unit[i] = 1.0;
      step.pull_back(unit, {});
      unit[i] = 0.0;
      const auto row = std::span(moved_).subspan(i * weights_, weights_);
      if (acts)
        std::ranges::copy(step.weight_adjoint(), row.begin());
      else
        std::ranges::fill(row, 0.0);
      for (std::size_t j = 0; j < rows_; ++j)
        if (const double entry = step.state_adjoint()[j]; entry != 0.0) add_scaled(row, entry, influence(j));
    }
    std::swap(influence_, moved_);
    rows_ = states_;
  }
  void keep(const Keep& keep) override {
    std::vector<double> begun{rows_ > 0 ? 1.0 : 0.0};
    keep("begun", begun);
    keep("P", influence_);
    rows_ = begun[0] != 0.0 ? states_ : 0;
  }

 private:
  void add_product(std::span<const double> adjoint, std::span<double> gradient) const override {
    for (std::size_t j = 0; j < rows_; ++j) add_scaled(gradient, adjoint[j], influence(j));
  }
  std::span<const double> influence(std::size_t i) const { return std::span(influence_).subspan(i * weights_, weights_); }

  std::size_t states_, weights_, rows_ = 0;  // rows_: of P[t-1] that are not 0
  std::vector<double> influence_, moved_;    // P is [state, weights], row after row
};

OnlineMethod method(const OnlineSetup& setup) {
  const StepMap step(setup.model, setup.inputs, setup.outputs);
  const std::size_t states = step.states(), weights = step.weights();
  return {.influence = [=] { return std::make_unique<WholeInfluence>(states, weights); },
          .numbers = 2.0 * static_cast<double>(states) * static_cast<double>(weights),
          .exact = true};
}

}  // namespace

LearningRuleInfo rtrl() {
  return {.title = "Real-time recurrent learning",
          .year = 1989,
          .name = "RTRL",
          .memory = "d_s |θ|, d_s³ for a full matrix",
          .time = "d_s² |θ|, d_s⁴ for a full matrix",
          .memory_power = 3,
          .time_power = 4,
          .source = "R. J. Williams, D. Zipser, Neural Computation 1(2), 1989, equations 2.10 to 2.13",
          .idea =
              "The influence of every weight on every entry of the state is carried forward, so that the gradient of each step's loss is "
              "known at that step. It is exact and needs no past, at a cost that only small models can bear.",
          .online = method};
}

}  // namespace reclab::rules_by_name
