// SPDX-License-Identifier: GPL-3.0-or-later
// Forward propagation of errors through time (N. Zucchet and others, 2026,
// github.com/NicolasZucchet/Forward-propagation-errors-through-time): the adjoint of backpropagation, lambda[t-1] = J[t]^T lambda[t] +
// dL[t]/ds[t-1], is solved for lambda[t] and goes forward with the state. A first pass over the sequence finds the adjoint after its first
// step, lambda[0] = sum_t (J[t-1] ... J[1])^T dL[t]/ds[t-1], a second one has the gradients. Rounding grows as the inverse of what the
// adjoint shrinks by: where the end is missed, the rule says so.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "learning/online/influence.h"
#include "learning/structure/step_pattern.h"

namespace reclab::rules_by_name {
namespace {

constexpr double singular = 1e-12;  // a pivot, as a share of the largest entry
constexpr double missed = 1e-9;     // the adjoint at the end, which is 0, as a share of the largest one

/// Solves A^T x = b, A [n, n] row after row; both are overwritten, b by x. False where A is singular.
bool solve_transposed(std::vector<double>& A, std::span<double> b) {
  const std::size_t n = b.size();
  double largest = 0.0;
  for (const double entry : A) largest = std::max(largest, std::abs(entry));
  const auto at = [&](std::size_t row, std::size_t column) -> double& { return A[column * n + row]; };  // of A^T
  for (std::size_t k = 0; k < n; ++k) {
    std::size_t pivot = k;
    for (std::size_t i = k + 1; i < n; ++i)
      if (std::abs(at(i, k)) > std::abs(at(pivot, k))) pivot = i;
    if (!(std::abs(at(pivot, k)) > singular * largest)) return false;
    if (pivot != k) {
      for (std::size_t j = k; j < n; ++j) std::swap(at(k, j), at(pivot, j));
      std::swap(b[k], b[pivot]);
    }
    for (std::size_t i = k + 1; i < n; ++i) {
      const double factor = at(i, k) / at(k, k);
      if (factor == 0.0) continue;
      for (std::size_t j = k + 1; j < n; ++j) at(i, j) -= factor * at(k, j);
      b[i] -= factor * b[k];
    }
  }
  for (std::size_t k = n; k-- > 0;) {
    for (std::size_t j = k + 1; j < n; ++j) b[k] -= at(k, j) * b[j];
    b[k] /= at(k, k);
  }
  return true;
}

/// J of the step, row after row.
std::vector<double> jacobian(StepMap& step) {
  const std::size_t n = step.states();
  std::vector<double> all, unit(n);
  all.reserve(n * n);
  for (std::size_t i = 0; i < n; ++i) {
    unit[i] = 1.0;
    step.pull_back(unit, {});
    unit[i] = 0.0;
    all.insert(all.end(), step.state_adjoint().begin(), step.state_adjoint().end());
  }
  return all;
}

double largest_of(std::span<const double> values) {
  double largest = 0.0;
  for (const double value : values) largest = std::max(largest, std::abs(value));
  return largest;
}

class Adjoint final : public Influence {
 public:
  explicit Adjoint(std::size_t states) : n_(states) {}

