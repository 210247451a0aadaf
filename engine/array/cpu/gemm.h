// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <cstdint>

namespace reclab::cpu {

/// C (m x n) = op(A) op(B), or += with `accumulate`; all row-major, leading dimensions in elements. Every entry is summed over k in
/// order, with one rounding a term, whatever m and n are: a row's result does not depend on which rows are computed with it.
template <class T>
void gemm(bool transpose_a, bool transpose_b, std::int64_t m, std::int64_t n, std::int64_t k, const T* a, std::int64_t lda, const T* b,
          std::int64_t ldb, T* c, std::int64_t ldc, bool accumulate);

extern template void gemm<float>(bool, bool, std::int64_t, std::int64_t, std::int64_t, const float*, std::int64_t, const float*, std::int64_t,
                                 float*, std::int64_t, bool);
extern template void gemm<double>(bool, bool, std::int64_t, std::int64_t, std::int64_t, const double*, std::int64_t, const double*,
                                  std::int64_t, double*, std::int64_t, bool);

}  // namespace reclab::cpu
