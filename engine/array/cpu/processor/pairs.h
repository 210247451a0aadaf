// SPDX-License-Identifier: GPL-3.0-or-later
// Rows of complex numbers as vectors of real and imaginary parts in turn: a product is two multiplications of whole vectors and an exchange
// of neighbours.
#pragma once

#include <algorithm>
#include <bit>
#include <complex>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "array/cpu/processor/vectors.h"

namespace reclab::cpu {

template <class R>
struct Pairs {
  static constexpr int lanes = vector_bytes / sizeof(R);
  using Integer = std::conditional_t<sizeof(R) == 4, std::int32_t, std::int64_t>;
  typedef R V __attribute__((vector_size(vector_bytes)));
  typedef Integer I __attribute__((vector_size(vector_bytes)));

  static V load(const R* p) {
    V v;
    std::memcpy(&v, p, sizeof v);
    return v;
  }
  static void store(R* p, V v) { std::memcpy(p, &v, sizeof v); }
  static I lane() {
    I i;
    for (int l = 0; l < lanes; ++l) i[l] = l;
    return i;
  }
  static V swapped(V v) { return __builtin_shuffle(v, lane() ^ 1); }
  static V real(V v) { return __builtin_shuffle(v, lane() & -2); }
  static V imag(V v) { return __builtin_shuffle(v, lane() | 1); }
  /// The signs of imag() in x conj(a) (+ -) and in x a (- +).
  static V signs(bool conjugate) {
    V s;
    for (int l = 0; l < lanes; ++l) s[l] = (l % 2 == 0) == conjugate ? R(1) : R(-1);
    return s;
  }
  /// x a, or x conj(a).
  static V product(V x, V a, bool conjugate) { return x * real(a) + swapped(x) * (imag(a) * signs(conjugate)); }
  /// The bits of the magnitudes, ordered as these are.
  static I magnitudes(V v) {
    I bits;
    std::memcpy(&bits, &v, sizeof v);
    return bits & (std::bit_cast<Integer>(R(-0.0)) ^ Integer(-1));
  }
  static I larger(I x, I y) { return x > y ? x : y; }
};

/// out = a x + y, n complex numbers; out may be x.
template <class R>
void multiply_add(std::int64_t n, const std::complex<R>* a_, const std::complex<R>* x_, const std::complex<R>* y_, std::complex<R>* out_) {
  using P = Pairs<R>;
  const R *a = reinterpret_cast<const R*>(a_), *x = reinterpret_cast<const R*>(x_), *y = reinterpret_cast<const R*>(y_);
  R* out = reinterpret_cast<R*>(out_);
  std::int64_t i = 0;
  for (; i + P::lanes <= 2 * n; i += P::lanes) P::store(out + i, P::product(P::load(x + i), P::load(a + i), false) + P::load(y + i));
  i /= 2;
  // No run-time check of the distance between the arrays, on which the rounding would depend: entries are independent of each other.
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC ivdep
#endif
  for (; i < n; ++i) out_[i] = a_[i] * x_[i] + y_[i];
}

/// x *= a, or x *= conj(a): n complex numbers, each rounded alike wherever it stands. The compiler's own product of complex numbers is
/// rounded as the loop around it happens to be translated.
template <class R>
void multiply(std::int64_t n, const std::complex<R>* a_, bool conjugate, std::complex<R>* x_) {
  using P = Pairs<R>;
  const R* a = reinterpret_cast<const R*>(a_);
  R* x = reinterpret_cast<R*>(x_);
  std::int64_t i = 0;
  for (; i + P::lanes <= 2 * n; i += P::lanes) P::store(x + i, P::product(P::load(x + i), P::load(a + i), conjugate));
  if (i == 2 * n) return;
  R rest[P::lanes] = {}, by[P::lanes] = {};
  std::copy(x + i, x + 2 * n, rest);
  std::copy(a + i, a + 2 * n, by);
  P::store(rest, P::product(P::load(rest), P::load(by), conjugate));
  std::copy(rest, rest + (2 * n - i), x + i);
}

}  // namespace reclab::cpu
