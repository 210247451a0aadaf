// SPDX-License-Identifier: GPL-3.0-or-later
// Helpers that the step-by-step linear recurrences share.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "array/backend.h"

namespace reclab {

inline const char* at(const void* base, std::size_t bytes) { return static_cast<const char*>(base) + bytes; }
inline char* at(void* base, std::size_t bytes) { return static_cast<char*>(base) + bytes; }

/// An adjoint that is carried back through time: a mantissa, and the power of two that it is to be multiplied with.
class Carried {
 public:
  static constexpr int rescale_at = 32;  ///< binary orders that the mantissa may drift before it is brought back

  Carried(Backend& backend, DType type, std::int64_t n) : backend_(backend), type_(type), n_(n) {}
  int power = 0;

  /// Adds the adjoint that enters at a step in plain units; both come to the larger one's power. Returns log2 of the sum's norm.
  double add(const void* fresh, void* lambda) {
    const int own = backend_.exponent(type_, n_, lambda), entering = backend_.exponent(type_, n_, fresh);
    const bool finite = own != infinite_exponent && entering != infinite_exponent;
    const int common = std::max(own == no_exponent ? own : own + power, entering);
    if (finite && common != no_exponent && std::abs(common - power) > rescale_at) {
      backend_.add_scaled(type_, n_, power - common, lambda, lambda, false);
      power = common;
    }
    if (entering != no_exponent) backend_.add_scaled(type_, n_, -power, fresh, lambda, true);
    return backend_.log2_norm(type_, n_, lambda, power);
  }

 private:
  Backend& backend_;
  DType type_;
  std::int64_t n_;
};

}  // namespace reclab
