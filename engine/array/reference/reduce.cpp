// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <cmath>
#include <vector>

#include "array/reference/ranged.h"
#include "array/reference/reference_backend.h"

namespace reclab::reference {

double ReferenceBackend::log2_norm(DType type, Index n, const void* x, int power) {
  double result = 0.0;
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    std::vector<Ranged<wide_t<T>>> numbers;
    double sum = 0.0;  // not finite where an entry is not
    for (Index i = 0; i < n; ++i) {
      numbers.emplace_back(wide(as<T>(x)[i]));
      sum += 0.0 * std::abs(as<T>(x)[i]);
    }
    if (std::isnan(sum)) {
      sum = 0.0;
      for (Index i = 0; i < n; ++i) sum += static_cast<double>(std::abs(as<T>(x)[i]));
      result = sum;
    } else {
      result = log2_norm_of(numbers) + power;
    }
  });
  return result;
}
int ReferenceBackend::exponent(DType type, Index n, const void* x) {
  int result = no_exponent;
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    for (Index i = 0; i < n; ++i) {
      const wide_t<T> entry = wide(as<T>(x)[i]);
      if (!std::isfinite(std::abs(entry)))
        result = infinite_exponent;
      else if (size_of(entry) > 0.0)
        result = std::max(result, Ranged(entry).exponent());
    }
  });
  return result;
}

void ReferenceBackend::sum(DType type, Index outer, Index n, Index inner, double scale, const void* x, void* y) {
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    for (Index o = 0; o < outer; ++o)
      for (Index i = 0; i < inner; ++i) {
        wide_t<T> total{};
        for (Index j = 0; j < n; ++j) total += wide(as<T>(x)[(o * n + j) * inner + i]);
        as<T>(y)[o * inner + i] = narrow<T>(scale * total);
      }
  });
}
void ReferenceBackend::sum_adjoint(DType type, Index outer, Index n, Index inner, double scale, const void* gy, void* gx) {
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    for (Index o = 0; o < outer; ++o)
      for (Index j = 0; j < n; ++j)
        for (Index i = 0; i < inner; ++i) add(as<T>(gx)[(o * n + j) * inner + i], scale * wide(as<T>(gy)[o * inner + i]));
  });
}
namespace {

/// m and r of Backend::norm for one row.
template <class T>
std::pair<double, double> mean_and_inverse_root(Index n, const T* x, bool centred, double eps) {
  double mean = 0.0, squares = 0.0;
  for (Index j = 0; centred && j < n; ++j) mean += wide(x[j]) / static_cast<double>(n);
  for (Index j = 0; j < n; ++j) squares += (wide(x[j]) - mean) * (wide(x[j]) - mean) / static_cast<double>(n);
  return {mean, 1.0 / std::sqrt(squares + eps)};
}

}  // namespace

void ReferenceBackend::norm(DType type, Index rows, Index n, bool centred, double eps, const void* x_, const void* weight, const void* bias,
                            void* y) {
  with_real(type, [&](auto zero) {
    using T = decltype(zero);
    for (Index r = 0; r < rows; ++r) {
      const T* x = as<T>(x_) + r * n;
      const auto [mean, root] = mean_and_inverse_root(n, x, centred, eps);
      for (Index j = 0; j < n; ++j)
        as<T>(y)[r * n + j] =
            narrow<T>((wide(x[j]) - mean) * root * (weight ? wide(as<T>(weight)[j]) : 1.0) + (bias ? wide(as<T>(bias)[j]) : 0.0));
    }
  });
}
void ReferenceBackend::norm_adjoint(DType type, Index rows, Index n, bool centred, double eps, const void* x_, const void* weight,
                                    const void* gy_, void* gx, bool accumulate, void* gweight, void* gbias) {
  with_real(type, [&](auto zero) {
    using T = decltype(zero);
    for (Index r = 0; r < rows; ++r) {
      const T *x = as<T>(x_) + r * n, *gy = as<T>(gy_) + r * n;
      const auto [mean, root] = mean_and_inverse_root(n, x, centred, eps);
      double mean_g = 0.0, mean_gz = 0.0;
      for (Index j = 0; j < n; ++j) {
        const double g = wide(gy[j]) * (weight ? wide(as<T>(weight)[j]) : 1.0);
        if (centred) mean_g += g / static_cast<double>(n);
        mean_gz += g * (wide(x[j]) - mean) * root / static_cast<double>(n);
      }
      for (Index j = 0; j < n; ++j) {
        const double z = (wide(x[j]) - mean) * root, g = wide(gy[j]) * (weight ? wide(as<T>(weight)[j]) : 1.0);
        if (gx) {
          T& to = as<T>(gx)[r * n + j];
          to = narrow<T>((accumulate ? wide(to) : 0.0) + root * (g - mean_g - z * mean_gz));
        }
        if (gweight) add(as<T>(gweight)[j], wide(gy[j]) * z);
        if (gbias) add(as<T>(gbias)[j], wide(gy[j]));
      }
    }
  });
}
void ReferenceBackend::cumulative_sum(DType type, Index outer, Index n, Index inner, bool reverse, const void* x, void* y,
                                      bool accumulate) {
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    for (Index o = 0; o < outer; ++o)
      for (Index i = 0; i < inner; ++i) {
        wide_t<T> total{};
        for (Index l = 0; l < n; ++l) {
          const Index at = (o * n + (reverse ? n - 1 - l : l)) * inner + i;
          total += wide(as<T>(x)[at]);
          as<T>(y)[at] = narrow<T>(total + (accumulate ? wide(as<T>(y)[at]) : 0.0));
        }
      }
  });
}

}  // namespace reclab::reference
