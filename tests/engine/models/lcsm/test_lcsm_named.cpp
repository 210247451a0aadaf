// SPDX-License-Identifier: GPL-3.0-or-later
// That a code of a linear-complexity sequence model is what Table 1 of Qin et al. 2024 says it is: with the same weights it returns what
// the named model returns.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <numbers>

#include "array/host.h"
#include "array/rng.h"
#include "experiment/experiment.h"
#include "models/network.h"
#include "models/parts/composition/codes.h"
#include "models/registry.h"
#include "test.h"

using namespace reclab;

namespace {

using Numbers = std::vector<double>;
using Settings = std::vector<std::pair<std::string, std::string>>;
using Weights = std::map<std::string, Numbers>;

constexpr std::size_t steps = 40, width = 4, keys = 3;

Numbers drawn(std::uint64_t seed, std::size_t n, double size = 0.6) {
  Rng numbers(seed);
  Numbers made;
  for (std::size_t i = 0; i < n; ++i) made.push_back(size * numbers.normal());
  return made;
}
Numbers scaled(Numbers x, double by) {
  for (double& value : x) value *= by;
  return x;
}
Numbers together(std::initializer_list<Numbers> parts) {
  Numbers made;
  for (const Numbers& part : parts) made.insert(made.end(), part.begin(), part.end());
  return made;
}
Numbers transposed(const Numbers& x, std::size_t rows) {
  Numbers made;
  for (std::size_t j = 0; j < x.size() / rows; ++j)
    for (std::size_t i = 0; i < rows; ++i) made.push_back(x[i * (x.size() / rows) + j]);
  return made;
}
Numbers unit() {
  Numbers made(width * width, 0.0);
  for (std::size_t i = 0; i < width; ++i) made[i * (width + 1)] = 1.0;
  return made;
}
/// Noise, and a last column of ones.
const Numbers& input() {
  static const Numbers x = [] {
    Numbers made = drawn(1, steps * width, 1.0);
    for (std::size_t t = 0; t < steps; ++t) made[t * width + width - 1] = 1.0;
    return made;
  }();
  return x;
}
/// Rows that are 1 where the input has its column of ones, and so 1 at every step.
Numbers ones_rows(double value = 1.0, std::size_t rows = width) {
  Numbers made(rows * width, 0.0);
  for (std::size_t i = 0; i < rows; ++i) made[i * width + width - 1] = value;
  return made;
}

/// What a model of one layer returns, [steps, width]; biases that are not given are 0.
Numbers output_of(const std::string& architecture, const Settings& set, Weights weights) {
  Preset preset;
  preset.id = preset.title = preset.architecture = architecture;
  Network network(builtin_registry().find(architecture), hyper_of(builtin_registry(), preset, set), {.steps = steps, .input = width});
  Graph& graph = network.graph();
  graph.allocate(cpu_backend(), false);
  graph.bind(network.input(), input().data());
  for (const auto& parameter : network.parameters()) {
    const std::string name = parameter.name.substr(2);
    if (!weights.contains(name) && name.ends_with("bias"))
      weights[name] = Numbers(static_cast<std::size_t>(count(parameter.var.shape())), 0.0);
    CHECK_SAYS(weights.contains(name), architecture + " has " + name);
    CHECK_SAYS(static_cast<std::int64_t>(weights.at(name).size()) == count(parameter.var.shape()),
               architecture + " has another size of " + name);
    graph.bind(parameter.var, weights.at(name).data());
  }
  CHECK_EQUAL(weights.size(), network.parameters().size());
  std::vector<Numbers> starts;
  starts.reserve(network.states().size());
  for (const auto& state : network.states()) {
    starts.emplace_back(static_cast<std::size_t>(count(state.initial.shape())) * bytes_of(state.initial.dtype()) / sizeof(double),
                        state.start);
    graph.bind(state.initial, starts.back().data());
  }
  graph.forward();
  return to_double(cpu_backend(), DType::f64, graph.value(network.output()), static_cast<std::int64_t>(steps * width));
}

Settings with(Settings set, const Settings& more) {
  set.insert(set.end(), more.begin(), more.end());
  return set;
}
/// The read of a code, through W_o alone.
Numbers of_code(const std::string& code, std::size_t state, const Weights& weights, const Settings& more = {}) {
  const Settings bare{{"width", "4"}, {"state", std::to_string(state)}, {"layers", "1"}, {"block", "none"}, {"norm", "no"}};
  return output_of("lcsm", with(with(bare, settings(lcsm_code(code))), more), weights);
}

void same(const std::string& what, const Numbers& x, const Numbers& y, double tolerance = 1e-13) {
  CHECK_EQUAL(x.size(), y.size());
  double gap = 0.0, most = 0.0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    CHECK(std::isfinite(x[i]) && std::isfinite(y[i]));
    gap = std::max(gap, std::abs(x[i] - y[i]));
    most = std::max(most, std::abs(y[i]));
  }
  std::printf("%s: off by %.1e of %.2g\n", what.c_str(), gap, most);
  CHECK(most > 1e-2);
  CHECK_SAYS(gap <= tolerance * most, what + ": " + test::show(gap / most));
}

