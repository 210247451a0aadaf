// SPDX-License-Identifier: GPL-3.0-or-later
// The outer-product memory with decays, in chunks of time (gated_chunks.h has the kernels of the way there) and step by step.
#pragma once

#include "array/cuda/gated_chunks.h"
#include "array/cuda/gather.h"
#include "array/cuda/kernel_backend.h"
#include "array/cuda/outer.h"
#include "array/cuda/reduce.h"

namespace reclab::kernel {

// ---- Kernels -----------------------------------------------------------------------------------------------------------------------

/// scores [steps, heads, chunk] = sum_i x_t[i] y_u[i], u <= t being number j of t's chunk; 0 elsewhere.
template <class T>
struct GatedScores {
  Gates<T> g;
  const T *x, *y;
  T* scores;
  Index size;
  RECLAB_HD void operator()(Index index) const {
    const Index j = index % g.chunk, h = index / g.chunk % g.d.heads, t = index / g.chunk / g.d.heads, u = t / g.chunk * g.chunk + j;
    T sum(0);
    for (Index i = 0; u <= t && i < size; ++i) sum += x[(t * g.d.heads + h) * size + i] * y[(u * g.d.heads + h) * size + i];
    scores[index] = sum;
  }
};
/// memory [heads, key, value] through chunks from <= c < to; starts [chunks, heads, key, value] get it as it was before each.
template <class T>
struct GatedPass {
  Gates<T> g;
  const T *right, *decays, *v;
  double* memory;
  T* starts;
  Index from, to;
  RECLAB_HD void operator()(Index index) const {
    const Index j = index % g.d.value, i = index / g.d.value % g.d.key, h = index / g.d.value / g.d.key,
                all = g.d.heads * g.d.key * g.d.value;
    double cell = memory[index];
    for (Index c = from; c < to; ++c) {
      starts[c * all + index] = static_cast<T>(cell);
      cell *= static_cast<double>(decays[(c * g.d.heads + h) * g.d.key + i]);
      for (Index t = c * g.chunk; t < g.end(c); ++t)
        cell += static_cast<double>(right[(t * g.d.heads + h) * g.d.key + i]) * static_cast<double>(v[(t * g.d.heads + h) * g.d.value + j]);
    }
    memory[index] = cell;
  }
};
/// o = left S + scores v, S as it was before the chunk.
template <class T>
struct GatedRead {
  Gates<T> g;
  const T *left, *starts, *scores, *v;
  T* o;
  RECLAB_HD void operator()(Index index) const {
    const Index j = index % g.d.value, row = index / g.d.value, h = row % g.d.heads, t = row / g.d.heads, first = t / g.chunk * g.chunk;
    const T* memory = starts + (t / g.chunk * g.d.heads + h) * g.d.key * g.d.value + j;
    T sum(0);
    for (Index i = 0; i < g.d.key; ++i) sum += left[row * g.d.key + i] * memory[i * g.d.value];
    for (Index u = first; u <= t; ++u) sum += scores[row * g.chunk + u - first] * v[(u * g.d.heads + h) * g.d.value + j];
    o[index] = sum;
  }
};
/// state 2^power = e^log state 2^power, log <= 0.
RECLAB_HD inline void decay_in_units(double log, double& state, int& power) {
  // Far below the range of an exponential, the power takes the whole steps of two.
  const int halvings = log < -16.0 && log > -1e8 ? static_cast<int>(log * 1.4426950408889634) : 0;
  state *= fn::exp(log - halvings * 0.6931471805599453);
  power = is_zero(state) ? 0 : power + halvings;
}
/// The memory's adjoint back through chunks to > c >= from: lambda 2^power after each chunk, in plain units, into ends.
template <class T>
struct GatedPassAdjoint {
  Gates<T> g;
  const T *left, *go;
  double* lambda;
  int* powers;
  T* ends;
  Index from, to;
  RECLAB_HD void operator()(Index index) const {
    const Index j = index % g.d.value, i = index / g.d.value % g.d.key, h = index / g.d.value / g.d.key,
                all = g.d.heads * g.d.key * g.d.value;
    double state = lambda[index];
    int power = powers[index];
    for (Index c = to - 1; c >= from; --c) {
      ends[c * all + index] = static_cast<T>(power ? scaled(state, power) : state);
      decay_in_units(g.template between<double>(c * g.chunk - 1, g.end(c) - 1, h, i), state, power);
      double fresh = 0.0;
      for (Index t = c * g.chunk; t < g.end(c); ++t)
        fresh +=
            static_cast<double>(left[(t * g.d.heads + h) * g.d.key + i]) * static_cast<double>(go[(t * g.d.heads + h) * g.d.value + j]);
      add_in_units(fresh, state, power);
    }
    lambda[index] = state;
    powers[index] = power;
  }
};
/// x += lambda 2^(exponents - power).
template <class T>
struct AddInUnits {
  const double* lambda;
  const int* exponents;
  T* x;
  int power;
  RECLAB_HD void operator()(Index i) const { x[i] += static_cast<T>(scaled(lambda[i], exponents[i] - power)); }
};
/// of_query: gx = q's adjoint, from the memory before the chunk and from the keys up to it; else that of k, from the adjoint of the memory
/// after the chunk and from the queries from it on. `through`: its part by way of the memory, times q or k.
template <class T>
struct GatedKeyAdjoint {
  Gates<T> g;
  const T *x, *y, *values, *memories, *gscores;
  T *gx, *through;
  bool of_query;
  RECLAB_HD void operator()(Index index) const {
    const Index i = index % g.d.key, row = index / g.d.key, h = row % g.d.heads, t = row / g.d.heads, c = t / g.chunk, first = c * g.chunk;
    const T* memory = memories + ((c * g.d.heads + h) * g.d.key + i) * g.d.value;
    T sum(0);
    for (Index j = 0; j < g.d.value; ++j) sum += memory[j] * values[row * g.d.value + j];
    sum *= of_query ? g.since_start(t, h, i) : g.until_end(t, h, i);
    through[index] = x[index] * sum;
    for (Index u = of_query ? first : t; u < (of_query ? t + 1 : g.end(c)); ++u) {
      const Index late = of_query ? t : u, early = of_query ? u : t;
      sum += gscores[(late * g.d.heads + h) * g.chunk + early - first] *
             (y[(u * g.d.heads + h) * g.d.key + i] * fn::exp(g.between(early, late, h, i)));
    }
    if (gx) gx[index] += sum;
  }
};
template <class T>
struct GatedValueAdjoint {
  Gates<T> g;
  const T *right, *ends, *scores, *go;
  T* gv;
  RECLAB_HD void operator()(Index index) const {
    const Index j = index % g.d.value, row = index / g.d.value, h = row % g.d.heads, t = row / g.d.heads, c = t / g.chunk;
    const T* lambda = ends + (c * g.d.heads + h) * g.d.key * g.d.value + j;
    T sum(0);
    for (Index i = 0; i < g.d.key; ++i) sum += right[row * g.d.key + i] * lambda[i * g.d.value];
    for (Index u = t; u < g.end(c); ++u)
      sum += scores[(u * g.d.heads + h) * g.chunk + t - c * g.chunk] * go[(u * g.d.heads + h) * g.d.value + j];
    gv[index] += sum;
  }
};
/// The adjoint of a decay's logarithm: all that passes through that step, from the steps before it or the memory to the steps from it on.
template <class T>
struct GatedDecayAdjoint {
  Gates<T> g;
  const T *q, *k, *gscores, *starts, *ends, *through_q, *through_k;
  T* ga;
  RECLAB_HD void operator()(Index index) const {
    const Index row = index / g.d.decays, h = row % g.d.heads, t = row / g.d.heads, c = t / g.chunk, first = c * g.chunk;
    const bool shared = g.d.decays == 1;
    double sum = 0.0;
    for (Index i = shared ? 0 : index % g.d.decays; i < (shared ? g.d.key : index % g.d.decays + 1); ++i) {
      const Index cell = ((c * g.d.heads + h) * g.d.key + i) * g.d.value;
      double across = 0.0;
      for (Index j = 0; j < g.d.value; ++j) across += static_cast<double>(starts[cell + j]) * static_cast<double>(ends[cell + j]);
      sum += across * static_cast<double>(fn::exp(g.between(first - 1, g.end(c) - 1, h, i)));
      for (Index u = first; u < t; ++u) sum += static_cast<double>(through_k[(u * g.d.heads + h) * g.d.key + i]);
      for (Index u = t; u < g.end(c); ++u) {
        const Index late = u * g.d.heads + h;
        sum += static_cast<double>(through_q[late * g.d.key + i]);
        for (Index l = first; l < t; ++l)
          sum += static_cast<double>(gscores[late * g.chunk + l - first] * q[late * g.d.key + i] *
                                     (k[(l * g.d.heads + h) * g.d.key + i] * fn::exp(g.between(l, u, h, i))));
      }
    }
    ga[index] += static_cast<T>(sum);
  }
};

/// The same memory step by step, for steps in order: M = decay M + x_t y_t^T, out_t = (or +=) sum_r M[r, p] z_t[r], a thread a column (h,
/// p). Backward in time a written product decays after it was read. `decayed` (may be null) gets decay M of steps from <= t < to.
template <class T>
struct GatedSteps {
  Gates<T> g;
  const T *x, *y, *z;
  T *out, *decayed;  // may be null
  double* memory;    // [heads, rows, columns]
  Index rows, columns, from, to;
  bool keys_are_rows, backward, accumulate;
  RECLAB_HD double decay(Index t, Index h, Index r, Index p) const {
    return static_cast<double>(fn::exp(g.between(t - 1, t, h, keys_are_rows ? r : p)));
  }
  RECLAB_HD void operator()(Index index) const {
    const Index h = index / columns, p = index % columns;
    double* column = memory + h * rows * columns + p;
    for (Index step = from; step < to; ++step) {
      const Index t = backward ? g.d.steps - 1 - step : step, at = t * g.d.heads + h;
      const auto factor = static_cast<double>(y[at * columns + p]);
      double sum = 0.0;
      for (Index r = 0; r < rows; ++r) {
        double cell = column[r * columns];
        if (!backward) cell *= decay(t, h, r, p);
        if (decayed) decayed[(((step - from) * g.d.heads + h) * rows + r) * columns + p] = static_cast<T>(cell);
        cell += static_cast<double>(x[at * rows + r]) * factor;
        if (z) sum += cell * static_cast<double>(z[at * rows + r]);
        column[r * columns] = backward ? cell * decay(t, h, r, p) : cell;
      }
      if (!out) continue;
      T& to_out = out[at * columns + p];
      to_out = accumulate ? to_out + static_cast<T>(sum) : static_cast<T>(sum);
    }
  }
};
/// The adjoint lambda 2^powers [heads, value, key] of the memory back through steps to > t >= from: that of the keys, and `through` [to -
/// from, heads, key] the gradient through the decays, whose memories are in `decayed`. A thread a key dimension of a head.
template <class T>
struct GatedStepsAdjoint {
  Gates<T> g;
  const T *q, *v, *go, *decayed;
  double* lambda;
  int* powers;
  T* gk;  // may be null, as may decayed
  double* through;
  Index from, to;
  RECLAB_HD void operator()(Index index) const {
    const Index i = index % g.d.key, h = index / g.d.key;
    for (Index t = to - 1; t >= from; --t) {
      const Index row = t * g.d.heads + h;
      const auto query = static_cast<double>(q[row * g.d.key + i]), log = g.template between<double>(t - 1, t, h, i);
      double sum = 0.0, across = 0.0;
      for (Index j = 0; j < g.d.value; ++j) {
        const Index cell = (h * g.d.value + j) * g.d.key + i;
        double state = lambda[cell];
        int power = powers[cell];
        add_in_units(query * static_cast<double>(go[row * g.d.value + j]), state, power);
        const double plain = power ? scaled(state, power) : state;
        sum += plain * static_cast<double>(v[row * g.d.value + j]);
        if (decayed) across += plain * static_cast<double>(decayed[(((t - from) * g.d.heads + h) * g.d.value + j) * g.d.key + i]);
        decay_in_units(log, state, power);
        lambda[cell] = state;
        powers[cell] = power;
      }
      if (gk) gk[row * g.d.key + i] += static_cast<T>(sum);
      if (decayed) through[((t - from) * g.d.heads + h) * g.d.key + i] = across;
    }
  }
};
/// x [heads, key, value] += lambda [heads, value, key] 2^(exponents - power).
template <class T>
struct AddTransposedInUnits {
  const double* lambda;
  const int* exponents;
  T* x;
  Index key, value;
  int power;
  RECLAB_HD void operator()(Index index) const {
    const Index j = index % value, i = index / value % key, cell = (index / value / key * value + j) * key + i;
    x[index] += static_cast<T>(scaled(lambda[cell], exponents[cell] - power));
  }
};

/// The read o_0 of the initial memory by step 0, where the memory is read before its update.
template <class T>
struct FirstRead {
  const T *q, *initial;
  T* o;
  Index key, value;
  RECLAB_HD void operator()(Index index) const {
    const Index h = index / value, j = index % value;
    T sum(0);
    for (Index i = 0; initial && i < key; ++i) sum += q[h * key + i] * initial[(h * key + i) * value + j];
    o[index] = sum;
  }
};
/// The adjoint of q_0.
template <class T>
struct FirstReadQuery {
  const T *go, *initial;
  T* gq;
  Index key, value;
  RECLAB_HD void operator()(Index index) const {
    T sum(0);
    for (Index j = 0; j < value; ++j) sum += initial[index * value + j] * go[index / key * value + j];
    gq[index] += sum;
  }
};
/// Adds the share of the first read to the adjoint lambda 2^powers of the initial memory, [heads, key, value] or transposed.
template <class T>
struct FirstReadMemory {
  const T *q, *go;
  double* lambda;
  int* powers;
  Index key, value;
  bool transposed;
  RECLAB_HD void operator()(Index index) const {
    const Index j = index % value, i = index / value % key, h = index / value / key, cell = transposed ? (h * value + j) * key + i : index;
    double state = lambda[cell];
    int power = powers[cell];
    add_in_units(static_cast<double>(q[h * key + i]) * static_cast<double>(go[h * value + j]), state, power);
    lambda[cell] = state;
    powers[cell] = power;
  }
};

// ---- Launches ----------------------------------------------------------------------------------------------------------------------

/// The memory before each chunk and, in `memory`, after the last.
template <class Machine>
template <class T>
void KernelBackend<Machine>::gated_memories(const Gates<T>& g, const GatedRows<T>& rows, const T* v, const T* initial, double* memory,
                                            T* starts, const std::stop_token& stop) {
  const Index size = g.d.heads * g.d.key * g.d.value;
  start_memory(initial, memory, size);
  for (Index from = 0; from < g.chunks(); from += stretch / g.chunk) {
    poll(stop, from * g.chunk);
    machine_.each(size, GatedPass<T>{g, rows.right, rows.decays, v, memory, starts, from, std::min(g.chunks(), from + stretch / g.chunk)});
  }
}

template <class Machine>
template <class T>
void KernelBackend<Machine>::gated_steps(GatedSteps<T> f, const std::stop_token& stop) {
  for (f.from = 0; f.from < f.g.d.steps; f.from = f.to) {
    poll(stop, f.from);
    f.to = std::min(f.g.d.steps, f.from + stretch);
    machine_.each(f.g.d.heads * f.columns, f);
  }
}
/// x [steps, rows] one step earlier, zeros in the last one.
template <class Machine>
template <class T>
void KernelBackend<Machine>::step_earlier(const T* x, Index steps, Index rows, T* to) {
  const Index later = (steps - 1) * rows;
  if (later) copy(to, x + rows, static_cast<std::size_t>(later) * sizeof(T));
  machine_.zero(to + later, static_cast<std::size_t>(rows) * sizeof(T));
}
/// Returns the power of two that ginitial is in units of. first_q and first_go: query and output adjoint of step 0 at the initial memory,
/// where they are not q's and go's.
template <class Machine>
template <class T>
int KernelBackend<Machine>::gated_steps_adjoint(const Gates<T>& g, const T* q, const T* k, const T* v, const T* initial, const T* go,
                                                const T* gfinal, int unit, T* gq, T* gk, T* gv, T* ga, T* ginitial, bool in_units,
                                                const T* first_q, const T* first_go, const std::stop_token& stop) {
  const GatedDims& d = g.d;
  const OuterDims dims{d.steps, d.heads, d.key, d.value};
  const Index size = d.heads * d.key * d.value, rows = d.heads * d.key;
  // The memories before every so many steps, from which those of the steps between are made again.
  const Index block = std::min(stretch, std::max<Index>(1, static_cast<Index>(std::sqrt(static_cast<double>(d.steps))))),
              blocks = (d.steps + block - 1) / block;
  Scratch<double> memory(machine_, size), starts(machine_, ga ? blocks * size : 0), through(machine_, ga ? block * rows : 0);
  Scratch<T> decayed(machine_, ga ? block * size : 0);
  GatedSteps<T> there{g, v, k, go, gq, nullptr, memory.data, d.value, d.key, 0, 0, false, false, true};
  start_transposed(dims, initial, memory.data);
  for (Index from = 0; (gq || ga) && from < d.steps; from += block) {
    poll(stop, from);
    if (ga) machine_.each(size, Convert<double, double>{memory.data, starts.data + from / block * size});
    there.from = from;
    there.to = std::min(d.steps, from + block);
    machine_.each(rows, there);
  }
  if (gv) {
    start_memory(gfinal, memory.data, size);
    if (unit) machine_.each(size, ScaleEach<double>{memory.data, unit});
    gated_steps(GatedSteps<T>{g, q, go, k, gv, nullptr, memory.data, d.key, d.value, 0, 0, true, true, true}, stop);
  }
  if (!gk && !ga && !ginitial) return 0;
  Scratch<double> lambda(machine_, size);
  Scratch<int> powers(machine_, size);
  start_transposed(dims, gfinal, lambda.data);
  machine_.each(size, Fill<int>{powers.data, unit});
  there.out = nullptr;
  there.z = nullptr;
  there.decayed = decayed.data;
  for (Index b = blocks; b-- > 0;) {
    poll(stop, b + 1);
    there.from = b * block;
    there.to = std::min(d.steps, there.from + block);
    if (ga) {
      machine_.each(size, Convert<double, double>{starts.data + b * size, memory.data});
      machine_.each(rows, there);
    }
    machine_.each(rows, GatedStepsAdjoint<T>{g, q, v, go, decayed.data, lambda.data, powers.data, gk, through.data, there.from, there.to});
    const Index length = d.key / d.decays;
    if (ga)
      reduce(SumTerm<double>{through.data, length, 1}, (there.to - there.from) * d.heads * d.decays, length,
             ga + there.from * d.heads * d.decays, 1.0, true);
  }
  if (!ginitial) return 0;
  if (first_q) machine_.each(size, FirstReadMemory<T>{first_q, first_go, lambda.data, powers.data, d.key, d.value, true});
  const int power = in_units ? common_unit(lambda.data, powers.data, size) : 0;
  machine_.each(size, AddTransposedInUnits<T>{lambda.data, powers.data, ginitial, d.key, d.value, power});
  return power;
}
/// The unit of x 2^exponents: that of its largest entry, 1 near 1.
template <class Machine>
int KernelBackend<Machine>::common_unit(const double* x, const int* exponents, Index n) {
  if (n == 0) return 0;
  const int common = static_cast<int>(magnitudes_of(x, exponents, n, n)[0].exponent);
  return common != no_exponent && common != infinite_exponent && std::abs(common) > 32 ? common : 0;
}

template <class Machine>
void KernelBackend<Machine>::gated(DType type, const GatedDims& d, const void* q, const void* k, const void* v, const void* log_decay,
                                   const void* initial, void* o, void* final_state, std::stop_token stop) {
  with_real(type, [&](auto zero) {
    using T = decltype(zero);
    const Gates<T> g{d, as<T>(log_decay)};
    const Index keys = d.steps * d.heads * d.key, size = d.heads * d.key * d.value;
    if (d.read == ReadOrder::before) {
      const Index row = d.heads * d.value, later = (d.steps - 1) * row;
      Scratch<T> next_q(machine_, keys), next_o(machine_, d.steps * row);
      step_earlier(as<T>(q), d.steps, d.heads * d.key, next_q.data);
      GatedDims after = d;
      after.read = ReadOrder::after;
      gated(type, after, next_q.data, k, v, log_decay, initial, next_o.data, final_state, stop);
      machine_.each(row, FirstRead<T>{as<T>(q), as<T>(initial), as<T>(o), d.key, d.value});
      if (later) copy(as<T>(o) + row, next_o.data, static_cast<std::size_t>(later) * sizeof(T));
      return;
    }
    if (d.method == ScanMethod::steps) {
      Scratch<double> memory(machine_, size);
      start_memory(as<T>(initial), memory.data, size);
      gated_steps(GatedSteps<T>{g, as<T>(k), as<T>(v), as<T>(q), as<T>(o), nullptr, memory.data, d.key, d.value, 0, 0, true, false, false},
                  stop);
      if (final_state) machine_.each(size, Convert<double, T>{memory.data, as<T>(final_state)});
      return;
    }
    Scratch<T> left(machine_, keys), right(machine_, keys), scores(machine_, d.steps * d.heads * g.chunk),
        decays(machine_, g.chunks() * d.heads * d.key);
    Scratch<double> memory(machine_, size);
    const GatedRows<T> rows{g, as<T>(q), as<T>(k), left.data, right.data, decays.data, scores.data};
    machine_.blocks(g.chunks() * d.heads, rows);
    const auto in_registers = [&](auto chunks) {
      start_memory(as<T>(initial), memory.data, size);
      for (; chunks.from < g.chunks(); chunks.from = chunks.to) {
        poll(stop, chunks.from * g.chunk);
        chunks.to = std::min(g.chunks(), chunks.from + stretch / g.chunk);
        machine_.blocks(chunks.slabs() * d.heads, chunks);
      }
    };
    if (d.key <= 32) {
      in_registers(GatedChunks<T, 4>{rows, as<T>(v), as<T>(o), memory.data, 0, 0});
    } else if (d.key <= 64) {
      in_registers(GatedChunks<T, 8>{rows, as<T>(v), as<T>(o), memory.data, 0, 0});
    } else if (std::is_same_v<T, float> && d.key <= 128) {
      if constexpr (std::is_same_v<T, float>) in_registers(GatedChunks<T, 16>{rows, as<T>(v), as<T>(o), memory.data, 0, 0});
    } else {
      Scratch<T> starts(machine_, g.chunks() * size);
      gated_memories(g, rows, as<T>(v), as<T>(initial), memory.data, starts.data, stop);
      machine_.each(d.steps * d.heads * d.value, GatedRead<T>{g, left.data, starts.data, scores.data, as<T>(v), as<T>(o)});
    }
    if (final_state) machine_.each(size, Convert<double, T>{memory.data, as<T>(final_state)});
  });
}

template <class Machine>
void KernelBackend<Machine>::gated_adjoint(DType type, const GatedDims& d, const void* q, const void* k, const void* v,
                                           const void* log_decay, const void* initial, const void* go, const void* gfinal, void* gq,
                                           void* gk, void* gv, void* glog_decay, void* ginitial, int* exponent, std::stop_token stop) {
  with_real(type, [&](auto zero) {
    using T = decltype(zero);
    const Gates<T> g{d, as<T>(log_decay)};
    const int unit = gfinal && exponent ? *exponent : 0;
    const bool before = d.read == ReadOrder::before;
    const Index key_row = d.heads * d.key, value_row = d.heads * d.value, later = before ? (d.steps - 1) * key_row : 0;
    const void *first_q = before ? q : nullptr, *first_go = before ? go : nullptr;
    void* to_gq = gq;
    Scratch<T> next_q(machine_, before ? d.steps * key_row : 0), next_go(machine_, before ? d.steps * value_row : 0),
        next_gq(machine_, before && gq ? d.steps * key_row : 0);
    if (before) {
      step_earlier(as<T>(q), d.steps, key_row, next_q.data);
      step_earlier(as<T>(go), d.steps, value_row, next_go.data);
      q = next_q.data;
      go = next_go.data;
      if (gq) {
        machine_.zero(next_gq.data, static_cast<std::size_t>(d.steps * key_row) * sizeof(T));
        gq = next_gq.data;
      }
    }
    const auto later_queries = [&] {
      if (!before || !to_gq) return;
      if (initial) machine_.each(key_row, FirstReadQuery<T>{as<T>(first_go), as<T>(initial), as<T>(to_gq), d.key, d.value});
      if (later) machine_.each(later, AddScaled<T>{next_gq.data, as<T>(to_gq) + key_row, T(1), 0, true, true});
    };
    if (d.method == ScanMethod::steps) {
      const int power =
          gated_steps_adjoint(g, as<T>(q), as<T>(k), as<T>(v), as<T>(initial), as<T>(go), as<T>(gfinal), unit, as<T>(gq), as<T>(gk),
                              as<T>(gv), as<T>(glog_decay), as<T>(ginitial), exponent != nullptr, as<T>(first_q), as<T>(first_go), stop);
      if (exponent) *exponent = power;
      later_queries();
      return;
    }
    const Index keys = d.steps * d.heads * d.key, pairs = d.steps * d.heads * g.chunk, size = d.heads * d.key * d.value,
                chunks = g.chunks();
    Scratch<T> left(machine_, keys), right(machine_, keys), scores(machine_, pairs), gscores(machine_, pairs),
        starts(machine_, chunks * size), ends(machine_, chunks * size), decays(machine_, chunks * key_row);
    Scratch<double> memory(machine_, size);
    Scratch<int> powers(machine_, size);
    const GatedRows<T> rows{g, as<T>(q), as<T>(k), left.data, right.data, decays.data, scores.data};
    machine_.blocks(chunks * d.heads, rows);
    gated_memories(g, rows, as<T>(v), as<T>(initial), memory.data, starts.data, stop);
    start_memory(as<T>(gfinal), memory.data, size);
    machine_.each(size, Fill<int>{powers.data, unit});
    for (Index to = chunks; to > 0; to -= std::min(to, stretch / g.chunk)) {
      poll(stop, to * g.chunk);
      machine_.each(size, GatedPassAdjoint<T>{g, left.data, as<T>(go), memory.data, powers.data, ends.data,
                                              std::max<Index>(0, to - stretch / g.chunk), to});
    }
    machine_.each(pairs, GatedScores<T>{g, as<T>(go), as<T>(v), gscores.data, d.value});
    if (gv) machine_.each(d.steps * d.heads * d.value, GatedValueAdjoint<T>{g, right.data, ends.data, scores.data, as<T>(go), as<T>(gv)});
    // left and right are needed no more: the terms through the memory take their place.
    machine_.each(keys, GatedKeyAdjoint<T>{g, as<T>(q), as<T>(k), as<T>(go), starts.data, gscores.data, as<T>(gq), left.data, true});
    machine_.each(keys, GatedKeyAdjoint<T>{g, as<T>(k), as<T>(q), as<T>(v), ends.data, gscores.data, as<T>(gk), right.data, false});
    if (glog_decay)
      machine_.each(d.steps * d.heads * d.decays, GatedDecayAdjoint<T>{g, as<T>(q), as<T>(k), gscores.data, starts.data, ends.data,
                                                                       left.data, right.data, as<T>(glog_decay)});
    later_queries();
    if (before && ginitial)
      machine_.each(size, FirstReadMemory<T>{as<T>(first_q), as<T>(first_go), memory.data, powers.data, d.key, d.value, false});
    const int power = exponent && ginitial ? common_unit(memory.data, powers.data, size) : 0;
    if (exponent) *exponent = power;
    if (ginitial) machine_.each(size, AddInUnits<T>{memory.data, powers.data, as<T>(ginitial), power});
  });
}

}  // namespace reclab::kernel
