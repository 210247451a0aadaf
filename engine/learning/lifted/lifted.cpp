// SPDX-License-Identifier: GPL-3.0-or-later
#include "learning/lifted/lifted.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "array/error.h"
#include "learning/online/sequence_rule.h"

namespace reclab {
namespace {

double dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

}  // namespace

LiftedSequence::LiftedSequence(StepMap& step, const Sequence& sequence, std::stop_token stop)
    : step_(step),
      sequence_(sequence),
      of_task_(LossKind::task, sequence),
      stop_(std::move(stop)),
      length_(static_cast<std::size_t>(sequence.length)),
      states_(step.states()),
      s_(length_ * states_),
      adjoint_(length_ * states_),
      duals_(length_ * states_) {
  std::vector<double> state = step_.start(), output_adjoint;
  for (std::size_t t = 0; t < length_; ++t) {
    check_stop();
    step_.evaluate(state, input(t));
    state = step_.next();
    const auto finite = [](const std::vector<double>& all) { return std::ranges::all_of(all, [](double x) { return std::isfinite(x); }); };
    if (!finite(state) || !finite(step_.output())) {
      bad_ = {"a state or an output became non-finite at step " + std::to_string(t) + " of a sequence", "state"};
      return;
    }
    std::ranges::copy(state, row(s_, t).begin());
    loss_ += loss_at(t, output_adjoint);
  }
}

std::span<const double> LiftedSequence::input(std::size_t t) const {
  const auto width = static_cast<std::size_t>(sequence_.width);
  return std::span(sequence_.input).subspan(t * width, width);
}

void LiftedSequence::check_stop() const {
  if (stop_.stop_requested()) throw Cancelled();
}

double LiftedSequence::loss_at(std::size_t t, std::vector<double>& adjoint) const {
  adjoint.assign(step_.outputs(), 0.0);
  return of_task_.segment(static_cast<std::int64_t>(t), 1, std::ssize(adjoint), step_.output(), adjoint);
}

void LiftedSequence::code(std::int64_t iterations, double rate) {
  std::vector<double> next(adjoint_.size()), output_adjoint;
  std::ranges::fill(adjoint_, 0.0);
  for (std::int64_t k = 0; k < iterations; ++k) {
    for (std::size_t t = 0; t + 1 < length_; ++t) {  // nothing comes back to the last state
      check_stop();
      step_.evaluate(row(s_, t), input(t + 1));
      loss_at(t + 1, output_adjoint);
      step_.pull_back(row(adjoint_, t + 1), output_adjoint);
      for (std::size_t i = 0; i < states_; ++i) {
        const double before = adjoint_[t * states_ + i];
        next[t * states_ + i] = before + rate * (step_.state_adjoint()[i] - before);
      }
    }
    adjoint_.swap(next);
  }
}

double LiftedSequence::value(const std::vector<double>& s, std::vector<double>& gradient) {
  gradient.assign(s.size(), 0.0);
  std::vector<double> state = step_.start(), output_adjoint;
  double sum = 0.0;
  for (std::size_t t = 0; t < length_; ++t) {
    check_stop();
    step_.evaluate(state, input(t));
    sum += loss_at(t, output_adjoint);
    std::span<double> adjoint = row(adjoint_, t);
    for (std::size_t i = 0; i < states_; ++i) {
      const std::size_t at = t * states_ + i;
      const double off = step_.next()[i] - s[at];
      sum += duals_[at] * off + 0.5 * penalty_ * off * off;
      adjoint[i] = duals_[at] + penalty_ * off;
      gradient[at] -= adjoint[i];
    }
    if (t > 0) {
      step_.pull_back(adjoint, output_adjoint);
      for (std::size_t i = 0; i < states_; ++i) gradient[(t - 1) * states_ + i] += step_.state_adjoint()[i];
    }
    state.assign(s.begin() + static_cast<std::ptrdiff_t>(t * states_), s.begin() + static_cast<std::ptrdiff_t>((t + 1) * states_));
  }
  return sum;
}

/// Conjugate gradients (E. Polak, G. Ribiere), each step as far as the curvature along it says, by a difference of gradients, or less
/// until the value falls.
void LiftedSequence::descend(std::int64_t iterations) {
  constexpr double nudge = 1e-6;
  std::vector<double> gradient, other, direction, moved(s_.size());
  double now = value(s_, gradient);
  const auto move = [&](double by) {
    for (std::size_t i = 0; i < s_.size(); ++i) moved[i] = s_[i] + by * direction[i];
  };
  for (std::int64_t k = 0; k < iterations; ++k) {
    if (direction.empty())
      for (const double g : gradient) direction.push_back(-g);
    double along = dot(gradient, direction);
    if (along >= 0.0) {
      for (std::size_t i = 0; i < direction.size(); ++i) direction[i] = -gradient[i];
      along = dot(gradient, direction);
    }
    const double size = std::sqrt(dot(direction, direction));
    if (size == 0.0) break;
    const double little = nudge / size;
    move(little);
    value(moved, other);
    const double curvature = (dot(other, direction) - along) / little;
    double by = curvature > 0.0 ? -along / curvature : 1.0 / std::max(1.0, penalty_);
    std::vector<double> next;
    double then = 0.0;
    for (int tries = 0;; ++tries) {
      move(by);
      then = value(moved, next);
      if (then <= now || tries == 40) break;
      by *= 0.5;
    }
    if (!(then <= now)) break;  // no digit is left
    s_ = moved;
    now = then;
    double turn = 0.0;
    for (std::size_t i = 0; i < next.size(); ++i) turn += next[i] * (next[i] - gradient[i]);
    const double before = dot(gradient, gradient);
    gradient = std::move(next);
    turn = before > 0.0 ? std::max(0.0, turn / before) : 0.0;
    for (std::size_t i = 0; i < direction.size(); ++i) direction[i] = turn * direction[i] - gradient[i];
  }
  value(s_, gradient);  // and the adjoints of the last states
}

void LiftedSequence::lift(double penalty, std::int64_t rounds, std::int64_t iterations) {
  penalty_ = penalty;
  for (std::int64_t round = 0; round < rounds; ++round) {
    if (round > 0) duals_ = adjoint_;
    descend(iterations);
  }
}

void LiftedSequence::pull_back(std::span<double> gradient) {
  std::vector<double> state = step_.start(), output_adjoint;
  for (std::size_t t = 0; t < length_; ++t) {
    check_stop();
    step_.evaluate(state, input(t));
    loss_at(t, output_adjoint);
    step_.pull_back(row(adjoint_, t), output_adjoint);
    for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] += step_.weight_adjoint()[i];
    std::ranges::copy(row(s_, t), state.begin());
  }
}

