// SPDX-License-Identifier: GPL-3.0-or-later
// Within a chunk of 16 steps every pair of steps is met by itself, its decay as the running product of the factors of the steps between:
// no factor is above 1, nothing is divided and no two sums are subtracted, so a decay may be as near 0 or 1 as the type has numbers, and
// what underflows is 0. From chunk to chunk goes the memory. All matrices of a chunk are dense products in registers, and stay in the
// first caches; a chunk of 16 costs less work than a longer one, and as many rows are enough to keep the registers busy.
// Step by step, a piece of the memory stays in registers for as many steps, and each of them decays it, writes and reads: nothing is a
// product over pairs of steps or over a chunk.
#include "array/cpu/gated.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include "array/cpu/exponents.h"
#include "array/cpu/threads.h"
#include "array/cpu/vectors.h"
#include "array/error.h"
#include "array/functions.h"

namespace reclab::cpu {
namespace {

using Index = std::int64_t;

constexpr Index chunk = 16;
constexpr Index kept_every = 16;  // chunks between two memories that the way back starts from
constexpr Index value_slab = 64;  // columns of the memory that one thread takes through all of time

constexpr int most_vectors = vector_registers >= 32 ? 4 : 2;
template <class T>
constexpr Index lanes = vector_bytes / sizeof(T);
template <class T>
struct Lanes {
  typedef T type __attribute__((vector_size(vector_bytes), may_alias));
};
template <class T>
using Vector = typename Lanes<T>::type;
/// The same at any address.
template <class T>
struct Loose {
  typedef T type __attribute__((vector_size(vector_bytes), aligned(sizeof(T)), may_alias));
  type entries;
};
template <class T>
struct alignas(64) Line {
  static constexpr Index size = 64 / sizeof(T);
  T entry[size];
};

Index rounded_up(Index n, Index unit) { return (n + unit - 1) / unit * unit; }
/// Whole vectors, and whole tiles of a product.
template <class T>
Index padded(Index n) {
  return rounded_up(n, std::max<Index>(lanes<T>, 8));
}
template <class T>
Vector<T>& at(T* p) {
  return *reinterpret_cast<Vector<T>*>(p);
}
template <class T>
const Vector<T>& at(const T* p) {
  return *reinterpret_cast<const Vector<T>*>(p);
}

/// Memory for arrays of whole vectors.
template <class T>
class Room {
 public:
  explicit Room(Index entries) : lines_(new Line<T>[static_cast<std::size_t>(rounded_up(entries, Line<T>::size) / Line<T>::size)]), next_(lines_[0].entry) {}
  T* take(Index n) { return std::exchange(next_, next_ + rounded_up(n, Line<T>::size)); }

