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
void ReferenceBackend::cumulative_sum(DType type, Index outer, Index n, Index inner, bool reverse, const void* x, void* y, bool accumulate) {
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
