// SPDX-License-Identifier: GPL-3.0-or-later
// Sums over axes, norms and exponents.
#pragma once

#include "parity/parity.h"

namespace reclab::test {

inline void sum_parity(Backend& other) {
  struct Size {
    std::int64_t outer, n, inner;
  };
  for (const DType type : every_type)
    for (const Size s : {Size{1, 1, 1}, Size{3, 7, 5}, Size{1, 20000, 1}, Size{2, 3000, 3}, Size{400, 70, 1}, Size{4, 1, 6},
                         Size{31, 32, 33}, Size{1, 1023, 7}, Size{7, 1024, 1}, Size{3, 1025, 5}, Size{1025, 31, 1}, Size{61, 1, 1023}}) {
      Parity parity(other, 5);
      const std::size_t x = parity.array(type, s.outer * s.n * s.inner, 0.0, 1.0), y = parity.array(type, s.outer * s.inner),
                        gx = parity.array(type, s.outer * s.n * s.inner);
      parity.run(
          [&](Backend& b, const Parity::Pointers& p, Parity::Host&) {
            b.sum(type, s.outer, s.n, s.inner, 0.25, p[x], p[y]);
            b.sum_adjoint(type, s.outer, s.n, s.inner, -2.0, p[y], p[gx]);
            return 0;
          },
          0, real_of(type) == DType::f32 ? 1e-4 : 0.0);
    }
}

/// Rows of one entry, and rows of floats whose squares are out of range.
inline void norm_parity(Backend& other) {
  struct Size {
    std::int64_t rows, n;
  };
  for (const DType type : real_types)
    for (const Size s : {Size{1, 1}, Size{3, 7}, Size{400, 64}, Size{2, 1025}, Size{1300, 5}})
      for (const double size : {1.0, type == DType::f32 ? 1e30 : 1e100})
        for (const bool centred : {false, true})
          for (const bool weighted : {false, true}) {
            Parity parity(other, 21);
            const std::size_t x = parity.array(type, s.rows * s.n, -size, size), weight = parity.array(type, s.n),
                              bias = parity.array(type, s.n), y = parity.array(type, s.rows * s.n),
                              gy = parity.array(type, s.rows * s.n, 0.0, 1.0), gx = parity.array(type, s.rows * s.n),
                              gweight = parity.array(type, s.n), gbias = parity.array(type, s.n);
            parity.run(
                [&](Backend& b, const Parity::Pointers& p, Parity::Host&) {
                  b.norm(type, s.rows, s.n, centred, 1e-5, p[x], weighted ? p[weight] : nullptr, weighted ? p[bias] : nullptr, p[y]);
                  if (s.n > 1)
                    b.norm_adjoint(type, s.rows, s.n, centred, 1e-5, p[x], weighted ? p[weight] : nullptr, p[gy], p[gx], weighted,
                                   p[gweight], p[gbias]);
                  return 0;
                },
                0, type == DType::f32 ? 1e-4 : 0.0);
          }
}

inline void cumulative_parity(Backend& other) {
  struct Size {
    std::int64_t outer, n, inner;
  };
  for (const DType type : every_type)
    for (const Size s : {Size{1, 1, 1}, Size{3, 7, 5}, Size{2, 3000, 3}, Size{1, 1025, 1}, Size{1025, 31, 1}, Size{2, 2, 1023}})
      for (const bool reverse : {false, true})
        for (const bool accumulate : {false, true}) {
          Parity parity(other, 16);
          const std::size_t x = parity.array(type, s.outer * s.n * s.inner), y = parity.array(type, s.outer * s.n * s.inner);
          parity.run([&](Backend& b, const Parity::Pointers& p, Parity::Host&) {
            b.cumulative_sum(type, s.outer, s.n, s.inner, reverse, p[x], p[y], accumulate);
            return 0;
          });
        }
}

inline void magnitude_parity(Backend& other) {
  for (const DType type : every_type)
    for (const std::int64_t n : {1, 3, 4096, 10001})
      for (const double size : {1.0, 1e-30, 1e30, 1e-300, 1e290, 0.0}) {
        if (real_of(type) == DType::f32 && (size > 1e100 || (size < 1e-100 && size > 0.0))) continue;
        Parity parity(other, 9);
        const std::size_t x = parity.array(type, n, -size, size);
        parity.run(
            [&](Backend& b, const Parity::Pointers& p, Parity::Host& host) {
              host[0] = b.log2_norm(type, n, p[x], -17);
              host[1] = b.exponent(type, n, p[x]);
              return 0;
            },
            2);
      }
  for (const double bad : {INFINITY, -INFINITY, NAN}) {
    std::vector<double> values(5000, 1.0);
    values[4500] = bad;
    char host[40000];
    std::memcpy(host, values.data(), sizeof host);
    void* memory = other.allocate(sizeof host);
    other.upload(memory, host, sizeof host);
    const int exponent = other.exponent(DType::f64, 5000, memory);
    const double norm = other.log2_norm(DType::f64, 5000, memory, 0);
    other.release(memory);
    CHECK_EQUAL(exponent, infinite_exponent);
    CHECK(std::isnan(bad) ? std::isnan(norm) : norm == INFINITY);
  }
}

inline std::vector<ParityCase> reduce_parity_cases() {
  return {{"reduce: sums over an axis and their adjoint", sum_parity},
          {"reduce: norms of rows and their adjoint", norm_parity},
          {"reduce: cumulative sums", cumulative_parity},
          {"reduce: norms and exponents", magnitude_parity}};
}

}  // namespace reclab::test
