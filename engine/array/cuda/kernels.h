// SPDX-License-Identifier: GPL-3.0-or-later
// The kernels of a device that runs many threads, as types without a CUDA word in them. Most are called once for every index, in any
// order: `operator()(index)`. The rest work in blocks of threads that share memory: `operator()(block, index, shared)` is a row of
// phases, and every thread has finished a phase before one begins the next. So a plain loop can run them too, which is how they are
// tested on a machine without a device. No sum depends on how many threads there are or on who comes first: same input, same bits.
#pragma once

#include <cmath>
#include <cstdint>
#include <type_traits>

#include "array/backend.h"
#include "array/functions.h"

namespace reclab::kernel {

using Index = std::int64_t;

/// A complex number that device code can calculate with; laid out like std::complex.
template <class T>
struct Complex {
  T re, im;
  Complex() = default;
  RECLAB_HD Complex(T real, T imag = T(0)) : re(real), im(imag) {}
  RECLAB_HD friend Complex operator+(Complex x, Complex y) { return {x.re + y.re, x.im + y.im}; }
  RECLAB_HD friend Complex operator-(Complex x, Complex y) { return {x.re - y.re, x.im - y.im}; }
  RECLAB_HD friend Complex operator-(Complex x) { return {-x.re, -x.im}; }
  RECLAB_HD friend Complex operator*(Complex x, Complex y) { return {x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re}; }
  RECLAB_HD friend Complex operator*(T x, Complex y) { return {x * y.re, x * y.im}; }
  RECLAB_HD friend Complex operator/(Complex x, Complex y) {
    const T norm = y.re * y.re + y.im * y.im;
    return {(x.re * y.re + x.im * y.im) / norm, (x.im * y.re - x.re * y.im) / norm};
  }
  RECLAB_HD Complex& operator+=(Complex x) { return *this = *this + x; }
};

}  // namespace reclab::kernel

template <class T>
struct reclab::fn::RealOf<reclab::kernel::Complex<T>> {
  using type = T;
};

