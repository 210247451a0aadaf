// SPDX-License-Identifier: GPL-3.0-or-later
#include "array/cpu/cpu_backend.h"
#include "array/demand.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <type_traits>
#include <utility>
#include <vector>

#include "array/cpu/processor/exponents.h"
#include "array/cpu/processor/norms.h"
#include "array/cpu/processor/pairs.h"
#include "array/cpu/processor/scratch.h"
#include "array/cpu/processor/stream.h"
#include "array/cpu/processor/threads.h"
#include "array/functions.h"
#include "array/order.h"

namespace reclab::cpu {
namespace {

constexpr std::int64_t ahead = 4;  // steps from the one that is made to the one whose rows are asked for

/// Looks at the stop token at step t now and then, or at each step of so many entries that it takes longer than the look.
void poll_at(const std::stop_token& stop, std::int64_t t, std::int64_t entries) {
  if (t % 256 == 0 || entries >= 1024) poll(stop);
}

/// out = a x + y. Of complex rows with the same rounding wherever the arrays lie.
template <class T>
void combine(std::int64_t n, const T* a, const T* x, const T* y, T* out) {
  if constexpr (complex_v<T>)
    cpu::multiply_add(n, a, x, y, out);
  else
    for (std::int64_t i = 0; i < n; ++i) out[i] = a[i] * x[i] + y[i];
}

/// The associative combination over time as a tree (Blelloch): on return b[t] is s_t for s_{-1} = 0 and a[t] the product a_0..a_t.
template <class T>
void tree_scan(std::int64_t steps, std::int64_t width, T* a, T* b, const std::stop_token& stop) {
  const auto combine = [&](std::int64_t earlier, std::int64_t later) {
    T* a1 = a + earlier * width;
    T* b1 = b + earlier * width;
    T* a2 = a + later * width;
    T* b2 = b + later * width;
    for (std::int64_t i = 0; i < width; ++i) {
      b2[i] = a2[i] * b1[i] + b2[i];
      a2[i] = a2[i] * a1[i];
    }
  };
  order::tree(steps, [&] { poll(stop); }, combine);
}
/// The same in chunks: a scan within each, a scan over their last states, then the contribution of each chunk's initial state.
template <class T>
void chunk_scan(std::int64_t steps, std::int64_t width, T* a, T* b, const std::stop_token& stop) {
  constexpr std::int64_t chunk = order::diagonal_chunk;
  const auto within = [&](std::int64_t t) {
    poll(stop);
    for (std::int64_t i = t * width; i < (t + 1) * width; ++i) {
      b[i] += a[i] * b[i - width];
      a[i] *= a[i - width];
    }
  };
  const auto join = [&](std::int64_t last, std::int64_t t) {
    if (t % chunk == 0) poll(stop);
    const T* carry = b + last * width;
    for (std::int64_t i = 0; i < width; ++i) b[t * width + i] += a[t * width + i] * carry[i];
  };
  order::chunks(steps, chunk, within, join);
}
template <class T>
void parallel_scan(ScanMethod method, std::int64_t steps, std::int64_t width, T* a, T* b, const std::stop_token& stop) {
  if (method == ScanMethod::tree)
    tree_scan(steps, width, a, b, stop);
  else
    chunk_scan(steps, width, a, b, stop);
}

/// next = conj(a) lambda + unit g, n entries (a null: of lambda itself), and how large both terms come to be.
template <class T>
void adjoint_step(std::int64_t n, const T* a, const T* lambda_, const T* g_, real_t<T> unit, T* next_, Bits<real_t<T>>& carried,
                  Bits<real_t<T>>& added) {
  using R = real_t<T>;
  const R* __restrict lambda = reinterpret_cast<const R*>(lambda_);
  const R* __restrict g = reinterpret_cast<const R*>(g_);
  R* __restrict next = reinterpret_cast<R*>(next_);
  Bits<R> most = carried, most_added = added;
  if constexpr (complex_v<T>) {
    using P = cpu::Pairs<R>;
    const R* factor = reinterpret_cast<const R*>(a);
    typename P::I large{}, large_added{};
    std::int64_t i = 0;
    for (; i + P::lanes <= 2 * n; i += P::lanes) {
      typename P::V here = P::load(lambda + i);
      if (factor) here = P::product(here, P::load(factor + i), true);
      const typename P::V fresh = P::load(g + i);
      large = P::larger(large, P::magnitudes(here));
      large_added = P::larger(large_added, P::magnitudes(fresh));
      P::store(next + i, here + unit * fresh);
    }
    for (int lane = 0; lane < P::lanes; ++lane) {
      most = std::max(most, static_cast<Bits<R>>(large[lane]));
      most_added = std::max(most_added, static_cast<Bits<R>>(large_added[lane]));
    }
    for (; i < 2 * n; i += 2) {
      const R re = factor ? lambda[i] * factor[i] + lambda[i + 1] * factor[i + 1] : lambda[i];
      const R im = factor ? lambda[i + 1] * factor[i] - lambda[i] * factor[i + 1] : lambda[i + 1];
      most = std::max({most, magnitude(re), magnitude(im)});
      most_added = std::max({most_added, magnitude(g[i]), magnitude(g[i + 1])});
      next[i] = re + unit * g[i];
      next[i + 1] = im + unit * g[i + 1];
    }
  } else {
    const R* __restrict factor = a;
    for (std::int64_t i = 0; i < n; ++i) {
      const R here = factor ? lambda[i] * factor[i] : lambda[i];
      most = std::max(most, magnitude(here));
      most_added = std::max(most_added, magnitude(g[i]));
      next[i] = here + unit * g[i];
    }
  }
  carried = most;
  added = most_added;
}

/// x = value, or x += value.
template <class T>
void put(T& x, const T& value, bool add) {
  x = add ? x + value : value;
}

/// A row of a gradient: added to what is there, or written, past the caches where the gradient is larger than these.
template <class T>
struct GradientRow {
  T* to = nullptr;  // null: not wanted
  bool add = true;
  bool past_caches = false;

