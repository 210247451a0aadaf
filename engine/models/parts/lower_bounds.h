// SPDX-License-Identifier: GPL-3.0-or-later
// Lower bounds of forget gates that rise over the layers of a stack, for HGRN's two implementations.
#pragma once

#include "models/architecture.h"

namespace reclab::parts {

/// The parameter lower_bounds [layers, n] that all layers of the stack share. Its softmax over the layers P gives the bound of layer l,
/// which is P_1 + .. + P_l (the lowest layer being 0, whose bound is 0); [n]. An empty Var in the lowest layer.
Var lower_bound(Layer& l, std::int64_t n, double start);

struct BoundedGate {
  Var forget, write;  ///< b + (1 - b) sigmoid(x), and 1 minus that, without cancellation
};
BoundedGate bounded_gate(Var x, Var bound);

}  // namespace reclab::parts
