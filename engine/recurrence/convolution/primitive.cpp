// SPDX-License-Identifier: GPL-3.0-or-later
#include "recurrence/primitive.h"

#include "recurrence/convolution/convolution.h"

namespace reclab::primitives_by_name {
namespace {

using namespace primitive;

std::vector<ExtremePrimitive> extremes() {
  Extremes add;
  const std::int64_t T = 500, C = 3;
  add("convolution", {Form::sequential, Form::convolution}, {normal("kernel", {C, T}, 1e3, 1), normal("u", {T, 1, C}, 1e3, 2)},
      [](Bench& bench, Form form) {
        return form == Form::convolution ? convolve(bench["kernel"], bench["u"])
                                         : convolve_directly(bench["kernel"], bench["u"], bench["u"].dim(0));
      });
  return add.found;
}

}  // namespace

Primitive convolution();  // in the table that the build writes
Primitive convolution() {
  constexpr std::int64_t batch = CheckedPrimitive::batch;
  using Argument = TimedPrimitive::Argument;
  Primitive p;
  p.timed.title = "Long convolution";
  p.timed.equations = {"y_t[c] = Σ_{j ≤ t} K_j[c] u_{t−j}[c],  K_j[c] = λ[c]^j"};
  p.timed.hyper = {width(32)};
  p.timed.arguments = [](const Hyper& h) { return std::vector<Argument>{{h.integer("width")}}; };
  p.timed.layer = [](Layer& l, Var x) {
    const std::int64_t n = l.hyper.integer("width"), taps = l.steps() + l.cached_steps();
    const Var rate = l.parameter("log_lambda", {n, 1}, init::uniform(-0.1, 0.0), "Logarithm of λ; starts uniform in −0.1 to 0.");
    std::vector<double> ages;
    for (std::int64_t j = 0; j < taps; ++j) ages.push_back(static_cast<double>(j));
    return convolution(l, "u", exp(rate * x.graph->constant({1, taps}, std::move(ages))), x, "All inputs.");
  };

  p.check("convolution", {Form::convolution}, [](Form, Graph&, RandomLeaves& x, std::int64_t T) {
    const Var kernel = x.real({3, T}), u = x.real({T, batch, 3});
    return std::vector<Var>{convolve(kernel, u)};
  });

  p.extremes = extremes;
  return p;
}

}  // namespace reclab::primitives_by_name
