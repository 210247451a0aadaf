// SPDX-License-Identifier: GPL-3.0-or-later
// Depth-wise convolution, the kernels of long convolutions, and these by Fourier transforms. Transforms of real sequences are made by a
// library where the machine has one (`transforms`, recorder.h), in the precision of their type; its requests, and the kernels before and
// after it, are in spectra.h. All others are our own: of complex numbers in double for every type, lengths are powers of two, and since the
// spectra are only multiplied and go back they stay in the order in which the passes leave them, so no pass restores one. They need a table
// of roots a length, and can be recorded.
#pragma once

#include <algorithm>
#include <climits>
#include <cmath>
#include <memory>
#include <vector>

#include "array/cuda/kernel_backend.h"
#include "array/cuda/reduce.h"
#include "array/cuda/spectra.h"

namespace reclab::kernel {

// ---- Kernels -----------------------------------------------------------------------------------------------------------------------

template <class T>
struct Depthwise {
  DepthwiseDims d;
  const T *x, *w;
  T* y;
  RECLAB_HD void operator()(Index i) const {
    const Index c = i % d.channels;
    T sum(0);
    for (Index j = 0; j < d.taps; ++j) sum += w[c * d.taps + j] * x[i + j * d.batch * d.channels];
    y[i] = sum;
  }
};
template <class T>
struct DepthwiseInputAdjoint {
  DepthwiseDims d;
  const T *w, *gy;
  T* gx;
  RECLAB_HD void operator()(Index i) const {
    const Index c = i % d.channels, row = d.batch * d.channels, t = i / row;
    T sum(0);
    for (Index j = 0; j < d.taps; ++j)
      if (t - j >= 0 && t - j < d.steps) sum += w[c * d.taps + j] * gy[i - j * row];
    gx[i] += sum;
  }
};
template <class T>
struct DepthwiseWeightTerm {
  DepthwiseDims d;
  const T *x, *gy;
  RECLAB_HD T operator()(Index o, Index r) const {
    const Index c = o / d.taps, j = o % d.taps;
    return x[(r + j * d.batch) * d.channels + c] * gy[r * d.channels + c];
  }
};

template <class T>
RECLAB_HD inline T power_of(T a, Index exponent) {
  T result(1);
  for (; exponent; exponent /= 2) {
    if (exponent & 1) result = result * a;
    a = a * a;
  }
  return result;
}
/// Eight steps of a channel for each thread; powers and sums over all of time in double.
template <class T>
struct Vandermonde {
  static constexpr Index span = 8;
  const T *w, *a;
  T* kernel;
  Index modes, steps;
  RECLAB_HD Index chunks() const { return (steps + span - 1) / span; }
  RECLAB_HD void operator()(Index index) const {
    const Index c = index / chunks(), first = index % chunks() * span;
    using Wide = wide_t<T>;
    Wide sum[span];
    for (Wide& s : sum) s = Wide(0.0);
    for (Index n = 0; n < modes; ++n) {
      const Wide base = convert<Wide>(a[c * modes + n]);
      Wide power = convert<Wide>(w[c * modes + n]) * power_of(base, first);
      for (Wide& s : sum) {
        s += power;
        power = power * base;
      }
    }
    for (Index j = 0; j < span; ++j)
      if (first + j < steps) kernel[c * steps + first + j] = convert<T>(sum[j]);
  }
};
/// Horner's rule backwards in time: sum_k g_k conj(a)^k and its derivative.
template <class T>
struct VandermondeAdjoint {
  const T *w, *a, *g;
  T *gw, *ga;
  Index modes, steps;
  RECLAB_HD void operator()(Index i) const {
    using Wide = wide_t<T>;
    const Wide base = conjugate(convert<Wide>(a[i]));
    const T* row = g + i / modes * steps;
    Wide value(0.0), slope(0.0);
    for (Index t = steps - 1; t >= 0; --t) {
      slope = slope * base + value;
      value = value * base + convert<Wide>(row[t]);
    }
    if (gw) gw[i] += convert<T>(value);
    if (ga) ga[i] += convert<T>(conjugate(convert<Wide>(w[i])) * slope);
  }
};

// Our own Fourier transforms: in place, there by decimation in frequency, back by decimation in time, so that no order is ever restored.

/// The places of a transform's sequences: number s = (c, b), element i at (c * channel + b * batch) + i * stride.
struct Layout {
  Index channel, batch, stride, batches;
  RECLAB_HD Index at(Index s, Index i) const { return s / batches * channel + s % batches * batch + i * stride; }
};
template <class T>
struct LoadWaves {
  const T* from;
  Layout layout;
  Index steps, size;
  Wave* to;
  RECLAB_HD void operator()(Index index) const {
    const Index i = index % size;
    Wave value(0.0);
    if (i < steps) value = convert<wide_t<T>>(from[layout.at(index / size, i)]);
    to[index] = value;
  }
};
template <class T>
struct StoreWaves {
  const Wave* from;
  Layout layout;
  Index steps, size;
  T* to;
  bool add;
  RECLAB_HD void operator()(Index index) const {
    const Index s = index / steps, i = index % steps, at = layout.at(s, i);
    const Wave value = (1.0 / static_cast<double>(size)) * from[s * size + i];
    T result;
    if constexpr (complex_v<T>)
      result = {static_cast<real_t<T>>(value.re), static_cast<real_t<T>>(value.im)};
    else
      result = static_cast<T>(value.re);
    to[at] = add ? to[at] + result : result;
  }
};
RECLAB_HD inline void butterfly(Wave& x, Wave& y, Wave root, bool back) {
  if (back) {
    const Wave rotated = y * conjugate(root);
    y = x - rotated;
    x = x + rotated;
  } else {
    const Wave difference = x - y;
    x = x + y;
    y = difference * root;
  }
}
/// One pass of butterflies `half` apart; roots[j] = exp(-2 pi i j / size).
struct FourierPass {
  Wave* x;
  const Wave* roots;
  Index size, half;
  bool back;
  RECLAB_HD void operator()(Index index) const {
    const Index k = index % half, at = index / half * 2 * half + k;
    butterfly(x[at], x[at + half], roots[k * (size / (2 * half))], back);
  }
};
/// All passes within stretches of `stretch` (at most 1024) neighbours, in shared memory.
struct FourierInside {
  static constexpr int longest = 1024;
  Wave* x;
  const Wave* roots;
  Index size;
  int stretch;
  bool back;
  struct Shared {
    double re[longest], im[longest];
  };
  template <class Block>
  RECLAB_HD void operator()(Block& block, Index index, Shared& shared) const {
    Wave* own = x + index * stretch;
    block.phase([&](int thread) {
      for (int i = thread; i < stretch; i += 256) {
        shared.re[i] = own[i].re;
        shared.im[i] = own[i].im;
      }
    });
    for (int pass = 1; pass < stretch; pass *= 2) {
      const int half = back ? pass : stretch / 2 / pass;
      block.phase([&](int thread) {
        for (int j = thread; j < stretch / 2; j += 256) {
          const int k = j % half, at = j / half * 2 * half + k;
          Wave u{shared.re[at], shared.im[at]}, v{shared.re[at + half], shared.im[at + half]};
          butterfly(u, v, roots[k * (size / (2 * half))], back);
          shared.re[at] = u.re;
          shared.im[at] = u.im;
          shared.re[at + half] = v.re;
          shared.im[at + half] = v.im;
        }
      });
    }
    block.phase([&](int thread) {
      for (int i = thread; i < stretch; i += 256) own[i] = {shared.re[i], shared.im[i]};
    });
  }
};
/// x[(c, b), i] *= k[c, i], or its conjugate.
struct MultiplyWaves {
  Wave* x;
  const Wave* k;
  Index size, batches;
  bool conjugated;
  RECLAB_HD void operator()(Index index) const {
    const Wave factor = k[index / size / batches * size + index % size];
    x[index] = x[index] * (conjugated ? conjugate(factor) : factor);
  }
};
/// sum[c, i] = sum_b g[(c, b), i] conj(x[(c, b), i]).
struct CorrelateWaves {
  const Wave *g, *x;
  Wave* sum;
  Index size, batches;
  RECLAB_HD void operator()(Index index) const {
    const Index c = index / size, i = index % size;
    Wave total(0.0);
    for (Index b = 0; b < batches; ++b) {
      const Index at = (c * batches + b) * size + i;
      total += g[at] * conjugate(x[at]);
    }
    sum[index] = total;
  }
};

// ---- Launches ----------------------------------------------------------------------------------------------------------------------

template <class Machine>
void KernelBackend<Machine>::depthwise(DType type, const DepthwiseDims& d, const void* x, const void* w, void* y) {
  with_real(type, [&](auto zero) {
    using T = decltype(zero);
    machine_.each(d.steps * d.batch * d.channels, Depthwise<T>{d, as<T>(x), as<T>(w), as<T>(y)});
  });
}
template <class Machine>
void KernelBackend<Machine>::depthwise_adjoint(DType type, const DepthwiseDims& d, const void* x, const void* w, const void* gy, void* gx,
                                               void* gw) {
  with_real(type, [&](auto zero) {
    using T = decltype(zero);
    if (gx) machine_.each((d.steps + d.taps - 1) * d.batch * d.channels, DepthwiseInputAdjoint<T>{d, as<T>(w), as<T>(gy), as<T>(gx)});
    if (gw) reduce(DepthwiseWeightTerm<T>{d, as<T>(x), as<T>(gy)}, d.channels * d.taps, d.steps * d.batch, as<T>(gw), 1.0, true);
  });
}

template <class Machine>
void KernelBackend<Machine>::vandermonde(DType complex, Index channels, Index modes, Index steps, const void* w, const void* a,
                                         void* kernel) {
  with_real(real_of(complex), [&](auto zero) {
    using T = Complex<decltype(zero)>;
    const Vandermonde<T> f{as<T>(w), as<T>(a), as<T>(kernel), modes, steps};
    machine_.each(channels * f.chunks(), f);
  });
}
template <class Machine>
void KernelBackend<Machine>::vandermonde_adjoint(DType complex, Index channels, Index modes, Index steps, const void* w, const void* a,
                                                 const void* gkernel, void* gw, void* ga) {
  with_real(real_of(complex), [&](auto zero) {
    using T = Complex<decltype(zero)>;
    machine_.each(channels * modes, VandermondeAdjoint<T>{as<T>(w), as<T>(a), as<T>(gkernel), as<T>(gw), as<T>(ga), modes, steps});
  });
}

template <class Machine>
Fourier KernelBackend<Machine>::fourier_of(Index steps) {
  Index size = 2;
  while (size < 2 * steps) size *= 2;
  const std::lock_guard lock(roots_lock_);
  Fourier& fourier = roots_[size];
  if (!fourier.roots) {
    std::vector<Wave> roots(static_cast<std::size_t>(size / 2));
    for (Index i = 0; i < size / 2; ++i) {
      const double angle = -6.28318530717958647692 * static_cast<double>(i) / static_cast<double>(size);
      roots[static_cast<std::size_t>(i)] = {std::cos(angle), std::sin(angle)};
    }
    // The roots are the machine's and not the recorder's, since they outlive any recording.
    Machine& machine = machine_.machine();
    const std::size_t bytes = roots.size() * sizeof(Wave);
    const auto release = [&](void* memory) { machine.release(memory); };
    std::unique_ptr<void, decltype(release)> on_device(machine.allocate(bytes), release);
    machine.upload(on_device.get(), roots.data(), bytes);
    fourier = {size, static_cast<const Wave*>(on_device.release())};
  }
  return fourier;
}

/// The channels that are taken at a time: groups of one size whose spectra fit in `group_bytes`, at least one channel.
template <class Machine>
Index KernelBackend<Machine>::group_of(Index channels, Index bytes_each) {
  const Index most = std::clamp<Index>(group_bytes() / bytes_each, 1, std::max<Index>(channels, 1)), groups = (channels + most - 1) / most;
  return groups ? (channels + groups - 1) / groups : 1;
}

template <class Machine>
void KernelBackend<Machine>::transform(const Fourier& fourier, Wave* x, Index count, bool back) {
  const Index inside = std::min<Index>(fourier.size, FourierInside::longest);
  const FourierInside neighbours{x, fourier.roots, fourier.size, static_cast<int>(inside), back};
  if (back) machine_.blocks(count * (fourier.size / inside), neighbours);
  for (Index step = inside; step < fourier.size; step *= 2)
    machine_.each(count * fourier.size / 2,
                  FourierPass{x, fourier.roots, fourier.size, back ? step : fourier.size / 2 * inside / step, back});
  if (!back) machine_.blocks(count * (fourier.size / inside), neighbours);
}
template <class Machine>
template <class T>
void KernelBackend<Machine>::load(const Fourier& fourier, const T* from, const Layout& layout, Index steps, Index count, Wave* to) {
  machine_.each(count * fourier.size, LoadWaves<T>{from, layout, steps, fourier.size, to});
  transform(fourier, to, count, false);
}
template <class Machine>
template <class T>
void KernelBackend<Machine>::store(const Fourier& fourier, Wave* from, const Layout& layout, Index steps, Index count, T* to, bool add) {
  transform(fourier, from, count, true);
  machine_.each(count * steps, StoreWaves<T>{from, layout, steps, fourier.size, to, add});
}

template <class Machine>
void KernelBackend<Machine>::convolve(DType type, Index steps, Index batch, Index channels, const void* kernel, const void* u, void* y) {
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (!complex_v<T>)
      if (by_library(type, steps) && !machine_.is_recording())
        return convolve_real<T>(steps, batch, channels, as<T>(kernel), nullptr, as<T>(u), as<T>(y));
    const Fourier fourier = fourier_of(steps);
    const Index n = fourier.size, group = group_of(channels, (1 + batch) * n * static_cast<Index>(sizeof(Wave)));
    Scratch<Wave> k(machine_, group * n), x(machine_, group * batch * n);
    for (Index c = 0; c < channels; c += group) {
      const Index some = std::min(group, channels - c);
      const Layout tokens{1, channels, batch * channels, batch};
      load(fourier, as<T>(kernel) + c * steps, Layout{steps, 0, 1, 1}, steps, some, k.data);
      load(fourier, as<T>(u) + c, tokens, steps, some * batch, x.data);
      machine_.each(some * batch * n, MultiplyWaves{x.data, k.data, n, batch, false});
      store(fourier, x.data, tokens, steps, some * batch, as<T>(y) + c, false);
    }
  });
}
template <class Machine>
void KernelBackend<Machine>::convolve_adjoint(DType type, Index steps, Index batch, Index channels, const void* kernel, const void* u,
                                              const void* gy, void* gkernel, void* gu) {
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (!complex_v<T>)
      if (by_library(type, steps) && !machine_.is_recording())
        return convolve_real_adjoint<T>(steps, batch, channels, as<T>(kernel), nullptr, as<T>(u), as<T>(gy), as<T>(gkernel), as<T>(gu));
    const Fourier fourier = fourier_of(steps);
    const Index n = fourier.size, group = group_of(channels, (1 + 2 * batch) * n * static_cast<Index>(sizeof(Wave)));
    Scratch<Wave> k(machine_, group * n), x(machine_, gkernel ? group * batch * n : 0), g(machine_, group * batch * n);
    for (Index c = 0; c < channels; c += group) {
      const Index some = std::min(group, channels - c);
      const Layout tokens{1, channels, batch * channels, batch}, own{steps, 0, 1, 1};
      load(fourier, as<T>(gy) + c, tokens, steps, some * batch, g.data);
      if (gkernel) {
        load(fourier, as<T>(u) + c, tokens, steps, some * batch, x.data);
        machine_.each(some * n, CorrelateWaves{g.data, x.data, k.data, n, batch});
        store(fourier, k.data, own, steps, some, as<T>(gkernel) + c * steps, true);
      }
      if (gu) {
        load(fourier, as<T>(kernel) + c * steps, own, steps, some, k.data);
        machine_.each(some * batch * n, MultiplyWaves{g.data, k.data, n, batch, true});
        store(fourier, g.data, tokens, steps, some * batch, as<T>(gu) + c, true);
      }
    }
  });
}

