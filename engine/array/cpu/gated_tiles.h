// SPDX-License-Identifier: GPL-3.0-or-later
// The building blocks of the matrix memory with decays on a CPU: a chunk of a head's steps as rows of whole vectors, dense products of them
// in registers, pairs of steps, and single steps.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>

#include "array/backend.h"
#include "array/cpu/processor/exponential.h"
#include "array/cpu/processor/scratch.h"
#include "array/cpu/processor/vectors.h"
#include "array/functions.h"

namespace reclab::cpu::tiles {

using Index = std::int64_t;

inline constexpr Index chunk = 16;

inline constexpr int most_vectors = vector_registers >= 32 ? 4 : 2;
template <class T>
constexpr Index lanes = vector_bytes / sizeof(T);
template <class T>
struct Lanes {
  typedef T type __attribute__((vector_size(vector_bytes), may_alias));
  typedef T in_memory __attribute__((vector_size(vector_bytes), aligned(sizeof(T)), may_alias));
};
template <class T>
using Vector = typename Lanes<T>::type;
template <class T>
struct alignas(64) Line {
  static constexpr Index size = 64 / sizeof(T);
  T entry[size];
};

inline Index rounded_up(Index n, Index unit) { return (n + unit - 1) / unit * unit; }
/// Whole vectors, and whole tiles of a product.
template <class T>
Index padded(Index n) {
  return rounded_up(n, std::max<Index>(lanes<T>, 8));
}
/// The vector from any entry on.
template <class T>
typename Lanes<T>::in_memory& at(T* p) {
  return *reinterpret_cast<typename Lanes<T>::in_memory*>(p);
}
template <class T>
const typename Lanes<T>::in_memory& at(const T* p) {
  return *reinterpret_cast<const typename Lanes<T>::in_memory*>(p);
}

/// Rows of a matrix, `ld` entries from one to the next.
template <class T>
struct RowSpan {
  T* data;
  Index ld;
  T* operator[](Index r) const { return data + r * ld; }
};

/// Memory for arrays of whole vectors.
template <class T>
class Room {
 public:
  explicit Room(Index entries) : lines_(rounded_up(entries, Line<T>::size) / Line<T>::size), next_(lines_.data()[0].entry) {}
  T* take(Index n) { return std::exchange(next_, next_ + rounded_up(n, Line<T>::size)); }