 private:
  std::unique_ptr<Line<T>[]> lines_;
  T* next_;
};

#define RECLAB_INLINE __attribute__((always_inline))
/// f(0) ... f(n - 1), the numbers as constants: what is indexed by them stays in registers.
template <int n, class F>
RECLAB_INLINE inline void each(const F& f) {
  [&]<int... i>(std::integer_sequence<int, i...>) RECLAB_INLINE { (f(std::integral_constant<int, i>{}), ...); }(std::make_integer_sequence<int, n>{});
}

// ---- Dense products ----------------------------------------------------------------------------------------------------------------

/// What a product is added to: zero, C, C with each row or each column times a factor.
enum class Onto { zero, c, rows, columns };
/// Which half of A is not zero.
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
/// C (rows x columns) = A B, or onto what C was; rows are a multiple of 8, columns of a vector.
template <Onto onto, Half half = Half::both, class T>
void multiply(Index rows, Index columns, const Product<T>& p) {
  Index j = 0;
  if constexpr (most_vectors == 4)
    for (; columns - j >= 4 * lanes<T>; j += 4 * lanes<T>)
      for (Index i = 0; i < rows; i += 4) tile<T, onto, half, 4, 4>(p, i, j);
  for (; columns - j >= 2 * lanes<T>; j += 2 * lanes<T>)
    for (Index i = 0; i < rows; i += 2 * most_vectors) tile<T, onto, half, 2 * most_vectors, 2>(p, i, j);
  for (; columns - j >= lanes<T>; j += lanes<T>)
    for (Index i = 0; i < rows; i += 8) tile<T, onto, half, 8, 1>(p, i, j);
}
/// C += A B for a sum over all of time: `low` holds what the rounding of C left out, by Knuth's sum of two numbers and its error.
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
    const auto half = __builtin_shufflevector(all, all, 0, 1, 2, 3, 4, 5, 6, 7) + __builtin_shufflevector(all, all, 8, 9, 10, 11, 12, 13, 14, 15);
    sums += __builtin_shufflevector(half, half, 0, 1, 2, 3) + __builtin_shufflevector(half, half, 4, 5, 6, 7);
  } else if constexpr (lanes<T> == 8) {
    const auto ab = __builtin_shufflevector(a, b, 0, 8, 2, 10, 4, 12, 6, 14) + __builtin_shufflevector(a, b, 1, 9, 3, 11, 5, 13, 7, 15);
    const auto cd = __builtin_shufflevector(c, d, 0, 8, 2, 10, 4, 12, 6, 14) + __builtin_shufflevector(c, d, 1, 9, 3, 11, 5, 13, 7, 15);
    const auto all = __builtin_shufflevector(ab, cd, 0, 1, 8, 9, 4, 5, 12, 13) + __builtin_shufflevector(ab, cd, 2, 3, 10, 11, 6, 7, 14, 15);
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

/// scores[i, j] += sum_d x[i, d] y[j, d] prod_{j < l <= i} e[l, d] for j <= i over N vectors of d; no e: without decays. Four columns at a
/// time: their y, decayed up to step i, stay in registers.
template <class T, int N, bool decayed>
void add_scores(const T* x, const T* y, const T* e, Index ld, T* scores) {
  using V = Vector<T>;
  for (Index j0 = 0; j0 < chunk; j0 += 4) {
    V w[4][N] = {};
    const auto row = [&](Index i, auto fresh) RECLAB_INLINE {
      V sum[4] = {};
      each<N>([&](auto n) RECLAB_INLINE {
        const V query = at(x + i * ld + n * lanes<T>);
        if constexpr (decayed) {
          const V factor = at(e + i * ld + n * lanes<T>);
          each<fresh>([&](auto b) RECLAB_INLINE { w[b][n] *= factor; });
        }
        if constexpr (fresh < 4) w[fresh][n] = at(y + i * ld + n * lanes<T>);
        each<(fresh < 4 ? fresh + 1 : 4)>([&](auto b) RECLAB_INLINE { sum[b] += query * w[b][n]; });
      });
      add_four_sums<T>(sum, scores + i * chunk + j0);
    };
    each<4>([&](auto fresh) RECLAB_INLINE { row(j0 + fresh, fresh); });
    for (Index i = j0 + 4; i < chunk; ++i) row(i, std::integral_constant<int, 4>{});
  }
}
/// With g the adjoint of the scores: gx, gy, and ge[l, d] += what flows through the decay of step l, that is e times its adjoint.
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
template <class T>
void scores_of(const T* x, const T* y, const T* e, Index ld, T* scores) {
  std::fill(scores, scores + chunk * chunk, T(0));
  in_vectors<T>(ld, [&](Index d, auto vectors) {
    if (e)
      add_scores<T, vectors, true>(x + d, y + d, e + d, ld, scores);
    else
      add_scores<T, vectors, false>(x + d, y + d, nullptr, ld, scores);
  });
}

// ---- A head's chunk ----------------------------------------------------------------------------------------------------------------

/// Rows of one head, zeros after the last step and beyond the entries; what decays between steps, and products of it.
template <class T>
struct Rows {
  const GatedDims& d;
  Index key, value;  // padded
  const T *q_in, *k_in, *v_in, *a_in;
  Index head, first_value, values;
  T *q, *k, *v, *e, *left, *right, *prefix, *suffix, *whole;

  Rows(const GatedDims& dims, const T* qs, const T* ks, const T* vs, const T* as, Index h, Index from, Index n, Room<T>& room)
      : d(dims), key(padded<T>(dims.key)), value(padded<T>(n)), q_in(qs), k_in(ks), v_in(vs), a_in(as), head(h), first_value(from), values(n),
        q(room.take(chunk * key)), k(room.take(chunk * key)), v(room.take(chunk * value)), e(room.take(chunk * key)), left(room.take(chunk * key)),
        right(room.take(chunk * key)), prefix(room.take(chunk * key)), suffix(room.take(chunk * key)), whole(room.take(key)) {
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
        for (; i + lanes<T> <= n; i += lanes<T>) at(to + i) = reinterpret_cast<const Loose<T>*>(x + i)->entries;
        for (; i < n; ++i) to[i] = x[i];
      }
      for (; i < width; ++i) to[i] = T(0);
      if (r < ahead)
        for (Index l = 0; l < n; l += lanes<T>) __builtin_prefetch(x + chunk * d.heads * size + l);
    }
  }
  void fill_values(const T* from, Index t, T* to) const { fill(from, t, d.value, first_value, values, to, value); }
  /// In: keys and decays of the chunk from step t on.
  void read(Index t, bool queries) {
    if (queries) fill(q_in, t, d.key, 0, d.key, q, key);
    fill(k_in, t, d.key, 0, d.key, k, key);
    fill_values(v_in, t, v);
    if (!a_in) return;
    if (d.decays == d.key) {
      fill(a_in, t, d.key, 0, d.key, e, key);
      for (Index i = 0; i < chunk * key; ++i) e[i] = fn::exp(e[i]);
    } else {
      for (Index r = 0; r < chunk; ++r) std::fill(e + r * key, e + (r + 1) * key, t + r < d.steps ? fn::exp(a_in[row(t + r)]) : T(1));
    }
  }
  /// And products of the decays. Left: q decayed from the chunk's start, right: k decayed to its end.
  void load(Index t, bool queries) {
    read(t, queries);
    if (!a_in) {
      left = q;
      right = k;
      return;
    }
    in_vectors<T>(key, [&](Index i, auto vectors) {
      Vector<T> product[vectors];
      for (int n = 0; n < vectors; ++n) product[n] = Vector<T>{} + T(1);
      for (Index r = 0; r < chunk; ++r)
        for (int n = 0; n < vectors; ++n) {
          const Index entry = r * key + i + n * lanes<T>;
          product[n] *= at(e + entry);
          at(prefix + entry) = product[n];
          at(left + entry) = product[n] * at(q + entry);
        }
      for (int n = 0; n < vectors; ++n) {
        at(whole + i + n * lanes<T>) = product[n];
        product[n] = Vector<T>{} + T(1);
      }
      for (Index r = chunk; r-- > 0;)
        for (int n = 0; n < vectors; ++n) {
          const Index entry = r * key + i + n * lanes<T>;
          at(suffix + entry) = product[n];
          at(right + entry) = product[n] * at(k + entry);
          product[n] *= at(e + entry);
        }
    });
  }
  const T* decays() const { return a_in ? e : nullptr; }
  /// What the chunk from step t on decays key i by, its logarithm.
  double log_whole(Index t, Index i) const {
    double sum = 0.0;
    for (Index r = t; r < std::min(t + chunk, d.steps); ++r) sum += log_decay(r, i);
    return sum;
  }
  double log_decay(Index t, Index i) const { return static_cast<double>(a_in[row(t) * d.decays + (d.decays == 1 ? 0 : i)]); }
};

