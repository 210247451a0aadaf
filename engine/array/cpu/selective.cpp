// SPDX-License-Identifier: GPL-3.0-or-later
// A thread takes 64 channels through all of time: their states, a few kilobytes, stay in its first cache, lanes are channels, and neither
// the factors exp(dt a) nor the drives dt x b are ever in memory. On the way back the states are made again, tile by tile, from those kept
// at each tile's start.
#include "array/cpu/cpu_backend.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "array/cpu/gemm.h"
#include "array/cpu/processor/exponential.h"
#include "array/cpu/processor/exponents.h"
#include "array/cpu/processor/norms.h"
#include "array/cpu/processor/scratch.h"
#include "array/cpu/processor/stream.h"
#include "array/cpu/processor/threads.h"
#include "array/error.h"

namespace reclab::cpu {
namespace {

using Index = std::int64_t;

constexpr Index slab = 64;  // channels
constexpr Index ahead = 8;  // steps

template <class T>
struct alignas(64) Line {
  T entry[64 / sizeof(T)];
};
/// Zeros, on lines of the cache.
template <class T>
class Array {
 public:
  explicit Array(Index n) : lines_(static_cast<std::size_t>((n * static_cast<Index>(sizeof(T)) + 63) / 64)) {}
  T* data() { return reinterpret_cast<T*>(lines_.data()); }
  T* operator+(Index i) { return data() + i; }
  T& operator[](Index i) { return data()[i]; }

 private:
  Scratch<Line<T>> lines_;
};

/// The slab of one thread: rows of channels come as 64 entries, zeros after the last channel; the states as [state, 64].
template <class T>
struct ChannelPart {
  const SelectiveDims& d;
  Index batch, first, width;

  ChannelPart(const SelectiveDims& dims, Index number)
      : d(dims), batch(number / count(dims)), first(number % count(dims) * slab), width(std::min(slab, dims.channels - first)) {}
  static Index count(const SelectiveDims& d) { return (d.channels + slab - 1) / slab; }

