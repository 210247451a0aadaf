// SPDX-License-Identifier: GPL-3.0-or-later
#include "array/cpu/gemm.h"

#include <algorithm>
#include <cmath>
#include <type_traits>
#include <vector>

#include "array/cpu/processor/scratch.h"
#include "array/cpu/processor/threads.h"
#include "array/cpu/processor/vectors.h"
#include "array/stop.h"

namespace reclab::cpu {
namespace {

// A tile of rows by two vectors of C is held in registers while k runs; B is packed in panels of 128 bytes of columns.
constexpr int row_tile = vector_registers >= 32 ? 8 : 4;
template <class T>
constexpr int column_tile = static_cast<int>(128 / sizeof(T));

template <class T>
struct Lanes {
  typedef T type __attribute__((vector_size(vector_bytes), aligned(sizeof(T))));
};

/// The sums of a tile whose entries will be written, not added to: their lines are asked for, since a store that misses the caches holds up
/// those behind it.
template <class T, int Rows, int Vectors>
[[gnu::always_inline]] inline void start_at_zero(typename Lanes<T>::type (&sum)[Rows][Vectors], T* to, std::int64_t ldc) {
  constexpr int lanes = vector_bytes / sizeof(T), of_line = 64 / vector_bytes;
  // In registers: a loop that is not unrolled first would become a call of memset.
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i) {
#pragma GCC unroll 8
    for (int w = 0; w < Vectors; ++w) sum[i][w] = typename Lanes<T>::type{};
#pragma GCC unroll 8
    for (int w = 0; w < Vectors; w += of_line) __builtin_prefetch(to + i * ldc + w * lanes, 1);
  }
}

/// Asks for the lines of a tile's entries, which are read later.
template <class T, int Rows, int Vectors>
[[gnu::always_inline]] inline void ask_for(const T* entries, std::int64_t row) {
  constexpr int lanes = vector_bytes / sizeof(T), of_line = 64 / vector_bytes;
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 8
    for (int w = 0; w < Vectors; w += of_line) __builtin_prefetch(entries + i * row + w * lanes);
}

/// Sums that begin as a tile's entries, or with them added: `here` columns of them, and zeros where the tile goes on.
template <class T, int Rows, int Vectors, bool Added>
[[gnu::always_inline]] inline void take(typename Lanes<T>::type (&sum)[Rows][Vectors], const T* entries, std::int64_t row,
                                        std::int64_t here) {
  using V = typename Lanes<T>::type;
  constexpr std::int64_t lanes = vector_bytes / sizeof(T), wide = Vectors * lanes;
  T whole[Rows * wide];
  if (here < wide) {
    for (std::int64_t i = 0; i < Rows; ++i)
      for (std::int64_t j = 0; j < wide; ++j) whole[i * wide + j] = j < here ? entries[i * row + j] : T(0);
    entries = whole;
    row = wide;
  }
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 8
    for (int w = 0; w < Vectors; ++w) {
      const V x = *reinterpret_cast<const V*>(entries + i * row + w * lanes);
      sum[i][w] = Added ? sum[i][w] + x : x;
    }
}

template <class T, int Rows, int Vectors>
[[gnu::always_inline]] inline void put(const typename Lanes<T>::type (&sum)[Rows][Vectors], T* entries, std::int64_t row,
                                       std::int64_t here) {
  using V = typename Lanes<T>::type;
  constexpr std::int64_t lanes = vector_bytes / sizeof(T), wide = Vectors * lanes;
  T whole[Rows * wide];
  const bool edge = here < wide;
  T* to = edge ? whole : entries;
  const std::int64_t to_row = edge ? wide : row;
#pragma GCC unroll 16
  for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 8
    for (int w = 0; w < Vectors; ++w) *reinterpret_cast<V*>(to + i * to_row + w * lanes) = sum[i][w];
  for (std::int64_t i = 0; edge && i < Rows; ++i)
    for (std::int64_t j = 0; j < here; ++j) entries[i * row + j] = whole[i * wide + j];
}

/// Columns of a row-wise A, one after the other: `Rows` numbers of each. Every fourth row has a pointer of its own and the others lie by
/// the same two distances from those, so that the addresses of 16 rows stay in registers.
template <class T, int Rows>
class RowWise {
 public:
  RowWise(const T* a, std::int64_t row) : row_(row), three_(3 * row) {
    for (int i = 0; i < groups; ++i) first_[i] = a + 4 * i * row;
  }
  T operator[](int i) const { return first_[i / 4][i % 4 == 3 ? three_ : i % 4 * row_]; }
  void next() {
    for (const T*& one : first_) ++one;
  }

