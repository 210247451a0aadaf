// SPDX-License-Identifier: GPL-3.0-or-later
// Inner loops of dense linear algebra on padded columns, for products and eigenvalues of Jacobians. Every loop runs over whole chunks in a
// fixed order, so that results are the same bits each time, and nothing allocates.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "array/stop.h"

namespace reclab::columns {

constexpr std::int64_t lanes = 8;  // doubles a chunk; columns are padded with zeros to whole chunks, so that no loop has a remainder

typedef double Lane __attribute__((vector_size(lanes * sizeof(double)), may_alias));

struct alignas(lanes * sizeof(double)) Chunk {
  double values[lanes];
};

/// Column-major, columns aligned and padded to whole chunks.
class Columns {
 public:
  Columns() = default;
  Columns(std::int64_t rows, std::int64_t columns)
      : height_((rows + lanes - 1) / lanes * lanes),
        // Columns that lie a power of two apart would share few lines of cache.
        stride_(height_ % (4 * lanes) == 0 ? height_ + lanes : height_),
        chunks_(static_cast<std::size_t>(stride_ / lanes * columns), Chunk{}) {
    check_stop();  // of large ones there are a dozen, which take a tenth of a second each
  }
  double* operator[](std::int64_t column) { return chunks_.data()->values + column * stride_; }
  const double* operator[](std::int64_t column) const { return chunks_.data()->values + column * stride_; }
  /// Rows with the padding.
  std::int64_t height() const { return height_; }
  void clear() { std::fill(chunks_.begin(), chunks_.end(), Chunk{}); }

 private:
  std::int64_t height_ = 0, stride_ = 0;
  std::vector<Chunk> chunks_;
};

inline Lane& lane(double* p) { return *reinterpret_cast<Lane*>(p); }
inline const Lane& lane(const double* p) { return *reinterpret_cast<const Lane*>(p); }

inline double sum(const Lane& x) { return ((x[0] + x[4]) + (x[2] + x[6])) + ((x[1] + x[5]) + (x[3] + x[7])); }

inline std::int64_t chunk_floor(std::int64_t row) { return row / lanes * lanes; }
inline std::int64_t chunk_ceil(std::int64_t row) { return (row + lanes - 1) / lanes * lanes; }

inline double dot(const double* x, const double* y, std::int64_t begin, std::int64_t end) {
  Lane s0 = {}, s1 = {};
  std::int64_t i = begin;
  for (; i + 2 * lanes <= end; i += 2 * lanes) {
    s0 += lane(x + i) * lane(y + i);
    s1 += lane(x + i + lanes) * lane(y + i + lanes);
  }
  if (i < end) s0 += lane(x + i) * lane(y + i);
  return sum(s0 + s1);
}

/// Dot products of x with four columns.
inline void dot4(const double* x, const double* const* y, double* result, std::int64_t begin, std::int64_t end) {
  Lane s0 = {}, s1 = {}, s2 = {}, s3 = {};
  for (std::int64_t i = begin; i < end; i += lanes) {
    const Lane value = lane(x + i);
    s0 += value * lane(y[0] + i);
    s1 += value * lane(y[1] + i);
    s2 += value * lane(y[2] + i);
    s3 += value * lane(y[3] + i);
  }
  result[0] = sum(s0), result[1] = sum(s1), result[2] = sum(s2), result[3] = sum(s3);
}

/// (I - tau v v^T) on a column; v is zero in the part of its first chunk that it does not reach.
inline void reflect(const double* v, double tau, double* x, std::int64_t begin, std::int64_t end) {
  const double s = tau * dot(v, x, begin, end);
  for (std::int64_t i = begin; i < end; i += lanes) lane(x + i) -= s * lane(v + i);
}

/// The same on the columns first..last-1, four at a time so that v is read once for four.
inline void reflect(const double* v, double tau, Columns& a, std::int64_t first, std::int64_t last, std::int64_t begin, std::int64_t end) {
  std::int64_t j = first;
  for (; j + 4 <= last; j += 4) {
    double* x[4] = {a[j], a[j + 1], a[j + 2], a[j + 3]};
    double s[4];
    dot4(v, x, s, begin, end);
    const double s0 = tau * s[0], s1 = tau * s[1], s2 = tau * s[2], s3 = tau * s[3];
    for (std::int64_t i = begin; i < end; i += lanes) {
      const Lane value = lane(v + i);
      lane(x[0] + i) -= s0 * value;
      lane(x[1] + i) -= s1 * value;
      lane(x[2] + i) -= s2 * value;
      lane(x[3] + i) -= s3 * value;
    }
  }
  for (; j < last; ++j) reflect(v, tau, a[j], begin, end);
}

/// Euclidean norm that survives entries whose squares underflow.
inline double norm(const double* x, std::int64_t begin, std::int64_t end) {
  double squares = 0.0;
  for (std::int64_t i = begin; i < end; ++i) squares += x[i] * x[i];
  if (squares > 1e-200 && squares < 1e200) return std::sqrt(squares);
  double largest = 0.0;
  for (std::int64_t i = begin; i < end; ++i) largest = std::max(largest, std::abs(x[i]));
  if (largest == 0.0) return 0.0;
  squares = 0.0;
  for (std::int64_t i = begin; i < end; ++i) squares += (x[i] / largest) * (x[i] / largest);
  return largest * std::sqrt(squares);
}

}  // namespace reclab::columns
