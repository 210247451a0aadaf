// SPDX-License-Identifier: GPL-3.0-or-later
// Online learning rules: they go forward with the influence of the weights on the state, P[t] = ds[t]/dtheta, or with an estimate of it,
// P[t] = J[t] P[t-1] + D[t] with J[t] = ds[t]/ds[t-1] and D[t] the derivative of the one step, so that the gradient of each step's loss is
// known at that step: dL[t]/dtheta = (dL[t]/ds[t-1]) P[t-1] + that of the one step.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "execution/step_map.h"
#include "learning/learning_rule.h"

namespace reclab {

/// Draws 1 or -1.
using Signs = std::function<double()>;
/// The signs of one sequence of one step of training: they depend on these numbers alone.
Signs signs_of(std::uint64_t seed, std::int64_t step, std::int64_t sequence);

/// Writes dL/dtheta, all weights behind each other, into an array each, in the model's precision.
void upload_gradients(Model& model, std::span<const double> values, std::span<DeviceArray> into);

/// The influence of the weights on the state of one sequence. Vectors are those of StepMap.
class Influence {
 public:
  virtual ~Influence() = default;
  /// P = 0, as before the first step.
  virtual void start(const Signs& signs) = 0;
  /// Whether it goes over a sequence twice, first by rehearse() of each step; credit() is then called at every step.
  virtual bool rehearses() const { return false; }
  virtual void rehearse(StepMap&, std::span<const double> /*output_adjoint*/) {}
  /// The gradient of the loss of the step that `step` was evaluated at, added; `output_adjoint` is dL/dy, empty for 0. Called before
  /// advance() of the same step. `acts`: whether the weights act at this step, too, or at those before it alone. Throws Error.
  virtual void credit(StepMap& step, std::span<const double> output_adjoint, bool acts, std::span<double> gradient);
  /// From the P of the step before to that of the step that `step` was evaluated at; D[t] = 0 where the weights do not act at it.
  virtual void advance(StepMap& step, bool acts) = 0;
  /// The arrays that it goes on from after advance(), each by its name, to be read or set; none for a rule that rehearses.
  using Keep = std::function<void(const std::string& name, std::vector<double>& values)>;
  virtual void keep(const Keep& /*keep*/) {}

 protected:
  /// gradient += adjoint P
  virtual void add_product(std::span<const double> adjoint, std::span<double> gradient) const = 0;
};

struct OnlineSetup {
  const Model& model;
  const TrainingOptions& options;
  std::int64_t inputs, outputs;  ///< of StepMap
};

/// An online rule for one model. The model must outlive it.
struct OnlineMethod {
  std::function<std::unique_ptr<Influence>()> influence{};  ///< of a sequence; each uses the StepMap that it is given
  double numbers = 0.0;                                     ///< in float64, of the influence of a sequence
  bool exact = false;                                       ///< for this model its gradients are those of backpropagation
};

/// The rule with that method, over the sequences of a batch. Throws Error where the method is too large, or cannot learn with the options.
std::unique_ptr<LearningRule> online_rule(const LearningRuleInfo& info, const LearningSetup& setup);
/// The same with another method than info.online.
std::unique_ptr<LearningRule> online_rule(const LearningRuleInfo& info, const LearningSetup& setup,
                                          const std::function<OnlineMethod(const OnlineSetup&)>& method);

/// to += factor * row
inline void add_scaled(std::span<double> to, double factor, std::span<const double> row) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += factor * row[i];
}

/// One product in place of the sum of two, x0 (x) y0 + x1 (x) y1, which it is in the mean over the signs (the rank-one trick of C. Tallec,
/// Y. Ollivier, ICLR 2018): x0 = c0 p0 x0 + c1 p1 x1 and y0 = c0 y0 / p0 + c1 y1 / p1, where p = sqrt(|y| / |x|) of each makes the variance
/// least. Where a vector is 0, its p is 1.
void join_products(double c0, std::span<double> x0, std::span<double> y0, double c1, std::span<const double> x1,
                   std::span<const double> y1);

}  // namespace reclab
