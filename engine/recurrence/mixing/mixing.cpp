// SPDX-License-Identifier: GPL-3.0-or-later
#include "recurrence/mixing/mixing.h"

#include <algorithm>
#include <utility>

namespace reclab {

Var apart(Layer& layer, Var value, std::initializer_list<Var> others) {
  if (!layer.records()) return value;
  const bool shared = std::ranges::any_of(others, [&](Var other) { return other && layer.graph().is_same_memory(value, other); });
  return shared ? affine(value, 1.0, 0.0) : value;
}

void declare_mixing(Layer& layer, Mixing mixing) {
  if (auto* listener = dynamic_cast<MixingListener*>(&layer)) listener->mixes(std::move(mixing));
}

void declare_matrix(Layer& layer, RecurrentMatrix matrix) {
  if (auto* listener = dynamic_cast<MixingListener*>(&layer)) listener->multiplies(std::move(matrix));
}

}  // namespace reclab
