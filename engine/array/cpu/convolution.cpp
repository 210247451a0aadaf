// SPDX-License-Identifier: GPL-3.0-or-later
#include "array/cpu/cpu_backend.h"

#include <fftw3.h>

#include <complex>
#include <cstdint>
#include <map>
#include <mutex>

#include "array/cpu/fourier/fourier.h"
#include "array/cpu/fourier/groups.h"
#include "array/cpu/processor/pairs.h"
#include "array/cpu/processor/scratch.h"
#include "array/stop.h"

namespace reclab::cpu {
namespace {

/// Complex transforms of one length.
struct Fourier {
  std::int64_t size;
  fftw_plan there, back;
  static fftw_complex* raw(cpu::Scratch<std::complex<double>>& x) { return reinterpret_cast<fftw_complex*>(x.data()); }
  void forward(cpu::Scratch<std::complex<double>>& x) const { fftw_execute_dft(there, raw(x), raw(x)); }
  void backward(cpu::Scratch<std::complex<double>>& x) const { fftw_execute_dft(back, raw(x), raw(x)); }
};

const Fourier& fourier(std::int64_t steps) {
  static auto& plans = *new std::map<std::int64_t, Fourier>;  // to the end of the process, when other threads may still compute
  const std::int64_t size = transform_size(steps);
  const std::lock_guard lock(cpu::planner());
  const auto found = plans.find(size);
  if (found != plans.end()) return found->second;
  cpu::Scratch<std::complex<double>> scratch(static_cast<std::size_t>(size));
  const unsigned flags = FFTW_ESTIMATE | FFTW_UNALIGNED;
  const Fourier plan{size, fftw_plan_dft_1d(static_cast<int>(size), Fourier::raw(scratch), Fourier::raw(scratch), FFTW_FORWARD, flags),
                     fftw_plan_dft_1d(static_cast<int>(size), Fourier::raw(scratch), Fourier::raw(scratch), FFTW_BACKWARD, flags)};
  return plans.emplace(size, plan).first->second;
}

template <class T>
void load(const T* from, std::int64_t stride, std::int64_t n, std::int64_t size, cpu::Scratch<std::complex<double>>& to) {
  to.assign(static_cast<std::size_t>(size), {});
  for (std::int64_t i = 0; i < n; ++i) to[static_cast<std::size_t>(i)] = std::complex<double>(from[i * stride]);
}
template <class T>
void store(const cpu::Scratch<std::complex<double>>& from, double unit, T* to, std::int64_t stride, std::int64_t n, bool add) {
  for (std::int64_t i = 0; i < n; ++i) {
    const std::complex<double> value = from[static_cast<std::size_t>(i)] * unit;
    const T result(static_cast<real_t<T>>(value.real()), static_cast<real_t<T>>(value.imag()));
    to[i * stride] = add ? to[i * stride] + result : result;
  }
}

}  // namespace

void CpuBackend::depthwise(DType type, const DepthwiseDims& d, const void* x_, const void* w_, void* y_) {
  with_real(type, [&](auto zero) {
    using T = decltype(zero);
    for (std::int64_t t = 0; t < d.steps; ++t)
      for (std::int64_t b = 0; b < d.batch; ++b) {
        check_stop();
        T* y = as<T>(y_) + (t * d.batch + b) * d.channels;
        std::fill(y, y + d.channels, T(0));
        for (std::int64_t j = 0; j < d.taps; ++j) {
          const T* x = as<T>(x_) + ((t + j) * d.batch + b) * d.channels;
          const T* w = as<T>(w_) + j;
          for (std::int64_t c = 0; c < d.channels; ++c) y[c] += w[c * d.taps] * x[c];
        }
      }
  });
}

void CpuBackend::depthwise_adjoint(DType type, const DepthwiseDims& d, const void* x_, const void* w_, const void* gy_, void* gx_,
                                   void* gw_) {
  with_real(type, [&](auto zero) {
    using T = decltype(zero);
    for (std::int64_t t = 0; t < d.steps; ++t)
      for (std::int64_t b = 0; b < d.batch; ++b) {
        check_stop();
        const T* gy = as<T>(gy_) + (t * d.batch + b) * d.channels;
        for (std::int64_t j = 0; j < d.taps; ++j) {
          const std::int64_t row = ((t + j) * d.batch + b) * d.channels;
          if (gx_)
            for (std::int64_t c = 0; c < d.channels; ++c) as<T>(gx_)[row + c] += as<T>(w_)[c * d.taps + j] * gy[c];
          if (gw_)
            for (std::int64_t c = 0; c < d.channels; ++c) as<T>(gw_)[c * d.taps + j] += as<T>(x_)[row + c] * gy[c];
        }
      }
  });
}

void CpuBackend::vandermonde(DType complex, std::int64_t channels, std::int64_t modes, std::int64_t steps, const void* w_, const void* a_,
                             void* kernel_) {
  with_real(real_of(complex), [&](auto zero) {
    using T = std::complex<decltype(zero)>;
    using Wide = std::complex<double>;  // powers and sums over all of time
    Scratch<Wide> power, a;
    for (std::int64_t c = 0; c < channels; ++c) {
      T* kernel = as<T>(kernel_) + c * steps;
      power.assign(as<T>(w_) + c * modes, as<T>(w_) + (c + 1) * modes);
      a.assign(as<T>(a_) + c * modes, as<T>(a_) + (c + 1) * modes);
      for (std::int64_t t = 0; t < steps; ++t) {
        if (t % 256 == 0) check_stop();
        Wide sum{};
        for (const Wide& p : power) sum += p;
        cpu::multiply(modes, a.data(), false, power.data());
        kernel[t] = T(sum);
      }
    }
  });
}

void CpuBackend::vandermonde_adjoint(DType complex, std::int64_t channels, std::int64_t modes, std::int64_t steps, const void* w_,
                                     const void* a_, const void* gkernel_, void* gw_, void* ga_) {
  with_real(real_of(complex), [&](auto zero) {
    using T = std::complex<decltype(zero)>;
    // Horner backwards in time: value = sum_k g_k conj(a)^k and its derivative sum_k k g_k conj(a)^(k-1).
    for (std::int64_t c = 0; c < channels; ++c) {
      const T* g = as<T>(gkernel_) + c * steps;
      for (std::int64_t n = 0; n < modes; ++n) {
        const std::complex<double> a(std::conj(as<T>(a_)[c * modes + n])), w(std::conj(as<T>(w_)[c * modes + n]));
        std::complex<double> value{}, slope{};
        check_stop();
        for (std::int64_t t = steps - 1; t >= 0; --t) {
          slope = slope * a + value;
          value = value * a + std::complex<double>(g[t]);
        }
        if (gw_) as<T>(gw_)[c * modes + n] += T(value);
        if (ga_) as<T>(ga_)[c * modes + n] += T(w * slope);
      }
    }
  });
}

std::size_t CpuBackend::vandermonde_scratch(std::int64_t modes) const {
  return static_cast<std::size_t>(2 * modes) * sizeof(std::complex<double>);
}

std::size_t CpuBackend::convolve_scratch(DType type, std::int64_t steps, bool adjoint) const {
  if (is_complex(type)) return (adjoint ? 4 : 2) * static_cast<std::size_t>(transform_size(steps)) * sizeof(std::complex<double>);
  std::int64_t most = 0;
  with_real(type, [&](auto zero) {
    using T = decltype(zero);
    for (const auto* way : {&convolution_by_rows<T>(), &convolution_by_lanes<T>()}) most = std::max(most, way->scratch(steps, adjoint));
  });
  return static_cast<std::size_t>(most) * bytes_of(type);
}

std::size_t CpuBackend::spectrum_size(DType type, std::int64_t steps, std::int64_t channels) {
  if (is_complex(type)) return 0;
  std::int64_t size = 0;
  with_real(type, [&](auto zero) { size = Convolution<decltype(zero)>::of(steps, channels).spectrum_size(steps, channels); });
  return static_cast<std::size_t>(size) * bytes_of(type);
}

void CpuBackend::spectrum(DType type, std::int64_t steps, std::int64_t channels, const void* kernel, void* spectrum) {
  if (is_complex(type)) return;
  with_real(type, [&](auto zero) {
    using T = decltype(zero);
    Convolution<T>::of(steps, channels).spectrum(steps, channels, as<T>(kernel), as<T>(spectrum));
  });
}

void CpuBackend::convolve_with(DType type, std::int64_t steps, std::int64_t batch, std::int64_t channels, const void* kernel,
                               const void* spectrum, const void* u, void* y) {
  if (is_complex(type)) return convolve(type, steps, batch, channels, kernel, u, y);
  with_real(type, [&](auto zero) {
    using T = decltype(zero);
    Convolution<T>::of(steps, channels).convolve(steps, batch, channels, as<T>(kernel), as<T>(spectrum), as<T>(u), as<T>(y));
  });
}

void CpuBackend::convolve_adjoint_with(DType type, std::int64_t steps, std::int64_t batch, std::int64_t channels, const void* kernel,
                                       const void* spectrum, const void* u, const void* gy, void* gkernel, void* gu) {
  if (is_complex(type)) return convolve_adjoint(type, steps, batch, channels, kernel, u, gy, gkernel, gu);
  with_real(type, [&](auto zero) {
    using T = decltype(zero);
    Convolution<T>::of(steps, channels)
        .adjoint(steps, batch, channels, as<T>(kernel), as<T>(spectrum), as<T>(u), as<T>(gy), as<T>(gkernel), as<T>(gu));
  });
}

void CpuBackend::convolve(DType type, std::int64_t steps, std::int64_t batch, std::int64_t channels, const void* kernel, const void* u,
                          void* y) {
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (!complex_v<T>) {
      Convolution<T>::of(steps, channels).convolve(steps, batch, channels, as<T>(kernel), nullptr, as<T>(u), as<T>(y));
    } else {
      cpu::Scratch<std::complex<double>> k, x;
      const Fourier& fft = fourier(steps);
      for (std::int64_t c = 0; c < channels; ++c) {
        check_stop();
        load(as<T>(kernel) + c * steps, 1, steps, fft.size, k);
        fft.forward(k);
        for (std::int64_t b = 0; b < batch; ++b) {
          load(as<T>(u) + b * channels + c, batch * channels, steps, fft.size, x);
          fft.forward(x);
          cpu::multiply(fft.size, k.data(), false, x.data());
          fft.backward(x);
          store(x, 1.0 / static_cast<double>(fft.size), as<T>(y) + b * channels + c, batch * channels, steps, false);
        }
      }
    }
  });
}

