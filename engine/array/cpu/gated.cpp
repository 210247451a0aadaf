// SPDX-License-Identifier: GPL-3.0-or-later
// Within a chunk of 16 steps every pair of steps is met by itself, its decay as the running product of the factors of the steps between: no
// factor is above 1, nothing is divided and no two sums are subtracted, so a decay may be as near 0 or 1 as the type has numbers, and an
// underflow is 0. From chunk to chunk goes the memory. All matrices of a chunk are dense products in registers, and stay in the first
// caches; a chunk of 16 costs less work than a longer one, and as many rows are enough to keep the registers busy. Step by step, a piece of
// the memory stays in registers for as many steps, and each of them decays it, writes and reads: nothing is a product over pairs of steps
// or over a chunk.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "array/cpu/cpu_backend.h"
#include "array/cpu/gated_tiles.h"
#include "array/cpu/processor/exponents.h"
#include "array/cpu/processor/threads.h"
#include "array/demand.h"

namespace reclab::cpu {
namespace {

using namespace tiles;

constexpr Index kept_every = 16;  // chunks between two memories that the way back starts from
constexpr Index value_slab = 64;  // columns of the memory that one thread takes through all of time

/// Writes the outputs of all heads for the chunk from step t on, if they are not written yet.
template <class T>
void write_reads(const PaddedRows<T>& of, Index t, const T* read, const T* made, T* o) {
  if (made != read) return;
  const Index first = of.read_from(t);
  for (Index r = 0; r < std::min(chunk, of.d.steps - first); ++r)
    std::copy_n(read + r * of.value, of.values, o + of.row(first + r) * of.d.value + of.first_value);
}
/// For a memory that is read before its update: step 0 reads the initial one, with the roundings with which any other step reads the one
/// before it.
template <class T>
void write_first_read(const PaddedRows<T>& of, const T* memory, T* read, T* o) {
  if (of.d.read == ReadOrder::after) return;
  read_memory(of.d.key, of.value, of.q_in + of.head * of.d.key, memory, read);
  std::copy_n(read, of.values, o + of.head * of.d.value + of.first_value);
}
template <class T>
void gated_steps(const GatedDims& d, const T* q, const T* k, const T* v, const T* log_decay, const T* initial, T* o, T* final_state,
                 Index h, Index from, Index n, const std::stop_token& stop) {
  const Index key = padded<T>(d.key), value = padded<T>(n);
  Room<T> room(PaddedRows<T>::size(key, value) + key * value + chunk * value);
  PaddedRows<T> rows(d, q, k, v, log_decay, h, from, n, room);
  T *memory = room.take(key * value), *read = room.take(chunk * value);
  pad(initial ? initial + h * d.key * d.value + from : nullptr, d.key, n, d.value, memory, key, value);
  write_first_read(rows, memory, read, o);
  for (Index t = 0; t < d.steps; t += chunk) {
    poll(stop);
    rows.view(t);
    const RowSpan<T> to = rows.outputs(o, t, read);
    take_steps<Onto::rows, true>(Steps<T>{key, value, rows.e, rows.keys, rows.inputs, rows.queries, memory, to},
                                 [&](Index i, Index height) { rows.ask(t + chunk, o, i, height, key); });
    write_reads(rows, t, read, to.data, o);
  }
  for (Index i = 0; final_state && i < d.key; ++i) std::copy_n(memory + i * value, n, final_state + (h * d.key + i) * d.value + from);
}

template <class T>
void gated(const GatedDims& d, const T* q, const T* k, const T* v, const T* log_decay, const T* initial, T* o, T* final_state,
           const std::stop_token& stop) {
  RECLAB_DEMAND(d.method == ScanMethod::chunks || (d.method == ScanMethod::steps && log_decay));
  const Index slabs = std::max<Index>(1, d.value / value_slab);
  parallel(d.heads * slabs, [&](Index task) {
    const Index h = task / slabs, from = task % slabs * d.value / slabs, n = (task % slabs + 1) * d.value / slabs - from;
    if (d.method == ScanMethod::steps) return gated_steps(d, q, k, v, log_decay, initial, o, final_state, h, from, n, stop);
    const Index key = padded<T>(d.key), value = padded<T>(n);
    Room<T> room(PaddedRows<T>::size(key, value) + (log_decay ? 1 : 3) * key * value + chunk * value + chunk * chunk);
    PaddedRows<T> rows(d, q, k, v, log_decay, h, from, n, room);
    T *memory = room.take(key * value), *low = room.take(log_decay ? 0 : key * value), *written = room.take(log_decay ? 0 : key * value),
      *read = room.take(chunk * value), *scores = room.take(chunk * chunk);
    pad(initial ? initial + h * d.key * d.value + from : nullptr, d.key, n, d.value, memory, key, value);
    if (!log_decay) std::fill(low, low + key * value, T(0));
    write_first_read(rows, memory, read, o);
    for (Index t = 0; t < d.steps; t += chunk) {
      poll(stop);
      rows.view(t);
      rows.decay();
      const RowSpan<T> to = rows.outputs(o, t, read);
      const RowSpan<const T> left = rows.decayed_queries(), right = rows.decayed_keys();
      scores_of<T>(key, rows.queries, rows.keys, rows.decays(), scores);
      multiply<Onto::zero, Half::both, T>(chunk, value, {key, left.data, left.ld, 1, memory, value, to.data, to.ld});
      multiply<Onto::c, Half::lower, T>(chunk, value, {chunk, scores, chunk, 1, rows.inputs.data, rows.inputs.ld, to.data, to.ld});
      const Product<T> more{chunk, right.data, 1, right.ld, rows.inputs.data, rows.inputs.ld, memory, value, rows.whole};
      if (log_decay)
        multiply<Onto::rows>(key, value, more, [&](Index i, Index height) { rows.ask(t + chunk, o, i, height, key); });
      else
        add_exactly(key, value, more, low, written);
      write_reads(rows, t, read, to.data, o);
    }
    for (Index i = 0; final_state && i < d.key; ++i) std::copy_n(memory + i * value, n, final_state + (h * d.key + i) * d.value + from);
  });
}

/// The keys whose row of an adjoint [value, key], in units of 2^powers, would not stand in plain units by a wide margin once it is decayed
/// by `whole`; with `empty` rows of zeros too, for the values that are added on the way.
template <class T>
std::vector<Index> far_keys(const T* columns, Index keys, Index key, Index value, const T* whole, const std::vector<int>& powers,
                            bool empty) {
  std::vector<Index> far;
  for (Index i = 0; i < key; i += lanes<T>) {
    Vector<T> most{};
    for (Index j = 0; j < value; ++j) {
      const Vector<T> entry = at(columns + j * key + i), size = entry < T(0) ? -entry : entry;
      most = size > most ? size : most;
    }
    for (Index l = i; l < std::min(i + lanes<T>, keys); ++l) {
      const T size = most[l - i];
      const bool fades = !(whole[l] > T(1e-9));
      if (powers[static_cast<std::size_t>(l)] != 0 || (size == T(0) ? empty && fades : fades || !(size > T(0x1p-64)))) far.push_back(l);
    }
  }
  return far;
}
/// fresh = fresh + e^log old 2^power, in units of its largest entry, which are returned as the new power.
template <class T>
int add_decayed(Index value, const T* old, double log, int power, T* fresh) {
  const int own = exponent_of(value, old), more = exponent_of(value, fresh);
  const double none = -std::numeric_limits<double>::infinity(),
               standing = own == no_exponent ? none : own + power + log * 1.4426950408889634;
  const double largest = std::max(standing, more == no_exponent ? none : more);
  // Near 1, and for zeros and entries that are not finite, the unit is 1.
  const int unit = std::abs(largest) > 32.0 && std::abs(largest) < 1e8 ? static_cast<int>(std::ceil(largest)) : 0;
  const double change = log + (power - unit) * 0.6931471805599453;
  const double factor = std::exp(change);
  for (Index j = 0; j < value; ++j) {
    const auto before = static_cast<double>(old[j]);
    const double size = std::abs(change) < 600.0 ? factor * before
                        : before == 0.0          ? 0.0
                                                 : std::copysign(std::exp(change + std::log(std::abs(before))), before);
    fresh[j] = static_cast<T>(size) + std::ldexp(fresh[j], -unit);
  }
  return unit;
}
bool are_plain(const std::vector<int>& powers) {
  return std::all_of(powers.begin(), powers.end(), [](int power) { return power == 0; });
}

/// The adjoint of a head's memory, as [key, value] and as [value, key], row i of it in units of 2^powers[i].
template <class T>
struct MemoryAdjoint {
  Index key, value;
  T *rows, *columns, *saved, *low_rows, *low_columns;
  std::vector<int> powers;
  bool plain;

