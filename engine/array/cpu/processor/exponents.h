// SPDX-License-Identifier: GPL-3.0-or-later
// Magnitudes of numbers by their bits: without their signs floating-point numbers are ordered as the integers of the same bits, infinities
// and NaNs last.
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <complex>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "array/backend.h"

namespace reclab::cpu {

/// The bits of a magnitude: ordered as the magnitudes are.
template <class R>
using Bits = std::conditional_t<sizeof(R) == 4, std::uint32_t, std::uint64_t>;
template <class R>
Bits<R> magnitude(R x) {
  return std::bit_cast<Bits<R>>(x) & (~Bits<R>{0} >> 1);
}
/// The exponent_of numbers whose largest magnitude this is.
template <class R>
int exponent_of_bits(Bits<R> largest) {
  if (largest >= std::bit_cast<Bits<R>>(std::numeric_limits<R>::infinity())) return infinite_exponent;
  return largest == 0 ? no_exponent : std::ilogb(std::bit_cast<R>(largest)) + 1;
}
/// The power of two just above the largest of n entries; no_exponent if all are zero, infinite_exponent if one is not finite.
template <class R>
int exponent_of(std::int64_t n, const R* x) {
  Bits<R> largest = 0;
  for (std::int64_t i = 0; i < n; ++i) largest = std::max(largest, magnitude(x[i]));
  return exponent_of_bits<R>(largest);
}
/// The exponent_of the real and imaginary parts.
template <class R>
int exponent_of(std::int64_t n, const std::complex<R>* x) {
  return exponent_of(2 * n, reinterpret_cast<const R*>(x));
}

}  // namespace reclab::cpu
