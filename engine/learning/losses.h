// SPDX-License-Identifier: GPL-3.0-or-later
// Losses of a whole sequence, which gradients are of.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "execution/loss.h"
#include "sequence/sequence.h"

namespace reclab {

/// automatic: task when the sequence brings a target, else last. random: L = 1/sqrt(T) sum_t w_t . y_t with fixed normal w, which no
/// normalisation of the output makes constant: for comparing forms and devices.
enum class LossKind : std::uint8_t { automatic, last, mean, task, random };
/// The name that --loss takes; empty for automatic.
const char* to_string(LossKind loss);
/// The kind of a name; nothing for an unknown one, and for random, which no command asks for.
std::optional<LossKind> loss_kind(std::string_view name);

class SequenceLoss : public Loss {
 public:
  /// The sequence must outlive the loss. Throws Error for a task loss of a sequence without a target. `outputs` of a random loss: as
  /// another one asks.
  SequenceLoss(LossKind kind, const Sequence& sequence, std::int64_t outputs = 0);

  /// Adds the mean over the sequence's steps of a penalty on gates, so many times, to what gradients are of.
  void penalise_gates(GatePenalty penalty, double weight) {
    gates_ = penalty;
    gate_weight_ = weight / static_cast<double>(sequence_.length);
  }

  LossKind kind() const { return kind_; }  ///< never automatic
  std::int64_t outputs() const override;
  LossForm form() const override;
  void rows(std::int64_t first, std::span<double> weights, std::span<double> targets) const override;
  double gate_weight(std::int64_t /*step*/) const override { return gate_weight_; }
  std::string formula() const;  ///< in words and symbols, for the manifest

 private:
  LossKind kind_;
  const Sequence& sequence_;
  std::int64_t outputs_;
  double weight_;  ///< of one step
  GatePenalty gates_ = GatePenalty::none;
  double gate_weight_ = 0.0;  ///< of one step
};

}  // namespace reclab
