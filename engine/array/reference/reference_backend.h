// SPDX-License-Identifier: GPL-3.0-or-later
// The reference that the CPU's and CUDA's operations are tested against: each operation as the loop that its sentence in backend.h says, in
// double precision, one entry after the other. It shares no arithmetic with them and is slow; nothing but tests calls it.
#pragma once

#include <complex>
#include <cstdint>
#include <type_traits>

#include "array/elements.h"
#include "array/host_memory.h"

namespace reclab {

Backend& reference_backend();

namespace reference {

class ReferenceBackend final : public HostMemoryBackend {
 public:
  std::string name() const override { return "reference"; }
  void* allocate(std::size_t bytes) override;

#include "array/operations.inc"
};

using Index = std::int64_t;

/// The type of computations: double, or complex of it.
template <class T>
using wide_t = std::conditional_t<complex_v<T>, std::complex<double>, double>;
template <class T>
wide_t<T> wide(T x) {
  return wide_t<T>(x);
}
template <class T>
T narrow(wide_t<T> x) {
  if constexpr (complex_v<T>)
    return {static_cast<real_t<T>>(x.real()), static_cast<real_t<T>>(x.imag())};
  else
    return static_cast<T>(x);
}
/// x += y.
template <class T>
void add(T& x, wide_t<T> y) {
  x = narrow<T>(wide(x) + y);
}

}  // namespace reference
}  // namespace reclab
