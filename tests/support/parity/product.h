// SPDX-License-Identifier: GPL-3.0-or-later
// Products of matrices, and the inverse of a triangular one.
#pragma once

#include "parity/parity.h"

namespace reclab::test {

inline void matmul_parity(Backend& other) {
  struct Size {
    std::int64_t batch, m, n, k;
  };
  for (const DType type : real_types)
    for (const Size s :
         {Size{1, 1, 1, 1}, Size{1, 5, 7, 3}, Size{3, 65, 130, 17}, Size{1, 6, 70, 3000}, Size{70, 8, 9, 20}, Size{2, 64, 64, 64},
          Size{1, 4, 4, 0}, Size{1, 31, 33, 32}, Size{3, 33, 31, 61}, Size{1, 1023, 3, 7}, Size{1, 5, 1025, 3}, Size{1, 3, 5, 1024},
          // few rows or columns over long and short sums, and tiles with shares of the sum
          Size{1, 1, 1, 5000}, Size{3, 1, 70, 513}, Size{2, 130, 1, 2100}, Size{1, 9, 300, 257}, Size{1, 40, 20, 2050}, Size{5, 2, 33, 31},
          Size{1, 65, 70, 700}})
      for (const bool ta : {false, true})
        for (const bool tb : {false, true})
          for (const bool accumulate : {false, true})
            for (int sharing = 0; sharing < 3; ++sharing) {  // nothing, B, the result
              const MatMul shape{s.batch, s.m, s.n, s.k, ta, tb, s.m * s.k, sharing == 1 ? 0 : s.k * s.n, sharing == 2 ? 0 : s.m * s.n};
              Parity parity(other, 6);
              const std::size_t a = parity.array(type, s.batch * s.m * s.k), b = parity.array(type, s.batch * s.k * s.n),
                                c = parity.array(type, s.batch * s.m * s.n);
              try {
                parity.run([&](Backend& backend, const Parity::Pointers& p, Parity::Host&) {
                  backend.matmul(type, shape, p[a], p[b], p[c], accumulate);
                  if (s.batch == 1 && !ta) {
                    void* packed = backend.allocate(static_cast<std::size_t>(s.k * ((s.n + 31) / 32 * 32)) * bytes_of(type));
                    backend.pack(type, s.k, s.n, tb, p[b], packed);
                    backend.matmul_packed(type, s.m, s.n, s.k, tb, p[a], p[b], packed, nullptr, false, p[c], true);
                    backend.finish();
                    backend.release(packed);
                  }
                  return 0;
                });
              } catch (const Failure& failure) {
                throw Failure(name_of(type) + ", " + std::to_string(s.batch) + " of " + std::to_string(s.m) + " x " + std::to_string(s.n) +
                              " over " + std::to_string(s.k) + (ta ? ", A^T" : "") + (tb ? ", B^T" : "") +
                              (sharing == 1   ? ", one B"
                               : sharing == 2 ? ", one C"
                                              : "") +
                              ": " + failure.what());
              }
            }
}

inline void inverse_parity(Backend& other) {
  for (const DType type : real_types)
    for (const std::int64_t n : {1, 2, 31, 32, 33, 64, 65, 128, 330})
      for (const std::int64_t batch : n > 64 ? std::vector<std::int64_t>{1, 3} : std::vector<std::int64_t>{1, 3, 33}) {
        Parity parity(other, 17);
        // The upper part and the diagonal are not looked at.
        const double far = n > 64 ? 20.0 / static_cast<double>(n) : 0.3;  // the inverse grows with the size
        const std::size_t a = parity.array(type, batch * n * n, -far, far), x = parity.array(type, batch * n * n);
        parity.run([&](Backend& b, const Parity::Pointers& p, Parity::Host&) {
          b.invert_unit_lower(type, batch, n, p[a], p[x]);
          return 0;
        });
      }
}

inline std::vector<ParityCase> product_parity_cases() {
  return {{"product: matrix products, transposed, batched and shared", matmul_parity},
          {"product: the inverse of I plus a strictly lower triangle", inverse_parity}};
}

}  // namespace reclab::test
