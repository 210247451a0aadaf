// SPDX-License-Identifier: GPL-3.0-or-later
#include "recurrence/primitive.h"

#include <cmath>
#include <utility>

#include "recurrence/attention/attention.h"

namespace reclab::primitives_by_name {
namespace {

using namespace primitive;

std::vector<ExtremePrimitive> extremes() {
  Extremes add;
  for (const double size : {1e3, 1e-12, 1e12}) {
    // Where the largest score wins by far, its weight is 1 and a gradient of 0 is the exact one.
    add("attention, size " + text(size), {Form::sequential, Form::attention},
        {normal("q", {2, 200, 4}, size, 1), normal("k", {2, 200, 4}, size, 2), normal("v", {2, 200, 3}, 1e3, 3)},
        [](Bench& bench, Form form) {
          SoftmaxAttention a;
          a.q = bench["q"];
          a.k = bench["k"];
          a.v = bench["v"];
          return softmax_attention(a, form == Form::sequential);
        });
  }
  return add.found;
}

}  // namespace

Primitive attention();  // in the table that the build writes
Primitive attention() {
  constexpr std::int64_t batch = CheckedPrimitive::batch;
  using Argument = TimedPrimitive::Argument;
  Primitive p;
  p.timed.title = "Softmax attention";
  p.timed.equations = {"y_t = Σ_{s ≤ t} softmax_s(q_t · k_s) v_s"};
  p.timed.hyper = heads();
  p.timed.arguments = [](const Hyper& h) {
    const std::int64_t n = h.integer("heads"), key = h.integer("key");
    return std::vector<Argument>{{n * key, 1.0 / std::sqrt(static_cast<double>(key))}, {n * key}, {n * h.integer("value")}};
  };
  p.timed.layer = [](Layer& l, Var x) {
    Arguments next(l, x);
    const Var q = next(of_heads(l, "key")), k = next(of_heads(l, "key")), v = next(of_heads(l, "value"));
    return flat(l,
                attention(l, {"k", of_heads(l, "key"), "The keys so far."}, {"v", of_heads(l, "value"), "The values so far."}, q, k, v, 0));
  };

  p.check("attention", {Form::sequential, Form::attention}, [](Form form, Graph&, RandomLeaves& x, std::int64_t T) {
    SoftmaxAttention a;
    a.q = x.real({batch, T, 4});
    a.k = x.real({batch, T, 4});
    a.v = x.real({batch, T, 3});
    return std::vector<Var>{softmax_attention(a, form == Form::sequential)};
  });

  p.check("softmax of rows", {Form::sequential}, [](Form, Graph&, RandomLeaves& x, std::int64_t T) {
    const Var q = x.real({batch, T, 4}), k = x.real({batch, 5, 4}), v = x.real({batch, 5, 3});
    return std::vector<Var>{matmul(softmax_rows(matmul_transposed(q, k)), v)};
  });
  for (const auto& [name, weight] : {std::pair("relu squared", ScoreWeight::relu_squared), std::pair("laplace", ScoreWeight::laplace),
                                     std::pair("no activation", ScoreWeight::identity)})
    p.check(std::string("attention by pairs, ") + name, {Form::sequential, Form::attention},
            [weight = weight](Form form, Graph& graph, RandomLeaves& x, std::int64_t T) {
              constexpr std::int64_t past = 3, window = 4;
              PointwiseAttention a;
              a.weight = weight;
              a.q = x.real({batch, T, 4});
              a.k = x.real({batch, past + T, 4});
              a.v = x.real({batch, past + T, 3});
              a.q2 = x.real({batch, T, 2});
              a.rel = x.real({batch, window, 2});
              std::vector<double> low;
              for (std::int64_t i = 0; i < T; ++i) low.push_back(static_cast<double>(past + i - i % window));
              a.low = graph.constant({T}, std::move(low));
              a.window = window;
              return std::vector<Var>{pointwise_attention(a, form == Form::sequential)};
            });
  p.check("attention, a number a pair", {Form::sequential, Form::attention}, [](Form form, Graph&, RandomLeaves& x, std::int64_t T) {
    SoftmaxAttention a;
    a.q = x.real({batch, T, 2});
    a.k = x.real({batch, 2 + T, 2});
    a.v = x.real({batch, 2 + T, 3});
    a.pair = x.real({T, 2 + T});
    return std::vector<Var>{softmax_attention(a, form == Form::sequential)};
  });

  p.extremes = extremes;
  return p;
}

}  // namespace reclab::primitives_by_name
