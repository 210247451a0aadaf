// SPDX-License-Identifier: GPL-3.0-or-later
#include "execution/planning_backend.h"

#include <cstdlib>
#include <cstring>
#include <string>

#include "array/error.h"

namespace reclab {

void* PlanningBackend::allocate(std::size_t bytes) {
  void* memory = std::calloc(bytes, 1);
  if (!memory)
    throw Error("There is not enough memory for an array of " +
                (bytes >> 20 ? std::to_string(bytes >> 20) + " MiB" : std::to_string(bytes) + " bytes") +
                ": shorten the sequence or make the model smaller.");
  return memory;
}
void PlanningBackend::release(void* memory) noexcept { std::free(memory); }

void PlanningBackend::download(void* to, const void*, std::size_t bytes) { std::memset(to, 0x3f, bytes); }  // 0.75 in float, 5e-4 in double

void PlanningBackend::add_scaled(DType, std::int64_t, int, const void*, void*, bool) {}
void PlanningBackend::unary(Unary, DType, std::int64_t, const void*, void*, double, double) {}
void PlanningBackend::unary_adjoint(Unary, DType, std::int64_t, const void*, const void*, const void*, void*, double, double) {}
void PlanningBackend::binary(Binary, DType, const Broadcast&, const void*, const void*, void*) {}
void PlanningBackend::binary_adjoint(Binary, DType, const Broadcast&, const void*, const void*, const void*, void*, void*) {}
void PlanningBackend::join(DType, std::int64_t, const void*, const void*, void*) {}
void PlanningBackend::join_adjoint(DType, std::int64_t, const void*, void*, void*) {}
void PlanningBackend::part(DType, int, std::int64_t, const void*, void*) {}
void PlanningBackend::part_adjoint(DType, int, std::int64_t, const void*, void*) {}

double PlanningBackend::log2_norm(DType, std::int64_t, const void*, int) { return 0.0; }
int PlanningBackend::exponent(DType, std::int64_t, const void*) { return 0; }
void PlanningBackend::sum(DType, std::int64_t, std::int64_t, std::int64_t, double, const void*, void*) {}
void PlanningBackend::sum_adjoint(DType, std::int64_t, std::int64_t, std::int64_t, double, const void*, void*) {}
void PlanningBackend::cumulative_sum(DType type, std::int64_t, std::int64_t, std::int64_t inner, bool, const void*, void*, bool) {
  count(of_.cumulative_sum_scratch(type, inner));
}
void PlanningBackend::norm(DType, std::int64_t, std::int64_t, bool, double, const void*, const void*, const void*, void*) {}
void PlanningBackend::norm_adjoint(DType, std::int64_t rows, std::int64_t n, bool, double, const void*, const void*, const void*, void*,
                                   bool, void*, void*) {
  count(of_.norm_scratch(rows, n));
}

void PlanningBackend::gather(DType, const Strided&, const void*, void*, bool) {}
void PlanningBackend::scatter(DType, const Strided&, const void*, void*, bool) {}

void PlanningBackend::matmul(DType type, const MatMul& shape, const void*, const void*, void*, bool) {
  count(of_.matmul_scratch(type, shape));
}
void PlanningBackend::invert_unit_lower(DType, std::int64_t, std::int64_t, const void*, void*) {}

void PlanningBackend::diagonal(DType type, const DiagonalDims& dims, ScanMethod method, const void*, const void*, const void*, void*,
                               std::stop_token) {
  count(of_.diagonal_scratch(type, dims, method, false));
}
void PlanningBackend::diagonal_adjoint(DType type, const DiagonalDims& dims, ScanMethod method, const void*, const void*, const void*,
                                       const void*, const void*, void*, bool, void*, bool, void*, double*, int*, std::stop_token) {
  count(of_.diagonal_scratch(type, dims, method, true));
}
void PlanningBackend::independent(Unary, DType type, const DiagonalDims& dims, const void*, const void*, const void*, void*,
                                  std::stop_token) {
  count(of_.diagonal_scratch(type, dims, ScanMethod::steps, false));  // a row, of zeros
}

void PlanningBackend::outer(DType type, const OuterDims& dims, bool attention, const void*, const void*, const void*, const void*, void*,
                            void*, void*, std::stop_token) {
  count(of_.outer_scratch(type, dims, attention, false));
}
void PlanningBackend::outer_adjoint(DType type, const OuterDims& dims, bool attention, const void*, const void*, const void*, const void*,
                                    const void*, const void*, void*, void*, void*, void*, double*, std::stop_token) {
  count(of_.outer_scratch(type, dims, attention, true));
}

void PlanningBackend::gated(DType type, const GatedDims& dims, const void*, const void*, const void*, const void*, const void*, void*,
                            void*, std::stop_token) {
  count(of_.gated_scratch(type, dims, false));
}
void PlanningBackend::gated_adjoint(DType type, const GatedDims& dims, const void*, const void*, const void*, const void*, const void*,
                                    const void*, const void*, void*, void*, void*, void*, void*, int*, std::stop_token) {
  count(of_.gated_scratch(type, dims, true));
}

void PlanningBackend::selective(DType type, const SelectiveDims& dims, const void*, const void*, const void*, const void*, const void*,
                                const void*, void*, void*, void*, std::stop_token) {
  count(of_.selective_scratch(type, dims, false));
}
void PlanningBackend::selective_adjoint(DType type, const SelectiveDims& dims, const void*, const void*, const void*, const void*,
                                        const void*, const void*, const void*, const void*, const void*, void*, void*, void*, void*, void*,
                                        void*, double*, int*, std::stop_token) {
  count(of_.selective_scratch(type, dims, true));
}

void PlanningBackend::softmax(DType, std::int64_t, std::int64_t, std::int64_t, std::int64_t, const void*, void*) {}
void PlanningBackend::softmax_adjoint(DType, std::int64_t, std::int64_t, const void*, void*) {}
void PlanningBackend::by_distance(DType, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t, const void*, void*) {}
void PlanningBackend::by_distance_adjoint(DType, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t, const void*, void*) {
}
void PlanningBackend::keep_columns(DType, std::int64_t, std::int64_t, std::int64_t, const void*, bool, void*) {}
void PlanningBackend::weigh(DType, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t, const void*, const void*,
                            const void*, const void*, void*) {}
void PlanningBackend::weigh_adjoint(DType, std::int64_t, std::int64_t, std::int64_t, std::int64_t, std::int64_t, const void*, const void*,
                                    const void*, const void*, const void*, void*, void*, void*) {}

void PlanningBackend::depthwise(DType, const DepthwiseDims&, const void*, const void*, void*) {}
void PlanningBackend::depthwise_adjoint(DType, const DepthwiseDims&, const void*, const void*, const void*, void*, void*) {}
void PlanningBackend::vandermonde(DType, std::int64_t, std::int64_t modes, std::int64_t, const void*, const void*, void*) {
  count(of_.vandermonde_scratch(modes));
}
void PlanningBackend::vandermonde_adjoint(DType, std::int64_t, std::int64_t, std::int64_t, const void*, const void*, const void*, void*,
                                          void*) {}
void PlanningBackend::convolve(DType type, std::int64_t steps, std::int64_t, std::int64_t, const void*, const void*, void*) {
  count(of_.convolve_scratch(type, steps, false));
}
void PlanningBackend::convolve_adjoint(DType type, std::int64_t steps, std::int64_t, std::int64_t, const void*, const void*, const void*,
                                       void*, void*) {
  count(of_.convolve_scratch(type, steps, true));
}

void PlanningBackend::loss(DType, LossTerm, const LossDims&, const void*, const void*, const void*, void*, void*) {}

}  // namespace reclab
