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

#include "algebra/cholesky.h"
#include "array/host.h"
#include "learning/losses.h"
#include "learning/online/influence.h"
#include "learning/online/sequence_rule.h"
#include "learning/structure/step_layers.h"

namespace reclab::rules_by_name {
namespace {

constexpr const char* title = "Temporal predictive coding";

class TemporalCoding final : public SequenceRule {
 public:
  explicit TemporalCoding(const LearningSetup& setup)
      : SequenceRule(checked(setup), title), model_(setup.model), precision_(setup.options.tpc_precision), length_(setup.length) {
    const Sequence& first = setup.examples.front();
    read_out_ = linear_read_out({model_, setup.options, first.width, SequenceLoss(LossKind::task, first).outputs()}, title, "temporal-pc");
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
  void look_at_weights() override { V_ = model_.parameters().entries()[read_out_.weight].values; }

  void take(StepMap& step, const Sequence& sequence, SequenceGradient& own, const std::stop_token& stop) const override {
    const SequenceLoss loss(LossKind::task, sequence);
    const auto width = static_cast<std::size_t>(sequence.width);
    const std::size_t outputs = step.outputs(), reads = read_out_.read.size();
    std::vector<double> A(outputs * outputs);  // V V' + I / w, then its factor: the weights stand during a sequence
    for (std::size_t a = 0; a < outputs; ++a)
      for (std::size_t b = 0; b < outputs; ++b) {
        A[a * outputs + b] = a == b ? 1.0 / precision_ : 0.0;
        for (std::size_t k = 0; k < reads; ++k) A[a * outputs + b] += V_[a * reads + k] * V_[b * reads + k];
      }
    factor_cholesky(A, outputs);
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
      std::vector<double> gain = error;
      solve_cholesky(A, gain);
      std::ranges::fill(adjoint, 0.0);
      for (std::size_t k = 0; k < reads; ++k) {
        double move = 0.0;
        for (std::size_t a = 0; a < outputs; ++a) move += V_[a * reads + k] * gain[a];
        state[read_out_.read[k]] += move;
        adjoint[read_out_.read[k]] -= move / counted;  // dF/dn = n - r
      }
      step.pull_back(adjoint, {});
      for (std::size_t i = 0; i < own.gradient.size(); ++i) own.gradient[i] += step.weight_adjoint()[i];
      // V r + c - target = -(V V' + I / w)^-1 (target - V n - c) / w at the estimate.
      for (std::size_t a = 0; a < outputs; ++a) {
        const double off = -gain[a] / counted;  // w times that
        for (std::size_t k = 0; k < reads; ++k) own.gradient[read_out_.first_of_weight + a * reads + k] += off * state[read_out_.read[k]];
        own.gradient[read_out_.first_of_bias + a] += off;
      }
    }
  }

  Model& model_;
  double precision_;
  std::int64_t length_;
  LinearReadOut read_out_;
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
