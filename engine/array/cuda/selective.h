// SPDX-License-Identifier: GPL-3.0-or-later
// The selective recurrence.
#pragma once

#include "array/cuda/diagonal.h"
#include "array/cuda/kernel_backend.h"
#include "array/cuda/reduce.h"

namespace reclab::kernel {

// ---- Kernels -----------------------------------------------------------------------------------------------------------------------

/// One thread a channel, sixteen states at a time in its registers: through steps from <= t < to, from and into `memory`.
template <class T>
struct SelectiveRun {
  static constexpr int together = 16;
  SelectiveDims d;
  const T *dt, *a, *x, *b, *c;
  T *memory, *y, *states;  // states may be null
  Index from, to;
  RECLAB_HD void operator()(Index index) const {
    const Index channel = index % d.channels, batch = index / d.channels;
    for (Index first = 0; first < d.states; first += together) {
      const int count = static_cast<int>(least(together, d.states - first));
      T h[together], rate[together];
      for (int n = 0; n < count; ++n) {
        h[n] = memory[index * d.states + first + n];
        rate[n] = a[channel * d.states + first + n];
      }
      for (Index t = from; t < to; ++t) {
        const Index row = t * d.batch + batch, at = row * d.channels + channel;
        const T step = dt[at], drive = step * x[at];
        T sum = first ? y[at] : T(0);
        for (int n = 0; n < count; ++n) {
          h[n] = fn::exp(step * rate[n]) * h[n] + drive * b[row * d.states + first + n];
          sum += h[n] * c[row * d.states + first + n];
          if (states) states[at * d.states + first + n] = h[n];
        }
        y[at] = sum;
      }
      for (int n = 0; n < count; ++n) memory[index * d.states + first + n] = h[n];
    }
  }
};
/// What the recurrence is as a diagonal one: its factors and its drive, all [steps, batch, channels, states].
template <class T>
struct SelectiveTerms {
  SelectiveDims d;
  const T *dt, *a, *x, *b;
  T *factor, *drive;
  RECLAB_HD void operator()(Index index) const {
    const Index n = index % d.states, at = index / d.states, channel = at % d.channels, row = at / d.channels;
    factor[index] = fn::exp(dt[at] * a[channel * d.states + n]);
    drive[index] = dt[at] * x[at] * b[row * d.states + n];
  }
};
/// What the readout gives back to each state.
template <class T>
struct SelectiveReadAdjoint {
  SelectiveDims d;
  const T *c, *gy, *gstates;  // gstates may be null
  T* g;
  RECLAB_HD void operator()(Index index) const {
    const Index n = index % d.states, at = index / d.states, row = at / d.channels;
    g[index] = gy[at] * c[row * d.states + n] + (gstates ? gstates[index] : T(0));
  }
};
/// From the adjoints of the factors and of the drive, those of dt and x (either may be null).
template <class T>
struct SelectiveInputAdjoint {
  SelectiveDims d;
  const T *dt, *a, *x, *b, *factor, *gfactor, *gdrive;
  T *gdt, *gx;
  RECLAB_HD void operator()(Index at) const {
    const Index channel = at % d.channels, row = at / d.channels;
    T of_drive(0), of_rate(0);
    for (Index n = 0; n < d.states; ++n) {
      const Index index = at * d.states + n;
      of_drive += gdrive[index] * b[row * d.states + n];
      of_rate += gfactor[index] * factor[index] * a[channel * d.states + n];
    }
    if (gx) gx[at] += dt[at] * of_drive;
    if (gdt) gdt[at] += x[at] * of_drive + of_rate;
  }
};
/// Of a: output [channels, states], over all steps and the batch.
template <class T>
struct SelectiveRateTerm {
  SelectiveDims d;
  const T *dt, *factor, *gfactor;
  RECLAB_HD T operator()(Index o, Index row) const {
    const Index n = o % d.states, at = row * d.channels + o / d.states;
    return gfactor[at * d.states + n] * factor[at * d.states + n] * dt[at];
  }
};
/// Of b and c: output [steps, batch, states], over the channels; `y` null: x alone.
template <class T>
struct SelectiveStateTerm {
  SelectiveDims d;
  const T *each, *x, *y;
  RECLAB_HD T operator()(Index o, Index channel) const {
    const Index n = o % d.states, at = o / d.states * d.channels + channel;
    return each[at * d.states + n] * (y ? x[at] * y[at] : x[at]);
  }
};

// ---- Launches ----------------------------------------------------------------------------------------------------------------------

template <class Machine>
void KernelBackend<Machine>::selective(DType type, const SelectiveDims& d, const void* dt, const void* a, const void* x, const void* b,
                                       const void* c, const void* initial, void* y, void* states, void* final_state, std::stop_token stop) {
  with_real(type, [&](auto one) {
    using T = decltype(one);
    const Index size = d.batch * d.channels * d.states;
    const std::size_t bytes = static_cast<std::size_t>(size) * sizeof(T);
    Scratch<T> room(machine_, final_state ? 0 : size);
    T* memory = final_state ? as<T>(final_state) : room.data;
    if (initial)
      copy(memory, initial, bytes);
    else
      zero(memory, bytes);
    for (Index from = 0; from < d.steps; from += stretch) {
      poll(stop, from);
      machine_.each(d.batch * d.channels, SelectiveRun<T>{d, as<T>(dt), as<T>(a), as<T>(x), as<T>(b), as<T>(c), memory, as<T>(y),
                                                          as<T>(states), from, std::min(d.steps, from + stretch)});
    }
  });
}

template <class Machine>
void KernelBackend<Machine>::selective_adjoint(DType type, const SelectiveDims& d, const void* dt, const void* a, const void* x,
                                               const void* b, const void* c, const void* initial, const void* gy, const void* gstates,
                                               const void* carried, void* gdt, void* ga, void* gx, void* gb, void* gc, void* ginitial,
                                               double* log2_norm, int* exponent, std::stop_token stop) {
  with_real(type, [&](auto one) {
    using T = decltype(one);
    const Index rows = d.steps * d.batch, width = d.batch * d.channels * d.states, n = d.steps * width;
    Scratch<T> factor(machine_, n), states(machine_, n), back(machine_, n), gfactor(machine_, n), gdrive(machine_, n);
    machine_.each(n, SelectiveTerms<T>{d, as<T>(dt), as<T>(a), as<T>(x), as<T>(b), factor.data, back.data});
    const DiagonalDims line{d.steps, width, 0};
    diagonal(type, line, ScanMethod::steps, factor.data, back.data, initial, states.data, stop);
    machine_.each(n, SelectiveReadAdjoint<T>{d, as<T>(c), as<T>(gy), as<T>(gstates), back.data});
    zero(gfactor.data, static_cast<std::size_t>(n) * sizeof(T));
    zero(gdrive.data, static_cast<std::size_t>(n) * sizeof(T));
    diagonal_adjoint(type, line, ScanMethod::steps, factor.data, states.data, initial, back.data, carried, gfactor.data, gdrive.data,
                     ginitial, log2_norm, exponent, stop);
    if (gdt || gx)
      machine_.each(rows * d.channels, SelectiveInputAdjoint<T>{d, as<T>(dt), as<T>(a), as<T>(x), as<T>(b), factor.data, gfactor.data,
                                                                gdrive.data, as<T>(gdt), as<T>(gx)});
    if (ga) reduce(SelectiveRateTerm<T>{d, as<T>(dt), factor.data, gfactor.data}, d.channels * d.states, rows, as<T>(ga), 1.0, true);
    if (gb) reduce(SelectiveStateTerm<T>{d, gdrive.data, as<T>(dt), as<T>(x)}, rows * d.states, d.channels, as<T>(gb), 1.0, true);
    if (gc) reduce(SelectiveStateTerm<T>{d, states.data, as<T>(gy), nullptr}, rows * d.states, d.channels, as<T>(gc), 1.0, true);
  });
}

}  // namespace reclab::kernel
