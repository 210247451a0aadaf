// SPDX-License-Identifier: GPL-3.0-or-later
// Causal convolution of real sequences by FFTs of twice their length, in the precision of the arrays.
#pragma once

#include <cstdint>
#include <mutex>

namespace reclab::cpu {

/// Held by whoever makes an FFTW plan: the planner is not thread-safe, the execution of plans is.
std::mutex& planner();

/// y[t, b, c] = sum_{j <= t} kernel[c, j] u[t - j, b, c]; T is float or double.
template <class T>
void convolve(std::int64_t steps, std::int64_t batch, std::int64_t channels, const T* kernel, const T* u, T* y);
/// Adds the adjoints of that; gkernel or gu may be null.
template <class T>
void convolve_adjoint(std::int64_t steps, std::int64_t batch, std::int64_t channels, const T* kernel, const T* u, const T* gy, T* gkernel, T* gu);

}  // namespace reclab::cpu