void CpuBackend::convolve_adjoint(DType type, std::int64_t steps, std::int64_t batch, std::int64_t channels, const void* kernel,
                                  const void* u, const void* gy, void* gkernel, void* gu) {
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (!complex_v<T>) {
      Convolution<T>::of(steps, channels)
          .adjoint(steps, batch, channels, as<T>(kernel), nullptr, as<T>(u), as<T>(gy), as<T>(gkernel), as<T>(gu));
    } else {
      cpu::Scratch<std::complex<double>> k, x, g, sum;
      const Fourier& fft = fourier(steps);
      const double unit = 1.0 / static_cast<double>(fft.size);
      for (std::int64_t c = 0; c < channels; ++c) {
        check_stop();
        load(as<T>(kernel) + c * steps, 1, steps, fft.size, k);
        fft.forward(k);
        sum.assign(static_cast<std::size_t>(fft.size), {});
        for (std::int64_t b = 0; b < batch; ++b) {
          load(as<T>(gy) + b * channels + c, batch * channels, steps, fft.size, g);
          fft.forward(g);
          if (gkernel) {
            load(as<T>(u) + b * channels + c, batch * channels, steps, fft.size, x);
            fft.forward(x);
            for (std::complex<double>& value : x) value = std::conj(value);
            cpu::multiply_add(fft.size, g.data(), x.data(), sum.data(), sum.data());
          }
          if (gu) {
            cpu::multiply(fft.size, k.data(), true, g.data());
            fft.backward(g);
            store(g, unit, as<T>(gu) + b * channels + c, batch * channels, steps, true);
          }
        }
        if (gkernel) {
          fft.backward(sum);
          store(sum, unit, as<T>(gkernel) + c * steps, 1, steps, true);
        }
      }
    }
  });
}

}  // namespace reclab::cpu
