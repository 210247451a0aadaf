// SPDX-License-Identifier: GPL-3.0-or-later
#include "learning/baselines.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "algebra/ridge.h"
#include "array/error.h"

namespace reclab {
namespace {

constexpr std::int64_t most_steps = 32, most_features = 256, enough_rows = 8192;  // of a linear predictor

/// Calls f for each step of a sequence that counts, with the inputs of so many steps, the last of which it is, with zeros before the first.
template <class F>
void each_step(const Sequence& sequence, std::int64_t past, F&& f) {
  const auto width = static_cast<std::size_t>(sequence.width), size = static_cast<std::size_t>(past) * width;
  std::vector<double> rows(size + sequence.input.size());
  std::ranges::copy(sequence.input, rows.begin() + static_cast<std::ptrdiff_t>(size));
  for (std::size_t t = 0; t < static_cast<std::size_t>(sequence.length); ++t)
    if (sequence.mask[t] != 0.0) f(t, std::span(rows).subspan((t + 1) * width, size));
}

}  // namespace

Baseline best_constant(const std::deque<Sequence>& held_out) {
  Baseline found;
  const Sequence& one = held_out[0];
  const bool classes = one.target_kind == TargetKind::classify;
  const auto outputs = static_cast<std::size_t>(classes ? one.classes : one.target_width);
  std::vector<double> sum(outputs), squares(outputs);
  double whole = 0.0;
  for (const Sequence& sequence : held_out) {
    double counted = 0.0;
    for (const double m : sequence.mask) counted += m;
    if (counted == 0.0) continue;
    whole += 1.0;
    for (std::size_t t = 0; t < static_cast<std::size_t>(sequence.length); ++t) {
      const double weight = sequence.mask[t] / counted;
      if (weight == 0.0) continue;
      if (classes) {
        sum[static_cast<std::size_t>(sequence.target[t])] += weight;
        continue;
      }
      for (std::size_t j = 0; j < outputs; ++j) {
        sum[j] += weight * sequence.target[t * outputs + j];
        squares[j] += weight * std::pow(sequence.target[t * outputs + j], 2);
      }
    }
  }
  if (whole == 0.0) throw Error(one.name + " has no step at which its target counts: choose a longer sequence.", {.parameter = "length"});
  if (classes) {
    found.text = "each class as likely as it is often";
    found.metric = std::ranges::max(sum) / whole;
    for (const double share : sum)
      if (share > 0.0) found.loss -= share / whole * std::log(share / whole);
  } else {
    found.text = "always the target's mean";
    found.metric = 0.0;
    for (std::size_t j = 0; j < outputs; ++j) found.metric += squares[j] / whole - std::pow(sum[j] / whole, 2);
    found.loss = found.metric / 2.0;
  }
  return found;
}

std::optional<Baseline> linear_predictor(const Examples& examples, const std::deque<Sequence>& held_out) {
  const Sequence& one = held_out[0];
  if (one.target_kind != TargetKind::regress || 2 * std::ranges::count_if(one.mask, [](double m) { return m != 0.0; }) < one.length)
    return {};
  const auto outputs = static_cast<std::size_t>(one.target_width);
  const std::int64_t past = std::clamp<std::int64_t>(most_features / one.width, 1, most_steps), features = past * one.width;
  const auto target = [&](const Sequence& sequence, std::size_t t) { return std::span(sequence.target).subspan(t * outputs, outputs); };
  RidgeRegression ridge(features, one.target_width);
  for (std::int64_t i = 0; ridge.rows() < enough_rows && i < enough_rows; ++i) {  // an end, should no step of them count
    const Sequence sequence = examples.training(0, i);
    each_step(sequence, past, [&](std::size_t t, std::span<const double> z) { ridge.add(z, target(sequence, t)); });
  }
  if (ridge.rows() == 0) return {};
  std::vector<double> weight(static_cast<std::size_t>(features) * outputs), bias(outputs);
  // As little of it as rows that depend on each other allow.
  double lambda = 1e-10 * static_cast<double>(ridge.rows());
  while (!ridge.solve(lambda, weight, bias))
    if (lambda *= 10.0; !std::isfinite(lambda)) return {};
  Baseline found{.text = "a linear predictor on the last " + std::to_string(past) + " steps"};
  for (const Sequence& sequence : held_out) {
    double counted = 0.0;
    for (const double m : sequence.mask) counted += m;
    each_step(sequence, past, [&](std::size_t t, std::span<const double> z) {
      for (std::size_t j = 0; j < outputs; ++j) {
        double y = bias[j];
        for (std::size_t i = 0; i < z.size(); ++i) y += weight[j * z.size() + i] * z[i];
        found.metric += sequence.mask[t] / counted * std::pow(y - target(sequence, t)[j], 2) / static_cast<double>(held_out.size());
      }
    });
  }
  found.loss = found.metric / 2.0;
  return found;
}

}  // namespace reclab
