// SPDX-License-Identifier: GPL-3.0-or-later
// The selective recurrence.
#pragma once

#include "array/cuda/diagonal.h"
#include "array/cuda/kernel_backend.h"
#include "array/cuda/reduce.h"

namespace reclab::kernel {

// ---- Kernels -----------------------------------------------------------------------------------------------------------------------

/// exp(dt a), for which `rate` is made of every a once. In float it is 2^(dt rate), by fewer terms than fn::exp has and as near to it: over
/// all of time the errors of factors near 1 add up. 0 below 2^-126. Outside of `range` it is put right by `far`, which is seldom needed.
template <class T>
struct SelectiveFactor {
  static constexpr bool plain = sizeof(T) == 8;
  static constexpr T range = T(126), magic = T(12582912);  // 1.5 * 2^23: adding it rounds to an integer held in the low bits
  RECLAB_HD static T rate_of(T a) { return plain ? a : a * T(1.44269504); }
  RECLAB_HD static T near(T step, T rate, T& reach) {
    if constexpr (plain) {
      return fn::exp(step * rate);
    } else {
      const T shifted = step * rate + magic, k = shifted - magic, f = step * rate - k;
      T p = T(1.5353317e-4);  // (2^f - 1)/f for |f| <= 1/2, to 2e-9
      p = p * f + T(1.3398927e-3);
      p = p * f + T(9.618438e-3);
      p = p * f + T(5.5503324e-2);
      p = p * f + T(2.4022648e-1);
      p = p * f + T(6.931472e-1);
      const T scale = std::bit_cast<T>((std::bit_cast<std::uint32_t>(shifted) + 127u) << 23);
      reach = std::fmax(reach, std::abs(k));
      return p * f * scale + scale;
    }
  }
  RECLAB_HD static T far(T step, T rate, T near) {
    const T k = step * rate + magic - magic;
    near = k < -range ? T(0) : near;
    return k > range + T(1) ? std::numeric_limits<T>::infinity() : near;
  }
};

/// The tiles by which a block goes through time: some channels of one sequence, `Parts` threads a channel, `Own` states a thread, in tiles
/// of at most `Most` steps. The inputs of a tile are fetched into registers while the tile before it is computed; then it lies in shared
/// memory. Beyond the last step, channel or state there are zeros, which change nothing.
template <class T, int Own, int Parts, int Most>
struct SelectiveTile {
  static constexpr int width = Own * Parts, channels = 256 / Parts;
  static constexpr int steps = Most < 4 * Parts ? Most : 4 * Parts, wide = steps * channels, narrow = steps * width;  // a tile's entries
  static constexpr int own_bytes = Own * static_cast<int>(sizeof(T));
  struct alignas(own_bytes < 16 ? own_bytes : 16) Few {
    T of[Own];
  };
  struct alignas(2 * sizeof(T)) Entry {
    T dt, x;
  };
  struct Vectors {
    Few b, c;
  };
  struct Rows {
    Entry in[wide];                 // [step, channel]
    Vectors vectors[narrow / Own];  // [step, part]
  };
  struct Fetched {
    T dt[(wide + 255) / 256], x[(wide + 255) / 256], b[(narrow + 255) / 256], c[(narrow + 255) / 256];
    Index wide_at, narrow_at;
  };

  SelectiveDims d;
  const T *dt, *x, *b, *c;
  bool backward;
  Index from, to;  // steps, counted in the direction of the run
  Index first;     // of the states

  Index blocks() const { return d.batch * slabs(); }
  RECLAB_HD Index slabs() const { return (d.channels + channels - 1) / channels; }
  RECLAB_HD int count() const { return static_cast<int>(least(width, d.states - first)); }

  /// The place of a block.
  struct Place {
    Index batch, channel;  // the first channel
  };
  RECLAB_HD Place place(Index index) const { return {index / slabs(), index % slabs() * channels}; }
  RECLAB_HD Index row(const Place& at, Index r) const { return (backward ? d.steps - 1 - r : r) * d.batch + at.batch; }
  RECLAB_HD int steps_from(Index r) const { return static_cast<int>(least(steps, to - r)); }
  RECLAB_HD Index next_row() const { return backward ? -d.batch : d.batch; }

