// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "array/backend.h"
#include "array/stop.h"

namespace reclab::cpu {

/// The terms of a sum that are added at once.
inline constexpr std::int64_t gemm_depth = 256;
/// Whether a column-wise A is turned into rows first: it would be read with large strides once for every 128 bytes of columns of B.
template <class T>
constexpr bool gemm_turns(std::int64_t n) {
  return n * static_cast<std::int64_t>(sizeof(T)) > 128;
}

/// The multiply-add of the vectors: one rounding where the processor has such an instruction.
template <class T>
T fused(T x, T y, T sum) {
#ifdef __FMA__
  return std::fma(x, y, sum);
#else
  return x * y + sum;
#endif
}

/// C (m x n) = op(A) op(B), or += with `accumulate`; all row-major, leading dimensions in elements. Every entry is summed over k in order,
/// with one rounding a term, for all m and n: a row's result does not depend on which rows are computed with it.
template <class T>
void gemm(bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k, const T* a, std::int64_t lda, const T* b,
          std::int64_t ldb, T* c, std::int64_t ldc, bool accumulate);

/// B (k x n) in panels of columns, for products that are made with it again and again: packed_size(k, n) entries.
constexpr std::int64_t packed_size(std::int64_t k, std::int64_t n) { return k * ((n + 31) / 32 * 32); }
template <class T>
void pack(bool transpose, std::int64_t k, std::int64_t n, const T* b, T* packed);
/// A^T (m x k) of an A (k x m), in panels of as many rows as are multiplied with together: packed_rows_size(m, k) entries.
inline constexpr std::int64_t packed_rows = 8;
constexpr std::int64_t packed_rows_size(std::int64_t m, std::int64_t k) { return (m + packed_rows - 1) / packed_rows * packed_rows * k; }
template <class T>
void pack_rows(std::int64_t m, std::int64_t k, const T* a, T* packed);
/// C (m x n) = A (m x k) times a B that pack() packed, or += with `accumulate`, rows one after another; on all processors where it is worth
/// it. `added` (null: nothing) comes last, one row for all or rows `added_row` entries apart. If `by_panels`, pack_rows() packed A. The
/// same bits as gemm() and an addition.
template <class T>
void gemm_packed(std::int64_t m, std::int64_t n, std::int64_t k, const T* a, bool by_panels, const T* packed, const T* added,
                 std::int64_t added_row, T* c, bool accumulate);

/// Some entries of that for one row, on the calling thread.
template <class T>
void row_times_packed(std::int64_t n, std::int64_t k, const T* a, const T* packed, const T* added, T* c, const EntryRanges& entries);

/// The transpose of a matrix.
template <class T>
void turn(std::int64_t rows, std::int64_t columns, const T* x, T* y) {
  constexpr std::int64_t tile = 16;
  for (std::int64_t i0 = 0; i0 < rows; i0 += tile, check_stop())
    for (std::int64_t j0 = 0; j0 < columns; j0 += tile)
      for (std::int64_t j = j0; j < std::min(columns, j0 + tile); ++j)
        for (std::int64_t i = i0; i < std::min(rows, i0 + tile); ++i) y[j * rows + i] = x[i * columns + j];
}

extern template void pack<float>(bool, std::int64_t, std::int64_t, const float*, float*);
extern template void pack<double>(bool, std::int64_t, std::int64_t, const double*, double*);
extern template void pack_rows<float>(std::int64_t, std::int64_t, const float*, float*);
extern template void pack_rows<double>(std::int64_t, std::int64_t, const double*, double*);
extern template void gemm_packed<float>(std::int64_t, std::int64_t, std::int64_t, const float*, bool, const float*, const float*,
                                        std::int64_t, float*, bool);
extern template void gemm_packed<double>(std::int64_t, std::int64_t, std::int64_t, const double*, bool, const double*, const double*,
                                         std::int64_t, double*, bool);
extern template void row_times_packed<float>(std::int64_t, std::int64_t, const float*, const float*, const float*, float*,
                                             const EntryRanges&);
extern template void row_times_packed<double>(std::int64_t, std::int64_t, const double*, const double*, const double*, double*,
                                              const EntryRanges&);
extern template void gemm<float>(bool, bool, std::int64_t, std::int64_t, std::int64_t, const float*, std::int64_t, const float*,
                                 std::int64_t, float*, std::int64_t, bool);
extern template void gemm<double>(bool, bool, std::int64_t, std::int64_t, std::int64_t, const double*, std::int64_t, const double*,
                                  std::int64_t, double*, std::int64_t, bool);

}  // namespace reclab::cpu
