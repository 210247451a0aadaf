// SPDX-License-Identifier: GPL-3.0-or-later
#include "learning/forcing/closed_loop.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "array/demand.h"
#include "array/error.h"
#include "array/rng.h"

namespace reclab {
namespace {

bool all_finite(std::span<const double> values) {
  return std::ranges::all_of(values, [](double x) { return std::isfinite(x); });
}

void check(const std::stop_token& stop) {
  if (stop.stop_requested()) throw Cancelled();
}

}  // namespace

void require_own_future(const Sequence& sequence, const std::string& what) {
  const auto refuse = [&](const std::string& why) {
    throw Error(what + " feeds the outputs back as the next input, and " + why +
                    ": choose a task such as lorenz, whose target is the next " +
                    "value of its input, or a file that is to foretell itself one step ahead.",
                {.parameter = "task", .value = sequence.name});
  };
  if (sequence.target_kind != TargetKind::regress || sequence.target_width != sequence.width)
    refuse("the target of " + sequence.name + " is not its own next input");
  const auto width = static_cast<std::size_t>(sequence.width);
  for (std::size_t t = 0; t + 1 < static_cast<std::size_t>(sequence.length); ++t) {
    if (sequence.mask[t] == 0.0) continue;
    for (std::size_t j = 0; j < width; ++j) {
      const double target = sequence.target[t * width + j], next = sequence.input[(t + 1) * width + j];
      if (!(std::abs(target - next) <= 1e-12 * std::max({1.0, std::abs(target), std::abs(next)})))
        refuse("the target of " + sequence.name + " at step " + std::to_string(t) + " is not the input of the next step");
    }
  }
}

ClosedLoop::ClosedLoop(StepMap& step, const Sequence& sequence)
    : step_(step),
      sequence_(sequence),
      length_(static_cast<std::size_t>(sequence.length)),
      states_width_(step.states()),
      width_(step.inputs()) {
  RECLAB_DEMAND(step.inputs() == step.outputs() && static_cast<std::int64_t>(width_) == sequence.width);
}

void ClosedLoop::run(const Forcing& forcing, std::stop_token stop, std::int64_t free_from) {
  shares_.assign(length_, 0.0);
  for (std::size_t t = 1; t < length_; ++t)
    if (const auto step = static_cast<std::int64_t>(t); step < free_from) shares_[t] = forcing.at(step);
  bad_array_.clear();
  bad_step_ = -1;
  states_.assign(length_ * states_width_, 0.0);
  inputs_ = sequence_.input;
  outputs_.assign(length_ * width_, 0.0);
  std::vector<double> state = step_.start();
  for (std::size_t t = 0; t < length_; ++t) {
    check(stop);
    std::ranges::copy(state, states_.begin() + static_cast<std::ptrdiff_t>(t * states_width_));
    if (t > 0) {
      const double share = shares_[t];
      for (std::size_t j = 0; j < width_; ++j)
        if (share != 1.0) inputs_[t * width_ + j] = share * inputs_[t * width_ + j] + (1.0 - share) * outputs_[(t - 1) * width_ + j];
    }
    step_.evaluate(state, row(inputs_, t, width_));
    for (const StepMap::Part& part : step_.parts())
      if (bad_array_.empty() && !all_finite(std::span(step_.next()).subspan(part.first, part.entries))) bad_array_ = part.name;
    if (bad_array_.empty() && !all_finite(step_.output())) bad_array_ = "output";
    if (!bad_array_.empty()) {
      bad_step_ = static_cast<std::int64_t>(t);
      return;
    }
    std::ranges::copy(step_.output(), outputs_.begin() + static_cast<std::ptrdiff_t>(t * width_));
    state = step_.next();
  }
}

void ClosedLoop::pull_back(std::span<const double> output_adjoints, std::span<double> gradient, std::stop_token stop) {
  RECLAB_DEMAND(bad_array_.empty() && output_adjoints.size() == length_ * width_ && gradient.size() == step_.weights());
  std::vector<double> state_adjoint, input_adjoint, output_adjoint(width_);
  for (std::size_t t = length_; t-- > 0;) {
    check(stop);
    for (std::size_t j = 0; j < width_; ++j) {
      output_adjoint[j] = output_adjoints[t * width_ + j];
      if (t + 1 < length_) output_adjoint[j] += (1.0 - shares_[t + 1]) * input_adjoint[j];
    }
    step_.evaluate(row(states_, t, states_width_), row(inputs_, t, width_));
    step_.pull_back(state_adjoint, output_adjoint);
    state_adjoint = step_.state_adjoint();
    input_adjoint = step_.input_adjoint();
    for (std::size_t i = 0; i < gradient.size(); ++i) gradient[i] += step_.weight_adjoint()[i];
  }
}

double ClosedLoop::exponent(std::int64_t skipped, std::stop_token stop) {
  RECLAB_DEMAND(bad_array_.empty() && skipped >= 0 && skipped + 1 < static_cast<std::int64_t>(length_));
  Rng rng(1);
  std::vector<double> state_move(states_width_), input_move(width_);
  for (std::vector<double>* move : {&state_move, &input_move})
    for (double& x : *move) x = rng.normal();
  const auto norm = [&] {
    double squares = 0.0;
    for (const std::vector<double>* move : {&state_move, &input_move})
      for (const double x : *move) squares += x * x;
    return std::sqrt(squares);
  };
  double sum = 0.0;
  // The map of step t takes (s[t-1], u[t]) to (s[t], u[t+1]), so the last step has none.
  for (std::size_t t = 0; t + 1 < length_; ++t) {
    check(stop);
    const double before = norm();
    for (std::vector<double>* move : {&state_move, &input_move})
      for (double& x : *move) x /= before;
    step_.evaluate(row(states_, t, states_width_), row(inputs_, t, width_));
    step_.push_forward(state_move, input_move);
    state_move = step_.next_move();
    input_move = step_.output_move();
    for (double& x : input_move) x *= 1.0 - shares_[t + 1];
    const double after = norm();
    if (after == 0.0) return -std::numeric_limits<double>::infinity();
    if (static_cast<std::int64_t>(t) >= skipped) sum += std::log(after);
  }
  return sum / static_cast<double>(static_cast<std::int64_t>(length_) - 1 - skipped);
}

ForcingEstimate estimate_forcing(ClosedLoop& loop, std::int64_t skipped, std::stop_token stop) {
  const auto exponent_at = [&](double strength) {
    loop.run({.strength = strength, .every = 1}, stop);
    if (!loop.bad_array().empty()) return std::numeric_limits<double>::infinity();  // it leaves every bound
    return loop.exponent(skipped, stop);
  };
  ForcingEstimate found{.free_exponent = exponent_at(0.0)};
  if (!(found.free_exponent > 0.0)) return found;
  found.interval = std::numbers::ln2 / found.free_exponent;
  found.geometric = 1.0 - std::exp(-found.free_exponent);
  if (exponent_at(1.0) > 0.0) {
    found.least = std::numeric_limits<double>::quiet_NaN();
    return found;
  }
  double low = 0.0, high = 1.0;
  while (high - low > 1e-3) {
    const double middle = 0.5 * (low + high);
    (exponent_at(middle) > 0.0 ? low : high) = middle;
  }
  found.least = high;
  return found;
}

}  // namespace reclab
