// SPDX-License-Identifier: GPL-3.0-or-later
// A Backend made of the kernels: what is launched, over how much, in which order. Machine knows how to launch; it has
//   allocate, release, zero, upload, download, copy, finish, device, name   as Backend has them, and
//   each(n, f)      f(i) for all i < n, in any order
//   blocks(n, f)    f(block, i, shared) for all i < n
// and runs one launch after the other. What it may have besides is in recorder.h, and health() where the device can be lost.
#pragma once

#include <algorithm>
#include <cassert>
#include <climits>
#include <cmath>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "array/cuda/kernels.h"
#include "array/cuda/recorder.h"
#include "array/error.h"

namespace reclab::kernel {

template <class Machine>
class KernelBackend final : public Backend {
 public:
  template <class... Arguments>
  explicit KernelBackend(Arguments&&... arguments) : machine_(std::forward<Arguments>(arguments)...) {}
  ~KernelBackend() override {
    for (const auto& [steps, fourier] : roots_) release(const_cast<Wave*>(fourier.roots));
  }
  Machine& machine() { return machine_.machine(); }

  Device device() const override { return Device::cuda; }
  std::string name() const override { return machine_.name(); }
  std::string lost() const override {
    if constexpr (requires { machine_.machine().health(); })
      return machine_.machine().health().words();
    else
      return {};
  }
  void* allocate(std::size_t bytes) override { return machine_.allocate(std::max<std::size_t>(bytes, 1)); }
  void release(void* memory) noexcept override {
    if (memory) machine_.release(memory);
  }
  void zero(void* memory, std::size_t bytes) override {
    if (bytes) machine_.zero(memory, bytes);
  }
  void upload(void* to, const void* from, std::size_t bytes) override {
    if (bytes) machine_.upload(to, from, bytes);
  }
  void download(void* to, const void* from, std::size_t bytes) override {
    if (bytes) machine_.download(to, from, bytes);
  }
  void copy(void* to, const void* from, std::size_t bytes) override {
    if (bytes) machine_.copy(to, from, bytes);
  }
  void finish() override { machine_.finish(); }
  std::unique_ptr<Recording> record(const std::function<void()>& work) override { return machine_.record(work); }

  void add_scaled(DType type, Index n, int power, const void* x, void* y, bool accumulate) override {
    with_real(real_of(type), [&](auto zero) {
      using T = decltype(zero);
      const bool by_factor = std::abs(power) <= (sizeof(T) == 8 ? 1000 : 100);
      machine_.each(is_complex(type) ? 2 * n : n,
                    AddScaled<T>{as<T>(x), as<T>(y), by_factor ? std::ldexp(T(1), power) : T(0), power, by_factor, accumulate});
    });
  }
  double log2_norm(DType type, Index n, const void* x, int power) override {
    const auto parts = magnitudes(type, n, x);
    int largest = no_exponent;
    for (const Magnitude& part : parts) largest = std::max(largest, part.exponent);
    const int unit = unit_of(largest);
    double squares = 0.0;
    for (const Magnitude& part : parts) squares += std::ldexp(part.squares, 2 * (unit_of(part.exponent) - unit));
    return 0.5 * std::log2(squares) + unit + power;
  }
  int exponent(DType type, Index n, const void* x) override {
    int largest = no_exponent;
    for (const Magnitude& part : magnitudes(type, n, x)) largest = std::max(largest, part.exponent);
    return largest;
  }

  void unary(Unary op, DType type, Index n, const void* x, void* y, double p, double q) override {
    with_type(type, [&](auto zero) {
      using T = decltype(zero);
      machine_.each(n, UnaryValue<T>{op, as<T>(x), as<T>(y), p, q});
    });
  }
  void unary_adjoint(Unary op, DType type, Index n, const void* x, const void* y, const void* gy, void* gx, double p, double q) override {
    with_type(type, [&](auto zero) {
      using T = decltype(zero);
      machine_.each(n, UnaryAdjoint<T>{op, as<T>(x), as<T>(y), as<T>(gy), as<T>(gx), p, q});
    });
  }
  void binary(Binary op, DType type, const Broadcast& shape, const void* x, const void* y, void* z) override {
    with_type(type, [&](auto zero) {
      using T = decltype(zero);
      machine_.each(shape.elements, BinaryValue<T>{op, shape, as<T>(x), as<T>(y), as<T>(z)});
    });
  }
  void binary_adjoint(Binary op, DType type, const Broadcast& shape, const void* x, const void* y, const void* gz, void* gx,
                      void* gy) override {
    with_type(type, [&](auto zero) {
      using T = decltype(zero);
      for (const bool of_y : {false, true}) {
        void* g = of_y ? gy : gx;
        if (!g) continue;
        BinaryTerm<T> term{op, of_y, {}, {}, as<T>(x), as<T>(y), as<T>(gz)};
        Index run = shape.elements;
        for (int d = 0; d < shape.rank && run; ++d) {
          run /= shape.size[d];
          Axes& axes = (of_y ? shape.stride_y[d] : shape.stride_x[d]) ? term.kept : term.repeated;
          axes.size[axes.rank] = shape.size[d];
          axes.stride_x[axes.rank] = shape.stride_x[d];
          axes.stride_y[axes.rank] = shape.stride_y[d];
          axes.stride_z[axes.rank] = run;
          axes.elements *= shape.size[d];
          ++axes.rank;
        }
        if (shape.elements) reduce(term, term.kept.elements, term.repeated.elements, as<T>(g), 1.0, true);
      }
    });
  }
  void gather(DType type, const Strided& shape, const void* strided, void* dense, bool accumulate) override {
    with_type(type, [&](auto zero) {
      using T = decltype(zero);
      machine_.each(shape.elements, Gather<T>{shape, as<T>(strided), as<T>(dense), accumulate});
    });
  }
  void scatter(DType type, const Strided& shape, const void* dense, void* strided, bool accumulate) override {
    with_type(type, [&](auto zero) {
      using T = decltype(zero);
      machine_.each(shape.elements, Scatter<T>{shape, as<T>(dense), as<T>(strided), accumulate});
    });
  }
  void sum(DType type, Index outer, Index n, Index inner, double scale, const void* x, void* y) override {
    with_type(type, [&](auto zero) {
      using T = decltype(zero);
      reduce(SumTerm<T>{as<T>(x), n, inner}, outer * inner, n, as<T>(y), scale, false);
    });
  }
  void sum_adjoint(DType type, Index outer, Index n, Index inner, double scale, const void* gy, void* gx) override {
    with_type(type, [&](auto zero) {
      using T = decltype(zero);
      machine_.each(outer * n * inner, SumAdjoint<T>{as<T>(gy), as<T>(gx), n, inner, static_cast<real_t<T>>(scale)});
    });
  }
  void cumulative_sum(DType type, Index outer, Index n, Index inner, bool reverse, const void* x, void* y, bool accumulate) override {
    with_type(type, [&](auto zero) {
      using T = decltype(zero);
      machine_.each(outer * inner, CumulativeSum<T>{as<T>(x), as<T>(y), n, inner, reverse, accumulate});
    });
  }
  void matmul(DType type, const MatMul& s, const void* a, const void* b, void* c, bool accumulate) override {
    with_real(type, [&](auto zero) {
      using T = decltype(zero);
      const bool shared = s.batch > 1 && s.stride_c == 0;  // all matrices add up to one
      gemm(Gemm<T>{as<T>(a), as<T>(b), as<T>(c), s.m, s.n, s.k, s.transpose_a ? s.m : s.k, s.transpose_b ? s.k : s.n, s.n, s.stride_a,
                   s.stride_b, s.stride_c, 0, shared ? 1 : s.batch, shared ? s.batch : 1, 1, s.transpose_a, s.transpose_b, accumulate});
    });
  }