const Numbers Wi = drawn(2, width* width), Wo = drawn(3, width* width);
Numbers We(std::size_t k) { return drawn(4, k * width); }
Numbers Ws(std::size_t k) { return drawn(5, k * width); }
const Settings one_layer{{"width", "4"}, {"heads", "1"}, {"layers", "1"}, {"block", "none"}};

}  // namespace

TEST_CASE("1-10-1-3 is linear attention, whose divisor is the same read of ones") {
  const Numbers read = of_code(
                    "1-10-1-3", width,
                    {{"i_proj.weight", Wi}, {"e_proj.weight", We(width)}, {"s_proj.weight", Ws(width)}, {"output_proj.weight", unit()}}),
                sum = of_code("1-10-1-3", width,
                              {{"i_proj.weight", ones_rows()},
                               {"e_proj.weight", We(width)},
                               {"s_proj.weight", Ws(width)},
                               {"output_proj.weight", unit()}});
  Numbers divided;
  for (std::size_t i = 0; i < read.size(); ++i) divided.push_back(read[i] / (sum[i] + 1e-6));
  same("linear attention", divided,
       output_of("linear-attention", with(one_layer, {{"final_norm", "no"}}),
                 {{"attention.query_projection.weight", Ws(width)},
                  {"attention.key_projection.weight", We(width)},
                  {"attention.value_projection.weight", Wi},
                  {"attention.out_projection.weight", unit()}}));
}

TEST_CASE("1-4-1-0 with one decay for all keys is retention without its rotation") {
  const double gamma = 1.0 - std::exp2(-5.0);  // = σ(o)^{1/τ}
  const Numbers o(width, -std::log(std::pow(gamma, -16.0) - 1.0));
  same("RetNet",
       of_code("1-4-1-0", width,
               {{"i_proj.weight", Wi},
                {"e_proj.weight", scaled(We(width), 0.5)},
                {"s_proj.weight", Ws(width)},
                {"o", o},
                {"output_proj.weight", Wo}}),
       output_of("retnet",
                 with(one_layer, {{"value_width", "4"}, {"rotation", "no"}, {"normaliser", "none"}, {"norm", "no"}, {"gate", "none"}}),
                 {{"retention.q_proj.weight", Ws(width)},
                  {"retention.k_proj.weight", We(width)},
                  {"retention.v_proj.weight", Wi},
                  {"retention.out_proj.weight", Wo}}));
}

TEST_CASE("1-3-1-0 is gated linear attention without its norm and its gate at the output") {
  const Numbers W = drawn(6, 2 * width, 1.5);
  same(
      "GLA",
      of_code("1-3-1-0", 2,
              {{"i_proj.weight", Wi},
               {"e_proj.weight", We(2)},
               {"s_proj.weight", scaled(Ws(2), std::sqrt(0.5))},
               {"o_proj.weight", W},
               {"output_proj.weight", Wo}},
              {{"tau", "5"}}),
      output_of("gla",
                with(one_layer, {{"expand_k", "0.5"}, {"norm", "no"}, {"output_gate", "no"}, {"gate_rank", "4"}, {"gate_normaliser", "5"}}),
                {{"attn.q_proj.weight", Ws(2)},
                 {"attn.k_proj.weight", We(2)},
                 {"attn.v_proj.weight", Wi},
                 {"attn.gk_proj.0.weight", unit()},
                 {"attn.gk_proj.1.weight", W},
                 {"attn.o_proj.weight", Wo}}));
}

