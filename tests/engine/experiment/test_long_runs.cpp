// SPDX-License-Identifier: GPL-3.0-or-later
// A million steps, and segments handed on thousands of times, with decays within 1e-9 of 0 and of 1: all finite, and as in the formulas.
#include <algorithm>
#include <cmath>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "experiment/experiment.h"
#include "extremes.h"
#include "models/parts/parts.h"
#include "models/registry.h"
#include "recurrence/diagonal/diagonal.h"
#include "recurrence/linear/linear.h"
#include "recurrence/memory.h"
#include "recurrence/outer/outer.h"
#include "recurrence/primitive.h"
#include "recurrence/segments/segments.h"
#include "recurrence/step/step.h"
#include "test.h"

namespace {

using namespace reclab;
using primitive::rotation;
using test::largest, test::Numbers, test::sequence_of;

constexpr std::int64_t million = 1000000;

/// Runs a layer of the test's own over a million steps of `value`, in segments.
TracePtr run_layer(const std::function<Var(Layer&, Var)>& layer, double value, const std::string& dtype = "f64",
                   std::int64_t length = million, const std::string& form = "sequential", std::int64_t every = 1000) {
  Architecture own;
  own.title = "a layer of the test's";
  own.layer = layer;
  Registry registry;
  registry.add("own", "test", own);
  RunRequest request;
  request.preset.id = request.preset.architecture = "own";
  request.sequence = sequence_of(length, 1, [&](std::int64_t) { return value; });
  request.dtype = dtype;
  request.form = form;
  request.every = every;
  request.loss = LossKind::last;
  request.recording.kinds.remove(kinds_of(Stage::late));
  const TracePtr trace = run(registry, request, {}, {}).trace;
  CHECK_SAYS(trace->info.outcome == Outcome::finished && trace->info.sentence.empty(), trace->info.sentence);
  for (const auto& array : trace->arrays()) {
    if (array->is_complex()) continue;
    for (const double x : *array->real) CHECK_SAYS(std::isfinite(x) || (x < 0 && array->unit == "log10"), array->key + " is not finite");
  }
  return trace;
}
const Numbers& values_of(const TracePtr& trace, const std::string& key) {
  const TraceArray* array = trace->find(key);
  CHECK_SAYS(array && array->real, key);
  return *array->real;
}
Var constant_like(Var x, double value) { return affine(slice(x, 0, 0, 1), 0.0, value); }

}  // namespace

TEST_CASE("a million steps of a diagonal memory, decays 1e-9 from 0 and from 1: the sum and its gradient as in the formula") {
  for (const double a : {1.0 - 1e-9, 0.5, 1e-9}) {
    const double log_a = a > 0.5 ? std::log1p(a - 1.0) : std::log(a), last = static_cast<double>(million - 1);
    const auto trace = run_layer([&](Layer& l, Var x) { return diagonal(l, {"s", {1}, "s"}, reshape(constant_like(x, a), {1}), x); }, 1.0);
    const double sum = std::expm1(static_cast<double>(million) * log_a) / std::expm1(log_a);
    CHECK_CLOSE(values_of(trace, "output").back(), sum, 1e-9 * sum);
    // dL/ds_0 = s_T a^(T-1), far below the range of a double, carried from segment to segment.
    const double expected = std::log10(sum) + last * log_a / std::log(10.0);
    CHECK_CLOSE(values_of(trace, "gradient/state/0/s").front(), expected, 1e-9 * std::max(1.0, std::abs(expected)));
  }
}

