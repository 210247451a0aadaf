// SPDX-License-Identifier: GPL-3.0-or-later
#include "array/cpu/cpu_backend.h"

#include <algorithm>
#include <cstdint>

#include "array/stop.h"

namespace reclab::cpu {
namespace {

constexpr std::int64_t between_looks = std::int64_t{1} << 18;  // entries, after which a stop is heard

/// Visits the innermost rows, those of the axis before in a loop of their own.
template <class F>
void for_rows(const Strided& shape, F&& f) {
  const int outer = std::max(0, shape.rank - 2);
  std::int64_t index[6] = {};
  std::int64_t at = shape.offset, dense = 0;
  const std::int64_t inner = shape.rank ? shape.size[shape.rank - 1] : 1, rows = shape.rank > 1 ? shape.size[outer] : 1,
                     step = shape.rank > 1 ? shape.stride[outer] : 0;
  const std::int64_t visits = inner * rows > 0 ? shape.elements / (inner * rows) : 0;
  const std::int64_t some = std::max<std::int64_t>(1, between_looks / std::max<std::int64_t>(1, inner));
  for (std::int64_t visit = 0; visit < visits; ++visit) {
    for (std::int64_t row = 0; row < rows; check_stop())
      for (const std::int64_t end = std::min(rows, row + some); row < end; ++row, dense += inner) f(at + row * step, dense);
    for (int d = outer - 1; d >= 0; --d) {
      at += shape.stride[d];
      if (++index[d] < shape.size[d]) break;
      at -= shape.stride[d] * shape.size[d];
      index[d] = 0;
    }
  }
}

/// A short row, as those of a head are, in pieces of a fixed size: a call to copy one takes longer than the copying.
template <class T>
void copy_row(const T* from, T* to, std::int64_t n) {
  constexpr std::int64_t piece = 32 / static_cast<std::int64_t>(sizeof(T));
  if (n % piece || n > 16 * piece) {
    std::copy(from, from + n, to);
    return;
  }
  for (std::int64_t i = 0; i < n; i += piece) std::copy(from + i, from + i + piece, to + i);
}

template <class F>
void move(DType type, const Strided& shape, F&& row, void* strided, void* dense) {
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    const std::int64_t inner = shape.rank ? shape.size[shape.rank - 1] : 1, stride = shape.rank ? shape.stride[shape.rank - 1] : 1;
    for_rows(shape, [&](std::int64_t at, std::int64_t to) {
      std::int64_t from = 0;
      for (; inner - from > between_looks; from += between_looks, check_stop())
        row(as<T>(strided) + at + from * stride, as<T>(dense) + to + from, between_looks, stride);
      row(as<T>(strided) + at + from * stride, as<T>(dense) + to + from, inner - from, stride);
    });
  });
}

}  // namespace

void CpuBackend::gather(DType type, const Strided& shape, const void* strided, void* dense, bool accumulate) {
  move(
      type, shape,
      [&](auto* from_strided, auto* to_dense, std::int64_t inner, std::int64_t stride) {
        if (accumulate && stride == 1)
          for (std::int64_t i = 0; i < inner; ++i) to_dense[i] += from_strided[i];
        else if (accumulate)
          for (std::int64_t i = 0; i < inner; ++i) to_dense[i] += from_strided[i * stride];
        else if (stride == 1)
          copy_row(from_strided, to_dense, inner);
        else
          for (std::int64_t i = 0; i < inner; ++i) to_dense[i] = from_strided[i * stride];
      },
      const_cast<void*>(strided), dense);
}

void CpuBackend::scatter(DType type, const Strided& shape, const void* dense, void* strided, bool accumulate) {
  move(
      type, shape,
      [&](auto* to_strided, auto* from_dense, std::int64_t inner, std::int64_t stride) {
        if (accumulate && stride == 1)
          for (std::int64_t i = 0; i < inner; ++i) to_strided[i] += from_dense[i];
        else if (accumulate)
          for (std::int64_t i = 0; i < inner; ++i) to_strided[i * stride] += from_dense[i];
        else if (stride == 1)
          copy_row(from_dense, to_strided, inner);
        else
          for (std::int64_t i = 0; i < inner; ++i) to_strided[i * stride] = from_dense[i];
      },
      strided, const_cast<void*>(dense));
}

}  // namespace reclab::cpu
