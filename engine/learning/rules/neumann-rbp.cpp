// SPDX-License-Identifier: GPL-3.0-or-later
// Recurrent backpropagation with the first terms of Neumann's series, z = sum over k < K of (J^T)^k a (R. Liao and others, ICML 2018): at
// a fixed point, truncated backpropagation through time over K steps before the last.
#include "learning/online/fixed_point.h"

namespace reclab::rules_by_name {
namespace {

class Series final : public AtFixedPoint {
 public:
  explicit Series(const TrainingOptions& options) : AtFixedPoint(options), terms_(options.rbp_terms) {}

 protected:
  std::vector<double> solve(StepMap& step, std::vector<double> a) override {
    std::vector<double> z = a;
    for (std::int64_t k = 1; k < terms_; ++k) {
      a = back_through(step, a);
      add_scaled(z, 1.0, a);
    }
    return z;
  }
  std::int64_t furthest() const override { return terms_; }

 private:
  std::int64_t terms_;
};

OnlineMethod method(const OnlineSetup& setup) {
  const StepMap step(setup.model, setup.inputs, setup.outputs);
  return {.influence = [options = setup.options] { return std::make_unique<Series>(options); },
          .numbers = 2.0 * static_cast<double>(step.states())};
}

}  // namespace

LearningRuleInfo neumann_rbp() {
  return {.title = "Recurrent backpropagation by Neumann's series",
          .year = 2018,
          .name = "Neumann-RBP",
          .gradient = GradientKind::biased,
          .memory = "d_s + |θ|, whatever K and T",
          .time = "K (d_s² + |θ|), K terms",
          .memory_power = 2,
          .time_power = 2,
          .source =
              "R. Liao, Y. Xiong, E. Fetaya, L. Zhang, K. Yoon, X. Pitkow, R. Urtasun, R. Zemel, Reviving and improving recurrent "
              "back-propagation, ICML 2018, section 3.3",
          .idea =
              "As recurrent backpropagation, with K terms of the series of the Jacobian. At a fixed point it is backpropagation through "
              "the K steps before the last, with the memory of one.",
          .online = method};
}

}  // namespace reclab::rules_by_name
