// SPDX-License-Identifier: GPL-3.0-or-later
#include "recurrence/primitive.h"

#include "recurrence/diagonal/diagonal.h"

namespace reclab::primitives_by_name {
namespace {

using namespace primitive;

std::vector<ExtremePrimitive> extremes() {
  Extremes add;
  const std::int64_t T = 3000, w = 6;
  add("real, by step", scans(), {chosen("a", {T, 1, w}, edges(), 1), normal("b", {T, 1, w}, 1e3, 2)},
      [](Bench& bench, Form form) { return bench.keep(diagonal(bench.graph, form, bench["a"], bench["b"])).trajectories[0]; });
  add("real, time-invariant", scans(), {{"a", {w}, edges()}, normal("b", {T, 1, w}, 1e3, 2)},
      [](Bench& bench, Form form) { return bench.keep(diagonal(bench.graph, form, bench["a"], bench["b"])).trajectories[0]; });
  Inputs varying{normal("b_re", {T, 1, w}, 1e3, 2), normal("b_im", {T, 1, w}, 1e3, 3)}, invariant = varying;
  add_numbers(varying, "a", {T, 1, w}, edges(), 4);
  add_numbers(invariant, "a", {w}, edges(), 4);
  const auto made = [](Bench& bench, Form form) {
    return real(bench.keep(diagonal(bench.graph, form, bench.number("a"), bench.number("b"))).trajectories[0]);
  };
  add("complex, by step", scans(), varying, made);
  const std::vector<Form> all{Form::sequential, Form::scan, Form::chunkwise, Form::convolution};
  add("complex, time-invariant", all, invariant, made);
  {
    const std::int64_t C = 2, N = 6;
    Inputs inputs{normal("u", {T, 1, C}, 1e3, 1)};
    add_numbers(inputs, "a", {C, N}, {1e-9, 1.0 - 1e-9, 0.0, 1.0, 0.5}, 2);
    add_numbers(inputs, "b", {C, N}, {1e3, 1e-3}, 4);
    add_numbers(inputs, "w", {C, N}, {1e3, 1.0}, 6);
    add("bank", {Form::sequential, Form::scan, Form::chunkwise, Form::convolution}, inputs, [](Bench& bench, Form form) {
      return bench.keep(diagonal_bank(bench.graph, form, bench.number("a"), bench.number("b"), bench.number("w"), bench["u"])).output;
    });
  }
  return add.found;
}

}  // namespace

Primitive diagonal();  // in the table that the build writes
Primitive diagonal() {
  constexpr std::int64_t batch = CheckedPrimitive::batch;
  using Argument = TimedPrimitive::Argument;
  Primitive p;
  p.timed.title = "Diagonal recurrence";
  p.timed.equations = {"s_t = a_t ∘ s_{t-1} + b_t"};
  p.timed.hyper = {width(64)};
  p.timed.spectrum = "the factors a_t";
  p.timed.arguments = [](const Hyper& h) { return std::vector<Argument>{{h.integer("width"), 0.0, 0.8, 1.0}, {h.integer("width")}}; };
  p.timed.layer = [](Layer& l, Var x) {
    Arguments next(l, x);
    const Shape shape{l.hyper.integer("width")};
    const Var a = next(shape), b = next(shape);
    return diagonal(l, {"s", shape, "The state."}, a, b);
  };

  p.check("diagonal, real", scans(), [](Form form, Graph& graph, RandomLeaves& x, std::int64_t T) {
    const Var a = x.real({T, batch, 7}, 0.5, 1.0), b = x.real({T, batch, 7});
    return made(x, diagonal(graph, form, a, b));
  });
  p.check("diagonal, complex", scans(), [](Form form, Graph& graph, RandomLeaves& x, std::int64_t T) {
    const Var a = x.complex({T, batch, 7}, 0.5, 1.0), b = x.complex({T, batch, 7});
    return made(x, diagonal(graph, form, a, b));
  });
  p.check("diagonal, time-invariant", {Form::sequential, Form::scan, Form::chunkwise, Form::convolution},
          [](Form form, Graph& graph, RandomLeaves& x, std::int64_t T) {
            const Var a = x.complex({7}, 0.5, 1.0), b = x.complex({T, batch, 7});
            return made(x, diagonal(graph, form, a, b));
          });
  p.check("diagonal bank", {Form::sequential, Form::scan, Form::chunkwise, Form::convolution},
          [](Form form, Graph& graph, RandomLeaves& x, std::int64_t T) {
            const Var a = x.complex({3, 4}, 0.5, 1.0), b = x.complex({3, 4}), w = x.complex({3, 4}), u = x.real({T, batch, 3});
            const BankVars bank = diagonal_bank(graph, form, a, b, w, u);
            return made(x, bank, bank.output);
          });
  p.check("diagonal bank, real", {Form::sequential, Form::scan, Form::chunkwise, Form::convolution},
          [](Form form, Graph& graph, RandomLeaves& x, std::int64_t T) {
            const Var a = x.real({3, 4}, 0.5, 1.0), b = x.real({3, 4}), w = x.real({3, 4}), u = x.real({T, batch, 3});
            const BankVars bank = diagonal_bank(graph, form, a, b, w, u);
            return made(x, bank, bank.output);
          });

  p.extremes = extremes;
  return p;
}

}  // namespace reclab::primitives_by_name
