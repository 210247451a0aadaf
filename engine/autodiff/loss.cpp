// SPDX-License-Identifier: GPL-3.0-or-later
#include "autodiff/loss.h"

#include "array/demand.h"

namespace reclab {

void LossOperation::forward(const ForwardCall& call) {
  adjoint_.resize(call.backend, type_, dims_.steps * dims_.batch * dims_.width);
  call.backend.loss(type_, term_, dims_, call.in[0], call.in.size() > 2 ? call.in[2] : nullptr, call.in[1], call.out[0], adjoint_.data());
}

void LossOperation::backward(const BackwardCall& call) {
  if (call.grad_in[0]) call.backend.add_scaled(type_, adjoint_.entries(), -unit_, adjoint_.data(), call.grad_in[0], true);
}

void LossOperation::tangent(const TangentCall&) { RECLAB_DEMAND(false && "nothing reads it"); }

LossNode add_loss(Var y, LossTerm term, bool has_target) {
  RECLAB_DEMAND(y.shape().size() == 3);
  const LossDims dims{y.dim(0), y.dim(1), y.dim(2)};
  LossNode node;
  node.weight = y.graph->leaf(LeafKind::given, {dims.steps, dims.batch}, DType::f64);
  std::vector<Var> inputs{y, node.weight};
  if (has_target) {
    const std::int64_t width = term == LossTerm::cross_entropy ? 1 : dims.width;
    node.target = y.graph->leaf(LeafKind::given, {dims.steps, dims.batch, width}, DType::f64);
    inputs.push_back(node.target);
  }
  auto operation = std::make_unique<LossOperation>(y.dtype(), term, dims);
  node.operation = operation.get();
  node.value = y.graph->apply(std::move(operation), std::move(inputs), {{{dims.batch}, DType::f64}})[0];
  return node;
}

}  // namespace reclab
