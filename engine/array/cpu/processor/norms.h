// SPDX-License-Identifier: GPL-3.0-or-later
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <vector>

#include "array/cpu/processor/exponents.h"
#include "array/elements.h"

namespace reclab::cpu {

/// log2 of the 2-norm of 2^power x, without underflow.
template <class T>
double log2_norm_of(std::int64_t n, const T* x, int power) {
  const int own = exponent_of(n, x);
  double sum = 0.0;
  if (own == no_exponent || own == infinite_exponent || std::abs(own) < 400) {
    for (std::int64_t i = 0; i < n; ++i) {
      if constexpr (complex_v<T>) {
        const double re = static_cast<double>(x[i].real()), im = static_cast<double>(x[i].imag());
        sum += re * re + im * im;
      } else {
        sum += static_cast<double>(x[i]) * static_cast<double>(x[i]);
      }
    }
    return 0.5 * std::log2(sum) + power;
  }
  for (std::int64_t i = 0; i < n; ++i) {
    if constexpr (complex_v<T>) {
      const double re = std::ldexp(static_cast<double>(x[i].real()), -own), im = std::ldexp(static_cast<double>(x[i].imag()), -own);
      sum += re * re + im * im;
    } else {
      const double y = std::ldexp(static_cast<double>(x[i]), -own);
      sum += y * y;
    }
  }
  return 0.5 * std::log2(sum) + own + power;
}

template <class T>
T scaled(T x, int exponent) {
  if constexpr (complex_v<T>)
    return {std::ldexp(x.real(), exponent), std::ldexp(x.imag(), exponent)};
  else
    return std::ldexp(x, exponent);
}

/// log2 of the norm at step t of what consists of parts whose norms have these logarithms.
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
