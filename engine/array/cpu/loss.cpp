// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <cmath>

#include "array/cpu/cpu_backend.h"
#include "array/stop.h"

namespace reclab::cpu {
namespace {

/// The sum of the terms of a row, one after the other onto `sum`.
template <class T>
double add_row(double sum, LossTerm term, std::int64_t width, const T* y, const double* target, double weight, T* gy) {
  const auto at = [y](std::int64_t j) { return static_cast<double>(y[j]); };
  switch (term) {
    case LossTerm::squared_error:
      for (std::int64_t j = 0; j < width; ++j) {
        const double error = target ? at(j) - target[j] : at(j);
        sum += 0.5 * weight * error * error;
        gy[j] = static_cast<T>(weight * error);
      }
      break;
    case LossTerm::product:
      for (std::int64_t j = 0; j < width; ++j) {
        const double slope = weight * target[j];
        sum += slope * at(j);
        gy[j] = static_cast<T>(slope);
      }
      break;
    case LossTerm::cross_entropy: {
      const double largest = static_cast<double>(*std::max_element(y, y + width));
      double total = 0.0;
      for (std::int64_t j = 0; j < width; ++j) total += std::exp(at(j) - largest);
      const auto own = static_cast<std::int64_t>(*target);
      sum += weight * (largest + std::log(total) - at(own));
      for (std::int64_t j = 0; j < width; ++j)
        gy[j] = static_cast<T>(weight * (std::exp(at(j) - largest) / total - (j == own ? 1.0 : 0.0)));
      break;
    }
  }
  return sum;
}

}  // namespace

void CpuBackend::loss(DType type, LossTerm term, const LossDims& dims, const void* y, const void* target, const void* weight, void* value,
                      void* gy) {
  const std::int64_t of_target = term == LossTerm::cross_entropy ? 1 : dims.width;
  with_real(type, [&](auto zero) {
    using T = decltype(zero);
    // Each sequence in the order of its steps, so that its sum has the same bits in every batch.
    for (std::int64_t b = 0; b < dims.batch; ++b) {
      double sum = 0.0;
      check_stop();
      for (std::int64_t t = 0; t < dims.steps; ++t) {
        const std::int64_t row = t * dims.batch + b;
        T* to = as<T>(gy) + row * dims.width;
        if (const double own = as<double>(weight)[row]; own != 0.0)
          sum =
              add_row(sum, term, dims.width, as<T>(y) + row * dims.width, target ? as<double>(target) + row * of_target : nullptr, own, to);
        else
          std::fill(to, to + dims.width, T(0));
      }
      as<double>(value)[b] = sum;
    }
  });
}

}  // namespace reclab::cpu