// Convolutions by a library. Recorded ones go by our own transforms and read the kernel itself, whether it has a spectrum or not. Spectra
// are always a library's, so making one ends a recording.

/// Whether a library makes the transforms of such sequences where nothing is recorded: the same for a spectrum and for its readers.
template <class Machine>
bool KernelBackend<Machine>::by_library(DType type, Index steps) const {
  return !is_complex(type) && machine_.has_transforms() && transform_length(steps) <= INT_MAX;
}
template <class Machine>
template <class T>
void KernelBackend<Machine>::transform_kernels(const SpectrumLayout& spectra, Index steps, Index channels, const T* kernel,
                                               Coefficient<T>* to) {
  const LoadKernels<T> load_kernels{steps, spectra, kernel, numbers_of(to)};
  machine_.blocks(channels * load_kernels.spans(), load_kernels);
  machine_.transforms(RealTransforms<T>{numbers_of(to), spectra.size, spectra.row, channels, false});
}
template <class Machine>
template <class T>
void KernelBackend<Machine>::transform_sequences(const SpectrumLayout& spectra, const Sequences& of, const T* from, Coefficient<T>* to) {
  const LoadSequences<T> load_sequences{of, spectra, from, numbers_of(to)};
  machine_.blocks(load_sequences.tiles(), load_sequences);
  machine_.transforms(RealTransforms<T>{numbers_of(to), spectra.size, spectra.row, of.count(), false});
}
template <class Machine>
template <class T>
void KernelBackend<Machine>::sequences_back(const SpectrumLayout& spectra, const Sequences& of, Coefficient<T>* from, T* to, bool add) {
  machine_.transforms(RealTransforms<T>{numbers_of(from), spectra.size, spectra.row, of.count(), true});
  const StoreSequences<T> store_sequences{of, spectra, numbers_of(from), to, add};
  machine_.blocks(store_sequences.tiles(), store_sequences);
}

