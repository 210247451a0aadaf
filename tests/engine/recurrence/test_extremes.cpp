// SPDX-License-Identifier: GPL-3.0-or-later
// Memories and scalar functions at the edge: decays within 1e-9 of 0 and of 1, keys of size 1e3. What is representable is finite and the same
// in every exact form.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "array/rng.h"
#include "execution/rollout.h"
#include "extremes.h"
#include "models/parts/parts.h"
#include "recurrence/attention.h"
#include "recurrence/convolution.h"
#include "recurrence/linear.h"
#include "recurrence/memory.h"
#include "test.h"

namespace {

using namespace reclab;
using test::finite, test::largest, test::Numbers, test::rotation;

// ---- Every primitive, every exact form ---------------------------------------------------------------------------------------------

struct Input {
  std::string name;
  Shape shape;
  Numbers values;
};
using Inputs = std::vector<Input>;

/// What a primitive is built from, in both precisions: inputs by name as leaves, what it made, and its output.
struct Bench {
  Graph graph;
  std::map<std::string, Var> in;
  std::vector<MemoryVars> memories;
  explicit Bench(DType real) : graph(real) {}
  Var operator[](const std::string& name) const { return in.at(name); }
  Var number(const std::string& name) const { return complex(in.at(name + "_re"), in.at(name + "_im")); }
  template <class Vars>
  Vars keep(Vars vars) {
    memories.push_back(vars);
    return vars;
  }
};
using Build = std::function<Var(Bench&, Form)>;
using Results = std::map<std::string, Numbers>;

std::vector<char> bytes_of_values(DType real, const Numbers& values) {
  std::vector<char> bytes(std::max<std::size_t>(values.size(), 1) * bytes_of(real));
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (real == DType::f64)
      reinterpret_cast<double*>(bytes.data())[i] = values[i];
    else
      reinterpret_cast<float*>(bytes.data())[i] = static_cast<float>(values[i]);
  }
  return bytes;
}

/// Forward, and backward from fixed normal weights of the output.
Results results_of(DType real, const Inputs& inputs, const Build& build, Form form) {
  Bench bench(real);
  for (const Input& input : inputs) {
    CHECK_EQUAL(count(input.shape), static_cast<std::int64_t>(input.values.size()));
    bench.in[input.name] = bench.graph.leaf(LeafKind::variable, input.shape, real);
  }
  const Var output = build(bench, form);
  bench.graph.allocate(cpu_backend(), true);
  std::vector<std::vector<char>> kept;
  for (const Input& input : inputs) {
    kept.push_back(bytes_of_values(real, input.values));
    bench.graph.bind(bench.in.at(input.name), kept.back().data());
  }
  for (const MemoryVars& vars : bench.memories)
    for (const Var initial : vars.initial) {
      kept.push_back(std::vector<char>(static_cast<std::size_t>(count(initial.shape())) * bytes_of(initial.dtype()) + 16, 0));
      bench.graph.bind(initial, kept.back().data());
    }
  bench.graph.forward();
  Results results;
  const auto parts = [](Var x) { return count(x.shape()) * (is_complex(x.dtype()) ? 2 : 1); };
  results["output"] = to_double(cpu_backend(), real, bench.graph.value(output), parts(output));
  for (std::size_t m = 0; m < bench.memories.size(); ++m)
    for (std::size_t i = 0; i < bench.memories[m].finals.size(); ++i)
      if (const Var end = bench.memories[m].finals[i])
        results["final " + std::to_string(m) + " " + std::to_string(i)] = to_double(cpu_backend(), real, bench.graph.value(end), parts(end));
  bench.graph.clear_gradients();
  Rng rng(99);
  Numbers seed;
  for (std::int64_t i = 0; i < parts(output); ++i) seed.push_back(rng.normal());
  const auto seeds = bytes_of_values(real, seed);
  std::copy(seeds.begin(), seeds.end(), static_cast<char*>(bench.graph.gradient(output)));
  bench.graph.backward();
  for (const Input& input : inputs)
    results["gradient of " + input.name] = to_double(cpu_backend(), real, bench.graph.gradient(bench.in.at(input.name)), count(input.shape));
  return results;
}


