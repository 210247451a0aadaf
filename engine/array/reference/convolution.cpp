// SPDX-License-Identifier: GPL-3.0-or-later
#include <complex>

#include "array/reference/reference_backend.h"

namespace reclab::reference {

void ReferenceBackend::depthwise(DType type, const DepthwiseDims& d, const void* x, const void* w, void* y) {
  with_real(type, [&](auto zero) {
    using T = decltype(zero);
    for (Index r = 0; r < d.steps * d.batch; ++r)
      for (Index c = 0; c < d.channels; ++c) {
        double sum = 0.0;
        for (Index j = 0; j < d.taps; ++j) sum += wide(as<T>(w)[c * d.taps + j]) * wide(as<T>(x)[(r + j * d.batch) * d.channels + c]);
        as<T>(y)[r * d.channels + c] = narrow<T>(sum);
      }
  });
}
void ReferenceBackend::depthwise_adjoint(DType type, const DepthwiseDims& d, const void* x, const void* w, const void* gy, void* gx,
                                         void* gw) {
  with_real(type, [&](auto zero) {
    using T = decltype(zero);
    for (Index c = 0; c < d.channels; ++c) {
      for (Index r = 0; gx && r < (d.steps + d.taps - 1) * d.batch; ++r) {
        double sum = 0.0;
        for (Index j = 0; j < d.taps; ++j)
          if (const Index of = r - j * d.batch; of >= 0 && of < d.steps * d.batch)
            sum += wide(as<T>(w)[c * d.taps + j]) * wide(as<T>(gy)[of * d.channels + c]);
        add(as<T>(gx)[r * d.channels + c], sum);
      }
      for (Index j = 0; gw && j < d.taps; ++j) {
        double sum = 0.0;
        for (Index r = 0; r < d.steps * d.batch; ++r)
          sum += wide(as<T>(x)[(r + j * d.batch) * d.channels + c]) * wide(as<T>(gy)[r * d.channels + c]);
        add(as<T>(gw)[c * d.taps + j], sum);
      }
    }
  });
}

void ReferenceBackend::vandermonde(DType complex, Index channels, Index modes, Index steps, const void* w, const void* a, void* kernel) {
  with_real(real_of(complex), [&](auto zero) {
    using T = std::complex<decltype(zero)>;
    for (Index c = 0; c < channels; ++c)
      for (Index k = 0; k < steps; ++k) {
        std::complex<double> sum{};
        for (Index n = 0; n < modes; ++n)
          sum += wide(as<T>(w)[c * modes + n]) * std::pow(wide(as<T>(a)[c * modes + n]), static_cast<int>(k));
        as<T>(kernel)[c * steps + k] = narrow<T>(sum);
      }
  });
}
void ReferenceBackend::vandermonde_adjoint(DType complex, Index channels, Index modes, Index steps, const void* w, const void* a,
                                           const void* gkernel, void* gw, void* ga) {
  with_real(real_of(complex), [&](auto zero) {
    using T = std::complex<decltype(zero)>;
    for (Index i = 0; i < channels * modes; ++i) {
      const std::complex<double> base = std::conj(wide(as<T>(a)[i])), weight = std::conj(wide(as<T>(w)[i]));
      std::complex<double> of_w{}, of_a{};
      for (Index k = 0; k < steps; ++k) {
        const std::complex<double> g = wide(as<T>(gkernel)[i / modes * steps + k]);
        of_w += g * std::pow(base, static_cast<int>(k));
        if (k) of_a += g * weight * static_cast<double>(k) * std::pow(base, static_cast<int>(k - 1));
      }
      if (gw) add(as<T>(gw)[i], of_w);
      if (ga) add(as<T>(ga)[i], of_a);
    }
  });
}

void ReferenceBackend::convolve(DType type, Index steps, Index batch, Index channels, const void* kernel, const void* u, void* y) {
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    for (Index t = 0; t < steps; ++t)
      for (Index b = 0; b < batch; ++b)
        for (Index c = 0; c < channels; ++c) {
          wide_t<T> sum{};
          for (Index j = 0; j <= t; ++j) sum += wide(as<T>(kernel)[c * steps + j]) * wide(as<T>(u)[((t - j) * batch + b) * channels + c]);
          as<T>(y)[(t * batch + b) * channels + c] = narrow<T>(sum);
        }
  });
}
void ReferenceBackend::convolve_adjoint(DType type, Index steps, Index batch, Index channels, const void* kernel, const void* u,
                                        const void* gy, void* gkernel, void* gu) {
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    const auto at = [&](const void* x, Index t, Index b, Index c) { return wide(as<T>(x)[(t * batch + b) * channels + c]); };
    for (Index c = 0; c < channels; ++c)
      for (Index j = 0; j < steps; ++j) {
        wide_t<T> sum{};
        for (Index t = j; gkernel && t < steps; ++t)
          for (Index b = 0; b < batch; ++b) sum += at(gy, t, b, c) * conjugate(at(u, t - j, b, c));
        if (gkernel) add(as<T>(gkernel)[c * steps + j], sum);
        for (Index b = 0; gu && b < batch; ++b) {
          wide_t<T> later{};
          for (Index t = j; t < steps; ++t) later += at(gy, t, b, c) * conjugate(wide(as<T>(kernel)[c * steps + t - j]));
          add(as<T>(gu)[(j * batch + b) * channels + c], later);
        }
      }
  });
}

}  // namespace reclab::reference
