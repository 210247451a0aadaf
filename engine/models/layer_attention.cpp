// SPDX-License-Identifier: GPL-3.0-or-later
#include <cmath>

#include "models/network.h"
#include "models/parts.h"
#include "recurrence/attention.h"

namespace reclab {

Var Layer::attention(const StateSpec& key, const StateSpec& value, Var q, Var k, Var v, std::int64_t window) {
  offer({Form::attention});
  const std::int64_t heads = q.dim(2), shared = heads / k.dim(2);
  // The rows that are appended get nodes of their own, so that their adjoints count what reads the cache and nothing else.
  const auto kept = [&](const StateSpec& state, Var x) {
    const Var row = affine(x, 1.0, 0.0);
    if (!window) return cache(state, row);
    const Var joined = history(state.name, row, window - 1, state.text);
    network_.states_.back().trajectory = row;
    network_.states_.back().recorded_shape = state.shape;
    return joined;
  };
  SoftmaxAttention a;
  const Var keys = kept(key, k), values = kept(value, v);
  const auto served = [&](Var x) {
    if (shared == 1) return parts::heads_first(x);
    const Var ones = x.graph->constant({shared, 1}, std::vector<double>(static_cast<std::size_t>(shared), 1.0));
    return parts::heads_first(reshape(reshape(x, {x.dim(0), x.dim(1), x.dim(2), 1, x.dim(3)}) * ones, {x.dim(0), x.dim(1), heads, x.dim(3)}));
  };
  a.q = parts::heads_first(q);
  a.k = served(keys);
  a.v = served(values);
  if (window) {
    // Column j of row i is step position_i - (window - 1 + i) + j; what came before the sequence is hidden.
    std::vector<double> own;
    for (std::int64_t i = 0; i < steps(); ++i) own.push_back(static_cast<double>(i));
    const Var row = graph_.constant({steps()}, std::move(own)), at = reshape(slice(position(), 1, 0, 1), {steps()});
    a.low = maximum(row, row + static_cast<double>(window - 1) - at);
  }
  return parts::heads_last(*this, softmax_attention(a, form() == Form::sequential), heads);
}

}  // namespace reclab
