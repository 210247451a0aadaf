// SPDX-License-Identifier: GPL-3.0-or-later
#include "learning/lifted/lifted.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "algebra/cholesky.h"
#include "array/error.h"
#include "learning/lifted/conjugate_descent.h"
#include "learning/online/sequence_rule.h"

namespace reclab {
namespace {

std::vector<double> softmax(const std::vector<double>& y) {
  const double largest = *std::ranges::max_element(y);
  std::vector<double> p;
  double sum = 0.0;
  for (const double one : y) sum += p.emplace_back(std::exp(one - largest));
  for (double& one : p) one /= sum;
  return p;
}

/// to [n, n] += factor row row', the lower triangle.
void add_square(std::vector<double>& to, double factor, const std::vector<double>& row) {
  const std::size_t n = row.size();
  for (std::size_t i = 0; i < n; ++i)
    for (std::size_t j = 0; j <= i; ++j) to[i * n + j] += factor * row[i] * row[j];
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
      duals_(length_ * states_),
      begin_(step_.start()) {
  std::vector<double> state = begin_, output_adjoint;
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

void LiftedSequence::descend(std::int64_t iterations) {
  const auto at = [this](const std::vector<double>& s, std::vector<double>& gradient) { return value(s, gradient); };
  conjugate_descent(s_, at, {.iterations = iterations, .first_step = 1.0 / std::max(1.0, penalty_)});
  std::vector<double> gradient;
  value(s_, gradient);  // and the adjoints of the last states
}

void LiftedSequence::lift(double penalty, std::int64_t rounds, std::int64_t iterations) {
  penalty_ = penalty;
  for (std::int64_t round = 0; round < rounds; ++round) {
    if (round > 0) duals_ = adjoint_;
    descend(iterations);
  }
}

double LiftedSequence::block_value(std::size_t t, const std::vector<double>& prediction, const std::vector<double>& s,
                                   std::vector<double>& off, std::vector<double>& output_adjoint) {
  step_.evaluate(s, input(t + 1));
  double sum = loss_at(t + 1, output_adjoint), squares = 0.0;
  off.resize(states_);
  for (std::size_t i = 0; i < states_; ++i) {
    const double own = prediction[i] - s[i];
    off[i] = step_.next()[i] - s_[(t + 1) * states_ + i];
    squares += own * own + off[i] * off[i];
    off[i] *= penalty_;
  }
  return sum + 0.5 * penalty_ * squares;
}

/// penalty (I + J' J) + the loss's second derivative through the outputs, at the step that was evaluated last: the lower triangle.
std::vector<double> LiftedSequence::block_curvature(std::size_t t) {
  std::vector<double> H(states_ * states_), unit(states_), of_output(step_.outputs());
  for (std::size_t i = 0; i < states_; ++i) {
    H[i * states_ + i] += penalty_;
    unit[i] = 1.0;
    step_.pull_back(unit, {});
    unit[i] = 0.0;
    add_square(H, penalty_, step_.state_adjoint());
  }
  const LossForm form = of_task_.form();
  double weight = 0.0;
  std::vector<double> target(static_cast<std::size_t>(form.target_width(std::ssize(of_output))));
  of_task_.rows(static_cast<std::int64_t>(t + 1), {&weight, 1}, target);
  if (weight == 0.0) return H;
  const bool classes = form.term == LossTerm::cross_entropy;
  const std::vector<double> share = classes ? softmax(step_.output()) : std::vector<double>(of_output.size(), 1.0);
  for (std::size_t o = 0; o < of_output.size(); ++o) {
    of_output[o] = 1.0;
    step_.pull_back({}, of_output);
    of_output[o] = 0.0;
    add_square(H, weight * share[o], step_.state_adjoint());
  }
  if (classes) {
    step_.pull_back({}, share);
    add_square(H, -weight, step_.state_adjoint());
  }
  return H;
}

void LiftedSequence::settle(std::size_t t, double penalty, std::int64_t iterations) {
  penalty_ = penalty;
  step_.evaluate(t > 0 ? row(s_, t - 1) : std::span<double>(begin_), input(t));
  const std::vector<double> prediction = step_.next();
  if (t + 1 == length_) {
    std::ranges::copy(prediction, row(s_, t).begin());
    return;
  }
  std::vector<double> s(row(s_, t).begin(), row(s_, t).end()), moved(states_), off, output_adjoint, slope(states_);
  double now = block_value(t, prediction, s, off, output_adjoint);
  for (std::int64_t k = 0; k < iterations; ++k) {
    check_stop();
    step_.pull_back(off, output_adjoint);
    double steepest = 0.0, terms = 0.0;
    for (std::size_t i = 0; i < states_; ++i) {
      const double own = penalty_ * (s[i] - prediction[i]), later = step_.state_adjoint()[i];
      slope[i] = own + later;
      steepest = std::max(steepest, std::abs(slope[i]));
      terms = std::max(terms, std::abs(own) + std::abs(later));
    }
    if (steepest <= 4.0 * std::numeric_limits<double>::epsilon() * terms) break;
    const std::vector<double> way = solve_positive_definite(block_curvature(t), slope);
    double then = 0.0, by = 1.0;
    for (int tries = 0; tries <= 40; ++tries, by *= 0.5) {
      for (std::size_t i = 0; i < states_; ++i) moved[i] = s[i] - by * way[i];
      then = block_value(t, prediction, moved, off, output_adjoint);
      if (then <= now) break;
    }
    if (!(then <= now)) break;  // no digit is left
    std::swap(s, moved);
    now = then;
  }
  std::ranges::copy(s, row(s_, t).begin());
}

void LiftedSequence::sweep(double penalty, std::int64_t iterations) {
  for (std::size_t t = length_; t-- > 0;) settle(t, penalty, iterations);
}

double LiftedSequence::objective(double penalty, std::span<double> gradient) {
  penalty_ = penalty;
  std::vector<double> output_adjoint;
  double sum = 0.0;
  for (std::size_t t = 0; t < length_; ++t) {
    check_stop();
    step_.evaluate(t > 0 ? row(s_, t - 1) : std::span<double>(begin_), input(t));
    sum += loss_at(t, output_adjoint);
    const std::span<double> adjoint = row(adjoint_, t);
    for (std::size_t i = 0; i < states_; ++i) {
      const double off = step_.next()[i] - s_[t * states_ + i];
      sum += 0.5 * penalty * off * off;
      adjoint[i] = penalty * off;
    }
    if (gradient.empty()) continue;
    step_.pull_back(adjoint, output_adjoint);
    for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] += step_.weight_adjoint()[i];
  }
  return sum;
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