/// Every form against the sequential one, each array relative to its largest entry.
void check_forms(const std::string& name, const std::vector<Form>& forms, const Inputs& inputs, const Build& build, double narrow = 1e-3) {
  for (const DType real : {DType::f64, DType::f32}) {
    Results reference;
    for (const Form form : forms) {
      const std::string what = name + ", " + std::string(to_string(form)) + (real == DType::f64 ? ", float64: " : ", float32: ");
      Results results;
      try {
        results = results_of(real, inputs, build, form);
      } catch (const test::Failure& failure) {
        throw test::Failure(what + failure.what());
      }
      for (const auto& [key, values] : results) CHECK_SAYS(finite(values), what + key + " is not finite");
      if (form == Form::sequential) {
        reference = std::move(results);
        continue;
      }
      for (const auto& [key, values] : results) {
        const auto expected = reference.find(key);
        if (expected == reference.end()) continue;
        const double size = largest(expected->second), allowed = (real == DType::f64 ? 1e-9 : narrow) * size;
        double worst = 0.0;
        for (std::size_t i = 0; i < values.size(); ++i) worst = std::max(worst, std::abs(values[i] - expected->second[i]));
        CHECK_SAYS(worst <= allowed, what + key + " differs by " + test::show(worst) + " of " + test::show(size));
      }
    }
  }
}

Input normal(const std::string& name, Shape shape, double size, std::uint64_t seed) {
  Rng rng(seed);
  Numbers values;
  for (std::int64_t i = 0; i < count(shape); ++i) values.push_back(size * rng.normal());
  return {name, std::move(shape), std::move(values)};
}
/// Each entry one of the choices.
Input chosen(const std::string& name, Shape shape, const Numbers& choices, std::uint64_t seed) {
  Rng rng(seed);
  Numbers values;
  for (std::int64_t i = 0; i < count(shape); ++i)
    values.push_back(choices[static_cast<std::size_t>(rng.uniform(0.0, static_cast<double>(choices.size()))) % choices.size()]);
  return {name, std::move(shape), std::move(values)};
}
/// Real and imaginary parts of numbers of these moduli and any phase.
void add_numbers(Inputs& inputs, const std::string& name, const Shape& shape, const Numbers& moduli, std::uint64_t seed) {
  Input re = chosen(name + "_re", shape, moduli, seed), im = re;
  im.name = name + "_im";
  Rng rng(seed + 1);
  for (std::size_t i = 0; i < re.values.size(); ++i) {
    const double phase = rng.uniform(-3.1, 3.1);
    im.values[i] = re.values[i] * std::sin(phase);
    re.values[i] *= std::cos(phase);
  }
  inputs.push_back(re);
  inputs.push_back(im);
}

const Numbers edges{1e-9, 1.0 - 1e-9, 0.0, 1.0, 0.5, 1e-300};
const Numbers log_edges{-1e-9, std::log(1e-9), 0.0, -0.7, -800.0, -1e4};
const std::vector<Form> scans{Form::sequential, Form::scan, Form::chunkwise};

}  // namespace

TEST_CASE("diagonal: decays within 1e-9 of 0 and 1, inputs of 1e3, 3000 steps, in every form") {
  const std::int64_t T = 3000, w = 6;
  check_forms("real, by step", scans, {chosen("a", {T, 1, w}, edges, 1), normal("b", {T, 1, w}, 1e3, 2)},
              [](Bench& bench, Form form) { return bench.keep(diagonal(bench.graph, form, bench["a"], bench["b"])).trajectories[0]; });
  check_forms("real, time-invariant", scans, {{"a", {w}, edges}, normal("b", {T, 1, w}, 1e3, 2)},
              [](Bench& bench, Form form) { return bench.keep(diagonal(bench.graph, form, bench["a"], bench["b"])).trajectories[0]; });
  Inputs varying{normal("b_re", {T, 1, w}, 1e3, 2), normal("b_im", {T, 1, w}, 1e3, 3)}, invariant = varying;
  add_numbers(varying, "a", {T, 1, w}, edges, 4);
  add_numbers(invariant, "a", {w}, edges, 4);
  const Build made = [](Bench& bench, Form form) {
    return real(bench.keep(diagonal(bench.graph, form, bench.number("a"), bench.number("b"))).trajectories[0]);
  };
  check_forms("complex, by step", scans, varying, made);
  const std::vector<Form> all{Form::sequential, Form::scan, Form::chunkwise, Form::convolution};
  check_forms("complex, time-invariant", all, invariant, made);
}

