// SPDX-License-Identifier: GPL-3.0-or-later
#include <cmath>
#include <vector>

#include "array/reference/ranged.h"
#include "array/reference/reference_backend.h"

namespace reclab::reference {
namespace {

/// All states, before the first step and after each: [steps + 1, batch, channels, states].
template <class T>
std::vector<double> states_of(const SelectiveDims& d, const T* dt, const T* a, const T* x, const T* b, const T* initial,
                              const std::stop_token& stop) {
  const Index width = d.batch * d.channels * d.states;
  std::vector<double> h(static_cast<std::size_t>((d.steps + 1) * width));
  for (Index i = 0; initial && i < width; ++i) h[static_cast<std::size_t>(i)] = wide(initial[i]);
  for (Index t = 0; t < d.steps; ++t) {
    poll(stop);
    for (Index i = 0; i < width; ++i) {
      const Index n = i % d.states, c = i / d.states % d.channels, row = t * d.batch + i / d.states / d.channels;
      const double step = wide(dt[row * d.channels + c]);
      h[static_cast<std::size_t>((t + 1) * width + i)] =
          std::exp(step * wide(a[c * d.states + n])) * h[static_cast<std::size_t>(t * width + i)] +
          step * wide(x[row * d.channels + c]) * wide(b[row * d.states + n]);
    }
  }
  return h;
}

}  // namespace

void ReferenceBackend::selective(DType type, const SelectiveDims& d, const void* dt, const void* a, const void* x, const void* b,
                                 const void* c, const void* initial, void* y, void* states, void* final_state, std::stop_token stop) {
  with_real(type, [&](auto zero) {
    using T = decltype(zero);
    const Index width = d.batch * d.channels * d.states;
    const std::vector<double> h = states_of(d, as<T>(dt), as<T>(a), as<T>(x), as<T>(b), as<T>(initial), stop);
    for (Index i = 0; i < d.steps * d.batch * d.channels; ++i) {
      double read = 0.0;
      for (Index n = 0; n < d.states; ++n)
        read += h[static_cast<std::size_t>(width + i * d.states + n)] * wide(as<T>(c)[i / d.channels * d.states + n]);
      as<T>(y)[i] = narrow<T>(read);
    }
    for (Index i = 0; states && i < d.steps * width; ++i) as<T>(states)[i] = narrow<T>(h[static_cast<std::size_t>(width + i)]);
    for (Index i = 0; final_state && i < width; ++i) as<T>(final_state)[i] = narrow<T>(h[static_cast<std::size_t>(d.steps * width + i)]);
  });
}

void ReferenceBackend::selective_adjoint(DType type, const SelectiveDims& d, const void* dt_, const void* a_, const void* x_,
                                         const void* b_, const void* c_, const void* initial, const void* gy_, const void* gstates,
                                         const void* carried, void* gdt, void* ga, void* gx, void* gb, void* gc, void* ginitial,
                                         double* log2_norm, int* exponent, std::stop_token stop) {
  with_real(type, [&](auto zero) {
    using T = decltype(zero);
    const Index width = d.batch * d.channels * d.states, rows = d.steps * d.batch;
    const std::vector<double> h = states_of(d, as<T>(dt_), as<T>(a_), as<T>(x_), as<T>(b_), as<T>(initial), stop);
    std::vector<double> of_dt(static_cast<std::size_t>(rows * d.channels)), of_x(of_dt),
        of_a(static_cast<std::size_t>(d.channels * d.states)), of_b(static_cast<std::size_t>(rows * d.states)), of_c(of_b);
    std::vector<Ranged<double>> lambda(static_cast<std::size_t>(width));
    for (Index i = 0; carried && i < width; ++i)
      lambda[static_cast<std::size_t>(i)] = Ranged<double>(wide(as<T>(carried)[i]), exponent ? *exponent : 0);
    for (Index t = d.steps - 1; t >= 0; --t) {
      poll(stop);
      // lambda is the adjoint of h_t once the gradient of its step is added, and that of h_{t-1} once it went through its factor.
      std::vector<Ranged<double>> after(lambda);
      for (Index i = 0; i < width; ++i) {
        const Index n = i % d.states, channel = i / d.states % d.channels, row = t * d.batch + i / d.states / d.channels;
        const auto at = static_cast<std::size_t>(row * d.channels + channel), at_rate = static_cast<std::size_t>(channel * d.states + n),
                   at_state = static_cast<std::size_t>(row * d.states + n);
        const double dt = wide(as<T>(dt_)[at]), a = wide(as<T>(a_)[at_rate]), x = wide(as<T>(x_)[at]), b = wide(as<T>(b_)[at_state]),
                     c = wide(as<T>(c_)[at_state]), gy = wide(as<T>(gy_)[at]);
        const double before = h[static_cast<std::size_t>(t * width + i)], now = h[static_cast<std::size_t>((t + 1) * width + i)];
        Ranged<double>& own = after[static_cast<std::size_t>(i)];
        own = own + Ranged<double>(gy * c + (gstates ? wide(as<T>(gstates)[t * width + i]) : 0.0));
        const double plain = own.plain();
        lambda[static_cast<std::size_t>(i)] = own * exp_of(dt * a);
        const double through = (lambda[static_cast<std::size_t>(i)] * before).plain();  // the adjoint of dt a
        of_dt[at] += plain * x * b + through * a;
        of_x[at] += plain * dt * b;
        of_a[at_rate] += through * dt;
        of_b[at_state] += plain * dt * x;
        of_c[at_state] += gy * now;
      }
      if (log2_norm) log2_norm[t] = log2_norm_of(after);
    }
    const auto give = [](void* to, const std::vector<double>& from) {
      for (std::size_t i = 0; to && i < from.size(); ++i) add(as<T>(to)[i], from[i]);
    };
    give(gdt, of_dt);
    give(gx, of_x);
    give(ga, of_a);
    give(gb, of_b);
    give(gc, of_c);
    const int unit = exponent ? unit_of(lambda) : 0;
    for (Index i = 0; ginitial && i < width; ++i) add(as<T>(ginitial)[i], lambda[static_cast<std::size_t>(i)].in_units(unit));
    if (exponent) *exponent = unit;
  });
}

}  // namespace reclab::reference
