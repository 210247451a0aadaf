// SPDX-License-Identifier: GPL-3.0-or-later
// Recurrent backpropagation whose equation (I - J^T) z = a is solved by conjugate gradients of its normal equations,
// ((I - J) (I - J^T) + eta I) z = (I - J) a (R. Liao and others, ICML 2018). The fixed point need not be stable. eta is the damping.
#include "learning/online/fixed_point.h"

namespace reclab::rules_by_name {
namespace {

constexpr double solved = 1e-14;  // the residual, as a share of the right side

class ConjugateGradients final : public AtFixedPoint {
 public:
  explicit ConjugateGradients(const TrainingOptions& options)
      : AtFixedPoint(options), iterations_(options.rbp_terms), damping_(options.rbp_damping) {}

 protected:
  std::vector<double> solve(StepMap& step, std::vector<double> a) override {
    const auto without_forward = [&](const std::vector<double>& x) {  // (I - J) x
      step.push_forward(x, {});
      std::vector<double> left = x;
      add_scaled(left, -1.0, step.next_move());
      return left;
    };
    const auto normal = [&](const std::vector<double>& x) {
      std::vector<double> left = x;
      add_scaled(left, -1.0, back_through(step, x));
      left = without_forward(left);
      add_scaled(left, damping_, x);
      return left;
    };
    const auto dot = [](const std::vector<double>& x, const std::vector<double>& y) {
      double sum = 0.0;
      for (std::size_t i = 0; i < x.size(); ++i) sum += x[i] * y[i];
      return sum;
    };
    std::vector<double> z(a.size()), residual = without_forward(a), direction = residual;
    double squares = dot(residual, residual);
    const double enough = solved * solved * squares;
    for (std::int64_t i = 0; i < iterations_ && squares > enough; ++i) {
      const std::vector<double> image = normal(direction);
      const double size = squares / dot(direction, image);
      add_scaled(z, size, direction);
      add_scaled(residual, -size, image);
      const double next = dot(residual, residual);
      for (std::size_t k = 0; k < direction.size(); ++k) direction[k] = residual[k] + next / squares * direction[k];
      squares = next;
    }
    return z;
  }
  std::int64_t furthest() const override { return iterations_; }

 private:
  std::int64_t iterations_;
  double damping_;
};

OnlineMethod method(const OnlineSetup& setup) {
  const StepMap step(setup.model, setup.inputs, setup.outputs);
  return {.influence = [options = setup.options] { return std::make_unique<ConjugateGradients>(options); },
          .numbers = 6.0 * static_cast<double>(step.states())};
}

}  // namespace

LearningRuleInfo cg_rbp() {
  return {.title = "Recurrent backpropagation by conjugate gradients",
          .year = 2018,
          .name = "CG-RBP",
          .gradient = GradientKind::biased,
          .memory = "d_s + |θ|, whatever T",
          .time = "K d_s² + |θ|, K iterations",
          .memory_power = 2,
          .time_power = 2,
          .source =
              "R. Liao, Y. Xiong, E. Fetaya, L. Zhang, K. Yoon, X. Pitkow, R. Urtasun, R. Zemel, Reviving and improving recurrent "
              "back-propagation, ICML 2018, section 3.2",
          .idea =
              "As recurrent backpropagation, its equation solved by conjugate gradients of the damped normal equations, so that a fixed "
              "point that is not stable has a gradient, too. The condition number is squared.",
          .online = method};
}

}  // namespace reclab::rules_by_name
