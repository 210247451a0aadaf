// SPDX-License-Identifier: GPL-3.0-or-later
#include <algorithm>
#include <cmath>
#include <vector>

#include "array/demand.h"
#include "array/reference/ranged.h"
#include "array/reference/reference_backend.h"

namespace reclab::reference {
namespace {

double value(Unary f, double x) {
  switch (f) {
    case Unary::affine: return x;
    case Unary::relu: return std::max(x, 0.0);
    case Unary::sigmoid: return 1.0 / (1.0 + std::exp(-x));
    case Unary::tanh: return std::tanh(x);
    default: RECLAB_DEMAND(!"no activation of an independent recurrence");
  }
  return x;
}

}  // namespace

void ReferenceBackend::diagonal(DType type, const DiagonalDims& d, ScanMethod, const void* a_, const void* b, const void* initial, void* s,
                                std::stop_token stop) {
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    std::vector<wide_t<T>> state(static_cast<std::size_t>(d.width));
    for (Index i = 0; initial && i < d.width; ++i) state[static_cast<std::size_t>(i)] = wide(as<T>(initial)[i]);
    for (Index t = 0; t < d.steps; ++t) {
      poll(stop);
      for (Index i = 0; i < d.width; ++i) {
        const wide_t<T> a = wide(as<T>(a_)[d.period ? i % d.period : t * d.width + i]);
        wide_t<T>& own = state[static_cast<std::size_t>(i)];
        own = a * own + wide(as<T>(b)[t * d.width + i]);
        as<T>(s)[t * d.width + i] = narrow<T>(own);
      }
    }
  });
}

void ReferenceBackend::diagonal_adjoint(DType type, const DiagonalDims& d, ScanMethod, const void* a_, const void* s, const void* initial,
                                        const void* g, const void* carried, void* ga_, bool add_ga, void* gb, bool add_gb, void* ginitial,
                                        double* log2_norm, int* exponent, std::stop_token stop) {
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    using W = wide_t<T>;
    const auto a = [&](Index t, Index i) { return conjugate(wide(as<T>(a_)[d.period ? i % d.period : t * d.width + i])); };
    std::vector<Ranged<W>> lambda(static_cast<std::size_t>(d.width));
    std::vector<W> ga(ga_ ? static_cast<std::size_t>(d.period ? d.period : d.steps * d.width) : 0);
    for (Index i = 0; carried && i < d.width; ++i)
      lambda[static_cast<std::size_t>(i)] = Ranged<W>(wide(as<T>(carried)[i]), exponent ? *exponent : 0);
    for (Index t = d.steps - 1; t >= 0; --t) {
      poll(stop);
      for (Index i = 0; i < d.width; ++i) {
        Ranged<W>& own = lambda[static_cast<std::size_t>(i)];
        if (t + 1 < d.steps) own = own * a(t + 1, i);
        own = own + Ranged<W>(wide(as<T>(g)[t * d.width + i]));
        if (gb && !add_gb) as<T>(gb)[t * d.width + i] = T{};
        if (gb) add(as<T>(gb)[t * d.width + i], own.plain());
        if (!ga_ || (t == 0 && !initial)) continue;
        const W before = wide(t ? as<T>(s)[(t - 1) * d.width + i] : as<T>(initial)[i]);
        ga[static_cast<std::size_t>(d.period ? i % d.period : t * d.width + i)] += (own * conjugate(before)).plain();
      }
      if (log2_norm) log2_norm[t] = log2_norm_of(lambda);
    }
    for (std::size_t i = 0; i < ga.size(); ++i) {
      if (!add_ga) as<T>(ga_)[i] = T{};
      add(as<T>(ga_)[i], ga[i]);
    }
    for (Index i = 0; d.steps && i < d.width; ++i) lambda[static_cast<std::size_t>(i)] = lambda[static_cast<std::size_t>(i)] * a(0, i);
    const int unit = exponent ? unit_of(lambda) : 0;
    for (Index i = 0; ginitial && i < d.width; ++i) add(as<T>(ginitial)[i], lambda[static_cast<std::size_t>(i)].in_units(unit));
    if (exponent) *exponent = unit;
  });
}

void ReferenceBackend::independent(Unary f, DType type, const DiagonalDims& d, const void* u, const void* x, const void* initial, void* s,
                                   std::stop_token stop) {
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (!complex_v<T>)
      for (Index t = 0; t < d.steps; ++t) {
        poll(stop);
        for (Index i = 0; i < d.width; ++i) {
          const double before = t ? wide(as<T>(s)[(t - 1) * d.width + i]) : initial ? wide(as<T>(initial)[i]) : 0.0;
          as<T>(s)[t * d.width + i] = narrow<T>(value(f, wide(as<T>(x)[t * d.width + i]) + wide(as<T>(u)[i % d.period]) * before));
        }
      }
  });
}

}  // namespace reclab::reference