  /// The place of a thread.
  RECLAB_HD static int part(int thread) { return thread % Parts; }
  RECLAB_HD static int channel(int thread) { return thread / Parts; }
  RECLAB_HD int own(const Place& at, int thread) const {  // how many states it has
    const int left = count() - part(thread) * Own;
    return at.channel + channel(thread) >= d.channels || left < 0 ? 0 : left < Own ? left : Own;
  }
  RECLAB_HD Index rate_at(const Place& at, int thread) const {  // in [channels, states]
    return (at.channel + channel(thread)) * d.states + first + part(thread) * Own;
  }
  RECLAB_HD Index state_at(Index in_row, const Place& at, int thread) const { return in_row * d.channels * d.states + rate_at(at, thread); }

  /// The slots of the threads' parts of a sum over the states: those of a channel side by side, in different banks from channel to channel.
  static constexpr int slot_count = 256 + 256 / 4;
  RECLAB_HD static int slot(int thread) { return thread + thread / (Parts > 4 ? Parts : 4); }
  RECLAB_HD static T total(const T* of_step, int of_channel) {
    const T* own_parts = of_step + slot(of_channel * Parts);
    T sum = own_parts[0];
    for (int p = 1; p < Parts; ++p) sum += own_parts[p];
    return sum;
  }

  /// Starts fetching: sets the indices of the thread's first entries of the first tile.
  RECLAB_HD void start(const Place& at, int thread, Fetched& fetched) const {
    fetched.wide_at = row(at, from) * d.channels + at.channel + thread % channels + thread / channels * next_row() * d.channels;
    fetched.narrow_at = row(at, from) * d.states + first + thread % width + thread / width * next_row() * d.states;
  }
  /// f(k, step, index): the thread's kth entry in the tile at r of an array [steps, batch, channels], the first one at `index`.
  template <class F>
  RECLAB_HD void entries(const Place& at, Index r, int thread, Index index, const F& f) const {
    const int own_step = thread / channels, left = at.channel + thread % channels < d.channels ? steps_from(r) - own_step : 0;
    for (int k = 0; k < (wide + 255) / 256; ++k)
      if (k * Parts < left) f(k, own_step + k * Parts, index + k * Parts * next_row() * d.channels);
  }
  RECLAB_HD void fetch(const Place& at, Index r, int thread, Fetched& fetched) const {
    for (int k = 0; k < (wide + 255) / 256; ++k) fetched.dt[k] = fetched.x[k] = T(0);
    entries(at, r, thread, fetched.wide_at, [&](int k, int, Index index) {
      fetched.dt[k] = dt[index];
      fetched.x[k] = x[index];
    });
    const int left = thread % width < count() ? steps_from(r) - thread / width : 0;
    for (int k = 0; k < (narrow + 255) / 256; ++k) {
      const bool there = k * (256 / width) < left;
      const Index index = fetched.narrow_at + k * (256 / width) * next_row() * d.states;
      fetched.b[k] = there ? b[index] : T(0);
      fetched.c[k] = there ? c[index] : T(0);
    }
    fetched.wide_at += steps * next_row() * d.channels;
    fetched.narrow_at += steps * next_row() * d.states;
  }
  RECLAB_HD static void put(const Fetched& fetched, int thread, Rows& rows) {
    for (int k = 0; k < (wide + 255) / 256; ++k)
      if (const int e = thread + 256 * k; e < wide) rows.in[e] = {fetched.dt[k], fetched.x[k]};
    for (int k = 0; k < (narrow + 255) / 256; ++k)
      if (const int e = thread + 256 * k; e < narrow) {
        rows.vectors[e / Own].b.of[e % Own] = fetched.b[k];
        rows.vectors[e / Own].c.of[e % Own] = fetched.c[k];
      }
  }
};

/// The recurrence itself, from and into `memory`, for as many states as the threads of a channel have; all but the first of them add to y.
template <class T, int Own, int Parts>
struct SelectiveRun {
  using Tile = SelectiveTile<T, Own, Parts, sizeof(T) == 4 ? 16 : 8>;
  using Factor = SelectiveFactor<T>;
  static constexpr int together = Own == 1 ? 4 : 2;  // steps
  static_assert(Tile::steps % together == 0);
  Tile tile;
  const T* a;
  T *memory, *y, *states;  // y and states may be null
  bool aligned;            // all states of a thread lie as Few does
  struct Shared {
    typename Tile::Rows rows;
    T sums[Tile::steps * Tile::slot_count];
  };
  struct States {
    T h[Own], rate[Own];
  };

