// SPDX-License-Identifier: GPL-3.0-or-later
// Temporal predictive coding (B. Millidge, M. Tang, M. Osanlouy, N. S. Harper, R. Bogacz, PLOS Computational Biology 20(4), 2024). With the
// prediction n of the state from the estimate of the step before and a linear read-out y = V r + c of entries r of the state, the estimate
// is where
//   F = |r - n|^2 / 2 + w |V r + c - target|^2 / 2
// is least, r = n + V' (V V' + I / w)^-1 (target - V n - c): a Kalman filter's, whose covariance before each target is the identity.
// Weights go down F with the estimates held, and no adjoint goes back through time.
#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include "array/host.h"
#include "learning/losses.h"
#include "learning/online/influence.h"
#include "learning/online/sequence_rule.h"
#include "learning/online/step_pattern.h"

namespace reclab::rules_by_name {
namespace {

constexpr const char* title = "Temporal predictive coding";

/// A x = b for a symmetric positive definite A [n, n], by its Cholesky factor.
std::vector<double> solved(std::vector<double> A, std::vector<double> b) {
  const std::size_t n = b.size();
  for (std::size_t j = 0; j < n; ++j)
    for (std::size_t i = j; i < n; ++i) {
      double sum = A[i * n + j];
      for (std::size_t k = 0; k < j; ++k) sum -= A[i * n + k] * A[j * n + k];
      A[i * n + j] = i == j ? std::sqrt(sum) : sum / A[j * n + j];
    }
  for (std::size_t i = 0; i < n; ++i) {
    for (std::size_t k = 0; k < i; ++k) b[i] -= A[i * n + k] * b[k];
    b[i] /= A[i * n + i];
  }
  for (std::size_t i = n; i-- > 0;) {
    for (std::size_t k = i + 1; k < n; ++k) b[i] -= A[k * n + i] * b[k];
    b[i] /= A[i * n + i];
  }
  return b;
}

class TemporalCoding final : public SequenceRule {
 public:
  explicit TemporalCoding(const LearningSetup& setup)
      : SequenceRule(checked(setup), title), model_(setup.model), precision_(setup.options.tpc_precision), length_(setup.length) {
    const Sequence& first = setup.examples.front();
    find_read({model_, setup.options, first.width, SequenceLoss(LossKind::task, first).outputs()});
  }
  bool exact() const override { return false; }

 private:
  static const LearningSetup& checked(const LearningSetup& setup) {
    if (!(setup.options.tpc_precision > 0.0))
      throw Error("tpc_precision is out of range: choose more than 0.", {.parameter = "tpc_precision", .range = "more than 0"});
    require_no_parts(setup.options, std::string(title) + " goes back over no step");
    require_numbers(title, setup.examples.front());
    return setup;
  }
  std::size_t numbers(const StepMap& step) const override { return 2 * step.states(); }
  void look_at_weights() override { V_ = model_.parameters().entries()[head_].values; }

  /// The entries of the next state that the columns of the read-out are multiplied with, by steps from rest on with weights moved a little.
  void find_read(const OnlineSetup& setup) {
    const auto refuse = [&](const std::string& why) {
      throw Error(std::string(title) + " is for states that a linear read-out sees, and " + model_.architecture().id + " " + why +
                      ": choose another rule.",
                  {.model = model_.architecture().id, .parameter = "rule", .value = "temporal-pc"});
    };
    std::size_t at = 0, width = 0;
    for (std::size_t i = 0; i < model_.weights().size(); ++i) {
      const Model::Weight& weight = model_.weights()[i];
      if (weight.name == "head/weight") head_ = i, first_of_head_ = at, width = static_cast<std::size_t>(weight.shape[1]);
      if (weight.name == "head/bias") first_of_bias_ = at;
      at += static_cast<std::size_t>(weight.entries());
    }
    if (width == 0) refuse("has none");
    std::vector<std::pair<std::vector<double>, std::vector<double>>> seen;  // next states, and what the read-out is multiplied with
    for (int round = 0; round < 2; ++round)
      probe_steps(setup, round, [&](StepMap& step, const Model&, std::span<const double>) {
        std::vector<double> unit(step.outputs());
        unit[0] = 1.0;
        const std::vector<double> next = step.next();
        step.pull_back({}, unit);
        const auto from = step.weight_adjoint().begin() + static_cast<std::ptrdiff_t>(first_of_head_);
        seen.emplace_back(next, std::vector<double>(from, from + static_cast<std::ptrdiff_t>(width)));
      });
    for (std::size_t k = 0; k < width; ++k) {
      std::size_t j = 0;
      const auto same = [&](const auto& one) { return std::abs(one.first[j] - one.second[k]) <= 1e-9 * std::abs(one.second[k]); };
      while (j < seen.front().first.size() && !std::ranges::all_of(seen, same)) ++j;
      if (j == seen.front().first.size()) refuse("has outputs that are not read from its state alone");
      read_.push_back(j);
    }
  }