void poll(const std::stop_token& stop) {
  if (stop.stop_requested()) throw Cancelled();
}

/// From [key, value] of the caller's to rows of whole vectors, or transposed.
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
  const T *decay, *x, *y, *z;
  T *memory, *out;
};
template <class T, Onto decays, bool reads, int height, int width>
void step_tile(const Steps<T>& p, Index i0, Index j0) {
  using V = Vector<T>;
  V m[height][width];
  T* memory = p.memory + i0 * p.columns + j0;
  each<height>([&](auto i) RECLAB_INLINE { each<width>([&](auto j) RECLAB_INLINE { m[i][j] = at(memory + i * p.columns + j * lanes<T>); }); });
  for (Index t = 0; t < chunk; ++t) {
    const T *x = p.x + t * p.rows + i0, *y = p.y + t * p.columns + j0, *decay = p.decay + t * (decays == Onto::rows ? p.rows : p.columns) + (decays == Onto::rows ? i0 : j0);
    V in[width], factor[width], out[width];
    each<width>([&](auto j) RECLAB_INLINE {
      in[j] = at(y + j * lanes<T>);
      if constexpr (decays == Onto::columns) factor[j] = at(decay + j * lanes<T>);
      if constexpr (reads) out[j] = i0 ? at(p.out + t * p.columns + j0 + j * lanes<T>) : V{};
    });
    each<height>([&](auto i) RECLAB_INLINE {
      const T written = x[i];
      each<width>([&](auto j) RECLAB_INLINE {
        if constexpr (decays == Onto::rows)
          m[i][j] = decay[i] * m[i][j] + written * in[j];
        else
          m[i][j] = factor[j] * m[i][j] + written * in[j];
        if constexpr (reads) out[j] += p.z[t * p.rows + i0 + i] * m[i][j];
      });
    });
    if constexpr (reads) each<width>([&](auto j) RECLAB_INLINE { at(p.out + t * p.columns + j0 + j * lanes<T>) = out[j]; });
  }
  each<height>([&](auto i) RECLAB_INLINE { each<width>([&](auto j) RECLAB_INLINE { at(memory + i * p.columns + j * lanes<T>) = m[i][j]; }); });
}
template <Onto decays, bool reads, class T>
void take_steps(const Steps<T>& p) {
  in_vectors<T>(p.columns, [&](Index j, auto width) {
    constexpr int height = width == 1 ? 8 : 4;
    for (Index i = 0; i < p.rows; i += height) step_tile<T, decays, reads, height, width>(p, i, j);
  });
}

template <class T>
void gated_steps(const GatedDims& d, const T* q, const T* k, const T* v, const T* log_decay, const T* initial, T* o, T* final_state, Index h, Index from, Index n, const std::stop_token& stop) {
  const Index key = padded<T>(d.key), value = padded<T>(n);
  Room<T> room(Rows<T>::size(key, value) + key * value + chunk * value);
  Rows<T> rows(d, q, k, v, log_decay, h, from, n, room);
  T *memory = room.take(key * value), *read = room.take(chunk * value);
  pad(initial ? initial + h * d.key * d.value + from : nullptr, d.key, n, d.value, memory, key, value);
  for (Index t = 0; t < d.steps; t += chunk) {
    poll(stop);
    rows.read(t, true);
    take_steps<Onto::rows, true>(Steps<T>{key, value, rows.e, rows.k, rows.v, rows.q, memory, read});
    for (Index r = 0; r < std::min(chunk, d.steps - t); ++r) std::copy_n(read + r * value, n, o + rows.row(t + r) * d.value + from);
  }
  for (Index i = 0; final_state && i < d.key; ++i) std::copy_n(memory + i * value, n, final_state + (h * d.key + i) * d.value + from);
}

}  // namespace