 private:
  static constexpr int groups = (Rows + 3) / 4;
  const T* first_[groups];
  std::int64_t row_, three_;
};
template <class T>
class ColumnWise {
 public:
  ColumnWise(const T* a, std::int64_t column) : at_(a), column_(column) {}
  T operator[](int i) const { return at_[i]; }
  void next() { at_ += column_; }

 private:
  const T* at_;
  std::int64_t column_;
};

template <class T, int Rows, int Vectors, class Columns>
void tile(std::int64_t k, Columns a, const T* panel, std::int64_t ldp, T* c, std::int64_t ldc, std::int64_t here, bool accumulate) {
  using V = typename Lanes<T>::type;
  constexpr int lanes = vector_bytes / sizeof(T);
  V sum[Rows][Vectors];
  if (accumulate)
    take<T, Rows, Vectors, false>(sum, c, ldc, here);
  else
    start_at_zero<T, Rows, Vectors>(sum, c, ldc);
  for (std::int64_t p = 0; p < k; ++p, a.next(), panel += ldp) {
    V b[Vectors];
#pragma GCC unroll 8
    for (int w = 0; w < Vectors; ++w) b[w] = *reinterpret_cast<const V*>(panel + w * lanes);
#pragma GCC unroll 16
    for (int i = 0; i < Rows; ++i)
#pragma GCC unroll 8
      for (int w = 0; w < Vectors; ++w) sum[i][w] += a[i] * b[w];
  }
  put<T, Rows, Vectors>(sum, c, ldc, here);
}

/// `rows` rows of A, which lie `a_row` entries apart and their columns `a_step`, times a panel; one of both is 1.
template <class T, int Vectors>
void tiles(std::int64_t rows, std::int64_t k, const T* a, std::int64_t a_row, std::int64_t a_step, const T* panel, std::int64_t ldp, T* c,
           std::int64_t ldc, std::int64_t columns, bool accumulate) {
  constexpr std::int64_t wide = Vectors * vector_bytes / sizeof(T);
  std::int64_t i = 0;
  const auto some = [&](auto count) {
    for (std::int64_t j0 = 0; j0 < columns; j0 += wide) {
      const std::int64_t here = std::min(wide, columns - j0);
      if (a_step == 1)
        tile<T, count, Vectors>(k, RowWise<T, count>(a + i * a_row, a_row), panel + j0, ldp, c + i * ldc + j0, ldc, here, accumulate);
      else
        tile<T, count, Vectors>(k, ColumnWise<T>(a + i, a_step), panel + j0, ldp, c + i * ldc + j0, ldc, here, accumulate);
    }
    i += count;
  };
  if constexpr (Vectors == 1)  // more rows, so that no sum waits for the one before it
    while (i + 2 * row_tile <= rows) some(std::integral_constant<int, 2 * row_tile>{});
  while (i + row_tile <= rows) some(std::integral_constant<int, row_tile>{});
  switch (rows - i) {
    case 7: some(std::integral_constant<int, 7>{}); break;
    case 6: some(std::integral_constant<int, 6>{}); break;
    case 5: some(std::integral_constant<int, 5>{}); break;
    case 4: some(std::integral_constant<int, 4>{}); break;
    case 3: some(std::integral_constant<int, 3>{}); break;
    case 2: some(std::integral_constant<int, 2>{}); break;
    case 1: some(std::integral_constant<int, 1>{}); break;
    default: break;
  }
}

// One row of A against a B whose columns are contiguous: no packing, the sum of each column still runs over k in order.
template <class T>
void row_times_matrix(std::int64_t n, std::int64_t k, const T* a, std::int64_t a_step, const T* b, std::int64_t ldb, T* c) {
  using V = typename Lanes<T>::type;
  constexpr int lanes = vector_bytes / sizeof(T);
  constexpr int wide = 8;
  std::int64_t j = 0;
  for (; j + wide * lanes <= n; j += wide * lanes) {
    V sum[wide];
    for (int w = 0; w < wide; ++w) sum[w] = *reinterpret_cast<const V*>(c + j + w * lanes);
    for (std::int64_t p = 0; p < k; ++p) {
      const T x = a[p * a_step];
      for (int w = 0; w < wide; ++w) sum[w] += x * *reinterpret_cast<const V*>(b + p * ldb + j + w * lanes);
    }
    for (int w = 0; w < wide; ++w) *reinterpret_cast<V*>(c + j + w * lanes) = sum[w];
  }
  for (; j + lanes <= n; j += lanes) {
    V sum = *reinterpret_cast<const V*>(c + j);
    for (std::int64_t p = 0; p < k; ++p) sum += a[p * a_step] * *reinterpret_cast<const V*>(b + p * ldb + j);
    *reinterpret_cast<V*>(c + j) = sum;
  }
  for (; j < n; ++j) {
    T sum = c[j];
    for (std::int64_t p = 0; p < k; ++p) sum = fused(a[p * a_step], b[p * ldb + j], sum);
    c[j] = sum;
  }
}

// `Rows` rows against `depth` rows of `Panels` packed panels, which are `panel` entries apart; with Panels = 0, the first vector of one
// panel. Rows lie one after another, `lda` entries apart, or side by side in a panel of their own. `added`, where given, is added last,
// rows `added_row` entries apart.
template <class T, int Rows, int Panels, bool SideBySide>
void panel_tile(std::int64_t depth, const T* a, std::int64_t lda, const T* packed, std::int64_t panel, T* c, std::int64_t ldc,
                std::int64_t columns, bool accumulate, const T* added, std::int64_t added_row) {
  using V = typename Lanes<T>::type;
  constexpr int ahead = 8;  // rows of a panel, which is read once from the second cache where there are few rows of A
  constexpr int lanes = vector_bytes / sizeof(T), nr = column_tile<T>, vectors = nr / lanes;   // of a panel
  constexpr int parts = Panels == 0 ? 1 : Panels == 4 ? 8 : 2 * Panels, wide = parts * lanes;  // a part of a panel, or of several
  for (std::int64_t j0 = 0; j0 < columns; j0 += wide) {
    V sum[Rows][parts];
    T* to = c + j0;
    const T* from = packed + j0 / nr * panel + j0 % nr;
    const std::int64_t here = std::min<std::int64_t>(wide, columns - j0);
    if (accumulate)
      take<T, Rows, parts, false>(sum, to, ldc, here);
    else
      start_at_zero<T, Rows, parts>(sum, to, ldc);
    if (added) ask_for<T, Rows, parts>(added + j0, added_row);
    for (std::int64_t p = 0; p < depth; ++p) {
      V b[parts];
#pragma GCC unroll 8
      for (int w = 0; w < parts; ++w) {
        const T* at = from + w / vectors * panel + p * nr + w % vectors * lanes;
        b[w] = *reinterpret_cast<const V*>(at);
        if constexpr (Rows > 1) __builtin_prefetch(at + ahead * nr);  // with one it would cost as much as the load itself
      }
#pragma GCC unroll 16
      for (int i = 0; i < Rows; ++i) {
        const T x = SideBySide ? a[p * packed_rows + i] : a[i * lda + p];
#pragma GCC unroll 8
        for (int w = 0; w < parts; ++w) sum[i][w] += x * b[w];
      }
    }
    if (added) take<T, Rows, parts, true>(sum, added + j0, added_row, here);
    put<T, Rows, parts>(sum, to, ldc, here);
  }
}

/// Columns of a panel: B^T's rows p of [0, depth), entries j of [0, columns), from b[j * ldb + p]; four by four in registers.
template <class T>
void turn_into_panel(std::int64_t depth, std::int64_t columns, const T* b, std::int64_t ldb, T* to, std::int64_t ldp) {
  typedef T V __attribute__((vector_size(4 * sizeof(T)), aligned(sizeof(T))));
  std::int64_t j = 0;
  for (; j + 4 <= columns; j += 4) {
    std::int64_t p = 0;
    for (; p + 4 <= depth; p += 4) {
      V row[4];
      for (int i = 0; i < 4; ++i) row[i] = *reinterpret_cast<const V*>(b + (j + i) * ldb + p);
      const V low[] = {__builtin_shufflevector(row[0], row[1], 0, 4, 1, 5), __builtin_shufflevector(row[2], row[3], 0, 4, 1, 5)};
      const V high[] = {__builtin_shufflevector(row[0], row[1], 2, 6, 3, 7), __builtin_shufflevector(row[2], row[3], 2, 6, 3, 7)};
      *reinterpret_cast<V*>(to + p * ldp + j) = __builtin_shufflevector(low[0], low[1], 0, 1, 4, 5);
      *reinterpret_cast<V*>(to + (p + 1) * ldp + j) = __builtin_shufflevector(low[0], low[1], 2, 3, 6, 7);
      *reinterpret_cast<V*>(to + (p + 2) * ldp + j) = __builtin_shufflevector(high[0], high[1], 0, 1, 4, 5);
      *reinterpret_cast<V*>(to + (p + 3) * ldp + j) = __builtin_shufflevector(high[0], high[1], 2, 3, 6, 7);
    }
    for (; p < depth; ++p)
      for (int i = 0; i < 4; ++i) to[p * ldp + j + i] = b[(j + i) * ldb + p];
  }
  for (; j < columns; ++j)
    for (std::int64_t p = 0; p < depth; ++p) to[p * ldp + j] = b[j * ldb + p];
}

}  // namespace

