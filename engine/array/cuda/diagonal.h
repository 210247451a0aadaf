// SPDX-License-Identifier: GPL-3.0-or-later
// The diagonal recurrence.
#pragma once

#include "array/cuda/elementwise.h"
#include "array/cuda/kernel_backend.h"
#include "array/cuda/reduce.h"

namespace reclab::kernel {

// ---- Kernels -----------------------------------------------------------------------------------------------------------------------

/// state_r = coefficient_r state_{r-1} + input_r: forwards in time it is the recurrence itself, backwards its adjoint.
template <class T>
struct Line {
  const T *a, *in, *start;  // start may be null
  Index steps, width, period;
  bool backward;
  int start_power;
  RECLAB_HD Index at(Index r, Index i) const { return (backward ? steps - 1 - r : r) * width + i; }
  RECLAB_HD T factor(Index t, Index i) const { return period ? a[i % period] : a[t * width + i]; }
  RECLAB_HD T coefficient(Index r, Index i) const {
    if (!backward) return factor(r, i);
    return r ? conjugate(factor(steps - r, i)) : T(1);  // what is carried in was multiplied where it comes from
  }
  RECLAB_HD T first(Index i) const {
    return start ? coefficient(0, i) * (start_power ? scaled(start[i], start_power) : start[i]) + in[at(0, i)] : in[at(0, i)];
  }
};
/// The steps from `from` on in stretches of `span`, a thread for each stretch and entry. A stretch starts from `carry`, or without one
/// from what is already in `out`.
template <class T>
struct RunLine {
  Line<T> line;
  Index from, span;
  const T* carry;
  T* out;
  RECLAB_HD void operator()(Index index) const {
    const Index i = index % line.width, chunk = index / line.width;
    Index r = from + chunk * span;
    const Index end = least(line.steps, r + span);
    if (r >= end) return;
    T state;
    if (r == 0) {
      state = line.first(i);
      out[line.at(r++, i)] = state;
    } else {
      state = carry ? carry[index] : out[line.at(r - 1, i)];
    }
    for (; r < end; ++r) {
      state = line.coefficient(r, i) * state + line.in[line.at(r, i)];
      out[line.at(r, i)] = state;
    }
  }
};
/// What a stretch does to the state before it: product * state + sum.
template <class T>
struct SummariseLine {
  Line<T> line;
  Index span;
  T *product, *sum;
  RECLAB_HD void operator()(Index index) const {
    const Index i = index % line.width;
    Index r = index / line.width * span;
    const Index end = least(line.steps, r + span);
    T through(1), state{};
    if (r == 0) {
      state = line.first(i);
      through = T(0);
      ++r;
    }
    for (; r < end; ++r) {
      const T a = line.coefficient(r, i);
      state = a * state + line.in[line.at(r, i)];
      through = through * a;
    }
    product[index] = through;
    sum[index] = state;
  }
};
/// From the stretches' effects the state before each of them (in place of their sums).
template <class T>
struct CarryLine {
  const T* product;
  T* sum;
  Index chunks, width;
  RECLAB_HD void operator()(Index i) const {
    T state{};
    for (Index c = 0; c < chunks; ++c) {
      const Index at = c * width + i;
      const T next = c ? product[at] * state + sum[at] : sum[at];
      sum[at] = state;
      state = next;
    }
  }
};

/// The adjoint with a power of two for every entry, so that it neither vanishes nor overflows: lambda 2^exponents.
template <class T>
struct RunAdjoint {
  Line<T> line;
  Index from, to;
  T* lambda;
  int* exponents;
  RECLAB_HD void operator()(Index i) const {
    T state{};
    int power = 0;
    if (from) {
      state = lambda[line.at(from - 1, i)];
      power = exponents[line.at(from - 1, i)];
    } else if (line.start) {
      state = line.start[i];
      power = line.start_power;
    }
    for (Index r = from; r < to; ++r) {
      const Index at = line.at(r, i);
      if (r) state = line.coefficient(r, i) * state;
      const T fresh = line.in[at];
      if (is_zero(state)) power = 0;
      add_in_units(fresh, state, power);
      lambda[at] = state;
      exponents[at] = power;
    }
  }
};
/// x += lambda 2^exponents.
template <class T>
struct AddPowered {
  const T* lambda;
  const int* exponents;
  T* x;
  RECLAB_HD void operator()(Index i) const { x[i] += exponents ? scaled(lambda[i], exponents[i]) : lambda[i]; }
};
/// ga[o] += sum_r lambda conj(s before), for a that varies with time (o counts steps and entries, r is 0) or not (r counts its uses).
template <class T>
struct TransitionTerm {
  const T *lambda, *s, *initial;
  const int* exponents;
  Index width, period;
  RECLAB_HD T operator()(Index o, Index r) const {
    const Index i = period ? r * period + o : o;  // width is a multiple of period
    if (i < width && !initial) return T{};
    const T product = lambda[i] * conjugate(i < width ? initial[i] : s[i - width]);
    return exponents ? scaled(product, exponents[i]) : product;
  }
};
template <class T>
struct InitialAdjoint {
  const T *a, *lambda;
  const int* exponents;
  T* ginitial;
  Index period;
  int power;
  RECLAB_HD void operator()(Index i) const {
    const T product = conjugate(a[period ? i % period : i]) * lambda[i];
    ginitial[i] += exponents ? scaled(product, exponents[i] - power) : product;
  }
};

/// Steps `from` to `to` of s_t = f(x_t + u s_{t-1}), a thread an entry.
template <class T>
struct RunIndependent {
  Unary f;
  const T *u, *x, *initial;
  T* s;
  Index from, to, width, period;
  RECLAB_HD void operator()(Index i) const {
    const T factor = u[i % period];
    T state = from ? s[(from - 1) * width + i] : initial ? initial[i] : T(0);
    for (Index t = from; t < to; ++t) {
      const T in = x[t * width + i] + factor * state;
      state = with_unary<T>(f, [&](auto op) { return decltype(op)::value(in, 1.0, 0.0); });
      s[t * width + i] = state;
    }
  }
};

// ---- Launches ----------------------------------------------------------------------------------------------------------------------

template <class Machine>
template <class T>
void KernelBackend<Machine>::run_line(const Line<T>& line, bool scan, T* out, const std::stop_token& stop) {
  if (!scan) {
    for (Index from = 0; from < line.steps; from += stretch) {
      poll(stop, from);
      machine_.each(line.width, RunLine<T>{line, from, std::min(stretch, line.steps - from), nullptr, out});
    }
    return;
  }
  // Three passes: each stretch by itself, the stretches one after the other, each stretch from its true start.
  if (stop.stop_requested()) throw Cancelled();
  const Index span = std::max<Index>(8, static_cast<Index>(std::sqrt(static_cast<double>(line.steps) / 2.0)));
  const Index chunks = (line.steps + span - 1) / span;
  Scratch<T> product(machine_, chunks * line.width), sum(machine_, chunks * line.width);
  machine_.each(chunks * line.width, SummariseLine<T>{line, span, product.data, sum.data});
  machine_.each(line.width, CarryLine<T>{product.data, sum.data, chunks, line.width});
  machine_.each(chunks * line.width, RunLine<T>{line, 0, span, sum.data, out});
}

template <class Machine>
void KernelBackend<Machine>::diagonal(DType type, const DiagonalDims& d, ScanMethod method, const void* a, const void* b,
                                      const void* initial, void* s, std::stop_token stop) {
  const bool scan = method != ScanMethod::steps;  // a chunk a thread block, joined by their last states: both in one
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    run_line(Line<T>{as<T>(a), as<T>(b), as<T>(initial), d.steps, d.width, d.period, false, 0}, scan, as<T>(s), stop);
  });
}

