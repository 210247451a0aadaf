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
  // Decays by value, alone and with decays by key, and phases of any size.
  for (const std::int64_t T : {1, 70, 600})
    for (const ReadOrder read : {ReadOrder::after, ReadOrder::before}) {
      const auto made = [read](Bench& bench, Form form) {
        const auto given = [&](const char* name) { return bench.in.contains(name) ? bench[name] : Var{}; };
        return bench
            .keep(outer(bench.graph, form,
                        {.q = bench["q"],
                         .k = bench["k"],
                         .v = bench["v"],
                         .key_decay = given("g"),
                         .read = read,
                         .value_decay = given("b"),
                         .phase = given("theta")},
                        true))
            .output;
      };
      const std::string steps = std::to_string(T) + " steps, " + (read == ReadOrder::before ? "read before the update, " : "");
      const Inputs qkv{normal("q", {T, 1, H, K}, 1e3, 1), normal("k", {T, 1, H, K}, 1e3, 2), normal("v", {T, 1, H, V}, 1e3, 3)};
      const Input by_key = chosen("g", {T, 1, H, K}, log_edges(), 5), by_head = chosen("g", {T, 1, H, 1}, log_edges(), 4),
                  by_value = chosen("b", {T, 1, H, V}, log_edges(), 7), theta = chosen("theta", {T, 1, H, K}, {0.0, 1e-9, 1.0, -3.0}, 8);
      const auto with = [&](std::initializer_list<Input> more) {
        Inputs all = qkv;
        all.insert(all.end(), more);
        return all;
      };
      add(steps + "a decay a value", scans(), with({by_value}), made);
      add(steps + "a constant decay a value", scans(), with({chosen("b", {H, V}, log_edges(), 7)}), made);
      add(steps + "a decay a key and a value", scans(), with({by_key, by_value}), made);
      add(steps + "phases", {Form::sequential, Form::scan, Form::chunkwise, Form::attention}, with({theta}), made);
      add(steps + "phases and a decay a head", {Form::sequential, Form::scan, Form::chunkwise, Form::attention}, with({theta, by_head}),
          made);
      add(steps + "phases and a decay a key", scans(), with({theta, by_key}), made);
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
      hyper_choice("decay", "none", {"none", "scalar", "key", "value", "both"},
                   "G_t: ones, one factor a head, or one for each key dimension, each value dimension, or the products of both."));
  p.timed.hyper.push_back(
      hyper_choice("read", "after", {"after", "before"}, "Whether a step reads S_t, or S_{t-1} and its own token with a bonus of 1."));
  p.timed.hyper.push_back(hyper_flag("phases", false, "Whether key dimensions turn: the memory is complex."));
  p.timed.spectrum = "the factors G_t";
  const auto by_key = [](const Hyper& h) { return h.choice("decay") == "key" || h.choice("decay") == "both"; };
  const auto by_value = [](const Hyper& h) { return h.choice("decay") == "value" || h.choice("decay") == "both"; };
  p.timed.arguments = [=](const Hyper& h) {
    const std::int64_t n = h.integer("heads"), key = h.integer("key"), value = h.integer("value");
    return std::vector<Argument>{{n * key, 1.0 / std::sqrt(static_cast<double>(key))},
                                 {n * key},
                                 {n * value},
                                 {by_key(h)                       ? n * key
                                  : h.choice("decay") == "scalar" ? n
                                                                  : 0,
                                  0.0, -0.1, 0.0},
                                 {by_value(h) ? n * value : 0, 0.0, -0.1, 0.0},
                                 {h.flag("phases") ? n * key : 0, 0.0, -0.1, 0.1}};
  };
  p.timed.layer = [=](Layer& l, Var x) {
    Arguments next(l, x);
    const Var q = next(of_heads(l, "key")), k = next(of_heads(l, "key")), v = next(of_heads(l, "value"));
    OuterInputs in{.q = q, .k = k, .v = v};
    if (by_key(l.hyper) || l.hyper.choice("decay") == "scalar")
      in.key_decay = next(by_key(l.hyper) ? of_heads(l, "key") : Shape{l.hyper.integer("heads"), 1});
    if (by_value(l.hyper)) in.value_decay = next(of_heads(l, "value"));
    if (l.hyper.flag("phases")) in.phase = next(of_heads(l, "key"));
    if (l.hyper.choice("read") == "before") {
      in.read = ReadOrder::before;
      in.bonus = l.graph().constant({1}, {1.0});
    }
    return flat(l, outer(l, memory_of_heads(l), in));
  };

  // Everything that a memory can be with everything else that it can be.
  struct Turning {
    std::string name;
    bool phase, varies, complex;
  };
  for (const auto& [decay, factors] :
       std::vector<std::pair<std::string, std::int64_t>>{{"", 0}, {", decay by head", 1}, {", decay by key", 4}})
    for (const auto& [reading, before, bonus] :
         std::vector<std::tuple<std::string, bool, bool>>{{"", false, false}, {", read before", true, false}, {", bonus", true, true}})
      for (const bool values : {false, true})
        for (const Turning& turning : {Turning{"", false, false, false}, Turning{", phases", true, true, false},
                                       Turning{", constant phases, complex keys", true, false, true}}) {
          if (values && (turning.complex || (bonus && turning.phase))) continue;
          std::vector<Form> forms{Form::sequential, Form::chunkwise};
          if (factors || values || turning.phase) forms.insert(forms.begin() + 1, Form::scan);
          if (factors < 2 && !values) forms.push_back(Form::attention);
          p.check("outer" + decay + (values ? ", decay by value" : "") + turning.name + reading, forms,
                  [=](Form form, Graph& graph, RandomLeaves& x, std::int64_t T) {
                    OuterInputs in{.q = x.real({T, batch, 2, 4}),
                                   .k = x.real({T, batch, 2, 4}),
                                   .v = x.real({T, batch, 2, 3}),
                                   .read = before ? ReadOrder::before : ReadOrder::after};
                    if (turning.complex) {
                      in.q = complex(in.q, x.real({T, batch, 2, 4}));
                      in.k = complex(in.k, x.real({T, batch, 2, 4}));
                    }
                    if (factors) in.key_decay = x.real({T, batch, 2, factors}, -0.5, 0.0);
                    if (values) in.value_decay = x.real({T, batch, 2, 3}, -0.5, 0.0);
                    if (turning.phase) in.phase = x.real(turning.varies ? Shape{T, batch, 2, 4} : Shape{2, 4}, -2.0, 2.0);
                    if (bonus) in.bonus = x.real({2, 4});
                    const OuterVars vars = outer(graph, form, in, false);
                    return made(x, vars, vars.output);
                  });
        }

  p.extremes = extremes;
  return p;
}

}  // namespace reclab::primitives_by_name