template <class T>
void pack(bool transpose, std::int64_t k, std::int64_t n, const T* b, T* packed) {
  constexpr int nr = column_tile<T>;
  for (std::int64_t j0 = 0; j0 < n; j0 += nr, packed += k * nr) {
    check_stop();
    const std::int64_t columns = std::min<std::int64_t>(nr, n - j0);
    if (transpose) turn_into_panel(k, columns, b + j0 * k, k, packed, nr);
    for (std::int64_t p = 0; p < k; ++p) {
      if (!transpose) std::copy(b + p * n + j0, b + p * n + j0 + columns, packed + p * nr);
      std::fill(packed + p * nr + columns, packed + (p + 1) * nr, T(0));
    }
  }
}

template <class T>
void pack_rows(std::int64_t m, std::int64_t k, const T* a, T* packed) {
  constexpr std::int64_t together = 64;  // rows of a, so that the working set fits the nearest cache
  for (std::int64_t p0 = 0; p0 < k; p0 += together) {
    check_stop();
    const std::int64_t p1 = std::min(k, p0 + together);
    for (std::int64_t i = 0; i < m; i += packed_rows) {
      T* to = packed + i * k;
      if (i + packed_rows <= m) {
        for (std::int64_t p = p0; p < p1; ++p)
          for (std::int64_t j = 0; j < packed_rows; ++j) to[p * packed_rows + j] = a[p * m + i + j];
      } else {
        for (std::int64_t p = p0; p < p1; ++p)
          for (std::int64_t j = 0; j < packed_rows; ++j) to[p * packed_rows + j] = i + j < m ? a[p * m + i + j] : T(0);
      }
    }
  }
}

