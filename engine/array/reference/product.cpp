// SPDX-License-Identifier: GPL-3.0-or-later
#include "array/reference/reference_backend.h"

namespace reclab::reference {

void ReferenceBackend::matmul(DType type, const MatMul& s, const void* a_, const void* b_, void* c_, bool accumulate) {
  with_real(type, [&](auto zero) {
    using T = decltype(zero);
    for (Index i = 0; i < s.batch; ++i) {
      const T *a = as<T>(a_) + i * s.stride_a, *b = as<T>(b_) + i * s.stride_b;
      T* c = as<T>(c_) + i * s.stride_c;
      const bool onto = accumulate || (s.stride_c == 0 && i > 0);  // products of one result add up
      for (Index row = 0; row < s.m; ++row)
        for (Index column = 0; column < s.n; ++column) {
          double sum = 0.0;
          for (Index l = 0; l < s.k; ++l)
            sum +=
                wide(s.transpose_a ? a[l * s.m + row] : a[row * s.k + l]) * wide(s.transpose_b ? b[column * s.k + l] : b[l * s.n + column]);
          T& to = c[row * s.n + column];
          to = narrow<T>(sum + (onto ? wide(to) : 0.0));
        }
    }
  });
}

void ReferenceBackend::invert_unit_lower(DType type, Index batch, Index n, const void* a_, void* x_) {
  with_real(type, [&](auto zero) {
    using T = decltype(zero);
    // Row i of (I + L) X = I, solved for row i of X.
    for (Index m = 0; m < batch; ++m) {
      const T* a = as<T>(a_) + m * n * n;
      T* x = as<T>(x_) + m * n * n;
      for (Index i = 0; i < n; ++i)
        for (Index j = 0; j < n; ++j) {
          double sum = i == j ? 1.0 : 0.0;
          for (Index l = 0; l < i; ++l) sum -= wide(a[i * n + l]) * wide(x[l * n + j]);
          x[i * n + j] = narrow<T>(sum);
        }
    }
  });
}

}  // namespace reclab::reference
