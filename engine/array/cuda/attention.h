// SPDX-License-Identifier: GPL-3.0-or-later
// Attention scores. A row of [batch, rows, columns] is a thread's where it is short, else a block's, so that neighbours read neighbours; a
// thread has an element where rows do not matter. Row i stands at column first + i.
#pragma once

#include "array/cuda/kernel_backend.h"

namespace reclab::kernel {

// ---- Kernels -----------------------------------------------------------------------------------------------------------------------

/// Sums of 256 threads, or the largest: in shared memory, always in the same order. A result is at [0].
template <class Block, class V, class F>
RECLAB_HD inline void join_threads(Block& block, V* values, const F& join) {
  for (int half = 128; half; half /= 2)
    block.phase([&](int thread) {
      if (thread < half) values[thread] = join(values[thread], values[thread + half]);
    });
}
template <class T>
struct SoftmaxRow {
  const T* low;
  T* scores;
  Index rows, columns, first;
  struct Shared {
    double sums[256];
    T largest[256];
  };
  /// The columns of a row that count.
  struct Span {
    Index from, to;
  };
  RECLAB_HD Span span(Index r) const {
    const Index i = r % rows, to = first + i + 1;
    Index from = low ? static_cast<Index>(low[i]) : 0;
    if (from < 0) from = 0;
    return {from > to ? to : from, to};
  }
  /// A thread a row.
  RECLAB_HD void operator()(Index r) const {
    T* s = scores + r * columns;
    const auto [from, to] = span(r);
    T largest(0);
    for (Index j = from; j < to; ++j) largest = j == from || s[j] > largest ? s[j] : largest;
    double sum = 0;
    for (Index j = 0; j < columns; ++j) {
      s[j] = j >= from && j < to ? fn::exp(s[j] - largest) : T(0);
      sum += static_cast<double>(s[j]);
    }
    const T scale = sum > 0 ? static_cast<T>(1.0 / sum) : T(0);
    for (Index j = from; j < to; ++j) s[j] *= scale;
  }
  /// A block a row.
  template <class Block>
  RECLAB_HD void operator()(Block& block, Index r, Shared& shared) const {
    T* s = scores + r * columns;
    const auto [from, to] = span(r);
    block.phase([&, from = from, to = to](int thread) {
      T largest = -std::numeric_limits<T>::infinity();
      for (Index j = from + thread; j < to; j += 256) largest = s[j] > largest ? s[j] : largest;
      shared.largest[thread] = largest;
    });
    join_threads(block, shared.largest, [](T x, T y) { return x > y ? x : y; });
    block.phase([&, from = from, to = to](int thread) {
      double sum = 0;
      for (Index j = thread; j < columns; j += 256) {
        s[j] = j >= from && j < to ? fn::exp(s[j] - shared.largest[0]) : T(0);
        sum += static_cast<double>(s[j]);
      }
      shared.sums[thread] = sum;
    });
    join_threads(block, shared.sums, [](double x, double y) { return x + y; });
    block.phase([&, from = from, to = to](int thread) {
      const T scale = shared.sums[0] > 0 ? static_cast<T>(1.0 / shared.sums[0]) : T(0);
      // A thread scales its own entries.
      for (Index j = thread; j < to; j += 256)
        if (j >= from) s[j] *= scale;
    });
  }
};
template <class T>
struct SoftmaxRowAdjoint {
  const T* p;
  T* g;
  Index columns;
  struct Shared {
    double sums[256];
  };
  RECLAB_HD void operator()(Index r) const {
    double mean = 0;
    for (Index j = r * columns; j < (r + 1) * columns; ++j) mean += static_cast<double>(p[j]) * static_cast<double>(g[j]);
    for (Index j = r * columns; j < (r + 1) * columns; ++j) g[j] = p[j] * (g[j] - static_cast<T>(mean));
  }
  template <class Block>
  RECLAB_HD void operator()(Block& block, Index r, Shared& shared) const {
    const Index end = (r + 1) * columns;
    block.phase([&](int thread) {
      double sum = 0;
      for (Index j = r * columns + thread; j < end; j += 256) sum += static_cast<double>(p[j]) * static_cast<double>(g[j]);
      shared.sums[thread] = sum;
    });
    join_threads(block, shared.sums, [](double x, double y) { return x + y; });
    block.phase([&](int thread) {
      const T mean = static_cast<T>(shared.sums[0]);
      for (Index j = r * columns + thread; j < end; j += 256) g[j] = p[j] * (g[j] - mean);
    });
  }
};
template <class T>
struct ByDistance {
  const T* far;
  T* scores;
  Index rows, columns, distances, first;
  RECLAB_HD void operator()(Index at) const {
    const Index r = at / columns, distance = first + r % rows - at % columns;
    if (distance >= 0 && distance < distances) scores[at] += far[r * distances + distance];
  }
};
template <class T>
struct ByDistanceAdjoint {
  const T* gscores;
  T* gfar;
  Index rows, columns, distances, first;
  RECLAB_HD void operator()(Index at) const {
    const Index r = at / distances, column = first + r % rows - at % distances;
    gfar[at] = column >= 0 ? gscores[r * columns + column] : T(0);
  }
};
template <class T>
struct KeepColumns {
  const T* bound;
  T* scores;
  Index rows, columns;
  bool from;
  RECLAB_HD void operator()(Index at) const {
    const bool before = at % columns < static_cast<Index>(bound[at / columns % rows]);
    if (before == from) scores[at] = T(0);
  }
};
template <class T>
struct Weigh {
  const T *row, *column, *row_low, *column_low;
  T* scores;
  Index steps, rows, columns, first;
  RECLAB_HD void operator()(Index at) const {
    const Index r = at / columns, b = r / rows, i = first + r % rows, j = at % columns;
    const Index from = b * steps + i, to = b * steps + j;
    scores[at] = j <= i ? scores[at] * fn::exp(row[from] + column[to] + (row_low[from] + column_low[to])) : T(0);
  }
};
/// p g, into scratch, whose sums by rows and by columns are the exponents' adjoints.
template <class T>
struct Both {
  const T *p, *g;
  T* both;
  RECLAB_HD void operator()(Index at) const { both[at] = p[at] * g[at]; }
};
/// Sums of a block [batch, rows, columns] by rows (into [batch, steps] from `first` on) or by columns: a thread a sum, or of a long row a
/// block.
template <class T>
struct BlockSum {
  const T* block;
  T* to;
  Index steps, rows, columns, first;
  bool by_columns;
  struct Shared {
    double sums[256];
  };
  RECLAB_HD void operator()(Index index) const {
    const Index n = by_columns ? columns : rows, b = index / n, own = index % n;
    double sum = 0;
    for (Index l = 0; l < (by_columns ? rows : columns); ++l)
      sum += static_cast<double>(block[b * rows * columns + (by_columns ? l * columns + own : own * columns + l)]);
    to[b * steps + (by_columns ? own : first + own)] += static_cast<T>(sum);
  }
  template <class Block>
  RECLAB_HD void operator()(Block& threads, Index row, Shared& shared) const {
    threads.phase([&](int thread) {
      double sum = 0;
      for (Index l = thread; l < columns; l += 256) sum += static_cast<double>(block[row * columns + l]);
      shared.sums[thread] = sum;
    });
    join_threads(threads, shared.sums, [](double x, double y) { return x + y; });
    threads.phase([&](int thread) {
      if (thread == 0) to[row / rows * steps + first + row % rows] += static_cast<T>(shared.sums[0]);
    });
  }
};

// ---- Launches ----------------------------------------------------------------------------------------------------------------------

/// A row from which a block is kept busy.
constexpr Index long_row = 64;

template <class Machine>
void KernelBackend<Machine>::softmax(DType type, Index batch, Index rows, Index columns, Index first, const void* low, void* scores) {
  with_real(type, [&](auto zero) {
    using T = decltype(zero);
    const SoftmaxRow<T> f{as<T>(low), as<T>(scores), rows, columns, first};
    if (columns < long_row)
      machine_.each(batch * rows, f);
    else
      machine_.blocks(batch * rows, f);
  });
}
template <class Machine>
void KernelBackend<Machine>::softmax_adjoint(DType type, Index rows, Index columns, const void* p, void* g) {
  with_real(type, [&](auto zero) {
    using T = decltype(zero);
    const SoftmaxRowAdjoint<T> f{as<T>(p), as<T>(g), columns};
    if (columns < long_row)
      machine_.each(rows, f);
    else
      machine_.blocks(rows, f);
  });
}
template <class Machine>
void KernelBackend<Machine>::by_distance(DType type, Index batch, Index rows, Index columns, Index distances, Index first, const void* far,
                                         void* scores) {
  with_real(type, [&](auto zero) {
    using T = decltype(zero);
    machine_.each(batch * rows * columns, ByDistance<T>{as<T>(far), as<T>(scores), rows, columns, distances, first});
  });
}
template <class Machine>
void KernelBackend<Machine>::by_distance_adjoint(DType type, Index batch, Index rows, Index columns, Index distances, Index first,
                                                 const void* gscores, void* gfar) {
  with_real(type, [&](auto zero) {
    using T = decltype(zero);
    machine_.each(batch * rows * distances, ByDistanceAdjoint<T>{as<T>(gscores), as<T>(gfar), rows, columns, distances, first});
  });
}
template <class Machine>
void KernelBackend<Machine>::keep_columns(DType type, Index batch, Index rows, Index columns, const void* bound, bool from, void* scores) {
  with_real(type, [&](auto zero) {
    using T = decltype(zero);
    machine_.each(batch * rows * columns, KeepColumns<T>{as<T>(bound), as<T>(scores), rows, columns, from});
  });
}
template <class Machine>
void KernelBackend<Machine>::weigh(DType type, Index batch, Index steps, Index first, Index rows, Index columns, const void* row,
                                   const void* column, const void* row_low, const void* column_low, void* scores) {
  with_real(type, [&](auto zero) {
    using T = decltype(zero);
    machine_.each(batch * rows * columns,
                  Weigh<T>{as<T>(row), as<T>(column), as<T>(row_low), as<T>(column_low), as<T>(scores), steps, rows, columns, first});
  });
}
template <class Machine>
void KernelBackend<Machine>::weigh_adjoint(DType type, Index batch, Index steps, Index first, Index rows, Index columns, const void* row,
                                           const void* column, const void* row_low, const void* column_low, const void* p, void* g,
                                           void* grow, void* gcolumn) {
  with_real(type, [&](auto zero) {
    using T = decltype(zero);
    Scratch<T> both(machine_, batch * rows * columns);
    machine_.each(batch * rows * columns, Both<T>{as<T>(p), as<T>(g), both.data});
    if (const BlockSum<T> sum{both.data, as<T>(grow), steps, rows, columns, first, false}; grow && columns < long_row)
      machine_.each(batch * rows, sum);
    else if (grow)
      machine_.blocks(batch * rows, sum);
    if (gcolumn) machine_.each(batch * columns, BlockSum<T>{both.data, as<T>(gcolumn), steps, rows, columns, first, true});
    machine_.each(batch * rows * columns,
                  Weigh<T>{as<T>(row), as<T>(column), as<T>(row_low), as<T>(column_low), as<T>(g), steps, rows, columns, first});
  });
}

}  // namespace reclab::kernel
