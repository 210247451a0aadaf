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
    const auto found = [&bench](const char* name) { return bench.in.contains(name) ? bench[name] : Var{}; };
    return bench
        .keep(delta(
            bench.graph, form,
            {.q = bench["q"], .k = bench["k"], .v = bench["v"], .beta = bench["beta"], .recall = found("r"), .log_decay = found("g")}))
        .output;
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
    const Inputs all{keys, normal("q", {T, 1, H, K}, 1e3, 2), normal("v", {T, 1, H, V}, 1e3, 3), chosen("beta", {T, 1, H, 1}, shares, 4)};
    const auto with = [&](const Input& more) {
      Inputs found = all;
      found.push_back(more);
      return found;
    };
    const std::string name = "keys of size " + text(size);
    add(name, {Form::sequential, Form::chunkwise, Form::attention}, all, made);
    add(name + ", a decay a head", {Form::sequential, Form::chunkwise, Form::attention}, with(chosen("g", {T, 1, H, 1}, log_edges(), 5)),
        made);
    add(name + ", a constant decay a head", {Form::sequential, Form::chunkwise, Form::attention},
        with({"g", {H, 1}, {-1e-9, std::log(1e-9)}}), made);
    add(name + ", a decay a key", {Form::sequential, Form::chunkwise}, with(chosen("g", {T, 1, H, K}, log_edges(), 6)), made);
    add(name + ", another key recalled", {Form::sequential, Form::chunkwise, Form::attention},
        with(normal("r", {T, 1, H, K}, 1e-3 * size, 7)), made);
  }
  add("keys by entry", scans(),
      {chosen("k", {T, 1, H, K}, {1e-9, 1.0 - 1e-9, 1.0, 0.0, 2.0}, 8), normal("q", {T, 1, H, K}, 1e3, 9),
       normal("v", {T, 1, H, V}, 1e3, 10)},
      [](Bench& bench, Form form) { return bench.keep(delta_by_entry(bench.graph, form, bench["q"], bench["k"], bench["v"])).output; });
  return add.found;
}

}  // namespace

Primitive delta();  // in the table that the build writes
Primitive delta() {
  constexpr std::int64_t batch = CheckedPrimitive::batch;
  using Argument = TimedPrimitive::Argument;
  Primitive p;
  p.timed.title = "Delta-rule memory";
  p.timed.equations = {"S_t = (I − β_t k_t r_tᵀ) G_t S_{t-1} + β_t k_t v_tᵀ", "y_t = S_tᵀ q_t"};
  p.timed.hyper = heads();
  p.timed.hyper.push_back(
      hyper_choice("decay", "none", {"none", "scalar", "key"}, "G_t: none, one factor a head, or one for each key dimension."));
  p.timed.hyper.push_back(hyper_flag("share", true, "Whether there is a share β; 1 without."));
  p.timed.hyper.push_back(hyper_flag("recall", false, "Whether r is a vector of its own; k without."));
  p.timed.hyper.push_back(hyper_flag("read_before", false, "Whether the memory is read before it is written: y_t = S_{t-1}ᵀ q_t."));
  p.timed.spectrum = "eigenvalues of (I − β_t k_t r_tᵀ) G_t";
  const auto decays = [](const Hyper& h) {
    return h.choice("decay") == "none" ? 0 : h.choice("decay") == "scalar" ? h.integer("heads") : h.integer("heads") * h.integer("key");
  };
  p.timed.arguments = [decays](const Hyper& h) {
    const std::int64_t n = h.integer("heads"), key = h.integer("key");
    const double unit = 1.0 / std::sqrt(static_cast<double>(key));  // |k| about 1, or the memory would grow
    return std::vector<Argument>{{n * key, unit},
                                 {n * key, unit},
                                 {n * h.integer("value")},
                                 {h.flag("share") ? n : 0, 0.0, 0.0, 0.5},
                                 {h.flag("recall") ? n * key : 0, 0.1 * unit},
                                 {decays(h), 0.0, -0.1, 0.0}};
  };
  p.timed.layer = [](Layer& l, Var x) {
    Arguments next(l, x);
    const Hyper& h = l.hyper;
    const Var q = next(of_heads(l, "key")), k = next(of_heads(l, "key")), v = next(of_heads(l, "value"));
    const Var beta = h.flag("share") ? next({h.integer("heads"), 1}) : Var{}, recall = h.flag("recall") ? next(of_heads(l, "key")) : Var{};
    const std::string& decay = h.choice("decay");
    const Var log_decay = decay == "none" ? Var{} : next(decay == "scalar" ? Shape{h.integer("heads"), 1} : of_heads(l, "key"));
    return flat(l, delta(l, memory_of_heads(l), {q, k, v, beta, recall, log_decay, h.flag("read_before")}));
  };

  const auto delta_of = [](Form form, Graph& graph, RandomLeaves& x, std::int64_t T, bool shared, bool other, std::int64_t factors,
                           bool read_before) {
    const Var q = x.real({T, batch, 2, 4}), k = x.real({T, batch, 2, 4}, -0.5, 0.5), v = x.real({T, batch, 2, 3}),
              beta = shared ? x.real({T, batch, 2, 1}, 0.1, 0.9) : Var{}, recall = other ? x.real({T, batch, 2, 4}, -0.5, 0.5) : Var{},
              log_decay = factors ? x.real({T, batch, 2, factors}, -0.5, 0.0) : Var{};
    const OuterVars vars = delta(graph, form, {q, k, v, beta, recall, log_decay, read_before});
    return made(x, vars, vars.output);
  };
  const std::vector<Form> all{Form::sequential, Form::chunkwise, Form::attention};
  const auto check = [&](const std::string& name, const std::vector<Form>& forms, bool shared, bool other, std::int64_t factors,
                         bool read_before) {
    p.check(name, forms, [=](Form form, Graph& graph, RandomLeaves& x, std::int64_t T) {
      return delta_of(form, graph, x, T, shared, other, factors, read_before);
    });
  };
  check("delta", all, true, false, 0, false);
  check("delta, another key recalled, read before", all, false, true, 0, true);
  check("delta, decay by head", all, true, false, 1, false);
  check("delta, decay by key, another key recalled, read before", {Form::sequential, Form::chunkwise}, true, true, 4, true);
  p.check("delta by entry", scans(), [](Form form, Graph& graph, RandomLeaves& x, std::int64_t T) {
    const OuterVars vars =
        delta_by_entry(graph, form, x.real({T, batch, 2, 4}), x.real({T, batch, 2, 4}, -0.3, 1.3), x.real({T, batch, 2, 3}));
    return made(x, vars, vars.output);
  });

  p.extremes = extremes;
  return p;
}

}  // namespace reclab::primitives_by_name
