// SPDX-License-Identifier: GPL-3.0-or-later
#include "recurrence/chunks.h"

#include <algorithm>

#include "array/demand.h"

namespace reclab::chunks {

void OpaqueMemory::forward(const ForwardCall& c) {
  for (void* out : c.out) c.backend.copy(out, c.in[0], static_cast<std::size_t>(n_) * bytes_of(type_));
}

void OpaqueMemory::backward(const BackwardCall& c) {
  RECLAB_DEMAND((carried_.empty() || !carried_[0]) && "chunks cover the whole sequence");
  exponent_ = inner_ ? inner_->exponent() : 0;
  if (!c.grad_in[0]) return;
  const int own = exponent_;  // the power of two that the memory's adjoint comes in
  if (own) {
    const int carried = c.backend.exponent(type_, n_, c.grad_out[0]), read = c.backend.exponent(type_, n_, c.grad_out[1]);
    if (read != no_exponent && carried != infinite_exponent && read != infinite_exponent)
      exponent_ = carried == no_exponent ? read : std::max(carried + own, read);
  }
  c.backend.add_scaled(type_, n_, own - exponent_, c.grad_out[0], c.grad_in[0], true);
  c.backend.add_scaled(type_, n_, -exponent_, c.grad_out[1], c.grad_in[0], true);
}

void OpaqueMemory::tangent(const TangentCall& c) {
  for (void* out : c.tangent_out) c.backend.copy(out, c.tangent_in[0], static_cast<std::size_t>(n_) * bytes_of(type_));
}

Start start(Graph& graph, const Shape& shape, DType type) {
  Start made;
  made.leaf = graph.leaf(LeafKind::variable, shape, type);
  auto operation = std::make_unique<OpaqueMemory>(type, count(shape));
  made.memory = operation.get();
  const auto both = graph.apply(std::move(operation), {made.leaf}, {{shape, type}, {shape, type}});
  made.state = both[0];
  made.read = both[1];
  return made;
}

Var zeros(Graph& graph, const Shape& shape) {
  return graph.constant(shape, std::vector<double>(static_cast<std::size_t>(count(shape)), 0.0));
}

Var split(Var x, std::int64_t chunk) {
  const std::int64_t steps = x.dim(0), batch = x.dim(1), heads = x.dim(2), d = x.dim(3), chunks = (steps + chunk - 1) / chunk;
  if (chunks * chunk != steps) {
    const Var parts[] = {x, zeros(*x.graph, {chunks * chunk - steps, batch, heads, d})};
    x = concat(parts, 0);
  }
  const int axes[] = {0, 2, 3, 1, 4};
  return permute(reshape(x, {chunks, chunk, batch, heads, d}), axes);
}

Var join(Var x, std::int64_t steps) {
  const int axes[] = {0, 3, 1, 2, 4};
  const std::int64_t chunks = x.dim(0), batch = x.dim(1), heads = x.dim(2), chunk = x.dim(3), d = x.dim(4);
  return slice(reshape(permute(x, axes), {chunks * chunk, batch, heads, d}), 0, 0, steps);
}

Var triangle(Graph& graph, std::int64_t chunk, double inside, double outside, bool strictly) {
  std::vector<double> values;
  for (std::int64_t i = 0; i < chunk; ++i)
    for (std::int64_t j = 0; j < chunk; ++j) values.push_back(j < i + (strictly ? 0 : 1) ? inside : outside);
  return graph.constant({chunk, chunk}, std::move(values));
}

Var previous_state(Var initial, Var after) {
  const Var first = with_axis(initial, 0);
  if (after.dim(0) == 1) return first;
  const Var parts[] = {first, slice(after, 0, 0, after.dim(0) - 1)};
  return concat(parts, 0);
}

Sums sums(Var x, int axis) {
  if (axis < 0) axis += static_cast<int>(x.shape().size());
  const std::int64_t n = x.dim(axis);
  Shape first = x.shape();
  first[static_cast<std::size_t>(axis)] = 1;
  const Var high = cumulative_sum(x, axis), after = detach(high), added = detach(x);
  Var before = zeros(*x.graph, first);
  if (n > 1) {
    const Var parts[] = {before, slice(after, axis, 0, n - 1)};
    before = concat(parts, axis);
  }
  const Var step = after - before;  // Knuth's sum of two numbers and its error
  return {high, cumulative_sum((before - (after - step)) + (added - step), axis)};
}

Var with_axis(Var x, int axis) {
  Shape shape = x.shape();
  shape.insert(axis < 0 ? shape.end() + axis + 1 : shape.begin() + axis, 1);
  return reshape(x, shape);
}

}  // namespace reclab::chunks