 private:
  UnsetScratch<Line<T>> lines_;
  T* next_;
};

#define RECLAB_INLINE __attribute__((always_inline))
/// f(0) ... f(n - 1), the numbers as constants, so that arrays indexed by them stay in registers.
template <int n, class F>
RECLAB_INLINE inline void each(const F& f) {
  [&]<int... i>(std::integer_sequence<int, i...>)
      RECLAB_INLINE { (f(std::integral_constant<int, i>{}), ...); }(std::make_integer_sequence<int, n>{});
}

// ---- Dense products ----------------------------------------------------------------------------------------------------------------

/// The start of a product's sums: zero, C, C with each row or each column times a factor.
enum class Onto { zero, c, rows, columns };
/// The half of A that is not zero.
enum class Half { both, lower, upper };

template <class T>
struct Product {
  Index depth;
  const T* a;
  Index a_row, a_step;
  const T* b;
  Index ldb;
  T* c;
  Index ldc;
  const T* factor = nullptr;  // of a row or a column
};

template <class T, Onto onto, Half half, int rows, int columns>
void tile(const Product<T> p, Index i0, Index j0) {
  using V = Vector<T>;
  V sum[rows][columns];
  T* c = p.c + i0 * p.ldc + j0;
  each<rows>([&](auto i) RECLAB_INLINE {
    each<columns>([&](auto j) RECLAB_INLINE {
      if constexpr (onto == Onto::zero)
        sum[i][j] = V{};
      else
        sum[i][j] = at(c + i * p.ldc + j * lanes<T>);
      if constexpr (onto == Onto::rows) sum[i][j] *= p.factor[i0 + i];
      if constexpr (onto == Onto::columns) sum[i][j] *= at(p.factor + j0 + j * lanes<T>);
    });
  });
  const Index from = half == Half::upper ? i0 : 0, to = half == Half::lower ? std::min(p.depth, i0 + rows) : p.depth;
  const T* a = p.a + i0 * p.a_row + from * p.a_step;
  const T* b = p.b + from * p.ldb + j0;
  for (Index l = from; l < to; ++l, a += p.a_step, b += p.ldb) {
    V in[columns];
    each<columns>([&](auto j) RECLAB_INLINE { in[j] = at(b + j * lanes<T>); });
    each<rows>([&](auto i) RECLAB_INLINE {
      const T x = a[i * p.a_row];
      each<columns>([&](auto j) RECLAB_INLINE { sum[i][j] += x * in[j]; });
    });
  }
  each<rows>([&](auto i) RECLAB_INLINE { each<columns>([&](auto j) RECLAB_INLINE { at(c + i * p.ldc + j * lanes<T>) = sum[i][j]; }); });
}
struct Nothing {
  void operator()(Index, Index) const {}
};
/// C (rows x columns) = A B, or += A B; rows are a multiple of 8, columns of a vector. Before each tile from row i on of the first columns,
/// between(i, height) is called.
template <Onto onto, Half half = Half::both, class T, class Between = Nothing>
void multiply(Index rows, Index columns, const Product<T>& p, const Between& between = {}) {
  Index j = 0;
  if constexpr (most_vectors == 4)
    for (; columns - j >= 4 * lanes<T>; j += 4 * lanes<T>)
      for (Index i = 0; i < rows; i += 4) {
        if (j == 0) between(i, 4);
        tile<T, onto, half, 4, 4>(p, i, j);
      }
  for (; columns - j >= 2 * lanes<T>; j += 2 * lanes<T>)
    for (Index i = 0; i < rows; i += 2 * most_vectors) {
      if (j == 0) between(i, 2 * most_vectors);
      tile<T, onto, half, 2 * most_vectors, 2>(p, i, j);
    }
  for (; columns - j >= lanes<T>; j += lanes<T>)
    for (Index i = 0; i < rows; i += 8) {
      if (j == 0) between(i, 8);
      tile<T, onto, half, 8, 1>(p, i, j);
    }
}
/// C += A B for a sum over all of time: `low` holds the rounding errors of C, by Knuth's sum of two numbers and its error.
template <class T>
void add_exactly(Index rows, Index columns, Product<T> p, T* low, T* room) {
  T* c = p.c;
  p.c = room;
  multiply<Onto::zero>(rows, columns, p);
  for (Index i = 0; i < rows * columns; i += lanes<T>) {
    const Vector<T> before = at(c + i), added = at(room + i) + at(low + i), sum = before + added, step = sum - before;
    at(low + i) = (before - (sum - step)) + (added - step);
    at(c + i) = sum;
  }
}

// ---- Pairs of steps within a chunk -------------------------------------------------------------------------------------------------

template <class T>
struct Four {
  typedef T type __attribute__((vector_size(4 * sizeof(T)), may_alias));
};
template <class T>
using FourOf = typename Four<T>::type;
/// to[b] += the sum of the entries of x[b]. No vector is passed by value: how depends on the processor.
template <class T>
RECLAB_INLINE inline void add_four_sums(const Vector<T> (&x)[4], T* to) {
  const auto &a = x[0], &b = x[1], &c = x[2], &d = x[3];
  [[maybe_unused]] auto& sums = *reinterpret_cast<FourOf<T>*>(to);
  if constexpr (lanes<T> == 16) {
    const auto ab = __builtin_shufflevector(a, b, 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30) +
                    __builtin_shufflevector(a, b, 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31);
    const auto cd = __builtin_shufflevector(c, d, 0, 16, 2, 18, 4, 20, 6, 22, 8, 24, 10, 26, 12, 28, 14, 30) +
                    __builtin_shufflevector(c, d, 1, 17, 3, 19, 5, 21, 7, 23, 9, 25, 11, 27, 13, 29, 15, 31);
    const auto all = __builtin_shufflevector(ab, cd, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29) +
                     __builtin_shufflevector(ab, cd, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
    const auto half =
        __builtin_shufflevector(all, all, 0, 1, 2, 3, 4, 5, 6, 7) + __builtin_shufflevector(all, all, 8, 9, 10, 11, 12, 13, 14, 15);
    sums += __builtin_shufflevector(half, half, 0, 1, 2, 3) + __builtin_shufflevector(half, half, 4, 5, 6, 7);
  } else if constexpr (lanes<T> == 8) {
    const auto ab = __builtin_shufflevector(a, b, 0, 8, 2, 10, 4, 12, 6, 14) + __builtin_shufflevector(a, b, 1, 9, 3, 11, 5, 13, 7, 15);
    const auto cd = __builtin_shufflevector(c, d, 0, 8, 2, 10, 4, 12, 6, 14) + __builtin_shufflevector(c, d, 1, 9, 3, 11, 5, 13, 7, 15);
    const auto all =
        __builtin_shufflevector(ab, cd, 0, 1, 8, 9, 4, 5, 12, 13) + __builtin_shufflevector(ab, cd, 2, 3, 10, 11, 6, 7, 14, 15);
    sums += __builtin_shufflevector(all, all, 0, 1, 2, 3) + __builtin_shufflevector(all, all, 4, 5, 6, 7);
  } else if constexpr (lanes<T> == 4) {
    const auto ab = __builtin_shufflevector(a, b, 0, 4, 2, 6) + __builtin_shufflevector(a, b, 1, 5, 3, 7);
    const auto cd = __builtin_shufflevector(c, d, 0, 4, 2, 6) + __builtin_shufflevector(c, d, 1, 5, 3, 7);
    sums += __builtin_shufflevector(ab, cd, 0, 1, 4, 5) + __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
  } else {
    for (int v = 0; v < 4; ++v)
      for (Index l = 0; l < lanes<T>; ++l) to[v] += x[v][l];
  }
}

/// scores[i, j] += sum_d x[i, d] y[j, d] prod_{j < l <= i} e[l, d] for j <= i over N vectors of d. Four columns at a
/// time: their y, decayed up to step i, stay in registers.
template <class T, int N, bool decayed>
void add_scores(RowSpan<const T> x, RowSpan<const T> y, RowSpan<const T> e, T* scores) {
  using V = Vector<T>;
  for (Index j0 = 0; j0 < chunk; j0 += 4) {
    V w[4][N] = {};
    const auto row = [&](Index i, auto fresh) RECLAB_INLINE {
      V sum[4] = {};
      each<N>([&](auto n) RECLAB_INLINE {
        const V query = at(x[i] + n * lanes<T>);
        if constexpr (decayed) {
          const V factor = at(e[i] + n * lanes<T>);
          each<fresh>([&](auto b) RECLAB_INLINE { w[b][n] *= factor; });
        }
        if constexpr (fresh < 4) w[fresh][n] = at(y[i] + n * lanes<T>);
        each<(fresh < 4 ? fresh + 1 : 4)>([&](auto b) RECLAB_INLINE { sum[b] += query * w[b][n]; });
      });
      add_four_sums<T>(sum, scores + i * chunk + j0);
    };
    each<4>([&](auto fresh) RECLAB_INLINE { row(j0 + fresh, fresh); });
    for (Index i = j0 + 4; i < chunk; ++i) row(i, std::integral_constant<int, 4>{});
  }
}
/// g being the adjoint of the scores: gx, gy, and ge[l, d] += e times the adjoint of the decay of step l.
template <class T, int N, bool decayed>
void add_scores_adjoint(const T* x, const T* y, const T* e, Index ld, const T* g, T* gx, T* gy, T* ge, T* room) {
  using V = Vector<T>;
  for (Index j0 = 0; j0 < chunk; j0 += 4) {
    V w[4][N] = {};
    const auto there = [&](Index i, auto fresh) RECLAB_INLINE {
      constexpr int count = fresh < 4 ? fresh + 1 : 4;
      T by[4];
      each<count>([&](auto b) RECLAB_INLINE { by[b] = g[i * chunk + j0 + b]; });
      each<N>([&](auto n) RECLAB_INLINE {
        V sum = at(gx + i * ld + n * lanes<T>);
        if constexpr (decayed) {
          const V factor = at(e + i * ld + n * lanes<T>);
          each<fresh>([&](auto b) RECLAB_INLINE { w[b][n] *= factor; });
        }
        if constexpr (fresh < 4) w[fresh][n] = at(y + i * ld + n * lanes<T>);
        each<count>([&](auto b) RECLAB_INLINE {
          sum += by[b] * w[b][n];
          if constexpr (decayed) at(room + ((i * 4 + b) * N + n) * lanes<T>) = w[b][n];
        });
        at(gx + i * ld + n * lanes<T>) = sum;
      });
    };
    each<4>([&](auto fresh) RECLAB_INLINE { there(j0 + fresh, fresh); });
    for (Index i = j0 + 4; i < chunk; ++i) there(i, std::integral_constant<int, 4>{});

    V u[4][N] = {};  // sum over the rows from i on of g x, decayed down to step i
    const auto back = [&](Index i, auto fresh) RECLAB_INLINE {
      constexpr int count = fresh < 4 ? fresh + 1 : 4;
      T by[4];
      each<count>([&](auto b) RECLAB_INLINE { by[b] = g[i * chunk + j0 + b]; });
      each<N>([&](auto n) RECLAB_INLINE {
        const V query = at(x + i * ld + n * lanes<T>);
        each<count>([&](auto b) RECLAB_INLINE { u[b][n] += by[b] * query; });
        if constexpr (fresh < 4) at(gy + i * ld + n * lanes<T>) += u[fresh][n];
        if constexpr (decayed && fresh > 0) {
          const V factor = at(e + i * ld + n * lanes<T>);
          V through = at(ge + i * ld + n * lanes<T>);
          each<fresh>([&](auto b) RECLAB_INLINE {
            through += u[b][n] * at(room + ((i * 4 + b) * N + n) * lanes<T>);
            u[b][n] *= factor;
          });
          at(ge + i * ld + n * lanes<T>) = through;
        }
      });
    };
    for (Index i = chunk - 1; i >= j0 + 4; --i) back(i, std::integral_constant<int, 4>{});
    each<4>([&](auto r) RECLAB_INLINE { back(j0 + 3 - r, std::integral_constant<int, 3 - r>{}); });
  }
}
/// Calls f(first entry, number of vectors as a constant) for pieces of a row.
template <class T, class F>
void in_vectors(Index n, const F& f) {
  Index d = 0;
  if constexpr (most_vectors == 4)
    for (; n - d >= 4 * lanes<T>; d += 4 * lanes<T>) f(d, std::integral_constant<int, 4>{});
  for (; n - d >= 2 * lanes<T>; d += 2 * lanes<T>) f(d, std::integral_constant<int, 2>{});
  for (; n - d >= lanes<T>; d += lanes<T>) f(d, std::integral_constant<int, 1>{});
}
/// Over n entries; no e: without decays.
template <class T>
void scores_of(Index n, RowSpan<const T> x, RowSpan<const T> y, RowSpan<const T> e, T* scores) {
  std::fill(scores, scores + chunk * chunk, T(0));
  in_vectors<T>(n, [&](Index d, auto vectors) {
    if (e.data)
      add_scores<T, vectors, true>({x.data + d, x.ld}, {y.data + d, y.ld}, {e.data + d, e.ld}, scores);
    else
      add_scores<T, vectors, false>({x.data + d, x.ld}, {y.data + d, y.ld}, {}, scores);
  });
}

// ---- A head's chunk ----------------------------------------------------------------------------------------------------------------

/// Rows of one head, zeros after the last step and beyond the entries; the decays between steps, and products of them.
template <class T>
struct PaddedRows {
  const GatedDims& d;
  Index key, value;  // padded
  const T *q_in, *k_in, *v_in, *a_in;
  Index head, first_value, values;
  T *q, *k, *v, *e, *left, *right, *prefix, *suffix, *whole;
  RowSpan<const T> queries, keys, inputs;  // q, k and v, or the caller's own rows

  PaddedRows(const GatedDims& dims, const T* qs, const T* ks, const T* vs, const T* as, Index h, Index from, Index n, Room<T>& room)
      : d(dims),
        key(padded<T>(dims.key)),
        value(padded<T>(n)),
        q_in(qs),
        k_in(ks),
        v_in(vs),
        a_in(as),
        head(h),
        first_value(from),
        values(n),
        q(room.take(chunk * key)),
        k(room.take(chunk * key)),
        v(room.take(chunk * value)),
        e(room.take(chunk * key)),
        left(room.take(chunk * key)),
        right(room.take(chunk * key)),
        prefix(room.take(chunk * key)),
        suffix(room.take(chunk * key)),
        whole(room.take(key)),
        queries{q, key},
        keys{k, key},
        inputs{v, value} {
    std::fill(whole, whole + key, T(1));
  }
  static Index size(Index key, Index value) { return chunk * (7 * key + value) + key; }

  Index row(Index t) const { return t * d.heads + head; }
  /// The chunk's rows of `from` [steps, heads, size], entries from `first` on; those of the next chunk are asked for.
  void fill(const T* from, Index t, Index size, Index first, Index n, T* to, Index width) const {
    const Index steps = std::min(chunk, d.steps - t), ahead = std::min(chunk, d.steps - t - steps);
    for (Index r = 0; r < chunk; ++r, to += width) {
      const T* x = from + row(t + r) * size + first;
      Index i = 0;
      if (r < steps) {
        for (; i + lanes<T> <= n; i += lanes<T>) at(to + i) = at(x + i);
        for (; i < n; ++i) to[i] = x[i];
      }
      for (; i < width; ++i) to[i] = T(0);
      if (r < ahead)
        for (Index l = 0; l < n; l += lanes<T>) __builtin_prefetch(x + chunk * d.heads * size + l);
    }
  }
  void fill_values(const T* from, Index t, T* to) const { fill(from, t, d.value, first_value, values, to, value); }
  /// The first read of the chunk from step t on. If the memory is read before its update, its value after step t is read by the next step,
  /// and step 0 reads the initial memory, which is left to the caller.
  Index read_from(Index t) const { return d.read == ReadOrder::before ? t + 1 : t; }
  void fill_reads(const T* from, Index t, T* to) const { fill_values(from, read_from(t), to); }
  /// Fetches keys and decays of the chunk from step t on.
  void read(Index t, bool with_queries) {
    if (with_queries) fill(q_in, read_from(t), d.key, 0, d.key, q, key);
    fill(k_in, t, d.key, 0, d.key, k, key);
    fill_values(v_in, t, v);
    read_decays(t);
  }
  void read_decays(Index t) {
    if (!a_in) return;
    const Index steps = std::min(chunk, d.steps - t);
    for (Index r = 0; r < chunk; ++r) {
      T* to = e + r * key;
      const Index n = r < steps && d.decays == d.key ? d.key : 0;
      Exponential<T>::of(n, a_in + row(t + r) * n, to);
      std::fill(to + n, to + key, r < steps && d.decays != d.key ? fn::exp(a_in[row(t + r)]) : T(1));
    }
  }
  /// The chunk's rows of `from` where they are if they are whole vectors and all of them steps, else copied.
  RowSpan<const T> rows_of(const T* from, Index t, Index size, Index first, Index n, T* copy, Index width) const {
    if (n == width && t + chunk <= d.steps) return {from + row(t) * size + first, d.heads * size};
    fill(from, t, size, first, n, copy, width);
    return {copy, width};
  }
  /// read() for the way forward, which copies no rows that it need not. ask() is for the next chunk.
  void view(Index t) {
    queries = rows_of(q_in, read_from(t), d.key, 0, d.key, q, key);
    keys = rows_of(k_in, t, d.key, 0, d.key, k, key);
    inputs = rows_of(v_in, t, d.value, first_value, values, v, value);
    read_decays(t);
  }
  /// The rows of the outputs of the chunk from step t on, or `room` [chunk, value].
  RowSpan<T> outputs(T* o, Index t, T* room) const {
    const Index first = read_from(t);
    if (values == value && first + chunk <= d.steps) return {o + row(first) * d.value + first_value, d.heads * d.value};
    return {room, value};
  }
  /// Prefetches a part of the rows of the chunk from step t on and of its outputs, part i to i + n of `of`: all at once they would fill the
  /// queue of the loads that wait for memory.
  void ask(Index t, const T* o, Index i, Index n, Index of) const {
    const Index last = std::min(t + chunk, d.steps);
    const auto line = [](const T* x, Index entries, auto write) {
      for (Index l = 0; l < entries; l += Line<T>::size) __builtin_prefetch(x + l, write);
    };
    for (Index r = t + chunk * i / of; r < std::min(last, t + chunk * (i + n) / of); ++r) {
      const std::integral_constant<int, 0> to_read;
      line(q_in + row(r) * d.key, d.key, to_read);
      line(k_in + row(r) * d.key, d.key, to_read);
      line(v_in + row(r) * d.value + first_value, values, to_read);
      if (a_in && d.decays == d.key) line(a_in + row(r) * d.key, d.key, to_read);
      line(o + row(r) * d.value + first_value, values, std::integral_constant<int, 1>());
    }
  }
  void load(Index t, bool with_queries) {
    read(t, with_queries);
    decay();
  }
  /// Multiplies the decays. Left: q decayed from the chunk's start, right: k decayed to its end.
  void decay() {
    if (!a_in) return;
    in_vectors<T>(key, [&](Index i, auto vectors) {
      Vector<T> product[vectors];
      for (int n = 0; n < vectors; ++n) product[n] = Vector<T>{} + T(1);
      for (Index r = 0; r < chunk; ++r)
        for (int n = 0; n < vectors; ++n) {
          const Index entry = r * key + i + n * lanes<T>;
          product[n] *= at(e + entry);
          at(prefix + entry) = product[n];
          at(left + entry) = product[n] * at(queries[r] + i + n * lanes<T>);
        }
      for (int n = 0; n < vectors; ++n) {
        at(whole + i + n * lanes<T>) = product[n];
        product[n] = Vector<T>{} + T(1);
      }
      for (Index r = chunk; r-- > 0;)
        for (int n = 0; n < vectors; ++n) {
          const Index entry = r * key + i + n * lanes<T>;
          at(suffix + entry) = product[n];
          at(right + entry) = product[n] * at(keys[r] + i + n * lanes<T>);
          product[n] *= at(e + entry);
        }
    });
  }
  RowSpan<const T> decays() const { return {a_in ? e : nullptr, key}; }
  RowSpan<const T> decayed_queries() const { return a_in ? RowSpan<const T>{left, key} : queries; }
  RowSpan<const T> decayed_keys() const { return a_in ? RowSpan<const T>{right, key} : keys; }
  /// The logarithm of the decay of key i over the chunk from step t on.
  double log_whole(Index t, Index i) const {
    double sum = 0.0;
    for (Index r = t; r < std::min(t + chunk, d.steps); ++r) sum += log_decay(r, i);
    return sum;
  }
  double log_decay(Index t, Index i) const { return static_cast<double>(a_in[row(t) * d.decays + (d.decays == 1 ? 0 : i)]); }
};

/// Copies the caller's [key, value] to rows of whole vectors, or transposed.
template <class T>
void pad(const T* from, Index rows, Index columns, Index ld, T* to, Index to_rows, Index to_columns) {
  std::fill(to, to + to_rows * to_columns, T(0));
  for (Index i = 0; from && i < rows; ++i) std::copy_n(from + i * ld, columns, to + i * to_columns);
}
template <class T>
void pad_transposed(const T* from, Index rows, Index columns, T* to, Index to_rows, Index to_columns) {
  std::fill(to, to + to_rows * to_columns, T(0));
  for (Index i = 0; from && i < rows; ++i)
    for (Index j = 0; j < columns; ++j) to[j * to_columns + i] = from[i * columns + j];
}

// ---- Step by step ------------------------------------------------------------------------------------------------------------------

/// A chunk of steps: M (rows x columns) = decay M + x y^T, the decay that of its rows or of its columns; then out = or += z^T M.
template <class T>
struct Steps {
  Index rows, columns;
  const T* decay;
  RowSpan<const T> x, y, z;
  T* memory;
  RowSpan<T> out;
};
template <class T, Onto decays, bool reads, int height, int width>
void step_tile(const Steps<T> p, Index i0, Index j0) {
  using V = Vector<T>;
  V m[height][width];
  T* memory = p.memory + i0 * p.columns + j0;
  each<height>([&](auto i)
                   RECLAB_INLINE { each<width>([&](auto j) RECLAB_INLINE { m[i][j] = at(memory + i * p.columns + j * lanes<T>); }); });
  for (Index t = 0; t < chunk; ++t) {
    const T *x = p.x[t] + i0, *y = p.y[t] + j0, *z = p.z[t] + i0,
            *decay = p.decay + t * (decays == Onto::rows ? p.rows : p.columns) + (decays == Onto::rows ? i0 : j0);
    T* to = p.out[t] + j0;
    V in[width], factor[width], out[width];
    each<width>([&](auto j) RECLAB_INLINE {
      in[j] = at(y + j * lanes<T>);
      if constexpr (decays == Onto::columns) factor[j] = at(decay + j * lanes<T>);
      if constexpr (reads) out[j] = i0 ? at(to + j * lanes<T>) : V{};
    });
    each<height>([&](auto i) RECLAB_INLINE {
      const T written = x[i];
      each<width>([&](auto j) RECLAB_INLINE {
        if constexpr (decays == Onto::rows)
          m[i][j] = decay[i] * m[i][j] + written * in[j];
        else
          m[i][j] = factor[j] * m[i][j] + written * in[j];
        if constexpr (reads) out[j] += z[i] * m[i][j];
      });
    });
    if constexpr (reads) each<width>([&](auto j) RECLAB_INLINE { at(to + j * lanes<T>) = out[j]; });
  }
  each<height>([&](auto i)
                   RECLAB_INLINE { each<width>([&](auto j) RECLAB_INLINE { at(memory + i * p.columns + j * lanes<T>) = m[i][j]; }); });
}
/// Before each tile from row i on of the first columns, between(i, height) is called.
template <Onto decays, bool reads, class T, class Between = Nothing>
void take_steps(const Steps<T>& p, const Between& between = {}) {
  in_vectors<T>(p.columns, [&](Index j, auto width) {
    constexpr int height = width == 1 ? 8 : 4;
    for (Index i = 0; i < p.rows; i += height) {
      if (j == 0) between(i, height);
      step_tile<T, decays, reads, height, width>(p, i, j);
    }
  });
}

/// out = z^T M, as take_steps reads it.
template <class T>
void read_memory(Index rows, Index columns, const T* z, const T* memory, T* out) {
  in_vectors<T>(columns, [&](Index j0, auto width) {
    Vector<T> sum[width]{};
    for (Index i = 0; i < rows; ++i)
      each<width>([&](auto j) RECLAB_INLINE { sum[j] += z[i] * at(memory + i * columns + j0 + j * lanes<T>); });
    each<width>([&](auto j) RECLAB_INLINE { at(out + j0 + j * lanes<T>) = sum[j]; });
  });
}

}  // namespace reclab::cpu::tiles
