// SPDX-License-Identifier: GPL-3.0-or-later
// Numbers that neither overflow nor underflow, for adjoints that grow or vanish over time.
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <type_traits>
#include <vector>

#include "array/backend.h"

namespace reclab::reference {

inline double size_of(double x) { return std::abs(x); }
inline double size_of(std::complex<double> x) { return std::max(std::abs(x.real()), std::abs(x.imag())); }
inline double times_power(double x, int power) { return std::ldexp(x, power); }
inline std::complex<double> times_power(std::complex<double> x, int power) {
  return {std::ldexp(x.real(), power), std::ldexp(x.imag(), power)};
}

/// mantissa 2^power, W being double or complex of it.
template <class W>
struct Ranged {
  W mantissa{};
  int power = 0;

  Ranged() = default;
  explicit Ranged(W x, int of = 0) : mantissa(x), power(of) {
    const double size = size_of(x);
    if (size == 0.0) {
      power = 0;
    } else if (size < 0x1p-200 || size > 0x1p200) {
      const int own = std::ilogb(size);
      mantissa = times_power(mantissa, -own);
      power += own;
    }
  }
  bool is_zero() const { return mantissa == W{}; }
  friend Ranged operator*(const Ranged& x, const Ranged& y) { return Ranged(x.mantissa * y.mantissa, x.power + y.power); }
  friend Ranged operator*(const Ranged& x, W y) { return x * Ranged(y); }
  friend Ranged operator+(const Ranged& x, const Ranged& y) {
    if (x.is_zero()) return y;
    if (y.is_zero()) return x;
    if (x.power < y.power) return y + x;
    return Ranged(x.mantissa + times_power(y.mantissa, std::max(y.power - x.power, -4000)), x.power);
  }
  /// The number in units of 2^unit, as far as these can hold it.
  W in_units(int unit) const { return times_power(mantissa, std::clamp(power - unit, -4000, 4000)); }
  W plain() const { return in_units(0); }
  /// The power of two just above it.
  int exponent() const { return std::ilogb(size_of(mantissa)) + 1 + power; }
};

/// e^log, log <= 0; a logarithm of -infinity is that of 0.
inline Ranged<double> exp_of(double log) {
  if (std::isinf(log)) return Ranged<double>();
  const int halvings = static_cast<int>(log / std::log(2.0));
  return Ranged<double>(std::exp(log - halvings * std::log(2.0)), halvings);
}

/// The power of two just above the largest of them; no_exponent where all are zero.
template <class W>
int exponent_of(const std::vector<Ranged<W>>& numbers) {
  int largest = no_exponent;
  for (const Ranged<W>& x : numbers)
    if (!x.is_zero()) largest = std::max(largest, x.exponent());
  return largest;
}
/// The power of two in units of which numbers are given back: 0 where the largest of them stands well in plain units.
template <class W>
int unit_of(const std::vector<Ranged<W>>& numbers) {
  const int largest = exponent_of(numbers);
  return largest == no_exponent || std::abs(largest) <= 32 ? 0 : largest;
}
/// log2 of the 2-norm; -infinity for zeros.
template <class W>
double log2_norm_of(const std::vector<Ranged<W>>& numbers) {
  const int largest = exponent_of(numbers);
  if (largest == no_exponent) return -std::numeric_limits<double>::infinity();
  double squares = 0.0;
  for (const Ranged<W>& x : numbers) squares += std::norm(std::complex<double>(x.in_units(largest)));
  return 0.5 * std::log2(squares) + largest;
}

}  // namespace reclab::reference
