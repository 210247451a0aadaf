// SPDX-License-Identifier: GPL-3.0-or-later
#include "recurrence/primitive.h"

#include <cmath>
#include <tuple>

#include "recurrence/outer/outer.h"

namespace reclab::primitives_by_name {
namespace {

using namespace primitive;

std::vector<ExtremePrimitive> extremes() {
  Extremes add;
  const std::int64_t H = 2, K = 4, V = 3;
  for (const std::int64_t T : {1, 70, 600}) {
    const Inputs qkv{normal("q", {T, 1, H, K}, 1e3, 1), normal("k", {T, 1, H, K}, 1e3, 2), normal("v", {T, 1, H, V}, 1e3, 3)};
    const auto with = [&](const Input& decay) {
      Inputs all = qkv;
      all.push_back(decay);
      return all;
    };
    // The sequential form keeps every state, or is one operation that keeps none.
    for (const bool record : {true, false})
      for (const ReadOrder read : {ReadOrder::after, ReadOrder::before}) {
        const auto made = [record, read](Bench& bench, Form form) {
          const Var decay = bench.in.contains("g") ? bench["g"] : Var{};
          return bench.keep(outer(bench.graph, form, {bench["q"], bench["k"], bench["v"], decay, read}, record)).output;
        };
        const std::string steps = std::to_string(T) + (record ? " steps, " : " steps, not recorded, ") +
                                  (read == ReadOrder::before ? "read before the update, " : "");
        add(steps + "no decay", {Form::sequential, Form::chunkwise, Form::attention}, qkv, made);
        add(steps + "a decay a head", {Form::sequential, Form::scan, Form::chunkwise, Form::attention},
            with(chosen("g", {T, 1, H, 1}, log_edges(), 4)), made);
        add(steps + "a constant decay a head", {Form::sequential, Form::scan, Form::chunkwise, Form::attention},
            with({"g", {H, 1}, {-1e-9, std::log(1e-9)}}), made);
        add(steps + "a decay a key", scans(), with(chosen("g", {T, 1, H, K}, log_edges(), 5)), made);
        add(steps + "a constant decay a key", scans(), with(chosen("g", {H, K}, log_edges(), 6)), made);
      }
  }
  return add.found;
}

}  // namespace

Primitive outer();  // in the table that the build writes
Primitive outer() {
  constexpr std::int64_t batch = CheckedPrimitive::batch;
  using Argument = TimedPrimitive::Argument;
  Primitive p;
  p.timed.title = "Outer-product memory";
  p.timed.equations = {"S_t = G_t ∘ S_{t-1} + k_t v_tᵀ", "y_t = S_tᵀ q_t"};
  p.timed.hyper = heads();
  p.timed.hyper.push_back(
      hyper_choice("decay", "none", {"none", "scalar", "key"}, "G_t: ones, one factor a head, or one for each key dimension."));
  p.timed.hyper.push_back(
      hyper_choice("read", "after", {"after", "before"}, "Whether a step reads S_t, or S_{t-1} and its own token with a bonus of 1."));
  p.timed.spectrum = "the factors G_t";
  const auto decays = [](const Hyper& h) {
    return h.choice("decay") == "none" ? 0 : h.choice("decay") == "scalar" ? h.integer("heads") : h.integer("heads") * h.integer("key");
  };
  p.timed.arguments = [decays](const Hyper& h) {
    const std::int64_t n = h.integer("heads"), key = h.integer("key");
    return std::vector<Argument>{
        {n * key, 1.0 / std::sqrt(static_cast<double>(key))}, {n * key}, {n * h.integer("value")}, {decays(h), 0.0, -0.1, 0.0}};
  };
  p.timed.layer = [](Layer& l, Var x) {
    Arguments next(l, x);
    const Var q = next(of_heads(l, "key")), k = next(of_heads(l, "key")), v = next(of_heads(l, "value"));
    const std::string& decay = l.hyper.choice("decay");
    const Var log_decay = decay == "none" ? Var{} : next(decay == "scalar" ? Shape{l.hyper.integer("heads"), 1} : of_heads(l, "key"));
    const bool before = l.hyper.choice("read") == "before";
    return flat(
        l, outer(l, memory_of_heads(l),
                 {q, k, v, log_decay, before ? ReadOrder::before : ReadOrder::after, before ? l.graph().constant({1}, {1.0}) : Var{}}));
  };

  for (const auto& [decay, factors] :
       std::vector<std::pair<std::string, std::int64_t>>{{"", 0}, {", decay by head", 1}, {", decay by key", 4}})
    for (const auto& [reading, before, bonus] :
         std::vector<std::tuple<std::string, bool, bool>>{{"", false, false}, {", read before", true, false}, {", bonus", true, true}}) {
      std::vector<Form> forms{Form::sequential, Form::chunkwise};
      if (factors) forms.insert(forms.begin() + 1, Form::scan);
      if (factors < 2) forms.push_back(Form::attention);
      p.check("outer" + decay + reading, forms, [factors, before, bonus](Form form, Graph& graph, RandomLeaves& x, std::int64_t T) {
        const Var q = x.real({T, batch, 2, 4}), k = x.real({T, batch, 2, 4}), v = x.real({T, batch, 2, 3});
        OuterInputs in{.q = q, .k = k, .v = v, .read = before ? ReadOrder::before : ReadOrder::after};
        if (factors) in.key_decay = x.real({T, batch, 2, factors}, -0.5, 0.0);
        if (bonus) in.bonus = x.real({2, 4});
        const OuterVars vars = outer(graph, form, in, false);
        return made(x, vars, vars.output);
      });
    }

  p.extremes = extremes;
  return p;
}

}  // namespace reclab::primitives_by_name
