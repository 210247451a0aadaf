// SPDX-License-Identifier: GPL-3.0-or-later
// Chunks of the outer-product memory with decays. The decay from the start of a chunk or to its end is a sum of logarithms over the steps
// between, and between two steps of a chunk the product of their factors: no exponent is above 0 and no two sums are subtracted.
#pragma once

#include "array/cuda/kernels.h"

namespace reclab::kernel {

template <class T>
struct Gates {
  static constexpr int chunk = 16;
  GatedDims d;
  const T* a;  // null: no decays
  RECLAB_HD Index chunks() const { return (d.steps + chunk - 1) / chunk; }
  RECLAB_HD Index end(Index c) const { return least((c + 1) * chunk, d.steps); }
  /// The sum of the logarithms of steps from < l <= to.
  template <class Sum = T>
  RECLAB_HD Sum between(Index from, Index to, Index h, Index i) const {
    Sum sum(0);
    if (!a) return sum;
    for (Index l = from + 1; l <= to; ++l) sum += a[(l * d.heads + h) * d.decays + (d.decays == 1 ? 0 : i)];
    return sum;
  }
  /// Decays from the start of step t's chunk up to it, and from it to the chunk's end.
  RECLAB_HD T since_start(Index t, Index h, Index i) const { return fn::exp(between(t / chunk * chunk - 1, t, h, i)); }
  RECLAB_HD T until_end(Index t, Index h, Index i) const { return fn::exp(between(t, end(t / chunk) - 1, h, i)); }
};
/// The rows of a chunk of steps of a head, a block for each. left: q times the decay from the chunk's start, right: k times the decay to
/// its end, decays [chunks, heads, key]: from start to end; scores [steps, heads, chunk]: sum_i q_t[i] k_u[i] decayed from step u to t, u
/// <= t being a number within t's chunk; 0 elsewhere.
template <class T>
struct GatedRows {
  static constexpr int chunk = Gates<T>::chunk, lanes = 256 / chunk, slab = sizeof(T) == 4 ? 32 : 16;
  static constexpr int numbers = chunk * slab / 256;  // of each array that a thread fetches of a slab
  Gates<T> g;
  const T *q, *k;
  T *left, *right, *decays, *scores;
  struct Shared {
    T q[chunk][slab], k[chunk][slab], log[chunk][slab], factor[chunk][slab];
    T sums[chunk][lanes][chunk + 1];
  };
  struct Sums {
    T of[chunk];  // by the later step
  };
  template <class Block>
  RECLAB_HD void operator()(Block& block, Index index, Shared& shared) const {
    const Index h = index % g.d.heads, c = index / g.d.heads, first = c * chunk;
    const int steps = static_cast<int>(g.end(c) - first);
    typename Block::template Local<Sums> sums;
    block.phase([&](int thread) {
      for (T& sum : sums[thread].of) sum = T(0);
    });
    for (Index from = 0; from < g.d.key; from += slab) {
      block.phase([&](int thread) {
        T fetched_q[numbers], fetched_k[numbers], fetched_log[numbers];
        for (int n = 0; n < numbers; ++n) {
          const int t = (thread + n * 256) / slab, s = thread % slab;
          const bool is_inside = t < steps && from + s < g.d.key;
          const Index row = (first + t) * g.d.heads + h;
          fetched_q[n] = is_inside ? q[row * g.d.key + from + s] : T(0);
          fetched_k[n] = is_inside ? k[row * g.d.key + from + s] : T(0);
          fetched_log[n] = is_inside && g.a ? g.a[row * g.d.decays + (g.d.decays == 1 ? 0 : from + s)] : T(0);
        }
        for (int n = 0; n < numbers; ++n) {
          const int t = (thread + n * 256) / slab, s = thread % slab;
          shared.q[t][s] = fetched_q[n];
          shared.k[t][s] = fetched_k[n];
          shared.log[t][s] = fetched_log[n];
        }
      });
      block.phase([&](int thread) {
        for (int e = thread; e < chunk * slab; e += 256) {
          const int t = e / slab, s = e % slab;
          T before(0), after(0);
          for (int l = 0; l < chunk; ++l) (l <= t ? before : after) += shared.log[l][s];
          const T since_start = fn::exp(before), until_end = fn::exp(after);
          shared.factor[t][s] = fn::exp(shared.log[t][s]);
          if (t >= steps || from + s >= g.d.key) continue;
          const Index row = (first + t) * g.d.heads + h;
          left[row * g.d.key + from + s] = shared.q[t][s] * since_start;
          right[row * g.d.key + from + s] = shared.k[t][s] * until_end;
          if (t == steps - 1) decays[(c * g.d.heads + h) * g.d.key + from + s] = since_start;
        }
      });
      block.phase([&](int thread) {
        const int u = thread / lanes;
        for (int s = thread % lanes; s < slab; s += lanes) {
          T decayed(0);
          for (int t = 0; t < chunk; ++t) {
            decayed = t == u ? shared.k[u][s] : decayed * shared.factor[t][s];  // 0 before u
            sums[thread].of[t] += shared.q[t][s] * decayed;
          }
        }
      });
    }
    block.phase([&](int thread) {
      for (int t = 0; t < chunk; ++t) shared.sums[t][thread % lanes][thread / lanes] = sums[thread].of[t];
    });
    block.phase([&](int thread) {
      const int t = thread / chunk, u = thread % chunk;
      T sum(0);
      for (int lane = 0; lane < lanes; ++lane) sum += shared.sums[t][lane][u];
      if (t < steps) scores[((first + t) * g.d.heads + h) * chunk + u] = sum;
    });
  }
};
/// o = left S + scores v through chunks from <= c < to, S being the memory [heads, key, value] as it was before each. One block for 32
/// columns of a head's memory, which stays in registers: a thread has rows_each rows of one column.
template <class T, int rows_each>
struct GatedChunks {
  static constexpr int chunk = Gates<T>::chunk, columns = 32, groups = 256 / columns, rows = groups * rows_each;
  static constexpr int key_numbers = chunk * rows / 256, value_numbers = chunk * columns / 256;  // that a thread fetches of a chunk
  static constexpr int at_once = sizeof(T) == 4 ? chunk : chunk / 2;                             // steps read before their sums are made
  GatedRows<T> of;
  const T* v;
  T* o;
  double* memory;
  Index from, to;
  struct alignas(16) Shared {
    T left[chunk][rows], right[chunk][rows], v[chunk][columns], scores[chunk][chunk];
    T read[groups][at_once][columns];
    double decays[rows];
  };
  struct Cells {
    double value[rows_each];
  };
  struct Fetched {
    T left[key_numbers], right[key_numbers], v[value_numbers], score, decay;
  };
  RECLAB_HD Index slabs() const { return (of.g.d.value + columns - 1) / columns; }
  RECLAB_HD void fetch(Index c, Index h, Index column, int thread, Fetched& fetched) const {
    const GatedDims& d = of.g.d;
    const Index first = c * chunk;
    const int steps = static_cast<int>(of.g.end(c) - first);
    for (int n = 0; n < key_numbers; ++n) {
      const int t = (thread + n * 256) / rows, i = (thread + n * 256) % rows;
      const bool is_inside = t < steps && i < d.key;
      const Index at = ((first + t) * d.heads + h) * d.key + i;
      fetched.left[n] = is_inside ? of.left[at] : T(0);
      fetched.right[n] = is_inside ? of.right[at] : T(0);
    }
    for (int n = 0; n < value_numbers; ++n) {
      const int t = (thread + n * 256) / columns;
      const Index j = column + thread % columns;
      fetched.v[n] = t < steps && j < d.value ? v[((first + t) * d.heads + h) * d.value + j] : T(0);
    }
    fetched.score = thread / chunk < steps ? of.scores[((first + thread / chunk) * d.heads + h) * chunk + thread % chunk] : T(0);
    fetched.decay = thread < d.key ? of.decays[(c * d.heads + h) * d.key + thread] : T(0);
  }
  template <class Block>
  RECLAB_HD void operator()(Block& block, Index index, Shared& shared) const {
    const GatedDims& d = of.g.d;
    const Index h = index / slabs(), column = index % slabs() * columns;
    typename Block::template Local<Cells> cells;
    typename Block::template Local<Fetched> fetched;
    const auto each_cell = [&](int thread, auto&& f) {
      const Index j = column + thread % columns;
      for (int r = 0; r < rows_each; ++r) {
        const Index i = thread / columns * rows_each + r;
        f(cells[thread].value[r], i < d.key && j < d.value, (h * d.key + i) * d.value + j);
      }
    };
    block.phase([&](int thread) {
      each_cell(thread, [&](double& cell, bool is_inside, Index at) { cell = is_inside ? memory[at] : 0.0; });
      fetch(from, h, column, thread, fetched[thread]);
    });
    for (Index c = from; c < to; ++c) {
      block.phase([&](int thread) {
        const Fetched& own = fetched[thread];
        for (int n = 0; n < key_numbers; ++n) {
          const int t = (thread + n * 256) / rows, i = (thread + n * 256) % rows;
          shared.left[t][i] = own.left[n];
          shared.right[t][i] = own.right[n];
        }
        for (int n = 0; n < value_numbers; ++n) shared.v[(thread + n * 256) / columns][thread % columns] = own.v[n];
        shared.scores[thread / chunk][thread % chunk] = own.score;
        if (thread < rows) shared.decays[thread] = static_cast<double>(own.decay);
      });
      for (int begin = 0; begin < chunk; begin += at_once) {
        block.phase([&](int thread) {
          if (begin == 0 && c + 1 < to) fetch(c + 1, h, column, thread, fetched[thread]);  // on its way meanwhile
          const int group = thread / columns, j = thread % columns;
          T plain[rows_each];
          for (int r = 0; r < rows_each; ++r) plain[r] = static_cast<T>(cells[thread].value[r]);
          for (int t = 0; t < at_once; t += 4) {  // four sums side by side
            T sums[4];
            for (int n = 0; n < 4; ++n) {
              sums[n] = T(0);
              for (int r = 0; r < rows_each; ++r) sums[n] += shared.left[begin + t + n][group * rows_each + r] * plain[r];
            }
            for (int n = 0; n < 4; ++n) shared.read[group][t + n][j] = sums[n];
          }
          if (begin + at_once < chunk) return;
          T written[rows_each];
          for (T& sum : written) sum = T(0);
          for (int t = 0; t < chunk; ++t)
            for (int r = 0; r < rows_each; ++r) written[r] += shared.right[t][group * rows_each + r] * shared.v[t][j];
          for (int r = 0; r < rows_each; ++r) {
            double& cell = cells[thread].value[r];
            cell = cell * shared.decays[group * rows_each + r] + static_cast<double>(written[r]);
          }
        });
        block.phase([&](int thread) {
          const int j = thread % columns;
          for (int t = thread / columns; t < at_once; t += groups) {
            T sum(0);
            for (int group = 0; group < groups; ++group) sum += shared.read[group][t][j];
            for (int u = 0; u < chunk; ++u) sum += shared.scores[begin + t][u] * shared.v[u][j];
            const Index step = c * chunk + begin + t;
            if (step < d.steps && column + j < d.value) o[(step * d.heads + h) * d.value + column + j] = sum;
          }
        });
      }
    }
    block.phase([&](int thread) {
      each_cell(thread, [&](double& cell, bool is_inside, Index at) {
        if (is_inside) memory[at] = cell;
      });
    });
  }
};

}  // namespace reclab::kernel
