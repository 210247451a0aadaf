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
    case LossKind::automatic: return "auto";
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
    case LossKind::automatic: return "auto";
    case LossKind::last: return "L = ½ |y_T|², the output of the last step";
    case LossKind::mean: return "L = 1/(2T) Σ_t |y_t|², the mean over all steps";
    case LossKind::random: return "L = 1/√T Σ_t w_t · y_t with fixed normal w";
    case LossKind::task:
      return sequence_.target_kind == TargetKind::classify ? "L = mean of −log softmax(y_t)[target_t] over the steps that count"
                                                           : "L = mean of ½ |y_t − target_t|² over the steps that count";
  }
  return {};
}

LossForm SequenceLoss::form() const {
  if (kind_ == LossKind::random) return {LossTerm::product, true, gates_};
  if (kind_ != LossKind::task) return {LossTerm::squared_error, false, gates_};
  return {sequence_.target_kind == TargetKind::classify ? LossTerm::cross_entropy : LossTerm::squared_error, true, gates_};
}

void SequenceLoss::rows(std::int64_t first, std::span<double> weights, std::span<double> targets) const {
  const std::int64_t steps = std::ssize(weights), width = steps ? std::ssize(targets) / steps : 0;
  switch (kind_) {
    case LossKind::automatic: break;
    case LossKind::last:
      if (const std::int64_t last = sequence_.length - 1 - first; 0 <= last && last < steps) weights[static_cast<std::size_t>(last)] = 1.0;
      break;
    case LossKind::mean: std::ranges::fill(weights, weight_); break;
    case LossKind::random:
      std::ranges::fill(weights, 1.0);
      for (std::int64_t t = 0; t < steps; ++t) {
        check_stop();
        Rng rng(static_cast<std::uint64_t>(first + t));
        for (double& w : targets.subspan(static_cast<std::size_t>(t * width), static_cast<std::size_t>(width))) w = weight_ * rng.normal();
      }
      break;
    case LossKind::task:
      for (std::int64_t t = 0; t < steps; ++t)
        weights[static_cast<std::size_t>(t)] = weight_ * sequence_.mask[static_cast<std::size_t>(first + t)];
      std::copy_n(sequence_.target.begin() + first * width, targets.size(), targets.begin());
      break;
  }
}

}  // namespace reclab
