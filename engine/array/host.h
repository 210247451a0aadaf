// SPDX-License-Identifier: GPL-3.0-or-later
// Copies between the host and a device: numbers of any of the backend's types, read as double and written from double.
#pragma once

#include <complex>
#include <cstdint>
#include <span>
#include <vector>

#include "array/backend.h"

namespace reclab {

// Throw Cancelled where this thread is to stop (StopScope).

/// n zeros.
std::vector<double> zeros(std::int64_t n);
/// n entries from `offset` on of an array in a backend's memory, as doubles or complex doubles.
std::vector<double> to_double(Backend& backend, DType type, const void* from, std::int64_t n, std::int64_t offset = 0);
std::vector<std::complex<double>> to_complex(Backend& backend, DType type, const void* from, std::int64_t n, std::int64_t offset = 0);
/// The bytes of an array of a real type, for Backend::upload.
std::vector<char> narrowed(DType type, std::span<const double> values);
/// Whether every number of a host's copy of a real array is finite.
bool all_finite(DType type, std::span<const char> bytes);

}  // namespace reclab
