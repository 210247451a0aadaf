// SPDX-License-Identifier: GPL-3.0-or-later
#include "array/cpu/cpu_backend.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "array/cpu/processor/exponents.h"
#include "array/cpu/processor/norms.h"
#include "array/cpu/processor/pieces.h"
#include "array/cpu/processor/scratch.h"
#include "array/cpu/processor/sums.h"
#include "array/stop.h"

namespace reclab::cpu {
namespace {

constexpr std::int64_t norm_blocks = 16;  // so many have sums at a time
std::int64_t rows_of_block(std::int64_t n) { return std::max<std::int64_t>(1, piece_of_sums / n); }
/// Of weight and bias, in double, of the blocks that have sums at a time.
std::size_t norm_sums(std::int64_t rows, std::int64_t n) {
  const std::int64_t of_block = rows_of_block(n), blocks = (rows + of_block - 1) / of_block;
  return static_cast<std::size_t>(std::min(blocks, norm_blocks) * 2 * n);
}

/// A row of Backend::norm: z_j = (unit x_j - mean) scale. Rows of floats so large that their inverse root is next to nothing are made
/// smaller first.
template <class T>
struct NormedRow {
  const T* x;
  T unit = T(1), mean = T(0), scale;
  double inverse_root;  // r of Backend::norm

  NormedRow(std::int64_t n, const T* row, bool centred, double eps) : x(row) {
    const double m = centred ? in_lanes(n, [row](std::int64_t j) { return static_cast<double>(row[j]); }) / static_cast<double>(n) : 0.0;
    const double squares = in_lanes(n, [row, m](std::int64_t j) {
      const double from_mean = static_cast<double>(row[j]) - m;
      return from_mean * from_mean;
    });
    inverse_root = 1.0 / std::sqrt(squares / static_cast<double>(n) + eps);
    if (sizeof(T) == sizeof(float) && inverse_root < 0x1p-60) unit = static_cast<T>(0x1p-64);
    mean = static_cast<T>(m) * unit;
    scale = static_cast<T>(inverse_root / static_cast<double>(unit));
  }
  T operator()(std::int64_t j) const { return (x[j] * unit - mean) * scale; }
};

}  // namespace

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

void CpuBackend::norm(DType type, std::int64_t rows, std::int64_t n, bool centred, double eps, const void* x, const void* weight,
                      const void* bias, void* y_) {
  with_real(type, [&](auto zero) {
    using T = decltype(zero);
    const auto each = [&](const auto& finish) {
      in_pieces(rows * n, n, piece_of_sums, [&](std::int64_t first, std::int64_t last) {
        check_stop();
        for (std::int64_t at = first; at < last; at += n) {
          const NormedRow<T> row(n, as<T>(x) + at, centred, eps);
          T* y = as<T>(y_) + at;
          for (std::int64_t j = 0; j < n; ++j) y[j] = finish(j, row(j));
        }
      });
    };
    const T *w = as<T>(weight), *b = as<T>(bias);
    if (w && b)
      each([w, b](std::int64_t j, T z) { return z * w[j] + b[j]; });
    else if (w)
      each([w](std::int64_t j, T z) { return z * w[j]; });
    else if (b)
      each([b](std::int64_t j, T z) { return z + b[j]; });
    else
      each([](std::int64_t, T z) { return z; });
  });
}

void CpuBackend::norm_adjoint(DType type, std::int64_t rows, std::int64_t n, bool centred, double eps, const void* x, const void* weight,
                              const void* gy_, void* gx_, bool accumulate, void* gweight, void* gbias) {
  with_real(type, [&](auto zero) {
    using T = decltype(zero);
    // The rows of a block add up to sums of their own, so that the order is the same on any number of threads.
    const std::int64_t of_block = rows_of_block(n), blocks = (rows + of_block - 1) / of_block;
    const bool sums_rows = gweight || gbias;
    Scratch<double> sums(sums_rows ? norm_sums(rows, n) : 0);
    const T* w = as<T>(weight);
    const auto block_of = [&](std::int64_t done, std::int64_t block, auto weighted) {
      check_stop();
      double *of_weight = sums.data() + (sums_rows ? block * 2 * n : 0), *of_bias = of_weight + n;
      if (sums_rows) std::fill(of_weight, of_weight + 2 * n, 0.0);
      for (std::int64_t r = (done + block) * of_block; r < std::min(rows, (done + block + 1) * of_block); ++r) {
        const NormedRow<T> row(n, as<T>(x) + r * n, centred, eps);
        const T* gy = as<T>(gy_) + r * n;
        if (gx_) {
          const auto g = [gy, w, weighted](std::int64_t j) { return weighted() ? gy[j] * w[j] : gy[j]; };
          const auto mean_g = static_cast<T>(
              centred ? in_lanes(n, [&](std::int64_t j) { return static_cast<double>(g(j)); }) / static_cast<double>(n) : 0.0);
          const auto mean_gz =
              static_cast<T>(in_lanes(n, [&](std::int64_t j) { return static_cast<double>(g(j)) * static_cast<double>(row(j)); }) /
                             static_cast<double>(n));
          const auto root = static_cast<T>(row.inverse_root);
          T* gx = as<T>(gx_) + r * n;
          if (accumulate)
            for (std::int64_t j = 0; j < n; ++j) gx[j] += root * (g(j) - mean_g - row(j) * mean_gz);
          else
            for (std::int64_t j = 0; j < n; ++j) gx[j] = root * (g(j) - mean_g - row(j) * mean_gz);
        }
        if (gweight)
          for (std::int64_t j = 0; j < n; ++j) of_weight[j] += static_cast<double>(gy[j] * row(j));
        if (gbias)
          for (std::int64_t j = 0; j < n; ++j) of_bias[j] += static_cast<double>(gy[j]);
      }
    };
    for (std::int64_t done = 0; done < blocks; done += norm_blocks) {
      const std::int64_t now = std::min(norm_blocks, blocks - done);
      parallel(now, [&](std::int64_t block) {
        if (w)
          block_of(done, block, std::true_type{});
        else
          block_of(done, block, std::false_type{});
      });
      for (std::int64_t block = 0; block < now; ++block) {
        const double* of_weight = sums.data() + (sums_rows ? block * 2 * n : 0);
        if (gweight)
          for (std::int64_t j = 0; j < n; ++j) as<T>(gweight)[j] += static_cast<T>(of_weight[j]);
        if (gbias)
          for (std::int64_t j = 0; j < n; ++j) as<T>(gbias)[j] += static_cast<T>(of_weight[n + j]);
      }
    }
  });
}
std::size_t CpuBackend::norm_scratch(std::int64_t rows, std::int64_t n) const { return norm_sums(rows, n) * sizeof(double); }

std::size_t CpuBackend::cumulative_sum_scratch(DType type, std::int64_t inner) const {
  return static_cast<std::size_t>(inner) * bytes_of(type);
}

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
