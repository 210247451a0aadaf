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

/// A share of the sum of a product that is split: over the matrices where all of them add up to one result (inner > 1), else over k.
struct ShareOfSum {
  Index first, last, from, to;  // matrices, and k in each of them
  RECLAB_HD ShareOfSum(Index split, Index splits, Index inner, Index k) {
    const Index size = ((inner > 1 ? inner : k) + splits - 1) / splits;
    first = inner > 1 ? split * size : 0;
    last = inner > 1 ? least(inner, first + size) : 1;
    from = inner > 1 ? 0 : split * size;
    to = inner > 1 ? k : least(k, from + size);
  }
};
/// One block for a tile of 64 x 64 of one of the results; a thread has 4 x 4 of it. Every share of the sum has a result of its own,
/// `stride_split` apart. The numbers of a slice of k are on their way while the slice before it is multiplied.
template <class T>
struct Gemm {
  static constexpr int tile = 64, depth = 16, each = 4;
  const T *a, *b;
  T* c;
  Index m, n, k, lda, ldb, ldc, stride_a, stride_b, stride_c, stride_split;
  Index batch, inner, splits;
  bool transpose_a, transpose_b, accumulate;
  using Slice = T[depth][tile + each];
  struct alignas(16) Shared {
    Slice a[2], b[2];
  };
  struct Sums {
    T value[each][each];
  };
  struct Fetched {
    T a[each], b[each];
  };
  RECLAB_HD Index tiles_m() const { return (m + tile - 1) / tile; }
  RECLAB_HD Index tiles_n() const { return (n + tile - 1) / tile; }
  /// Fetches a thread's share of the slice at `at` of the rows from `first` on of x: 4 numbers, zero beyond its ends. Neighbouring threads
  /// read neighbouring numbers, which follow each other in k where k_first.
  RECLAB_HD static void fetch(const T* x, Index ld, bool k_first, Index first, Index rows, Index at, Index to, int thread, T* numbers) {
    if (k_first) {
      const Index row = first + thread / depth, d = at + thread % depth;
      for (int i = 0; i < each; ++i) numbers[i] = d < to && row + i * (256 / depth) < rows ? x[(row + i * (256 / depth)) * ld + d] : T(0);
    } else {
      const Index row = first + thread % tile, d = at + thread / tile;
      for (int i = 0; i < each; ++i) numbers[i] = row < rows && d + i * (256 / tile) < to ? x[(d + i * (256 / tile)) * ld + row] : T(0);
    }
  }
  RECLAB_HD static void put(const T* numbers, bool k_first, int thread, Slice& slice) {
    for (int i = 0; i < each; ++i)
      if (k_first)
        slice[thread % depth][thread / depth + i * (256 / depth)] = numbers[i];
      else
        slice[thread / tile + i * (256 / tile)][thread % tile] = numbers[i];
  }
  template <class Block>
  RECLAB_HD void operator()(Block& block, Index index, Shared& shared) const {
    const Index column = index % tiles_n() * tile, row = index / tiles_n() % tiles_m() * tile;
    const Index matrix = index / (tiles_n() * tiles_m()) % batch, split = index / (tiles_n() * tiles_m() * batch);
    const ShareOfSum share(split, splits, inner, k);
    const Index slices = share.to > share.from ? (share.to - share.from + depth - 1) / depth : 0;
    const auto fetch_slice = [&](Index i, Index slice, int thread, Fetched& fetched) {
      const Index at = share.from + slice * depth;
      fetch(a + (matrix * inner + i) * stride_a, lda, !transpose_a, row, m, at, share.to, thread, fetched.a);
      fetch(b + (matrix * inner + i) * stride_b, ldb, transpose_b, column, n, at, share.to, thread, fetched.b);
    };
    const auto put_slice = [&](const Fetched& fetched, int half, int thread) {
      put(fetched.a, !transpose_a, thread, shared.a[half]);
      put(fetched.b, transpose_b, thread, shared.b[half]);
    };
    typename Block::template Local<Sums> sums;
    block.phase([&](int thread) {
      for (auto& line : sums[thread].value)
        for (T& value : line) value = T(0);
      if (slices == 0 || share.first >= share.last) return;
      Fetched fetched;
      fetch_slice(share.first, 0, thread, fetched);
      put_slice(fetched, 0, thread);
    });
    int half = 0;
    for (Index i = share.first; i < share.last; ++i)
      for (Index slice = 0; slice < slices; ++slice) {
        const bool is_last_slice = slice + 1 == slices, is_last = is_last_slice && i + 1 == share.last;
        block.phase([&](int thread) {
          Fetched fetched;
          if (!is_last) fetch_slice(is_last_slice ? i + 1 : i, is_last_slice ? 0 : slice + 1, thread, fetched);
          const int y = thread / 16 * each, x = thread % 16 * each;
          auto& own = sums[thread].value;
          for (int d = 0; d < depth; ++d) {
            T u[each], v[each];
            for (int e = 0; e < each; ++e) u[e] = shared.a[half][d][y + e];
            for (int e = 0; e < each; ++e) v[e] = shared.b[half][d][x + e];
            for (int p = 0; p < each; ++p)
              for (int q = 0; q < each; ++q) own[p][q] += u[p] * v[q];
          }
          if (!is_last) put_slice(fetched, 1 - half, thread);
        });
        half = 1 - half;
      }
    block.phase([&](int thread) {
      T* result = c + split * stride_split + matrix * stride_c;
      for (int p = 0; p < each; ++p)
        for (int q = 0; q < each; ++q) {
          const Index r = row + thread / 16 * each + p, col = column + thread % 16 * each + q;
          if (r < m && col < n) {
            T& out = result[r * ldc + col];
            out = accumulate ? out + sums[thread].value[p][q] : sums[thread].value[p][q];
          }
        }
    });
  }
};
/// A product of few rows: C (rows x columns) = few (rows x k) wide (k x columns). Neighbours in each direction lie any distance apart, so
/// it says a product of few columns too, transposed.
template <class T>
struct FewRows {
  const T *few, *wide;
  T* c;
  Index rows, columns, k;
  Index few_row, few_k, wide_k, wide_column, c_row, c_column;  // distances between neighbours
  Index stride_few, stride_wide, stride_c, stride_split;
  Index batch, inner, splits;
  bool accumulate;
};
template <class T>
FewRows<T> few_rows(const Gemm<T>& g) {
  const Index a_row = g.transpose_a ? 1 : g.lda, a_k = g.transpose_a ? g.lda : 1;
  const Index b_k = g.transpose_b ? 1 : g.ldb, b_column = g.transpose_b ? g.ldb : 1;
  if (g.n < g.m)
    return {g.b,     g.a,     g.c,      g.n,         g.m,        g.k,        b_column,   b_k,
            a_k,     a_row,   1,        g.ldc,       g.stride_b, g.stride_a, g.stride_c, g.stride_split,
            g.batch, g.inner, g.splits, g.accumulate};
  return {g.a,     g.b,      g.c,      g.m,         g.n,        g.k,        a_row,      a_k,
          b_k,     b_column, g.ldc,    1,           g.stride_a, g.stride_b, g.stride_c, g.stride_split,
          g.batch, g.inner,  g.splits, g.accumulate};
}
/// One block for rows_each rows and 8 columns_each columns of one of the results. 32 threads, the lanes, share out the sum over k of a
/// column; the numbers of several steps of k are on their way at once. `is_dense`: both factors have neighbours in k next to each other.
template <class T, int rows_each, int columns_each, bool is_dense>
struct FewRowsProduct {
  static constexpr int lanes = 32, columns = 256 / lanes, parts = 4;
  static constexpr int outputs = rows_each * columns_each * columns;
  static constexpr int at_once = rows_each * columns_each > 8 ? 4 : 8;
  FewRows<T> p;
  struct Shared {
    T lane[outputs][lanes + parts], part[outputs][parts];
  };
  struct Lane {
    const T *few[rows_each], *wide[columns_each];
    T sums[rows_each][columns_each];
  };
  RECLAB_HD Index across() const { return (p.columns + columns * columns_each - 1) / (columns * columns_each); }
  RECLAB_HD Index down() const { return (p.rows + rows_each - 1) / rows_each; }
  /// Adds `at_once` steps of k, `lanes` apart, from `at` on; `whole` if none of them is beyond the end.
  template <bool whole>
  RECLAB_HD void add(Lane& lane, Index at, Index to) const {
    const Index few_k = is_dense ? 1 : p.few_k, wide_k = is_dense ? 1 : p.wide_k;
    T x[at_once][rows_each], y[at_once][columns_each];
    for (int u = 0; u < at_once; ++u) {
      const Index step = at + u * lanes;
      const bool is_inside = whole || step < to;
      for (int q = 0; q < columns_each; ++q) y[u][q] = is_inside ? lane.wide[q][step * wide_k] : T(0);
      for (int r = 0; r < rows_each; ++r) x[u][r] = is_inside ? lane.few[r][step * few_k] : T(0);
    }
    for (int u = 0; u < at_once; ++u)
      for (int r = 0; r < rows_each; ++r)
        for (int q = 0; q < columns_each; ++q) lane.sums[r][q] += x[u][r] * y[u][q];
  }
  template <class Block>
  RECLAB_HD void operator()(Block& block, Index index, Shared& shared) const {
    const Index column = index % across() * (columns * columns_each), row = index / across() % down() * rows_each;
    const Index matrix = index / (across() * down()) % p.batch, split = index / (across() * down() * p.batch);
    const ShareOfSum share(split, p.splits, p.inner, p.k);
    block.phase([&](int thread) {
      // Neighbouring threads read neighbouring numbers.
      const bool k_first = is_dense || p.wide_k == 1;
      const int number = k_first ? thread % lanes : thread / columns, own = k_first ? thread / lanes : thread % columns;
      Lane lane;
      for (auto& line : lane.sums)
        for (T& sum : line) sum = T(0);
      for (Index i = share.first; i < share.last; ++i) {
        // Beyond the ends the last numbers are read, and nothing is written.
        for (int r = 0; r < rows_each; ++r)
          lane.few[r] = p.few + (matrix * p.inner + i) * p.stride_few + least(row + r, p.rows - 1) * p.few_row;
        for (int q = 0; q < columns_each; ++q)
          lane.wide[q] = p.wide + (matrix * p.inner + i) * p.stride_wide + least(column + q * columns + own, p.columns - 1) * p.wide_column;
        Index at = share.from + number;
        for (; at + (at_once - 1) * lanes < share.to; at += at_once * lanes) add<true>(lane, at, share.to);
        if (at < share.to) add<false>(lane, at, share.to);
      }
      for (int r = 0; r < rows_each; ++r)
        for (int q = 0; q < columns_each; ++q) shared.lane[(r * columns_each + q) * columns + own][number] = lane.sums[r][q];
    });
    block.phase([&](int thread) {
      for (int e = thread; e < outputs * parts; e += 256) {
        T sum(0);
        for (int i = e % parts; i < lanes; i += parts) sum += shared.lane[e / parts][i];
        shared.part[e / parts][e % parts] = sum;
      }
    });
    block.phase([&](int thread) {
      const Index r = row + thread / (columns_each * columns), col = column + thread % (columns_each * columns);
      if (thread >= outputs || r >= p.rows || col >= p.columns) return;
      T sum(0);
      for (int i = 0; i < parts; ++i) sum += shared.part[thread][i];
      T& out = p.c[split * p.stride_split + matrix * p.stride_c + r * p.c_row + col * p.c_column];
      out = p.accumulate ? out + sum : sum;
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
/// The same product for a library; nothing where one call of it cannot say it. A row-major matrix read column after column is its
/// transpose, and C^T = op(B)^T op(A)^T: the factors change places and keep their `transpose`.
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

/// Runs a library where the machine has one that is worth it, else our own kernels, which split the sum of a product with few blocks among
/// more of them. The choice of the kernel and of the number of shares depends on the shape alone.
template <class Machine>
template <class T>
void KernelBackend<Machine>::gemm(Gemm<T> g) {
  const Index tiles = g.tiles_m() * g.tiles_n() * g.batch, count = g.batch * g.m * g.n;
  if (count == 0) return;
  if (const auto product = column_product(g); product && machine_.product(*product)) return;
  const Index few = std::min(g.m, g.n), many = std::max(g.m, g.n);
  // Tiles read each number less often, where there are enough for the whole device.
  const bool has_few_rows = g.k > 16 && (few <= 8 || (few <= 32 && tiles <= 64));
  const Index rows = few == 1 ? 1 : few <= 4 ? 4 : 8, columns = few <= 4 ? 8 : 16;  // of a block
  const Index blocks = has_few_rows ? (few + rows - 1) / rows * ((many + columns - 1) / columns) * g.batch : tiles;
  const auto launch = [&] {
    const auto run = [&]<int rows_each, int columns_each>() {
      const FewRows<T> p = few_rows(g);
      if (p.few_k == 1 && p.wide_k == 1)
        machine_.blocks(blocks * g.splits, FewRowsProduct<T, rows_each, columns_each, true>{p});
      else
        machine_.blocks(blocks * g.splits, FewRowsProduct<T, rows_each, columns_each, false>{p});
    };
    if (!has_few_rows)
      machine_.blocks(blocks * g.splits, g);
    else if (rows == 1)
      run.template operator()<1, 1>();
    else if (rows == 4)
      run.template operator()<4, 1>();
    else
      run.template operator()<8, 2>();
  };
  const Index shares = g.inner > 1 ? g.inner : g.k / 64, smallest = has_few_rows ? 1024 : 128;
  g.splits = std::clamp<Index>(std::min(256 / blocks, g.inner * g.k / smallest), 1, std::max<Index>(shares, 1));
  if (g.splits == 1) {
    launch();
    return;
  }
  Scratch<T> partial(machine_, g.splits * count);
  const AddShares<T> add{partial.data, g.c, count, g.m, g.n, g.ldc, g.stride_c, g.splits, g.accumulate};
  g.c = partial.data;
  g.ldc = g.n;
  g.stride_c = g.m * g.n;
  g.stride_split = count;
  g.accumulate = false;
  launch();
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
