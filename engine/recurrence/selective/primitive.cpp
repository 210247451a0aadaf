// SPDX-License-Identifier: GPL-3.0-or-later
#include "recurrence/primitive.h"

#include "recurrence/selective/selective.h"

namespace reclab::primitives_by_name {
namespace {

using namespace primitive;

std::vector<ExtremePrimitive> extremes() {
  Extremes add;
  const std::int64_t T = 1500, C = 3, N = 4;
  for (const double size : {1e-9, 1.0, 1e3})
    for (const bool record : {false, true})
      add("step " + text(size), scans(),
          {chosen("dt", {T, 1, C}, {size, 1e-3 * size}, 1), chosen("a", {C, N}, {-1e-9, -1.0, -20.7, -1e6}, 2),
           normal("x", {T, 1, C}, 1e3, 3), normal("b", {T, 1, N}, 1.0, 4), normal("c", {T, 1, N}, 1e3, 5)},
          [record](Bench& bench, Form form) {
            const SelectiveVars vars = selective(bench.graph, form, bench["dt"], bench["a"], bench["x"], bench["b"], bench["c"], record);
            bench.keep(vars);
            return vars.output;
          });
  return add.found;
}

}  // namespace

Primitive selective();  // in the table that the build writes
Primitive selective() {
  constexpr std::int64_t batch = CheckedPrimitive::batch;
  using Argument = TimedPrimitive::Argument;
  Primitive p;
  p.timed.title = "Selective recurrence";
  p.timed.equations = {"h_t = exp(Δ_t A) ∘ h_{t-1} + Δ_t x_t b_tᵀ", "y_t = h_t c_t"};
  p.timed.hyper = {hyper_integer("width", "D", 64, 1, 1 << 20, "Channels.", "channels"),
                   hyper_integer("state", "N", 16, 1, 1024, "States of each channel.", "states")};
  p.timed.spectrum = "the factors exp(Δ_t A)";
  p.timed.arguments = [](const Hyper& h) {
    return std::vector<Argument>{{h.integer("width"), 0.0, 0.001, 0.1}, {h.integer("width")}, {h.integer("state")}, {h.integer("state")}};
  };
  p.timed.layer = [](Layer& l, Var x) {
    Arguments next(l, x);
    const std::int64_t D = l.hyper.integer("width"), N = l.hyper.integer("state");
    const Var A = l.parameter("A", {D, N}, init::each([=](Rng&, std::int64_t i) { return -static_cast<double>(i % N + 1); }),
                              "A; starts at −1 to −N in each channel.");
    const Var dt = next({D}), u = next({D}), b = next({N}), c = next({N});
    return selective(l, {"h", {D, N}, "The state."}, dt, A, u, b, c);
  };

  for (const bool record : {false, true})
    p.check(record ? "selective, every state kept" : "selective", scans(),
            [record](Form form, Graph& graph, RandomLeaves& x, std::int64_t T) {
              const Var dt = x.real({T, batch, 3}, 0.1, 1.0), a = x.real({3, 4}, -1.0, 0.0), u = x.real({T, batch, 3}),
                        b = x.real({T, batch, 4}), c = x.real({T, batch, 4});
              const SelectiveVars vars = selective(graph, form, dt, a, u, b, c, record);
              return made(x, vars, vars.output);
            });

  p.extremes = extremes;
  return p;
}

}  // namespace reclab::primitives_by_name