  Index at(Index t) const { return (t * d.batch + batch) * d.channels + first; }
  void load(const T* rows, Index t, T* to) const { std::copy_n(rows + at(t), width, to); }
  /// The next piece of a row lies a whole row further on, which the processor does not foresee.
  void ask_for(const T* rows, Index t) const {
    if (t >= 0 && t < d.steps) cpu::ask_for(rows + at(t), static_cast<std::size_t>(width) * sizeof(T));
  }
  const T* of_step(const T* x, Index t) const { return x + (t * d.batch + batch) * d.states; }
  /// [channels, states] to [states, 64].
  void transposed(const T* from, T* to) const {
    for (Index l = 0; l < width; ++l)
      for (Index n = 0; n < d.states; ++n) to[n * slab + l] = from[l * d.states + n];
  }
  void store(const T* state, T* to, T* room) const {
    if (width == slab) return turn(d.states, slab, state, to);
    turn(d.states, slab, state, room);
    std::copy_n(room, width * d.states, to);
  }
  Index state_at(Index t) const { return at(t) * d.states; }
  Index initial_at() const { return (batch * d.channels + first) * d.states; }
};

/// h <- exp(dt a) h + drive b, y = sum c h; all on lines of the cache.
template <class T>
void advance(Index states, const T* dt, const T* a, const T* drive, const T* b, const T* c, T* h, T* y) {
  using Exp = Exponential<T>;
  using V = typename Exp::V;
  for (Index l = 0; l < slab; l += Exp::lanes) {
    const V step = Exp::at(dt + l), in = Exp::at(drive + l);
    V read{};
    for (Index n = 0; n < states; ++n) {
      V& own = Exp::at(h + n * slab + l);
      own = Exp::of(step * Exp::at(a + n * slab + l)) * own + in * b[n];
      read += own * c[n];
    }
    Exp::at(y + l) = read;
  }
}
/// The same with the factors and the states before and after kept, and nothing read.
template <class T>
void unroll(Index states, const T* dt, const T* a, const T* drive, const T* b, const T* before, T* factor, T* after) {
  using Exp = Exponential<T>;
  using V = typename Exp::V;
  for (Index n = 0; n < states; ++n)
    for (Index l = 0; l < slab; l += Exp::lanes) {
      const Index i = n * slab + l;
      const V f = Exp::of(Exp::at(dt + l) * Exp::at(a + i));
      Exp::at(factor + i) = f;
      Exp::at(after + i) = f * Exp::at(before + i) + Exp::at(drive + l) * b[n];
    }
}

/// A power of two, also one out of the type's range.
template <class T>
struct Power {
  T first, second;
  explicit Power(int power) {
    constexpr int most = sizeof(T) == 8 ? 2000 : 240;
    power = std::clamp(power, -most, most);
    first = std::ldexp(T(1), power / 2);
    second = std::ldexp(T(1), power - power / 2);
  }
  T operator*(T x) const { return x * first * second; }
};

/// Of a product of two.
int both(int x, int y) {
  if (x == infinite_exponent || y == infinite_exponent) return infinite_exponent;
  return x == no_exponent || y == no_exponent ? no_exponent : x + y;
}

/// The sum of 64 entries, always in one order.
template <class T>
T total(const T* x) {
  T sum[slab / 2];
  for (Index l = 0; l < slab / 2; ++l) sum[l] = x[l] + x[l + slab / 2];
  for (Index half = slab / 4; half > 0; half /= 2)
    for (Index l = 0; l < half; ++l) sum[l] += sum[l + half];
  return sum[0];
}

template <class F>
void for_parts(const SelectiveDims& d, Index parts, const F& f) {
  constexpr Index worth_threads = Index{1} << 14;
  if (d.steps * d.batch * d.channels * d.states >= worth_threads) return parallel(parts, f);
  for (Index i = 0; i < parts; ++i) f(i);
}

void poll(const std::stop_token& stop, Index t) {
  if (t % 64 == 0 && stop.stop_requested()) throw Cancelled();
}

/// So many steps that their factors and states stay in the second cache.
template <class T>
Index tile_of(const SelectiveDims& d) {
  return std::clamp<Index>((Index{1} << 17) / (d.states * slab * static_cast<Index>(sizeof(T))), 4, 64);
}
constexpr Index most_together = 4;  // parts that one thread takes through time side by side

template <class T>
std::size_t scratch_of(const SelectiveDims& d, bool adjoint) {
  const Index N = d.states, size = N * slab, parts = d.batch * ChannelPart<T>::count(d), threads = std::min<Index>(thread_count(), parts),
              line = 64;
  if (!adjoint)
    return static_cast<std::size_t>(threads * ((most_together * 2 + 1) * size + 4 * slab)) * sizeof(T) +
           static_cast<std::size_t>(threads * (2 * most_together + 5) * line);
  const Index tile = tile_of<T>(d), tiles = (d.steps + tile - 1) / tile;
  const Index of_thread = (tiles + 2 * tile + 6) * size + 3 * tile * slab + 5 * slab + N;
  const Index of_part = 2 * d.steps * N + size, doubles = size + d.steps;  // one more, which the others are copies of
  return static_cast<std::size_t>(threads * of_thread + (parts + 1) * of_part) * sizeof(T) +
         static_cast<std::size_t>(parts * doubles) * sizeof(double) + static_cast<std::size_t>(threads * 17 * line);
}

}  // namespace

template <class T>
void selective(const SelectiveDims& d, const T* dt, const T* a, const T* x, const T* b, const T* c, const T* initial, T* y, T* states,
               T* final_state, const std::stop_token& stop) {
  const Index size = d.states * slab, parts = d.batch * ChannelPart<T>::count(d);
  // Neighbours go through time together, so that reads of a row are contiguous; as many as fit the first cache.
  const Index together = std::clamp<Index>(parts / thread_count(), 1, most_together);
  for_parts(d, (parts + together - 1) / together, [&](Index group) {
    struct Running {
      ChannelPart<T> part;
      Array<T> rate, h;
    };
    std::vector<Running> all;
    for (Index number = group * together; number < std::min(parts, (group + 1) * together); ++number) {
      Running& own = all.emplace_back(Running{ChannelPart<T>(d, number), Array<T>(size), Array<T>(size)});
      own.part.transposed(a + own.part.first * d.states, own.rate.data());
      if (initial) own.part.transposed(initial + own.part.initial_at(), own.h.data());
    }
    Array<T> room(states || final_state ? size : 0), step(slab), in(slab), drive(slab), read(slab);
    for (Index t = 0; t < d.steps; ++t) {
      poll(stop, t);
      for (Running& own : all) {
        const ChannelPart<T>& part = own.part;
        for (const T* rows : {dt, x, static_cast<const T*>(y)}) part.ask_for(rows, t + ahead);
        part.load(dt, t, step.data());
        part.load(x, t, in.data());
        std::fill_n(step + part.width, slab - part.width, T(0));
        std::fill_n(in + part.width, slab - part.width, T(0));
        for (Index l = 0; l < slab; ++l) drive[l] = step[l] * in[l];
        advance(d.states, step.data(), own.rate.data(), drive.data(), part.of_step(b, t), part.of_step(c, t), own.h.data(), read.data());
        std::copy_n(read.data(), part.width, y + part.at(t));
        if (states) part.store(own.h.data(), states + part.state_at(t), room.data());
      }
    }
    for (Running& own : all)
      if (final_state) own.part.store(own.h.data(), final_state + own.part.initial_at(), room.data());
  });
}

template <class T>
void selective_adjoint(const SelectiveDims& d, const T* dt, const T* a, const T* x, const T* b, const T* c, const T* initial, const T* gy,
                       const T* gstates, const T* carried, T* gdt, T* ga, T* gx, T* gb, T* gc, T* ginitial, double* log2_norm,
                       int* exponent, const std::stop_token& stop) {
  const Index N = d.states, size = N * slab, parts = d.batch * ChannelPart<T>::count(d);
  const Index tile = tile_of<T>(d), tiles = (d.steps + tile - 1) / tile;
  const auto of_parts = [&](Index each) {
    return std::vector<Scratch<T>>(static_cast<std::size_t>(parts), Scratch<T>(static_cast<std::size_t>(each)));
  };
  auto all_gb = of_parts(gb ? d.steps * N : 0), all_gc = of_parts(gc ? d.steps * N : 0), ends = of_parts(ginitial ? size : 0);
  std::vector<Scratch<double>> all_ga(static_cast<std::size_t>(ga ? parts : 0)), norms(static_cast<std::size_t>(log2_norm ? parts : 0));
  std::vector<int> powers(static_cast<std::size_t>(parts), no_exponent);
  for_parts(d, parts, [&](Index number) {
    const ChannelPart<T> part(d, number);
    const auto own = static_cast<std::size_t>(number);
    Array<T> rate(size), starts(tiles * size), states((tile + 1) * size), factors(tile * size), room(size);
    Array<T> step(tile * slab), in(tile * slab), drive(tile * slab), grown(slab), back(slab), lambda(size), fresh(gstates ? size : 0);
    Array<T> gdrive(slab), grate(slab), some(ga ? size : 0), row(slab), read(N);
    part.transposed(a + part.first * N, rate.data());
    if (ga) all_ga[own].resize(static_cast<std::size_t>(size));
    if (log2_norm) norms[own].resize(static_cast<std::size_t>(d.steps));
    const auto load = [&](Index t, Index i) {
      part.ask_for(dt, t + ahead);
      part.ask_for(x, t + ahead);
      part.load(dt, t, step + i * slab);
      part.load(x, t, in + i * slab);
      for (Index l = i * slab; l < (i + 1) * slab; ++l) drive[l] = step[l] * in[l];
    };
    if (initial) part.transposed(initial + part.initial_at(), states.data());
    for (Index t = 0; t < d.steps; ++t) {
      poll(stop, t);
      if (t % tile == 0) std::copy_n(states.data(), size, starts + t / tile * size);
      if (t / tile == tiles - 1) break;
      load(t, 0);
      advance(N, step.data(), rate.data(), drive.data(), part.of_step(b, t), part.of_step(c, t), states.data(), row.data());
    }
    int power = 0, standing = no_exponent;  // lambda 2^power is the adjoint from step t + 1 to t; the exponent of lambda
    if (carried) {
      part.transposed(carried + part.initial_at(), lambda.data());
      power = exponent ? *exponent : 0;
      standing = exponent_of(size, lambda.data());
    }
    for (Index k = tiles - 1; k >= 0; --k) {
      const Index from = k * tile, to = std::min(d.steps, from + tile);
      std::copy_n(starts + k * size, size, states.data());
      for (Index t = from; t < to; ++t) {
        const Index i = t - from;
        load(t, i);
        unroll(N, step + i * slab, rate.data(), drive + i * slab, part.of_step(b, t), states + i * size, factors + i * size,
               states + (i + 1) * size);
      }
      for (Index t = to - 1; t >= from; --t) {
        poll(stop, t);
        const Index i = t - from;
        const T *before = states + i * size, *after = before + size, *factor = factors + i * size, *now_dt = step + i * slab,
                *now_in = in + i * slab, *now_drive = drive + i * slab, *now_b = part.of_step(b, t), *now_c = part.of_step(c, t);
        part.load(gy, t, back.data());
        // Bring lambda and the new terms to a common power of two, the larger one's.
        const int of_back = exponent_of(slab, back.data());
        int added = both(of_back, exponent_of(N, now_c)), of_fresh = no_exponent;
        if (gstates) {
          part.transposed(gstates + part.state_at(t), fresh.data());
          of_fresh = exponent_of(size, fresh.data());
          added = std::max(added, of_fresh);
        }
        if (standing == no_exponent) power = 0;
        const bool finite = standing != infinite_exponent && added != infinite_exponent;
        const int common = finite ? std::max(standing == no_exponent ? standing : standing + power, added) : no_exponent;
        if (common != no_exponent && std::abs(common - power) > 32) {
          const Power<T> change(power - common);
          for (Index j = 0; j < size; ++j) lambda[j] = change * lambda[j];
          power = common;
        }
        const int lifted = of_back == infinite_exponent || of_back == no_exponent ? 0 : of_back;
        const Power<T> into(-lifted), along(lifted - power), direct(-power), unit(power);
        for (Index l = 0; l < slab; ++l) row[l] = into * back[l];
        // Where nothing comes in, lambda may be so small that 2^-power is beyond the type.
        for (Index n = 0; n < N; ++n) read[n] = of_back == no_exponent ? T(0) : along * now_c[n];
        if (of_fresh != no_exponent)
          for (Index j = 0; j < size; ++j) lambda[j] += direct * fresh[j];

        std::fill_n(gdrive.data(), slab, T(0));
        std::fill_n(grate.data(), slab, T(0));
        T squares[slab] = {};
        Bits<T> largest = 0;
        for (Index n = 0; n < N; ++n) {
          const T c_now = read[n], b_now = now_b[n];
          T* __restrict carry = lambda + n * slab;
          T* __restrict to_drive = gdrive.data();
          T* __restrict to_rate = grate.data();
          const T* __restrict f = factor + n * slab, * __restrict s = before + n * slab, * __restrict r = rate + n * slab, * __restrict g = row.data();
          T here[slab], product[slab];
          for (Index l = 0; l < slab; ++l) {
            here[l] = carry[l] + g[l] * c_now;
            to_drive[l] += here[l] * b_now;
            carry[l] = f[l] * here[l];
            product[l] = carry[l] * s[l];
            to_rate[l] += product[l] * r[l];
            largest = std::max(largest, magnitude(carry[l]));
          }
          if (log2_norm)
            for (Index l = 0; l < slab; ++l) squares[l] += here[l] * here[l];
          if (ga) {
            T* __restrict sum = some + n * slab;
            for (Index l = 0; l < slab; ++l) sum[l] += unit * (product[l] * now_dt[l]);
          }
          if (gb) {
            for (Index l = 0; l < slab; ++l) here[l] *= now_drive[l];
            all_gb[own][static_cast<std::size_t>(t * N + n)] = unit * total(here);
          }
          if (gc) {
            for (Index l = 0; l < slab; ++l) product[l] = back[l] * after[n * slab + l];
            all_gc[own][static_cast<std::size_t>(t * N + n)] = total(product);
          }
        }
        standing = exponent_of_bits<T>(largest);
        if (gx)
          for (Index l = 0; l < part.width; ++l) gx[part.at(t) + l] += unit * (now_dt[l] * gdrive[l]);
        if (gdt)
          for (Index l = 0; l < part.width; ++l) gdt[part.at(t) + l] += unit * (now_in[l] * gdrive[l] + grate[l]);
        if (log2_norm) norms[own][static_cast<std::size_t>(t)] = 0.5 * std::log2(static_cast<double>(total(squares))) + power;
        // Some steps are added up first, so that the long sum in double is gone to seldom.
        if (ga && (t % 16 == 0 || t == from)) {
          for (Index j = 0; j < size; ++j) all_ga[own][static_cast<std::size_t>(j)] += static_cast<double>(some[j]);
          std::fill_n(some.data(), size, T(0));
        }
      }
    }
    if (standing != no_exponent) powers[own] = power;
    if (ginitial) std::copy_n(lambda.data(), size, ends[own].data());
  });

  for (Index number = 0; number < parts; ++number) {
    const ChannelPart<T> part(d, number);
    const auto own = static_cast<std::size_t>(number);
    for (Index t = 0; t < d.steps; ++t)
      for (Index n = 0; n < N; ++n) {
        const Index to = (t * d.batch + part.batch) * N + n;
        if (gb) gb[to] += all_gb[own][static_cast<std::size_t>(t * N + n)];
        if (gc) gc[to] += all_gc[own][static_cast<std::size_t>(t * N + n)];
      }
  }
  for (Index first = 0; ga && first < ChannelPart<T>::count(d); ++first) {
    const ChannelPart<T> part(d, first);
    for (Index l = 0; l < part.width; ++l)
      for (Index n = 0; n < N; ++n) {
        double sum = 0.0;
        for (Index number = first; number < parts; number += ChannelPart<T>::count(d))
          sum += all_ga[static_cast<std::size_t>(number)][static_cast<std::size_t>(n * slab + l)];
        ga[(part.first + l) * N + n] += static_cast<T>(sum);
      }
  }
  for (Index t = 0; log2_norm && t < d.steps; ++t) log2_norm[t] = joined_norm(norms, static_cast<std::size_t>(t));
  int power = powers.empty() ? no_exponent : *std::max_element(powers.begin(), powers.end());
  if (power == no_exponent || !exponent) power = 0;
  for (Index number = 0; ginitial && number < parts; ++number) {
    const ChannelPart<T> part(d, number);
    const auto own = static_cast<std::size_t>(number);
    if (powers[own] == no_exponent) continue;
    const Power<T> unit(powers[own] - power);
    for (Index l = 0; l < part.width; ++l)
      for (Index n = 0; n < N; ++n) ginitial[part.initial_at() + l * N + n] += unit * ends[own][static_cast<std::size_t>(n * slab + l)];
  }
  if (exponent) *exponent = power;
}

std::size_t CpuBackend::selective_scratch(DType type, const SelectiveDims& d, bool adjoint) const {
  return type == DType::f32 ? scratch_of<float>(d, adjoint) : scratch_of<double>(d, adjoint);
}

void CpuBackend::selective(DType type, const SelectiveDims& d, const void* dt, const void* a, const void* x, const void* b, const void* c,
                           const void* initial, void* y, void* states, void* final_state, std::stop_token stop) {
  with_real(type, [&](auto zero) {
    using T = decltype(zero);
    cpu::selective(d, as<T>(dt), as<T>(a), as<T>(x), as<T>(b), as<T>(c), as<T>(initial), as<T>(y), as<T>(states), as<T>(final_state), stop);
  });
}
void CpuBackend::selective_adjoint(DType type, const SelectiveDims& d, const void* dt, const void* a, const void* x, const void* b,
                                   const void* c, const void* initial, const void* gy, const void* gstates, const void* carried, void* gdt,
                                   void* ga, void* gx, void* gb, void* gc, void* ginitial, double* log2_norm, int* exponent,
                                   std::stop_token stop) {
  with_real(type, [&](auto zero) {
    using T = decltype(zero);
    cpu::selective_adjoint(d, as<T>(dt), as<T>(a), as<T>(x), as<T>(b), as<T>(c), as<T>(initial), as<T>(gy), as<T>(gstates), as<T>(carried),
                           as<T>(gdt), as<T>(ga), as<T>(gx), as<T>(gb), as<T>(gc), as<T>(ginitial), log2_norm, exponent, stop);
  });
}

}  // namespace reclab::cpu
