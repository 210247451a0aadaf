// SPDX-License-Identifier: GPL-3.0-or-later
// The building blocks of the operations of ops.h.
#pragma once

#include <cstdint>
#include <functional>
#include <numeric>

#include "autodiff/graph.h"

namespace reclab {

/// The graph an operation belongs to: the innermost of its operands'. A cell's graph knows its enclosing one, so the inner graph is the one
/// that can adopt the other's array.
inline Graph& innermost(Var x, Var y) {
  if (x.graph == y.graph) return *x.graph;
  return x.graph->encloses(*y.graph) ? *y.graph : *x.graph;
}

inline int axis_of(Var x, int axis) { return axis < 0 ? axis + static_cast<int>(x.shape().size()) : axis; }

inline std::int64_t product(const Shape& shape, int from, int to) {
  return std::accumulate(shape.begin() + from, shape.begin() + to, std::int64_t{1}, std::multiplies<>());
}

inline std::size_t bytes(DType type, std::int64_t n) { return static_cast<std::size_t>(n) * bytes_of(type); }
inline double real_bytes(DType type) { return static_cast<double>(bytes_of(type)); }

}  // namespace reclab