TEST_CASE("a million steps of a complex memory on the unit circle, of a matrix memory, of a rotation and of a cell: all finite") {
  const auto turning = run_layer(
      [](Layer& l, Var x) {
        const Var a = complex(reshape(constant_like(x, 0.6), {1}), reshape(constant_like(x, 0.8 - 1e-9), {1}));
        return real(diagonal(l, {"s", {1}, "s"}, a, complex(x, affine(x, 0.0, 0.0))));
      },
      1.0);
  CHECK(largest(values_of(turning, "output")) < 10.0);
  // S_t = S_{t-1} + k v with k v = 1e6: the read of a query 1e3 at the end is 1e15.
  const auto heads = [](Layer& l, Var x) { return reshape(x, {l.steps(), l.batch(), 1, 1}); };
  const auto summed = run_layer(
      [&](Layer& l, Var x) { return parts::flat(l, outer(l, {"S", {1, 1, 1}, "S"}, {heads(l, x), heads(l, x), heads(l, x)})); }, 1e3);
  CHECK_CLOSE(values_of(summed, "output").back(), 1e15, 1e3);
  const auto decayed = run_layer(
      [&](Layer& l, Var x) {
        return parts::flat(
            l, outer(l, {"S", {1, 1, 1}, "S"}, {heads(l, x), heads(l, x), heads(l, x), reshape(constant_like(x, -1e-9), {1, 1})}));
      },
      1e3);
  CHECK_CLOSE(values_of(decayed, "output").back(), 1e9 * std::expm1(-1e-3) / std::expm1(-1e-9), 1e6);
  const auto turned = run_layer(
      [](Layer& l, Var x) {
        const Var A = x.graph->constant({2, 2}, rotation(2, 1.0 - 1e-9, 1.0));
        return reshape(linear(l, {"s", {1, 2}, "s"}, A, reshape(x, {l.steps(), l.batch(), 1, 1}) * x.graph->constant({2}, {1.0, 0.0})),
                       {l.steps(), l.batch(), 2});
      },
      1e3);
  CHECK(largest(values_of(turned, "output")) < 1e4);
  const auto cell = run_layer(
      [](Layer& l, Var x) {
        return step(l, {{"s", {1}, "s"}}, {x},
                    [](Cell&, std::span<const Var> u, std::span<const Var> s) { return std::vector<Var>{s[0] * (1.0 - 1e-9) + u[0]}; })[0];
      },
      1.0);
  CHECK_CLOSE(values_of(cell, "output").back(), 999500.1666, 0.01);
}

TEST_CASE("the norm of a gradient is followed below the range in scans as in loops") {
  for (const std::string kind : {"diagonal", "linear"})
    for (const std::string form : {"sequential", "scan", "chunkwise"}) {
      if (kind == "linear" && form == "chunkwise") continue;
      for (const std::string dtype : {"f64", "f32"}) {
        const auto trace = run_layer(
            [&](Layer& l, Var x) {
              if (kind == "diagonal") return diagonal(l, {"s", {1}, "s"}, reshape(constant_like(x, 1e-9), {1}), x);
              return reshape(linear(l, {"s", {1, 1}, "s"}, x.graph->constant({1, 1}, {1e-9}), reshape(x, {l.steps(), l.batch(), 1, 1})),
                             x.shape());
            },
            1.0, dtype, 100, form, 1);
        const Numbers& norms = values_of(trace, "gradient/state/0/s");
        for (std::size_t t = 0; t < 100; ++t) CHECK_CLOSE(norms[t], -9.0 * static_cast<double>(99 - t), 1e-4);
      }
    }
}

TEST_CASE("segments: a memory that is handed on thousands of times, by a factor within 1e-9 of 0 and of 1") {
  for (const double factor : {1.0 - 1e-9, 1e-9}) {
    const auto trace = run_layer(
        [&](Layer& l, Var x) {
          const Var first = l.parameter("first", {1, 1}, init::constant(1.0), "the first memory");
          return segments(l, {{"memory", {1, 1}, "the memory"}}, {first}, x, 4, [&](Cell&, std::span<const Var> m, Var tokens) {
            return SegmentResult{tokens + m[0], tokens.dim(1) == 4 ? std::vector<Var>{m[0] * factor} : std::vector<Var>{}};
          });
        },
        1e-30, "f64", 8000);
    CHECK_CLOSE(values_of(trace, "output").back(), std::pow(factor, 1999.0) + 1e-30, factor == 1e-9 ? 1e-40 : 1e-12);
  }
}
