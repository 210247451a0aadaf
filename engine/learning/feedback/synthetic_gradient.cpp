// SPDX-License-Identifier: GPL-3.0-or-later
#include "learning/feedback/synthetic_gradient.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "array/error.h"
#include "learning/losses.h"

namespace reclab {

std::vector<double> synthesis_features(std::span<const double> state, const Sequence& sequence, std::size_t t, std::size_t outputs) {
  std::vector<double> features(state.begin(), state.end());
  features.resize(state.size() + outputs + 1);
  if (sequence.mask[t] != 0.0) {
    if (sequence.target_kind == TargetKind::classify)
      features[state.size() + static_cast<std::size_t>(sequence.target[t])] = 1.0;
    else
      std::copy_n(sequence.target.begin() + static_cast<std::ptrdiff_t>(t * outputs), outputs,
                  features.begin() + static_cast<std::ptrdiff_t>(state.size()));
  }
  features.back() = 1.0;
  return features;
}

void synthetic_gradient(StepMap& step, const Sequence& sequence, const Synthesise& synthesise, const SeeSynthesis& see,
                        SequenceGradient& own, const std::stop_token& stop) {
  const SequenceLoss loss(LossKind::task, sequence);
  const auto width = static_cast<std::size_t>(sequence.width), length = static_cast<std::size_t>(sequence.length);
  std::vector<double> state = step.start(), error(step.outputs()), synthesised, features;
  for (std::size_t t = 0; t < length; ++t) {
    if (stop.stop_requested()) throw Cancelled();
    step.evaluate(state, std::span(sequence.input).subspan(t * width, width));
    state = step.next();
    const auto finite = [](double x) { return std::isfinite(x); };
    if (!std::ranges::all_of(state, finite) || !std::ranges::all_of(step.output(), finite)) {
      own.bad = {"a state or an output became non-finite at step " + std::to_string(t) + " of a sequence", "state"};
      return;
    }
    std::ranges::fill(error, 0.0);
    if (sequence.mask[t] != 0.0) own.value += loss.segment(static_cast<std::int64_t>(t), 1, std::ssize(error), step.output(), error);
    std::vector<double> now_features = synthesis_features(state, sequence, t, error.size());
    std::vector<double> now = t + 1 < length ? synthesise(t, now_features) : std::vector<double>(state.size());
    step.pull_back(now, error);
    for (std::size_t i = 0; i < own.gradient.size(); ++i) own.gradient[i] += step.weight_adjoint()[i];
    if (t > 0) see(features, synthesised, step.state_adjoint());
    features = std::move(now_features);
    synthesised = std::move(now);
  }
}

}  // namespace reclab