TEST_CASE("a bank of diagonal systems: modes within 1e-9 of 0 and of the unit circle, in every form") {
  const std::int64_t T = 3000, C = 2, N = 6;
  Inputs inputs{normal("u", {T, 1, C}, 1e3, 1)};
  add_numbers(inputs, "a", {C, N}, {1e-9, 1.0 - 1e-9, 0.0, 1.0, 0.5}, 2);
  add_numbers(inputs, "b", {C, N}, {1e3, 1e-3}, 4);
  add_numbers(inputs, "w", {C, N}, {1e3, 1.0}, 6);
  check_forms("bank", {Form::sequential, Form::scan, Form::chunkwise, Form::convolution}, inputs, [](Bench& bench, Form form) {
    return bench.keep(diagonal_bank(bench.graph, form, bench.number("a"), bench.number("b"), bench.number("w"), bench["u"])).output;
  });
}

TEST_CASE("selective: steps and rates that leave all or nothing of the state, inputs of 1e3, in every form") {
  const std::int64_t T = 1500, C = 3, N = 4;
  for (const double size : {1e-9, 1.0, 1e3})
    for (const bool record : {false, true})
      check_forms("step " + test::show(size), scans,
                  {chosen("dt", {T, 1, C}, {size, 1e-3 * size}, 1), chosen("a", {C, N}, {-1e-9, -1.0, -20.7, -1e6}, 2), normal("x", {T, 1, C}, 1e3, 3), normal("b", {T, 1, N}, 1.0, 4), normal("c", {T, 1, N}, 1e3, 5)},
                  [&](Bench& bench, Form form) {
                    const SelectiveVars vars = selective(bench.graph, form, bench["dt"], bench["a"], bench["x"], bench["b"], bench["c"], record);
                    bench.keep(vars);
                    return vars.output;
                  });
}

TEST_CASE("outer: keys, values and queries of 1e3, decays within 1e-9 of 0 and 1 and far below, in every form") {
  const std::int64_t H = 2, K = 4, V = 3;
  for (const std::int64_t T : {1, 70, 600}) {
    const Inputs qkv{normal("q", {T, 1, H, K}, 1e3, 1), normal("k", {T, 1, H, K}, 1e3, 2), normal("v", {T, 1, H, V}, 1e3, 3)};
    const auto with = [&](const Input& decay) {
      Inputs all = qkv;
      all.push_back(decay);
      return all;
    };
    // The sequential form keeps every state, or is one operation that keeps none.
    for (const bool record : {true, false}) {
      const Build made = [record](Bench& bench, Form form) {
        const Var decay = bench.in.contains("g") ? bench["g"] : Var{};
        return bench.keep(outer(bench.graph, form, bench["q"], bench["k"], bench["v"], decay, record)).output;
      };
      const std::string steps = std::to_string(T) + (record ? " steps, " : " steps, not recorded, ");
      check_forms(steps + "no decay", {Form::sequential, Form::chunkwise, Form::attention}, qkv, made);
      check_forms(steps + "a decay a head", {Form::sequential, Form::scan, Form::chunkwise, Form::attention}, with(chosen("g", {T, 1, H, 1}, log_edges, 4)), made);
      check_forms(steps + "a constant decay a head", {Form::sequential, Form::scan, Form::chunkwise, Form::attention}, with({"g", {H, 1}, {-1e-9, std::log(1e-9)}}), made);
      check_forms(steps + "a decay a key", {Form::sequential, Form::scan, Form::chunkwise}, with(chosen("g", {T, 1, H, K}, log_edges, 5)), made);
      check_forms(steps + "a constant decay a key", {Form::sequential, Form::scan, Form::chunkwise}, with(chosen("g", {H, K}, log_edges, 6)), made);
    }
  }
}

