// SPDX-License-Identifier: GPL-3.0-or-later
// exp of whole registers, where a table of powers of two fits into one: e^x = 2^k 2^(j/lanes) e^r with |r| <= ln 2 / (2 lanes), so that a
// polynomial of degree 3 (float) or 8 (double) does. Within 1.1 units in the last place, 0 below -708 (float: -87); other registers take
// fn::exp.
#pragma once

#include <cstdint>
#include <cstring>

#include "array/cpu/processor/vectors.h"
#include "array/functions.h"

#if defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace reclab::cpu {

template <class T>
struct Exponential {
  static constexpr std::int64_t lanes = vector_bytes / sizeof(T);
  typedef T V __attribute__((vector_size(vector_bytes), may_alias));

  /// The entries from p on, which is on a register's boundary.
  static V& at(T* p) { return *reinterpret_cast<V*>(p); }
  static const V& at(const T* p) { return *reinterpret_cast<const V*>(p); }

#if defined(__AVX512F__)
  static V of(V x);
#else
  static V of(V x) {
    for (std::int64_t l = 0; l < lanes; ++l) x[l] = fn::exp(x[l]);
    return x;
  }
#endif
  /// y = exp(x), n entries, which may be the same array; the bits of an entry do not depend on its place.
  static void of(std::int64_t n, const T* x, T* y) {
    const auto take = [&](std::int64_t i, std::size_t size) {
      V part{};
      std::memcpy(&part, x + i, size);
      part = of(part);
      std::memcpy(y + i, &part, size);
    };
    std::int64_t i = 0;
    for (; i + lanes <= n; i += lanes) take(i, sizeof(V));
    if (i < n) take(i, static_cast<std::size_t>(n - i) * sizeof(T));
  }
};

#if defined(__AVX512F__)

// What would be too small is masked before the power of two is put in: a result below the normal numbers takes the processor 30 times as
// long. Above the bound the power makes infinity; min gives a NaN back where it is its second argument. The forms with a mask are those of
// which GCC 12 does not say that they read what nothing has set.

template <>
inline Exponential<float>::V Exponential<float>::of(V x) {
  const __m512 powers = {1.0f,           0x1.0b5586p+0f, 0x1.172b84p+0f, 0x1.2387a6p+0f, 0x1.306fe0p+0f, 0x1.3dea64p+0f,
                         0x1.4bfdaep+0f, 0x1.5ab07ep+0f, 0x1.6a09e6p+0f, 0x1.7a1148p+0f, 0x1.8ace54p+0f, 0x1.9c4918p+0f,
                         0x1.ae89fap+0f, 0x1.c199bep+0f, 0x1.d5818ep+0f, 0x1.ea4afap+0f};
  constexpr float magic = 786432.0f;  // 1.5 * 2^19: adding it rounds to a sixteenth, whose number is in the low bits
  constexpr __mmask16 all = 0xffff;
  const __mmask16 seen = _mm512_cmp_ps_mask(x, _mm512_set1_ps(-87.0f), _CMP_NLT_UQ);
  x = _mm512_maskz_min_ps(all, _mm512_set1_ps(200.0f), x);
  const V shifted = x * 1.44269504f + magic, power = shifted - magic;
  const V r = (x - power * 0.693359375f) + power * 2.12194440e-4f;
  const V e = (r * (1.0f / 6.0f) + 0.5f) * (r * r) + r;
  const V scale = _mm512_maskz_permutexvar_ps(all, _mm512_castps_si512(shifted), powers);
  return _mm512_maskz_scalef_ps(seen, scale * e + scale, power);
}

template <>
inline Exponential<double>::V Exponential<double>::of(V x) {
  const __m512d powers = {1.0,
                          0x1.172b83c7d517bp+0,
                          0x1.306fe0a31b715p+0,
                          0x1.4bfdad5362a27p+0,
                          0x1.6a09e667f3bcdp+0,
                          0x1.8ace5422aa0dbp+0,
                          0x1.ae89f995ad3adp+0,
                          0x1.d5818dcfba487p+0};
  constexpr double magic = 844424930131968.0;  // 1.5 * 2^49: to an eighth
  constexpr __mmask8 all = 0xff;
  const __mmask8 seen = _mm512_cmp_pd_mask(x, _mm512_set1_pd(-708.0), _CMP_NLT_UQ);
  x = _mm512_maskz_min_pd(all, _mm512_set1_pd(1000.0), x);
  const V shifted = x * 1.4426950408889634 + magic, power = shifted - magic;
  const V r = (x - power * 6.93147180369123816490e-01) - power * 1.90821492927058770002e-10;
  V e = r * (1.0 / 40320.0) + 1.0 / 5040.0;
  e = e * r + 1.0 / 720.0;
  e = e * r + 1.0 / 120.0;
  e = e * r + 1.0 / 24.0;
  e = e * r + 1.0 / 6.0;
  e = e * r + 0.5;
  e = e * (r * r) + r;
  const V scale = _mm512_maskz_permutexvar_pd(all, _mm512_castpd_si512(shifted), powers);
  return _mm512_maskz_scalef_pd(seen, scale * e + scale, power);
}

#endif

}  // namespace reclab::cpu
