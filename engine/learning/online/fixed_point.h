// SPDX-License-Identifier: GPL-3.0-or-later
// Recurrent backpropagation (L. B. Almeida, ICNN 1987; F. J. Pineda, Physical Review Letters 59(19), 1987): each state is taken for a
// fixed point of its step, s = F(s, x), at which by the implicit function theorem ds/dtheta = (I - J)^-1 D, J and D being the derivatives
// of that one step. With a = dL/ds[t-1] the gradient is that of the one step and D^T z, z = (I - J^T)^-1 a; nothing of the steps before is
// kept. Its penalty keeps the step a contraction: to the loss of a step is added weight |(1^T J - bound)^+|, at s (D. Linsley, A. Karkada
// Ashok, L. N. Govindarajan, R. Liu, T. Serre, Stable and expressive recurrent vision models, NeurIPS 2020).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "learning/online/influence.h"

namespace reclab {

class AtFixedPoint : public Influence {
 public:
  explicit AtFixedPoint(const TrainingOptions& options) : penalty_(options.lipschitz), bound_(options.lipschitz_bound) {}
  void start(const Signs& signs) override;
  void credit(StepMap& step, std::span<const double> output_adjoint, bool acts, std::span<double> gradient) override;
  void advance(StepMap& step, bool acts) override;

 protected:
  /// z. Throws Error where there is none.
  virtual std::vector<double> solve(StepMap& step, std::vector<double> a) = 0;
  /// The most steps back over which the gradient goes: terms of z = sum_k (J^T)^k a.
  virtual std::int64_t furthest() const = 0;
  void add_product(std::span<const double> adjoint, std::span<double> gradient) const final;

 private:
  bool acted(std::int64_t steps_before) const;
  /// Adds the derivatives of the penalty, by the weights as they act at this step and by the state before it.
  void penalise(StepMap& step, std::span<double> gradient, std::span<double> by_state) const;

  double penalty_, bound_;
  std::int64_t acting_ = 0;  // steps until now, the weights acting at each of them
  std::vector<bool> later_;  // and after the first at which they did not
};

/// J^T x of the step.
std::vector<double> back_through(StepMap& step, std::span<const double> x);
double norm_of(std::span<const double> x);

}  // namespace reclab
