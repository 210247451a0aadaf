// SPDX-License-Identifier: GPL-3.0-or-later
// The reference that the CPU's and CUDA's operations are tested against: each operation as the loop that its sentence in backend.h says, in
// double precision, one entry after the other. It shares no arithmetic with them and is slow; nothing but tests calls it.
#pragma once

#include <complex>
#include <cstdint>
#include <stop_token>
#include <type_traits>

#include "array/backend.h"
#include "array/elements.h"
#include "array/error.h"

namespace reclab {

Backend& reference_backend();

namespace reference {

class ReferenceBackend final : public Backend {
 public:
  Device device() const override { return Device::cpu; }
  std::string name() const override { return "reference"; }
  void* allocate(std::size_t bytes) override;
  void release(void* memory) noexcept override;
  void zero(void* memory, std::size_t bytes) override;
  void upload(void* to, const void* from, std::size_t bytes) override;
  void download(void* to, const void* from, std::size_t bytes) override;
  void copy(void* to, const void* from, std::size_t bytes) override;
  void finish() override {}

#include "array/operations.inc"
};

using Index = std::int64_t;

/// What is calculated with: double, or complex of it.
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

inline void poll(const std::stop_token& stop) {
  if (stop.stop_requested()) throw Cancelled();
}

}  // namespace reference
}  // namespace reclab