TEST_CASE("delta: keys of 1e3 whose share makes a projection or a reflection, and shares within 1e-9 of 0 and 1, in both forms") {
  const std::int64_t T = 300, H = 2, K = 4, V = 3;
  const Build made = [](Bench& bench, Form form) { return bench.keep(delta(bench.graph, form, bench["q"], bench["k"], bench["v"], bench["beta"])).output; };
  for (const double size : {1.0, 1e3}) {
    Input keys = normal("k", {T, 1, H, K}, 1.0, 1);
    for (std::size_t at = 0; at < keys.values.size(); at += static_cast<std::size_t>(K)) {
      double squares = 0.0;
      for (std::size_t i = at; i < at + static_cast<std::size_t>(K); ++i) squares += keys.values[i] * keys.values[i];
      for (std::size_t i = at; i < at + static_cast<std::size_t>(K); ++i) keys.values[i] *= size / std::sqrt(squares);
    }
    Numbers shares;
    for (const double share : {1e-9, 1.0 - 1e-9, 1.0, 0.0, 2.0}) shares.push_back(share / (size * size));
    check_forms("keys of size " + test::show(size), {Form::sequential, Form::chunkwise},
                {keys, normal("q", {T, 1, H, K}, 1e3, 2), normal("v", {T, 1, H, V}, 1e3, 3), chosen("beta", {T, 1, H, 1}, shares, 4)}, made);
  }
}

TEST_CASE("dense and low-rank linear recurrences: spectral radii within 1e-9 of 0 and 1, in every form") {
  const std::int64_t T = 1500, n = 4;
  for (const double radius : {1e-9, 1.0 - 1e-9, 1.0}) {
    const std::string name = "radius " + test::show(radius) + ", ";
    const Build made = [](Bench& bench, Form form) { return bench.keep(dense(bench.graph, form, bench["A"], bench["b"])).trajectories[0]; };
    check_forms(name + "one matrix", {Form::sequential, Form::scan}, {{"A", {n, n}, rotation(n, radius, 0.3)}, normal("b", {T, 1, 2, n}, 1e3, 1)}, made);
    Numbers apart = rotation(n, radius, 0.3), by_step;
    const Numbers other = rotation(n, 1.0, 0.9);
    apart.insert(apart.end(), other.begin(), other.end());
    check_forms(name + "a matrix a copy", {Form::sequential, Form::scan}, {{"A", {2, n, n}, apart}, normal("b", {T, 1, 2, n}, 1e3, 1)}, made);
    for (std::int64_t t = 0; t < T; ++t) {
      const Numbers one = rotation(n, t % 3 ? radius : 1.0, 0.1 * static_cast<double>(t % 7));
      by_step.insert(by_step.end(), one.begin(), one.end());
    }
    check_forms(name + "a matrix a step", {Form::sequential, Form::scan}, {{"A", {T, 1, n, n}, by_step}, normal("b", {T, 1, 2, n}, 1e3, 1)}, made);
    check_forms(name + "driven", {Form::sequential, Form::scan, Form::convolution},
                {{"A", {n, n}, rotation(n, radius, 0.3)}, normal("B", {n}, 1e3, 2), normal("u", {T, 1, 2}, 1e3, 1)},
                [](Bench& bench, Form form) { return bench.keep(dense_driven(bench.graph, form, bench["A"], bench["B"], bench["u"])).trajectories[0]; });
    Inputs bank{normal("u", {T, 1, 2}, 1e3, 1)};
    add_numbers(bank, "a", {2, 3}, {radius}, 2);
    add_numbers(bank, "p", {2, 3}, {1e-9, 1e-12}, 4);
    add_numbers(bank, "q", {2, 3}, {1e-3, 1e-9}, 6);
    add_numbers(bank, "b", {2, 3}, {1e3, 1.0}, 8);
    add_numbers(bank, "c", {2, 3}, {1e3, 1.0}, 10);
    check_forms(name + "low rank", {Form::sequential, Form::scan, Form::convolution}, bank, [](Bench& bench, Form form) {
      const LowRankVars vars = low_rank_bank(bench.graph, form, {bench.number("a"), bench.number("p"), bench.number("q"), bench.number("b"), bench.number("c")}, bench["u"]);
      return bench.keep(vars).output;
    });
  }
}

