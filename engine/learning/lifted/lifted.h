// SPDX-License-Identifier: GPL-3.0-or-later
// The states of a sequence as variables of their own, s[t], which the recurrence n[t] = f(s[t-1], u[t]) no longer makes but is held to:
// lifted methods (survey of state-space modelling in long sequences, equation 74) and predictive coding.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "execution/step_map.h"
#include "learning/learning_rule.h"
#include "learning/losses.h"
#include "sequence/sequence.h"

namespace reclab {

class LiftedSequence {
 public:
  /// All must outlive it. The states are those of the recurrence from rest, where they are finite (bad()).
  LiftedSequence(StepMap& step, const Sequence& sequence, std::stop_token stop);
  const std::optional<std::pair<std::string, std::string>>& bad() const { return bad_; }  ///< why they are not, and the array
  double loss() const { return loss_; }                                                   ///< of the recurrence

  /// Predictive coding with fixed predictions (B. Millidge, A. Tschantz, C. L. Buckley, Neural Computation 34(6), 2022, equations 5 and 6):
  /// all errors e[t] = n[t] - s[t] go `iterations` times
  ///   e[t] += rate (J[t+1]' e[t+1] + dL[t+1]/ds[t] - e[t]),
  /// with predictions, Jacobians and losses as in the recurrence, and stand in the place of its adjoints.
  void code(std::int64_t iterations, double rate);
  /// The augmented Lagrangian sum_t L[t] + l[t]' (n[t] - s[t]) + penalty/2 |n[t] - s[t]|^2: `rounds` times the states go towards its
  /// minimum by `iterations` of conjugate gradients, and l[t] += penalty (n[t] - s[t]). One round, with l = 0, is the method of quadratic
  /// penalties (M. Carreira-Perpinan, W. Wang, AISTATS 2014); more are that of G. Marra and others (IJCNN 2020). The adjoint of n[t] is
  /// then l[t], of before the last change, + penalty (n[t] - s[t]).
  void lift(double penalty, std::int64_t rounds, std::int64_t iterations);
  /// Block coordinates of the same function without multipliers: from the last state to the first, each goes to where its own part is least
  /// with all others held,
  ///   L[t+1](s) + penalty/2 (|n[t] - s|^2 + |f(s, u[t+1]) - s[t+1]|^2),
  /// by at most `iterations` of Gauss-Newton's method with the second derivative of the loss, each as far as the value falls; where step
  /// and read-out are linear one of them is the closed form. The last state becomes its prediction.
  void sweep(double penalty, std::int64_t iterations);
  /// One state of a sweep.
  void settle(std::size_t t, double penalty, std::int64_t iterations);
  /// sum_t L[t] + penalty/2 |n[t] - s[t]|^2 with the weights as they are; its derivative by the weights is added to `gradient`, which may
  /// be empty for none.
  double objective(double penalty, std::span<double> gradient);
  const std::vector<double>& states() const { return s_; }  ///< [T, states]
  /// sum_t (adjoint of n[t])' dn[t]/dtheta + dL[t]/dtheta, added to all weights one after another.
  void pull_back(std::span<double> gradient);

 private:
  std::span<double> row(std::vector<double>& of, std::size_t t) const { return std::span(of).subspan(t * states_, states_); }
  std::span<const double> input(std::size_t t) const;
  void check_stop() const;
  /// L[t] and its derivative by the outputs of the step that was evaluated last.
  double loss_at(std::size_t t, std::vector<double>& adjoint) const;
  /// The augmented Lagrangian at `s`, and its gradient.
  double value(const std::vector<double>& s, std::vector<double>& gradient);
  void descend(std::int64_t iterations);
  /// The part of s[t]; `off`: penalty (f(s, u[t+1]) - s[t+1]).
  double block_value(std::size_t t, const std::vector<double>& prediction, const std::vector<double>& s, std::vector<double>& off,
                     std::vector<double>& output_adjoint);
  std::vector<double> block_curvature(std::size_t t);

  StepMap& step_;
  const Sequence& sequence_;
  SequenceLoss of_task_;
  std::stop_token stop_;
  std::size_t length_, states_;
  std::vector<double> s_;        // [T, states], s[t] after step t
  std::vector<double> adjoint_;  // [T, states], of n[t]
  std::vector<double> duals_;    // l
  std::vector<double> begin_;    // the state before the first step
  double penalty_ = 0.0, loss_ = 0.0;
  std::optional<std::pair<std::string, std::string>> bad_;
};

/// A rule that takes each sequence of a batch by `take`, whose gradient is that of pull_back() after it.
std::unique_ptr<LearningRule> lifted_rule(const LearningSetup& setup, const std::string& title, bool exact,
                                          std::function<void(LiftedSequence&)> take);

/// Throws Error for a penalty, rounds or iterations out of range.
void check_lifted(const TrainingOptions& options);

}  // namespace reclab