namespace reclab::kernel {

template <class T>
using real_t = typename fn::RealOf<T>::type;
template <class T>
constexpr bool complex_v = !std::is_same_v<T, real_t<T>>;

/// What long sums are kept in: double, or complex of it.
template <class T>
using wide_t = std::conditional_t<complex_v<T>, Complex<double>, double>;
template <class To, class From>
RECLAB_HD inline To convert(From x) {
  if constexpr (complex_v<To>)
    return {static_cast<real_t<To>>(x.re), static_cast<real_t<To>>(x.im)};
  else
    return static_cast<To>(x);
}

RECLAB_HD inline Index least(Index x, Index y) { return x < y ? x : y; }
template <class T>
RECLAB_HD inline T conjugate(T x) {
  if constexpr (complex_v<T>)
    return {x.re, -x.im};
  else
    return x;
}
template <class T>
RECLAB_HD inline T scaled(T x, int exponent) {
  if constexpr (complex_v<T>)
    return {scaled(x.re, exponent), scaled(x.im, exponent)};
  else
    return std::ldexp(x, exponent);
}

/// The power of two just above |x| (of the larger part); no_exponent for zero, infinite_exponent for what is not finite.
template <class T>
RECLAB_HD inline int exponent_of(T x) {
  real_t<T> magnitude;
  if constexpr (complex_v<T>) {
    const auto re = std::abs(x.re), im = std::abs(x.im);
    magnitude = re != re || im <= re ? re : im;  // a NaN, where one is
  } else {
    magnitude = std::abs(x);
  }
  if (magnitude == real_t<T>(0)) return no_exponent;
  return magnitude <= std::numeric_limits<real_t<T>>::max() ? std::ilogb(magnitude) + 1 : infinite_exponent;
}
template <class T>
RECLAB_HD inline bool is_zero(T x) {
  if constexpr (complex_v<T>)
    return x.re == real_t<T>(0) && x.im == real_t<T>(0);
  else
    return x == T(0);
}

// ---- Elementwise -------------------------------------------------------------------------------------------------------------------

template <class T, class F>
RECLAB_HD inline T with_unary(Unary op, F f) {
  if constexpr (complex_v<T>) {
    switch (op) {
      case Unary::exp: return f(fn::Exp{});
      case Unary::square: return f(fn::Square{});
      case Unary::reciprocal: return f(fn::Reciprocal{});
      case Unary::mean_exp: return f(fn::MeanExp{});
      default: return f(fn::Affine{});
    }
  } else {
    switch (op) {
      case Unary::affine: return f(fn::Affine{});
      case Unary::exp: return f(fn::Exp{});
      case Unary::log: return f(fn::Log{});
      case Unary::sqrt: return f(fn::Sqrt{});
      case Unary::square: return f(fn::Square{});
      case Unary::reciprocal: return f(fn::Reciprocal{});
      case Unary::sigmoid: return f(fn::Sigmoid{});
      case Unary::tanh: return f(fn::Tanh{});
      case Unary::relu: return f(fn::Relu{});
      case Unary::softplus: return f(fn::Softplus{});
      case Unary::silu: return f(fn::Silu{});
      case Unary::gelu: return f(fn::Gelu{});
      case Unary::gelu_tanh: return f(fn::GeluTanh{});
      case Unary::elu: return f(fn::Elu{});
      case Unary::abs: return f(fn::Abs{});
      case Unary::sign: return f(fn::Sign{});
      case Unary::sin: return f(fn::Sin{});
      case Unary::cos: return f(fn::Cos{});
      case Unary::log_sigmoid: return f(fn::LogSigmoid{});
      case Unary::floor: return f(fn::Floor{});
      case Unary::mean_exp: return f(fn::MeanExp{});
    }
    return T{};
  }
}
template <class T, class F>
RECLAB_HD inline T with_binary(Binary op, F f) {
  switch (op) {
    case Binary::add: return f(fn::Add{});
    case Binary::subtract: return f(fn::Subtract{});
    case Binary::multiply: return f(fn::Multiply{});
    case Binary::divide: return f(fn::Divide{});
    case Binary::maximum: return f(fn::Maximum{});
  }
  return T{};
}

template <class R>
struct AddScaled {
  const R* x;
  R* y;
  R factor;
  int power;
  bool by_factor, accumulate;
  RECLAB_HD void operator()(Index i) const {
    const R value = by_factor ? factor * x[i] : scaled(x[i], power);
    y[i] = accumulate ? y[i] + value : value;
  }
};

template <class T>
struct UnaryValue {
  Unary op;
  const T* x;
  T* y;
  double p, q;
  RECLAB_HD void operator()(Index i) const {
    const T at = x[i];
    if constexpr (complex_v<T>) {
      if (op == Unary::exp) {
        const real_t<T> magnitude = fn::exp(at.re);
        y[i] = {magnitude * std::cos(at.im), magnitude * std::sin(at.im)};
        return;
      }
      y[i] = op == Unary::square ? at * at : op == Unary::reciprocal ? fn::quotient(T(1), at) : op == Unary::mean_exp ? fn::MeanExp::value(at, p, q) : fn::Affine::value(at, p, q);
    } else {
      y[i] = with_unary<T>(op, [=, this](auto f) { return decltype(f)::value(at, p, q); });
    }
  }
};
template <class T>
struct UnaryAdjoint {
  Unary op;
  const T *x, *y, *gy;
  T* gx;
  double p, q;
  RECLAB_HD void operator()(Index i) const {
    const T from = x[i], to = y[i];
    gx[i] += gy[i] * conjugate(with_unary<T>(op, [=, this](auto f) { return decltype(f)::slope(from, to, p, q); }));
  }
};

template <class T>
struct BinaryValue {
  Binary op;
  Broadcast shape;
  const T *x, *y;
  T* z;
  RECLAB_HD void operator()(Index i) const {
    Index rest = i, at_x = 0, at_y = 0;
    for (int d = shape.rank - 1; d >= 0; --d) {
      const Index digit = d ? rest % shape.size[d] : rest;
      if (d) rest /= shape.size[d];
      at_x += digit * shape.stride_x[d];
      at_y += digit * shape.stride_y[d];
    }
    const T u = x[at_x], v = y[at_y];
    z[i] = with_binary<T>(op, [=](auto f) { return decltype(f)::value(u, v); });
  }
};

/// Element i of the dense array and where it lies in the strided one.
RECLAB_HD inline Index offset_of(const Strided& shape, Index i) {
  Index at = shape.offset;
  for (int d = shape.rank - 1; d >= 0; --d) {
    at += (d ? i % shape.size[d] : i) * shape.stride[d];
    if (d) i /= shape.size[d];
  }
  return at;
}
template <class T>
struct Gather {
  Strided shape;
  const T* strided;
  T* dense;
  bool accumulate;
  RECLAB_HD void operator()(Index i) const {
    const T value = strided[offset_of(shape, i)];
    dense[i] = accumulate ? dense[i] + value : value;
  }
};
template <class T>
struct Scatter {
  Strided shape;
  const T* dense;
  T* strided;
  bool accumulate;
  RECLAB_HD void operator()(Index i) const {
    const Index at = offset_of(shape, i);
    strided[at] = accumulate ? strided[at] + dense[i] : dense[i];
  }
};

template <class R>
struct Join {
  const R *real, *imag;
  Complex<R>* z;
  RECLAB_HD void operator()(Index i) const { z[i] = {real[i], imag[i]}; }
};
/// Every second number of an array of pairs, to or from a dense one.
template <class R>
struct TakePart {
  const R* pairs;
  R* dense;
  bool accumulate;
  RECLAB_HD void operator()(Index i) const { dense[i] = accumulate ? dense[i] + pairs[2 * i] : pairs[2 * i]; }
};
template <class R>
struct AddPart {
  const R* dense;
  R* pairs;
  RECLAB_HD void operator()(Index i) const { pairs[2 * i] += dense[i]; }
};

// ---- Sums --------------------------------------------------------------------------------------------------------------------------

/// out[o] = scale * sum_r term(o, r) over r = c, c + chunks, ...; index = c * outputs + o. With one chunk this is the whole sum; with more,
/// a second pass adds the chunks.
template <class Term, class Out>
struct Reduce {
  using Wide = wide_t<Out>;
  Term term;
  Index outputs, length, chunks;
  Out* out;
  double scale;
  bool accumulate;
  RECLAB_HD void operator()(Index index) const {
    const Index o = index % outputs;
    Wide sum(0.0);
    for (Index r = index / outputs; r < length; r += chunks) sum += convert<Wide>(term(o, r));
    const Out scaled_sum = convert<Out>(scale * sum);
    out[index] = accumulate ? out[index] + scaled_sum : scaled_sum;
  }
};
template <class T>
struct ChunkTerm {
  const T* partial;
  Index outputs;
  RECLAB_HD T operator()(Index o, Index r) const { return partial[r * outputs + o]; }
};
template <class T>
struct SumTerm {
  const T* x;
  Index n, inner;
  RECLAB_HD T operator()(Index o, Index r) const { return x[((o / inner) * n + r) * inner + o % inner]; }
};
template <class T>
struct SumAdjoint {
  const T* gy;
  T* gx;
  Index n, inner;
  real_t<T> scale;
  RECLAB_HD void operator()(Index i) const { gx[i] += scale * gy[i / (n * inner) * inner + i % inner]; }
};

/// One thread a sum: index = o * inner + i.
template <class T>
struct CumulativeSum {
  const T* x;
  T* y;
  Index n, inner;
  bool reverse, accumulate;
  RECLAB_HD void operator()(Index index) const {
    const Index start = index / inner * n * inner + index % inner;
    T sum(0);
    for (Index l = 0; l < n; ++l) {
      const Index at = start + (reverse ? n - 1 - l : l) * inner;
      sum += x[at];
      y[at] = accumulate ? y[at] + sum : sum;
    }
  }
};

/// One thread a column of one matrix: forward substitution.
template <class T>
struct InvertUnitLower {
  const T* a;
  T* x;
  Index n;
  RECLAB_HD void operator()(Index index) const {
    const Index m = index / n, j = index % n;
    const T* own = a + m * n * n;
    T* to = x + m * n * n;
    for (Index i = 0; i < n; ++i) {
      T sum = i == j ? T(1) : T(0);
      for (Index l = j; l < i; ++l) sum -= own[i * n + l] * to[l * n + j];
      to[i * n + j] = sum;
    }
  }
};

// ---- Attention scores --------------------------------------------------------------------------------------------------------------
// One thread a row of [batch, rows, columns], or an element where rows do not matter; row i stands at column first + i.

template <class T>
struct SoftmaxRow {
  const T* low;
  T* scores;
  Index rows, columns, first;
  RECLAB_HD void operator()(Index r) const {
    T* s = scores + r * columns;
    const Index i = r % rows, to = first + i + 1;
    Index from = low ? static_cast<Index>(low[i]) : 0;
    if (from < 0) from = 0;
    if (from > to) from = to;
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
};
template <class T>
struct SoftmaxRowAdjoint {
  const T* p;
  T* g;
  Index columns;
  RECLAB_HD void operator()(Index r) const {
    double mean = 0;
    for (Index j = r * columns; j < (r + 1) * columns; ++j) mean += static_cast<double>(p[j]) * static_cast<double>(g[j]);
    for (Index j = r * columns; j < (r + 1) * columns; ++j) g[j] = p[j] * (g[j] - static_cast<T>(mean));
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
/// Sums of a block [batch, rows, columns] by rows (into [batch, steps] from `first` on) or by columns.
template <class T>
struct BlockSum {
  const T* block;
  T* to;
  Index steps, rows, columns, first;
  bool by_columns;
  RECLAB_HD void operator()(Index index) const {
    const Index n = by_columns ? columns : rows, b = index / n, own = index % n;
    double sum = 0;
    for (Index l = 0; l < (by_columns ? rows : columns); ++l)
      sum += static_cast<double>(block[b * rows * columns + (by_columns ? l * columns + own : own * columns + l)]);
    to[b * steps + (by_columns ? own : first + own)] += static_cast<T>(sum);
  }
};

/// Some of a broadcast's dimensions, with the strides of both operands and of the result.
struct Axes {
  int rank = 0;
  Index size[6] = {}, stride_x[6] = {}, stride_y[6] = {}, stride_z[6] = {};
  Index elements = 1;
};
/// One operand's adjoint: o counts the operand's own elements, r those of the result that it was repeated to.
template <class T>
struct BinaryTerm {
  Binary op;
  bool of_y;
  Axes kept, repeated;
  const T *x, *y, *gz;
  RECLAB_HD T operator()(Index o, Index r) const {
    Index at_x = 0, at_y = 0, at_z = 0;
    for (int part = 0; part < 2; ++part) {
      const Axes& axes = part ? repeated : kept;
      Index rest = part ? r : o;
      for (int d = axes.rank - 1; d >= 0; --d) {
        const Index digit = d ? rest % axes.size[d] : rest;
        if (d) rest /= axes.size[d];
        at_x += digit * axes.stride_x[d];
        at_y += digit * axes.stride_y[d];
        at_z += digit * axes.stride_z[d];
      }
    }
    const T u = x[at_x], v = y[at_y];
    const bool second = of_y;
    const T slope = with_binary<T>(op, [=](auto f) { return second ? decltype(f)::slope_y(u, v) : decltype(f)::slope_x(u, v); });
    return gz[at_z] * conjugate(slope);
  }
};

/// Of one stretch of an array, the power of two just above its largest entry and the sum of squares in units of that power.
struct Magnitude {
  double squares;
  int exponent;
};
/// One block for every stretch of `span` entries. An entry i stands for x[i] 2^exponents[i] where there are exponents.
template <class T>
struct Magnitudes {
  const T* x;
  const int* exponents;
  Index n, span;
  Magnitude* out;
  struct Shared {
    double squares[256];
    int exponent[256];
  };
  RECLAB_HD int power(Index i) const { return exponents ? exponents[i] : 0; }
  template <class Block>
  RECLAB_HD void operator()(Block& block, Index index, Shared& shared) const {
    const Index first = index * span, last = least(n, first + span);
    block.phase([&](int thread) {
      int largest = no_exponent;
      for (Index i = first + thread; i < last; i += 256) {
        const int own = exponent_of(x[i]);
        const int full = own == no_exponent || own == infinite_exponent ? own : own + power(i);
        largest = full > largest ? full : largest;
      }
      shared.exponent[thread] = largest;
    });
    for (int half = 128; half; half /= 2)
      block.phase([&](int thread) {
        if (thread < half && shared.exponent[thread + half] > shared.exponent[thread]) shared.exponent[thread] = shared.exponent[thread + half];
      });
    const int common = shared.exponent[0], unit = common == no_exponent || common == infinite_exponent ? 0 : common;
    block.phase([&](int thread) {
      double sum = 0.0;
      for (Index i = first + thread; i < last; i += 256) {
        if constexpr (complex_v<T>) {
          const double re = scaled(static_cast<double>(x[i].re), power(i) - unit), im = scaled(static_cast<double>(x[i].im), power(i) - unit);
          sum += re * re + im * im;
        } else {
          const double value = scaled(static_cast<double>(x[i]), power(i) - unit);
          sum += value * value;
        }
      }
      shared.squares[thread] = sum;
    });
    for (int half = 128; half; half /= 2)
      block.phase([&](int thread) {
        if (thread < half) shared.squares[thread] += shared.squares[thread + half];
      });
    block.phase([&](int thread) {
      if (thread == 0) out[index] = {shared.squares[0], common};
    });
  }
};

// ---- Matrices ----------------------------------------------------------------------------------------------------------------------

/// One block for a tile of 64 x 64 of one of the results; a thread has 4 x 4 of it. `splits` shares out the sum: over the matrices where
/// all of them add up to one result (inner > 1), else over k. Every share has a result of its own, `stride_split` apart.
template <class T>
struct Gemm {
  static constexpr int tile = 64, depth = 16, each = 4;
  const T *a, *b;
  T* c;
  Index m, n, k, lda, ldb, ldc, stride_a, stride_b, stride_c, stride_split;
  Index batch, inner, splits;
  bool transpose_a, transpose_b, accumulate;
  struct Shared {
    T a[depth][tile + 1], b[depth][tile + 1];
  };
  struct Sums {
    T value[each][each];
  };
  RECLAB_HD Index tiles_m() const { return (m + tile - 1) / tile; }
  RECLAB_HD Index tiles_n() const { return (n + tile - 1) / tile; }
  template <class Block>
  RECLAB_HD void operator()(Block& block, Index index, Shared& shared) const {
    const Index column = index % tiles_n() * tile, row = index / tiles_n() % tiles_m() * tile;
    const Index matrix = index / (tiles_n() * tiles_m()) % batch, split = index / (tiles_n() * tiles_m() * batch);
    const Index share = ((inner > 1 ? inner : k) + splits - 1) / splits;
    const Index first = inner > 1 ? split * share : 0, last = inner > 1 ? least(inner, first + share) : 1;
    const Index from = inner > 1 ? 0 : split * share, to = inner > 1 ? k : least(k, from + share);
    typename Block::template Local<Sums> sums;
    block.phase([&](int thread) {
      for (auto& line : sums[thread].value)
        for (T& value : line) value = T(0);
    });
    for (Index i = first; i < last; ++i) {
      const T* left = a + (matrix * inner + i) * stride_a;
      const T* right = b + (matrix * inner + i) * stride_b;
      for (Index at = from; at < to; at += depth) {
        block.phase([&](int thread) {
          for (int e = thread; e < tile * depth; e += 256) {
            // Neighbouring threads read neighbouring numbers.
            const int ra = transpose_a ? e % tile : e / depth, da = transpose_a ? e / tile : e % depth;
            const int cb = transpose_b ? e / depth : e % tile, db = transpose_b ? e % depth : e / tile;
            const Index r = row + ra, ka = at + da, col = column + cb, kb = at + db;
            shared.a[da][ra] = r < m && ka < to ? left[transpose_a ? ka * lda + r : r * lda + ka] : T(0);
            shared.b[db][cb] = col < n && kb < to ? right[transpose_b ? col * ldb + kb : kb * ldb + col] : T(0);
          }
        });
        block.phase([&](int thread) {
          const int y = thread / 16, x = thread % 16;
          auto& own = sums[thread].value;
          for (int d = 0; d < depth; ++d) {
            T u[each], v[each];
            for (int i4 = 0; i4 < each; ++i4) {
              u[i4] = shared.a[d][y + 16 * i4];
              v[i4] = shared.b[d][x + 16 * i4];
            }
            for (int p = 0; p < each; ++p)
              for (int q = 0; q < each; ++q) own[p][q] += u[p] * v[q];
          }
        });
      }
    }
    block.phase([&](int thread) {
      T* result = c + split * stride_split + matrix * stride_c;
      for (int p = 0; p < each; ++p)
        for (int q = 0; q < each; ++q) {
          const Index r = row + thread / 16 + 16 * p, col = column + thread % 16 + 16 * q;
          if (r < m && col < n) {
            T& out = result[r * ldc + col];
            out = accumulate ? out + sums[thread].value[p][q] : sums[thread].value[p][q];
          }
        }
    });
  }
};
/// Adds the shares of a split product.
template <class T>
struct AddShares {
  const T* shares;
  T* c;
  Index count, m, n, ldc, stride_c, splits;
  bool accumulate;
  RECLAB_HD void operator()(Index i) const {
    double sum = 0.0;
    for (Index s = 0; s < splits; ++s) sum += static_cast<double>(shares[s * count + i]);
    T& out = c[i / (m * n) * stride_c + i / n % m * ldc + i % n];
    out = accumulate ? out + static_cast<T>(sum) : static_cast<T>(sum);
  }
};
/// Zeroes what lies above the diagonal of square attention: entry (row, u) of a matrix whose first row is step `first`.
template <class T>
struct Causal {
  T* x;
  Index rows, columns, first;
  RECLAB_HD void operator()(Index i) const {
    if (i % columns > first + i / columns % rows) x[i] = T(0);
  }
};
template <class From, class To>
struct Convert {
  const From* from;
  To* to;
  RECLAB_HD void operator()(Index i) const { to[i] = convert<To>(from[i]); }
};
template <class T>
struct Fill {
  T* x;
  T value;
  RECLAB_HD void operator()(Index i) const { x[i] = value; }
};
template <class T>
struct ScaleEach {
  T* x;
  int power;
  RECLAB_HD void operator()(Index i) const { x[i] = scaled(x[i], power); }
};
template <class T>
struct TransposeEach {
  const T* from;
  double* to;
  Index rows, columns;
  RECLAB_HD void operator()(Index i) const {
    const Index size = rows * columns, h = i / size, r = i % size / columns, c = i % columns;
    to[h * size + c * rows + r] = static_cast<double>(from[i]);
  }
};

// ---- Depth-wise convolution --------------------------------------------------------------------------------------------------------

template <class T>
struct Depthwise {
  DepthwiseDims d;
  const T *x, *w;
  T* y;
  RECLAB_HD void operator()(Index i) const {
    const Index c = i % d.channels;
    T sum(0);
    for (Index j = 0; j < d.taps; ++j) sum += w[c * d.taps + j] * x[i + j * d.batch * d.channels];
    y[i] = sum;
  }
};
template <class T>
struct DepthwiseInputAdjoint {
  DepthwiseDims d;
  const T *w, *gy;
  T* gx;
  RECLAB_HD void operator()(Index i) const {
    const Index c = i % d.channels, row = d.batch * d.channels, t = i / row;
    T sum(0);
    for (Index j = 0; j < d.taps; ++j)
      if (t - j >= 0 && t - j < d.steps) sum += w[c * d.taps + j] * gy[i - j * row];
    gx[i] += sum;
  }
};
template <class T>
struct DepthwiseWeightTerm {
  DepthwiseDims d;
  const T *x, *gy;
  RECLAB_HD T operator()(Index o, Index r) const {
    const Index c = o / d.taps, j = o % d.taps;
    return x[(r + j * d.batch) * d.channels + c] * gy[r * d.channels + c];
  }
};

// ---- The diagonal recurrence -------------------------------------------------------------------------------------------------------

/// state_r = coefficient_r state_{r-1} + input_r: forwards in time it is the recurrence itself, backwards its adjoint.
template <class T>
struct Line {
  const T *a, *in, *start;  // start may be null
  Index steps, width, period;
  bool backward;
  int start_power;
  RECLAB_HD Index at(Index r, Index i) const { return (backward ? steps - 1 - r : r) * width + i; }
  RECLAB_HD T factor(Index t, Index i) const { return period ? a[i % period] : a[t * width + i]; }
  RECLAB_HD T coefficient(Index r, Index i) const {
    if (!backward) return factor(r, i);
    return r ? conjugate(factor(steps - r, i)) : T(1);  // what is carried in was multiplied where it comes from
  }
  RECLAB_HD T first(Index i) const {
    return start ? coefficient(0, i) * (start_power ? scaled(start[i], start_power) : start[i]) + in[at(0, i)] : in[at(0, i)];
  }
};
/// The steps from `from` on in stretches of `span`, a thread for each stretch and entry. A stretch starts from `carry`, or without one
/// from what is already in `out`.
template <class T>
struct RunLine {
  Line<T> line;
  Index from, span;
  const T* carry;
  T* out;
  RECLAB_HD void operator()(Index index) const {
    const Index i = index % line.width, chunk = index / line.width;
    Index r = from + chunk * span;
    const Index end = least(line.steps, r + span);
    if (r >= end) return;
    T state;
    if (r == 0) {
      state = line.first(i);
      out[line.at(r++, i)] = state;
    } else {
      state = carry ? carry[index] : out[line.at(r - 1, i)];
    }
    for (; r < end; ++r) {
      state = line.coefficient(r, i) * state + line.in[line.at(r, i)];
      out[line.at(r, i)] = state;
    }
  }
};
/// What a stretch does to the state before it: product * state + sum.
template <class T>
struct SummariseLine {
  Line<T> line;
  Index span;
  T *product, *sum;
  RECLAB_HD void operator()(Index index) const {
    const Index i = index % line.width;
    Index r = index / line.width * span;
    const Index end = least(line.steps, r + span);
    T through(1), state{};
    if (r == 0) {
      state = line.first(i);
      through = T(0);
      ++r;
    }
    for (; r < end; ++r) {
      const T a = line.coefficient(r, i);
      state = a * state + line.in[line.at(r, i)];
      through = through * a;
    }
    product[index] = through;
    sum[index] = state;
  }
};
/// From the stretches' effects the state before each of them (in place of their sums).
template <class T>
struct CarryLine {
  const T* product;
  T* sum;
  Index chunks, width;
  RECLAB_HD void operator()(Index i) const {
    T state{};
    for (Index c = 0; c < chunks; ++c) {
      const Index at = c * width + i;
      const T next = c ? product[at] * state + sum[at] : sum[at];
      sum[at] = state;
      state = next;
    }
  }
};
/// state 2^power += fresh, in the unit of the larger one unless that is near.
template <class T>
RECLAB_HD inline void add_in_units(T fresh, T& state, int& power) {
  const int own = exponent_of(state), added = exponent_of(fresh);
  const int standing = own == no_exponent || own == infinite_exponent ? no_exponent : own + power, common = standing > added ? standing : added;
  if (common != no_exponent && common != infinite_exponent && (common - power > 32 || power - common > 32)) {
    state = scaled(state, power - common);
    power = common;
  }
  if (!is_zero(fresh)) state += power ? scaled(fresh, -power) : fresh;
}
/// The adjoint with a power of two for every entry, so that it neither vanishes nor overflows: lambda 2^exponents.
template <class T>
struct RunAdjoint {
  Line<T> line;
  Index from, to;
  T* lambda;
  int* exponents;
  RECLAB_HD void operator()(Index i) const {
    T state{};
    int power = 0;
    if (from) {
      state = lambda[line.at(from - 1, i)];
      power = exponents[line.at(from - 1, i)];
    } else if (line.start) {
      state = line.start[i];
      power = line.start_power;
    }
    for (Index r = from; r < to; ++r) {
      const Index at = line.at(r, i);
      if (r) state = line.coefficient(r, i) * state;
      const T fresh = line.in[at];
      if (is_zero(state)) power = 0;
      add_in_units(fresh, state, power);
      lambda[at] = state;
      exponents[at] = power;
    }
  }
};
/// x += lambda 2^exponents.
template <class T>
struct AddPowered {
  const T* lambda;
  const int* exponents;
  T* x;
  RECLAB_HD void operator()(Index i) const { x[i] += exponents ? scaled(lambda[i], exponents[i]) : lambda[i]; }
};
/// ga[o] += sum_r lambda conj(s before), for a that varies with time (o counts steps and entries, r is 0) or not (r counts its uses).
template <class T>
struct TransitionTerm {
  const T *lambda, *s, *initial;
  const int* exponents;
  Index width, period;
  RECLAB_HD T operator()(Index o, Index r) const {
    const Index i = period ? r * period + o : o;  // width is a multiple of period
    if (i < width && !initial) return T{};
    const T product = lambda[i] * conjugate(i < width ? initial[i] : s[i - width]);
    return exponents ? scaled(product, exponents[i]) : product;
  }
};
template <class T>
struct InitialAdjoint {
  const T *a, *lambda;
  const int* exponents;
  T* ginitial;
  Index period;
  int power;
  RECLAB_HD void operator()(Index i) const {
    const T product = conjugate(a[period ? i % period : i]) * lambda[i];
    ginitial[i] += exponents ? scaled(product, exponents[i] - power) : product;
  }
};

// ---- The selective recurrence ------------------------------------------------------------------------------------------------------

/// One thread a channel, sixteen states at a time in its registers: through steps from <= t < to, from and into `memory`.
template <class T>
struct SelectiveRun {
  static constexpr int together = 16;
  SelectiveDims d;
  const T *dt, *a, *x, *b, *c;
  T *memory, *y, *states;  // states may be null
  Index from, to;
  RECLAB_HD void operator()(Index index) const {
    const Index channel = index % d.channels, batch = index / d.channels;
    for (Index first = 0; first < d.states; first += together) {
      const int count = static_cast<int>(least(together, d.states - first));
      T h[together], rate[together];
      for (int n = 0; n < count; ++n) {
        h[n] = memory[index * d.states + first + n];
        rate[n] = a[channel * d.states + first + n];
      }
      for (Index t = from; t < to; ++t) {
        const Index row = t * d.batch + batch, at = row * d.channels + channel;
        const T step = dt[at], drive = step * x[at];
        T sum = first ? y[at] : T(0);
        for (int n = 0; n < count; ++n) {
          h[n] = fn::exp(step * rate[n]) * h[n] + drive * b[row * d.states + first + n];
          sum += h[n] * c[row * d.states + first + n];
          if (states) states[at * d.states + first + n] = h[n];
        }
        y[at] = sum;
      }
      for (int n = 0; n < count; ++n) memory[index * d.states + first + n] = h[n];
    }
  }
};
/// What the recurrence is as a diagonal one: its factors and its drive, all [steps, batch, channels, states].
template <class T>
struct SelectiveTerms {
  SelectiveDims d;
  const T *dt, *a, *x, *b;
  T *factor, *drive;
  RECLAB_HD void operator()(Index index) const {
    const Index n = index % d.states, at = index / d.states, channel = at % d.channels, row = at / d.channels;
    factor[index] = fn::exp(dt[at] * a[channel * d.states + n]);
    drive[index] = dt[at] * x[at] * b[row * d.states + n];
  }
};
/// What the readout gives back to each state.
template <class T>
struct SelectiveReadAdjoint {
  SelectiveDims d;
  const T *c, *gy, *gstates;  // gstates may be null
  T* g;
  RECLAB_HD void operator()(Index index) const {
    const Index n = index % d.states, at = index / d.states, row = at / d.channels;
    g[index] = gy[at] * c[row * d.states + n] + (gstates ? gstates[index] : T(0));
  }
};
/// From the adjoints of the factors and of the drive, those of dt and x (either may be null).
template <class T>
struct SelectiveInputAdjoint {
  SelectiveDims d;
  const T *dt, *a, *x, *b, *factor, *gfactor, *gdrive;
  T *gdt, *gx;
  RECLAB_HD void operator()(Index at) const {
    const Index channel = at % d.channels, row = at / d.channels;
    T of_drive(0), of_rate(0);
    for (Index n = 0; n < d.states; ++n) {
      const Index index = at * d.states + n;
      of_drive += gdrive[index] * b[row * d.states + n];
      of_rate += gfactor[index] * factor[index] * a[channel * d.states + n];
    }
    if (gx) gx[at] += dt[at] * of_drive;
    if (gdt) gdt[at] += x[at] * of_drive + of_rate;
  }
};
/// Of a: output [channels, states], over all steps and the batch.
template <class T>
struct SelectiveRateTerm {
  SelectiveDims d;
  const T *dt, *factor, *gfactor;
  RECLAB_HD T operator()(Index o, Index row) const {
    const Index n = o % d.states, at = row * d.channels + o / d.states;
    return gfactor[at * d.states + n] * factor[at * d.states + n] * dt[at];
  }
};
/// Of b and c: output [steps, batch, states], over the channels; `y` null: x alone.
template <class T>
struct SelectiveStateTerm {
  SelectiveDims d;
  const T *each, *x, *y;
  RECLAB_HD T operator()(Index o, Index channel) const {
    const Index n = o % d.states, at = o / d.states * d.channels + channel;
    return each[at * d.states + n] * (y ? x[at] * y[at] : x[at]);
  }
};

// ---- The outer-product memory ------------------------------------------------------------------------------------------------------

/// M[h, r, p] += x_t[h, r] y_t[h, p], then out_t[h, p] = (or +=) sum_r M[h, r, p] z_t[h, r], for steps in order: a thread a column (h, p).
/// Outputs, and the adjoints of queries, keys and values, are all of this kind. M is a sum over all of time: kept in double, or a long
/// memory in float would lose what its reads differ in.
template <class T>
struct OuterPass {
  const T *x, *y, *z;
  T *out, *states;  // states [steps, heads, rows, columns] may be null
  double *memory, *squares;  // squares [steps, heads, columns] of M's column, may be null
  Index steps, heads, rows, columns, from, to;
  bool backward, accumulate;
  RECLAB_HD void operator()(Index index) const {
    const Index h = index / columns, p = index % columns;
    double* column = memory + h * rows * columns + p;
    for (Index step = from; step < to; ++step) {
      const Index t = backward ? steps - 1 - step : step, at = t * heads + h;
      const auto factor = static_cast<double>(y[at * columns + p]);
      double sum = 0.0, square = 0.0;
      for (Index r = 0; r < rows; ++r) {
        const double cell = column[r * columns] + static_cast<double>(x[at * rows + r]) * factor;
        column[r * columns] = cell;
        sum += cell * static_cast<double>(z[at * rows + r]);
        if (states) states[(at * rows + r) * columns + p] = static_cast<T>(cell);
        square += cell * cell;
      }
      T& to_out = out[at * columns + p];
      to_out = accumulate ? to_out + static_cast<T>(sum) : static_cast<T>(sum);
      if (squares) squares[at * columns + p] = square;
    }
  }
};

// ---- The outer-product memory with decays, in chunks of time: what decays between two steps of a chunk is a sum of logarithms over the
// steps between, so that no exponent is above 0 and no two sums are subtracted ---------------------------------------------------------

template <class T>
struct Gates {
  static constexpr Index chunk = 16;
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
/// out [steps, heads, key] = x times what decays from the chunk's start, or to its end.
template <class T>
struct GatedRows {
  Gates<T> g;
  const T* x;
  T* out;
  bool to_end;
  RECLAB_HD void operator()(Index index) const {
    const Index i = index % g.d.key, h = index / g.d.key % g.d.heads, t = index / g.d.key / g.d.heads;
    out[index] = x[index] * (to_end ? g.until_end(t, h, i) : g.since_start(t, h, i));
  }
};
/// scores [steps, heads, chunk] = sum_i x_t[i] y_u[i] decayed from step u to t, u <= t being number j of t's chunk; 0 elsewhere.
template <class T>
struct GatedScores {
  Gates<T> g;
  const T *x, *y;
  T* scores;
  Index size;
  RECLAB_HD void operator()(Index index) const {
    const Index j = index % g.chunk, h = index / g.chunk % g.d.heads, t = index / g.chunk / g.d.heads, u = t / g.chunk * g.chunk + j;
    T sum(0);
    for (Index i = 0; u <= t && i < size; ++i) sum += x[(t * g.d.heads + h) * size + i] * (y[(u * g.d.heads + h) * size + i] * fn::exp(g.between(u, t, h, i)));
    scores[index] = sum;
  }
};
/// memory [heads, key, value] through chunks from <= c < to; starts [chunks, heads, key, value] (may be null) get it as it was before each.
template <class T>
struct GatedPass {
  Gates<T> g;
  const T *right, *v;
  double* memory;
  T* starts;
  Index from, to;
  RECLAB_HD void operator()(Index index) const {
    const Index j = index % g.d.value, i = index / g.d.value % g.d.key, h = index / g.d.value / g.d.key, all = g.d.heads * g.d.key * g.d.value;
    double cell = memory[index];
    for (Index c = from; c < to; ++c) {
      if (starts) starts[c * all + index] = static_cast<T>(cell);
      cell *= static_cast<double>(fn::exp(g.between(c * g.chunk - 1, g.end(c) - 1, h, i)));
      for (Index t = c * g.chunk; t < g.end(c); ++t) cell += static_cast<double>(right[(t * g.d.heads + h) * g.d.key + i]) * static_cast<double>(v[(t * g.d.heads + h) * g.d.value + j]);
    }
    memory[index] = cell;
  }
};
/// o = left S + scores v, S as it was before the chunk.
template <class T>
struct GatedRead {
  Gates<T> g;
  const T *left, *starts, *scores, *v;
  T* o;
  RECLAB_HD void operator()(Index index) const {
    const Index j = index % g.d.value, row = index / g.d.value, h = row % g.d.heads, t = row / g.d.heads, first = t / g.chunk * g.chunk;
    const T* memory = starts + (t / g.chunk * g.d.heads + h) * g.d.key * g.d.value + j;
    T sum(0);
    for (Index i = 0; i < g.d.key; ++i) sum += left[row * g.d.key + i] * memory[i * g.d.value];
    for (Index u = first; u <= t; ++u) sum += scores[row * g.chunk + u - first] * v[(u * g.d.heads + h) * g.d.value + j];
    o[index] = sum;
  }
};
/// state 2^power = e^log state 2^power, log <= 0.
RECLAB_HD inline void decay_in_units(double log, double& state, int& power) {
  // Far below the range of an exponential, the power takes the whole steps of two.
  const int halvings = log < -16.0 && log > -1e8 ? static_cast<int>(log * 1.4426950408889634) : 0;
  state *= fn::exp(log - halvings * 0.6931471805599453);
  power = is_zero(state) ? 0 : power + halvings;
}
/// The memory's adjoint back through chunks to > c >= from: lambda 2^power after each chunk, in plain units, into ends.
template <class T>
struct GatedPassAdjoint {
  Gates<T> g;
  const T *left, *go;
  double* lambda;
  int* powers;
  T* ends;
  Index from, to;
  RECLAB_HD void operator()(Index index) const {
    const Index j = index % g.d.value, i = index / g.d.value % g.d.key, h = index / g.d.value / g.d.key, all = g.d.heads * g.d.key * g.d.value;
    double state = lambda[index];
    int power = powers[index];
    for (Index c = to - 1; c >= from; --c) {
      ends[c * all + index] = static_cast<T>(power ? scaled(state, power) : state);
      decay_in_units(g.template between<double>(c * g.chunk - 1, g.end(c) - 1, h, i), state, power);
      double fresh = 0.0;
      for (Index t = c * g.chunk; t < g.end(c); ++t) fresh += static_cast<double>(left[(t * g.d.heads + h) * g.d.key + i]) * static_cast<double>(go[(t * g.d.heads + h) * g.d.value + j]);
      add_in_units(fresh, state, power);
    }
    lambda[index] = state;
    powers[index] = power;
  }
};
/// x += lambda 2^(exponents - power).
template <class T>
struct AddInUnits {
  const double* lambda;
  const int* exponents;
  T* x;
  int power;
  RECLAB_HD void operator()(Index i) const { x[i] += static_cast<T>(scaled(lambda[i], exponents[i] - power)); }
};
/// of_query: gx = q's adjoint, from the memory before the chunk and from the keys up to it; else that of k, from the adjoint of the memory
/// after the chunk and from the queries from it on. `through`: what of it goes by the memory, times q or k.
template <class T>
struct GatedKeyAdjoint {
  Gates<T> g;
  const T *x, *y, *values, *memories, *gscores;
  T *gx, *through;
  bool of_query;
  RECLAB_HD void operator()(Index index) const {
    const Index i = index % g.d.key, row = index / g.d.key, h = row % g.d.heads, t = row / g.d.heads, c = t / g.chunk, first = c * g.chunk;
    const T* memory = memories + ((c * g.d.heads + h) * g.d.key + i) * g.d.value;
    T sum(0);
    for (Index j = 0; j < g.d.value; ++j) sum += memory[j] * values[row * g.d.value + j];
    sum *= of_query ? g.since_start(t, h, i) : g.until_end(t, h, i);
    through[index] = x[index] * sum;
    for (Index u = of_query ? first : t; u < (of_query ? t + 1 : g.end(c)); ++u) {
      const Index late = of_query ? t : u, early = of_query ? u : t;
      sum += gscores[(late * g.d.heads + h) * g.chunk + early - first] * (y[(u * g.d.heads + h) * g.d.key + i] * fn::exp(g.between(early, late, h, i)));
    }
    if (gx) gx[index] += sum;
  }
};
template <class T>
struct GatedValueAdjoint {
  Gates<T> g;
  const T *right, *ends, *scores, *go;
  T* gv;
  RECLAB_HD void operator()(Index index) const {
    const Index j = index % g.d.value, row = index / g.d.value, h = row % g.d.heads, t = row / g.d.heads, c = t / g.chunk;
    const T* lambda = ends + (c * g.d.heads + h) * g.d.key * g.d.value + j;
    T sum(0);
    for (Index i = 0; i < g.d.key; ++i) sum += right[row * g.d.key + i] * lambda[i * g.d.value];
    for (Index u = t; u < g.end(c); ++u) sum += scores[(u * g.d.heads + h) * g.chunk + t - c * g.chunk] * go[(u * g.d.heads + h) * g.d.value + j];
    gv[index] += sum;
  }
};
/// The adjoint of a decay's logarithm: all that passes through that step, from the steps before it or the memory to the steps from it on.
template <class T>
struct GatedDecayAdjoint {
  Gates<T> g;
  const T *q, *k, *gscores, *starts, *ends, *through_q, *through_k;
  T* ga;
  RECLAB_HD void operator()(Index index) const {
    const Index row = index / g.d.decays, h = row % g.d.heads, t = row / g.d.heads, c = t / g.chunk, first = c * g.chunk;
    const bool shared = g.d.decays == 1;
    double sum = 0.0;
    for (Index i = shared ? 0 : index % g.d.decays; i < (shared ? g.d.key : index % g.d.decays + 1); ++i) {
      const Index cell = ((c * g.d.heads + h) * g.d.key + i) * g.d.value;
      double across = 0.0;
      for (Index j = 0; j < g.d.value; ++j) across += static_cast<double>(starts[cell + j]) * static_cast<double>(ends[cell + j]);
      sum += across * static_cast<double>(fn::exp(g.between(first - 1, g.end(c) - 1, h, i)));
      for (Index u = first; u < t; ++u) sum += static_cast<double>(through_k[(u * g.d.heads + h) * g.d.key + i]);
      for (Index u = t; u < g.end(c); ++u) {
        const Index late = u * g.d.heads + h;
        sum += static_cast<double>(through_q[late * g.d.key + i]);
        for (Index l = first; l < t; ++l)
          sum += static_cast<double>(gscores[late * g.chunk + l - first] * q[late * g.d.key + i] * (k[(l * g.d.heads + h) * g.d.key + i] * fn::exp(g.between(l, u, h, i))));
      }
    }
    ga[index] += static_cast<T>(sum);
  }
};

/// The same memory step by step, for steps in order: M = decay M + x_t y_t^T, out_t = (or +=) sum_r M[r, p] z_t[r], a thread a column (h, p).
/// Backward in time what is written decays after it was read. `decayed` (may be null) gets decay M of steps from <= t < to.
template <class T>
struct GatedSteps {
  Gates<T> g;
  const T *x, *y, *z;
  T *out, *decayed;  // may be null
  double* memory;    // [heads, rows, columns]
  Index rows, columns, from, to;
  bool keys_are_rows, backward, accumulate;
  RECLAB_HD double decay(Index t, Index h, Index r, Index p) const { return static_cast<double>(fn::exp(g.between(t - 1, t, h, keys_are_rows ? r : p))); }
  RECLAB_HD void operator()(Index index) const {
    const Index h = index / columns, p = index % columns;
    double* column = memory + h * rows * columns + p;
    for (Index step = from; step < to; ++step) {
      const Index t = backward ? g.d.steps - 1 - step : step, at = t * g.d.heads + h;
      const auto factor = static_cast<double>(y[at * columns + p]);
      double sum = 0.0;
      for (Index r = 0; r < rows; ++r) {
        double cell = column[r * columns];
        if (!backward) cell *= decay(t, h, r, p);
        if (decayed) decayed[(((step - from) * g.d.heads + h) * rows + r) * columns + p] = static_cast<T>(cell);
        cell += static_cast<double>(x[at * rows + r]) * factor;
        if (z) sum += cell * static_cast<double>(z[at * rows + r]);
        column[r * columns] = backward ? cell * decay(t, h, r, p) : cell;
      }
      if (!out) continue;
      T& to_out = out[at * columns + p];
      to_out = accumulate ? to_out + static_cast<T>(sum) : static_cast<T>(sum);
    }
  }
};
/// The adjoint lambda 2^powers [heads, value, key] of the memory back through steps to > t >= from: that of the keys, and `through` [to - from,
/// heads, key] what passes through the decays, whose memories are in `decayed`. A thread a key dimension of a head.
template <class T>
struct GatedStepsAdjoint {
  Gates<T> g;
  const T *q, *v, *go, *decayed;
  double* lambda;
  int* powers;
  T* gk;  // may be null, as may decayed
  double* through;
  Index from, to;
  RECLAB_HD void operator()(Index index) const {
    const Index i = index % g.d.key, h = index / g.d.key;
    for (Index t = to - 1; t >= from; --t) {
      const Index row = t * g.d.heads + h;
      const auto query = static_cast<double>(q[row * g.d.key + i]), log = g.template between<double>(t - 1, t, h, i);
      double sum = 0.0, across = 0.0;
      for (Index j = 0; j < g.d.value; ++j) {
        const Index cell = (h * g.d.value + j) * g.d.key + i;
        double state = lambda[cell];
        int power = powers[cell];
        add_in_units(query * static_cast<double>(go[row * g.d.value + j]), state, power);
        const double plain = power ? scaled(state, power) : state;
        sum += plain * static_cast<double>(v[row * g.d.value + j]);
        if (decayed) across += plain * static_cast<double>(decayed[(((t - from) * g.d.heads + h) * g.d.value + j) * g.d.key + i]);
        decay_in_units(log, state, power);
        lambda[cell] = state;
        powers[cell] = power;
      }
      if (gk) gk[row * g.d.key + i] += static_cast<T>(sum);
      if (decayed) through[((t - from) * g.d.heads + h) * g.d.key + i] = across;
    }
  }
};
/// x [heads, key, value] += lambda [heads, value, key] 2^(exponents - power).
template <class T>
struct AddTransposedInUnits {
  const double* lambda;
  const int* exponents;
  T* x;
  Index key, value;
  int power;
  RECLAB_HD void operator()(Index index) const {
    const Index j = index % value, i = index / value % key, cell = (index / value / key * value + j) * key + i;
    x[index] += static_cast<T>(scaled(lambda[cell], exponents[cell] - power));
  }
};

// ---- Kernels of long convolutions --------------------------------------------------------------------------------------------------

template <class T>
RECLAB_HD inline T power_of(T a, Index exponent) {
  T result(1);
  for (; exponent; exponent /= 2) {
    if (exponent & 1) result = result * a;
    a = a * a;
  }
  return result;
}
/// Eight steps of a channel for each thread; powers and sums over all of time in double.
template <class T>
struct Vandermonde {
  static constexpr Index span = 8;
  const T *w, *a;
  T* kernel;
  Index modes, steps;
  RECLAB_HD Index chunks() const { return (steps + span - 1) / span; }
  RECLAB_HD void operator()(Index index) const {
    const Index c = index / chunks(), first = index % chunks() * span;
    using Wide = wide_t<T>;
    Wide sum[span];
    for (Wide& s : sum) s = Wide(0.0);
    for (Index n = 0; n < modes; ++n) {
      const Wide base = convert<Wide>(a[c * modes + n]);
      Wide power = convert<Wide>(w[c * modes + n]) * power_of(base, first);
      for (Wide& s : sum) {
        s += power;
        power = power * base;
      }
    }
    for (Index j = 0; j < span; ++j)
      if (first + j < steps) kernel[c * steps + first + j] = convert<T>(sum[j]);
  }
};
/// Horner's rule backwards in time: sum_k g_k conj(a)^k and its derivative.
template <class T>
struct VandermondeAdjoint {
  const T *w, *a, *g;
  T *gw, *ga;
  Index modes, steps;
  RECLAB_HD void operator()(Index i) const {
    using Wide = wide_t<T>;
    const Wide base = conjugate(convert<Wide>(a[i]));
    const T* row = g + i / modes * steps;
    Wide value(0.0), slope(0.0);
    for (Index t = steps - 1; t >= 0; --t) {
      slope = slope * base + value;
      value = value * base + convert<Wide>(row[t]);
    }
    if (gw) gw[i] += convert<T>(value);
    if (ga) ga[i] += convert<T>(conjugate(convert<Wide>(w[i])) * slope);
  }
};

// ---- Fourier transforms: in place, there by decimation in frequency, back by decimation in time, so that no order is ever restored -----

using Wave = Complex<double>;

/// Where the sequences of a transform lie: number s = (c, b), element i at (c * channel + b * batch) + i * stride.
struct Layout {
  Index channel, batch, stride, batches;
  RECLAB_HD Index at(Index s, Index i) const { return s / batches * channel + s % batches * batch + i * stride; }
};
template <class T>
struct LoadWaves {
  const T* from;
  Layout layout;
  Index steps, size;
  Wave* to;
  RECLAB_HD void operator()(Index index) const {
    const Index i = index % size;
    Wave value(0.0);
    if (i < steps) value = convert<wide_t<T>>(from[layout.at(index / size, i)]);
    to[index] = value;
  }
};
template <class T>
struct StoreWaves {
  const Wave* from;
  Layout layout;
  Index steps, size;
  T* to;
  bool add;
  RECLAB_HD void operator()(Index index) const {
    const Index s = index / steps, i = index % steps, at = layout.at(s, i);
    const Wave value = (1.0 / static_cast<double>(size)) * from[s * size + i];
    T result;
    if constexpr (complex_v<T>)
      result = {static_cast<real_t<T>>(value.re), static_cast<real_t<T>>(value.im)};
    else
      result = static_cast<T>(value.re);
    to[at] = add ? to[at] + result : result;
  }
};
RECLAB_HD inline void butterfly(Wave& x, Wave& y, Wave root, bool back) {
  if (back) {
    const Wave turned = y * conjugate(root);
    y = x - turned;
    x = x + turned;
  } else {
    const Wave difference = x - y;
    x = x + y;
    y = difference * root;
  }
}
/// One pass of butterflies `half` apart; roots[j] = exp(-2 pi i j / size).
struct FourierPass {
  Wave* x;
  const Wave* roots;
  Index size, half;
  bool back;
  RECLAB_HD void operator()(Index index) const {
    const Index k = index % half, at = index / half * 2 * half + k;
    butterfly(x[at], x[at + half], roots[k * (size / (2 * half))], back);
  }
};
/// All passes within stretches of `stretch` (at most 1024) neighbours, in shared memory.
struct FourierInside {
  static constexpr int longest = 1024;
  Wave* x;
  const Wave* roots;
  Index size;
  int stretch;
  bool back;
  struct Shared {
    double re[longest], im[longest];
  };
  template <class Block>
  RECLAB_HD void operator()(Block& block, Index index, Shared& shared) const {
    Wave* own = x + index * stretch;
    block.phase([&](int thread) {
      for (int i = thread; i < stretch; i += 256) {
        shared.re[i] = own[i].re;
        shared.im[i] = own[i].im;
      }
    });
    for (int pass = 1; pass < stretch; pass *= 2) {
      const int half = back ? pass : stretch / 2 / pass;
      block.phase([&](int thread) {
        for (int j = thread; j < stretch / 2; j += 256) {
          const int k = j % half, at = j / half * 2 * half + k;
          Wave u{shared.re[at], shared.im[at]}, v{shared.re[at + half], shared.im[at + half]};
          butterfly(u, v, roots[k * (size / (2 * half))], back);
          shared.re[at] = u.re;
          shared.im[at] = u.im;
          shared.re[at + half] = v.re;
          shared.im[at + half] = v.im;
        }
      });
    }
    block.phase([&](int thread) {
      for (int i = thread; i < stretch; i += 256) own[i] = {shared.re[i], shared.im[i]};
    });
  }
};
/// x[(c, b), i] *= k[c, i], or its conjugate.
struct MultiplyWaves {
  Wave* x;
  const Wave* k;
  Index size, batches;
  bool conjugated;
  RECLAB_HD void operator()(Index index) const {
    const Wave factor = k[index / size / batches * size + index % size];
    x[index] = x[index] * (conjugated ? conjugate(factor) : factor);
  }
};
/// sum[c, i] = sum_b g[(c, b), i] conj(x[(c, b), i]).
struct CorrelateWaves {
  const Wave *g, *x;
  Wave* sum;
  Index size, batches;
  RECLAB_HD void operator()(Index index) const {
    const Index c = index / size, i = index % size;
    Wave total(0.0);
    for (Index b = 0; b < batches; ++b) {
      const Index at = (c * batches + b) * size + i;
      total += g[at] * conjugate(x[at]);
    }
    sum[index] = total;
  }
};

}  // namespace reclab::kernel
