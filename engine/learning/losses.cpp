// SPDX-License-Identifier: GPL-3.0-or-later
#include "learning/losses.h"

#include <algorithm>
#include <cmath>

#include "array/error.h"
#include "array/rng.h"
#include "array/stop.h"

namespace reclab {

const char* to_string(LossKind loss) {
  switch (loss) {
    case LossKind::automatic: break;
    case LossKind::last: return "last";
    case LossKind::mean: return "mean";
    case LossKind::task: return "task";
    case LossKind::random: return "random";
  }
  return "";
}

std::optional<LossKind> loss_kind(std::string_view name) {
  for (const LossKind kind : {LossKind::automatic, LossKind::last, LossKind::mean, LossKind::task})
    if (name == to_string(kind)) return kind;
  return {};
}

SequenceLoss::SequenceLoss(LossKind kind, const Sequence& sequence, std::int64_t outputs)
    : kind_(kind), sequence_(sequence), outputs_(outputs), weight_(1.0) {
  const bool has_target = sequence.target_kind != TargetKind::none;
  if (kind_ == LossKind::automatic) kind_ = has_target ? LossKind::task : LossKind::last;
  if (kind_ == LossKind::mean) weight_ = 1.0 / static_cast<double>(sequence.length);
  if (kind_ == LossKind::random) weight_ = 1.0 / std::sqrt(static_cast<double>(sequence.length));
  if (kind_ == LossKind::task) {
    if (!has_target)
      throw Error(sequence.name + " has no target, so it has no task loss: choose a target, or the loss last or mean.",
                  {.parameter = "loss", .value = "task", .range = "last, mean"});
    double counted = 0.0;
    for (const double m : sequence.mask) counted += m;
    weight_ = counted > 0.0 ? 1.0 / counted : 0.0;
  }
}

std::int64_t SequenceLoss::outputs() const {
  if (kind_ != LossKind::task) return outputs_;
  return sequence_.target_kind == TargetKind::classify ? sequence_.classes : sequence_.target_width;
}

std::string SequenceLoss::formula() const {
  switch (kind_) {
    case LossKind::automatic: break;
    case LossKind::last: return "L = ½ |y_T|², the output of the last step";
    case LossKind::mean: return "L = 1/(2T) Σ_t |y_t|², the mean over all steps";
    case LossKind::random: return "L = 1/√T Σ_t w_t · y_t with fixed normal w";
    case LossKind::task:
      return sequence_.target_kind == TargetKind::classify ? "L = mean of −log softmax(y_t)[target_t] over the steps that count"
                                                           : "L = mean of ½ |y_t − target_t|² over the steps that count";
  }
  return {};
}

double SequenceLoss::segment(std::int64_t first, std::int64_t steps, std::int64_t width, std::span<const double> output,
                             std::span<double> adjoint) const {
  double loss = 0.0;
  const auto row = [&](std::int64_t t) { return static_cast<std::size_t>((t - first) * width); };
  const auto half_square = [&](std::int64_t t, double weight) {
    for (std::size_t j = 0; j < static_cast<std::size_t>(width); ++j) {
      const double y = output[row(t) + j];
      loss += 0.5 * weight * y * y;
      if (!adjoint.empty()) adjoint[row(t) + j] += weight * y;
    }
  };
  if (kind_ == LossKind::last) {
    const std::int64_t last = sequence_.length - 1;
    if (first <= last && last < first + steps) half_square(last, 1.0);
    return loss;
  }
  for (std::int64_t t = first; t < first + steps; ++t) {
    check_stop();
    if (kind_ == LossKind::mean) {
      half_square(t, weight_);
      continue;
    }
    if (kind_ == LossKind::random) {
      Rng rng(static_cast<std::uint64_t>(t));
      for (std::size_t j = 0; j < static_cast<std::size_t>(width); ++j) {
        const double w = weight_ * rng.normal();
        loss += w * output[row(t) + j];
        if (!adjoint.empty()) adjoint[row(t) + j] += w;
      }
      continue;
    }
    const double weight = weight_ * sequence_.mask[static_cast<std::size_t>(t)];
    if (weight == 0.0) continue;
    if (sequence_.target_kind == TargetKind::regress) {
      for (std::size_t j = 0; j < static_cast<std::size_t>(width); ++j) {
        const double error = output[row(t) + j] - sequence_.target[static_cast<std::size_t>(t * width) + j];
        loss += 0.5 * weight * error * error;
        if (!adjoint.empty()) adjoint[row(t) + j] += weight * error;
      }
    } else {
      const double* y = output.data() + row(t);
      const double largest = *std::max_element(y, y + width);
      double sum = 0.0;
      for (std::int64_t j = 0; j < width; ++j) sum += std::exp(y[j] - largest);
      const auto target = static_cast<std::int64_t>(sequence_.target[static_cast<std::size_t>(t)]);
      loss += weight * (largest + std::log(sum) - y[target]);
      if (!adjoint.empty())
        for (std::int64_t j = 0; j < width; ++j)
          adjoint[row(t) + static_cast<std::size_t>(j)] += weight * (std::exp(y[j] - largest) / sum - (j == target ? 1.0 : 0.0));
    }
  }
  return loss;
}

}  // namespace reclab
