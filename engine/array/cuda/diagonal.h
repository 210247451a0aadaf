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
    return r ? conjugate(factor(steps - r, i)) : T(1);  // the adjoint carried in is already multiplied
  }
  RECLAB_HD T first(Index i) const {
    return start ? coefficient(0, i) * (start_power ? scaled(start[i], start_power) : start[i]) + in[at(0, i)] : in[at(0, i)];
  }
};
/// The steps of a loop over time that are read before they are needed: with their factors, a quarter of a thread's registers.
template <class T>
inline constexpr int ahead = 128 / static_cast<int>(sizeof(T));
/// The same for long steps: more would be too long for a compiler to write out, and its numbers would lie in memory.
template <class T>
inline constexpr int fewer_ahead = ahead<T> / 2;
/// use(step, numbers) for the steps 0 <= step < count in their order, numbers being read(step). The numbers of the next `together` steps
/// are being read meanwhile, in four groups: when a group is used up it is read anew, while the others are used.
template <class Numbers, int together, class Read, class Use>
RECLAB_HD inline void read_ahead(Index count, const Read& read, const Use& use) {
  constexpr int groups = 4, each = together / groups;
  static_assert(together % groups == 0);
  Numbers next[groups][each];
  Index at = 0;
  if (together <= count) {
    RECLAB_UNROLL
    for (int i = 0; i < together; ++i) next[i / each][i % each] = read(i);
  }
  for (; at + together <= count; at += together) {
    const bool more = at + 2 * together <= count;
    RECLAB_UNROLL
    for (int g = 0; g < groups; ++g) {
      RECLAB_UNROLL
      for (int k = 0; k < each; ++k) use(at + g * each + k, next[g][k]);
      if (more) {
        RECLAB_UNROLL
        for (int k = 0; k < each; ++k) next[g][k] = read(at + together + g * each + k);
      }
    }
  }
  for (; at < count; ++at) use(at, read(at));
}
/// use(coefficient, input) for the steps from <= r < to of one entry, in their order; from is at least 1.
template <class T, int together = ahead<T>, class F>
RECLAB_HD inline void each_step(const Line<T>& line, Index i, Index from, Index to, const F& use) {
  struct Numbers {
    T a, in;
  };
  const Index stride = line.backward ? -line.width : line.width;
  const T* in = line.in + line.at(from, i);
  const T* a = line.period ? line.a + i % line.period : line.a + (line.backward ? line.steps - from : from) * line.width + i;
  const bool turned = line.backward;
  const auto in_order = [&](Index, const Numbers& x) { use(turned ? conjugate(x.a) : x.a, x.in); };
  if (line.period) {
    const T fixed = *a;
    read_ahead<Numbers, together>(to - from, [&](Index r) { return Numbers{fixed, in[r * stride]}; }, in_order);
  } else {
    read_ahead<Numbers, together>(to - from, [&](Index r) { return Numbers{a[r * stride], in[r * stride]}; }, in_order);
  }
}

