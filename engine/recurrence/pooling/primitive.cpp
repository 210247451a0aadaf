// SPDX-License-Identifier: GPL-3.0-or-later
#include "recurrence/primitive.h"

#include <cmath>

#include "recurrence/pooling/pooling.h"

namespace reclab::primitives_by_name {
namespace {

using namespace primitive;

/// tanh of the windows' sums, expanded again, beside the held rows.
std::vector<Var> down_and_up(const Rate& rate, std::int64_t factor, Var x, Var before, Var after) {
  const Pooled down = pooled(rate, factor, x, before);
  const Expanded up = expanded(rate, factor, tanh(down.windows), after);
  std::vector<Var> all{up.x, up.held, only_whole(rate.slower(factor), reversed_whole(rate.slower(factor), down.windows))};
  if (down.held) all.push_back(down.held);
  return all;
}

std::vector<ExtremePrimitive> extremes() {
  Extremes add;
  for (const double size : {1e3, 1e-12})
    add("pooling, size " + text(size), {Form::sequential},
        {normal("x", {203, 1, 4}, size, 1), normal("before", {2, 1, 4}, size, 2), normal("after", {1, 1, 12}, size, 3)},
        [](Bench& bench, Form) {
          const Rate rate{1, 203, bench.graph.constant({1, 1, 1}, {2.0})};
          return down_and_up(rate, 3, bench["x"], bench["before"], bench["after"])[0];
        });
  return add.found;
}

}  // namespace

Primitive pooling();  // in the table that the build writes
Primitive pooling() {
  constexpr std::int64_t batch = CheckedPrimitive::batch;
  Primitive p;
  p.timed.title = "Pooling of steps";
  p.timed.equations = {"z_k = (x_{kp}, …, x_{kp+p-1}), a window of p steps", "y_{kp+j} = channels j, p + j, … of tanh(z_{k-1})"};
  p.timed.hyper = {width(64), hyper_integer("pool", "p", 4, 1, 1024, "Steps of a window.", "steps")};
  p.timed.spectrum = "none: the steps of a window wait for its last one";
  p.timed.arguments = [](const Hyper& h) { return std::vector<TimedPrimitive::Argument>{{h.integer("width")}}; };
  p.timed.layer = [](Layer& l, Var x) { return expanded(l, tanh(pooled(l, x, l.hyper.integer("pool"))), l.hyper.integer("pool")); };

  for (const std::int64_t phase : {0, 2, 7})
    p.check("pooling, " + std::to_string(phase) + " steps on", {Form::sequential},
            [phase](Form, Graph& graph, RandomLeaves& x, std::int64_t T) {
              const Rate rate{
                  1, T, graph.constant({1, batch, 1}, std::vector<double>(static_cast<std::size_t>(batch), static_cast<double>(phase)))};
              return down_and_up(rate, 4, x.real({T, batch, 3}), x.real({3, batch, 3}), x.real({1, batch, 12}));
            });
  p.extremes = extremes;
  return p;
}

}  // namespace reclab::primitives_by_name
