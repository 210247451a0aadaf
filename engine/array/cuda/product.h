// SPDX-License-Identifier: GPL-3.0-or-later
// Products of matrices, and the inverse of a triangular one. A machine that has a library for products is asked first (`product`,
// recorder.h).
#pragma once

#include <optional>

#include "array/cuda/kernel_backend.h"
#include "array/demand.h"

namespace reclab::kernel {

// ---- Kernels -----------------------------------------------------------------------------------------------------------------------

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

/// A product as cuBLAS takes it: C = op(A) op(B) + beta C for each of a batch, op transposes where asked, op(A) is m x k, op(B) k x n.
/// Matrices lie column after column, `ld` entries from one column to the next.
template <class T>
struct ColumnProduct {
  bool transpose_a, transpose_b;
  int m, n, k;
  const T* a;
  int lda;
  Index stride_a;
  const T* b;
  int ldb;
  Index stride_b;
  T beta;
  T* c;
  int ldc;
  Index stride_c;
  int batch;
  double multiplications() const { return static_cast<double>(m) * n * k * batch; }
};
/// The same product for a library; nothing where one call of it cannot say it. What lies row after row is, read column after column, the
/// transposed matrix, and C^T = op(B)^T op(A)^T: the factors change places and keep their `transpose`.
template <class T>
std::optional<ColumnProduct<T>> column_product(Gemm<T> g) {
  if (g.inner > 1) {
    // Products that add up to one are one with a longer k, where the matrices of both sides lie one below the other.
    if (!g.transpose_a || g.transpose_b || g.stride_a != g.k * g.lda || g.stride_b != g.k * g.ldb) return std::nullopt;
    g.k *= g.inner;
    g.stride_a *= g.inner;
    g.stride_b *= g.inner;
  } else if (g.batch > 1 && g.stride_b == 0 && !g.transpose_a && g.stride_a == g.m * g.lda && g.stride_c == g.m * g.ldc) {
    // Products with one B are one with more rows.
    g.m *= g.batch;
    g.batch = 1;
  }
  const auto counts = [](Index value, Index smallest) { return value >= smallest && value <= INT_MAX; };
  if (!counts(g.m, 1) || !counts(g.n, 1) || !counts(g.k, 1) || !counts(g.batch, 1) || g.batch > 65535) return std::nullopt;
  if (!counts(g.lda, g.transpose_a ? g.m : g.k) || !counts(g.ldb, g.transpose_b ? g.k : g.n) || !counts(g.ldc, g.n)) return std::nullopt;
  const auto narrow = [](Index value) { return static_cast<int>(value); };
  return ColumnProduct<T>{g.transpose_b, g.transpose_a, narrow(g.n), narrow(g.m),    narrow(g.k), g.b,
                          narrow(g.ldb), g.stride_b,    g.a,         narrow(g.lda),  g.stride_a,  g.accumulate ? T(1) : T(0),
                          g.c,           narrow(g.ldc), g.stride_c,  narrow(g.batch)};
}

/// One matrix for each head, as it lies: `stride` from head to head, `line` from row to row.
template <class P>
struct Matrices {
  P* data;
  Index heads, rows, columns, line, stride;
  bool is_transposed = false;
  Matrices transposed() const {
    Matrices result = *this;
    result.is_transposed = !is_transposed;
    return result;
  }
};

// ---- Launches ----------------------------------------------------------------------------------------------------------------------

/// By a library where the machine has one that is worth it. Else our own kernel, which shares the sum of a product with few tiles out among
/// more blocks.
template <class Machine>
template <class T>
void KernelBackend<Machine>::gemm(Gemm<T> g) {
  const Index tiles = g.tiles_m() * g.tiles_n() * g.batch, count = g.batch * g.m * g.n;
  if (count == 0) return;
  if (const auto product = column_product(g); product && machine_.product(*product)) return;
  const Index shares = g.inner > 1 ? g.inner : g.k / 64;
  g.splits = std::clamp<Index>(std::min(256 / tiles, g.inner * g.k / 256), 1, std::max<Index>(shares, 1));
  if (g.splits == 1) {
    machine_.blocks(tiles, g);
    return;
  }
  Scratch<T> partial(machine_, g.splits * count);
  const AddShares<T> add{partial.data, g.c, count, g.m, g.n, g.ldc, g.stride_c, g.splits, g.accumulate};
  g.c = partial.data;
  g.ldc = g.n;
  g.stride_c = g.m * g.n;
  g.stride_split = count;
  g.accumulate = false;
  machine_.blocks(tiles * g.splits, g);
  machine_.each(count, add);
}

template <class Machine>
template <class A, class B, class T>
void KernelBackend<Machine>::multiply(const Matrices<A>& a, const Matrices<B>& b, const Matrices<T>& c, bool accumulate) {
  RECLAB_DEMAND(!c.is_transposed && (a.is_transposed ? a.rows : a.columns) == (b.is_transposed ? b.columns : b.rows));
  gemm(Gemm<T>{a.data, b.data, c.data, c.rows, c.columns, a.is_transposed ? a.rows : a.columns, a.line, b.line, c.line, a.stride, b.stride,
               c.stride, 0, c.heads, 1, 1, a.is_transposed, b.is_transposed, accumulate});
}

template <class Machine>
void KernelBackend<Machine>::matmul(DType type, const MatMul& s, const void* a, const void* b, void* c, bool accumulate) {
  with_real(type, [&](auto zero) {
    using T = decltype(zero);
    const bool shared = s.batch > 1 && s.stride_c == 0;  // all matrices add up to one
    gemm(Gemm<T>{as<T>(a), as<T>(b), as<T>(c), s.m, s.n, s.k, s.transpose_a ? s.m : s.k, s.transpose_b ? s.k : s.n, s.n, s.stride_a,
                 s.stride_b, s.stride_c, 0, shared ? 1 : s.batch, shared ? s.batch : 1, 1, s.transpose_a, s.transpose_b, accumulate});
  });
}

template <class Machine>
void KernelBackend<Machine>::invert_unit_lower(DType type, Index batch, Index n, const void* a, void* x) {
  with_real(type, [&](auto zero) {
    using T = decltype(zero);
    machine_.each(batch * n, InvertUnitLower<T>{as<T>(a), as<T>(x), n});
  });
}

}  // namespace reclab::kernel
