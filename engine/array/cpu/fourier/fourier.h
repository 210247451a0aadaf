// SPDX-License-Identifier: GPL-3.0-or-later
// Causal convolution of real sequences by FFTs of twice their length, in the precision of the arrays. T is float or double.
#pragma once

#include <cstdint>
#include <mutex>

namespace reclab::cpu {

/// Locked while an FFTW plan is made: the planner is not thread-safe, the execution of plans is.
std::mutex& planner();

/// y[t, b, c] = sum_{j <= t} kernel[c, j] u[t - j, b, c], t < steps. Of the kernel [channels, steps] either itself or its spectrum is read,
/// the other may be null.
template <class T>
class Convolution {
 public:
  virtual ~Convolution() = default;
  /// The way that is faster for arrays of these sizes, whatever the batch: its numbers do not depend on what is beside a sequence.
  static const Convolution& of(std::int64_t steps, std::int64_t channels);

  /// The numbers of a kernel's transform, for convolutions with it, and of the scratch of all threads.
  virtual std::int64_t spectrum_size(std::int64_t steps, std::int64_t channels) const = 0;
  virtual std::int64_t scratch(std::int64_t steps, bool adjoint) const = 0;
  virtual void spectrum(std::int64_t steps, std::int64_t channels, const T* kernel, T* spectrum) const = 0;
  virtual void convolve(std::int64_t steps, std::int64_t batch, std::int64_t channels, const T* kernel, const T* spectrum, const T* u,
                        T* y) const = 0;
  /// Adds the adjoints of that; gkernel or gu may be null.
  virtual void adjoint(std::int64_t steps, std::int64_t batch, std::int64_t channels, const T* kernel, const T* spectrum, const T* u,
                       const T* gy, T* gkernel, T* gu) const = 0;
};

/// Each channel by itself, by FFTW: for few channels and for short sequences.
template <class T>
const Convolution<T>& convolution_by_rows();
/// As many channels side by side as a register has lanes.
template <class T>
const Convolution<T>& convolution_by_lanes();

}  // namespace reclab::cpu