  MemoryAdjoint(Index keys, Index values, int power, Room<T>& room)
      : key(keys),
        value(values),
        rows(room.take(keys * values)),
        columns(room.take(keys * values)),
        saved(room.take((keys + 1) * values)),
        low_rows(room.take(keys * values)),
        low_columns(room.take(keys * values)),
        powers(static_cast<std::size_t>(keys), power),
        plain(power == 0) {
    std::fill(low_rows, low_rows + keys * values, T(0));
    std::fill(low_columns, low_columns + keys * values, T(0));
  }

  /// = the decays of the chunk from step t on times itself, and left^T go in plain units. A row that would not stand in plain units by a
  /// wide margin is decayed in logarithms, and its unit becomes that of its largest entry.
  void pass(const PaddedRows<T>& of, Index t, const T* go) {
    const T* left = of.decayed_queries().data;
    const Product<T> to_rows{chunk, left, 1, key, go, value, rows, value, of.whole},
        to_columns{chunk, go, 1, value, left, key, columns, key, of.whole};
    if (!of.a_in) {
      add_exactly(key, value, to_rows, low_rows, saved);
      add_exactly(value, key, to_columns, low_columns, saved);
      return;
    }
    const std::vector<Index> far = far_keys(columns, of.d.key, key, value, of.whole, powers, false);
    for (std::size_t f = 0; f < far.size(); ++f) std::copy_n(rows + far[f] * value, value, saved + static_cast<Index>(f) * value);
    multiply<Onto::rows>(key, value, to_rows);
    multiply<Onto::columns>(value, key, to_columns);
    T* fresh = saved + key * value;
    for (std::size_t f = 0; f < far.size(); ++f) {
      const Index i = far[f];
      std::fill(fresh, fresh + value, T(0));
      for (Index r = 0; r < chunk; ++r)
        for (Index j = 0; j < value; ++j) fresh[j] += left[r * key + i] * go[r * value + j];
      int& power = powers[static_cast<std::size_t>(i)];
      power = add_decayed(value, saved + static_cast<Index>(f) * value, of.log_whole(t, i), power, fresh);
      for (Index j = 0; j < value; ++j) rows[i * value + j] = columns[j * key + i] = fresh[j];
    }
    plain = are_plain(powers);
  }
  /// Both in plain units.
  void unscale(T* to_rows, T* to_columns) const {
    for (Index i = 0; i < key; ++i)
      for (Index j = 0; j < value; ++j)
        to_rows[i * value + j] = to_columns[j * key + i] = std::ldexp(rows[i * value + j], powers[static_cast<std::size_t>(i)]);
  }
};

/// A chunk of steps of some rows and vectors of columns of the memory [value, key], there and back.
template <class T>
struct StepsAdjoint {
  const PaddedRows<T>& of;
  const T *go, *memory;  // before the chunk
  T* lambda;             // the adjoint of the memory: after the chunk, and once it is done of that before it
  T *gq, *gk, *through;  // [chunk, key]; through: the adjoint of the logarithms of the decays
  T* gv;                 // of the rows, their sum still to be taken over the entries of a vector: [chunk, height] vectors
  T* decayed;            // room for as many pieces of the memory
};
template <class T, int height, int width>
void adjoint_tile(const StepsAdjoint<T>& p, Index j0, Index i0) {
  using V = Vector<T>;
  const PaddedRows<T>& of = p.of;
  const Index key = of.key, value = of.value;
  V m[height][width];
  const auto all = [](const auto& f)
                       RECLAB_INLINE { each<height>([&](auto j) RECLAB_INLINE { each<width>([&](auto i) RECLAB_INLINE { f(j, i); }); }); };
  all([&](auto j, auto i) RECLAB_INLINE { m[j][i] = at(p.memory + (j0 + j) * key + i0 + i * lanes<T>); });
  for (Index t = 0; t < chunk; ++t) {
    const Index row = t * key + i0;
    T* decayed = p.decayed + t * height * width * lanes<T>;
    V read[width], factor[width], k[width];
    each<width>([&](auto i) RECLAB_INLINE {
      read[i] = j0 ? at(p.gq + row + i * lanes<T>) : V{};
      factor[i] = at(of.e + row + i * lanes<T>);
      k[i] = at(of.k + row + i * lanes<T>);
    });
    all([&](auto j, auto i) RECLAB_INLINE {
      const V kept = factor[i] * m[j][i];
      at(decayed + (j * width + i) * lanes<T>) = kept;
      m[j][i] = kept + of.v[t * value + j0 + j] * k[i];
      read[i] += p.go[t * value + j0 + j] * m[j][i];
    });
    each<width>([&](auto i) RECLAB_INLINE { at(p.gq + row + i * lanes<T>) = read[i]; });
  }
  all([&](auto j, auto i) RECLAB_INLINE { m[j][i] = at(p.lambda + (j0 + j) * key + i0 + i * lanes<T>); });
  for (Index t = chunk; t-- > 0;) {
    const Index row = t * key + i0;
    const T* decayed = p.decayed + t * height * width * lanes<T>;
    T* gv = p.gv + t * height * lanes<T>;
    V gk[width], through[width];
    each<width>([&](auto i) RECLAB_INLINE {
      gk[i] = j0 ? at(p.gk + row + i * lanes<T>) : V{};
      through[i] = j0 ? at(p.through + row + i * lanes<T>) : V{};
    });
    each<height>([&](auto j) RECLAB_INLINE {
      V sum = i0 ? at(gv + j * lanes<T>) : V{};
      each<width>([&](auto i) RECLAB_INLINE {
        const Index entry = row + i * lanes<T>;
        m[j][i] += p.go[t * value + j0 + j] * at(of.q + entry);
        gk[i] += of.v[t * value + j0 + j] * m[j][i];
        sum += at(of.k + entry) * m[j][i];
        through[i] += at(decayed + (j * width + i) * lanes<T>) * m[j][i];
        m[j][i] *= at(of.e + entry);
      });
      at(gv + j * lanes<T>) = sum;
    });
    each<width>([&](auto i) RECLAB_INLINE {
      at(p.gk + row + i * lanes<T>) = gk[i];
      at(p.through + row + i * lanes<T>) = through[i];
    });
  }
  all([&](auto j, auto i) RECLAB_INLINE { at(p.lambda + (j0 + j) * key + i0 + i * lanes<T>) = m[j][i]; });
}

/// Adds rows [chunk, width] of a head's chunk from step t on to those of all heads, of `size` entries each.
template <class T>
void add_rows(const PaddedRows<T>& of, Index t, const T* rows, Index width, Index size, T* to) {
  for (Index r = 0; to && r < std::min(chunk, of.d.steps - t); ++r)
    for (Index i = 0; i < size; ++i) to[of.row(t + r) * size + i] += rows[r * width + i];
}
/// The same for the decays' logarithms, where each key dimension has its own or all have one.
template <class T>
void add_decays(const PaddedRows<T>& of, Index t, const T* rows, T* to) {
  if (of.d.decays == of.d.key) return add_rows(of, t, rows, of.key, of.d.key, to);
  for (Index r = 0; to && r < std::min(chunk, of.d.steps - t); ++r) {
    double sum = 0.0;
    for (Index i = 0; i < of.d.key; ++i) sum += static_cast<double>(rows[r * of.key + i]);
    to[of.row(t + r)] += static_cast<T>(sum);
  }
}

/// Of head h; gfinal comes in units of 2^power. end(i, row, power) gets the rows of the initial memory's adjoint.
template <class T, class End>
void gated_steps_adjoint(const GatedDims& d, const T* q, const T* k, const T* v, const T* log_decay, const T* initial, const T* go,
                         const T* gfinal, int power, T* gq, T* gk, T* gv, T* glog_decay, Index h, const End& end,
                         const std::stop_token& stop) {
  constexpr int height = most_vectors == 4 ? 8 : 4;
  const Index key = padded<T>(d.key), value = padded<T>(d.value), size = key * value, chunks = (d.steps + chunk - 1) / chunk,
              all = d.key * d.value;
  const Index segments = std::max<Index>(1, (chunks + kept_every - 1) / kept_every);
  Room<T> room(PaddedRows<T>::size(key, value) + (segments + kept_every + 2) * size + value +
               chunk * (3 * key + 2 * value + 3 * height * lanes<T>));
  PaddedRows<T> rows(d, q, k, v, log_decay, h, 0, d.value, room);
  // Memories before chunks, [value, key]: each segment's first, then all of one segment.
  T *kept = room.take(segments * size), *memories = room.take(kept_every * size);
  const auto write = [&](Index c, const T* from, T* to) {
    rows.read(c * chunk, false);
    if (from != to) std::copy_n(from, size, to);
    take_steps<Onto::columns, false>(Steps<T>{value, key, rows.e, rows.inputs, rows.keys, {}, to, {}});
  };
  pad_transposed(initial ? initial + h * all : nullptr, d.key, d.value, kept, value, key);
  for (Index s = 1; s < segments; ++s)
    for (Index c = (s - 1) * kept_every; c < s * kept_every; ++c) {
      poll(stop);
      write(c, kept + (c % kept_every ? s : s - 1) * size, kept + s * size);
    }

  std::vector<int> powers(static_cast<std::size_t>(key), power);
  T *lambda = room.take(size), *saved = room.take(size), *fresh = room.take(value), *g = room.take(chunk * value),
    *own_gq = room.take(chunk * key), *own_gk = room.take(chunk * key), *through = room.take(chunk * key),
    *own_gv = room.take(chunk * value), *partial = room.take(chunk * height * lanes<T>),
    *decayed = room.take(2 * chunk * height * lanes<T>);
  pad_transposed(gfinal ? gfinal + h * all : nullptr, d.key, d.value, lambda, value, key);
  for (Index s = segments - 1; s >= 0; --s) {
    const Index first = s * kept_every, last = std::min(chunks, first + kept_every) - 1;
    std::copy_n(kept + s * size, size, memories);
    for (Index c = first; c < last; ++c) write(c, memories + (c - first) * size, memories + (c - first + 1) * size);
    for (Index c = last; c >= first; --c) {
      poll(stop);
      const Index t = c * chunk;
      rows.read(t, true);
      rows.fill_reads(go, t, g);
      for (Index i = 0; i < key; i += lanes<T>) {
        Vector<T> product = at(rows.e + i);
        for (Index r = 1; r < chunk; ++r) product *= at(rows.e + r * key + i);
        at(rows.whole + i) = product;
      }
      // Rows that would not stand in plain units after the chunk are updated to its end in units of their own, and through the chunk's
      // steps in plain ones.
      const std::vector<Index> far = far_keys(lambda, d.key, key, value, rows.whole, powers, true);
      for (std::size_t f = 0; f < far.size(); ++f)
        for (Index j = 0; j < value; ++j) {
          T& entry = lambda[j * key + far[f]];
          saved[static_cast<Index>(f) * value + j] = entry;
          entry = std::ldexp(entry, powers[static_cast<std::size_t>(far[f])]);
        }
      const StepsAdjoint<T> steps{rows, g, memories + (c - first) * size, lambda, own_gq, own_gk, through, partial, decayed};
      std::fill(own_gv, own_gv + chunk * value, T(0));
      for (Index j = 0; j < value; j += height) {
        Index i = 0;
        if constexpr (most_vectors == 4)
          for (; key - i >= 2 * lanes<T>; i += 2 * lanes<T>) adjoint_tile<T, height, 2>(steps, j, i);
        for (; i < key; i += lanes<T>) adjoint_tile<T, height, 1>(steps, j, i);
        for (Index r = 0; r < chunk; ++r)
          for (Index b = 0; b < height; b += 4) {
            Vector<T> four[4];
            each<4>([&](auto n) RECLAB_INLINE { four[n] = at(partial + (r * height + b + n) * lanes<T>); });
            add_four_sums<T>(four, own_gv + r * value + j + b);
          }
      }
      for (std::size_t f = 0; f < far.size(); ++f) {
        const Index i = far[f];
        T* standing = saved + static_cast<Index>(f) * value;
        int& own = powers[static_cast<std::size_t>(i)];
        double log = 0.0;  // log of the decay not yet applied to `standing`
        std::fill(fresh, fresh + value, T(0));
        const auto join = [&] {
          own = add_decayed(value, standing, log, own, fresh);
          log = 0.0;
        };
        for (Index r = std::min(chunk, d.steps - t); r-- > 0;) {
          for (Index j = 0; j < value; ++j) fresh[j] += rows.q[r * key + i] * g[r * value + j];
          const double more = rows.log_decay(t + r, i);
          // Joined before the values added since then decay below rounding.
          if (log + more < -16.0) {
            join();
            std::copy_n(fresh, value, standing);
            std::fill(fresh, fresh + value, T(0));
          }
          log += more;
          for (Index j = 0; j < value; ++j) fresh[j] *= rows.e[r * key + i];
        }
        join();
        for (Index j = 0; j < value; ++j) lambda[j * key + i] = fresh[j];
      }
      add_rows(rows, rows.read_from(t), own_gq, key, d.key, gq);
      add_rows(rows, t, own_gk, key, d.key, gk);
      add_rows(rows, t, own_gv, value, d.value, gv);
      add_decays(rows, t, through, glog_decay);
    }
  }
  for (Index i = 0; i < d.key; ++i) {
    for (Index j = 0; j < value; ++j) fresh[j] = lambda[j * key + i];
    end(i, fresh, powers[static_cast<std::size_t>(i)]);
  }
}

template <class T>
void gated_adjoint(const GatedDims& d, const T* q, const T* k, const T* v, const T* log_decay, const T* initial, const T* go,
                   const T* gfinal, T* gq, T* gk, T* gv, T* glog_decay, T* ginitial, int* exponent, const std::stop_token& stop) {
  const Index key = padded<T>(d.key), value = padded<T>(d.value), size = key * value, chunks = (d.steps + chunk - 1) / chunk,
              all = d.key * d.value;
  std::vector<int> powers(static_cast<std::size_t>(d.heads * d.key), no_exponent);  // of each row of the initial memory's adjoint
  Scratch<T> ends(ginitial ? static_cast<std::size_t>(d.heads * all) : 0);
  const int unit = gfinal && exponent ? *exponent : 0;
  RECLAB_DEMAND(d.method == ScanMethod::chunks || (d.method == ScanMethod::steps && log_decay));
  parallel(d.heads, [&](Index h) {
    const auto end = [&](Index i, const T* row, int power) {
      const T *first_go = go + h * d.value, *first_q = q + h * d.key;
      for (Index j = 0; d.read == ReadOrder::before && gq && initial && j < d.value; ++j)
        gq[h * d.key + i] += initial[h * all + i * d.value + j] * first_go[j];
      if (!ginitial) return;
      T* to = ends.data() + h * all + i * d.value;
      if (d.read == ReadOrder::after) {
        std::copy_n(row, d.value, to);
      } else {  // step 0 has read it too
        for (Index j = 0; j < d.value; ++j) to[j] = first_q[i] * first_go[j];
        power = add_decayed(d.value, row, 0.0, power, to);
        row = to;
      }
      if (exponent_of(d.value, row) != no_exponent) powers[static_cast<std::size_t>(h * d.key + i)] = power;
    };
    if (d.method == ScanMethod::steps)
      return gated_steps_adjoint(d, q, k, v, log_decay, initial, go, gfinal, unit, gq, gk, gv, glog_decay, h, end, stop);
    const Index segments = std::max<Index>(1, (chunks + kept_every - 1) / kept_every);
    Room<T> room(PaddedRows<T>::size(key, value) + (segments + kept_every + 9) * size + value +
                 chunk * (5 * key + 2 * value + 2 * chunk + 16 * lanes<T>));
    PaddedRows<T> rows(d, q, k, v, log_decay, h, 0, d.value, room);
    // Memories before chunks, [value, key]: each segment's first, then all of one segment.
    T *kept = room.take(segments * size), *memories = room.take(kept_every * size);
    T *low = room.take(size), *written = room.take(size);
    std::fill(low, low + size, T(0));
    const auto write = [&](Index c, const T* from, T* to) {
      rows.load(c * chunk, false);
      if (from != to) std::copy_n(from, size, to);
      const Product<T> more{chunk, rows.v, 1, value, rows.decayed_keys().data, key, to, key, rows.whole};
      if (log_decay)
        multiply<Onto::columns>(value, key, more);
      else
        add_exactly(value, key, more, low, written);
    };
    pad_transposed(initial ? initial + h * all : nullptr, d.key, d.value, kept, value, key);
    for (Index s = 1; s < segments; ++s)
      for (Index c = (s - 1) * kept_every; c < s * kept_every; ++c) {
        poll(stop);
        write(c, kept + (c % kept_every ? s : s - 1) * size, kept + s * size);
      }

    // Without decays the adjoint only grows, and is in plain units.
    MemoryAdjoint<T> adjoint(key, value, log_decay ? unit : 0, room);
    pad(gfinal ? gfinal + h * all : nullptr, d.key, d.value, d.value, adjoint.rows, key, value);
    pad_transposed(gfinal ? gfinal + h * all : nullptr, d.key, d.value, adjoint.columns, value, key);
    for (Index i = 0; !log_decay && unit && i < size; ++i) {
      adjoint.rows[i] = std::ldexp(adjoint.rows[i], unit);
      adjoint.columns[i] = std::ldexp(adjoint.columns[i], unit);
    }
    T *plain_rows = room.take(size), *plain_columns = room.take(size), *g = room.take(chunk * value), *scores = room.take(chunk * chunk),
      *gscores = room.take(chunk * chunk), *own_gq = room.take(chunk * key), *own_gk = room.take(chunk * key),
      *own_gv = room.take(chunk * value), *through = room.take(chunk * key), *gleft = room.take(chunk * key),
      *gright = room.take(chunk * key), *pairs = room.take(16 * chunk * lanes<T>);
    for (Index s = segments - 1; s >= 0; --s) {
      const Index first = s * kept_every, last = std::min(chunks, first + kept_every) - 1;
      std::copy_n(kept + s * size, size, memories);
      std::fill(low, low + size, T(0));
      for (Index c = first; c < last; ++c) write(c, memories + (c - first) * size, memories + (c - first + 1) * size);
      for (Index c = last; c >= first; --c) {
        poll(stop);
        const Index t = c * chunk;
        const T* memory = memories + (c - first) * size;
        rows.load(t, true);
        rows.fill_reads(go, t, g);
        const T *lambda = adjoint.rows, *transposed = adjoint.columns;
        if (!adjoint.plain) {
          adjoint.unscale(plain_rows, plain_columns);
          lambda = plain_rows;
          transposed = plain_columns;
        }
        const T *left = rows.decayed_queries().data, *right = rows.decayed_keys().data;
        scores_of<T>(key, rows.queries, rows.keys, rows.decays(), scores);
        scores_of<T>(value, {g, value}, rows.inputs, {}, gscores);
        multiply<Onto::zero, Half::both, T>(chunk, value, {key, right, key, 1, lambda, value, own_gv, value});
        multiply<Onto::c, Half::upper, T>(chunk, value, {chunk, scores, 1, chunk, g, value, own_gv, value});
        multiply<Onto::zero, Half::both, T>(chunk, key, {value, g, value, 1, memory, key, gleft, key});
        multiply<Onto::zero, Half::both, T>(chunk, key, {value, rows.v, value, 1, transposed, key, gright, key});
        if (log_decay) {
          // The decays' gradient: of paths from the chunk's start, of paths to its end, and of those across all of it.
          for (Index i = 0; i < key; i += lanes<T>) {
            Vector<T> across{};
            for (Index j = 0; j < value; ++j) across += at(memory + j * key + i) * at(transposed + j * key + i);
            Vector<T> sum = across * at(rows.whole + i);
            for (Index r = 0; r < chunk; ++r) {
              at(through + r * key + i) = sum;
              sum += at(right + r * key + i) * at(gright + r * key + i);
            }
            sum = Vector<T>{};
            for (Index r = chunk; r-- > 0;) {
              sum += at(left + r * key + i) * at(gleft + r * key + i);
              at(through + r * key + i) += sum;
            }
          }
          for (Index i = 0; i < chunk * key; i += lanes<T>) {
            at(own_gq + i) = at(rows.prefix + i) * at(gleft + i);
            at(own_gk + i) = at(rows.suffix + i) * at(gright + i);
          }
        } else {
          std::copy_n(gleft, chunk * key, own_gq);
          std::copy_n(gright, chunk * key, own_gk);
        }
        in_vectors<T>(key, [&](Index i, auto vectors) {
          if (log_decay)
            add_scores_adjoint<T, vectors, true>(rows.q + i, rows.k + i, rows.e + i, key, gscores, own_gq + i, own_gk + i, through + i,
                                                 pairs);
          else
            add_scores_adjoint<T, vectors, false>(rows.q + i, rows.k + i, nullptr, key, gscores, own_gq + i, own_gk + i, nullptr, nullptr);
        });
        add_rows(rows, rows.read_from(t), own_gq, key, d.key, gq);
        add_rows(rows, t, own_gk, key, d.key, gk);
        add_rows(rows, t, own_gv, value, d.value, gv);
        if (log_decay) add_decays(rows, t, through, glog_decay);
        adjoint.pass(rows, t, g);
      }
    }
    for (Index i = 0; i < d.key; ++i) end(i, adjoint.rows + i * value, adjoint.powers[static_cast<std::size_t>(i)]);
  });
  int power = powers.empty() ? no_exponent : *std::max_element(powers.begin(), powers.end());
  if (power == no_exponent || !exponent) power = 0;
  for (std::size_t i = 0; i < ends.size(); ++i)
    if (const int own = powers[i / static_cast<std::size_t>(d.value)]; own != no_exponent) ginitial[i] += std::ldexp(ends[i], own - power);
  if (exponent) *exponent = power;
}

}  // namespace

std::size_t CpuBackend::gated_scratch(DType type, const GatedDims& d, bool adjoint) const {
  std::size_t bytes = 0;
  with_real(type, [&](auto zero) {
    using T = decltype(zero);
    const Index key = padded<T>(d.key), value = padded<T>(d.value), size = key * value, chunks = (d.steps + chunk - 1) / chunk;
    const Index slabs = adjoint ? 1 : std::max<Index>(1, d.value / value_slab),
                segments = std::max<Index>(1, (chunks + kept_every - 1) / kept_every);
    const Index there = PaddedRows<T>::size(key, value) + 3 * size + chunk * value + chunk * chunk;
    const Index back = PaddedRows<T>::size(key, value) + (segments + kept_every + 9) * size + value +
                       chunk * (5 * key + 2 * value + 2 * chunk + 24 * lanes<T>);
    const Index of_thread = (adjoint ? back : there) + Line<T>::size;
    bytes =
        static_cast<std::size_t>(std::min<Index>(thread_count(), d.heads * slabs) * of_thread + (adjoint ? d.heads * d.key * d.value : 0)) *
        sizeof(T);
  });
  return bytes;
}

void CpuBackend::gated(DType type, const GatedDims& d, const void* q, const void* k, const void* v, const void* log_decay,
                       const void* initial, void* o, void* final_state, std::stop_token stop) {
  with_real(type, [&](auto zero) {
    using T = decltype(zero);
    cpu::gated(d, as<T>(q), as<T>(k), as<T>(v), as<T>(log_decay), as<T>(initial), as<T>(o), as<T>(final_state), stop);
  });
}
void CpuBackend::gated_adjoint(DType type, const GatedDims& d, const void* q, const void* k, const void* v, const void* log_decay,
                               const void* initial, const void* go, const void* gfinal, void* gq, void* gk, void* gv, void* glog_decay,
                               void* ginitial, int* exponent, std::stop_token stop) {
  with_real(type, [&](auto zero) {
    using T = decltype(zero);
    cpu::gated_adjoint(d, as<T>(q), as<T>(k), as<T>(v), as<T>(log_decay), as<T>(initial), as<T>(go), as<T>(gfinal), as<T>(gq), as<T>(gk),
                       as<T>(gv), as<T>(glog_decay), as<T>(ginitial), exponent, stop);
  });
}

}  // namespace reclab::cpu
