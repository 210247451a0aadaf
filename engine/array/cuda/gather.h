// SPDX-License-Identifier: GPL-3.0-or-later
// Boxes of strided arrays, and other kernels that move, fill or convert entries.
#pragma once

#include "array/cuda/kernel_backend.h"

namespace reclab::kernel {

// ---- Kernels -----------------------------------------------------------------------------------------------------------------------

/// Element i of the dense array and where it lies in the strided one.
RECLAB_HD inline Index offset_of(const Strided& shape, Index i) {
  Index at = shape.offset;
  for (int d = shape.rank - 1; d >= 0; --d) {
    at += (d ? i % shape.size[d] : i) * shape.stride[d];
    if (d) i /= shape.size[d];
  }
  return at;
}
template <class T>
struct Gather {
  Strided shape;
  const T* strided;
  T* dense;
  bool accumulate;
  RECLAB_HD void operator()(Index i) const {
    const T value = strided[offset_of(shape, i)];
    dense[i] = accumulate ? dense[i] + value : value;
  }
};
template <class T>
struct Scatter {
  Strided shape;
  const T* dense;
  T* strided;
  bool accumulate;
  RECLAB_HD void operator()(Index i) const {
    const Index at = offset_of(shape, i);
    strided[at] = accumulate ? strided[at] + dense[i] : dense[i];
  }
};

template <class From, class To>
struct Convert {
  const From* from;
  To* to;
  RECLAB_HD void operator()(Index i) const { to[i] = convert<To>(from[i]); }
};
template <class T>
struct Fill {
  T* x;
  T value;
  RECLAB_HD void operator()(Index i) const { x[i] = value; }
};
template <class T>
struct ScaleEach {
  T* x;
  int power;
  RECLAB_HD void operator()(Index i) const { x[i] = scaled(x[i], power); }
};
template <class T>
struct TransposeEach {
  const T* from;
  double* to;
  Index rows, columns;
  RECLAB_HD void operator()(Index i) const {
    const Index size = rows * columns, h = i / size, r = i % size / columns, c = i % columns;
    to[h * size + c * rows + r] = static_cast<double>(from[i]);
  }
};

// ---- Launches ----------------------------------------------------------------------------------------------------------------------

template <class Machine>
void KernelBackend<Machine>::gather(DType type, const Strided& shape, const void* strided, void* dense, bool accumulate) {
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    machine_.each(shape.elements, Gather<T>{shape, as<T>(strided), as<T>(dense), accumulate});
  });
}

template <class Machine>
void KernelBackend<Machine>::scatter(DType type, const Strided& shape, const void* dense, void* strided, bool accumulate) {
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    machine_.each(shape.elements, Scatter<T>{shape, as<T>(dense), as<T>(strided), accumulate});
  });
}

}  // namespace reclab::kernel
