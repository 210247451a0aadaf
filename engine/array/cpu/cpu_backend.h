// SPDX-License-Identifier: GPL-3.0-or-later
// The CPU's Backend. Each family of operations is defined in the file of its name.
#pragma once

#include <stop_token>

#include "array/backend.h"
#include "array/elements.h"
#include "array/error.h"

namespace reclab::cpu {

class CpuBackend final : public Backend {
 public:
  Device device() const override { return Device::cpu; }
  std::string name() const override { return "CPU"; }
  void* allocate(std::size_t bytes) override;
  void release(void* memory) noexcept override;
  void zero(void* memory, std::size_t bytes) override;
  void upload(void* to, const void* from, std::size_t bytes) override;
  void download(void* to, const void* from, std::size_t bytes) override;
  void copy(void* to, const void* from, std::size_t bytes) override;
  void finish() override {}

#include "array/operations.inc"

  // What other backends need not have: products and convolutions with what many of them are made with.
  void pack(DType type, std::int64_t k, std::int64_t n, bool transpose, const void* b, void* packed) override;
  void matmul_packed(DType type, std::int64_t m, std::int64_t n, std::int64_t k, bool transpose, const void* a, const void* b, const void* packed, void* c,
                     bool accumulate) override;
  std::size_t spectrum_size(DType type, std::int64_t steps, std::int64_t channels) override;
  void spectrum(DType type, std::int64_t steps, std::int64_t channels, const void* kernel, void* spectrum) override;
  void convolve_with(DType type, std::int64_t steps, std::int64_t batch, std::int64_t channels, const void* kernel, const void* spectrum, const void* u,
                     void* y) override;
  void convolve_adjoint_with(DType type, std::int64_t steps, std::int64_t batch, std::int64_t channels, const void* kernel, const void* spectrum,
                             const void* u, const void* gy, void* gkernel, void* gu) override;
};

inline void poll(const std::stop_token& stop) {
  if (stop.stop_requested()) throw Cancelled();
}

}  // namespace reclab::cpu
