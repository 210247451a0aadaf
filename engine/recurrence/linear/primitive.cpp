// SPDX-License-Identifier: GPL-3.0-or-later
#include "recurrence/primitive.h"

#include "recurrence/linear/linear.h"

namespace reclab::primitives_by_name {
namespace {

using namespace primitive;

std::vector<ExtremePrimitive> extremes() {
  Extremes add;
  const std::int64_t T = 1500, n = 4;
  for (const double radius : {1e-9, 1.0 - 1e-9, 1.0}) {
    const std::string name = "radius " + text(radius) + ", ";
    const auto made = [](Bench& bench, Form form) { return bench.keep(dense(bench.graph, form, bench["A"], bench["b"])).trajectories[0]; };
    add(name + "one matrix", {Form::sequential, Form::scan}, {{"A", {n, n}, rotation(n, radius, 0.3)}, normal("b", {T, 1, 2, n}, 1e3, 1)},
        made);
    std::vector<double> apart = rotation(n, radius, 0.3), by_step;
    const std::vector<double> other = rotation(n, 1.0, 0.9);
    apart.insert(apart.end(), other.begin(), other.end());
    add(name + "a matrix a copy", {Form::sequential, Form::scan}, {{"A", {2, n, n}, apart}, normal("b", {T, 1, 2, n}, 1e3, 1)}, made);
    for (std::int64_t t = 0; t < T; ++t) {
      const std::vector<double> one = rotation(n, t % 3 ? radius : 1.0, 0.1 * static_cast<double>(t % 7));
      by_step.insert(by_step.end(), one.begin(), one.end());
    }
    add(name + "a matrix a step", {Form::sequential, Form::scan}, {{"A", {T, 1, n, n}, by_step}, normal("b", {T, 1, 2, n}, 1e3, 1)}, made);
    add(name + "driven", {Form::sequential, Form::scan, Form::convolution},
        {{"A", {n, n}, rotation(n, radius, 0.3)}, normal("B", {n}, 1e3, 2), normal("u", {T, 1, 2}, 1e3, 1)}, [](Bench& bench, Form form) {
          return bench.keep(dense_driven(bench.graph, form, bench["A"], bench["B"], bench["u"])).trajectories[0];
        });
    add(name + "bank", {Form::sequential, Form::scan, Form::convolution},
        {{"A", {2, n, n}, apart}, normal("B", {2, n}, 1e3, 2), normal("C", {2, 3, n}, 1.0, 3), normal("u", {T, 1, 2}, 1e3, 1)},
        [](Bench& bench, Form form) {
          const DenseBankVars vars = dense_bank(bench.graph, form, bench["A"], bench["B"], bench["C"], bench["u"]);
          return bench.keep(vars).output;
        });
    Inputs bank{normal("u", {T, 1, 2}, 1e3, 1)};
    add_numbers(bank, "a", {2, 3}, {radius}, 2);
    add_numbers(bank, "p", {2, 3}, {1e-9, 1e-12}, 4);
    add_numbers(bank, "q", {2, 3}, {1e-3, 1e-9}, 6);
    add_numbers(bank, "b", {2, 3}, {1e3, 1.0}, 8);
    add_numbers(bank, "c", {2, 3}, {1e3, 1.0}, 10);
    add(name + "low rank", {Form::sequential, Form::scan, Form::convolution}, bank, [](Bench& bench, Form form) {
      const LowRankVars vars = low_rank_bank(
          bench.graph, form, {bench.number("a"), bench.number("p"), bench.number("q"), bench.number("b"), bench.number("c")}, bench["u"]);
      return bench.keep(vars).output;
    });
  }
  return add.found;
}

}  // namespace

Primitive linear();  // in the table that the build writes
Primitive linear() {
  constexpr std::int64_t batch = CheckedPrimitive::batch;
  using Argument = TimedPrimitive::Argument;
  Primitive p;
  p.timed.title = "Dense linear recurrence";
  p.timed.equations = {"s_t = A s_{t-1} + b_t"};
  p.timed.hyper = {width(32)};
  p.timed.spectrum = "eigenvalues of A";
  p.timed.arguments = [](const Hyper& h) { return std::vector<Argument>{{h.integer("width")}}; };
  p.timed.layer = [](Layer& l, Var x) {
    const std::int64_t n = l.hyper.integer("width");
    const Var A = l.parameter("A", {n, n}, init::orthogonal(0.95), "A; starts orthogonal times 0.95.");
    return flat(l, linear(l, {"s", {1, n}, "The state."}, A, reshape(x, {l.steps(), l.batch(), 1, n})));
  };

  p.check("dense", {Form::sequential, Form::scan}, [](Form form, Graph& graph, RandomLeaves& x, std::int64_t T) {
    const Var A = x.real({4, 4}, -0.4, 0.4), b = x.real({T, batch, 3, 4});
    return made(x, dense(graph, form, A, b));
  });
  p.check("dense, driven", {Form::sequential, Form::scan, Form::convolution}, [](Form form, Graph& graph, RandomLeaves& x, std::int64_t T) {
    const Var A = x.real({4, 4}, -0.4, 0.4), B = x.real({4}), u = x.real({T, batch, 3});
    return made(x, dense_driven(graph, form, A, B, u));
  });
  p.check("dense bank", {Form::sequential, Form::scan, Form::convolution}, [](Form form, Graph& graph, RandomLeaves& x, std::int64_t T) {
    const Var A = x.real({2, 3, 3}, -0.4, 0.4), B = x.real({2, 3}), C = x.real({2, 4, 3}), u = x.real({T, batch, 2});
    const DenseBankVars vars = dense_bank(graph, form, A, B, C, u);
    return made(x, vars, vars.output);
  });
  p.check("low-rank bank", {Form::sequential, Form::scan, Form::convolution}, [](Form form, Graph& graph, RandomLeaves& x, std::int64_t T) {
    const Shape shape{2, 3};
    const LowRankSystem system{x.complex(shape, 0.5, 0.8), x.complex(shape, 0.0, 0.2), x.complex(shape, 0.0, 0.2), x.complex(shape),
                               x.complex(shape)};
    const LowRankVars vars = low_rank_bank(graph, form, system, x.real({T, batch, 2}));
    return made(x, vars, vars.output);
  });

  p.extremes = extremes;
  return p;
}

}  // namespace reclab::primitives_by_name