  void take(StepMap& step, const Sequence& sequence, SequenceGradient& own, const std::stop_token& stop) const override {
    const SequenceLoss loss(LossKind::task, sequence);
    const auto width = static_cast<std::size_t>(sequence.width);
    const std::size_t outputs = step.outputs(), reads = read_.size();
    std::vector<double> A(outputs * outputs);  // V V' + I / w
    for (std::size_t a = 0; a < outputs; ++a)
      for (std::size_t b = 0; b < outputs; ++b) {
        A[a * outputs + b] = a == b ? 1.0 / precision_ : 0.0;
        for (std::size_t k = 0; k < reads; ++k) A[a * outputs + b] += V_[a * reads + k] * V_[b * reads + k];
      }
    double counted = 0.0;
    for (const double m : sequence.mask) counted += m != 0.0;
    std::vector<double> state = step.start(), adjoint(step.states()), unused(outputs), error(outputs);
    for (std::size_t t = 0; t < static_cast<std::size_t>(length_); ++t) {
      if (stop.stop_requested()) throw Cancelled();
      step.evaluate(state, std::span(sequence.input).subspan(t * width, width));
      const std::vector<double>& y = step.output();
      state = step.next();
      if (!std::ranges::all_of(state, [](double x) { return std::isfinite(x); })) {
        own.bad = {"a state became non-finite at step " + std::to_string(t) + " of a sequence", "state"};
        return;
      }
      if (sequence.mask[t] == 0.0) continue;
      std::ranges::fill(unused, 0.0);
      own.value += loss.segment(static_cast<std::int64_t>(t), 1, std::ssize(unused), y, unused);
      for (std::size_t a = 0; a < outputs; ++a) error[a] = sequence.target[t * outputs + a] - y[a];
      const std::vector<double> gain = solved(A, error);
      std::ranges::fill(adjoint, 0.0);
      for (std::size_t k = 0; k < reads; ++k) {
        double move = 0.0;
        for (std::size_t a = 0; a < outputs; ++a) move += V_[a * reads + k] * gain[a];
        state[read_[k]] += move;
        adjoint[read_[k]] -= move / counted;  // dF/dn = n - r
      }
      step.pull_back(adjoint, {});
      for (std::size_t i = 0; i < own.gradient.size(); ++i) own.gradient[i] += step.weight_adjoint()[i];
      // V r + c - target = -(V V' + I / w)^-1 (target - V n - c) / w at the estimate.
      for (std::size_t a = 0; a < outputs; ++a) {
        const double off = -gain[a] / counted;  // w times that
        for (std::size_t k = 0; k < reads; ++k) own.gradient[first_of_head_ + a * reads + k] += off * state[read_[k]];
        own.gradient[first_of_bias_ + a] += off;
      }
    }
  }

  Model& model_;
  double precision_;
  std::int64_t length_;
  std::size_t head_ = 0, first_of_head_ = 0, first_of_bias_ = 0;
  std::vector<std::size_t> read_;
  std::vector<double> V_;
};

}  // namespace

LearningRuleInfo temporal_pc() {
  return {
      .title = title,
      .year = 2024,
      .name = "temporal PC",
      .gradient = GradientKind::biased,
      .local = true,
      .memory = "d_s² for the gradient of a full matrix",
      .time = "d_s² for a full matrix, |θ| for others",
      .memory_power = 2,
      .time_power = 2,
      .source =
          "B. Millidge, M. Tang, M. Osanlouy, N. S. Harper, R. Bogacz, PLOS Computational Biology 20(4):e1011183, 2024, equations 6 to 9",
      .idea =
          "At each step the state is moved from its prediction to where prediction and target agree best, as a Kalman filter of fixed "
          "covariance does, and the weights learn to have predicted that. Nothing goes back through time: what a target says of earlier "
          "steps is in the estimates alone.",
      .make = [](const LearningSetup& setup) -> std::unique_ptr<LearningRule> { return std::make_unique<TemporalCoding>(setup); }};
}

}  // namespace reclab::rules_by_name
