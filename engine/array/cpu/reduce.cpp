// SPDX-License-Identifier: GPL-3.0-or-later
#include "array/cpu/cpu_backend.h"

#include <algorithm>
#include <cstdint>
#include <vector>

#include "array/cpu/processor/exponents.h"
#include "array/cpu/processor/norms.h"
#include "array/cpu/processor/pieces.h"
#include "array/cpu/processor/scratch.h"

namespace reclab::cpu {

double CpuBackend::log2_norm(DType type, std::int64_t n, const void* x, int power) {
  double result = 0.0;
  with_type(type, [&](auto zero) { result = log2_norm_of(n, as<decltype(zero)>(x), power); });
  return result;
}

int CpuBackend::exponent(DType type, std::int64_t n, const void* x) {
  int result = 0;
  with_type(type, [&](auto zero) { result = exponent_of(n, as<decltype(zero)>(x)); });
  return result;
}

void CpuBackend::sum(DType type, std::int64_t outer, std::int64_t n, std::int64_t inner, double scale, const void* x_, void* y_) {
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    const auto s = static_cast<real_t<T>>(scale);
    if (inner == 1 && n > 0) {
      // Several sums at a time, each in its order: one alone waits for every addition.
      constexpr std::int64_t together = 8;
      in_pieces(outer * n, n * together, piece_of_sums, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t o = first / n; o < last / n; o += together) {
          const std::int64_t some = std::min(together, last / n - o);
          const T* x = as<T>(x_) + o * n;
          T sums[together] = {};
          if (some == together)
            for (std::int64_t j = 0; j < n; ++j)
              for (std::int64_t i = 0; i < together; ++i) sums[i] += x[i * n + j];
          else
            for (std::int64_t i = 0; i < some; ++i)
              for (std::int64_t j = 0; j < n; ++j) sums[i] += x[i * n + j];
          for (std::int64_t i = 0; i < some; ++i) as<T>(y_)[o + i] = sums[i] * s;
        }
      });
      return;
    }
    for (std::int64_t o = 0; o < outer; ++o) {
      const T* x = as<T>(x_) + o * n * inner;
      T* y = as<T>(y_) + o * inner;
      std::fill(y, y + inner, T{});
      for (std::int64_t j = 0; j < n; ++j)
        for (std::int64_t i = 0; i < inner; ++i) y[i] += x[j * inner + i];
      for (std::int64_t i = 0; i < inner; ++i) y[i] *= s;
    }
  });
}

std::size_t CpuBackend::cumulative_sum_scratch(DType type, std::int64_t inner) const { return static_cast<std::size_t>(inner) * bytes_of(type); }

void CpuBackend::cumulative_sum(DType type, std::int64_t outer, std::int64_t n, std::int64_t inner, bool reverse, const void* x_, void* y_,
                                bool accumulate) {
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    cpu::Scratch<T> sum(static_cast<std::size_t>(inner));
    for (std::int64_t o = 0; o < outer; ++o) {
      std::fill(sum.begin(), sum.end(), T{});
      for (std::int64_t l = 0; l < n; ++l) {
        const std::int64_t j = reverse ? n - 1 - l : l;
        const T* x = as<T>(x_) + (o * n + j) * inner;
        T* y = as<T>(y_) + (o * n + j) * inner;
        for (std::int64_t i = 0; i < inner; ++i) {
          T& s = sum[static_cast<std::size_t>(i)];
          s += x[i];
          y[i] = accumulate ? y[i] + s : s;
        }
      }
    }
  });
}

void CpuBackend::sum_adjoint(DType type, std::int64_t outer, std::int64_t n, std::int64_t inner, double scale, const void* gy_, void* gx_) {
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    const auto s = static_cast<real_t<T>>(scale);
    if (inner == 1) {
      in_pieces(outer * n, n, piece_of_sums, [&](std::int64_t first, std::int64_t last) {
        for (std::int64_t o = first / n; o < last / n; ++o) {
          const T value = as<T>(gy_)[o];
          T* gx = as<T>(gx_) + o * n;
          for (std::int64_t j = 0; j < n; ++j) gx[j] += s * value;
        }
      });
      return;
    }
    for (std::int64_t o = 0; o < outer; ++o) {
      const T* gy = as<T>(gy_) + o * inner;
      T* gx = as<T>(gx_) + o * n * inner;
      for (std::int64_t j = 0; j < n; ++j)
        for (std::int64_t i = 0; i < inner; ++i) gx[j * inner + i] += s * gy[i];
    }
  });
}

}  // namespace reclab::cpu