template <class Machine>
std::size_t KernelBackend<Machine>::spectrum_size(DType type, Index steps, Index channels) {
  if (!by_library(type, steps)) return 0;
  return static_cast<std::size_t>(channels * spectra_of(steps).row) * 2 * bytes_of(type);
}
template <class Machine>
void KernelBackend<Machine>::spectrum(DType type, Index steps, Index channels, const void* kernel, void* spectrum) {
  if (!by_library(type, steps)) return;
  with_real(type, [&](auto zero) {
    using T = decltype(zero);
    const SpectrumLayout spectra = spectra_of(steps);
    const Index group = group_of(channels, spectra.row * static_cast<Index>(sizeof(Coefficient<T>)));
    for (Index c = 0; c < channels; c += group)
      transform_kernels(spectra, steps, std::min(group, channels - c), as<T>(kernel) + c * steps,
                        as<Coefficient<T>>(spectrum) + c * spectra.row);
  });
}
template <class Machine>
void KernelBackend<Machine>::convolve_with(DType type, Index steps, Index batch, Index channels, const void* kernel, const void* spectrum,
                                           const void* u, void* y) {
  if (!by_library(type, steps) || machine_.is_recording()) return convolve(type, steps, batch, channels, kernel, u, y);
  with_real(type, [&](auto zero) {
    using T = decltype(zero);
    convolve_real<T>(steps, batch, channels, as<T>(kernel), as<Coefficient<T>>(spectrum), as<T>(u), as<T>(y));
  });
}
template <class Machine>
void KernelBackend<Machine>::convolve_adjoint_with(DType type, Index steps, Index batch, Index channels, const void* kernel,
                                                   const void* spectrum, const void* u, const void* gy, void* gkernel, void* gu) {
  if (!by_library(type, steps) || machine_.is_recording())
    return convolve_adjoint(type, steps, batch, channels, kernel, u, gy, gkernel, gu);
  with_real(type, [&](auto zero) {
    using T = decltype(zero);
    convolve_real_adjoint<T>(steps, batch, channels, as<T>(kernel), as<Coefficient<T>>(spectrum), as<T>(u), as<T>(gy), as<T>(gkernel),
                             as<T>(gu));
  });
}