namespace {

/// C = A times a packed B, as gemm_packed() has it, in blocks that threads can make.
template <class T>
struct PackedProduct {
  std::int64_t m, n, k;
  const T* a;
  bool by_panels;
  const T *packed, *added;
  std::int64_t added_row;
  T* c;
  bool accumulate;

  /// Rows [row, row + rows) by panels [first, last). One or two rows take up to four panels together, so that no sum waits for the one
  /// before it.
  void block(std::int64_t row, std::int64_t rows, std::int64_t first, std::int64_t last) const {
    constexpr std::int64_t nr = column_tile<T>, deep = 512, one_vector = vector_bytes / sizeof(T);
    for (std::int64_t p0 = 0; p0 < k; p0 += deep) {
      check_stop();
      const std::int64_t depth = std::min(deep, k - p0);
      const bool onto = accumulate || p0 > 0, at_last = p0 + depth == k;
      for (std::int64_t panel = first; panel < last;) {
        const T* from = packed + panel * k * nr + p0 * nr;
        const T* of_panel = added && at_last ? added + panel * nr : nullptr;
        const auto rows_by = [&](auto together, auto wide) {
          const std::int64_t columns = std::min<std::int64_t>(n - panel * nr, std::max<int>(1, wide) * nr);
          std::int64_t i = row;
          const auto tile_of = [&](auto count) {
            T* to = c + i * n + panel * nr;
            const T* more = of_panel ? of_panel + i * added_row : nullptr;
            if (by_panels)
              panel_tile<T, count, wide, true>(depth, a + i / packed_rows * packed_rows * k + p0 * packed_rows + i % packed_rows, 0, from,
                                               k * nr, to, n, columns, onto, more, added_row);
            else
              panel_tile<T, count, wide, false>(depth, a + i * k + p0, k, from, k * nr, to, n, columns, onto, more, added_row);
            i += count;
          };
          while (i + together <= row + rows) tile_of(together);
          if constexpr (together > 1) {
            switch (row + rows - i) {
              case 7: tile_of(std::integral_constant<int, 7>{}); break;
              case 6: tile_of(std::integral_constant<int, 6>{}); break;
              case 5: tile_of(std::integral_constant<int, 5>{}); break;
              case 4: tile_of(std::integral_constant<int, 4>{}); break;
              case 3: tile_of(std::integral_constant<int, 3>{}); break;
              case 2: tile_of(std::integral_constant<int, 2>{}); break;
              case 1: tile_of(std::integral_constant<int, 1>{}); break;
              default: break;
            }
          }
          panel += std::max<int>(1, wide);
        };
        if (m <= 2 && panel + 4 <= last)
          rows_by(std::integral_constant<int, 1>{}, std::integral_constant<int, 4>{});
        else if (m <= 2 && panel + 2 <= last)
          rows_by(std::integral_constant<int, 1>{}, std::integral_constant<int, 2>{});
        else if (m <= 2)
          rows_by(std::integral_constant<int, 1>{}, std::integral_constant<int, 1>{});
        else if (n - panel * nr <= one_vector)
          rows_by(std::integral_constant<int, row_tile>{}, std::integral_constant<int, 0>{});
        else
          rows_by(std::integral_constant<int, row_tile>{}, std::integral_constant<int, 1>{});
      }
    }
    if (k == 0)
      for (std::int64_t i = row; i < row + rows; ++i)
        for (std::int64_t j = first * nr; j < std::min(n, last * nr); ++j)
          c[i * n + j] = (accumulate ? c[i * n + j] : T(0)) + (added ? added[i * added_row + j] : T(0));
  }
};

}  // namespace

