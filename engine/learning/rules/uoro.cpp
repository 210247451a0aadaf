// SPDX-License-Identifier: GPL-3.0-or-later
// Unbiased online recurrent optimisation (C. Tallec, Y. Ollivier, ICLR 2018, algorithm 1): P is one product of a vector of the state and
// one of the weights. What a step adds, D, is in the mean over signs nu the product of nu and nu^T D, and one product stands in place of
// the two.
#include <algorithm>

#include "learning/online/influence.h"

namespace reclab::rules_by_name {
namespace {

class RankOneInfluence final : public Influence {
 public:
  RankOneInfluence(std::size_t states, std::size_t weights) : state_(states), weights_(weights), signs_(states) {}

  void start(const Signs& signs) override {
    draw_ = signs;
    std::ranges::fill(state_, 0.0);
    std::ranges::fill(weights_, 0.0);
  }
  void advance(StepMap& step, bool acts) override {
    step.push_forward(state_, {});
    std::ranges::copy(step.next_move(), state_.begin());
    if (!acts) return;
    for (double& sign : signs_) sign = draw_();
    step.pull_back(signs_, {});
    join_products(1.0, state_, weights_, 1.0, signs_, step.weight_adjoint());
  }
  void keep(const Keep& keep) override {
    keep("state", state_);
    keep("weights", weights_);
  }

 private:
  void add_product(std::span<const double> adjoint, std::span<double> gradient) const override {
    double share = 0.0;
    for (std::size_t i = 0; i < state_.size(); ++i) share += adjoint[i] * state_[i];
    add_scaled(gradient, share, weights_);
  }

  std::vector<double> state_, weights_, signs_;
  Signs draw_;
};

OnlineMethod method(const OnlineSetup& setup) {
  const StepMap step(setup.model, setup.inputs, setup.outputs);
  const std::size_t states = step.states(), weights = step.weights();
  return {.influence = [=] { return std::make_unique<RankOneInfluence>(states, weights); },
          .numbers = static_cast<double>(2 * states + weights)};
}

}  // namespace

LearningRuleInfo uoro() {
  return {.title = "Unbiased online recurrent optimisation",
          .year = 2018,
          .name = "UORO",
          .gradient = GradientKind::unbiased,
          .memory = "d_s + |θ|, d_s² for a full matrix",
          .time = "as a step of the model forward and back, d_s² for a full matrix",
          .memory_power = 2,
          .time_power = 2,
          .source = "C. Tallec, Y. Ollivier, Unbiased online recurrent optimization, ICLR 2018, algorithm 1",
          .idea =
              "The influence of the weights is held as one outer product, and two are joined to one at each step by signs that are drawn. "
              "Its mean over the signs is the true gradient; one draw alone is noisy, the more the longer the sequence.",
          .online = method};
}

}  // namespace reclab::rules_by_name