  template <class Block>
  RECLAB_HD void operator()(Block& block, Index index, Shared& shared) const {
    const auto at = tile.place(index);
    typename Block::template Local<typename Tile::Fetched> fetched;
    typename Block::template Local<States> local;
    block.phase([&](int thread) {
      tile.start(at, thread, fetched[thread]);
      tile.fetch(at, tile.from, thread, fetched[thread]);
      const int own = tile.own(at, thread);
      const Index line = tile.rate_at(at, thread), start = tile.state_at(at.batch, at, thread);
      for (int n = 0; n < Own; ++n) {
        local[thread].h[n] = n < own ? memory[start + n] : T(0);
        local[thread].rate[n] = n < own ? Factor::rate_of(a[line + n]) : T(0);
      }
    });
    Index r = tile.from;
    for (; r < tile.to; r += Tile::steps) {
      block.phase([&](int thread) {
        if (r > tile.from) read_out(at, r - Tile::steps, thread, fetched[thread], shared);
        tile.put(fetched[thread], thread, shared.rows);
        tile.fetch(at, r + Tile::steps, thread, fetched[thread]);
      });
      block.phase([&](int thread) { advance(at, r, thread, local[thread], shared); });
    }
    block.phase([&](int thread) {
      read_out(at, r - Tile::steps, thread, fetched[thread], shared);
      const int own = tile.own(at, thread);
      const Index start = tile.state_at(at.batch, at, thread);
      for (int n = 0; n < Own; ++n)
        if (n < own) memory[start + n] = local[thread].h[n];
    });
  }