template <class T>
void gated(const GatedDims& d, const T* q, const T* k, const T* v, const T* log_decay, const T* initial, T* o, T* final_state, const std::stop_token& stop) {
  assert(d.pace == Pace::chunks || (d.pace == Pace::steps && log_decay));
  const Index slabs = std::max<Index>(1, d.value / value_slab);
  parallel(d.heads * slabs, [&](Index task) {
    const Index h = task / slabs, from = task % slabs * d.value / slabs, n = (task % slabs + 1) * d.value / slabs - from;
    if (d.pace == Pace::steps) return gated_steps(d, q, k, v, log_decay, initial, o, final_state, h, from, n, stop);
    const Index key = padded<T>(d.key), value = padded<T>(n);
    Room<T> room(Rows<T>::size(key, value) + (log_decay ? 1 : 3) * key * value + chunk * value + chunk * chunk);
    Rows<T> rows(d, q, k, v, log_decay, h, from, n, room);
    T *memory = room.take(key * value), *low = room.take(log_decay ? 0 : key * value), *written = room.take(log_decay ? 0 : key * value), *read = room.take(chunk * value), *scores = room.take(chunk * chunk);
    pad(initial ? initial + h * d.key * d.value + from : nullptr, d.key, n, d.value, memory, key, value);
    if (!log_decay) std::fill(low, low + key * value, T(0));
    for (Index t = 0; t < d.steps; t += chunk) {
      poll(stop);
      rows.load(t, true);
      scores_of(rows.q, rows.k, rows.decays(), key, scores);
      multiply<Onto::zero, Half::both, T>(chunk, value, {key, rows.left, key, 1, memory, value, read, value});
      multiply<Onto::c, Half::lower, T>(chunk, value, {chunk, scores, chunk, 1, rows.v, value, read, value});
      const Product<T> more{chunk, rows.right, 1, key, rows.v, value, memory, value, rows.whole};
      if (log_decay)
        multiply<Onto::rows>(key, value, more);
      else
        add_exactly(key, value, more, low, written);
      for (Index r = 0; r < std::min(chunk, d.steps - t); ++r) std::copy_n(read + r * value, n, o + rows.row(t + r) * d.value + from);
    }
    for (Index i = 0; final_state && i < d.key; ++i) std::copy_n(memory + i * value, n, final_state + (h * d.key + i) * d.value + from);
  });
}

namespace {

/// The keys whose row of an adjoint [value, key], in units of 2^powers, would not stand in plain units by a wide margin once it is decayed
/// by `whole`; with `empty` rows of zeros too, for what comes in on the way.
template <class T>
std::vector<Index> far_keys(const T* columns, Index keys, Index key, Index value, const T* whole, const std::vector<int>& powers, bool empty) {
  std::vector<Index> far;
  for (Index i = 0; i < key; i += lanes<T>) {
    Vector<T> most{};
    for (Index j = 0; j < value; ++j) {
      const Vector<T> entry = at(columns + j * key + i), size = entry < T(0) ? -entry : entry;
      most = size > most ? size : most;
    }
    for (Index l = i; l < std::min(i + lanes<T>, keys); ++l) {
      const T size = most[l - i];
      const bool fades = !(whole[l] > T(1e-9));
      if (powers[static_cast<std::size_t>(l)] != 0 || (size == T(0) ? empty && fades : fades || !(size > T(0x1p-64)))) far.push_back(l);
    }
  }
  return far;
}
/// fresh = fresh + e^log old 2^power, in units of its largest entry, which are returned as the new power.
template <class T>
int add_decayed(Index value, const T* old, double log, int power, T* fresh) {
  const int own = exponent_of(value, old), more = exponent_of(value, fresh);
  const double none = -std::numeric_limits<double>::infinity(), standing = own == no_exponent ? none : own + power + log * 1.4426950408889634;
  const double largest = std::max(standing, more == no_exponent ? none : more);
  // Near 1, of zeros and of what is not finite the unit is 1.
  const int unit = std::abs(largest) > 32.0 && std::abs(largest) < 1e8 ? static_cast<int>(std::ceil(largest)) : 0;
  const double change = log + (power - unit) * 0.6931471805599453;
  const double factor = std::exp(change);
  for (Index j = 0; j < value; ++j) {
    const auto before = static_cast<double>(old[j]);
    const double size = std::abs(change) < 600.0 ? factor * before : before == 0.0 ? 0.0 : std::copysign(std::exp(change + std::log(std::abs(before))), before);
    fresh[j] = static_cast<T>(size) + std::ldexp(fresh[j], -unit);
  }
  return unit;
}
bool are_plain(const std::vector<int>& powers) {
  return std::all_of(powers.begin(), powers.end(), [](int power) { return power == 0; });
}

/// The adjoint of a head's memory, as [key, value] and as [value, key], row i of it in units of 2^powers[i].
template <class T>
struct MemoryAdjoint {
  Index key, value;
  T *rows, *columns, *saved, *low_rows, *low_columns;
  std::vector<int> powers;
  bool plain;

  MemoryAdjoint(Index keys, Index values, int power, Room<T>& room)
      : key(keys), value(values), rows(room.take(keys * values)), columns(room.take(keys * values)), saved(room.take((keys + 1) * values)),
        low_rows(room.take(keys * values)), low_columns(room.take(keys * values)), powers(static_cast<std::size_t>(keys), power), plain(power == 0) {
    std::fill(low_rows, low_rows + keys * values, T(0));
    std::fill(low_columns, low_columns + keys * values, T(0));
  }

