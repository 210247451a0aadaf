// SPDX-License-Identifier: GPL-3.0-or-later
// The kernels of a device that runs many threads, as types without a CUDA word in them. Most are called once for every index, in any order:
// `operator()(index)`. The rest work in blocks of threads that share memory: `operator()(block, index, shared)` is a row of phases, and
// every thread has finished a phase before one begins the next. So a plain loop can run them too, which is how they are tested on a machine
// without a device. No sum depends on how many threads there are or on who comes first: same input, same bits. The kernels of a family are
// in the file of its name; here are the types and functions that all of them use.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "array/backend.h"
#include "array/functions.h"

/// Stands before a loop whose steps are known to the compiler and are to be written out, so that the arrays it indexes stay in registers.
#ifdef __CUDACC__
#define RECLAB_UNROLL _Pragma("unroll")
#else
#define RECLAB_UNROLL
#endif

namespace reclab::kernel {

using Index = std::int64_t;

/// A complex number that device code can calculate with; laid out like std::complex.
template <class T>
struct Complex {
  T re, im;
  Complex() = default;
  RECLAB_HD Complex(T real, T imag = T(0)) : re(real), im(imag) {}
  RECLAB_HD friend Complex operator+(Complex x, Complex y) { return {x.re + y.re, x.im + y.im}; }
  RECLAB_HD friend Complex operator-(Complex x, Complex y) { return {x.re - y.re, x.im - y.im}; }
  RECLAB_HD friend Complex operator-(Complex x) { return {-x.re, -x.im}; }
  RECLAB_HD friend Complex operator*(Complex x, Complex y) { return {x.re * y.re - x.im * y.im, x.re * y.im + x.im * y.re}; }
  RECLAB_HD friend Complex operator*(T x, Complex y) { return {x * y.re, x * y.im}; }
  RECLAB_HD friend Complex operator/(Complex x, Complex y) {
    const T norm = y.re * y.re + y.im * y.im;
    return {(x.re * y.re + x.im * y.im) / norm, (x.im * y.re - x.re * y.im) / norm};
  }
  RECLAB_HD Complex& operator+=(Complex x) { return *this = *this + x; }
};

}  // namespace reclab::kernel

template <class T>
struct reclab::fn::RealOf<reclab::kernel::Complex<T>> {
  using type = T;
};

namespace reclab::kernel {

template <class T>
using real_t = typename fn::RealOf<T>::type;
template <class T>
constexpr bool complex_v = !std::is_same_v<T, real_t<T>>;

/// The type of long sums: double, or complex of it.
template <class T>
using wide_t = std::conditional_t<complex_v<T>, Complex<double>, double>;
template <class To, class From>
RECLAB_HD inline To convert(From x) {
  if constexpr (complex_v<To>)
    return {static_cast<real_t<To>>(x.re), static_cast<real_t<To>>(x.im)};
  else
    return static_cast<To>(x);
}

RECLAB_HD inline Index least(Index x, Index y) { return x < y ? x : y; }
template <class T>
RECLAB_HD inline T conjugate(T x) {
  if constexpr (complex_v<T>)
    return {x.re, -x.im};
  else
    return x;
}
template <class T>
RECLAB_HD inline T scaled(T x, int exponent) {
  if constexpr (complex_v<T>)
    return {scaled(x.re, exponent), scaled(x.im, exponent)};
  else
    return std::ldexp(x, exponent);
}

/// The power of two just above |x| (of the larger part); no_exponent for zero, infinite_exponent for a number that is not finite.
template <class T>
RECLAB_HD inline int exponent_of(T x) {
  real_t<T> magnitude;
  if constexpr (complex_v<T>) {
    const auto re = std::abs(x.re), im = std::abs(x.im);
    magnitude = re != re || im <= re ? re : im;  // a NaN, where one is
  } else {
    magnitude = std::abs(x);
  }
  if (magnitude == real_t<T>(0)) return no_exponent;
  return magnitude <= std::numeric_limits<real_t<T>>::max() ? std::ilogb(magnitude) + 1 : infinite_exponent;
}
template <class T>
RECLAB_HD inline bool is_zero(T x) {
  if constexpr (complex_v<T>)
    return x.re == real_t<T>(0) && x.im == real_t<T>(0);
  else
    return x == T(0);
}

/// state 2^power += fresh, in the unit of the larger one unless that is near.
template <class T>
RECLAB_HD inline void add_in_units(T fresh, T& state, int& power) {
  const int own = exponent_of(state), added = exponent_of(fresh);
  const int standing = own == no_exponent || own == infinite_exponent ? no_exponent : own + power,
            common = standing > added ? standing : added;
  if (common != no_exponent && common != infinite_exponent && (common - power > 32 || power - common > 32)) {
    state = scaled(state, power - common);
    power = common;
  }
  if (!is_zero(fresh)) state += power ? scaled(fresh, -power) : fresh;
}

/// The type that Fourier transforms are computed in.
using Wave = Complex<double>;

}  // namespace reclab::kernel