  void join(DType complex, Index n, const void* real, const void* imag, void* z) override {
    with_real(real_of(complex), [&](auto zero) {
      using T = decltype(zero);
      machine_.each(n, Join<T>{as<T>(real), as<T>(imag), as<Complex<T>>(z)});
    });
  }
  void join_adjoint(DType complex, Index n, const void* gz, void* greal, void* gimag) override {
    with_real(real_of(complex), [&](auto zero) {
      using T = decltype(zero);
      if (greal) machine_.each(n, TakePart<T>{as<T>(gz), as<T>(greal), true});
      if (gimag) machine_.each(n, TakePart<T>{as<T>(gz) + 1, as<T>(gimag), true});
    });
  }
  void part(DType complex, int which, Index n, const void* z, void* y) override {
    with_real(real_of(complex), [&](auto zero) {
      using T = decltype(zero);
      machine_.each(n, TakePart<T>{as<T>(z) + which, as<T>(y), false});
    });
  }
  void part_adjoint(DType complex, int which, Index n, const void* gy, void* gz) override {
    with_real(real_of(complex), [&](auto zero) {
      using T = decltype(zero);
      machine_.each(n, AddPart<T>{as<T>(gy), as<T>(gz) + which});
    });
  }

  void depthwise(DType type, const DepthwiseDims& d, const void* x, const void* w, void* y) override {
    with_real(type, [&](auto zero) {
      using T = decltype(zero);
      machine_.each(d.steps * d.batch * d.channels, Depthwise<T>{d, as<T>(x), as<T>(w), as<T>(y)});
    });
  }
  void depthwise_adjoint(DType type, const DepthwiseDims& d, const void* x, const void* w, const void* gy, void* gx, void* gw) override {
    with_real(type, [&](auto zero) {
      using T = decltype(zero);
      if (gx) machine_.each((d.steps + d.taps - 1) * d.batch * d.channels, DepthwiseInputAdjoint<T>{d, as<T>(w), as<T>(gy), as<T>(gx)});
      if (gw) reduce(DepthwiseWeightTerm<T>{d, as<T>(x), as<T>(gy)}, d.channels * d.taps, d.steps * d.batch, as<T>(gw), 1.0, true);
    });
  }

