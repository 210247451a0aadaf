// SPDX-License-Identifier: GPL-3.0-or-later
// Recurrent backpropagation: z = J^T z + a is iterated until z stays. It does where the fixed point is stable, and the rule says so where
// it does not.
#include <cmath>
#include <cstdio>

#include "learning/online/fixed_point.h"

namespace reclab::rules_by_name {
namespace {

constexpr std::int64_t most_iterations = 10000;
constexpr double stays = 1e-13;  // the change of z, as a share of it

class Iterated final : public AtFixedPoint {
 public:
  using AtFixedPoint::AtFixedPoint;

 protected:
  std::vector<double> solve(StepMap& step, std::vector<double> a) override {
    std::vector<double> z = a;
    double before = norm_of(a), factor = 0.0;
    for (std::int64_t i = 0; i < most_iterations && before > 0.0; ++i) {
      a = back_through(step, a);
      const double change = norm_of(a);
      factor = change / before;
      before = change;
      add_scaled(z, 1.0, a);
      const double size = norm_of(z);
      if (!std::isfinite(size)) break;
      if (change <= stays * size) return z;
    }
    if (before == 0.0) return z;
    char grown[32];
    std::snprintf(grown, sizeof grown, "%.4g", factor);
    throw Error(
        "Recurrent backpropagation did not converge: the state is at no stable fixed point of its step, whose Jacobian multiplies "
        "the adjoint by " +
            std::string(grown) + " at each iteration. Choose neumann-rbp, which ends after some terms, or another rule.",
        {.parameter = "rule", .value = "rbp"});
  }
  std::int64_t furthest() const override { return most_iterations; }
};

OnlineMethod method(const OnlineSetup& setup) {
  const StepMap step(setup.model, setup.inputs, setup.outputs);
  return {.influence = [options = setup.options] { return std::make_unique<Iterated>(options); },
          .numbers = 2.0 * static_cast<double>(step.states())};
}

}  // namespace

LearningRuleInfo rbp() {
  return {.title = "Recurrent backpropagation",
          .year = 1987,
          .name = "RBP",
          .gradient = GradientKind::biased,
          .memory = "d_s + |θ|, whatever T",
          .time = "K (d_s² + |θ|), K iterations",
          .memory_power = 2,
          .time_power = 2,
          .source =
              "L. B. Almeida, ICNN 1987; F. J. Pineda, Generalization of back-propagation to recurrent neural networks, Physical "
              "Review Letters 59(19), 1987",
          .idea =
              "Each state is taken for a fixed point of its step, and the adjoint is iterated with that one step's Jacobian until it "
              "stays. Exact where the input is held and the state has settled; elsewhere the past is taken for a copy of the present.",
          .online = method};
}

}  // namespace reclab::rules_by_name
