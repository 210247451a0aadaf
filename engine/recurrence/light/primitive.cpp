// SPDX-License-Identifier: GPL-3.0-or-later
#include "recurrence/primitive.h"

#include "recurrence/light/light.h"

namespace reclab::primitives_by_name {
namespace {

using namespace primitive;

std::vector<ExtremePrimitive> extremes() {
  Extremes add;
  const std::int64_t T = 300, n = 5;
  const Inputs gates{normal("u", {T, 1, n}, 1e3, 1), chosen("a", {T, 1, n}, {-800.0, -20.0, 0.0, 20.0, 800.0}, 2),
                     chosen("b", {T, 1, n}, {-800.0, 0.0, 800.0}, 3)};
  Inputs seeing = gates;
  seeing.push_back(normal("v", {n}, 1e-3, 4));
  seeing.push_back(normal("w", {n}, 1.0, 5));
  const auto read = [](Bench& bench, const LightVars& vars) { return bench.keep(vars).trajectories[0] * vars.reset; };
  add("linear", scans(), gates,
      [=](Bench& bench, Form form) { return read(bench, light(bench.graph, form, bench["u"], bench["a"], bench["b"])); });
  add("gates that see the state", newtons(), seeing, [=](Bench& bench, Form form) {
    return read(bench, light(bench.graph, form, bench["u"], bench["a"], bench["b"], bench["v"], bench["w"]));
  });
  return add.found;
}

}  // namespace

Primitive light();  // in the table that the build writes
Primitive light() {
  constexpr std::int64_t batch = CheckedPrimitive::batch;
  using Argument = TimedPrimitive::Argument;
  Primitive p;
  p.timed.title = "Light recurrence";
  p.timed.equations = {"f_t = σ(a_t + v ∘ c_{t-1})", "c_t = f_t ∘ c_{t-1} + (1 − f_t) ∘ u_t"};
  p.timed.hyper = {width(64)};
  p.timed.spectrum = "∂c_t/∂c_{t-1}, an entry each";
  p.timed.arguments = [](const Hyper& h) { return std::vector<Argument>(3, {h.integer("width")}); };
  p.timed.layer = [](Layer& l, Var x) {
    Arguments next(l, x);
    const Shape shape{l.hyper.integer("width")};
    const Var u = next(shape), a = next(shape), b = next(shape);
    const Var v = l.parameter("v", shape, init::uniform(-0.5, 0.5), "What the forget gate sees of the state."),
              w = l.parameter("w", shape, init::uniform(-0.5, 0.5), "What the reset gate sees of it.");
    const LightReads reads = light(l, {"c", shape, "The state."}, u, a, b, v, w);
    return reads.state * reads.reset;
  };

  p.check("light recurrence", newtons(), [](Form form, Graph& graph, RandomLeaves& x, std::int64_t T) {
    const Var u = x.real({T, batch, 5}), a = x.real({T, batch, 5}), b = x.real({T, batch, 5}), v = x.real({5}), w = x.real({5});
    const LightVars vars = light(graph, form, u, a, b, v, w);
    return made(x, vars, vars.reset);
  });
  p.check("light recurrence, linear", scans(), [](Form form, Graph& graph, RandomLeaves& x, std::int64_t T) {
    const Var u = x.real({T, batch, 5}), a = x.real({T, batch, 5}), b = x.real({T, batch, 5});
    const LightVars vars = light(graph, form, u, a, b);
    return made(x, vars, vars.reset);
  });

  p.extremes = extremes;
  return p;
}

}  // namespace reclab::primitives_by_name
