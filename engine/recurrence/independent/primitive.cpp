// SPDX-License-Identifier: GPL-3.0-or-later
#include "recurrence/primitive.h"

#include "recurrence/independent/independent.h"

namespace reclab::primitives_by_name {
namespace {

using namespace primitive;

constexpr std::pair<const char*, Activation> activations[] = {
    {"identity", Activation::identity}, {"relu", Activation::relu}, {"sigmoid", Activation::sigmoid}, {"tanh", Activation::tanh}};

std::vector<ExtremePrimitive> extremes() {
  Extremes add;
  const std::int64_t T = 3000, n = 6;
  for (const auto& [name, f] : activations) {
    const auto build = [f = f](Bench& bench, Form form) {
      return bench.keep(independent(bench.graph, form, f, bench["x"], bench["u"])).trajectories[0];
    };
    add(name, newtons(), {{"u", {n}, edges()}, normal("x", {T, 1, n}, 1e3, 1)}, build);
  }
  return add.found;
}

}  // namespace

Primitive independent();  // in the table that the build writes
Primitive independent() {
  constexpr std::int64_t batch = CheckedPrimitive::batch;
  using Argument = TimedPrimitive::Argument;
  Primitive p;
  p.timed.title = "Independent recurrence";
  p.timed.equations = {"h_t = relu(x_t + u ∘ h_{t-1})"};
  p.timed.hyper = {width(64)};
  p.timed.spectrum = "relu'(x_t + u ∘ h_{t-1}) ∘ u, an entry each";
  p.timed.arguments = [](const Hyper& h) { return std::vector<Argument>{{h.integer("width")}}; };
  p.timed.layer = [](Layer& l, Var x) {
    const Shape shape{l.hyper.integer("width")};
    return independent(l, {"h", shape, "The state."}, Activation::relu, x,
                       l.parameter("u", shape, init::uniform(0.0, 1.0), "What each entry sees of itself."));
  };

  for (const auto& [name, f] : activations)
    p.check(std::string("independent, ") + name, newtons(), [f = f](Form form, Graph& graph, RandomLeaves& x, std::int64_t T) {
      const Var drive = x.real({T, batch, 5}), u = x.real({5});
      return made(x, independent(graph, form, f, drive, u));
    });

  p.extremes = extremes;
  return p;
}

}  // namespace reclab::primitives_by_name
