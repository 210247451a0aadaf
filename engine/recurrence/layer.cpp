// SPDX-License-Identifier: GPL-3.0-or-later
#include "recurrence/layer.h"

namespace reclab {
namespace {

Buffer history_of(Layer& layer, const std::string& name, Var x, std::int64_t length, const std::string& text) {
  Shape shape = x.shape();
  shape[0] = length;
  Shape kept{length};
  kept.insert(kept.end(), x.shape().begin() + 2, x.shape().end());
  const Var initial = layer.graph().leaf(LeafKind::variable, shape, x.dtype());
  const Var parts[] = {initial, x};
  // The joined sequence, for the caller; the carried state is its end.
  return {.name = name, .text = text, .shape = kept, .initial = initial, .final_state = concat(parts, 0)};
}
Var carried(Layer& layer, Buffer buffer, std::int64_t length) {
  const Var joined = buffer.final_state;
  buffer.final_state = slice(joined, 0, layer.steps(), layer.steps() + length);
  layer.add_carried_state(std::move(buffer));
  return joined;
}

Buffer cache_of(Layer& layer, const StateSpec& state, Var x) {
  layer.require_single_segment();
  Shape shape = x.shape();
  shape[0] = layer.cached_steps();
  Var joined = x;
  const Var initial = layer.graph().leaf(LeafKind::variable, shape, x.dtype());
  if (shape[0]) {
    const Var parts[] = {initial, x};
    joined = concat(parts, 0);
  }
  return {.name = state.name,
          .text = state.text,
          .shape = state.shape,
          .initial = initial,
          .trajectory = x,
          .final_state = joined,
          .growing = true};
}

}  // namespace

Var Layer::history(const std::string& name, Var x, std::int64_t length, const std::string& text) {
  return carried(*this, history_of(*this, name, x, length, text), length);
}

Var Layer::history(const StateSpec& state, Var x, std::int64_t length) {
  const Var row = affine(x, 1.0, 0.0);  // a node of its own, without other reads of x
  Buffer buffer = history_of(*this, state.name, row, length, state.text);
  buffer.trajectory = row;
  buffer.recorded_shape = state.shape;
  return carried(*this, std::move(buffer), length);
}

Var Layer::cache(const StateSpec& state, Var x) {
  Buffer buffer = cache_of(*this, state, x);
  const Var joined = buffer.final_state;
  add_carried_state(std::move(buffer));
  return joined;
}

Var Layer::cache(const std::string& name, Var x, const std::string& text) {
  Buffer buffer = cache_of(*this, StateSpec{name, Shape(x.shape().begin() + 2, x.shape().end()), text}, detach(x));
  buffer.trajectory = Var{};
  const Var joined = buffer.final_state;
  add_carried_state(std::move(buffer));
  return joined;
}

}  // namespace reclab
