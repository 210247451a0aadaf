// SPDX-License-Identifier: GPL-3.0-or-later
#include "recurrence/primitive.h"

#include "recurrence/step/step.h"

namespace reclab::primitives_by_name {
namespace {

using namespace primitive;

std::vector<ExtremePrimitive> extremes() {
  Extremes add;
  const std::int64_t T = 400, n = 3;
  const std::vector<Form> all = newtons();
  for (const double decay : {1e-9, 1.0 - 1e-9}) {
    add("linear, decay " + text(decay), all, {normal("u", {T, 1, n}, 1e3, 1)}, [decay](Bench& bench, Form form) {
      return bench
          .keep(step(
              bench.graph, 1, {{"s", {n}}}, {bench["u"]},
              [decay](Cell&, std::span<const Var> u, std::span<const Var> s) { return std::vector<Var>{s[0] * decay + u[0]}; }, {}, form))
          .trajectories[0];
    });
  }
  add("gated", all, {normal("u", {T, 1, n}, 1e3, 1), normal("f", {T, 1, n}, 1e3, 2)}, [](Bench& bench, Form form) {
    return bench
        .keep(step(
            bench.graph, 1, {{"s", {n}}}, {bench["u"], bench["f"]},
            [](Cell&, std::span<const Var> u, std::span<const Var> s) {
              const Var keep = sigmoid(u[1] + s[0]);
              return std::vector<Var>{keep * s[0] + (1.0 - keep) * tanh(u[0])};
            },
            {}, form))
        .trajectories[0];
  });
  return add.found;
}

}  // namespace

Primitive step();  // in the table that the build writes
Primitive step() {
  constexpr std::int64_t batch = CheckedPrimitive::batch;
  using Argument = TimedPrimitive::Argument;
  Primitive p;
  p.timed.title = "Stepped recurrence";
  p.timed.equations = {"s_t = tanh(W s_{t-1} + u_t)"};
  p.timed.hyper = {width(32)};
  p.timed.spectrum = "eigenvalues of the recurrent Jacobian ∂s_t/∂s_{t-1}";
  p.timed.arguments = [](const Hyper& h) { return std::vector<Argument>{{h.integer("width")}}; };
  p.timed.layer = [](Layer& l, Var x) {
    const std::int64_t n = l.hyper.integer("width");
    const Var W = l.parameter("W", {n, n}, init::orthogonal(0.95), "W; starts orthogonal times 0.95.");
    return step(l, {{"s", {n}, "The state."}}, {x},
                [=](Cell&, std::span<const Var> u, std::span<const Var> s) { return std::vector<Var>{tanh(linear(s[0], W, u[0]))}; })[0];
  };

  p.check("step", newtons(), [](Form form, Graph& graph, RandomLeaves& x, std::int64_t T) {
    const Var u = x.real({T, batch, 3}), W = x.real({5, 3}), R = x.real({5, 5}, -0.4, 0.4), b = x.real({5});
    const auto cell = [=](Cell&, std::span<const Var> tokens, std::span<const Var> states) {
      return std::vector<Var>{tanh(linear(tokens[0], W, b) + linear(states[0], R))};
    };
    return made(x, step(graph, batch, {{"h", {5}}}, {u}, cell, {}, form));
  });

  p.extremes = extremes;
  return p;
}

}  // namespace reclab::primitives_by_name
