// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <cmath>
#include <limits>

#include "array/reference/reference_backend.h"

namespace reclab::reference {

void ReferenceBackend::softmax(DType type, Index batch, Index rows, Index columns, Index first, const void* low, void* scores) {
  with_real(type, [&](auto zero) {
    using T = decltype(zero);
    for (Index r = 0; r < batch * rows; ++r) {
      const Index i = r % rows, from = low ? static_cast<Index>(as<T>(low)[i]) : 0;
      T* s = as<T>(scores) + r * columns;
      const auto seen = [&](Index j) { return j >= from && j <= first + i; };
      double largest = -std::numeric_limits<double>::infinity(), sum = 0.0;
      for (Index j = 0; j < columns; ++j)
        if (seen(j)) largest = std::max(largest, wide(s[j]));
      for (Index j = 0; j < columns; ++j)
        if (seen(j)) sum += std::exp(wide(s[j]) - largest);
      for (Index j = 0; j < columns; ++j) s[j] = seen(j) ? narrow<T>(std::exp(wide(s[j]) - largest) / sum) : T(0);
    }
  });
}
void ReferenceBackend::softmax_adjoint(DType type, Index rows, Index columns, const void* p_, void* g_) {
  with_real(type, [&](auto zero) {
    using T = decltype(zero);
    for (Index r = 0; r < rows; ++r) {
      const T* p = as<T>(p_) + r * columns;
      T* g = as<T>(g_) + r * columns;
      double mean = 0.0;
      for (Index j = 0; j < columns; ++j) mean += wide(p[j]) * wide(g[j]);
      for (Index j = 0; j < columns; ++j) g[j] = narrow<T>(wide(p[j]) * (wide(g[j]) - mean));
    }
  });
}

void ReferenceBackend::by_distance(DType type, Index batch, Index rows, Index columns, Index distances, Index first, const void* far,
                                   void* scores) {
  with_real(type, [&](auto zero) {
    using T = decltype(zero);
    for (Index r = 0; r < batch * rows; ++r)
      for (Index j = 0; j < columns; ++j) {
        const Index distance = first + r % rows - j;
        if (distance >= 0 && distance < distances) as<T>(scores)[r * columns + j] += as<T>(far)[r * distances + distance];
      }
  });
}
void ReferenceBackend::by_distance_adjoint(DType type, Index batch, Index rows, Index columns, Index distances, Index first,
                                           const void* gscores, void* gfar) {
  with_real(type, [&](auto zero) {
    using T = decltype(zero);
    std::fill(as<T>(gfar), as<T>(gfar) + batch * rows * distances, T(0));
    for (Index r = 0; r < batch * rows; ++r)
      for (Index j = 0; j < columns; ++j) {
        const Index distance = first + r % rows - j;
        if (distance >= 0 && distance < distances) as<T>(gfar)[r * distances + distance] = as<T>(gscores)[r * columns + j];
      }
  });
}

void ReferenceBackend::keep_columns(DType type, Index batch, Index rows, Index columns, const void* bound, bool from, void* scores) {
  with_real(type, [&](auto zero) {
    using T = decltype(zero);
    for (Index r = 0; r < batch * rows; ++r)
      for (Index j = 0; j < columns; ++j) {
        const bool before = j < static_cast<Index>(as<T>(bound)[r % rows]);
        if (from ? before : !before) as<T>(scores)[r * columns + j] = T(0);
      }
  });
}

namespace {

/// exp(row_i + column_j): the weight of the score of row i and column j, 0 for later columns.
template <class T>
double weight_of(Index step_i, Index j, const T* row, const T* column, const T* row_low, const T* column_low) {
  return j <= step_i ? std::exp(wide(row[step_i]) + wide(column[j]) + (wide(row_low[step_i]) + wide(column_low[j]))) : 0.0;
}

}  // namespace

void ReferenceBackend::weigh(DType type, Index batch, Index steps, Index first, Index rows, Index columns, const void* row,
                             const void* column, const void* row_low, const void* column_low, void* scores) {
  with_real(type, [&](auto zero) {
    using T = decltype(zero);
    for (Index b = 0; b < batch; ++b)
      for (Index i = 0; i < rows; ++i)
        for (Index j = 0; j < columns; ++j) {
          T& score = as<T>(scores)[(b * rows + i) * columns + j];
          score = narrow<T>(wide(score) * weight_of(first + i, j, as<T>(row) + b * steps, as<T>(column) + b * steps,
                                                    as<T>(row_low) + b * steps, as<T>(column_low) + b * steps));
        }
  });
}
void ReferenceBackend::weigh_adjoint(DType type, Index batch, Index steps, Index first, Index rows, Index columns, const void* row,
                                     const void* column, const void* row_low, const void* column_low, const void* p, void* g, void* grow,
                                     void* gcolumn) {
  with_real(type, [&](auto zero) {
    using T = decltype(zero);
    for (Index b = 0; b < batch; ++b) {
      const auto both = [&](Index i, Index j) {
        return wide(as<T>(p)[(b * rows + i) * columns + j]) * wide(as<T>(g)[(b * rows + i) * columns + j]);
      };
      for (Index i = 0; grow && i < rows; ++i) {
        double sum = 0.0;
        for (Index j = 0; j < columns; ++j) sum += both(i, j);
        add(as<T>(grow)[b * steps + first + i], sum);
      }
      for (Index j = 0; gcolumn && j < columns; ++j) {
        double sum = 0.0;
        for (Index i = 0; i < rows; ++i) sum += both(i, j);
        add(as<T>(gcolumn)[b * steps + j], sum);
      }
    }
  });
  weigh(type, batch, steps, first, rows, columns, row, column, row_low, column_low, g);  // the adjoint of the scores
}

}  // namespace reclab::reference