  /// Calls f(x, add) with the row, or with `own`, n entries of memory, of which it is then copied.
  template <class F>
  void make(std::int64_t n, T* own, const F& f) const {
    const bool streams = past_caches && !add;
    if (add)
      f(to, std::true_type());
    else
      f(streams ? own : to, std::false_type());
    if (streams) cpu::stream_copy(to, own, static_cast<std::size_t>(n) * sizeof(T));
  }
};

/// The gradients of step t from the adjoint lambda 2^power of s_t, unit = 2^power: gb is it, ga it times conj(s_{t-1}) (before null: 0).
/// own: n entries of memory to work in.
template <class T>
void adjoint_use(std::int64_t n, const T* lambda_, const T* before_, real_t<T> unit, const GradientRow<T>& gb, const GradientRow<T>& ga,
                 T* own) {
  using R = real_t<T>;
  const R* __restrict lambda = reinterpret_cast<const R*>(lambda_);
  const R* __restrict before = reinterpret_cast<const R*>(before_);
  const std::int64_t parts = n * static_cast<std::int64_t>(sizeof(T) / sizeof(R));
  if (gb.to)
    gb.make(n, own, [&](T* to, auto add) {
      R* __restrict x = reinterpret_cast<R*>(to);
      for (std::int64_t i = 0; i < parts; ++i) x[i] = add ? x[i] + unit * lambda[i] : unit * lambda[i];
    });
  if (!ga.to) return;
  if (!before) {
    if (!ga.add) std::fill_n(ga.to, n, T{});
    return;
  }
  ga.make(n, own, [&](T* to, auto add) {
    R* __restrict x = reinterpret_cast<R*>(to);
    if constexpr (complex_v<T>) {
      using P = cpu::Pairs<R>;
      std::int64_t i = 0;
      for (; i + P::lanes <= parts; i += P::lanes) {
        const typename P::V product = unit * P::product(P::load(lambda + i), P::load(before + i), true);
        P::store(x + i, add ? P::load(x + i) + product : product);
      }
      for (; i < parts; i += 2) {
        put(x[i], unit * (lambda[i] * before[i] + lambda[i + 1] * before[i + 1]), add);
        put(x[i + 1], unit * (lambda[i + 1] * before[i] - lambda[i] * before[i + 1]), add);
      }
    } else {
      for (std::int64_t i = 0; i < parts; ++i) {
        const R product = unit * (lambda[i] * before[i]);
        x[i] = add ? x[i] + product : product;
      }
    }
  });
}

/// Columns of a diagonal recurrence that one thread goes through all of time with: the same [first, last) of each copy of a time-invariant
/// transition. Their number depends on the sizes alone, so the bits do not depend on the machine.
struct Slab {
  std::int64_t number, first, last, copies, period;
  std::int64_t size() const { return last - first; }
  std::int64_t at(std::int64_t copy) const { return copy * period + first; }
};
std::int64_t slab_count(const DiagonalDims& d) {
  const std::int64_t columns = d.period ? d.period : d.width;
  return d.steps * d.width < std::int64_t{1} << 17 ? 1 : std::clamp<std::int64_t>(columns / 256, 1, 8);
}
template <class F>
void for_slabs(const DiagonalDims& d, std::int64_t slabs, const F& f) {
  const std::int64_t columns = d.period ? d.period : d.width;
  if (columns == 0) return;
  cpu::parallel(slabs, [&](std::int64_t i) { f(Slab{i, i * columns / slabs, (i + 1) * columns / slabs, d.width / columns, columns}); });
}
template <class T, class F>
void for_transition(const DiagonalDims& d, const T* a, std::int64_t t, F&& f) {
  if (!d.period) {
    f(a + t * d.width, std::int64_t{0}, d.width);
  } else {
    for (std::int64_t from = 0; from < d.width; from += d.period) f(a, from, d.period);
  }
}

template <class F>
void with_activation(Unary op, F&& f) {
  switch (op) {
    case Unary::affine: return f([](auto x) { return x; });
    case Unary::relu: return f([](auto x) { return fn::Relu::value(x, 0.0, 0.0); });
    case Unary::sigmoid: return f([](auto x) { return fn::sigmoid(x); });
    case Unary::tanh: return f([](auto x) { return fn::tanh(x); });
    default: RECLAB_DEMAND(!"no activation of an independent recurrence");
  }
}

}  // namespace

std::size_t CpuBackend::diagonal_scratch(DType type, const DiagonalDims& d, ScanMethod method, bool adjoint) const {
  const std::int64_t row = d.width * static_cast<std::int64_t>(bytes_of(type)), all = d.steps * row;
  if (!adjoint) return static_cast<std::size_t>(method == ScanMethod::steps ? row : all);
  const std::int64_t whole = d.period * (is_complex(type) ? 16 : 8);
  if (method != ScanMethod::steps) return static_cast<std::size_t>(2 * all + whole);
  const std::int64_t norms = slab_count(d) * d.steps * static_cast<std::int64_t>(sizeof(double));
  return static_cast<std::size_t>(3 * row + whole + norms);  // lambda, the next one, and the sum of a transition's gradient
}

void CpuBackend::diagonal(DType type, const DiagonalDims& d, ScanMethod method, const void* a_, const void* b_, const void* initial_,
                          void* s_, std::stop_token stop) {
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    const T* b = as<T>(b_);
    const T* initial = as<T>(initial_);
    T* s = as<T>(s_);
    if (method != ScanMethod::steps) {
      const UnsetScratch<T> products(d.steps * d.width);
      for (std::int64_t t = 0; t < d.steps; ++t) {
        poll_at(stop, t, d.width);
        for_transition(d, as<T>(a_), t,
                       [&](const T* a, std::int64_t from, std::int64_t n) { std::copy_n(a, n, products.data() + t * d.width + from); });
        std::copy_n(b + t * d.width, d.width, s + t * d.width);
      }
      if (initial) combine(d.width, products.data(), initial, s, s);
      parallel_scan(method, d.steps, d.width, products.data(), s, stop);
      return;
    }
    const bool past_caches = static_cast<std::size_t>(d.steps * d.width) * sizeof(T) >= cpu::stream_from;
    for_slabs(d, slab_count(d), [&](const Slab& slab) {
      // The running state stays in the caches, wherever the results are written.
      cpu::Scratch<T> state(static_cast<std::size_t>(slab.copies * slab.size()));
      for (std::int64_t copy = 0; initial && copy < slab.copies; ++copy)
        std::copy_n(initial + slab.at(copy), slab.size(), state.data() + copy * slab.size());
      for (std::int64_t t = 0; t < d.steps; ++t) {
        poll_at(stop, t, slab.copies * slab.size());
        for (std::int64_t copy = 0; copy < slab.copies; ++copy) {
          T* __restrict own = state.data() + copy * slab.size();
          const T* __restrict in = b + t * d.width + slab.at(copy);
          const T* __restrict a = as<T>(a_) + (d.period ? slab.first : t * d.width + slab.at(copy));
          if (past_caches && slab.size() < d.width && t + ahead < d.steps) {
            const std::size_t row = static_cast<std::size_t>(slab.size()) * sizeof(T);
            cpu::ask_for(in + ahead * d.width, row);
            if (!d.period) cpu::ask_for(a + ahead * d.width, row);
          }
          T* now = s + t * d.width + slab.at(copy);
          const bool first = t == 0 && !initial;
          if (first)
            std::copy_n(in, slab.size(), own);
          else if constexpr (complex_v<T>)
            cpu::multiply_add(slab.size(), a, own, in, own);
          else if (past_caches)
            cpu::stream_multiply_add(slab.size(), a, own, in, now);
          else
            for (std::int64_t i = 0; i < slab.size(); ++i) own[i] = a[i] * own[i] + in[i];
          if (!past_caches)
            std::copy_n(own, slab.size(), now);
          else if (first || complex_v<T>)
            cpu::stream_copy(now, own, static_cast<std::size_t>(slab.size()) * sizeof(T));
        }
      }
      if (past_caches) cpu::stream_end();
    });
  });
}

