// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <vector>

#include "array/cpu/processor/exponents.h"
#include "array/elements.h"

namespace reclab::cpu {

/// The sum of the squares of part(entry) over n entries: eight sums side by side, so that none waits for the last addition.
template <class F>
double sum_of_squares(std::int64_t n, const F& part) {
  constexpr std::int64_t lanes = 8;
  double sums[lanes] = {};
  std::int64_t i = 0;
  for (; i + lanes <= n; i += lanes)
    for (std::int64_t l = 0; l < lanes; ++l) sums[l] += part(i + l) * part(i + l);
  for (std::int64_t l = 0; i + l < n; ++l) sums[l] += part(i + l) * part(i + l);
  for (std::int64_t half = lanes / 2; half; half /= 2)
    for (std::int64_t l = 0; l < half; ++l) sums[l] += sums[l + half];
  return sums[0];
}

/// log2 of the 2-norm of 2^power x, without underflow.
template <class R>
double log2_norm_of(std::int64_t n, const R* x, int power) {
  const int own = exponent_of(n, x);
  if (own == no_exponent || own == infinite_exponent || std::abs(own) < 400)
    return 0.5 * std::log2(sum_of_squares(n, [x](std::int64_t i) { return static_cast<double>(x[i]); })) + power;
  return 0.5 * std::log2(sum_of_squares(n, [x, own](std::int64_t i) { return std::ldexp(static_cast<double>(x[i]), -own); })) + own + power;
}
template <class R>
double log2_norm_of(std::int64_t n, const std::complex<R>* x, int power) {
  return log2_norm_of(2 * n, reinterpret_cast<const R*>(x), power);
}

template <class T>
T scaled(T x, int exponent) {
  if constexpr (complex_v<T>)
    return {std::ldexp(x.real(), exponent), std::ldexp(x.imag(), exponent)};
  else
    return std::ldexp(x, exponent);
}

/// log2 of the norm at step t of a vector whose parts have norms with these logarithms.
template <class Norms>
double joined_norm(const std::vector<Norms>& parts, std::size_t t) {
  if (parts.size() == 1) return parts[0][t];
  double largest = -std::numeric_limits<double>::infinity(), sum = 0.0;
  for (const auto& part : parts) {
    if (std::isnan(part[t])) return part[t];
    largest = std::max(largest, part[t]);
  }
  if (std::isinf(largest)) return largest;
  for (const auto& part : parts) sum += std::exp2(2.0 * (part[t] - largest));
  return largest + 0.5 * std::log2(sum);
}

}  // namespace reclab::cpu
