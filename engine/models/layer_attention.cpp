// SPDX-License-Identifier: GPL-3.0-or-later
#include <cmath>

#include "models/network.h"
#include "models/parts/parts.h"
#include "recurrence/attention.h"

namespace reclab {

Var Layer::attention(const StateSpec& key, const StateSpec& value, Var q, Var k, Var v, std::int64_t window) {
  const std::int64_t heads = q.dim(2), shared = heads / k.dim(2);
  // The rows that are appended get nodes of their own, so that their adjoints count what reads the cache and nothing else.
  const auto kept = [&](const StateSpec& state, Var x) { return window ? history(state, x, window - 1) : cache(state, affine(x, 1.0, 0.0)); };
  SoftmaxAttention a;
  const Var keys = kept(key, k), values = kept(value, v);
  a.q = parts::heads_first(q);
  a.k = parts::heads_first(parts::repeated_heads(keys, shared));
  a.v = parts::heads_first(parts::repeated_heads(values, shared));
  a.window = window;
  if (window) {
    // Column j of row i is step position_i - (window - 1 + i) + j; what came before the sequence is hidden.
    std::vector<double> own;
    for (std::int64_t i = 0; i < steps(); ++i) own.push_back(static_cast<double>(i));
    const Var row = graph_.constant({steps()}, std::move(own)), at = reshape(slice(position(), 1, 0, 1), {steps()});
    a.low = maximum(row, row + static_cast<double>(window - 1) - at);
  }
  return parts::heads_last(*this, attention(a), heads);
}

}  // namespace reclab
