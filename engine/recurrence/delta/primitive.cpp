// SPDX-License-Identifier: GPL-3.0-or-later
#include "recurrence/primitive.h"

#include <cmath>

#include "recurrence/delta/delta.h"

namespace reclab::primitives_by_name {
namespace {

using namespace primitive;

std::vector<ExtremePrimitive> extremes() {
  Extremes add;
  const std::int64_t T = 300, H = 2, K = 4, V = 3;
  const auto made = [](Bench& bench, Form form) {
    return bench.keep(delta(bench.graph, form, bench["q"], bench["k"], bench["v"], bench["beta"])).output;
  };
  for (const double size : {1.0, 1e3}) {
    Input keys = normal("k", {T, 1, H, K}, 1.0, 1);
    for (std::size_t at = 0; at < keys.values.size(); at += static_cast<std::size_t>(K)) {
      double squares = 0.0;
      for (std::size_t i = at; i < at + static_cast<std::size_t>(K); ++i) squares += keys.values[i] * keys.values[i];
      for (std::size_t i = at; i < at + static_cast<std::size_t>(K); ++i) keys.values[i] *= size / std::sqrt(squares);
    }
    std::vector<double> shares;
    for (const double share : {1e-9, 1.0 - 1e-9, 1.0, 0.0, 2.0}) shares.push_back(share / (size * size));
    add("keys of size " + text(size), {Form::sequential, Form::chunkwise},
        {keys, normal("q", {T, 1, H, K}, 1e3, 2), normal("v", {T, 1, H, V}, 1e3, 3), chosen("beta", {T, 1, H, 1}, shares, 4)}, made);
  }
  return add.found;
}

}  // namespace

Primitive delta();  // in the table that the build writes
Primitive delta() {
  constexpr std::int64_t batch = CheckedPrimitive::batch;
  using Argument = TimedPrimitive::Argument;
  Primitive p;
  p.timed.title = "Delta-rule memory";
  p.timed.equations = {"S_t = (I − β_t k_t k_tᵀ) S_{t-1} + β_t k_t v_tᵀ", "y_t = S_tᵀ q_t"};
  p.timed.hyper = heads();
  p.timed.spectrum = "eigenvalues of I − β_t k_t k_tᵀ";
  p.timed.arguments = [](const Hyper& h) {
    const std::int64_t n = h.integer("heads"), key = h.integer("key");
    const double unit = 1.0 / std::sqrt(static_cast<double>(key));  // |k| about 1, or the memory would grow
    return std::vector<Argument>{{n * key, unit}, {n * key, unit}, {n * h.integer("value")}, {n, 0.0, 0.0, 0.5}};
  };
  p.timed.layer = [](Layer& l, Var x) {
    Arguments next(l, x);
    const Var q = next(of_heads(l, "key")), k = next(of_heads(l, "key")), v = next(of_heads(l, "value")),
              beta = next({l.hyper.integer("heads"), 1});
    return flat(l, delta(l, memory_of_heads(l), q, k, v, beta));
  };

  p.check("delta", {Form::sequential, Form::chunkwise}, [](Form form, Graph& graph, RandomLeaves& x, std::int64_t T) {
    const Var q = x.real({T, batch, 2, 4}), k = x.real({T, batch, 2, 4}, -0.5, 0.5), v = x.real({T, batch, 2, 3}),
              beta = x.real({T, batch, 2, 1}, 0.1, 0.9);
    const OuterVars vars = delta(graph, form, q, k, v, beta);
    return made(x, vars, vars.output);
  });

  p.extremes = extremes;
  return p;
}

}  // namespace reclab::primitives_by_name