  void diagonal(DType type, const DiagonalDims& d, Pace pace, const void* a, const void* b, const void* initial, void* s,
                std::stop_token stop) override {
    const bool scan = pace != Pace::steps;  // a chunk a thread block, joined by their last states: both in one
    with_type(type, [&](auto zero) {
      using T = decltype(zero);
      run_line(Line<T>{as<T>(a), as<T>(b), as<T>(initial), d.steps, d.width, d.period, false, 0}, scan, as<T>(s), stop);
    });
  }
  void diagonal_adjoint(DType type, const DiagonalDims& d, Pace pace, const void* a, const void* s, const void* initial, const void* g,
                        const void* carried, void* ga, void* gb, void* ginitial, double* log2_norm, int* exponent,
                        std::stop_token stop) override {
    const Index n = d.steps * d.width;
    if (n == 0) return;
    const bool scan = pace != Pace::steps;
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
          const int common = first[0].exponent;
          if (common != no_exponent && common != infinite_exponent && std::abs(common) > 32) power = common;
        }
        *exponent = power;
      }
      if (ginitial) machine_.each(d.width, InitialAdjoint<T>{as<T>(a), lambda.data, exponents, as<T>(ginitial), d.period, power});
      if (log2_norm) {
        const auto rows = magnitudes_of(lambda.data, exponents, n, d.width);
        for (std::size_t t = 0; t < rows.size(); ++t) log2_norm[t] = 0.5 * std::log2(rows[t].squares) + unit_of(rows[t].exponent);
      }
    });
  }

  void outer(DType type, const OuterDims& d, bool attention, const void* q, const void* k, const void* v, const void* initial, void* o,
             void* states, void* final_state, std::stop_token stop) override {
    with_real(type, [&](auto zero) {
      using T = decltype(zero);
      const Index size = d.heads * d.key * d.value;
      if (!attention) {
        Scratch<double> memory(machine_, size);
        start_memory(as<T>(initial), memory.data, size);
        pass(OuterPass<T>{as<T>(k), as<T>(v), as<T>(q), as<T>(o), as<T>(states), memory.data, nullptr, d.steps, d.heads, d.key, d.value, 0,
                          0, false, false},
             stop);
        if (final_state) machine_.each(size, Convert<double, T>{memory.data, as<T>(final_state)});
        return;
      }
      const Heads<T> h{d};
      Scratch<T> scores(machine_, d.heads * rows_of<T>(d) * d.steps);
      for (Index first = 0; first < d.steps; first += rows_of<T>(d)) {
        poll(stop, first);
        const Index rows = std::min(rows_of<T>(d), d.steps - first), columns = first + rows;
        const auto square = h.square(scores.data, rows, columns);
        multiply(h.keys(q, first, rows), h.keys(k, 0, columns).transposed(), square, false);
        machine_.each(d.heads * rows * columns, Causal<T>{scores.data, rows, columns, first});
        multiply(square, h.values(v, 0, columns), h.values(o, first, rows), false);
        if (initial) multiply(h.keys(q, first, rows), h.memory(initial), h.values(o, first, rows), true);
      }
      if (!final_state) return;
      if (initial) copy(final_state, initial, static_cast<std::size_t>(size) * sizeof(T));
      multiply(h.keys(k, 0, d.steps).transposed(), h.values(v, 0, d.steps), h.memory(final_state), initial != nullptr);
    });
  }
  void outer_adjoint(DType type, const OuterDims& d, bool attention, const void* q, const void* k, const void* v, const void* initial,
                     const void* go, const void* carried, void* gq, void* gk, void* gv, void* ginitial, double* log2_norm,
                     std::stop_token stop) override {
    with_real(type, [&](auto zero) {
      using T = decltype(zero);
      const Index size = d.heads * d.key * d.value;
      if (attention) {
        const Heads<T> h{d};
        Scratch<T> scores(machine_, d.heads * rows_of<T>(d) * d.steps);
        const auto causal = [&](const auto& left, const auto& right, const auto& square, Index first) {
          multiply(left, right.transposed(), square, false);
          machine_.each(d.heads * square.rows * square.columns, Causal<T>{scores.data, square.rows, square.columns, first});
        };
        for (Index first = 0; first < d.steps; first += rows_of<T>(d)) {
          poll(stop, first);
          const Index rows = std::min(rows_of<T>(d), d.steps - first), columns = first + rows;
          const auto square = h.square(scores.data, rows, columns);
          causal(h.values(go, first, rows), h.values(v, 0, columns), square, first);
          multiply(square, h.keys(k, 0, columns), h.keys(gq, first, rows), true);
          multiply(square.transposed(), h.keys(q, first, rows), h.keys(gk, 0, columns), true);
          causal(h.keys(q, first, rows), h.keys(k, 0, columns), square, first);
          multiply(square.transposed(), h.values(go, first, rows), h.values(gv, 0, columns), true);
        }
        // What flows through the initial and the final memory.
        if (initial) multiply(h.values(go, 0, d.steps), h.memory(initial).transposed(), h.keys(gq, 0, d.steps), true);
        if (carried) {
          multiply(h.values(v, 0, d.steps), h.memory(carried).transposed(), h.keys(gk, 0, d.steps), true);
          multiply(h.keys(k, 0, d.steps), h.memory(carried), h.values(gv, 0, d.steps), true);
        }
        if (ginitial) {
          if (carried) machine_.each(size, AddScaled<T>{as<T>(carried), as<T>(ginitial), T(1), 0, true, true});
          multiply(h.keys(q, 0, d.steps).transposed(), h.values(go, 0, d.steps), h.memory(ginitial), true);
        }
        if (log2_norm) std::fill(log2_norm, log2_norm + d.steps, -std::numeric_limits<double>::infinity());
        return;
      }
      Scratch<double> memory(machine_, size);
      // The queries' adjoint on the way there, with the memory rebuilt; keys and values on the way back, with its adjoint.
      start_transposed(d, as<T>(initial), memory.data);
      pass(OuterPass<T>{as<T>(v), as<T>(k), as<T>(go), as<T>(gq), nullptr, memory.data, nullptr, d.steps, d.heads, d.value, d.key, 0, 0,
                        false, true},
           stop);
      start_transposed(d, as<T>(carried), memory.data);
      pass(OuterPass<T>{as<T>(go), as<T>(q), as<T>(v), as<T>(gk), nullptr, memory.data, nullptr, d.steps, d.heads, d.value, d.key, 0, 0,
                        true, true},
           stop);
      start_memory(as<T>(carried), memory.data, size);
      Scratch<double> squares(machine_, log2_norm ? d.steps * d.heads * d.value : 0);
      pass(OuterPass<T>{as<T>(q), as<T>(go), as<T>(k), as<T>(gv), nullptr, memory.data, squares.data, d.steps, d.heads, d.key, d.value, 0,
                        0, true, true},
           stop);
      if (ginitial) reduce(SumTerm<double>{memory.data, 1, 1}, size, 1, as<T>(ginitial), 1.0, true);
      if (log2_norm) {
        Scratch<double> sums(machine_, d.steps);
        reduce(SumTerm<double>{squares.data, d.heads * d.value, 1}, d.steps, d.heads * d.value, sums.data, 1.0, false);
        machine_.download(log2_norm, sums.data, static_cast<std::size_t>(d.steps) * sizeof(double));
        for (Index t = 0; t < d.steps; ++t) log2_norm[t] = 0.5 * std::log2(log2_norm[t]);
      }
    });
  }

  void gated(DType type, const GatedDims& d, const void* q, const void* k, const void* v, const void* log_decay, const void* initial, void* o,
             void* final_state, std::stop_token stop) override {
    with_real(type, [&](auto zero) {
      using T = decltype(zero);
      const Gates<T> g{d, as<T>(log_decay)};
      const Index keys = d.steps * d.heads * d.key, size = d.heads * d.key * d.value;
      if (d.pace == Pace::steps) {
        Scratch<double> memory(machine_, size);
        start_memory(as<T>(initial), memory.data, size);
        gated_steps(GatedSteps<T>{g, as<T>(k), as<T>(v), as<T>(q), as<T>(o), nullptr, memory.data, d.key, d.value, 0, 0, true, false, false}, stop);
        if (final_state) machine_.each(size, Convert<double, T>{memory.data, as<T>(final_state)});
        return;
      }
      Scratch<T> left(machine_, keys), right(machine_, keys), scores(machine_, d.steps * d.heads * g.chunk), starts(machine_, g.chunks() * size);
      Scratch<double> memory(machine_, size);
      gated_memories(g, as<T>(k), as<T>(v), as<T>(initial), right.data, memory.data, starts.data, stop);
      machine_.each(keys, GatedRows<T>{g, as<T>(q), left.data, false});
      machine_.each(d.steps * d.heads * g.chunk, GatedScores<T>{g, as<T>(q), as<T>(k), scores.data, d.key});
      machine_.each(d.steps * d.heads * d.value, GatedRead<T>{g, left.data, starts.data, scores.data, as<T>(v), as<T>(o)});
      if (final_state) machine_.each(size, Convert<double, T>{memory.data, as<T>(final_state)});
    });
  }
  void gated_adjoint(DType type, const GatedDims& d, const void* q, const void* k, const void* v, const void* log_decay, const void* initial,
                     const void* go, const void* gfinal, void* gq, void* gk, void* gv, void* glog_decay, void* ginitial, int* exponent,
                     std::stop_token stop) override {
    with_real(type, [&](auto zero) {
      using T = decltype(zero);
      const Gates<T> g{d, as<T>(log_decay)};
      const int unit = gfinal && exponent ? *exponent : 0;
      if (d.pace == Pace::steps) {
        const int power = gated_steps_adjoint(g, as<T>(q), as<T>(k), as<T>(v), as<T>(initial), as<T>(go), as<T>(gfinal), unit, as<T>(gq), as<T>(gk), as<T>(gv), as<T>(glog_decay),
                                              as<T>(ginitial), exponent != nullptr, stop);
        if (exponent) *exponent = power;
        return;
      }
      const Index keys = d.steps * d.heads * d.key, pairs = d.steps * d.heads * g.chunk, size = d.heads * d.key * d.value, chunks = g.chunks();
      Scratch<T> left(machine_, keys), right(machine_, keys), scores(machine_, pairs), gscores(machine_, pairs), starts(machine_, chunks * size), ends(machine_, chunks * size);
      Scratch<double> memory(machine_, size);
      Scratch<int> powers(machine_, size);
      gated_memories(g, as<T>(k), as<T>(v), as<T>(initial), right.data, memory.data, starts.data, stop);
      machine_.each(keys, GatedRows<T>{g, as<T>(q), left.data, false});
      start_memory(as<T>(gfinal), memory.data, size);
      machine_.each(size, Fill<int>{powers.data, unit});
      for (Index to = chunks; to > 0; to -= std::min(to, stretch / g.chunk)) {
        poll(stop, to * g.chunk);
        machine_.each(size, GatedPassAdjoint<T>{g, left.data, as<T>(go), memory.data, powers.data, ends.data, std::max<Index>(0, to - stretch / g.chunk), to});
      }
      machine_.each(pairs, GatedScores<T>{g, as<T>(q), as<T>(k), scores.data, d.key});
      machine_.each(pairs, GatedScores<T>{Gates<T>{d, nullptr}, as<T>(go), as<T>(v), gscores.data, d.value});
      if (gv) machine_.each(d.steps * d.heads * d.value, GatedValueAdjoint<T>{g, right.data, ends.data, scores.data, as<T>(go), as<T>(gv)});
      // left and right are needed no more: what goes through the memory takes their place.
      machine_.each(keys, GatedKeyAdjoint<T>{g, as<T>(q), as<T>(k), as<T>(go), starts.data, gscores.data, as<T>(gq), left.data, true});
      machine_.each(keys, GatedKeyAdjoint<T>{g, as<T>(k), as<T>(q), as<T>(v), ends.data, gscores.data, as<T>(gk), right.data, false});
      if (glog_decay)
        machine_.each(d.steps * d.heads * d.decays,
                      GatedDecayAdjoint<T>{g, as<T>(q), as<T>(k), gscores.data, starts.data, ends.data, left.data, right.data, as<T>(glog_decay)});
      const int power = exponent && ginitial ? common_unit(memory.data, powers.data, size) : 0;
      if (exponent) *exponent = power;
      if (ginitial) machine_.each(size, AddInUnits<T>{memory.data, powers.data, as<T>(ginitial), power});
    });
  }

  void selective(DType type, const SelectiveDims& d, const void* dt, const void* a, const void* x, const void* b, const void* c, const void* initial, void* y,
                 void* states, void* final_state, std::stop_token stop) override {
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
        machine_.each(d.batch * d.channels, SelectiveRun<T>{d, as<T>(dt), as<T>(a), as<T>(x), as<T>(b), as<T>(c), memory, as<T>(y), as<T>(states), from, std::min(d.steps, from + stretch)});
      }
    });
  }
  void selective_adjoint(DType type, const SelectiveDims& d, const void* dt, const void* a, const void* x, const void* b, const void* c, const void* initial,
                         const void* gy, const void* gstates, const void* carried, void* gdt, void* ga, void* gx, void* gb, void* gc, void* ginitial,
                         double* log2_norm, int* exponent, std::stop_token stop) override {
    with_real(type, [&](auto one) {
      using T = decltype(one);
      const Index rows = d.steps * d.batch, width = d.batch * d.channels * d.states, n = d.steps * width;
      Scratch<T> factor(machine_, n), states(machine_, n), back(machine_, n), gfactor(machine_, n), gdrive(machine_, n);
      machine_.each(n, SelectiveTerms<T>{d, as<T>(dt), as<T>(a), as<T>(x), as<T>(b), factor.data, back.data});
      const DiagonalDims line{d.steps, width, 0};
      diagonal(type, line, Pace::steps, factor.data, back.data, initial, states.data, stop);
      machine_.each(n, SelectiveReadAdjoint<T>{d, as<T>(c), as<T>(gy), as<T>(gstates), back.data});
      zero(gfactor.data, static_cast<std::size_t>(n) * sizeof(T));
      zero(gdrive.data, static_cast<std::size_t>(n) * sizeof(T));
      diagonal_adjoint(type, line, Pace::steps, factor.data, states.data, initial, back.data, carried, gfactor.data, gdrive.data, ginitial, log2_norm, exponent, stop);
      if (gdt || gx)
        machine_.each(rows * d.channels, SelectiveInputAdjoint<T>{d, as<T>(dt), as<T>(a), as<T>(x), as<T>(b), factor.data, gfactor.data, gdrive.data, as<T>(gdt), as<T>(gx)});
      if (ga) reduce(SelectiveRateTerm<T>{d, as<T>(dt), factor.data, gfactor.data}, d.channels * d.states, rows, as<T>(ga), 1.0, true);
      if (gb) reduce(SelectiveStateTerm<T>{d, gdrive.data, as<T>(dt), as<T>(x)}, rows * d.states, d.channels, as<T>(gb), 1.0, true);
      if (gc) reduce(SelectiveStateTerm<T>{d, states.data, as<T>(gy), nullptr}, rows * d.states, d.channels, as<T>(gc), 1.0, true);
    });
  }

  void invert_unit_lower(DType type, Index batch, Index n, const void* a, void* x) override {
    with_real(type, [&](auto zero) {
      using T = decltype(zero);
      machine_.each(batch * n, InvertUnitLower<T>{as<T>(a), as<T>(x), n});
    });
  }
  void softmax(DType type, Index batch, Index rows, Index columns, Index first, const void* low, void* scores) override {
    with_real(type, [&](auto zero) {
      using T = decltype(zero);
      machine_.each(batch * rows, SoftmaxRow<T>{as<T>(low), as<T>(scores), rows, columns, first});
    });
  }
  void softmax_adjoint(DType type, Index rows, Index columns, const void* p, void* g) override {
    with_real(type, [&](auto zero) {
      using T = decltype(zero);
      machine_.each(rows, SoftmaxRowAdjoint<T>{as<T>(p), as<T>(g), columns});
    });
  }
  void by_distance(DType type, Index batch, Index rows, Index columns, Index distances, Index first, const void* far, void* scores) override {
    with_real(type, [&](auto zero) {
      using T = decltype(zero);
      machine_.each(batch * rows * columns, ByDistance<T>{as<T>(far), as<T>(scores), rows, columns, distances, first});
    });
  }
  void by_distance_adjoint(DType type, Index batch, Index rows, Index columns, Index distances, Index first, const void* gscores, void* gfar) override {
    with_real(type, [&](auto zero) {
      using T = decltype(zero);
      machine_.each(batch * rows * distances, ByDistanceAdjoint<T>{as<T>(gscores), as<T>(gfar), rows, columns, distances, first});
    });
  }
  void keep_columns(DType type, Index batch, Index rows, Index columns, const void* bound, bool from, void* scores) override {
    with_real(type, [&](auto zero) {
      using T = decltype(zero);
      machine_.each(batch * rows * columns, KeepColumns<T>{as<T>(bound), as<T>(scores), rows, columns, from});
    });
  }
  void weigh(DType type, Index batch, Index steps, Index first, Index rows, Index columns, const void* row, const void* column, const void* row_low,
             const void* column_low, void* scores) override {
    with_real(type, [&](auto zero) {
      using T = decltype(zero);
      machine_.each(batch * rows * columns, Weigh<T>{as<T>(row), as<T>(column), as<T>(row_low), as<T>(column_low), as<T>(scores), steps, rows, columns, first});
    });
  }
  void weigh_adjoint(DType type, Index batch, Index steps, Index first, Index rows, Index columns, const void* row, const void* column, const void* row_low,
                     const void* column_low, const void* p, void* g, void* grow, void* gcolumn) override {
    with_real(type, [&](auto zero) {
      using T = decltype(zero);
      Scratch<T> both(machine_, batch * rows * columns);
      machine_.each(batch * rows * columns, Both<T>{as<T>(p), as<T>(g), both.data});
      if (grow) machine_.each(batch * rows, BlockSum<T>{both.data, as<T>(grow), steps, rows, columns, first, false});
      if (gcolumn) machine_.each(batch * columns, BlockSum<T>{both.data, as<T>(gcolumn), steps, rows, columns, first, true});
      machine_.each(batch * rows * columns, Weigh<T>{as<T>(row), as<T>(column), as<T>(row_low), as<T>(column_low), as<T>(g), steps, rows, columns, first});
    });
  }

  void vandermonde(DType complex, Index channels, Index modes, Index steps, const void* w, const void* a, void* kernel) override {
    with_real(real_of(complex), [&](auto zero) {
      using T = Complex<decltype(zero)>;
      const Vandermonde<T> f{as<T>(w), as<T>(a), as<T>(kernel), modes, steps};
      machine_.each(channels * f.chunks(), f);
    });
  }
  void vandermonde_adjoint(DType complex, Index channels, Index modes, Index steps, const void* w, const void* a, const void* gkernel,
                           void* gw, void* ga) override {
    with_real(real_of(complex), [&](auto zero) {
      using T = Complex<decltype(zero)>;
      machine_.each(channels * modes, VandermondeAdjoint<T>{as<T>(w), as<T>(a), as<T>(gkernel), as<T>(gw), as<T>(ga), modes, steps});
    });
  }

  void convolve(DType type, Index steps, Index batch, Index channels, const void* kernel, const void* u, void* y) override {
    with_type(type, [&](auto zero) {
      using T = decltype(zero);
      const Fourier fourier = fourier_of(steps);
      const Index group = group_of(fourier, channels, 1 + batch), n = fourier.size;
      Scratch<Wave> k(machine_, group * n), x(machine_, group * batch * n);
      for (Index c = 0; c < channels; c += group) {
        const Index some = std::min(group, channels - c);
        const Layout tokens{1, channels, batch * channels, batch};
        load(fourier, as<T>(kernel) + c * steps, Layout{steps, 0, 1, 1}, steps, some, k.data);
        load(fourier, as<T>(u) + c, tokens, steps, some * batch, x.data);
        machine_.each(some * batch * n, MultiplyWaves{x.data, k.data, n, batch, false});
        store(fourier, x.data, tokens, steps, some * batch, as<T>(y) + c, false);
      }
    });
  }
  void convolve_adjoint(DType type, Index steps, Index batch, Index channels, const void* kernel, const void* u, const void* gy,
                        void* gkernel, void* gu) override {
    with_type(type, [&](auto zero) {
      using T = decltype(zero);
      const Fourier fourier = fourier_of(steps);
      const Index group = group_of(fourier, channels, 1 + 2 * batch), n = fourier.size;
      Scratch<Wave> k(machine_, group * n), x(machine_, gkernel ? group * batch * n : 0), g(machine_, group * batch * n);
      for (Index c = 0; c < channels; c += group) {
        const Index some = std::min(group, channels - c);
        const Layout tokens{1, channels, batch * channels, batch}, own{steps, 0, 1, 1};
        load(fourier, as<T>(gy) + c, tokens, steps, some * batch, g.data);
        if (gkernel) {
          load(fourier, as<T>(u) + c, tokens, steps, some * batch, x.data);
          machine_.each(some * n, CorrelateWaves{g.data, x.data, k.data, n, batch});
          store(fourier, k.data, own, steps, some, as<T>(gkernel) + c * steps, true);
        }
        if (gu) {
          load(fourier, as<T>(kernel) + c * steps, own, steps, some, k.data);
          machine_.each(some * batch * n, MultiplyWaves{g.data, k.data, n, batch, true});
          store(fourier, g.data, tokens, steps, some * batch, as<T>(gu) + c, true);
        }
      }
    });
  }

 private:
  static constexpr Index stretch = 4096;  // steps of a loop over time between two looks at the stop token

  /// Memory for the length of a call; none for no entries.
  template <class T>
  struct Scratch {
    Recorder<Machine>& machine;
    T* data;
    Scratch(Recorder<Machine>& on, Index n) : machine(on), data(n ? static_cast<T*>(on.allocate(static_cast<std::size_t>(n) * sizeof(T))) : nullptr) {}
    ~Scratch() {
      if (data) machine.release(data);
    }
    Scratch(const Scratch&) = delete;
    Scratch& operator=(const Scratch&) = delete;
  };

  /// k decayed to the end of its chunk, the memory before each chunk and, in `memory`, after the last.
  template <class T>
  void gated_memories(const Gates<T>& g, const T* k, const T* v, const T* initial, T* right, double* memory, T* starts, const std::stop_token& stop) {
    const GatedDims& d = g.d;
    machine_.each(d.steps * d.heads * d.key, GatedRows<T>{g, k, right, true});
    start_memory(initial, memory, d.heads * d.key * d.value);
    for (Index from = 0; from < g.chunks(); from += stretch / g.chunk) {
      poll(stop, from * g.chunk);
      machine_.each(d.heads * d.key * d.value, GatedPass<T>{g, right, v, memory, starts, from, std::min(g.chunks(), from + stretch / g.chunk)});
    }
  }

  template <class T>
  void gated_steps(GatedSteps<T> f, const std::stop_token& stop) {
    for (f.from = 0; f.from < f.g.d.steps; f.from = f.to) {
      poll(stop, f.from);
      f.to = std::min(f.g.d.steps, f.from + stretch);
      machine_.each(f.g.d.heads * f.columns, f);
    }
  }
  /// Returns the power of two that ginitial is in units of.
  template <class T>
  int gated_steps_adjoint(const Gates<T>& g, const T* q, const T* k, const T* v, const T* initial, const T* go, const T* gfinal, int unit, T* gq, T* gk, T* gv, T* ga, T* ginitial,
                          bool in_units, const std::stop_token& stop) {
    const GatedDims& d = g.d;
    const OuterDims dims{d.steps, d.heads, d.key, d.value};
    const Index size = d.heads * d.key * d.value, rows = d.heads * d.key;
    // The memories before every so many steps, from which those of the steps between are made again.
    const Index block = std::min(stretch, std::max<Index>(1, static_cast<Index>(std::sqrt(static_cast<double>(d.steps))))), blocks = (d.steps + block - 1) / block;
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
      if (ga) reduce(SumTerm<double>{through.data, length, 1}, (there.to - there.from) * d.heads * d.decays, length, ga + there.from * d.heads * d.decays, 1.0, true);
    }
    if (!ginitial) return 0;
    const int power = in_units ? common_unit(lambda.data, powers.data, size) : 0;
    machine_.each(size, AddTransposedInUnits<T>{lambda.data, powers.data, ginitial, d.key, d.value, power});
    return power;
  }
  /// The unit of x 2^exponents: that of its largest entry, 1 near 1.
  int common_unit(const double* x, const int* exponents, Index n) {
    if (n == 0) return 0;
    const int common = magnitudes_of(x, exponents, n, n)[0].exponent;
    return common != no_exponent && common != infinite_exponent && std::abs(common) > 32 ? common : 0;
  }

  template <class T>
  static const T* as(const void* p) {
    return static_cast<const T*>(p);
  }
  template <class T>
  static T* as(void* p) {
    return static_cast<T*>(p);
  }
  template <class F>
  static void with_type(DType type, F&& f) {
    switch (type) {
      case DType::f32: f(float{}); break;
      case DType::f64: f(double{}); break;
      case DType::c64: f(Complex<float>(0.0f)); break;
      case DType::c128: f(Complex<double>(0.0)); break;
    }
  }
  template <class F>
  static void with_real(DType type, F&& f) {
    assert(!is_complex(type));
    if (type == DType::f32)
      f(float{});
    else
      f(double{});
  }
  static int unit_of(int exponent) { return exponent == no_exponent || exponent == infinite_exponent ? 0 : exponent; }
  /// Launches run ahead of the device: waiting now and then keeps a cancelled run from going on behind our back.
  void poll(const std::stop_token& stop, Index step) {
    if (step) machine_.finish();
    if (stop.stop_requested()) throw Cancelled();
  }

  /// Sums in two passes where one would keep few threads busy. How, depends on the shape alone.
  template <class Term, class T>
  void reduce(const Term& term, Index outputs, Index length, T* out, double scale, bool accumulate) {
    const Index chunks = std::min({length / 32, 65536 / std::max<Index>(outputs, 1), Index{512}});
    if (chunks < 2) {
      machine_.each(outputs, Reduce<Term, T>{term, outputs, length, 1, out, scale, accumulate});
      return;
    }
    using Wide = wide_t<T>;
    Scratch<Wide> partial(machine_, outputs * chunks);
    machine_.each(outputs * chunks, Reduce<Term, Wide>{term, outputs, length, chunks, partial.data, 1.0, false});
    machine_.each(outputs, Reduce<ChunkTerm<Wide>, T>{{partial.data, outputs}, outputs, chunks, 1, out, scale, accumulate});
  }

  template <class T>
  std::vector<Magnitude> magnitudes_of(const T* x, const int* exponents, Index n, Index span) {
    std::vector<Magnitude> parts(static_cast<std::size_t>((n + span - 1) / span));
    if (parts.empty()) return parts;
    const auto count = static_cast<Index>(parts.size());
    Scratch<Magnitude> out(machine_, count);
    machine_.blocks(count, Magnitudes<T>{x, exponents, n, span, out.data});
    machine_.download(parts.data(), out.data, parts.size() * sizeof(Magnitude));
    return parts;
  }
  std::vector<Magnitude> magnitudes(DType type, Index n, const void* x) {
    std::vector<Magnitude> parts;
    with_type(type, [&](auto zero) { parts = magnitudes_of(as<decltype(zero)>(x), nullptr, n, 4096); });
    return parts;
  }

  /// Splits the sum of a product with few tiles among more blocks.
  template <class T>
  void gemm(Gemm<T> g) {
    const Index tiles = g.tiles_m() * g.tiles_n() * g.batch, count = g.batch * g.m * g.n;
    if (count == 0) return;
    const Index shares = g.inner > 1 ? g.inner : g.k / 64;
    g.splits = std::clamp<Index>(std::min(256 / tiles, g.inner * g.k / 256), 1, std::max<Index>(shares, 1));
    if (g.splits == 1) {
      machine_.blocks(tiles, g);
      return;
    }
    Scratch<T> partial(machine_, g.splits * count);
    const AddShares<T> add{partial.data, g.c, count, g.m, g.n, g.ldc, g.stride_c, g.splits, g.accumulate};
    g.c = partial.data;
    g.ldc = g.n;
    g.stride_c = g.m * g.n;
    g.stride_split = count;
    g.accumulate = false;
    machine_.blocks(tiles * g.splits, g);
    machine_.each(count, add);
  }
  /// One matrix for each head, as it lies: `stride` from head to head, `line` from row to row.
  template <class P>
  struct Matrices {
    P* data;
    Index heads, rows, columns, line, stride;
    bool turned = false;
    Matrices transposed() const {
      Matrices result = *this;
      result.turned = !turned;
      return result;
    }
  };
  template <class T>
  struct Heads {
    OuterDims d;
    template <class V>  // void or const void
    using Element = std::conditional_t<std::is_const_v<V>, const T, T>;
    template <class V>
    auto keys(V* p, Index first, Index rows) const {
      return Matrices<Element<V>>{static_cast<Element<V>*>(p) + first * d.heads * d.key, d.heads, rows, d.key, d.heads * d.key, d.key};
    }
    template <class V>
    auto values(V* p, Index first, Index rows) const {
      return Matrices<Element<V>>{static_cast<Element<V>*>(p) + first * d.heads * d.value, d.heads, rows, d.value, d.heads * d.value, d.value};
    }
    template <class V>
    auto memory(V* p) const {
      return Matrices<Element<V>>{static_cast<Element<V>*>(p), d.heads, d.key, d.value, d.value, d.key * d.value};
    }
    Matrices<T> square(T* p, Index rows, Index columns) const { return {p, d.heads, rows, columns, columns, rows * columns}; }
  };
  template <class A, class B, class T>
  void multiply(const Matrices<A>& a, const Matrices<B>& b, const Matrices<T>& c, bool accumulate) {
    assert(!c.turned && (a.turned ? a.rows : a.columns) == (b.turned ? b.columns : b.rows));
    gemm(Gemm<T>{a.data, b.data, c.data, c.rows, c.columns, a.turned ? a.rows : a.columns, a.line, b.line, c.line, a.stride, b.stride,
                 c.stride, 0, c.heads, 1, 1, a.turned, b.turned, accumulate});
  }
  /// Rows of the attention matrix that are formed at once: up to 64 MiB of them.
  template <class T>
  static Index rows_of(const OuterDims& d) {
    return std::clamp<Index>((Index{64} << 20) / std::max<Index>(1, d.heads * d.steps * static_cast<Index>(sizeof(T))), 1, d.steps);
  }

  template <class T>
  void run_line(const Line<T>& line, bool scan, T* out, const std::stop_token& stop) {
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

  template <class T>
  void start_memory(const T* from, double* memory, Index n) {
    if (from)
      machine_.each(n, Convert<T, double>{from, memory});
    else
      machine_.zero(memory, static_cast<std::size_t>(n) * sizeof(double));
  }
  template <class T>
  void start_transposed(const OuterDims& d, const T* from, double* memory) {
    const Index n = d.heads * d.key * d.value;
    if (from)
      machine_.each(n, TransposeEach<T>{from, memory, d.key, d.value});
    else
      machine_.zero(memory, static_cast<std::size_t>(n) * sizeof(double));
  }
  template <class T>
  void pass(OuterPass<T> f, const std::stop_token& stop) {
    for (f.from = 0; f.from < f.steps; f.from = f.to) {
      poll(stop, f.from);
      f.to = std::min(f.steps, f.from + stretch);
      machine_.each(f.heads * f.columns, f);
    }
  }

  /// Transforms of one length; the roots of unity stay on the device.
  struct Fourier {
    Index size = 0;
    const Wave* roots = nullptr;
  };
  Fourier fourier_of(Index steps) {
    Index size = 2;
    while (size < 2 * steps) size *= 2;
    const std::lock_guard lock(roots_lock_);
    Fourier& fourier = roots_[size];
    if (!fourier.roots) {
      std::vector<Wave> roots(static_cast<std::size_t>(size / 2));
      for (Index i = 0; i < size / 2; ++i) {
        const double angle = -6.28318530717958647692 * static_cast<double>(i) / static_cast<double>(size);
        roots[static_cast<std::size_t>(i)] = {std::cos(angle), std::sin(angle)};
      }
      Scratch<Wave> on_device(machine_, static_cast<Index>(roots.size()));
      machine_.upload(on_device.data, roots.data(), roots.size() * sizeof(Wave));
      fourier = {size, std::exchange(on_device.data, nullptr)};
    }
    return fourier;
  }
  /// Channels whose waves fit in 256 MiB, at least one.
  static Index group_of(const Fourier& fourier, Index channels, Index waves) {
    return std::clamp<Index>((Index{256} << 20) / (fourier.size * waves * static_cast<Index>(sizeof(Wave))), 1, channels);
  }
  void transform(const Fourier& fourier, Wave* x, Index count, bool back) {
    const Index inside = std::min<Index>(fourier.size, FourierInside::longest);
    const FourierInside neighbours{x, fourier.roots, fourier.size, static_cast<int>(inside), back};
    if (back) machine_.blocks(count * (fourier.size / inside), neighbours);
    for (Index step = inside; step < fourier.size; step *= 2)
      machine_.each(count * fourier.size / 2, FourierPass{x, fourier.roots, fourier.size, back ? step : fourier.size / 2 * inside / step, back});
    if (!back) machine_.blocks(count * (fourier.size / inside), neighbours);
  }
  template <class T>
  void load(const Fourier& fourier, const T* from, const Layout& layout, Index steps, Index count, Wave* to) {
    machine_.each(count * fourier.size, LoadWaves<T>{from, layout, steps, fourier.size, to});
    transform(fourier, to, count, false);
  }
  template <class T>
  void store(const Fourier& fourier, Wave* from, const Layout& layout, Index steps, Index count, T* to, bool add) {
    transform(fourier, from, count, true);
    machine_.each(count * steps, StoreWaves<T>{from, layout, steps, fourier.size, to, add});
  }

  Recorder<Machine> machine_;
  std::mutex roots_lock_;
  std::map<Index, Fourier> roots_;
};

}  // namespace reclab::kernel