namespace {

class LiftedRule final : public SequenceRule {
 public:
  LiftedRule(const LearningSetup& setup, const std::string& title, bool exact, std::function<void(LiftedSequence&)> take)
      : SequenceRule(setup, title), exact_(exact), take_(std::move(take)), length_(setup.length) {}
  bool exact() const override { return exact_; }

 private:
  std::size_t numbers(const StepMap& step) const override {
    constexpr std::size_t arrays = 8;  // of states: themselves, adjoints, duals, and those of a descent
    return static_cast<std::size_t>(length_) * arrays * step.states();
  }
  void take(StepMap& step, const Sequence& sequence, SequenceGradient& own, const std::stop_token& stop) const override {
    LiftedSequence lifted(step, sequence, stop);
    own.bad = lifted.bad();
    own.value = lifted.loss();
    if (own.bad || !own.counts) return;
    take_(lifted);
    lifted.pull_back(own.gradient);
  }

  bool exact_;
  std::function<void(LiftedSequence&)> take_;
  std::int64_t length_;
};

}  // namespace

void check_lifted(const TrainingOptions& options) {
  const auto refuse = [](const char* key, double value, const std::string& range) {
    throw Error(std::string(key) + " is out of range: choose " + range + ".",
                {.parameter = key, .value = std::to_string(value), .range = range});
  };
  if (!(options.lifted_penalty > 0.0)) refuse("lifted_penalty", options.lifted_penalty, "more than 0");
  if (options.lifted_rounds < 1) refuse("lifted_rounds", static_cast<double>(options.lifted_rounds), "1 or more");
  if (options.lifted_iterations < 1) refuse("lifted_iterations", static_cast<double>(options.lifted_iterations), "1 or more");
}

std::unique_ptr<LearningRule> lifted_rule(const LearningSetup& setup, const std::string& title, bool exact,
                                          std::function<void(LiftedSequence&)> take) {
  require_no_parts(setup.options, title + " has the states of whole sequences", ", and choose shorter sequences");
  return std::make_unique<LiftedRule>(setup, title, exact, std::move(take));
}

}  // namespace reclab