  /// = the decays of the chunk from step t on times itself, and left^T go in plain units. A row that would not stand in plain units by a
  /// wide margin is decayed in logarithms, and its unit becomes that of its largest entry.
  void pass(const Rows<T>& of, Index t, const T* go) {
    const Product<T> to_rows{chunk, of.left, 1, key, go, value, rows, value, of.whole}, to_columns{chunk, go, 1, value, of.left, key, columns, key, of.whole};
    if (!of.a_in) {
      add_exactly(key, value, to_rows, low_rows, saved);
      add_exactly(value, key, to_columns, low_columns, saved);
      return;
    }
    const std::vector<Index> far = far_keys(columns, of.d.key, key, value, of.whole, powers, false);
    for (std::size_t f = 0; f < far.size(); ++f) std::copy_n(rows + far[f] * value, value, saved + static_cast<Index>(f) * value);
    multiply<Onto::rows>(key, value, to_rows);
    multiply<Onto::columns>(value, key, to_columns);
    T* fresh = saved + key * value;
    for (std::size_t f = 0; f < far.size(); ++f) {
      const Index i = far[f];
      std::fill(fresh, fresh + value, T(0));
      for (Index r = 0; r < chunk; ++r)
        for (Index j = 0; j < value; ++j) fresh[j] += of.left[r * key + i] * go[r * value + j];
      int& power = powers[static_cast<std::size_t>(i)];
      power = add_decayed(value, saved + static_cast<Index>(f) * value, of.log_whole(t, i), power, fresh);
      for (Index j = 0; j < value; ++j) rows[i * value + j] = columns[j * key + i] = fresh[j];
    }
    plain = are_plain(powers);
  }
  /// Both in plain units.
  void unscale(T* to_rows, T* to_columns) const {
    for (Index i = 0; i < key; ++i)
      for (Index j = 0; j < value; ++j) to_rows[i * value + j] = to_columns[j * key + i] = std::ldexp(rows[i * value + j], powers[static_cast<std::size_t>(i)]);
  }
};

/// A chunk of steps of some rows and vectors of columns of the memory [value, key], there and back.
template <class T>
struct StepsAdjoint {
  const Rows<T>& of;
  const T *go, *memory;  // before the chunk
  T *lambda;             // the adjoint of the memory: after the chunk, and once it is done of that before it
  T *gq, *gk, *through;  // [chunk, key]; through: the adjoint of the logarithms of the decays
  T *gv;                 // of the rows, their sum still to be taken over the entries of a vector: [chunk, height] vectors
  T* decayed;            // room for as many pieces of the memory
};
template <class T, int height, int width>
void adjoint_tile(const StepsAdjoint<T>& p, Index j0, Index i0) {
  using V = Vector<T>;
  const Rows<T>& of = p.of;
  const Index key = of.key, value = of.value;
  V m[height][width];
  const auto all = [](const auto& f) RECLAB_INLINE { each<height>([&](auto j) RECLAB_INLINE { each<width>([&](auto i) RECLAB_INLINE { f(j, i); }); }); };
  all([&](auto j, auto i) RECLAB_INLINE { m[j][i] = at(p.memory + (j0 + j) * key + i0 + i * lanes<T>); });
  for (Index t = 0; t < chunk; ++t) {
    const Index row = t * key + i0;
    T* decayed = p.decayed + t * height * width * lanes<T>;
    V read[width], factor[width], k[width];
    each<width>([&](auto i) RECLAB_INLINE {
      read[i] = j0 ? at(p.gq + row + i * lanes<T>) : V{};
      factor[i] = at(of.e + row + i * lanes<T>);
      k[i] = at(of.k + row + i * lanes<T>);
    });
    all([&](auto j, auto i) RECLAB_INLINE {
      const V kept = factor[i] * m[j][i];
      at(decayed + (j * width + i) * lanes<T>) = kept;
      m[j][i] = kept + of.v[t * value + j0 + j] * k[i];
      read[i] += p.go[t * value + j0 + j] * m[j][i];
    });
    each<width>([&](auto i) RECLAB_INLINE { at(p.gq + row + i * lanes<T>) = read[i]; });
  }
  all([&](auto j, auto i) RECLAB_INLINE { m[j][i] = at(p.lambda + (j0 + j) * key + i0 + i * lanes<T>); });
  for (Index t = chunk; t-- > 0;) {
    const Index row = t * key + i0;
    const T* decayed = p.decayed + t * height * width * lanes<T>;
    T* gv = p.gv + t * height * lanes<T>;
    V gk[width], through[width];
    each<width>([&](auto i) RECLAB_INLINE {
      gk[i] = j0 ? at(p.gk + row + i * lanes<T>) : V{};
      through[i] = j0 ? at(p.through + row + i * lanes<T>) : V{};
    });
    each<height>([&](auto j) RECLAB_INLINE {
      V sum = i0 ? at(gv + j * lanes<T>) : V{};
      each<width>([&](auto i) RECLAB_INLINE {
        const Index entry = row + i * lanes<T>;
        m[j][i] += p.go[t * value + j0 + j] * at(of.q + entry);
        gk[i] += of.v[t * value + j0 + j] * m[j][i];
        sum += at(of.k + entry) * m[j][i];
        through[i] += at(decayed + (j * width + i) * lanes<T>) * m[j][i];
        m[j][i] *= at(of.e + entry);
      });
      at(gv + j * lanes<T>) = sum;
    });
    each<width>([&](auto i) RECLAB_INLINE {
      at(p.gk + row + i * lanes<T>) = gk[i];
      at(p.through + row + i * lanes<T>) = through[i];
    });
  }
  all([&](auto j, auto i) RECLAB_INLINE { at(p.lambda + (j0 + j) * key + i0 + i * lanes<T>) = m[j][i]; });
}

/// Adds rows [chunk, width] of a head's chunk from step t on to those of all heads, of `size` entries each.
template <class T>
void add_rows(const Rows<T>& of, Index t, const T* rows, Index width, Index size, T* to) {
  for (Index r = 0; to && r < std::min(chunk, of.d.steps - t); ++r)
    for (Index i = 0; i < size; ++i) to[of.row(t + r) * size + i] += rows[r * width + i];
}
/// The same for the decays' logarithms, where each key dimension has its own or all have one.
template <class T>
void add_decays(const Rows<T>& of, Index t, const T* rows, T* to) {
  if (of.d.decays == of.d.key) return add_rows(of, t, rows, of.key, of.d.key, to);
  for (Index r = 0; to && r < std::min(chunk, of.d.steps - t); ++r) {
    double sum = 0.0;
    for (Index i = 0; i < of.d.key; ++i) sum += static_cast<double>(rows[r * of.key + i]);
    to[of.row(t + r)] += static_cast<T>(sum);
  }
}

/// Of head h; gfinal comes in units of 2^power. end(i, row, power) gets the rows of the initial memory's adjoint.
template <class T, class End>
void gated_steps_adjoint(const GatedDims& d, const T* q, const T* k, const T* v, const T* log_decay, const T* initial, const T* go, const T* gfinal, int power, T* gq, T* gk, T* gv,
                         T* glog_decay, Index h, const End& end, const std::stop_token& stop) {
  constexpr int height = most_vectors == 4 ? 8 : 4;
  const Index key = padded<T>(d.key), value = padded<T>(d.value), size = key * value, chunks = (d.steps + chunk - 1) / chunk, all = d.key * d.value;
  const Index segments = std::max<Index>(1, (chunks + kept_every - 1) / kept_every);
  Room<T> room(Rows<T>::size(key, value) + (segments + kept_every + 2) * size + value + chunk * (3 * key + 2 * value + 3 * height * lanes<T>));
  Rows<T> rows(d, q, k, v, log_decay, h, 0, d.value, room);
  // Memories before chunks, [value, key]: each segment's first, then all of one segment.
  T *kept = room.take(segments * size), *memories = room.take(kept_every * size);
  const auto write = [&](Index c, const T* from, T* to) {
    rows.read(c * chunk, false);
    if (from != to) std::copy_n(from, size, to);
    take_steps<Onto::columns, false>(Steps<T>{value, key, rows.e, rows.v, rows.k, nullptr, to, nullptr});
  };
  pad_transposed(initial ? initial + h * all : nullptr, d.key, d.value, kept, value, key);
  for (Index s = 1; s < segments; ++s)
    for (Index c = (s - 1) * kept_every; c < s * kept_every; ++c) {
      poll(stop);
      write(c, kept + (c % kept_every ? s : s - 1) * size, kept + s * size);
    }

  std::vector<int> powers(static_cast<std::size_t>(key), power);
  T *lambda = room.take(size), *saved = room.take(size), *fresh = room.take(value), *g = room.take(chunk * value), *own_gq = room.take(chunk * key), *own_gk = room.take(chunk * key),
    *through = room.take(chunk * key), *own_gv = room.take(chunk * value), *partial = room.take(chunk * height * lanes<T>), *decayed = room.take(2 * chunk * height * lanes<T>);
  pad_transposed(gfinal ? gfinal + h * all : nullptr, d.key, d.value, lambda, value, key);
  for (Index s = segments - 1; s >= 0; --s) {
    const Index first = s * kept_every, last = std::min(chunks, first + kept_every) - 1;
    std::copy_n(kept + s * size, size, memories);
    for (Index c = first; c < last; ++c) write(c, memories + (c - first) * size, memories + (c - first + 1) * size);
    for (Index c = last; c >= first; --c) {
      poll(stop);
      const Index t = c * chunk;
      rows.read(t, true);
      rows.fill_values(go, t, g);
      for (Index i = 0; i < key; i += lanes<T>) {
        Vector<T> product = at(rows.e + i);
        for (Index r = 1; r < chunk; ++r) product *= at(rows.e + r * key + i);
        at(rows.whole + i) = product;
      }
      // What would not stand in plain units after the chunk goes there in its own, and through the chunk's steps in plain ones.
      const std::vector<Index> far = far_keys(lambda, d.key, key, value, rows.whole, powers, true);
      for (std::size_t f = 0; f < far.size(); ++f)
        for (Index j = 0; j < value; ++j) {
          T& entry = lambda[j * key + far[f]];
          saved[static_cast<Index>(f) * value + j] = entry;
          entry = std::ldexp(entry, powers[static_cast<std::size_t>(far[f])]);
        }
      const StepsAdjoint<T> steps{rows, g, memories + (c - first) * size, lambda, own_gq, own_gk, through, partial, decayed};
      std::fill(own_gv, own_gv + chunk * value, T(0));
      for (Index j = 0; j < value; j += height) {
        Index i = 0;
        if constexpr (most_vectors == 4)
          for (; key - i >= 2 * lanes<T>; i += 2 * lanes<T>) adjoint_tile<T, height, 2>(steps, j, i);
        for (; i < key; i += lanes<T>) adjoint_tile<T, height, 1>(steps, j, i);
        for (Index r = 0; r < chunk; ++r)
          for (Index b = 0; b < height; b += 4) {
            Vector<T> four[4];
            each<4>([&](auto n) RECLAB_INLINE { four[n] = at(partial + (r * height + b + n) * lanes<T>); });
            add_four_sums<T>(four, own_gv + r * value + j + b);
          }
      }
      for (std::size_t f = 0; f < far.size(); ++f) {
        const Index i = far[f];
        T* standing = saved + static_cast<Index>(f) * value;
        int& own = powers[static_cast<std::size_t>(i)];
        double log = 0.0;  // what `standing` has still to be decayed by
        std::fill(fresh, fresh + value, T(0));
        const auto join = [&] {
          own = add_decayed(value, standing, log, own, fresh);
          log = 0.0;
        };
        for (Index r = std::min(chunk, d.steps - t); r-- > 0;) {
          for (Index j = 0; j < value; ++j) fresh[j] += rows.q[r * key + i] * g[r * value + j];
          const double more = rows.log_decay(t + r, i);
          // Before what came in since is decayed out of sight.
          if (log + more < -16.0) {
            join();
            std::copy_n(fresh, value, standing);
            std::fill(fresh, fresh + value, T(0));
          }
          log += more;
          for (Index j = 0; j < value; ++j) fresh[j] *= rows.e[r * key + i];
        }
        join();
        for (Index j = 0; j < value; ++j) lambda[j * key + i] = fresh[j];
      }
      add_rows(rows, t, own_gq, key, d.key, gq);
      add_rows(rows, t, own_gk, key, d.key, gk);
      add_rows(rows, t, own_gv, value, d.value, gv);
      add_decays(rows, t, through, glog_decay);
    }
  }
  for (Index i = 0; i < d.key; ++i) {
    for (Index j = 0; j < value; ++j) fresh[j] = lambda[j * key + i];
    end(i, fresh, powers[static_cast<std::size_t>(i)]);
  }
}

}  // namespace