template <class T>
void gemm_packed(std::int64_t m, std::int64_t n, std::int64_t k, const T* a, bool by_panels, const T* packed, const T* added,
                 std::int64_t added_row, T* c, bool accumulate) {
  static_assert(row_tile <= packed_rows && packed_rows % row_tile == 0);
  constexpr std::int64_t row_block = 96;
  static_assert(row_block % packed_rows == 0);
  const PackedProduct<T> product{m, n, k, a, by_panels, packed, added, added_row, c, accumulate};
  const std::int64_t panels = (n + column_tile<T> - 1) / column_tile<T>;
  constexpr std::int64_t worth_threads = std::int64_t{1} << 16;
  const std::int64_t blocks = (m + row_block - 1) / row_block, groups = panels / 4, threads = thread_count();
  if (m * n * k >= worth_threads && blocks >= 2 * threads) {
    parallel(blocks, [&](std::int64_t i) { product.block(i * row_block, std::min(row_block, m - i * row_block), 0, panels); });
  } else if (m * n * k >= worth_threads && groups >= 2) {
    // A thread's part of the matrix is the same at every call, so it stays in that processor's own cache.
    const std::int64_t parts = std::min(groups, m * n * k < (std::int64_t{1} << 22) ? threads : 4 * threads);
    parallel(parts,
             [&](std::int64_t i) { product.block(0, m, groups * i / parts * 4, i + 1 == parts ? panels : groups * (i + 1) / parts * 4); });
  } else {
    for (std::int64_t i = 0; i < blocks; ++i) product.block(i * row_block, std::min(row_block, m - i * row_block), 0, panels);
  }
}