/// Reads the kernel's spectrum, or the kernel itself where that is null.
template <class Machine>
template <class T>
void KernelBackend<Machine>::convolve_real(Index steps, Index batch, Index channels, const T* kernel, const Coefficient<T>* spectrum,
                                           const T* u, T* y) {
  if (steps * batch == 0) return;
  const SpectrumLayout spectra = spectra_of(steps);
  const Index group = group_of(channels, (1 + batch) * spectra.row * static_cast<Index>(sizeof(Coefficient<T>)));
  Scratch<Coefficient<T>> k(machine_, spectrum ? 0 : group * spectra.row), x(machine_, group * batch * spectra.row);
  for (Index c = 0; c < channels; c += group) {
    const Sequences of{steps, batch, channels, std::min(group, channels - c)};
    if (!spectrum) transform_kernels(spectra, steps, of.some, kernel + c * steps, k.data);
    transform_sequences(spectra, of, u + c, x.data);
    const MultiplySpectra<T> multiply_spectra{of, spectra, x.data, spectrum ? spectrum + c * spectra.row : k.data, false};
    machine_.blocks(multiply_spectra.blocks(), multiply_spectra);
    sequences_back(spectra, of, x.data, y + c, false);
  }
}
template <class Machine>
template <class T>
void KernelBackend<Machine>::convolve_real_adjoint(Index steps, Index batch, Index channels, const T* kernel,
                                                   const Coefficient<T>* spectrum, const T* u, const T* gy, T* gkernel, T* gu) {
  if (steps * batch == 0) return;
  const SpectrumLayout spectra = spectra_of(steps);
  const Index group = group_of(channels, (1 + 2 * batch) * spectra.row * static_cast<Index>(sizeof(Coefficient<T>)));
  Scratch<Coefficient<T>> k(machine_, group * spectra.row), x(machine_, gkernel ? group * batch * spectra.row : 0),
      g(machine_, group * batch * spectra.row);
  for (Index c = 0; c < channels; c += group) {
    const Sequences of{steps, batch, channels, std::min(group, channels - c)};
    transform_sequences(spectra, of, gy + c, g.data);
    if (gkernel) {
      transform_sequences(spectra, of, u + c, x.data);
      const CorrelateSpectra<T> correlate_spectra{of, spectra, g.data, x.data, k.data};
      machine_.blocks(correlate_spectra.blocks(), correlate_spectra);
      machine_.transforms(RealTransforms<T>{numbers_of(k.data), spectra.size, spectra.row, of.some, true});
      const AddToKernels<T> add_to_kernels{steps, spectra, numbers_of(k.data), gkernel + c * steps};
      machine_.blocks(of.some * add_to_kernels.spans(), add_to_kernels);
    }
    if (gu) {
      if (!spectrum) transform_kernels(spectra, steps, of.some, kernel + c * steps, k.data);
      const MultiplySpectra<T> multiply_spectra{of, spectra, g.data, spectrum ? spectrum + c * spectra.row : k.data, true};
      machine_.blocks(multiply_spectra.blocks(), multiply_spectra);
      sequences_back(spectra, of, g.data, gu + c, true);
    }
  }
}

}  // namespace reclab::kernel