  bool rehearses() const override { return true; }
  void start(const Signs&) override {
    adjoint_.assign(n_, 0.0);
    product_.assign(n_ * n_, 0.0);
    for (std::size_t i = 0; i < n_; ++i) product_[i * n_ + i] = 1.0;
    steps_ = passed_ = 0;
    largest_ = 0.0;
  }
  void rehearse(StepMap& step, std::span<const double> output_adjoint) override {
    if (steps_++ == 0) return;  // the state before it is what it is
    if (!output_adjoint.empty()) {
      step.pull_back({}, output_adjoint);
      for (std::size_t i = 0; i < n_; ++i)
        add_scaled(adjoint_, step.state_adjoint()[i], std::span<const double>(product_).subspan(i * n_, n_));
    }
    const std::vector<double> J = jacobian(step);
    std::vector<double> next(n_ * n_);
    for (std::size_t i = 0; i < n_; ++i)
      for (std::size_t j = 0; j < n_; ++j)
        if (const double entry = J[i * n_ + j]; entry != 0.0)
          add_scaled(std::span(next).subspan(i * n_, n_), entry, std::span<const double>(product_).subspan(j * n_, n_));
    product_ = std::move(next);
  }
  void credit(StepMap& step, std::span<const double> output_adjoint, bool, std::span<double> gradient) override {
    if (passed_ > 0) {
      largest_ = std::max(largest_, largest_of(adjoint_));
      if (!output_adjoint.empty()) {
        step.pull_back({}, output_adjoint);
        largest_ = std::max(largest_, largest_of(step.state_adjoint()));
        add_scaled(adjoint_, -1.0, step.state_adjoint());
      }
      if (passed_ + 1 < steps_) {
        std::vector<double> J = jacobian(step);
        if (!solve_transposed(J, adjoint_))
          throw Error("Forward propagation of errors through time met a singular Jacobian at step " + std::to_string(passed_) +
                          " of a sequence: choose another rule.",
                      {.parameter = "rule", .value = "forward-errors"});
      } else {
        if (!(largest_of(adjoint_) <= missed * largest_))
          throw Error("Forward propagation of errors through time missed the adjoint's end, which is 0, at step " +
                          std::to_string(passed_) +
                          " of a sequence, since rounding grows where the adjoint shrinks: choose shorter sequences, or backpropagation.",
                      {.parameter = "rule", .value = "forward-errors"});
        std::ranges::fill(adjoint_, 0.0);
      }
    }
    ++passed_;
    step.pull_back(adjoint_, output_adjoint);
    add_scaled(gradient, 1.0, step.weight_adjoint());
  }
  void advance(StepMap&, bool) override {}

 private:
  void add_product(std::span<const double>, std::span<double>) const override {}

  std::size_t n_;
  std::vector<double> adjoint_, product_;  // lambda; J[t-1] ... J[1]
  std::int64_t steps_ = 0, passed_ = 0;
  double largest_ = 0.0;  // entry of an adjoint
};

OnlineMethod method(const OnlineSetup& setup) {
  const std::size_t n = StepMap(setup.model, setup.inputs, setup.outputs).states();
  if (setup.options.advance > 0)
    throw Error("Forward propagation of errors through time has its gradients at the end of a sequence: leave advance at 0.",
                {.parameter = "advance", .value = std::to_string(setup.options.advance), .range = "0"});
  probe_steps(setup, 0, [&](StepMap& step, const Model&, std::span<const double> state) {
    if (std::ranges::equal(state, step.start())) return;  // that of the first step is not inverted
    std::vector<double> J = jacobian(step), b(n);
    if (!solve_transposed(J, b))
      throw Error("Forward propagation of errors through time inverts the Jacobian of a step, and that of " +
                      setup.model.architecture().id +
                      " is singular, as where a step forgets or copies a part of the state: choose another rule.",
                  {.model = setup.model.architecture().id, .parameter = "rule", .value = "forward-errors"});
  });
  return {.influence = [n] { return std::make_unique<Adjoint>(n); }, .numbers = 3.0 * static_cast<double>(n * n), .exact = true};
}

}  // namespace

LearningRuleInfo forward_errors() {
  return {.title = "Forward propagation of errors through time",
          .year = 2026,
          .name = "forward errors",
          .past_facing = false,
          .memory = "d_s²",
          .time = "d_s³",
          .memory_power = 2,
          .time_power = 3,
          .source =
              "N. Zucchet and others, Forward propagation of errors through time, 2026, "
              "github.com/NicolasZucchet/Forward-propagation-errors-through-time",
          .idea =
              "The adjoint of the last step is found first, and then goes forward through the inverses of the steps' Jacobians. Nothing is "
              "kept of the past, but rounding grows where the transition contracts, as λ to the power -T.",
          .online = method};
}

}  // namespace reclab::rules_by_name