namespace {

/// A row against `Panels` packed panels that are `panel` entries apart, whose results, and what is added to them, are `apart` entries
/// apart.
template <class T, int Panels>
void row_by_panels(std::int64_t k, const T* a, const T* packed, std::int64_t panel, const T* added, T* c, std::int64_t apart) {
  using V = typename Lanes<T>::type;
  constexpr int lanes = vector_bytes / sizeof(T), nr = column_tile<T>, vectors = nr / lanes;
  V sum[Panels][vectors]{};
  for (std::int64_t p = 0; p < k; ++p) {
    const T x = a[p];
#pragma GCC unroll 8
    for (int i = 0; i < Panels; ++i)
#pragma GCC unroll 8
      for (int w = 0; w < vectors; ++w) {
        const T* at = packed + i * panel + p * nr + w * lanes;
        sum[i][w] += x * *reinterpret_cast<const V*>(at);
      }
  }
#pragma GCC unroll 8
  for (int i = 0; i < Panels; ++i)
#pragma GCC unroll 8
    for (int w = 0; w < vectors; ++w) {
      const std::int64_t at = i * apart + w * lanes;
      if (added) sum[i][w] += *reinterpret_cast<const V*>(added + at);
      *reinterpret_cast<V*>(c + at) = sum[i][w];
    }
}

}  // namespace

template <class T>
void row_times_packed(std::int64_t n, std::int64_t k, const T* a, const T* packed, const T* added, T* c, const EntryRanges& entries) {
  constexpr std::int64_t nr = column_tile<T>, together = 4;  // panels: the sums of one alone would wait for each other
  const auto [from, to, times, apart, backwards] = entries;
  const auto in_turn = [backwards](std::int64_t number, const auto& make) {
    for (std::int64_t i = 0; i < number; ++i) make(backwards ? number - 1 - i : i);
  };
  const std::int64_t panels = (to - from + nr - 1) / nr;
  std::int64_t done = 0;
  if (panels < together && (to - from) % nr == 0 && from % nr == 0 && apart % nr == 0) {  // then those of the parts
    const auto rows_by = [&](auto parts) {
      const std::int64_t groups = (times - done) / parts;
      in_turn(groups * panels, [&](std::int64_t i) {
        const std::int64_t j = from + (done + i / panels * parts) * apart + i % panels * nr;
        row_by_panels<T, parts>(k, a, packed + j * k, apart * k, added ? added + j : nullptr, c + j, apart);
      });
      done += groups * parts;
    };
    rows_by(std::integral_constant<int, 4>{});
    rows_by(std::integral_constant<int, 3>{});
    rows_by(std::integral_constant<int, 2>{});
  }
  const PackedProduct<T> product{1, n, k, a, false, packed, added, 0, c, false};
  const std::int64_t groups = (panels + together - 1) / together;
  in_turn((times - done) * groups, [&](std::int64_t i) {
    const std::int64_t first = (from + (done + i / groups) * apart) / nr, group = i % groups * together;
    product.block(0, 1, first + group, first + std::min(panels, group + together));
  });
}

template void row_times_packed<float>(std::int64_t, std::int64_t, const float*, const float*, const float*, float*, const EntryRanges&);
template void row_times_packed<double>(std::int64_t, std::int64_t, const double*, const double*, const double*, double*,
                                       const EntryRanges&);