void CpuBackend::diagonal_adjoint(DType type, const DiagonalDims& d, ScanMethod method, const void* a_, const void* s_,
                                  const void* initial_, const void* g_, const void* carried_, void* ga_, bool add_ga, void* gb_,
                                  bool add_gb, void* ginitial_, double* log2_norm, int* exponent, std::stop_token stop) {
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    using R = real_t<T>;
    const std::int64_t width = d.width;
    const T* s = as<T>(s_);
    const T* g = as<T>(g_);
    const T* initial = as<T>(initial_);
    T* ga = as<T>(ga_);
    T* gb = as<T>(gb_);
    T* ginitial = as<T>(ginitial_);
    using Wide = std::conditional_t<complex_v<T>, std::complex<double>, double>;
    cpu::Scratch<Wide> whole(ga ? static_cast<std::size_t>(d.period)
                                : 0);  // a time-invariant transition's adjoint is a sum over all of time
    const auto settle_whole = [&] {
      for (std::size_t i = 0; i < whole.size(); ++i) put(ga[i], T(whole[i]), add_ga);
    };
    /// lambda * 2^power is the adjoint of n entries of s_t from `from` on, all of them of one copy.
    const auto use = [&](std::int64_t t, std::int64_t from, std::int64_t n, const T* __restrict lambda, int power) {
      const bool in_range = std::abs(power) <= (sizeof(R) == 8 ? 1000 : 100);
      const R unit = in_range ? std::ldexp(R(1), power) : R(0);
      const auto add = [&](auto plain) {
        if (gb) {
          T* __restrict to = gb + t * width + from;
          for (std::int64_t i = 0; i < n; ++i) put(to[i], plain(lambda[i]), add_gb);
        }
        if (!ga) return;
        if (t == 0 && !initial) {
          if (!d.period && !add_ga) std::fill_n(ga + from, n, T{});
          return;
        }
        const T* __restrict before = (t ? s + (t - 1) * width : initial) + from;
        if (d.period) {
          Wide* __restrict to = whole.data() + from % d.period;
          for (std::int64_t i = 0; i < n; ++i) to[i] += Wide(plain(lambda[i] * conjugate(before[i])));
        } else {
          T* __restrict to = ga + t * width + from;
          for (std::int64_t i = 0; i < n; ++i) put(to[i], plain(lambda[i] * conjugate(before[i])), add_ga);
        }
      };
      if (power == 0)
        add([](T x) { return x; });
      else if (in_range)
        add([unit](T x) { return unit * x; });
      else
        add([power](T x) { return scaled(x, power); });
    };
    if (method != ScanMethod::steps) {
      // The adjoint is the same recurrence backwards in time with the transition of the next step.
      const UnsetScratch<T> all_products(d.steps * width), all_lambda(d.steps * width);
      T *products = all_products.data(), *lambda = all_lambda.data();
      for (std::int64_t r = 0; r < d.steps; ++r) {
        poll_at(stop, r, width);
        const std::int64_t t = d.steps - 1 - r;
        std::copy(g + t * width, g + (t + 1) * width, lambda + r * width);
        if (r == 0) {
          std::fill(products, products + width, T(0));
        } else {
          for_transition(d, as<T>(a_), t + 1, [&](const T* a, std::int64_t from, std::int64_t n) {
            for (std::int64_t i = 0; i < n; ++i) products[r * width + from + i] = conjugate(a[i]);
          });
        }
      }
      if (carried_)
        for (std::int64_t i = 0; i < width; ++i) lambda[i] += scaled(as<T>(carried_)[i], exponent ? *exponent : 0);
      parallel_scan(method, d.steps, width, products, lambda, stop);
      for (std::int64_t t = d.steps - 1; t >= 0; --t) {
        poll_at(stop, t, width);
        const T* row = lambda + (d.steps - 1 - t) * width;
        for (std::int64_t from = 0, n = d.period ? d.period : width; from < width; from += n) use(t, from, n, row + from, 0);
        if (log2_norm) log2_norm[t] = log2_norm_of(width, row, 0);
      }
      if (ginitial)
        for_transition(d, as<T>(a_), 0, [&](const T* a, std::int64_t from, std::int64_t n) {
          for (std::int64_t i = 0; i < n; ++i) ginitial[from + i] += conjugate(a[i]) * lambda[(d.steps - 1) * width + from + i];
        });
      if (exponent) *exponent = 0;
      settle_whole();
      return;
    }
    const bool past_caches = static_cast<std::size_t>(d.steps * width) * sizeof(T) >= cpu::stream_from;
    const std::int64_t slabs = slab_count(d);
    std::vector<int> powers(static_cast<std::size_t>(slabs), 0);
    std::vector<cpu::Scratch<double>> norms(static_cast<std::size_t>(slabs));
    std::vector<cpu::Scratch<T>> ends(static_cast<std::size_t>(slabs));
    for_slabs(d, slabs, [&](const Slab& slab) {
      const std::int64_t n = slab.size(), all = slab.copies * n;
      cpu::Scratch<T> lambda(static_cast<std::size_t>(all), T{}), fresh(lambda);
      int power = 0;
      if (carried_) {
        for (std::int64_t copy = 0; copy < slab.copies; ++copy) std::copy_n(as<T>(carried_) + slab.at(copy), n, lambda.data() + copy * n);
        power = exponent ? *exponent : 0;
      }
      auto& own_norms = norms[static_cast<std::size_t>(slab.number)];
      if (log2_norm) own_norms.resize(static_cast<std::size_t>(d.steps));
      /// The step from t + 1 to t where lambda and the new term stay near their power of two, which is nearly always: one pass. False with
      /// lambda as it was otherwise.
      const auto near = [&](std::int64_t t) {
        if (std::abs(power) > (sizeof(R) == 8 ? 1000 : 100)) return false;
        Bits<R> own_bits = 0, added_bits = 0;
        for (std::int64_t copy = 0; copy < slab.copies; ++copy) {
          const T* a = as<T>(a_) + (d.period ? slab.first : (t + 1) * width + slab.at(copy));
          if (past_caches && n < width && t > ahead) {
            const std::size_t row = static_cast<std::size_t>(n) * sizeof(T);
            cpu::ask_for(g + (t - ahead) * width + slab.at(copy), row);
            if (gb && add_gb) cpu::ask_for(gb + (t - ahead) * width + slab.at(copy), row);
            if (ga) cpu::ask_for(s + (t - ahead - 1) * width + slab.at(copy), row);
          }
          adjoint_step(n, t == d.steps - 1 ? nullptr : a, lambda.data() + copy * n, g + t * width + slab.at(copy), std::ldexp(R(1), -power),
                       fresh.data() + copy * n, own_bits, added_bits);
        }
        const int own = exponent_of_bits<R>(own_bits), added = exponent_of_bits<R>(added_bits);
        if (own == infinite_exponent || added == infinite_exponent || (own == no_exponent && power != 0)) return false;
        const int common = std::max(own == no_exponent ? own : own + power, added);
        if (common != no_exponent && std::abs(common - power) > 32) return false;
        std::swap(lambda, fresh);
        return true;
      };
      // Of a time-invariant transition the adjoints of some steps are added up first, so that the long sum in double is gone to seldom.
      cpu::Scratch<T> some(ga && d.period ? static_cast<std::size_t>(n) : 0);
      const auto settle = [&] {
        for (std::int64_t i = 0; i < static_cast<std::int64_t>(some.size()); ++i)
          whole[static_cast<std::size_t>(slab.first + i)] += Wide(some[static_cast<std::size_t>(i)]);
        std::fill(some.begin(), some.end(), T{});
      };
      for (std::int64_t t = d.steps - 1; t >= 0; --t) {
        poll_at(stop, t, slab.copies * slab.size());
        if (t % 16 == 0) settle();
        if (near(t)) {
          const T* before = t ? s + (t - 1) * width : initial;
          for (std::int64_t copy = 0; copy < slab.copies; ++copy) {
            const std::int64_t at = slab.at(copy);
            GradientRow<T> to_a, to_b;
            if (ga && d.period) to_a = {some.data(), true, false};
            if (ga && !d.period) to_a = {ga + t * width + at, add_ga, past_caches};
            if (gb) to_b = {gb + t * width + at, add_gb, past_caches};
            adjoint_use(n, lambda.data() + copy * n, before ? before + at : nullptr, std::ldexp(R(1), power), to_b, to_a,
                        fresh.data() + copy * n);
          }
          if (log2_norm) own_norms[static_cast<std::size_t>(t)] = log2_norm_of(all, lambda.data(), power);
          continue;
        }
        for (std::int64_t copy = 0; copy < slab.copies; ++copy) {
          std::copy_n(g + t * width + slab.at(copy), n, fresh.data() + copy * n);
          if (t == d.steps - 1) continue;
          T* __restrict own = lambda.data() + copy * n;
          const T* __restrict a = as<T>(a_) + (d.period ? slab.first : (t + 1) * width + slab.at(copy));
          for (std::int64_t i = 0; i < n; ++i) own[i] *= conjugate(a[i]);
        }
        // Bring lambda and the new term to a common power of two, the larger one's.
        const int own = exponent_of(all, lambda.data()), added = exponent_of(all, fresh.data());
        if (own == no_exponent) power = 0;
        const int common =
            own == infinite_exponent || added == infinite_exponent ? power : std::max(own == no_exponent ? own : own + power, added);
        if (common != no_exponent && std::abs(common - power) > 32) {
          for (auto& x : lambda) x = scaled(x, power - common);
          power = common;
        }
        if (added != no_exponent) {
          if (power != 0)
            for (auto& x : fresh) x = scaled(x, -power);
          for (std::int64_t i = 0; i < all; ++i) lambda[static_cast<std::size_t>(i)] += fresh[static_cast<std::size_t>(i)];
        }
        for (std::int64_t copy = 0; copy < slab.copies; ++copy) use(t, slab.at(copy), n, lambda.data() + copy * n, power);
        if (log2_norm) own_norms[static_cast<std::size_t>(t)] = log2_norm_of(all, lambda.data(), power);
      }
      settle();
      if (past_caches) cpu::stream_end();
      powers[static_cast<std::size_t>(slab.number)] = power;
      ends[static_cast<std::size_t>(slab.number)] = std::move(lambda);
    });
    settle_whole();
    for (std::int64_t t = 0; log2_norm && t < d.steps; ++t) log2_norm[t] = cpu::joined_norm(norms, static_cast<std::size_t>(t));
    const int out_power = exponent ? *std::max_element(powers.begin(), powers.end()) : 0;
    if (ginitial)
      for_slabs(d, slabs, [&](const Slab& slab) {
        const T* lambda = ends[static_cast<std::size_t>(slab.number)].data();
        const int power = powers[static_cast<std::size_t>(slab.number)] - out_power;
        for (std::int64_t copy = 0; copy < slab.copies; ++copy) {
          const T* a = as<T>(a_) + (d.period ? slab.first : slab.at(copy));
          for (std::int64_t i = 0; i < slab.size(); ++i)
            ginitial[slab.at(copy) + i] += scaled(conjugate(a[i]) * lambda[copy * slab.size() + i], power);
        }
      });
    if (exponent) *exponent = out_power;
  });
}