/// The steps from `from` on in stretches of `span`, a thread for each stretch and entry. A stretch starts from `carry`, or without one from
/// the value already in `out`.
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
    T* to = out + line.at(r, i);
    const Index stride = line.backward ? -line.width : line.width;
    each_step(line, i, r, end, [&](T a, T in) {
      state = a * state + in;
      *to = state;
      to += stride;
    });
  }
};
/// The effect of a stretch on the state before it: product * state + sum.
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
    if (r < end)
      each_step(line, i, r, end, [&](T a, T in) {
        state = a * state + in;
        through = through * a;
      });
    product[index] = through;
    sum[index] = state;
  }
};
/// The state before each stretch, from the effects of the stretches.
template <class T>
struct CarryLine {
  Line<T> effects;  // products and sums, a step a stretch
  T* before;
  RECLAB_HD void operator()(Index i) const {
    T state = effects.in[i];
    before[i] = T{};
    T* to = before + effects.width + i;
    if (effects.steps > 1)
      each_step(effects, i, 1, effects.steps, [&](T product, T sum) {
        *to = state;
        to += effects.width;
        state = product * state + sum;
      });
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
    Index at = line.at(from, i);
    const Index stride = line.backward ? -line.width : line.width;
    const auto add = [&](T fresh) {
      if (is_zero(state)) power = 0;
      add_in_units(fresh, state, power);
      lambda[at] = state;
      exponents[at] = power;
      at += stride;
    };
    if (!from) add(line.in[at]);
    const Index first = from ? from : 1;
    if (first < to)
      each_step<T, fewer_ahead<T>>(line, i, first, to, [&](T a, T in) {
        state = a * state;
        add(in);
      });
  }
};
/// x = lambda 2^exponents, or x += it.
template <class T>
struct PoweredAdjoint {
  const T* lambda;
  const int* exponents;
  T* x;
  bool add;
  RECLAB_HD void operator()(Index i) const {
    const T own = exponents ? scaled(lambda[i], exponents[i]) : lambda[i];
    x[i] = add ? x[i] + own : own;
  }
};
/// Of ga[o] = sum_r lambda conj(s before), for a that varies with time (o counts steps and entries, r is 0) or not (r counts its uses).
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
/// The adjoint of a step whose factor varies with time, with nothing in units: gb = lambda, ga = lambda conj(s before), or they
/// are added.
template <class T>
struct StepAdjoint {
  const T *lambda, *s, *initial;
  T *ga, *gb;  // gb may be null
  bool add_ga, add_gb;
  Index width;
  RECLAB_HD void operator()(Index i) const {
    const T own = lambda[i];
    if (gb) gb[i] = add_gb ? gb[i] + own : own;
    const T term = i >= width || initial ? own * conjugate(i < width ? initial[i] : s[i - width]) : T{};
    ga[i] = add_ga ? ga[i] + term : term;
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
    with_unary<T>(f, [&](auto op) { return run(decltype(op){}, i); });
  }
  template <class F>
  RECLAB_HD T run(F, Index i) const {
    const T factor = u[i % period];
    T state = from ? s[(from - 1) * width + i] : initial ? initial[i] : T(0);
    const Index first = from * width + i;
    read_ahead<T, fewer_ahead<T>>(
        to - from, [&](Index t) { return x[first + t * width]; },
        [&](Index t, T in) {
          state = F::value(in + factor * state, 1.0, 0.0);
          s[first + t * width] = state;
        });
    return state;
  }
};

// ---- Launches ----------------------------------------------------------------------------------------------------------------------

template <class Machine>
template <class T>
void KernelBackend<Machine>::run_line(const Line<T>& line, bool scan, T* out, const std::stop_token& stop) {
  // Lines this wide keep a device's memory busy, and this few steps are soon done: a loop over time reads everything once.
  constexpr Index wide = 6144, soon = 256;
  if (!scan || line.width >= wide || line.steps <= soon) {
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
  Scratch<T> product(machine_, chunks * line.width), sum(machine_, chunks * line.width), before(machine_, chunks * line.width);
  machine_.each(chunks * line.width, SummariseLine<T>{line, span, product.data, sum.data});
  machine_.each(line.width, CarryLine<T>{{product.data, sum.data, nullptr, chunks, line.width, 0, false, 0}, before.data});
  machine_.each(chunks * line.width, RunLine<T>{line, 0, span, before.data, out});
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
                                              const void* initial, const void* g, const void* carried, void* ga, bool add_ga, void* gb,
                                              bool add_gb, void* ginitial, double* log2_norm, int* exponent, std::stop_token stop) {
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
    if (ga && !d.period && !exponents) {
      machine_.each(n, StepAdjoint<T>{lambda.data, as<T>(s), as<T>(initial), as<T>(ga), as<T>(gb), add_ga, add_gb, d.width});
    } else {
      if (gb) machine_.each(n, PoweredAdjoint<T>{lambda.data, exponents, as<T>(gb), add_gb});
      if (ga) {
        const TransitionTerm<T> term{lambda.data, as<T>(s), as<T>(initial), exponents, d.width, d.period};
        reduce(term, d.period ? d.period : n, d.period ? n / d.period : 1, as<T>(ga), 1.0, add_ga);
      }
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