template void pack<float>(bool, std::int64_t, std::int64_t, const float*, float*);
template void pack<double>(bool, std::int64_t, std::int64_t, const double*, double*);
template void pack_rows<float>(std::int64_t, std::int64_t, const float*, float*);
template void pack_rows<double>(std::int64_t, std::int64_t, const double*, double*);
template void gemm_packed<float>(std::int64_t, std::int64_t, std::int64_t, const float*, bool, const float*, const float*, std::int64_t,
                                 float*, bool);
template void gemm_packed<double>(std::int64_t, std::int64_t, std::int64_t, const double*, bool, const double*, const double*, std::int64_t,
                                  double*, bool);

template <class T>
void gemm(bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k, const T* a, std::int64_t lda, const T* b,
          std::int64_t ldb, T* c, std::int64_t ldc, bool accumulate) {
  const std::int64_t a_row = transpose_a ? 1 : lda, a_step = transpose_a ? lda : 1;
  const bool by_row = !transpose_b && (m <= 3 || k == 1);
  if (!accumulate && (by_row || k == 0))
    for (std::int64_t i = 0; i < m; ++i) std::fill(c + i * ldc, c + i * ldc + n, T(0));
  if (by_row) {
    for (std::int64_t i = 0; i < m; ++i) row_times_matrix(n, k, a + i * a_row, a_step, b, ldb, c + i * ldc);
    return;
  }
  constexpr int nr = column_tile<T>;
  constexpr std::int64_t lanes = vector_bytes / sizeof(T), near = 16384 / sizeof(T);  // so many entries stay in the nearest cache
  thread_local std::vector<T> packed_b(static_cast<std::size_t>(gemm_depth * nr));    // of one size for all products
  const bool by_rows = transpose_a && m >= row_tile && gemm_turns<T>(n);
  const UnsetScratch<T> packed_a(by_rows ? m * std::min(k, gemm_depth) : 0);
  for (std::int64_t p0 = 0; p0 < k; p0 += gemm_depth) {
    const std::int64_t depth = std::min(gemm_depth, k - p0);
    const T* rows = a + p0 * a_step;
    std::int64_t rows_row = a_row, rows_step = a_step;
    if (by_rows) {
      for (std::int64_t p = 0; p < depth; ++p)
        for (std::int64_t i = 0; i < m; ++i) packed_a.data()[i * depth + p] = a[i + (p0 + p) * lda];
      rows = packed_a.data();
      rows_row = depth;
      rows_step = 1;
    }
    for (std::int64_t j0 = 0; j0 < n; j0 += nr) {
      check_stop();
      const std::int64_t columns = std::min<std::int64_t>(nr, n - j0);
      const T* panel = packed_b.data();
      std::int64_t ldp = nr;
      if (!transpose_b && columns % lanes == 0 && ldb <= near && depth * ldb <= near) {  // it lies as a panel does
        panel = b + p0 * ldb + j0;
        ldp = ldb;
      } else {
        if (transpose_b)
          turn_into_panel(depth, columns, b + j0 * ldb + p0, ldb, packed_b.data(), nr);
        else
          for (std::int64_t p = 0; p < depth; ++p)
            std::copy(b + (p0 + p) * ldb + j0, b + (p0 + p) * ldb + j0 + columns, packed_b.data() + p * nr);
        for (std::int64_t p = 0; columns < nr && p < depth; ++p)
          std::fill(packed_b.data() + p * nr + columns, packed_b.data() + (p + 1) * nr, T(0));
      }
      if (columns <= lanes)
        tiles<T, 1>(m, depth, rows, rows_row, rows_step, panel, ldp, c + j0, ldc, columns, accumulate || p0 > 0);
      else
        tiles<T, 2>(m, depth, rows, rows_row, rows_step, panel, ldp, c + j0, ldc, columns, accumulate || p0 > 0);
    }
  }
}

template void gemm<float>(bool, bool, std::int64_t, std::int64_t, std::int64_t, const float*, std::int64_t, const float*, std::int64_t,
                          float*, std::int64_t, bool);
template void gemm<double>(bool, bool, std::int64_t, std::int64_t, std::int64_t, const double*, std::int64_t, const double*, std::int64_t,
                           double*, std::int64_t, bool);

}  // namespace reclab::cpu
