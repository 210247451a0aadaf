// SPDX-License-Identifier: GPL-3.0-or-later
#include "array/cpu/cpu_backend.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "array/cpu/gemm.h"
#include "array/cpu/processor/scratch.h"
#include "array/cpu/processor/threads.h"
#include "array/cpu/processor/vectors.h"
#include "array/stop.h"

namespace reclab::cpu {

namespace {

bool is_large(const MatMul& shape) { return shape.batch * shape.m * shape.n * shape.k >= std::int64_t{1} << 17; }  // worth threads
/// Whether the right-hand matrix is packed as a whole before it is multiplied with.
bool is_packed(const MatMul& shape) { return is_large(shape) && shape.batch == 1 && shape.m >= 16; }
/// The terms of the sums that are packed at once: of a product over all steps of a sequence, as the gradient of weights is, some of them.
std::int64_t packed_depth(const MatMul& shape) {
  constexpr std::int64_t some = 1024;
  return shape.transpose_a && !shape.transpose_b ? std::min(shape.k, some) : shape.k;
}
/// A tall matrix, transposed, times a narrow one, as in the gradient of the weights of few inputs: nothing need be transposed or packed.
bool is_narrow(const MatMul& shape) { return shape.transpose_a && !shape.transpose_b && shape.batch == 1 && shape.n <= 8 && shape.m >= 16; }

/// C (m x n) = A^T B, columns [from, to) of A (k x m) by columns [j0, j0 + N) of B. Every entry is summed over k in order with one rounding
/// a term, as gemm() does.
template <class T, int N>
void narrow_product(const MatMul& shape, std::int64_t from, std::int64_t to, std::int64_t j0, const T* a, const T* b, T* c,
                    bool accumulate) {
  typedef T V __attribute__((vector_size(vector_bytes), aligned(sizeof(T))));
  constexpr std::int64_t lanes = vector_bytes / sizeof(T);
  const std::int64_t m = shape.m, n = shape.n;
  std::int64_t i = from;
  for (; i + 2 * lanes <= to; i += 2 * lanes) {
    check_stop();
    V sum[N][2] = {};
    if (accumulate)
      for (int j = 0; j < N; ++j)
        for (std::int64_t l = 0; l < 2 * lanes; ++l) sum[j][l / lanes][l % lanes] = c[(i + l) * n + j0 + j];
    for (std::int64_t p = 0; p < shape.k; ++p) {
      const V low = *reinterpret_cast<const V*>(a + p * m + i), high = *reinterpret_cast<const V*>(a + p * m + i + lanes);
      for (int j = 0; j < N; ++j) {
        const T x = b[p * n + j0 + j];
        sum[j][0] += x * low;
        sum[j][1] += x * high;
      }
    }
    for (int j = 0; j < N; ++j)
      for (std::int64_t l = 0; l < 2 * lanes; ++l) c[(i + l) * n + j0 + j] = sum[j][l / lanes][l % lanes];
  }
  for (; i < to; ++i)
    for (int j = 0; j < N; ++j) {
      T sum = accumulate ? c[i * n + j0 + j] : T(0);
      for (std::int64_t p = 0; p < shape.k; ++p) sum = cpu::fused(b[p * n + j0 + j], a[p * m + i], sum);
      c[i * n + j0 + j] = sum;
    }
}
template <class T>
void narrow_product(const MatMul& shape, std::int64_t from, std::int64_t to, const T* a, const T* b, T* c, bool accumulate) {
  std::int64_t j = 0;
  for (; j + 4 <= shape.n; j += 4) narrow_product<T, 4>(shape, from, to, j, a, b, c, accumulate);
  for (; j + 2 <= shape.n; j += 2) narrow_product<T, 2>(shape, from, to, j, a, b, c, accumulate);
  if (j < shape.n) narrow_product<T, 1>(shape, from, to, j, a, b, c, accumulate);
}

}  // namespace

std::size_t CpuBackend::matmul_scratch(DType type, const MatMul& shape) const {
  const bool turned = shape.transpose_a && (type == DType::f32 ? cpu::gemm_turns<float>(shape.n) : cpu::gemm_turns<double>(shape.n));
  std::int64_t entries = 0;
  if (is_packed(shape) && !is_narrow(shape))
    entries =
        cpu::packed_size(packed_depth(shape), shape.n) + (shape.transpose_a ? cpu::packed_rows_size(shape.m, packed_depth(shape)) : 0);
  else if (turned && !is_narrow(shape))
    entries = cpu::thread_count() * shape.m * std::min(shape.k, cpu::gemm_depth);
  return static_cast<std::size_t>(entries) * bytes_of(type);
}

void CpuBackend::matmul(DType type, const MatMul& shape, const void* a, const void* b, void* c, bool accumulate) {
  with_real(type, [&](auto zero) {
    using T = decltype(zero);
    const std::int64_t lda = shape.transpose_a ? shape.m : shape.k, ldb = shape.transpose_b ? shape.k : shape.n;
    /// Rows [row, row + rows) by columns [column, column + columns) of the products [first, last).
    const auto block = [&](std::int64_t first, std::int64_t last, std::int64_t row, std::int64_t rows, std::int64_t column,
                           std::int64_t columns) {
      for (std::int64_t i = first; i < last; ++i)
        cpu::gemm<T>(shape.transpose_a, shape.transpose_b, rows, columns, shape.k,
                     as<T>(a) + i * shape.stride_a + row * (shape.transpose_a ? 1 : lda), lda,
                     as<T>(b) + i * shape.stride_b + column * (shape.transpose_b ? ldb : 1), ldb,
                     as<T>(c) + i * shape.stride_c + row * shape.n + column, shape.n, accumulate || (i > 0 && shape.stride_c == 0));
    };
    // Every entry is summed in the same order however the product is cut.
    constexpr std::int64_t least = 64;
    const bool large = is_large(shape);
    if (is_narrow(shape)) {
      const std::int64_t blocks = large ? (shape.m + least - 1) / least : 1;
      const auto columns = [&](std::int64_t i) {
        narrow_product(shape, i * least, i + 1 == blocks ? shape.m : (i + 1) * least, as<T>(a), as<T>(b), as<T>(c), accumulate);
      };
      if (blocks > 1)
        cpu::parallel(blocks, columns);
      else
        columns(0);
      return;
    }
    if (is_packed(shape)) {
      const std::int64_t deep = packed_depth(shape);
      const cpu::UnsetScratch<T> packed(cpu::packed_size(deep, shape.n)),
          rows(shape.transpose_a ? cpu::packed_rows_size(shape.m, deep) : 0);
      for (std::int64_t from = 0; from < shape.k || from == 0; from += deep) {
        const std::int64_t depth = std::min(deep, shape.k - from);
        cpu::pack(shape.transpose_b, depth, shape.n, as<T>(b) + from * shape.n, packed.data());
        if (shape.transpose_a) cpu::pack_rows(shape.m, depth, as<T>(a) + from * shape.m, rows.data());
        cpu::gemm_packed<T>(shape.m, shape.n, depth, shape.transpose_a ? rows.data() : as<T>(a), shape.transpose_a, packed.data(), nullptr,
                            0, as<T>(c), accumulate || from > 0);
      }
      return;
    }
    if (large && shape.batch >= 4 && shape.stride_c) {
      const std::int64_t parts = std::min<std::int64_t>(16, shape.batch);
      cpu::parallel(parts, [&](std::int64_t i) { block(shape.batch * i / parts, shape.batch * (i + 1) / parts, 0, shape.m, 0, shape.n); });
      return;
    }
    const bool by_columns = shape.n > shape.m;
    const std::int64_t along = by_columns ? shape.n : shape.m, blocks = std::min<std::int64_t>(along / least, 16);
    if (!large || blocks < 2) {
      block(0, shape.batch, 0, shape.m, 0, shape.n);
      return;
    }
    cpu::parallel(blocks, [&](std::int64_t i) {
      const std::int64_t from = along * i / blocks / 32 * 32, to = i + 1 == blocks ? along : along * (i + 1) / blocks / 32 * 32;
      if (by_columns)
        block(0, shape.batch, 0, shape.m, from, to - from);
      else
        block(0, shape.batch, from, to - from, 0, shape.n);
    });
  });
}

void CpuBackend::pack(DType type, std::int64_t k, std::int64_t n, bool transpose, const void* b, void* packed) {
  with_real(type, [&](auto zero) { cpu::pack(transpose, k, n, as<decltype(zero)>(b), as<decltype(zero)>(packed)); });
}

void CpuBackend::matmul_packed(DType type, std::int64_t m, std::int64_t n, std::int64_t k, bool, const void* a, const void*,
                               const void* packed, const void* added, bool by_rows, void* c, bool accumulate) {
  with_real(type, [&](auto zero) {
    using T = decltype(zero);
    cpu::gemm_packed(m, n, k, as<T>(a), false, as<T>(packed), as<T>(added), by_rows ? n : 0, as<T>(c), accumulate);
  });
}

void CpuBackend::row_times_packed(DType type, std::int64_t n, std::int64_t k, const void* a, const void*, const void* packed,
                                  const void* added, void* c, const EntryRanges& entries) {
  with_real(type, [&](auto zero) {
    using T = decltype(zero);
    cpu::row_times_packed(n, k, as<T>(a), as<T>(packed), as<T>(added), as<T>(c), entries);
  });
}

void CpuBackend::matmul_biased(DType type, const MatMul& shape, const void* a, const void* b, const void* bias, void* c) {
  if (shape.transpose_a || !is_packed(shape)) return Backend::matmul_biased(type, shape, a, b, bias, c);
  with_real(type, [&](auto zero) {
    using T = decltype(zero);
    const cpu::UnsetScratch<T> packed(cpu::packed_size(shape.k, shape.n));
    cpu::pack(shape.transpose_b, shape.k, shape.n, as<T>(b), packed.data());
    cpu::gemm_packed(shape.m, shape.n, shape.k, as<T>(a), false, packed.data(), as<T>(bias), 0, as<T>(c), false);
  });
}

void CpuBackend::invert_unit_lower(DType type, std::int64_t batch, std::int64_t n, const void* a_, void* x_) {
  // Panels of rows, each from those above it: with X the inverse of the rows above and A of the panel [L M], its rows are [-M' L X, M'], M'
  // that of I + M.
  constexpr std::int64_t panel = 64, wide = 256;
  with_real(type, [&](auto zero) {
    using T = decltype(zero);
    const T* all = as<T>(a_);
    T* inverse = as<T>(x_);
    std::fill(inverse, inverse + batch * n * n, T(0));
    const auto corner = [&](std::int64_t m, std::int64_t from, std::int64_t to) {  // row i: e_i less the rows above it, as row i of a says
      const T* a = all + m * n * n;
      T* x = inverse + m * n * n;
      for (std::int64_t i = from; i < to; ++i) {
        T* row = x + i * n;
        row[i] = T(1);
        for (std::int64_t l = from; l < i; ++l)
          for (std::int64_t j = from; j <= l; ++j) row[j] -= a[i * n + l] * x[l * n + j];
      }
    };
    for (std::int64_t from = 0; from < n; from += panel) {
      const std::int64_t to = std::min(from + panel, n), rows = to - from, parts = (from + wide - 1) / wide;
      for (std::int64_t m = 0; m < batch; ++m) corner(m, from, to);
      if (!parts) continue;
      cpu::parallel(batch * parts, [&](std::int64_t task) {
        const std::int64_t m = task / parts, first = task % parts * wide, columns = std::min(wide, from - first);
        const T* a = all + m * n * n;
        T* x = inverse + m * n * n;
        const cpu::UnsetScratch<T> seen(rows * columns), negative(rows * rows);
        cpu::gemm<T>(false, false, rows, columns, from - first, a + from * n + first, n, x + first * n + first, n, seen.data(), columns,
                     false);
        for (std::int64_t i = 0; i < rows; ++i)
          for (std::int64_t j = 0; j < rows; ++j) negative.data()[i * rows + j] = -x[(from + i) * n + from + j];
        cpu::gemm<T>(false, false, rows, columns, rows, negative.data(), rows, seen.data(), columns, x + from * n + first, n, false);
      });
    }
  });
}

}  // namespace reclab::cpu
