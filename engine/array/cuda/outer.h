// SPDX-License-Identifier: GPL-3.0-or-later
// The outer-product memory.
#pragma once

#include "array/cuda/elementwise.h"
#include "array/cuda/gather.h"
#include "array/cuda/kernel_backend.h"
#include "array/cuda/product.h"
#include "array/cuda/reduce.h"

namespace reclab::kernel {

// ---- Kernels -----------------------------------------------------------------------------------------------------------------------

/// Zeroes the entries above the diagonal of square attention, or on it too: entry (row, u) of a matrix whose first row is step `first`.
template <class T>
struct Causal {
  T* x;
  Index rows, columns, first;
  ReadOrder read;
  RECLAB_HD void operator()(Index i) const {
    if (i % columns >= first + i / columns % rows + (read == ReadOrder::after ? 1 : 0)) x[i] = T(0);
  }
};

/// M[h, r, p] += x_t[h, r] y_t[h, p], and out_t[h, p] = (or +=) sum_r M[h, r, p] z_t[h, r] after it or before it, for steps in order: a
/// thread a column (h, p). Outputs, and the adjoints of queries, keys and values, are all of this kind. M is a sum over all of time: kept
/// in double, or a long memory in float would lose the differences of its reads.
template <class T>
struct OuterPass {
  const T *x, *y, *z;
  T *out, *states;           // states [steps, heads, rows, columns] may be null
  double *memory, *squares;  // squares [steps, heads, columns] of M's column, may be null
  Index steps, heads, rows, columns, from, to;
  bool backward, accumulate;
  ReadOrder read;
  RECLAB_HD void operator()(Index index) const {
    const Index h = index / columns, p = index % columns;
    double* column = memory + h * rows * columns + p;
    for (Index step = from; step < to; ++step) {
      const Index t = backward ? steps - 1 - step : step, at = t * heads + h;
      const auto factor = static_cast<double>(y[at * columns + p]);
      double sum = 0.0, square = 0.0;
      for (Index r = 0; r < rows; ++r) {
        const double before = column[r * columns], cell = before + static_cast<double>(x[at * rows + r]) * factor,
                     seen = read == ReadOrder::after ? cell : before;
        column[r * columns] = cell;
        sum += seen * static_cast<double>(z[at * rows + r]);
        if (states) states[(at * rows + r) * columns + p] = static_cast<T>(cell);
        square += seen * seen;
      }
      T& to_out = out[at * columns + p];
      to_out = accumulate ? to_out + static_cast<T>(sum) : static_cast<T>(sum);
      if (squares) squares[at * columns + p] = square;
    }
  }
};

template <class T>
struct Heads {
  OuterDims d;
  template <class V>  // void or const void
  using Element = std::conditional_t<std::is_const_v<V>, const T, T>;
  template <class V>
  auto keys(V* p, Index first, Index rows) const {
    return Matrices<Element<V>>{static_cast<Element<V>*>(p) + first * d.heads * d.key, d.heads, rows, d.key, d.heads * d.key, d.key};
  }
  template <class V>
  auto values(V* p, Index first, Index rows) const {
    return Matrices<Element<V>>{
        static_cast<Element<V>*>(p) + first * d.heads * d.value, d.heads, rows, d.value, d.heads * d.value, d.value};
  }
  template <class V>
  auto memory(V* p) const {
    return Matrices<Element<V>>{static_cast<Element<V>*>(p), d.heads, d.key, d.value, d.value, d.key * d.value};
  }
  Matrices<T> square(T* p, Index rows, Index columns) const { return {p, d.heads, rows, columns, columns, rows * columns}; }
};

/// Rows of the attention matrix that are formed at once: up to 64 MiB of them.
template <class T>
Index rows_of(const OuterDims& d) {
  return std::clamp<Index>((Index{64} << 20) / std::max<Index>(1, d.heads * d.steps * static_cast<Index>(sizeof(T))), 1, d.steps);
}

// ---- Launches ----------------------------------------------------------------------------------------------------------------------

template <class Machine>
template <class T>
void KernelBackend<Machine>::start_memory(const T* from, double* memory, Index n) {
  if (from)
    machine_.each(n, Convert<T, double>{from, memory});
  else
    machine_.zero(memory, static_cast<std::size_t>(n) * sizeof(double));
}
template <class Machine>
template <class T>
void KernelBackend<Machine>::start_transposed(const OuterDims& d, const T* from, double* memory) {
  const Index n = d.heads * d.key * d.value;
  if (from)
    machine_.each(n, TransposeEach<T>{from, memory, d.key, d.value});
  else
    machine_.zero(memory, static_cast<std::size_t>(n) * sizeof(double));
}
template <class Machine>
template <class T>
void KernelBackend<Machine>::pass(OuterPass<T> f, const std::stop_token& stop) {
  for (f.from = 0; f.from < f.steps; f.from = f.to) {
    poll(stop, f.from);
    f.to = std::min(f.steps, f.from + stretch);
    machine_.each(f.heads * f.columns, f);
  }
}

template <class Machine>
void KernelBackend<Machine>::outer(DType type, const OuterDims& d, bool attention, const void* q, const void* k, const void* v,
                                   const void* initial, void* o, void* states, void* final_state, std::stop_token stop) {
  with_real(type, [&](auto zero) {
    using T = decltype(zero);
    const Index size = d.heads * d.key * d.value;
    if (!attention) {
      Scratch<double> memory(machine_, size);
      start_memory(as<T>(initial), memory.data, size);
      pass(OuterPass<T>{as<T>(k), as<T>(v), as<T>(q), as<T>(o), as<T>(states), memory.data, nullptr, d.steps, d.heads, d.key, d.value, 0, 0,
                        false, false, d.read},
           stop);
      if (final_state) machine_.each(size, Convert<double, T>{memory.data, as<T>(final_state)});
      return;
    }
    const Heads<T> h{d};
    Scratch<T> scores(machine_, d.heads * rows_of<T>(d) * d.steps);
    for (Index first = 0; first < d.steps; first += rows_of<T>(d)) {
      poll(stop, first);
      const Index rows = std::min(rows_of<T>(d), d.steps - first), columns = first + rows;
      const auto square = h.square(scores.data, rows, columns);
      multiply(h.keys(q, first, rows), h.keys(k, 0, columns).transposed(), square, false);
      machine_.each(d.heads * rows * columns, Causal<T>{scores.data, rows, columns, first, d.read});
      multiply(square, h.values(v, 0, columns), h.values(o, first, rows), false);
      if (initial) multiply(h.keys(q, first, rows), h.memory(initial), h.values(o, first, rows), true);
    }
    if (!final_state) return;
    if (initial) copy(final_state, initial, static_cast<std::size_t>(size) * sizeof(T));
    multiply(h.keys(k, 0, d.steps).transposed(), h.values(v, 0, d.steps), h.memory(final_state), initial != nullptr);
  });
}

template <class Machine>
void KernelBackend<Machine>::outer_adjoint(DType type, const OuterDims& d, bool attention, const void* q, const void* k, const void* v,
                                           const void* initial, const void* go, const void* carried, void* gq, void* gk, void* gv,
                                           void* ginitial, double* log2_norm, std::stop_token stop) {
  with_real(type, [&](auto zero) {
    using T = decltype(zero);
    const Index size = d.heads * d.key * d.value;
    if (attention) {
      const Heads<T> h{d};
      Scratch<T> scores(machine_, d.heads * rows_of<T>(d) * d.steps);
      const auto causal = [&](const auto& left, const auto& right, const auto& square, Index first) {
        multiply(left, right.transposed(), square, false);
        machine_.each(d.heads * square.rows * square.columns, Causal<T>{scores.data, square.rows, square.columns, first, d.read});
      };
      for (Index first = 0; first < d.steps; first += rows_of<T>(d)) {
        poll(stop, first);
        const Index rows = std::min(rows_of<T>(d), d.steps - first), columns = first + rows;
        const auto square = h.square(scores.data, rows, columns);
        causal(h.values(go, first, rows), h.values(v, 0, columns), square, first);
        multiply(square, h.keys(k, 0, columns), h.keys(gq, first, rows), true);
        multiply(square.transposed(), h.keys(q, first, rows), h.keys(gk, 0, columns), true);
        causal(h.keys(q, first, rows), h.keys(k, 0, columns), square, first);
        multiply(square.transposed(), h.values(go, first, rows), h.values(gv, 0, columns), true);
      }
      // The terms that pass through the initial and the final memory.
      if (initial) multiply(h.values(go, 0, d.steps), h.memory(initial).transposed(), h.keys(gq, 0, d.steps), true);
      if (carried) {
        multiply(h.values(v, 0, d.steps), h.memory(carried).transposed(), h.keys(gk, 0, d.steps), true);
        multiply(h.keys(k, 0, d.steps), h.memory(carried), h.values(gv, 0, d.steps), true);
      }
      if (ginitial) {
        if (carried) machine_.each(size, AddScaled<T>{as<T>(carried), as<T>(ginitial), T(1), 0, true, true});
        multiply(h.keys(q, 0, d.steps).transposed(), h.values(go, 0, d.steps), h.memory(ginitial), true);
      }
      if (log2_norm) std::fill(log2_norm, log2_norm + d.steps, -std::numeric_limits<double>::infinity());
      return;
    }
    Scratch<double> memory(machine_, size);
    // The queries' adjoint on the way there, with the memory rebuilt; keys and values on the way back, with its adjoint.
    start_transposed(d, as<T>(initial), memory.data);
    pass(OuterPass<T>{as<T>(v), as<T>(k), as<T>(go), as<T>(gq), nullptr, memory.data, nullptr, d.steps, d.heads, d.value, d.key, 0, 0,
                      false, true, d.read},
         stop);
    start_transposed(d, as<T>(carried), memory.data);
    pass(OuterPass<T>{as<T>(go), as<T>(q), as<T>(v), as<T>(gk), nullptr, memory.data, nullptr, d.steps, d.heads, d.value, d.key, 0, 0, true,
                      true, d.read},
         stop);
    start_memory(as<T>(carried), memory.data, size);
    Scratch<double> squares(machine_, log2_norm ? d.steps * d.heads * d.value : 0);
    pass(OuterPass<T>{as<T>(q), as<T>(go), as<T>(k), as<T>(gv), nullptr, memory.data, squares.data, d.steps, d.heads, d.key, d.value, 0, 0,
                      true, true, d.read},
         stop);
    if (ginitial) reduce(SumTerm<double>{memory.data, 1, 1}, size, 1, as<T>(ginitial), 1.0, true);
    if (log2_norm) {
      Scratch<double> sums(machine_, d.steps);
      reduce(SumTerm<double>{squares.data, d.heads * d.value, 1}, d.steps, d.heads * d.value, sums.data, 1.0, false);
      machine_.download(log2_norm, sums.data, static_cast<std::size_t>(d.steps) * sizeof(double));
      for (Index t = 0; t < d.steps; ++t) log2_norm[t] = 0.5 * std::log2(log2_norm[t]);
    }
  });
}

}  // namespace reclab::kernel