TEST_CASE("convolution and attention: kernels, keys and queries of 1e3, scores of 1e6 and more") {
  const std::int64_t T = 500, C = 3;
  check_forms("convolution", {Form::sequential, Form::convolution}, {normal("kernel", {C, T}, 1e3, 1), normal("u", {T, 1, C}, 1e3, 2)}, [](Bench& bench, Form form) {
    return form == Form::convolution ? convolve(bench["kernel"], bench["u"]) : convolve_directly(bench["kernel"], bench["u"], bench["u"].dim(0));
  });
  for (const double size : {1e3, 1e-12, 1e12}) {
    // Where the largest score wins by far, its weight is 1 and a gradient of 0 is the exact one.
    check_forms("attention, size " + test::show(size), {Form::sequential, Form::attention},
                {normal("q", {2, 200, 4}, size, 1), normal("k", {2, 200, 4}, size, 2), normal("v", {2, 200, 3}, 1e3, 3)}, [](Bench& bench, Form form) {
                  SoftmaxAttention a;
                  a.q = bench["q"];
                  a.k = bench["k"];
                  a.v = bench["v"];
                  return softmax_attention(a, form == Form::sequential);
                });
  }
}

TEST_CASE("a stepped cell: saturated by inputs of 1e3, and linear with a decay within 1e-9 of 0 and 1, in every form") {
  const std::int64_t T = 400, n = 3;
  const std::vector<Form> all{Form::sequential, Form::newton, Form::quasi_newton, Form::damped_newton};
  for (const double decay : {1e-9, 1.0 - 1e-9}) {
    check_forms("linear, decay " + test::show(decay), all, {normal("u", {T, 1, n}, 1e3, 1)}, [&](Bench& bench, Form form) {
      return bench.keep(step(bench.graph, 1, {{"s", {n}}}, {bench["u"]}, [&](Cell&, std::span<const Var> u, std::span<const Var> s) { return std::vector<Var>{s[0] * decay + u[0]}; }, {}, form)).trajectories[0];
    });
  }
  check_forms("gated", all, {normal("u", {T, 1, n}, 1e3, 1), normal("f", {T, 1, n}, 1e3, 2)}, [&](Bench& bench, Form form) {
    return bench.keep(step(bench.graph, 1, {{"s", {n}}}, {bench["u"], bench["f"]}, [&](Cell&, std::span<const Var> u, std::span<const Var> s) {
                        const Var keep = sigmoid(u[1] + s[0]);
                        return std::vector<Var>{keep * s[0] + (1.0 - keep) * tanh(u[0])};
                      }, {}, form)).trajectories[0];
  });
}

// ---- The scalar functions ----------------------------------------------------------------------------------------------------------

TEST_CASE("scalar functions and their slopes keep their digits next to 0 and 1, and are finite far out") {
  const auto value_and_slope = [](DType real, double x, const std::function<Var(Var)>& f) {
    const Results results = results_of(real, {{"x", {1}, {x}}}, [&](Bench& bench, Form) { return f(bench["x"]) + 0.0; }, Form::sequential);
    Rng rng(99);
    return std::pair(results.at("output")[0], results.at("gradient of x")[0] / rng.normal());
  };
  const auto close = [](double x, double expected, double tolerance) { return std::abs(x - expected) <= tolerance * std::abs(expected); };
  for (const DType real : {DType::f64, DType::f32}) {
    const double tolerance = real == DType::f64 ? 1e-13 : 1e-5;
    for (const double x : {21.0, 40.0, 80.0, -40.0}) {
      const double e = std::exp(-std::abs(x));
      CHECK(close(value_and_slope(real, x, [](Var v) { return sigmoid(v); }).second, e / ((1 + e) * (1 + e)), tolerance));
      CHECK(close(value_and_slope(real, x / 2, [](Var v) { return tanh(v); }).second, 4 * e / ((1 + e) * (1 + e)), tolerance));
    }
    for (const double x : {-1e9, -300.0, -2.0, -0.51, -0.49, -1e-9, -1e-30, 0.0, 1e-9, 0.3, 0.6, 5.0}) {
      const auto at = static_cast<double>(real == DType::f64 ? x : static_cast<double>(static_cast<float>(x)));
      const auto [value, slope] = value_and_slope(real, x, [](Var v) { return mean_exp(v); });
      const double expected = at == 0.0 ? 1.0 : std::expm1(at) / at;
      const double derivative = std::abs(at) < 1e-3 ? 0.5 + at / 3 + at * at / 8 : (std::exp(at) - expected) / at;
      CHECK_SAYS(close(value, expected, tolerance), test::show(x) + ": " + test::show(value) + " not " + test::show(expected));
      CHECK_SAYS(close(slope, derivative, 10 * tolerance), test::show(x) + ": " + test::show(slope) + " not " + test::show(derivative));
    }
    const double far = real == DType::f64 ? 1e200 : 1e30;
    for (const double x : {far, -far}) {
      for (Var (*const f)(Var) : {&gelu_tanh, &gelu, &silu, &elu}) CHECK_CLOSE(value_and_slope(real, x, f).second, x > 0 ? 1.0 : 0.0, 1e-6);
      CHECK(std::isfinite(value_and_slope(real, x, [](Var v) { return exp_in_range(v); }).first));
    }
    // -x/y^2 where y^2 is out of range.
    const double small = real == DType::f64 ? 1e-200 : 1e-30;
    for (const double y : {small, 1.0 / small})
      CHECK(close(value_and_slope(real, y, [&](Var v) { return affine(v, 0.0, y * 1e-3) / v; }).second, -1e-3 / y, 1e-5));
  }
}

