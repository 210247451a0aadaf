// SPDX-License-Identifier: GPL-3.0-or-later
#include "array/cpu/cpu_backend.h"

#include <algorithm>
#include <cstdint>

#include "array/cpu/processor/exponential.h"
#include "array/cpu/processor/pieces.h"
#include "array/cpu/processor/sums.h"
#include "array/functions.h"

namespace reclab::cpu {
namespace {

template <class T>
T largest_of(std::int64_t n, const T* x) {
  typedef T V __attribute__((vector_size(lanes * sizeof(T)), aligned(sizeof(T))));
  const auto larger = [](auto most, auto other) { return most < other ? other : most; };
  if (n < lanes) {
    T most = x[0];
    for (std::int64_t j = 1; j < n; ++j) most = larger(most, x[j]);
    return most;
  }
  V most = *reinterpret_cast<const V*>(x + n - lanes);  // the last ones, of which the others may be some
  for (std::int64_t j = 0; j + lanes <= n; j += lanes) {
    const V next = *reinterpret_cast<const V*>(x + j);
    most = larger(most, next);
  }
  return folded<lanes>(reinterpret_cast<const T*>(&most), larger);
}

/// Calls f(row) for all rows, on all processors where that is worth it.
template <class F>
void each_row(std::int64_t rows, std::int64_t columns, const F& f) {
  in_pieces(rows * columns, columns, piece_of_exponentials, [&](std::int64_t from, std::int64_t to) {
    for (std::int64_t r = from / columns; r < to / columns; ++r) f(r);
  });
}

}  // namespace

void CpuBackend::softmax(DType type, std::int64_t batch, std::int64_t rows, std::int64_t columns, std::int64_t first, const void* low,
                         void* scores) {
  with_real(type, [&](auto zero) {
    using T = decltype(zero);
    each_row(batch * rows, columns, [&](std::int64_t r) {
      T* s = as<T>(scores) + r * columns;
      const std::int64_t i = r % rows, from = std::max<std::int64_t>(0, low ? static_cast<std::int64_t>(as<T>(low)[i]) : 0),
                         to = first + i + 1;
      // Whole vectors: exponentials are computed past the row's end too. They are set to 0 afterwards, and the sum adds zeros.
      const std::int64_t whole = from < to ? std::min(columns - from, (to - from + lanes - 1) / lanes * lanes) : 0;
      T* seen = s + from;
      const T largest = whole ? largest_of(to - from, seen) : T(0);
      for (std::int64_t j = 0; j < whole; ++j) seen[j] -= largest;
      Exponential<T>::of(whole, seen, seen);
      std::fill(s, s + std::min(from, columns), T(0));
      std::fill(s + std::min(to, columns), s + columns, T(0));
      const double sum = in_lanes(whole, [seen](std::int64_t j) { return static_cast<double>(seen[j]); });
      const T scale = sum > 0 ? static_cast<T>(1.0 / sum) : T(0);
      for (std::int64_t j = 0; j < whole; ++j) seen[j] *= scale;
    });
  });
}

void CpuBackend::softmax_adjoint(DType type, std::int64_t rows, std::int64_t columns, const void* p_, void* g_) {
  with_real(type, [&](auto zero) {
    using T = decltype(zero);
    each_row(rows, columns, [&](std::int64_t r) {
      const T* p = as<T>(p_) + r * columns;
      T* g = as<T>(g_) + r * columns;
      const double mean = in_lanes(columns, [&](std::int64_t j) { return static_cast<double>(p[j]) * static_cast<double>(g[j]); });
      for (std::int64_t j = 0; j < columns; ++j) g[j] = p[j] * (g[j] - static_cast<T>(mean));
    });
  });
}

void CpuBackend::by_distance(DType type, std::int64_t batch, std::int64_t rows, std::int64_t columns, std::int64_t distances,
                             std::int64_t first, const void* far, void* scores) {
  with_real(type, [&](auto zero) {
    using T = decltype(zero);
    for (std::int64_t r = 0; r < batch * rows; ++r) {
      const std::int64_t own = first + r % rows;
      for (std::int64_t j = std::max<std::int64_t>(0, own - distances + 1); j <= own; ++j)
        as<T>(scores)[r * columns + j] += as<T>(far)[r * distances + own - j];
    }
  });
}

void CpuBackend::by_distance_adjoint(DType type, std::int64_t batch, std::int64_t rows, std::int64_t columns, std::int64_t distances,
                                     std::int64_t first, const void* gscores, void* gfar) {
  with_real(type, [&](auto zero) {
    using T = decltype(zero);
    for (std::int64_t r = 0; r < batch * rows; ++r) {
      const std::int64_t own = first + r % rows;
      for (std::int64_t d = 0; d < distances; ++d) as<T>(gfar)[r * distances + d] = d <= own ? as<T>(gscores)[r * columns + own - d] : T(0);
    }
  });
}

void CpuBackend::keep_columns(DType type, std::int64_t batch, std::int64_t rows, std::int64_t columns, const void* bound, bool from,
                              void* scores) {
  with_real(type, [&](auto zero) {
    using T = decltype(zero);
    for (std::int64_t r = 0; r < batch * rows; ++r) {
      T* s = as<T>(scores) + r * columns;
      const std::int64_t at = std::clamp<std::int64_t>(static_cast<std::int64_t>(as<T>(bound)[r % rows]), 0, columns);
      if (from)
        std::fill(s, s + at, T(0));
      else
        std::fill(s + at, s + columns, T(0));
    }
  });
}

void CpuBackend::weigh(DType type, std::int64_t batch, std::int64_t steps, std::int64_t first, std::int64_t rows, std::int64_t columns,
                       const void* row, const void* column, const void* row_low, const void* column_low, void* scores) {
  with_real(type, [&](auto zero) {
    using T = decltype(zero);
    for (std::int64_t r = 0; r < batch * rows; ++r) {
      const std::int64_t b = r / rows, i = first + r % rows;
      T* s = as<T>(scores) + r * columns;
      for (std::int64_t j = 0; j <= i; ++j)
        s[j] *= fn::exp(as<T>(row)[b * steps + i] + as<T>(column)[b * steps + j] +
                        (as<T>(row_low)[b * steps + i] + as<T>(column_low)[b * steps + j]));
      std::fill(s + i + 1, s + columns, T(0));
    }
  });
}

void CpuBackend::weigh_adjoint(DType type, std::int64_t batch, std::int64_t steps, std::int64_t first, std::int64_t rows,
                               std::int64_t columns, const void* row, const void* column, const void* row_low, const void* column_low,
                               const void* p, void* g, void* grow, void* gcolumn) {
  with_real(type, [&](auto zero) {
    using T = decltype(zero);
    for (std::int64_t r = 0; r < batch * rows; ++r) {
      const std::int64_t b = r / rows, i = first + r % rows;
      T* own = as<T>(g) + r * columns;
      double sum = 0;
      for (std::int64_t j = 0; j <= i; ++j) {
        const T both = as<T>(p)[r * columns + j] * own[j];
        sum += both;
        if (gcolumn) as<T>(gcolumn)[b * steps + j] += both;
        own[j] *= fn::exp(as<T>(row)[b * steps + i] + as<T>(column)[b * steps + j] +
                          (as<T>(row_low)[b * steps + i] + as<T>(column_low)[b * steps + j]));
      }
      if (grow) as<T>(grow)[b * steps + i] += static_cast<T>(sum);
      std::fill(own + i + 1, own + columns, T(0));
    }
  });
}

}  // namespace reclab::cpu