  template <class Place>
  RECLAB_HD void advance(const Place& at, Index r, int thread, States& local, Shared& shared) const {
    const int own = tile.own(at, thread);
    const auto* in = shared.rows.in + Tile::channel(thread);
    const auto* vectors = shared.rows.vectors + Tile::part(thread);
    T* sums = shared.sums + Tile::slot(thread);
    const int here = states && own ? tile.steps_from(r) : 0;
    const Index stride = tile.d.batch * tile.d.channels * tile.d.states;
    T* to = here ? states + tile.state_at(tile.row(at, r), at, thread) : nullptr;
    for (int s = 0; s < Tile::steps; s += together) {
      typename Tile::Entry now[together];
      typename Tile::Vectors with[together];
      typename Tile::Few h[together];
      T factor[together][Own], reach(0);
      for (int i = 0; i < together; ++i) {
        now[i] = in[i * Tile::channels];
        with[i] = vectors[i * Parts];
        for (int n = 0; n < Own; ++n) factor[i][n] = Factor::near(now[i].dt, local.rate[n], reach);
      }
      if (reach > Factor::range)
        for (int i = 0; i < together; ++i)
          for (int n = 0; n < Own; ++n) factor[i][n] = Factor::far(now[i].dt, local.rate[n], factor[i][n]);
      for (int i = 0; i < together; ++i) {
        const T drive = now[i].dt * now[i].x;
        T sum(0);
        for (int n = 0; n < Own; ++n) {
          h[i].of[n] = local.h[n] = factor[i][n] * local.h[n] + drive * with[i].b.of[n];
          if (n < own) sum += h[i].of[n] * with[i].c.of[n];
        }
        sums[i * Tile::slot_count] = sum;
      }
      if (s < here)
        for (int i = 0; i < together; ++i, to += stride)
          if (s + i < here) write(own, h[i], to);
      in += together * Tile::channels;
      vectors += together * Parts;
      sums += together * Tile::slot_count;
    }
  }
  RECLAB_HD void write(int own, const typename Tile::Few& h, T* to) const {
    if (aligned) {
      *reinterpret_cast<typename Tile::Few*>(to) = h;
    } else {
      for (int n = 0; n < Own; ++n)
        if (n < own) to[n] = h.of[n];
    }
  }
  template <class Place>
  RECLAB_HD void read_out(const Place& at, Index r, int thread, const typename Tile::Fetched& ahead, const Shared& shared) const {
    if (!y) return;
    const Index two_tiles = 2 * Tile::steps * tile.next_row() * tile.d.channels;  // the second of the two is fetched already
    T sum[(Tile::wide + 255) / 256] = {};
    for (int k = 0; k < (Tile::wide + 255) / 256; ++k)
      if (const int e = thread + 256 * k; e < Tile::wide)
        sum[k] = Tile::total(shared.sums + e / Tile::channels * Tile::slot_count, e % Tile::channels);
    tile.entries(at, r, thread, ahead.wide_at - two_tiles,
                 [&](int k, int, Index index) { y[index] = tile.first ? y[index] + sum[k] : sum[k]; });
  }
};
/// The factors of the recurrence as a diagonal one, [steps, batch, channels, states].
template <class T>
struct SelectiveFactors {
  SelectiveDims d;
  const T *dt, *a;
  T* factor;
  RECLAB_HD void operator()(Index index) const {
    const Index n = index % d.states, at = index / d.states;
    factor[index] = fn::exp(dt[at] * a[at % d.channels * d.states + n]);
  }
};
/// The adjoint of the states from the readout.
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
/// The states' adjoints lambda 2^powers, a thread a state, back through steps from <= r < to, in place of the adjoints from the readout.
/// The inputs of some steps are read before the first of them: each by itself would wait for memory.
template <class T>
struct SelectiveBack {
  static constexpr int together = 8;
  const T *factor, *start;  // start may be null
  int start_power;
  Index steps, width, from, to;
  T* lambda;
  int* powers;
  RECLAB_HD Index at(Index r, Index i) const { return (steps - 1 - r) * width + i; }
  RECLAB_HD void operator()(Index i) const {
    T state{};
    int power = 0;
    if (from) {
      state = lambda[at(from - 1, i)];
      power = powers[at(from - 1, i)];
    } else if (start) {
      state = start[i];
      power = start_power;
    }
    for (Index r = from; r < to; r += together) {
      T along[together] = {}, fresh[together] = {};
      const Index first = at(r, i);
      const int here = static_cast<int>(least(together, to - r));
      for (int k = 0; k < together; ++k)
        if (k < here) {
          along[k] = r + k ? factor[first - (k - 1) * width] : T(1);  // the adjoint carried in is already multiplied
          fresh[k] = lambda[first - k * width];
        }
      for (int k = 0; k < together; ++k)
        if (k < here) {
          state = along[k] * state;
          if (is_zero(state)) power = 0;
          add_in_units(fresh[k], state, power);
          lambda[first - k * width] = state;
          powers[first - k * width] = power;
        }
    }
  }
};
/// The adjoints of the states, lambda 2^powers, give those of the drives and of the factors.
template <class T>
struct SelectiveLambda {
  const T* lambda;
  const int* powers;
  TransitionTerm<T> of_factors;
  RECLAB_HD T drive(Index index) const { return scaled(lambda[index], powers[index]); }
  RECLAB_HD T factor(Index index) const { return of_factors(index, 0); }
};
/// The adjoints of dt and x from those of the states (either may be null).
template <class T>
struct SelectiveInputAdjoint {
  SelectiveDims d;
  const T *dt, *a, *x, *b, *factor;
  SelectiveLambda<T> g;
  T *gdt, *gx;
  RECLAB_HD void operator()(Index at) const {
    const Index channel = at % d.channels, row = at / d.channels;
    T of_drive(0), of_rate(0);
    for (Index n = 0; n < d.states; ++n) {
      const Index index = at * d.states + n;
      of_drive += g.drive(index) * b[row * d.states + n];
      if (gdt) of_rate += g.factor(index) * factor[index] * a[channel * d.states + n];
    }
    if (gx) gx[at] += dt[at] * of_drive;
    if (gdt) gdt[at] += x[at] * of_drive + of_rate;
  }
};
/// The adjoint of a: output [channels, states], over all steps and the batch.
template <class T>
struct SelectiveRateTerm {
  SelectiveDims d;
  const T *dt, *factor;
  SelectiveLambda<T> g;
  RECLAB_HD T operator()(Index o, Index row) const {
    const Index at = row * d.channels + o / d.states, index = row * d.channels * d.states + o;
    return g.factor(index) * factor[index] * dt[at];
  }
};
/// The adjoint of b: output [steps, batch, states], over the channels.
template <class T>
struct SelectiveDriveTerm {
  SelectiveDims d;
  const T *dt, *x;
  SelectiveLambda<T> g;
  RECLAB_HD T operator()(Index o, Index channel) const {
    const Index at = o / d.states * d.channels + channel;
    return g.drive(at * d.states + o % d.states) * (dt[at] * x[at]);
  }
};
/// The adjoint of c: output [steps, batch, states], over the channels.
template <class T>
struct SelectiveReadTerm {
  SelectiveDims d;
  const T *states, *gy;
  RECLAB_HD T operator()(Index o, Index channel) const {
    const Index at = o / d.states * d.channels + channel;
    return states[at * d.states + o % d.states] * gy[at];
  }
};

// ---- Launches ----------------------------------------------------------------------------------------------------------------------

/// Calls f(own, parts) with the states of a thread and the threads of a channel, by the shape alone. With four states a thread has less to
/// do besides; where that would leave few threads each has one.
template <class F>
void with_parts(const SelectiveDims& d, const F& f) {
  constexpr std::integral_constant<int, 1> one;
  constexpr std::integral_constant<int, 2> two;
  constexpr std::integral_constant<int, 4> four;
  constexpr std::integral_constant<int, 16> sixteen;
  if (d.states == 1) return f(one, one);
  if (d.states < 4 || d.batch * d.channels * d.states < (1 << 16)) {
    if (d.states <= 4) return f(one, four);
    return d.states <= 16 ? f(one, sixteen) : f(one, std::integral_constant<int, 64>());
  }
  if (d.states <= 8) return f(four, two);
  if (d.states <= 16) return f(four, four);
  return d.states <= 32 ? f(four, std::integral_constant<int, 8>()) : f(four, sixteen);
}

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
    with_parts(d, [&](auto own, auto parts) {
      using Run = SelectiveRun<T, decltype(own)::value, decltype(parts)::value>;
      using Tile = typename Run::Tile;
      const bool aligned =
          d.states % decltype(own)::value == 0 && reinterpret_cast<std::uintptr_t>(states) % alignof(typename Tile::Few) == 0;
      for (Index from = 0; from < d.steps; from += stretch) {
        poll(stop, from);
        for (Index first = 0; first < d.states; first += Tile::width) {
          const Tile tile{d, as<T>(dt), as<T>(x), as<T>(b), as<T>(c), false, from, std::min(d.steps, from + stretch), first};
          machine_.blocks(tile.blocks(), Run{tile, as<T>(a), memory, as<T>(y), as<T>(states), aligned});
        }
      }
    });
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
    if (n == 0) return;
    Scratch<T> factor(machine_, n), states(machine_, n), lambda(machine_, n);
    Scratch<int> powers(machine_, n);
    machine_.each(n, SelectiveFactors<T>{d, as<T>(dt), as<T>(a), factor.data});
    selective(type, d, dt, a, x, b, c, initial, nullptr, states.data, nullptr, stop);
    machine_.each(n, SelectiveReadAdjoint<T>{d, as<T>(c), as<T>(gy), as<T>(gstates), lambda.data});
    const int start_power = carried && exponent ? *exponent : 0;
    for (Index from = 0; from < d.steps; from += stretch) {
      poll(stop, from);
      machine_.each(width, SelectiveBack<T>{factor.data, as<T>(carried), start_power, d.steps, width, from,
                                            std::min(d.steps, from + stretch), lambda.data, powers.data});
    }
    const SelectiveLambda<T> g{lambda.data, powers.data, {lambda.data, states.data, as<T>(initial), powers.data, width, 0}};
    if (gdt || gx)
      machine_.each(rows * d.channels,
                    SelectiveInputAdjoint<T>{d, as<T>(dt), as<T>(a), as<T>(x), as<T>(b), factor.data, g, as<T>(gdt), as<T>(gx)});
    if (ga) reduce(SelectiveRateTerm<T>{d, as<T>(dt), factor.data, g}, d.channels * d.states, rows, as<T>(ga), 1.0, true);
    if (gb) reduce(SelectiveDriveTerm<T>{d, as<T>(dt), as<T>(x), g}, rows * d.states, d.channels, as<T>(gb), 1.0, true);
    if (gc) reduce(SelectiveReadTerm<T>{d, states.data, as<T>(gy)}, rows * d.states, d.channels, as<T>(gc), 1.0, true);
    int power = 0;
    if (exponent) {
      if (ginitial) {
        const int common = static_cast<int>(magnitudes_of(lambda.data, powers.data, width, width)[0].exponent);
        if (common != no_exponent && common != infinite_exponent && std::abs(common) > 32) power = common;
      }
      *exponent = power;
    }
    if (ginitial) machine_.each(width, InitialAdjoint<T>{factor.data, lambda.data, powers.data, as<T>(ginitial), 0, power});
    if (log2_norm) {
      const auto norms = magnitudes_of(lambda.data, powers.data, n, width);
      for (std::size_t t = 0; t < norms.size(); ++t)
        log2_norm[t] = 0.5 * std::log2(norms[t].squares) + unit_of(static_cast<int>(norms[t].exponent));
    }
  });
}

}  // namespace reclab::kernel
