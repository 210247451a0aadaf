// SPDX-License-Identifier: GPL-3.0-or-later
// Causal convolution of real sequences by FFTs of twice their length, in the precision of the arrays.
#pragma once

#include <cstdint>
#include <mutex>

namespace reclab::cpu {

/// Locked while an FFTW plan is made: the planner is not thread-safe, the execution of plans is.
std::mutex& planner();

/// The transform of a kernel [channels, steps], spectrum_size() numbers, for convolutions with it. T is float or double.
template <class T>
std::int64_t spectrum_size(std::int64_t steps, std::int64_t channels);
template <class T>
void spectrum(std::int64_t steps, std::int64_t channels, const T* kernel, T* spectrum);
/// y[t, b, c] = sum_{j <= t} kernel[c, j] u[t - j, b, c]; of the kernel either itself or its spectrum is read, the other may be null.
template <class T>
void convolve(std::int64_t steps, std::int64_t batch, std::int64_t channels, const T* kernel, const T* spectrum, const T* u, T* y);
/// Adds the adjoints of that; gkernel or gu may be null.
template <class T>
void convolve_adjoint(std::int64_t steps, std::int64_t batch, std::int64_t channels, const T* kernel, const T* spectrum, const T* u,
                      const T* gy, T* gkernel, T* gu);

/// The scratch of either, in numbers.
template <class T>
std::int64_t convolve_scratch(std::int64_t steps, bool adjoint);

}  // namespace reclab::cpu
