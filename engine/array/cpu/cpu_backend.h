// SPDX-License-Identifier: GPL-3.0-or-later
// The CPU's Backend. Each family of operations is defined in the file of its name.
#pragma once

#include "array/elements.h"
#include "array/host_memory.h"

namespace reclab::cpu {

class CpuBackend final : public HostMemoryBackend {
 public:
  std::string name() const override { return "CPU"; }
  void* allocate(std::size_t bytes) override;

#include "array/operations.inc"

  // Optional operations of a backend: products and convolutions with a shared operand that is prepared once.
  void pack(DType type, std::int64_t k, std::int64_t n, bool transpose, const void* b, void* packed) override;
  void matmul_packed(DType type, std::int64_t m, std::int64_t n, std::int64_t k, bool transpose, const void* a, const void* b,
                     const void* packed, const void* added, bool by_rows, void* c, bool accumulate) override;
  void row_times_packed(DType type, std::int64_t n, std::int64_t k, const void* a, const void* b, const void* packed, const void* added,
                        void* c, const EntryRanges& entries) override;
  void matmul_biased(DType type, const MatMul& shape, const void* a, const void* b, const void* bias, void* c) override;
  std::size_t spectrum_size(DType type, std::int64_t steps, std::int64_t channels) override;
  void spectrum(DType type, std::int64_t steps, std::int64_t channels, const void* kernel, void* spectrum) override;
  void convolve_with(DType type, std::int64_t steps, std::int64_t batch, std::int64_t channels, const void* kernel, const void* spectrum,
                     const void* u, void* y) override;
  void convolve_adjoint_with(DType type, std::int64_t steps, std::int64_t batch, std::int64_t channels, const void* kernel,
                             const void* spectrum, const void* u, const void* gy, void* gkernel, void* gu) override;

  std::size_t cumulative_sum_scratch(DType type, std::int64_t inner) const override;
  std::size_t norm_scratch(std::int64_t rows, std::int64_t n) const override;
  std::size_t matmul_scratch(DType type, const MatMul& shape) const override;
  std::size_t diagonal_scratch(DType type, const DiagonalDims& dims, ScanMethod method, bool adjoint) const override;
  std::size_t outer_scratch(DType type, const OuterDims& dims, bool attention, bool adjoint) const override;
  std::size_t gated_scratch(DType type, const GatedDims& dims, bool adjoint) const override;
  std::size_t selective_scratch(DType type, const SelectiveDims& dims, bool adjoint) const override;
  std::size_t vandermonde_scratch(std::int64_t modes) const override;
  std::size_t convolve_scratch(DType type, std::int64_t steps, bool adjoint) const override;
};

}  // namespace reclab::cpu
