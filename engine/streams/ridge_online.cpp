// SPDX-License-Identifier: GPL-3.0-or-later
#include "streams/ridge_online.h"

#include <algorithm>

namespace reclab {

OnlineRidge::OnlineRidge(std::int64_t inputs, std::int64_t outputs, std::int64_t past, double ridge, double forget)
    : inputs_(static_cast<std::size_t>(inputs)),
      outputs_(static_cast<std::size_t>(outputs)),
      features_(inputs_ * static_cast<std::size_t>(past) + 1),
      forget_(forget),
      ridge_(ridge),
      z_(features_),
      p_(features_ * features_),
      gain_(features_),
      weights_(outputs_ * features_) {
  z_.back() = 1.0;
  for (std::size_t i = 0; i < features_; ++i) p_[i * features_ + i] = 1.0 / ridge;
}

void OnlineRidge::predict(std::span<const double> input, std::span<double> prediction) {
  std::copy(z_.begin() + static_cast<std::ptrdiff_t>(inputs_), z_.end() - 1, z_.begin());
  std::ranges::copy(input, z_.end() - 1 - static_cast<std::ptrdiff_t>(inputs_));
  for (std::size_t j = 0; j < outputs_; ++j) {
    double y = 0.0;
    for (std::size_t i = 0; i < features_; ++i) y += weights_[j * features_ + i] * z_[i];
    prediction[j] = y;
  }
}

void OnlineRidge::update(std::span<const double> z, std::span<const double> target, double weight) {
  double size = 1.0 / weight;
  for (std::size_t i = 0; i < features_; ++i) {
    double sum = 0.0;
    for (std::size_t k = 0; k < features_; ++k) sum += p_[i * features_ + k] * z[k];
    gain_[i] = sum;
    size += z[i] * sum;
  }
  for (std::size_t j = 0; j < outputs_; ++j) {
    double error = target[j];
    for (std::size_t i = 0; i < features_; ++i) error -= weights_[j * features_ + i] * z[i];
    for (std::size_t i = 0; i < features_; ++i) weights_[j * features_ + i] += error / size * gain_[i];
  }
  for (std::size_t i = 0; i < features_; ++i)
    for (std::size_t k = 0; k <= i; ++k) p_[k * features_ + i] = p_[i * features_ + k] -= gain_[i] * gain_[k] / size;
}

void OnlineRidge::learn(std::span<const double> target) {
  if (forget_ == 1.0) {
    update(z_, target, 1.0);
    return;
  }
  for (double& x : p_) x /= forget_;
  update(z_, target, 1.0);
  std::vector<double> unit(features_), zeros(outputs_);
  unit[static_cast<std::size_t>(turn_)] = 1.0;
  update(unit, zeros, (1.0 - forget_) * ridge_ * static_cast<double>(features_));
  turn_ = (turn_ + 1) % static_cast<std::int64_t>(features_);
}

void OnlineRidge::keep(StreamState& state) {
  state.same("z", z_);
  state.same("p", p_);
  state.same("weights", weights_);
  state.whole("turn", turn_, 0, static_cast<std::int64_t>(features_) - 1);
}

}  // namespace reclab