TEST_CASE("1-1-1-0 is decaying fast weights with gates by key and by value, 1-2-1-0 and 1-3-1-0 those with one of them") {
  const Numbers of_keys = drawn(7, keys * width, 1.5), of_values = drawn(8, width * width, 1.5);
  for (const auto& [code, gates] : {std::pair("1-1-1-0", "both"), {"1-2-1-0", "value"}, {"1-3-1-0", "key"}}) {
    const bool key = std::string(gates) != "value", value = std::string(gates) != "key";
    Weights ours{{"i_proj.weight", Wi}, {"e_proj.weight", We(keys)}, {"s_proj.weight", Ws(keys)}, {"output_proj.weight", Wo}};
    Weights theirs{{"attn.c_attn.weight", transposed(together({Ws(keys), We(keys), Wi}), 2 * keys + width)},
                   {"attn.c_proj.weight", transposed(Wo, width)}};
    if (key) ours[value ? "o2_proj.weight" : "o_proj.weight"] = of_keys, theirs["attn.f_key.weight"] = transposed(of_keys, keys);
    if (value) ours[key ? "o1_proj.weight" : "o_proj.weight"] = of_values, theirs["attn.f.weight"] = transposed(of_values, width);
    same(std::string("fast weights, gates=") + gates, of_code(code, keys, ours, {{"tau", "3"}}),
         output_of("mao-fast-weights", with(one_layer, {{"key_dim", "3"}, {"gates", gates}, {"gate_bias", "no"}, {"tau", "3"}}), theirs));
  }
}

TEST_CASE("1-11-1-3 is LRPE, 1-11-1-1 with one angle for all keys cosFormer") {
  const Numbers theta{0.9, 0.31, 0.05, 0.002};
  same("LRPE",
       of_code("1-11-1-3", width,
               {{"i_proj.weight", Wi},
                {"e_proj.weight", We(width)},
                {"s_proj.weight", Ws(width)},
                {"theta", theta},
                {"output_proj.weight", Wo}}),
       output_of("lrpe", with(one_layer, {{"normaliser", "none"}}),
                 {{"self_attn.q_proj.weight", Ws(width)},
                  {"self_attn.k_proj.weight", We(width)},
                  {"self_attn.v_proj.weight", Wi},
                  {"self_attn.urpe.theta", theta},
                  {"self_attn.out_proj.weight", Wo}}));

  const Numbers angle(width, std::numbers::pi / 2 / 60);
  const auto read = [&](const Numbers& values) {
    return of_code("1-11-1-1", width,
                   {{"i_proj.weight", values},
                    {"e_proj.weight", We(width)},
                    {"s_proj.weight", Ws(width)},
                    {"theta", angle},
                    {"output_proj.weight", unit()}});
  };
  const Numbers of_values = read(Wi), sum = read(ones_rows());
  Numbers divided;
  for (std::size_t i = 0; i < sum.size(); ++i) divided.push_back(of_values[i] / std::max(sum[i], 1e-6));
  same("cosFormer", divided,
       output_of("cosformer", with(one_layer, {{"horizon", "60"}}),
                 {{"self_attn.q_proj.weight", Ws(width)},
                  {"self_attn.k_proj.weight", We(width)},
                  {"self_attn.v_proj.weight", Wi},
                  {"self_attn.out_proj.weight", unit()}}),
       1e-12);
}