template <class Machine>
void KernelBackend<Machine>::diagonal_adjoint(DType type, const DiagonalDims& d, ScanMethod method, const void* a, const void* s,
                                              const void* initial, const void* g, const void* carried, void* ga, void* gb, void* ginitial,
                                              double* log2_norm, int* exponent, std::stop_token stop) {
  const Index n = d.steps * d.width;
  if (n == 0) return;
  const bool scan = method != ScanMethod::steps;
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    Scratch<T> lambda(machine_, n);
    Scratch<int> powers(machine_, scan ? 0 : n);
    const int* exponents = scan ? nullptr : powers.data;
    const Line<T> line{as<T>(a), as<T>(g), as<T>(carried), d.steps, d.width, d.period, true, carried && exponent ? *exponent : 0};
    if (scan) {
      run_line(line, true, lambda.data, stop);
    } else {
      for (Index from = 0; from < d.steps; from += stretch) {
        poll(stop, from);
        machine_.each(d.width, RunAdjoint<T>{line, from, std::min(d.steps, from + stretch), lambda.data, powers.data});
      }
    }
    if (gb) machine_.each(n, AddPowered<T>{lambda.data, exponents, as<T>(gb)});
    if (ga) {
      const TransitionTerm<T> term{lambda.data, as<T>(s), as<T>(initial), exponents, d.width, d.period};
      reduce(term, d.period ? d.period : n, d.period ? n / d.period : 1, as<T>(ga), 1.0, true);
    }
    int power = 0;
    if (exponent) {
      if (!scan && ginitial) {
        const auto first = magnitudes_of(lambda.data, exponents, d.width, d.width);
        const int common = static_cast<int>(first[0].exponent);
        if (common != no_exponent && common != infinite_exponent && std::abs(common) > 32) power = common;
      }
      *exponent = power;
    }
    if (ginitial) machine_.each(d.width, InitialAdjoint<T>{as<T>(a), lambda.data, exponents, as<T>(ginitial), d.period, power});
    if (log2_norm) {
      const auto rows = magnitudes_of(lambda.data, exponents, n, d.width);
      for (std::size_t t = 0; t < rows.size(); ++t)
        log2_norm[t] = 0.5 * std::log2(rows[t].squares) + unit_of(static_cast<int>(rows[t].exponent));
    }
  });
}

template <class Machine>
void KernelBackend<Machine>::independent(Unary f, DType type, const DiagonalDims& d, const void* u, const void* x, const void* initial,
                                         void* s, std::stop_token stop) {
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (!complex_v<T>) {  // with braces: nvcc loses its place where a discarded loop has none
      for (Index from = 0; from < d.steps; from += stretch) {
        poll(stop, from);
        machine_.each(d.width, RunIndependent<T>{f, as<T>(u), as<T>(x), as<T>(initial), as<T>(s), from, std::min(d.steps, from + stretch),
                                                 d.width, d.period});
      }
    }
  });
}

}  // namespace reclab::kernel