template <class T>
void gated_adjoint(const GatedDims& d, const T* q, const T* k, const T* v, const T* log_decay, const T* initial, const T* go, const T* gfinal, T* gq, T* gk, T* gv,
                   T* glog_decay, T* ginitial, int* exponent, const std::stop_token& stop) {
  const Index key = padded<T>(d.key), value = padded<T>(d.value), size = key * value, chunks = (d.steps + chunk - 1) / chunk, all = d.key * d.value;
  std::vector<int> powers(static_cast<std::size_t>(d.heads * d.key), no_exponent);  // of each row of the initial memory's adjoint
  std::vector<T> ends(ginitial ? static_cast<std::size_t>(d.heads * all) : 0);
  const int unit = gfinal && exponent ? *exponent : 0;
  assert(d.pace == Pace::chunks || (d.pace == Pace::steps && log_decay));
  parallel(d.heads, [&](Index h) {
    const auto end = [&](Index i, const T* row, int power) {
      if (!ginitial) return;
      std::copy_n(row, d.value, ends.data() + h * all + i * d.value);
      if (exponent_of(d.value, row) != no_exponent) powers[static_cast<std::size_t>(h * d.key + i)] = power;
    };
    if (d.pace == Pace::steps) return gated_steps_adjoint(d, q, k, v, log_decay, initial, go, gfinal, unit, gq, gk, gv, glog_decay, h, end, stop);
    const Index segments = std::max<Index>(1, (chunks + kept_every - 1) / kept_every);
    Room<T> room(Rows<T>::size(key, value) + (segments + kept_every + 9) * size + value + chunk * (5 * key + 2 * value + 2 * chunk + 16 * lanes<T>));
    Rows<T> rows(d, q, k, v, log_decay, h, 0, d.value, room);
    // Memories before chunks, [value, key]: each segment's first, then all of one segment.
    T *kept = room.take(segments * size), *memories = room.take(kept_every * size);
    T *low = room.take(size), *written = room.take(size);
    std::fill(low, low + size, T(0));
    const auto write = [&](Index c, const T* from, T* to) {
      rows.load(c * chunk, false);
      if (from != to) std::copy_n(from, size, to);
      const Product<T> more{chunk, rows.v, 1, value, rows.right, key, to, key, rows.whole};
      if (log_decay)
        multiply<Onto::columns>(value, key, more);
      else
        add_exactly(value, key, more, low, written);
    };
    pad_transposed(initial ? initial + h * all : nullptr, d.key, d.value, kept, value, key);
    for (Index s = 1; s < segments; ++s)
      for (Index c = (s - 1) * kept_every; c < s * kept_every; ++c) {
        poll(stop);
        write(c, kept + (c % kept_every ? s : s - 1) * size, kept + s * size);
      }

    // Without decays the adjoint only grows, and is in plain units.
    MemoryAdjoint<T> adjoint(key, value, log_decay ? unit : 0, room);
    pad(gfinal ? gfinal + h * all : nullptr, d.key, d.value, d.value, adjoint.rows, key, value);
    pad_transposed(gfinal ? gfinal + h * all : nullptr, d.key, d.value, adjoint.columns, value, key);
    for (Index i = 0; !log_decay && unit && i < size; ++i) {
      adjoint.rows[i] = std::ldexp(adjoint.rows[i], unit);
      adjoint.columns[i] = std::ldexp(adjoint.columns[i], unit);
    }
    T *plain_rows = room.take(size), *plain_columns = room.take(size), *g = room.take(chunk * value), *scores = room.take(chunk * chunk), *gscores = room.take(chunk * chunk), *own_gq = room.take(chunk * key), *own_gk = room.take(chunk * key),
      *own_gv = room.take(chunk * value), *through = room.take(chunk * key), *gleft = room.take(chunk * key), *gright = room.take(chunk * key), *pairs = room.take(16 * chunk * lanes<T>);
    for (Index s = segments - 1; s >= 0; --s) {
      const Index first = s * kept_every, last = std::min(chunks, first + kept_every) - 1;
      std::copy_n(kept + s * size, size, memories);
      std::fill(low, low + size, T(0));
      for (Index c = first; c < last; ++c) write(c, memories + (c - first) * size, memories + (c - first + 1) * size);
      for (Index c = last; c >= first; --c) {
        poll(stop);
        const Index t = c * chunk;
        const T* memory = memories + (c - first) * size;
        rows.load(t, true);
        rows.fill_values(go, t, g);
        const T *lambda = adjoint.rows, *turned = adjoint.columns;
        if (!adjoint.plain) {
          adjoint.unscale(plain_rows, plain_columns);
          lambda = plain_rows;
          turned = plain_columns;
        }
        scores_of(rows.q, rows.k, rows.decays(), key, scores);
        scores_of<T>(g, rows.v, nullptr, value, gscores);
        multiply<Onto::zero, Half::both, T>(chunk, value, {key, rows.right, key, 1, lambda, value, own_gv, value});
        multiply<Onto::c, Half::upper, T>(chunk, value, {chunk, scores, 1, chunk, g, value, own_gv, value});
        multiply<Onto::zero, Half::both, T>(chunk, key, {value, g, value, 1, memory, key, gleft, key});
        multiply<Onto::zero, Half::both, T>(chunk, key, {value, rows.v, value, 1, turned, key, gright, key});
        if (log_decay) {
          // What decays from the chunk's start, to its end, and all the way.
          for (Index i = 0; i < key; i += lanes<T>) {
            Vector<T> across{};
            for (Index j = 0; j < value; ++j) across += at(memory + j * key + i) * at(turned + j * key + i);
            Vector<T> sum = across * at(rows.whole + i);
            for (Index r = 0; r < chunk; ++r) {
              at(through + r * key + i) = sum;
              sum += at(rows.right + r * key + i) * at(gright + r * key + i);
            }
            sum = Vector<T>{};
            for (Index r = chunk; r-- > 0;) {
              sum += at(rows.left + r * key + i) * at(gleft + r * key + i);
              at(through + r * key + i) += sum;
            }
          }
          for (Index i = 0; i < chunk * key; i += lanes<T>) {
            at(own_gq + i) = at(rows.prefix + i) * at(gleft + i);
            at(own_gk + i) = at(rows.suffix + i) * at(gright + i);
          }
        } else {
          std::copy_n(gleft, chunk * key, own_gq);
          std::copy_n(gright, chunk * key, own_gk);
        }
        in_vectors<T>(key, [&](Index i, auto vectors) {
          if (log_decay)
            add_scores_adjoint<T, vectors, true>(rows.q + i, rows.k + i, rows.e + i, key, gscores, own_gq + i, own_gk + i, through + i, pairs);
          else
            add_scores_adjoint<T, vectors, false>(rows.q + i, rows.k + i, nullptr, key, gscores, own_gq + i, own_gk + i, nullptr, nullptr);
        });
        add_rows(rows, t, own_gq, key, d.key, gq);
        add_rows(rows, t, own_gk, key, d.key, gk);
        add_rows(rows, t, own_gv, value, d.value, gv);
        if (log_decay) add_decays(rows, t, through, glog_decay);
        adjoint.pass(rows, t, g);
      }
    }
    for (Index i = 0; i < d.key; ++i) end(i, adjoint.rows + i * value, adjoint.powers[static_cast<std::size_t>(i)]);
  });
  int power = powers.empty() ? no_exponent : *std::max_element(powers.begin(), powers.end());
  if (power == no_exponent || !exponent) power = 0;
  for (std::size_t i = 0; i < ends.size(); ++i)
    if (const int own = powers[i / static_cast<std::size_t>(d.value)]; own != no_exponent) ginitial[i] += std::ldexp(ends[i], own - power);
  if (exponent) *exponent = power;
}

template void gated<float>(const GatedDims&, const float*, const float*, const float*, const float*, const float*, float*, float*, const std::stop_token&);
template void gated<double>(const GatedDims&, const double*, const double*, const double*, const double*, const double*, double*, double*, const std::stop_token&);
template void gated_adjoint<float>(const GatedDims&, const float*, const float*, const float*, const float*, const float*, const float*, const float*, float*, float*, float*, float*,
                                   float*, int*, const std::stop_token&);
template void gated_adjoint<double>(const GatedDims&, const double*, const double*, const double*, const double*, const double*, const double*, const double*, double*, double*, double*,
                                    double*, double*, int*, const std::stop_token&);

}  // namespace reclab::cpu