void CpuBackend::independent(Unary f, DType type, const DiagonalDims& d, const void* u_, const void* x_, const void* initial_, void* s_,
                             std::stop_token stop) {
  with_type(type, [&](auto zero) {
    using T = decltype(zero);
    if constexpr (!complex_v<T>)
      with_activation(f, [&](auto activation) {
        for_slabs(d, slab_count(d), [&](const Slab& slab) {
          const cpu::Scratch<T> none(as<T>(initial_) ? 0 : static_cast<std::size_t>(slab.size()), T(0));
          const T* __restrict u = as<T>(u_) + slab.first;
          for (std::int64_t t = 0; t < d.steps; ++t) {
            poll_at(stop, t, slab.copies * slab.size());
            for (std::int64_t copy = 0; copy < slab.copies; ++copy) {
              const std::int64_t at = slab.at(copy);
              const T* __restrict before = t ? as<T>(s_) + (t - 1) * d.width + at : initial_ ? as<T>(initial_) + at : none.data();
              const T* __restrict x = as<T>(x_) + t * d.width + at;
              T* __restrict s = as<T>(s_) + t * d.width + at;
              for (std::int64_t i = 0; i < slab.size(); ++i) s[i] = activation(x[i] + u[i] * before[i]);
            }
          }
        });
      });
  });
}

}  // namespace reclab::cpu
