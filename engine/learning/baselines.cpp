// SPDX-License-Identifier: GPL-3.0-or-later
#include "learning/baselines.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "algebra/ridge.h"
#include "array/demand.h"
#include "array/error.h"

namespace reclab {
namespace {

constexpr std::int64_t most_steps = 32, most_features = 256, enough_rows = 8192;  // of a linear predictor

/// The inputs of the last so many steps up to t, with zeros before the first.
void past_of(const Sequence& sequence, std::int64_t t, std::vector<double>& to) {
  const auto width = static_cast<std::size_t>(sequence.width), end = static_cast<std::size_t>(t + 1) * width,
             known = std::min(end, to.size());
  std::fill(to.begin(), to.end() - static_cast<std::ptrdiff_t>(known), 0.0);
  std::copy_n(sequence.input.begin() + static_cast<std::ptrdiff_t>(end - known), known, to.end() - static_cast<std::ptrdiff_t>(known));
}
std::span<const double> target_of(const Sequence& sequence, std::int64_t t) {
  const auto outputs = static_cast<std::size_t>(sequence.target_width);
  return std::span(sequence.target).subspan(static_cast<std::size_t>(t) * outputs, outputs);
}

}  // namespace

void BestConstant::add(const Sequence& sequence) {
  classes_ = sequence.target_kind == TargetKind::classify;
  const auto outputs = static_cast<std::size_t>(classes_ ? sequence.classes : sequence.target_width);
  sum_.resize(outputs), squares_.resize(outputs);
  double counted = 0.0;
  for (const double m : sequence.mask) counted += m;
  if (counted == 0.0) return;
  ++whole_;
  for (std::size_t t = 0; t < static_cast<std::size_t>(sequence.length); ++t) {
    const double weight = sequence.mask[t] / counted;
    if (weight == 0.0) continue;
    if (classes_) {
      sum_[static_cast<std::size_t>(sequence.target[t])] += weight;
      continue;
    }
    for (std::size_t j = 0; j < outputs; ++j) {
      sum_[j] += weight * sequence.target[t * outputs + j];
      squares_[j] += weight * std::pow(sequence.target[t * outputs + j], 2);
    }
  }
}

Baseline BestConstant::best() const {
  RECLAB_DEMAND(whole_ > 0);
  Baseline found;
  const auto whole = static_cast<double>(whole_);
  if (classes_) {
    found.text = "each class as likely as it is often";
    found.metric = std::ranges::max(sum_) / whole;
    for (const double share : sum_)
      if (share > 0.0) found.loss -= share / whole * std::log(share / whole);
  } else {
    found.text = "always the target's mean";
    found.metric = 0.0;
    for (std::size_t j = 0; j < sum_.size(); ++j) found.metric += squares_[j] / whole - std::pow(sum_[j] / whole, 2);
    found.loss = found.metric / 2.0;
  }
  return found;
}

Baseline best_constant(const std::deque<Sequence>& held_out) {
  BestConstant found;
  for (const Sequence& sequence : held_out) found.add(sequence);
  if (found.sequences() == 0)
    throw Error(held_out[0].name + " has no step at which its target counts: choose a longer sequence.", {.parameter = "length"});
  return found.best();
}

std::optional<LinearPredictor> LinearPredictor::fitted(const Examples& examples, const Sequence& like) {
  if (like.target_kind != TargetKind::regress || 2 * std::ranges::count_if(like.mask, [](double m) { return m != 0.0; }) < like.length)
    return {};
  LinearPredictor made;
  made.past_ = std::clamp<std::int64_t>(most_features / like.width, 1, most_steps);
  const std::int64_t features = made.past_ * like.width;
  RidgeRegression ridge(features, like.target_width);
  std::vector<double> z(static_cast<std::size_t>(features));
  for (std::int64_t i = 0; ridge.rows() < enough_rows && i < enough_rows; ++i) {  // an end, should no step of them count
    const Sequence sequence = examples.training(0, i);
    for (std::int64_t t = 0; t < sequence.length; ++t) {
      if (sequence.mask[static_cast<std::size_t>(t)] == 0.0) continue;
      past_of(sequence, t, z);
      ridge.add(z, target_of(sequence, t));
    }
  }
  if (ridge.rows() == 0) return {};
  made.weight_.resize(static_cast<std::size_t>(features * like.target_width));
  made.bias_.resize(static_cast<std::size_t>(like.target_width));
  // As little of it as rows that depend on each other allow.
  double lambda = 1e-10 * static_cast<double>(ridge.rows());
  while (!ridge.solve(lambda, made.weight_, made.bias_))
    if (lambda *= 10.0; !std::isfinite(lambda)) return {};
  return made;
}

std::string LinearPredictor::text() const { return "a linear predictor on the last " + std::to_string(past_) + " steps"; }

std::vector<double> LinearPredictor::at(const Sequence& sequence, std::int64_t step) const {
  std::vector<double> z(static_cast<std::size_t>(past_ * sequence.width)), outputs = bias_;
  past_of(sequence, step, z);
  for (std::size_t j = 0; j < outputs.size(); ++j)
    for (std::size_t i = 0; i < z.size(); ++i) outputs[j] += weight_[j * z.size() + i] * z[i];
  return outputs;
}

std::optional<Baseline> linear_predictor(const Examples& examples, const std::deque<Sequence>& held_out) {
  const auto predictor = LinearPredictor::fitted(examples, held_out[0]);
  if (!predictor) return {};
  Baseline found{.text = predictor->text()};
  for (const Sequence& sequence : held_out) {
    double counted = 0.0;
    for (const double m : sequence.mask) counted += m;
    for (std::int64_t t = 0; t < sequence.length; ++t) {
      const double mask = sequence.mask[static_cast<std::size_t>(t)];
      if (mask == 0.0) continue;
      const auto y = predictor->at(sequence, t);
      for (std::size_t j = 0; j < y.size(); ++j)
        found.metric += mask / counted * std::pow(y[j] - target_of(sequence, t)[j], 2) / static_cast<double>(held_out.size());
    }
  }
  found.loss = found.metric / 2.0;
  return found;
}

}  // namespace reclab
