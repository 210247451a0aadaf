// SPDX-License-Identifier: GPL-3.0-or-later
// The losses that a rollout takes gradients of. learning/losses.h makes them.
#pragma once

#include <cstdint>
#include <span>

#include "array/backend.h"
#include "models/gate_penalty.h"

namespace reclab {

/// The form that all steps of a loss share.
struct LossForm {
  LossTerm term = LossTerm::squared_error;
  bool has_target = false;  ///< false: a squared error from 0
  GatePenalty gates{};      ///< beside it, by gate_weight()
  bool operator==(const LossForm&) const = default;
  /// The numbers of a target, of so many outputs.
  std::int64_t target_width(std::int64_t outputs) const { return !has_target ? 0 : term == LossTerm::cross_entropy ? 1 : outputs; }
};

/// A weighted sum over time steps of a term of each step's outputs and target (Backend::loss), so that it can be evaluated segment by
/// segment. The losses of a batch may be asked at the same time, so they share nothing that they change.
class Loss {
 public:
  virtual ~Loss() = default;
  /// The outputs that it asks of the model; 0: any.
  virtual std::int64_t outputs() const = 0;
  virtual LossForm form() const = 0;
  /// The weights of the steps from `first` on, and their targets where the form has them, row after row. All of them are 0 beforehand.
  virtual void rows(std::int64_t first, std::span<double> weights, std::span<double> targets) const = 0;
  /// Of a step's gate penalty, in what gradients are of; the value of the loss is without it.
  virtual double gate_weight(std::int64_t /*step*/) const { return 0.0; }
  /// Whether it wants to see the outputs, and the steps [first, first + steps) of them, [steps, width], after each segment.
  virtual bool sees_outputs() const { return false; }
  virtual void see(std::int64_t /*first*/, std::int64_t /*steps*/, std::int64_t /*width*/, std::span<const double> /*output*/) const {}

  /// The loss of the steps [first, first + steps) and, added to `adjoint` if it is not empty, its derivative; both [steps, width]. On the
  /// host.
  double segment(std::int64_t first, std::int64_t steps, std::int64_t width, std::span<const double> output,
                 std::span<double> adjoint) const;
};

}  // namespace reclab
