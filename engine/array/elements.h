// SPDX-License-Identifier: GPL-3.0-or-later
// Elements of arrays by their type, from the DType of a call to the type of a loop.
#pragma once

#include <complex>
#include <type_traits>

#include "array/demand.h"
#include "array/functions.h"
#include "array/shape.h"

namespace reclab {

template <class T>
using real_t = typename fn::RealOf<T>::type;
template <class T>
constexpr bool complex_v = !std::is_same_v<T, real_t<T>>;

template <class T>
T conjugate(T x) {
  if constexpr (complex_v<T>)
    return std::conj(x);
  else
    return x;
}
template <class T>
const T* as(const void* p) {
  return static_cast<const T*>(p);
}
template <class T>
T* as(void* p) {
  return static_cast<T*>(p);
}

/// Calls f with a value of the element type.
template <class F>
void with_type(DType type, F&& f) {
  switch (type) {
    case DType::f32: f(float{}); break;
    case DType::f64: f(double{}); break;
    case DType::c64: f(std::complex<float>{}); break;
    case DType::c128: f(std::complex<double>{}); break;
  }
}
template <class F>
void with_real(DType type, F&& f) {
  RECLAB_DEMAND(!is_complex(type));
  if (type == DType::f32)
    f(float{});
  else
    f(double{});
}

}  // namespace reclab
