// SPDX-License-Identifier: GPL-3.0-or-later
#include "models/parts/lower_bounds.h"

namespace reclab::parts {

Var lower_bound(Layer& l, std::int64_t n, double start) {
  const std::int64_t layers = l.hyper.integer("layers");
  const Var all = l.shared_parameter("lower_bounds", {layers, n}, init::constant(start),
                                     "One array for all layers: its softmax over them, added up from the second layer on, is each layer's "
                                     "least forget gate; starts constant, so that layer l of L has l/L.");
  if (l.index() == 0) return {};
  Var largest = slice(all, 0, 0, 1);
  for (std::int64_t i = 1; i < layers; ++i) largest = maximum(largest, slice(all, 0, i, i + 1));
  const Var weights = exp(all - detach(largest));
  return sum(slice(weights, 0, 1, l.index() + 1), 0) / sum(weights, 0);
}

BoundedGate bounded_gate(Var x, Var bound) {
  if (!bound) return {sigmoid(x), sigmoid(-x)};
  return {bound + (1.0 - bound) * sigmoid(x), (1.0 - bound) * sigmoid(-x)};
}

}  // namespace reclab::parts
