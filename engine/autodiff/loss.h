// SPDX-License-Identifier: GPL-3.0-or-later
// The loss as the last operation of a graph.
#pragma once

#include "array/device_array.h"
#include "autodiff/graph.h"

namespace reclab {

/// Makes the loss and its derivative by the outputs at once, so that outputs are looked at once. Its adjoint is not read from a gradient:
/// dL/dL is 1 for each sequence, in units of the caller's.
class LossOperation final : public Operation {
 public:
  LossOperation(DType type, LossTerm term, const LossDims& dims) : type_(type), term_(term), dims_(dims) {}

  /// dL/dy of the last forward, [steps, batch, width].
  const void* adjoint() const { return adjoint_.data(); }
  std::int64_t bytes() const { return static_cast<std::int64_t>(adjoint_.bytes()); }
  /// The gradients of the next backward() are in units of 2^power.
  void set_unit(int power) { unit_ = power; }

  void forward(const ForwardCall& call) override;
  void backward(const BackwardCall& call) override;
  /// Nothing reads the tangent of a loss.
  bool passes_tangent() const override { return false; }
  void tangent(const TangentCall& call) override;
  /// The cost of a model is counted without its loss.
  Cost cost() const override { return {.launches = 0.0}; }

 private:
  DType type_;
  LossTerm term_;
  LossDims dims_;
  DeviceArray adjoint_;
  int unit_ = 0;
};

/// The loss of y [steps, batch, width], as Backend::loss says.
struct LossNode {
  Var target, weight;  ///< float64 leaves, for the caller to bind: target [steps, batch, width or, of classes, 1]; none where it is 0
  Var value;           ///< [batch], float64
  LossOperation* operation = nullptr;
};
LossNode add_loss(Var y, LossTerm term, bool has_target);

}  // namespace reclab
