// SPDX-License-Identifier: GPL-3.0-or-later
#include "array/reference/reference_backend.h"

namespace reclab::reference {
namespace {

/// The offset in the strided array of element i of the dense one.
Index offset_of(const Strided& shape, Index i) {
  Index at = shape.offset;
  for (int d = shape.rank - 1; d >= 0; --d) {
    at += i % shape.size[d] * shape.stride[d];
    i /= shape.size[d];
  }
  return at;
}

}  // namespace

void ReferenceBackend::gather(DType type, const Strided& shape, const void* strided, void* dense, bool accumulate) {
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    for (Index i = 0; i < shape.elements; ++i)
      as<T>(dense)[i] = as<T>(strided)[offset_of(shape, i)] + (accumulate ? as<T>(dense)[i] : T(0));
  });
}
void ReferenceBackend::scatter(DType type, const Strided& shape, const void* dense, void* strided, bool accumulate) {
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    for (Index i = 0; i < shape.elements; ++i) {
      T& to = as<T>(strided)[offset_of(shape, i)];
      to = as<T>(dense)[i] + (accumulate ? to : T(0));
    }
  });
}

}  // namespace reclab::reference