TEST_CASE("complex (e^z - 1)/z and quotients: by small and by large numbers") {
  using Z = std::complex<double>;
  for (const Z z : {Z(-5e-7, 3e-7), Z(-1e-12, 0.0), Z(0.0, 0.0), Z(-0.3, 0.19), Z(-0.3, 0.21), Z(-3.0, 40.0), Z(-1e9, 1e3)}) {
    const Results results = results_of(DType::f64, {{"z_re", {1}, {z.real()}}, {"z_im", {1}, {z.imag()}}},
                                       [](Bench& bench, Form) { return mean_exp(bench.number("z")); }, Form::sequential);
    Z expected = (std::exp(z) - 1.0) / z, term = 1.0;
    if (std::abs(z) < 2.0) {  // sum of z^k/(k+1)!
      expected = 0.0;
      term = 1.0;
      for (int k = 0; k < 40; ++k) {
        expected += term;
        term *= z / static_cast<double>(k + 2);
      }
    }
    CHECK_CLOSE(results.at("output")[0], expected.real(), 1e-14 * std::abs(expected));
    CHECK_CLOSE(results.at("output")[1], expected.imag(), 1e-14 * std::abs(expected));
  }
  for (const double size : {1e-200, 1e200}) {
    const Results results = results_of(DType::f64, {{"z_re", {1}, {3.0 * size}}, {"z_im", {1}, {4.0 * size}}},
                                       [](Bench& bench, Form) { return reciprocal(bench.number("z")); }, Form::sequential);
    CHECK_CLOSE(results.at("output")[0], 0.12 / size, 1e-14 / size);
    CHECK_CLOSE(results.at("output")[1], -0.16 / size, 1e-14 / size);
  }
}

TEST_CASE("a norm of floats whose squares are out of range is that of smaller ones") {
  const auto of = [](DType real, double size) {
    Input x = normal("x", {3, 1, 6}, 1.0, 5);
    for (double& value : x.values) value *= size;
    return std::pair(results_of(real, {x}, [](Bench& bench, Form) { return layer_norm(bench["x"], Var{}, Var{}, 1e-5); }, Form::sequential),
                     results_of(real, {x}, [](Bench& bench, Form) { return rms_norm(bench["x"], Var{}, 1e-5); }, Form::sequential));
  };
  const auto [layer, rms] = of(DType::f32, 1e5);
  for (const double size : {1e12, 1e25, 1e36}) {
    const auto [large_layer, large_rms] = of(DType::f32, size);
    for (const auto& [small, large] : {std::pair(layer, large_layer), std::pair(rms, large_rms)})
      for (std::size_t i = 0; i < 18; ++i) {
        CHECK_CLOSE(large.at("output")[i], small.at("output")[i], 1e-5);
        CHECK(std::isfinite(large.at("gradient of x")[i]));
      }
  }
}
