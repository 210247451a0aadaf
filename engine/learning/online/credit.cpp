// SPDX-License-Identifier: GPL-3.0-or-later
#include "learning/online/credit.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <utility>

#include "array/error.h"
#include "array/stop.h"

namespace reclab {
namespace {

constexpr double most_numbers = 1 << 28;  // of true gradients, or of one influence
constexpr double nan = std::numeric_limits<double>::quiet_NaN();

double dot(std::span<const double> a, std::span<const double> b) {
  double sum = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// Agreement of products of estimates with the truth, and their nearness.
struct Agreement {
  double both = 0.0, estimate = 0.0, truth = 0.0;
  void add(std::span<const double> of, std::span<const double> true_one) {
    both += dot(of, true_one);
    estimate += dot(of, of);
    truth += dot(true_one, true_one);
  }
  double cosine() const { return estimate > 0.0 && truth > 0.0 ? both / std::sqrt(estimate * truth) : nan; }
  double ratio() const { return truth > 0.0 ? std::sqrt(estimate / truth) : nan; }
};

/// Means of values that are finite.
class Means {
 public:
  explicit Means(std::size_t n) : sums_(n), counts_(n) {}
  void add(std::size_t at, double value) {
    if (std::isfinite(value)) sums_[at] += value, ++counts_[at];
  }
  std::vector<double> values() const {
    std::vector<double> all;
    for (std::size_t i = 0; i < sums_.size(); ++i) all.push_back(counts_[i] ? sums_[i] / static_cast<double>(counts_[i]) : nan);
    return all;
  }

 private:
  std::vector<double> sums_;
  std::vector<std::int64_t> counts_;
};
struct NearnessMeans {
  Means cosine, ratio;
  explicit NearnessMeans(std::size_t n) : cosine(n), ratio(n) {}
  void add(std::size_t at, const Agreement& sums) {
    cosine.add(at, sums.cosine());
    ratio.add(at, sums.ratio());
  }
  Nearness values() const { return {cosine.values(), ratio.values()}; }
};

/// A sequence, its states, and what its loss sends back to the outputs of each step: nothing, at a step that has no loss.
class Course {
 public:
  Course(const Model& model, const Sequence& sequence, const Loss& loss)
      : sequence_(sequence), step_(model, sequence.width, loss.outputs()) {
    std::vector<double> state = step_.start();
    for (std::int64_t t = 0; t < sequence.length; ++t) {
      states_.push_back(state);
      evaluate(static_cast<std::size_t>(t));
      state = step_.next();
      std::vector<double> adjoint(step_.output().size());
      loss.segment(t, 1, std::ssize(adjoint), step_.output(), adjoint);
      if (std::ranges::all_of(adjoint, [](double x) { return x == 0.0; })) adjoint.clear();
      adjoints_.push_back(std::move(adjoint));
    }
  }
  std::size_t steps() const { return states_.size(); }
  std::size_t weights() const { return step_.weights(); }
  bool counts(std::size_t t) const { return !adjoints_[t].empty(); }

  /// Calls see(t, gradient of the loss of step t) for the steps from .. end - 1 that have one, with weights that act at all of them, or at
  /// the first alone. Returns the seconds in the influence.
  template <class See>
  double go(Influence& influence, const Signs& signs, std::size_t from, std::size_t end, bool first_alone, const See& see) {
    using Clock = std::chrono::steady_clock;
    double seconds = 0.0;
    influence.start(signs);
    std::vector<double> gradient(weights());
    for (std::size_t t = from; t < end; ++t) {
      check_stop();
      evaluate(t);
      const bool acts = !first_alone || t == from;
      const auto before = Clock::now();
      if (counts(t)) {
        std::ranges::fill(gradient, 0.0);
        influence.credit(step_, adjoints_[t], acts, gradient);
      }
      if (t + 1 < end) influence.advance(step_, acts);
      seconds += std::chrono::duration<double>(Clock::now() - before).count();
      if (counts(t)) see(t, std::as_const(gradient));
    }
    return seconds;
  }

 private:
  void evaluate(std::size_t t) {
    const std::size_t width = step_.inputs();
    step_.evaluate(states_[t], std::span(sequence_.input).subspan(t * width, width));
  }

  const Sequence& sequence_;
  StepMap step_;
  std::vector<std::vector<double>> states_, adjoints_;
};

}  // namespace

std::vector<CreditOfRule> credit_of(const Model& model, const Sequence& sequence, const Loss& loss, const CreditPlan& plan,
                                    std::uint64_t seed, const std::function<void(double, const std::string&)>& progress,
                                    std::stop_token stop) {
  const StopScope scope(stop);
  TrainingOptions options;
  options.snap_order = plan.snap_order;
  options.rbp_terms = plan.rbp_terms;
  options.seed = seed;
  const OnlineSetup setup{model, options, sequence.width, loss.outputs()};
  std::vector<OnlineMethod> methods;
  for (const std::string& id : plan.rules) {
    const LearningRuleInfo& info = learning_rule(id);
    if (!info.online || info.online(setup).influence()->rehearses())
      throw Error(info.title + " has the gradient of a whole sequence and none of each step: choose an online rule.",
                  {.parameter = "rules", .value = id});
    methods.push_back(info.online(setup));
  }
  const OnlineMethod exact = learning_rule("rtrl").online(setup);
  const std::uint64_t drawn = seed + 0x9E3779B97F4A7C15ULL * static_cast<std::uint64_t>(plan.signs);
  Course course(model, sequence, loss);
  const std::size_t T = course.steps(), W = course.weights(), delays = std::min(T, static_cast<std::size_t>(plan.delays));
  std::size_t counted = 0;
  for (std::size_t t = 0; t < T; ++t) counted += course.counts(t) ? 1 : 0;
  if (2.0 * static_cast<double>(counted) * static_cast<double>(W) > most_numbers || exact.numbers > most_numbers)
    throw Error("The true gradients of " + std::to_string(counted) + " steps by " + std::to_string(W) +
                    " weights are too large: choose a shorter sequence, or a narrower model.",
                {.parameter = "length"});

  const std::unique_ptr<Influence> truth = exact.influence();
  std::vector<std::vector<double>> gradients(T);
  std::vector<double> whole(W);
  course.go(*truth, {}, 0, T, false, [&](std::size_t t, const std::vector<double>& gradient) {
    gradients[t] = gradient;
    add_scaled(whole, 1.0, gradient);
  });

  std::vector<CreditOfRule> all;
  for (std::size_t m = 0; m < methods.size(); ++m) {
    const LearningRuleInfo& info = learning_rule(plan.rules[m]);
    const std::int64_t repeats = info.gradient == GradientKind::unbiased && !methods[m].exact ? plan.repeats : 1;
    CreditOfRule made{.rule = info.id, .exact = methods[m].exact, .repeats = repeats, .bytes = methods[m].numbers * sizeof(double)};
    made.seconds = std::numeric_limits<double>::infinity();
    const std::unique_ptr<Influence> influence = methods[m].influence();
    NearnessMeans by_step(T), of_sum(1);
    std::vector<NearnessMeans> by_weight(model.weights().size(), NearnessMeans(T));
    std::vector<Agreement> by_delay(delays);
    std::vector<std::vector<double>> means(T);
    std::vector<double> squares(T);
    for (std::int64_t repeat = 0; repeat < repeats; ++repeat) {
      if (progress)
        progress(
            (static_cast<double>(m) + static_cast<double>(repeat) / static_cast<double>(repeats)) / static_cast<double>(methods.size()),
            info.id);
      std::vector<double> sum(W);
      const double seconds =
          course.go(*influence, signs_of(drawn, repeat + 1, 0), 0, T, false, [&](std::size_t t, const std::vector<double>& gradient) {
            Agreement sums;
            sums.add(gradient, gradients[t]);
            by_step.add(t, sums);
            std::size_t first = 0;
            for (std::size_t w = 0; w < by_weight.size(); ++w) {
              const auto entries = static_cast<std::size_t>(model.weights()[w].entries());
              Agreement own;
              own.add(std::span(gradient).subspan(first, entries), std::span<const double>(gradients[t]).subspan(first, entries));
              by_weight[w].add(t, own);
              first += entries;
            }
            means[t].resize(W);
            add_scaled(means[t], 1.0 / static_cast<double>(repeats), gradient);
            squares[t] += sums.estimate / static_cast<double>(repeats);
            add_scaled(sum, 1.0, gradient);
          });
      made.seconds = std::min(made.seconds, seconds / static_cast<double>(T));
      Agreement sums;
      sums.add(sum, whole);
      of_sum.add(0, sums);
      // Weights that act at one step alone: the same signs each time, since of the rules that draw some none mixes steps then.
      std::vector<std::vector<double>> own(delays);
      for (std::size_t from = 0; from < T; ++from) {
        const std::size_t end = std::min(T, from + delays);
        bool any = false;
        for (std::size_t t = from; t < end; ++t) any |= course.counts(t);
        if (!any) continue;
        course.go(*influence, signs_of(drawn, repeat + 1, static_cast<std::int64_t>(from) + 1), from, end, true,
                  [&](std::size_t t, const std::vector<double>& gradient) { own[t - from] = gradient; });
        course.go(*truth, {}, from, end, true,
                  [&](std::size_t t, const std::vector<double>& gradient) { by_delay[t - from].add(own[t - from], gradient); });
      }
    }
    made.whole = by_step.values();
    for (const NearnessMeans& one : by_weight) made.by_weight.push_back(one.values());
    for (const Agreement& sums : by_delay) {
      made.by_delay.cosine.push_back(sums.cosine());
      made.by_delay.ratio.push_back(sums.ratio());
    }
    made.sum = of_sum.values();
    made.bias.assign(T, nan);
    made.deviation.assign(T, nan);
    for (std::size_t t = 0; t < T; ++t) {
      const double norm = std::sqrt(dot(gradients[t], gradients[t]));
      if (means[t].empty() || norm == 0.0) continue;
      double away = 0.0;
      for (std::size_t w = 0; w < W; ++w) away += (means[t][w] - gradients[t][w]) * (means[t][w] - gradients[t][w]);
      made.bias[t] = std::sqrt(away) / norm;
      made.deviation[t] = std::sqrt(std::max(0.0, squares[t] - dot(means[t], means[t]))) / norm;
    }
    all.push_back(std::move(made));
  }
  return all;
}

}  // namespace reclab