TEST_CASE("M1 is the delta rule with a share of 1") {
  const Numbers small = scaled(We(width), 0.4);  // |k|² stays below 2, above which either grows
  same("delta rule",
       of_code("1-10-1-0", width,
               {{"i_proj.weight", Wi}, {"e_proj.weight", small}, {"s_proj.weight", Ws(width)}, {"output_proj.weight", Wo}},
               {{"transition", "m1"}}),
       output_of("deltanet", with(one_layer, {{"feature_map", "none"}, {"normalise", "none"}, {"output_scale", "no"}}),
                 {{"dec_attn.qkvb_net.weight", together({Ws(width), small, Wi, ones_rows(50.0, 1)})}, {"dec_attn.o_net.weight", Wo}}),
       1e-12);
}

TEST_CASE("M2 whose two keys are one is M1") {
  const Weights one{
      {"i_proj.weight", Wi}, {"e_proj.weight", scaled(We(keys), 0.4)}, {"s_proj.weight", Ws(keys)}, {"output_proj.weight", Wo}};
  Weights two = one;
  two["recall_proj.weight"] = one.at("e_proj.weight");
  for (const char* norm : {"none", "unit"})
    same(std::string("key_norm=") + norm, of_code("1-10-1-0", keys, two, {{"transition", "m2"}, {"key_norm", norm}}),
         of_code("1-10-1-0", keys, one, {{"transition", "m1"}, {"key_norm", norm}}));
}

TEST_CASE("M3 with a sigmoid is 1-3-1-2 whose gates keep what the keys do not take") {
  Weights gated{{"i_proj.weight", Wi}, {"e_proj.weight", We(keys)}, {"s_proj.weight", Ws(keys)}, {"output_proj.weight", Wo}};
  const Numbers y = of_code("1-10-1-2", keys, gated, {{"transition", "m3"}});
  gated["o_proj.weight"] = scaled(We(keys), -1.0);  // σ(-z) = 1 - σ(z)
  same("1-3-1-2", of_code("1-3-1-2", keys, gated, {{"tau", "1"}}), y);
}

TEST_CASE("oscillations that are special cases of others are them") {
  const Numbers E = drawn(9, keys * width), S = drawn(10, keys * width), a = drawn(11, keys), b = drawn(12, width), none(keys * width, 0.0);
  const auto repeated = [&](bool by_key) {
    Numbers made;
    for (std::size_t i = 0; i < keys; ++i)
      for (std::size_t j = 0; j < width; ++j) made.push_back(by_key ? a[i] : b[j]);
    return made;
  };
  for (const int e : {0, 1})
    for (const int s : {0, 1}) {
      const std::string front = std::to_string(e) + "-", back = "-" + std::to_string(s) + "-4";
      Weights weights{{"i_proj.weight", Wi}, {"output_proj.weight", Wo}};
      weights[e ? "e_proj.weight" : "e"] = e ? We(keys) : E;
      weights[s ? "s_proj.weight" : "s"] = s ? Ws(keys) : S;
      const auto read = [&](int o, const Weights& more) {
        Weights all = weights;
        all.insert(more.begin(), more.end());
        return of_code(front + std::to_string(o) + back, keys, all);
      };
      same(front + "0" + back + " with equal columns", read(0, {{"o", repeated(true)}}), read(4, {{"o", a}}));
      same(front + "0" + back + " with equal rows", read(0, {{"o", repeated(false)}}), read(5, {{"o", b}}));
      same(front + "10" + back, read(10, {}), read(11, {{"theta", Numbers(keys, 0.0)}}));
      same(front + "6" + back + " with ones", read(6, {{"o_proj.weight", We(keys)}, {"o", Numbers(keys * width, 1.0)}}),
           read(3, {{"o_proj.weight", We(keys)}}));
      same(front + "7" + back + " with ones", read(7, {{"o_proj.weight", Wo}, {"o", Numbers(keys * width, 1.0)}}),
           read(2, {{"o_proj.weight", Wo}}));
      same(front + "8" + back, read(8, {{"o_proj.weight", Wo}, {"o", a}}), read(7, {{"o_proj.weight", Wo}, {"o", repeated(true)}}));
      same(front + "9" + back, read(9, {{"o_proj.weight", We(keys)}, {"o", b}}),
           read(6, {{"o_proj.weight", We(keys)}, {"o", repeated(false)}}));
    }
}
