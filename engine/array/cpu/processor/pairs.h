// SPDX-License-Identifier: GPL-3.0-or-later
// Rows of complex numbers as vectors of real and imaginary parts in turn: a product is two multiplications of whole vectors and an exchange
// of neighbours.
#pragma once

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

/// Calls f(i, size) for the first of each whole vector of n complex numbers, and once for the rest of them.
template <class R, class F>
void each_vector(std::int64_t n, const F& f) {
  std::int64_t i = 0;
  for (; i + Pairs<R>::lanes <= 2 * n; i += Pairs<R>::lanes) f(i, std::integral_constant<std::int64_t, Pairs<R>::lanes>());
  if (i < 2 * n) f(i, 2 * n - i);
}
/// Of so many numbers, the others 0: each entry is rounded alike wherever it stands. The compiler's own product of complex numbers is
/// rounded as the loop around it happens to be translated.
template <class R, class Size>
typename Pairs<R>::V load_some(const R* p, Size size) {
  typename Pairs<R>::V v{};
  std::memcpy(&v, p, static_cast<std::size_t>(size) * sizeof(R));
  return v;
}
template <class R, class Size>
void store_some(R* p, typename Pairs<R>::V v, Size size) {
  std::memcpy(p, &v, static_cast<std::size_t>(size) * sizeof(R));
}

/// out = a x + y, n complex numbers; out may be x.
template <class R>
void multiply_add(std::int64_t n, const std::complex<R>* a_, const std::complex<R>* x_, const std::complex<R>* y_, std::complex<R>* out_) {
  const R *a = reinterpret_cast<const R*>(a_), *x = reinterpret_cast<const R*>(x_), *y = reinterpret_cast<const R*>(y_);
  R* out = reinterpret_cast<R*>(out_);
  each_vector<R>(n, [&](std::int64_t i, auto size) {
    store_some(out + i, Pairs<R>::product(load_some(x + i, size), load_some(a + i, size), false) + load_some(y + i, size), size);
  });
}

/// x *= a, or x *= conj(a), n complex numbers.
template <class R>
void multiply(std::int64_t n, const std::complex<R>* a_, bool conjugate, std::complex<R>* x_) {
  const R* a = reinterpret_cast<const R*>(a_);
  R* x = reinterpret_cast<R*>(x_);
  each_vector<R>(n, [&](std::int64_t i, auto size) {
    store_some(x + i, Pairs<R>::product(load_some(x + i, size), load_some(a + i, size), conjugate), size);
  });
}

}  // namespace reclab::cpu
