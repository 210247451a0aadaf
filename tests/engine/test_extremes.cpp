// SPDX-License-Identifier: GPL-3.0-or-later
// Settings at the edge: decays within 1e-9 of 0 and of 1, keys of size 1e3, a million steps, weights and inputs scaled by thousands or to
// next to nothing, every hyper-parameter at the ends of its range. What is representable is finite and the same in every exact form; what
// is not is named with its first step. The sweep goes over the registry and the presets: a new architecture is tested without editing this.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "array/rng.h"
#include "execution/rollout.h"
#include "experiment/experiment.h"
#include "files/files.h"
#include "files/npz.h"
#include "models/network.h"
#include "models/parts/parts.h"
#include "models/registry.h"
#include "recurrence/attention.h"
#include "recurrence/convolution.h"
#include "recurrence/linear.h"
#include "recurrence/memory.h"
#include "scratch.h"
#include "test.h"

namespace {

using namespace reclab;
using Numbers = std::vector<double>;

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

bool finite(const Numbers& values) {
  return std::all_of(values.begin(), values.end(), [](double x) { return std::isfinite(x); });
}
double largest(const Numbers& values) {
  double size = 0.0;
  for (const double x : values) size = std::max(size, std::abs(x));
  return size;
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

/// A rotation of each pair of coordinates, times a factor: [n, n].
Numbers rotation(std::int64_t n, double factor, double angle) {
  Numbers matrix(static_cast<std::size_t>(n * n), 0.0);
  for (std::int64_t i = 0; i + 1 < n; i += 2, angle *= 1.7) {
    const auto at = [&](std::int64_t r, std::int64_t c) -> double& { return matrix[static_cast<std::size_t>(r * n + c)]; };
    at(i, i) = at(i + 1, i + 1) = factor * std::cos(angle);
    at(i, i + 1) = -factor * std::sin(angle);
    at(i + 1, i) = factor * std::sin(angle);
  }
  return matrix;
}

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

// ---- A million steps ---------------------------------------------------------------------------------------------------------------

namespace {

constexpr std::int64_t million = 1000000;

Sequence sequence_of(std::int64_t length, std::int64_t width, const std::function<double(std::int64_t)>& value) {
  Sequence sequence;
  sequence.name = sequence.source = "made";
  sequence.length = length;
  sequence.width = width;
  for (std::int64_t i = 0; i < length * width; ++i) sequence.input.push_back(value(i));
  for (std::int64_t t = 0; t < length; ++t) sequence.time.push_back(static_cast<double>(t));
  for (std::int64_t j = 0; j < width; ++j) {
    sequence.names.push_back("u" + std::to_string(j));
    sequence.mean.push_back(0.0);
    sequence.deviation.push_back(1.0);
  }
  return sequence;
}

/// Runs a layer of the test's own over a million steps of `value`, in segments.
TracePtr run_layer(const std::function<Var(Layer&, Var)>& layer, double value, const std::string& dtype = "f64", std::int64_t length = million,
                   const std::string& form = "sequential", std::int64_t every = 1000) {
  Architecture own;
  own.title = "a layer of the test's";
  own.layer = layer;
  Registry registry;
  registry.add("own", "test", own);
  RunRequest request;
  request.preset.id = request.preset.architecture = "own";
  request.sequence = sequence_of(length, 1, [&](std::int64_t) { return value; });
  request.dtype = dtype;
  request.form = form;
  request.every = every;
  request.loss = LossKind::last;
  request.probe.spectra = request.probe.jacobians = false;
  const TracePtr trace = run(registry, request, {}, {}).trace;
  CHECK_SAYS(trace->info.outcome == Outcome::finished && trace->info.sentence.empty(), trace->info.sentence);
  for (const auto& array : trace->arrays()) {
    if (array->is_complex()) continue;
    for (const double x : *array->real) CHECK_SAYS(std::isfinite(x) || (x < 0 && array->unit == "log10"), array->key + " is not finite");
  }
  return trace;
}
const Numbers& values_of(const TracePtr& trace, const std::string& key) {
  const TraceArray* array = trace->find(key);
  CHECK_SAYS(array && array->real, key);
  return *array->real;
}
Var constant_like(Var x, double value) { return affine(slice(x, 0, 0, 1), 0.0, value); }

}  // namespace

TEST_CASE("a million steps of a diagonal memory, decays 1e-9 from 0 and from 1: the sum and its gradient as in the formula") {
  for (const double a : {1.0 - 1e-9, 0.5, 1e-9}) {
    const double log_a = a > 0.5 ? std::log1p(a - 1.0) : std::log(a), last = static_cast<double>(million - 1);
    const auto trace = run_layer([&](Layer& l, Var x) { return l.diagonal({"s", {1}, "s"}, reshape(constant_like(x, a), {1}), x); }, 1.0);
    const double sum = std::expm1(static_cast<double>(million) * log_a) / std::expm1(log_a);
    CHECK_CLOSE(values_of(trace, "output").back(), sum, 1e-9 * sum);
    // dL/ds_0 = s_T a^(T-1), far below the range of a double, carried from segment to segment.
    const double expected = std::log10(sum) + last * log_a / std::log(10.0);
    CHECK_CLOSE(values_of(trace, "gradient/state/0/s").front(), expected, 1e-9 * std::max(1.0, std::abs(expected)));
  }
}

TEST_CASE("a million steps of a complex memory on the unit circle, of a matrix memory, of a rotation and of a cell: all finite") {
  const auto turning = run_layer([](Layer& l, Var x) {
    const Var a = complex(reshape(constant_like(x, 0.6), {1}), reshape(constant_like(x, 0.8 - 1e-9), {1}));
    return real(l.diagonal({"s", {1}, "s"}, a, complex(x, affine(x, 0.0, 0.0))));
  }, 1.0);
  CHECK(largest(values_of(turning, "output")) < 10.0);
  // S_t = S_{t-1} + k v with k v = 1e6: the read of a query 1e3 at the end is 1e15.
  const auto heads = [](Layer& l, Var x) { return reshape(x, {l.steps(), l.batch(), 1, 1}); };
  const auto summed = run_layer([&](Layer& l, Var x) { return parts::flat(l, l.outer({"S", {1, 1, 1}, "S"}, heads(l, x), heads(l, x), heads(l, x))); }, 1e3);
  CHECK_CLOSE(values_of(summed, "output").back(), 1e15, 1e3);
  const auto decayed = run_layer([&](Layer& l, Var x) {
    return parts::flat(l, l.outer({"S", {1, 1, 1}, "S"}, heads(l, x), heads(l, x), heads(l, x), reshape(constant_like(x, -1e-9), {1, 1})));
  }, 1e3);
  CHECK_CLOSE(values_of(decayed, "output").back(), 1e9 * std::expm1(-1e-3) / std::expm1(-1e-9), 1e6);
  const auto turned = run_layer([](Layer& l, Var x) {
    const Var A = x.graph->constant({2, 2}, rotation(2, 1.0 - 1e-9, 1.0));
    return reshape(l.linear({"s", {1, 2}, "s"}, A, reshape(x, {l.steps(), l.batch(), 1, 1}) * x.graph->constant({2}, {1.0, 0.0})), {l.steps(), l.batch(), 2});
  }, 1e3);
  CHECK(largest(values_of(turned, "output")) < 1e4);
  const auto cell = run_layer([](Layer& l, Var x) {
    return l.step({{"s", {1}, "s"}}, {x}, [](Cell&, std::span<const Var> u, std::span<const Var> s) { return std::vector<Var>{s[0] * (1.0 - 1e-9) + u[0]}; })[0];
  }, 1.0);
  CHECK_CLOSE(values_of(cell, "output").back(), 999500.1666, 0.01);
}

TEST_CASE("the norm of a gradient is followed below the range in scans as in loops") {
  for (const std::string kind : {"diagonal", "linear"})
    for (const std::string form : {"sequential", "scan", "chunkwise"}) {
      if (kind == "linear" && form == "chunkwise") continue;
      for (const std::string dtype : {"f64", "f32"}) {
        const auto trace = run_layer([&](Layer& l, Var x) {
          if (kind == "diagonal") return l.diagonal({"s", {1}, "s"}, reshape(constant_like(x, 1e-9), {1}), x);
          return reshape(l.linear({"s", {1, 1}, "s"}, x.graph->constant({1, 1}, {1e-9}), reshape(x, {l.steps(), l.batch(), 1, 1})), x.shape());
        }, 1.0, dtype, 100, form, 1);
        const Numbers& norms = values_of(trace, "gradient/state/0/s");
        for (std::size_t t = 0; t < 100; ++t) CHECK_CLOSE(norms[t], -9.0 * static_cast<double>(99 - t), 1e-4);
      }
    }
}

TEST_CASE("segments: a memory that is handed on thousands of times, by a factor within 1e-9 of 0 and of 1") {
  for (const double factor : {1.0 - 1e-9, 1e-9}) {
    const auto trace = run_layer([&](Layer& l, Var x) {
      const Var first = l.parameter("first", {1, 1}, init::constant(1.0), "the first memory");
      return l.segments({"memory", {1, 1}, "the memory"}, first, x, 4, [&](Var m, Var tokens) {
        return Layer::SegmentResult{tokens + m, tokens.dim(1) == 4 ? m * factor : Var{}};
      });
    }, 1e-30, "f64", 8000);
    CHECK_CLOSE(values_of(trace, "output").back(), std::pow(factor, 1999.0) + 1e-30, factor == 1e-9 ? 1e-40 : 1e-12);
  }
}

// ---- What is not finite is named ---------------------------------------------------------------------------------------------------

namespace {

RunRequest request_for(const std::string& architecture, std::int64_t length, double size = 1.0) {
  RunRequest request;
  request.preset.id = request.preset.architecture = architecture;
  Rng rng(7);
  request.sequence = sequence_of(length, 2, [&](std::int64_t) { return size * rng.normal(); });
  request.seed = 3;
  return request;
}
bool says(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// Weights of a model after a change, in a file.
void write_weights(const RunRequest& request, const std::filesystem::path& path, const std::function<double(const std::string&, double)>& change) {
  const Network network(builtin_registry().find(request.preset.architecture), hyper_of(builtin_registry(), request.preset, request.set), {.input = request.sequence.width});
  AtomicFile file(path);
  NpzWriter writer(file);
  Parameters parameters = network.initialise(request.seed);
  for (auto& entry : parameters.entries()) {
    for (double& value : entry.values) value = change(entry.name, value);
    writer.add("param/" + entry.name, entry.shape, std::span<const double>(entry.values));
  }
  writer.finish();
  file.commit();
}

}  // namespace

TEST_CASE("gradients that leave the range on the way back are named with array and step, though the run has finished") {
  // Without input the states stay at 0, and the gradient of an output that is asked for grows by 2 a step.
  RunRequest request = request_for("elman", 1500, 0.0);
  request.set = {{"activation", "identity"}, {"width", "2"}, {"spectral_radius", "2"}, {"bias", "no"}};
  request.loss = LossKind::random;
  const auto trace = run(builtin_registry(), request, {}, {}).trace;
  const std::string all = trace->info.sentence;
  CHECK_SAYS(says(all, " became non-finite at step ") && says(all, "gradient/") && says(all, "on the way back"), all);
  CHECK_EQUAL(std::string(to_string(trace->info.outcome)), "finished");
  // The norms of the states' gradients, which are kept as logarithms, go on.
  const TraceArray* norms = trace->find("gradient/state/0/h");
  CHECK(norms && finite(*norms->real));
  for (const FormReport& form : compare_forms(builtin_registry(), request, {})) {
    CHECK_SAYS(says(form.note, "became non-finite at step") && says(form.note, "gradient/"), form.form + ": " + form.note);
    CHECK(std::isnan(form.gradient_error));
  }
}

TEST_CASE("a loss beyond the range, an input beyond float32 and weights that are not numbers are named") {
  RunRequest request = request_for("elman", 40, 1e200);
  request.set = {{"activation", "identity"}, {"width", "4"}, {"spectral_radius", "0.5"}};
  request.loss = LossKind::mean;
  const auto trace = run(builtin_registry(), request, {}, {}).trace;
  CHECK_EQUAL(std::string(to_string(trace->info.outcome)), "finished");
  CHECK(std::any_of(trace->info.notes.begin(), trace->info.notes.end(), [](const std::string& note) { return says(note, "The loss became non-finite at step 0"); }));
  request.dtype = "f32";
  const auto narrow = run(builtin_registry(), request, {}, {}).trace;
  CHECK_EQUAL(std::string(to_string(narrow->info.outcome)), "diverged");
  CHECK_SAYS(narrow->info.sentence.starts_with("input became non-finite at step 0"), narrow->info.sentence);
  request = request_for("elman", 40);
  test::Scratch folder;
  request.weights = folder / "w.npz";
  write_weights(request, request.weights, [](const std::string& name, double value) { return says(name, "weight_hh") ? NAN : value; });
  CHECK_ERROR(run(builtin_registry(), request, {}, {}), request.weights.string() + ": the entry 0/weight_hh is not finite at [0, 0]");
}

TEST_CASE("a final state that is not recorded is looked at too") {
  Architecture own;
  own.title = "a layer of the test's";
  own.layer = [](Layer& l, Var x) {
    const Var big = x * 1e300;
    const Var before = slice(l.history("buffer", big * 1e10, 1, "what was before"), 0, 0, l.steps());
    return tanh(before);  // 1, whatever overflowed before
  };
  Registry registry;
  registry.add("own", "test", own);
  RunRequest request;
  request.preset.id = request.preset.architecture = "own";
  request.sequence = sequence_of(20, 1, [](std::int64_t t) { return t < 12 ? 0.0 : 1.0; });
  const auto trace = run(registry, request, {}, {}).trace;
  CHECK_EQUAL(std::string(to_string(trace->info.outcome)), "diverged");
  CHECK_SAYS(trace->info.sentence.starts_with("state/0/buffer became non-finite between steps 0 and 19"), trace->info.sentence);
}

TEST_CASE("a gradient that is not a number reaches the memory and is not taken for none") {
  // sqrt has no slope at 0: 0 times infinity at the last step.
  for (const std::string kind : {"step", "diagonal", "linear"}) {
    Architecture own;
    own.title = "a layer of the test's";
    own.layer = [kind](Layer& l, Var x) {
      Var s;
      if (kind == "step")
        s = l.step({{"s", {1}, "s"}}, {x}, [](Cell&, std::span<const Var> u, std::span<const Var> at) { return std::vector<Var>{0.5 * at[0] + u[0]}; })[0];
      else if (kind == "diagonal")
        s = l.diagonal({"s", {1}, "s"}, reshape(affine(slice(x, 0, 0, 1), 0.0, 0.5), {1}), x);
      else
        s = reshape(l.linear({"s", {1, 1}, "s"}, x.graph->constant({1, 1}, {0.5}), reshape(x, {l.steps(), l.batch(), 1, 1})), x.shape());
      return sqrt(s);
    };
    Registry registry;
    registry.add("own", "test", own);
    RunRequest request;
    request.preset.id = request.preset.architecture = "own";
    request.sequence = sequence_of(20, 1, [](std::int64_t) { return 0.0; });
    const auto trace = run(registry, request, {}, {}).trace;
    CHECK_SAYS(trace->info.sentence.starts_with("gradient/state/0/s became non-finite at step 19 on the way back"), kind + ": " + trace->info.sentence);
  }
}

namespace {

/// A model with some of its weights changed, in both precisions and every form: all that it has is finite, and the output not nothing.
void check_changed(const std::string& architecture, const std::vector<std::pair<std::string, std::string>>& set, const std::function<double(const std::string&, double)>& change,
                   bool gradients = true) {
  for (const std::string dtype : {"f64", "f32"}) {
    RunRequest request = request_for(architecture, 40);
    request.set = set;
    request.dtype = dtype;
    request.loss = LossKind::random;
    request.probe.gradients = gradients;
    const test::Scratch folder;
    request.weights = folder / "w.npz";
    write_weights(request, request.weights, change);
    for (const std::string& form : card(builtin_registry(), request.preset).forms) {
      request.form = form;
      const auto trace = run(builtin_registry(), request, {}, {}).trace;
      const std::string what = dtype + ", " + form + ": ";
      CHECK_SAYS(trace->info.outcome == Outcome::finished && trace->info.sentence.empty(), what + trace->info.sentence);
      for (const TraceArray* array : trace->matching("gradient/param/")) CHECK_SAYS(finite(*array->real), what + array->key);
      CHECK_SAYS(finite(*trace->find("output")->real) && largest(*trace->find("output")->real) > 0.0, what + "output");
    }
  }
}
double as_it_is(const std::string&, double value) { return value; }
/// Weights whose name has the part in it become `to`.
std::function<double(const std::string&, double)> all_of(const std::string& part, double to) {
  return [=](const std::string& name, double value) { return says(name, part) ? to : value; };
}

}  // namespace

TEST_CASE("retnet: decays 2^-68 from 1, whose normaliser (1 - γ)/(1 - γ^t) is 1/t") {
  check_changed("retnet", {{"width", "128"}, {"heads", "64"}, {"block", "none"}, {"norm", "no"}}, as_it_is);
}
TEST_CASE("hyena: windows of a normalised filter that all fall below the range, though their ratios do not") {
  check_changed("hyena", {{"width", "4"}, {"normalized", "yes"}, {"target", "1e-9"}, {"fast_decay_pct", "0.001"}, {"slow_decay_pct", "0.001"}, {"l_max", "40"}}, as_it_is);
}
TEST_CASE("mlstm: a stabiliser of -1000 and less, e^-m beyond the range") {
  check_changed("mlstm", {{"width", "4"}, {"heads", "2"}, {"inner", "8"}, {"eps", "0"}}, all_of("gate.bias", -1000.0));
}
TEST_CASE("mlstm: a stabiliser of 1000, e^-m below the range, where keys are nothing") {
  // What is read is 0; its slope is e^m, out of range.
  check_changed("mlstm", {{"width", "4"}, {"heads", "2"}, {"inner", "8"}, {"eps", "0"}},
                [](const std::string& name, double value) { return says(name, "igate.bias") ? 1000.0 : says(name, "k_proj") ? 0.0 : value; }, false);
}
TEST_CASE("lru: exp(-exp(ν)) where the inner one is beyond the range") { check_changed("lru", {{"width", "4"}, {"state", "4"}}, all_of("nu_log", 800.0)); }
TEST_CASE("mamba: exp(-Δ exp(A_log)) likewise") { check_changed("mamba", {{"width", "4"}, {"state", "4"}}, all_of("A_log", 800.0)); }
TEST_CASE("rwkv-4: exp(-exp(time_decay)) likewise") { check_changed("rwkv-4", {{"width", "4"}}, all_of("time_decay", 800.0)); }
TEST_CASE("s4d: Re A = -exp(log_A_real) beyond the range") { check_changed("s4d", {{"width", "4"}, {"state", "4"}}, all_of("log_A_real", 800.0)); }
TEST_CASE("s4: Re Λ = -exp(A_real) beyond the range") { check_changed("s4", {{"width", "4"}, {"state", "4"}}, all_of("A_real", 800.0)); }
TEST_CASE("s5: an eigenvalue of 0, where (e^(λΔ) - 1)/λ is Δ") { check_changed("s5", {{"width", "4"}, {"state", "4"}}, all_of("Lambda", 0.0)); }
TEST_CASE("deltanet: positive features that all underflow, divided by their sum") {
  check_changed("deltanet", {{"width", "4"}, {"heads", "2"}, {"feature_map", "elu"}, {"sum_eps", "0"}, {"block", "none"}},
                [](const std::string& name, double value) { return says(name, "qkvb") ? 2e4 * value : value; });
}

TEST_CASE("s4d and s5: a step of 1e-6 keeps the digits of (e^(λΔ) - 1)/λ") {
  // Over 40 steps of 1e-6 nothing decays, so the output is that of a sum with B̄ = Δ to 1e-4, and doubling the step doubles the state.
  for (const std::string architecture : {"s4d", "s5"})
    for (const std::string dtype : {"f64", "f32"}) {
      std::vector<Numbers> states;
      for (const char* step : {"1e-06", "2e-06"}) {
        RunRequest request = request_for(architecture, 40);
        request.set = {{"width", "4"}, {"state", "4"}, {"dt_min", step}, {"dt_max", step}, {"block", "none"}};
        request.dtype = dtype;
        const auto trace = run(builtin_registry(), request, {}, {}).trace;
        states.emplace_back();
        for (const auto& z : *trace->find("state/0/h")->complex) states.back().push_back(std::abs(z));
      }
      const double size = largest(states[1]);
      for (std::size_t i = 0; i < states[0].size(); ++i)
        CHECK_SAYS(std::abs(states[1][i] - 2.0 * states[0][i]) <= 1e-3 * size, architecture + ", " + dtype + ": " + test::show(states[0][i]) + " and " + test::show(states[1][i]));
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

// ---- The sweep over presets and hyper-parameters -----------------------------------------------------------------------------------

namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;

struct Counts {
  int finite = 0, named = 0, diverged = 0, refused = 0;
};

/// A run ends with numbers that are finite, or says of which array and step it cannot. Returns whether all are finite.
bool check_run(const RunRequest& request, const std::string& what, Counts& counts) {
  RunResult result;
  try {
    result = run(builtin_registry(), request, {}, {});
  } catch (const Error& error) {
    CHECK_SAYS(std::string(error.what()).size() > 20, what + ": no sentence");
    ++counts.refused;
    std::printf("%s: %s\n", what.c_str(), error.what());
    return false;
  }
  const Trace& trace = *result.trace;
  const RunInfo& info = trace.info;
  if (!info.sentence.empty()) std::printf("%s: %s\n", what.c_str(), info.sentence.c_str());
  const bool diverged = info.outcome == Outcome::diverged;
  CHECK_SAYS(diverged || info.outcome == Outcome::finished, what + ": " + info.sentence);
  if (diverged) CHECK_SAYS(says(info.sentence, " became non-finite at step ") || says(info.sentence, " became non-finite between steps "), what + ": " + info.sentence);
  const bool back = !diverged && says(info.sentence, "on the way back");
  if (!diverged && !info.sentence.empty()) CHECK_SAYS(back && says(info.sentence, "gradient/"), what + ": " + info.sentence);
  bool all = true;
  for (const auto& array : trace.arrays()) {
    const bool logs = array->unit == "log10";
    bool fine = true;
    if (array->is_complex())
      for (const auto& z : *array->complex) fine = fine && std::isfinite(z.real()) && std::isfinite(z.imag());
    else
      for (const double x : *array->real) fine = fine && (std::isfinite(x) || (logs && std::isinf(x) && x < 0.0));
    if (fine) continue;
    all = false;
    const bool noted = std::any_of(info.notes.begin(), info.notes.end(), [&](const std::string& note) { return note.starts_with(array->key + " is not finite, first at step "); });
    const bool said = array->text.find("NaN where") != std::string::npos;
    CHECK_SAYS(noted || said || (back && array->key.starts_with("gradient/")), what + ": " + array->key + " has entries that are not finite, and nothing says so");
  }
  for (const auto& [key, array] : result.state) {
    if (array.real) CHECK_SAYS(finite(*array.real), what + ": final " + key);
    if (array.complex)
      for (const auto& z : *array.complex) CHECK_SAYS(std::isfinite(z.real()) && std::isfinite(z.imag()), what + ": final " + key);
  }
  if (!diverged && !std::isfinite(info.loss_value))
    CHECK_SAYS(std::any_of(info.notes.begin(), info.notes.end(), [](const std::string& note) { return note.starts_with("The loss became non-finite at step "); }), what + ": the loss");
  ++(diverged ? counts.diverged : all ? counts.finite : counts.named);
  return !diverged && all;
}

bool possible(const Preset& preset, const Settings& set) {
  try {
    hyper_of(builtin_registry(), preset, set);
    return true;
  } catch (const Error&) {
    return false;
  }
}

/// A preset made small, as far as it can be.
Settings small_settings(const Preset& preset) {
  Settings set;
  for (const char* width : {"4", "8", "16"}) {
    set.clear();
    for (const HyperSpec& spec : builtin_registry().find(preset.architecture).hyper) {
      if (spec.key == "width" || spec.key == "state") set.emplace_back(spec.key, width);
      if (spec.key == "heads" || spec.key == "layers") set.emplace_back(spec.key, "2");
      if (spec.key == "inner" || spec.key == "feed_forward" || spec.key == "mlp") set.emplace_back(spec.key, "8");
      if (spec.key == "order" && spec.high > 64) set.emplace_back(spec.key, "4");
    }
    if (possible(preset, set)) return set;
  }
  return {};
}
Settings with(Settings set, const std::string& key, const std::string& value) {
  set.erase(std::remove_if(set.begin(), set.end(), [&](const auto& entry) { return entry.first == key; }), set.end());
  set.emplace_back(key, value);
  return set;
}
std::string text_of(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

/// Every hyper-parameter at the ends of its range, each choice and flag, each on its own; of integers the low end, and the high one where
/// it costs nothing (a window, a time).
std::vector<Settings> ends_of(const Preset& preset, const Settings& small) {
  std::vector<Settings> all{small};
  for (const HyperSpec& spec : builtin_registry().find(preset.architecture).hyper) {
    std::vector<std::string> values;
    if (spec.kind == HyperKind::flag) values = {"no", "yes"};
    if (spec.kind == HyperKind::choice) values = spec.choices;
    if (spec.kind == HyperKind::real) values = {text_of(spec.low), text_of(spec.high)};
    if (spec.kind == HyperKind::integer) {
      values = {std::to_string(static_cast<std::int64_t>(spec.low))};
      if (spec.high <= 64) values.push_back(std::to_string(std::min<std::int64_t>(16, static_cast<std::int64_t>(spec.high))));
    }
    for (const std::string& value : values)
      if (possible(preset, with(small, spec.key, value))) all.push_back(with(small, spec.key, value));
  }
  return all;
}

void sweep(const std::string& architecture) {
  const PresetLibrary library(builtin_registry(), {std::filesystem::path(RECLAB_SOURCE_DIR) / "presets"});
  const test::Scratch folder;
  Counts counts;
  for (const Preset& preset : library.presets()) {
    if (preset.architecture != architecture) continue;
    const Settings small = small_settings(preset);
    RunRequest request = request_for(architecture, 70);
    request.preset = preset;
    request.set = small;
    request.loss = LossKind::mean;
    const Sequence plain = request.sequence;
    struct Change {
      const char* name;
      double input, weights;
      bool around;  // of the weights: all of one size, signs in turn
    };
    static const Change changes[] = {{"inputs times 1e3", 1e3, 1.0, false}, {"inputs times 1e-12", 1e-12, 1.0, false}, {"weights times 1e3", 1.0, 1e3, false},
                              {"weights times 1e-12", 1.0, 1e-12, false}, {"weights of 0", 1.0, 0.0, false}, {"weights of 30", 1.0, 30.0, true},
                              {"weights of -1e3", 1.0, -1e3, true}, {"inputs and weights times 1e3", 1e3, 1e3, false}, {"inputs of 0", 0.0, 1.0, false}};
    for (const std::string dtype : {"f64", "f32"}) {
      request.dtype = dtype;
      for (const Change& change : changes) {
        request.sequence = plain;
        for (double& x : request.sequence.input) x *= change.input;
        request.weights = folder / "w.npz";
        write_weights(request, request.weights, [&](const std::string&, double value) { return change.around ? change.weights : value * change.weights; });
        const std::string what = preset.id + ", " + dtype + ", " + change.name;
        if (!check_run(request, what, counts)) continue;
        for (const std::string& form : card(builtin_registry(), preset).forms) {
          request.form = form;
          if (form != "sequential") CHECK_SAYS(check_run(request, what + ", " + form, counts), what + ": the form " + form + " loses what the sequential one has");
        }
        request.form = "sequential";
      }
      request.weights.clear();
      for (const Settings& set : ends_of(preset, small)) {
        std::string what = preset.id + ", " + dtype + ", " + set.back().first + "=" + set.back().second;
        request.set = set;
        for (const double size : {1.0, 1e3}) {
          request.sequence = plain;
          for (double& x : request.sequence.input) x *= size;
          check_run(request, what + (size > 1.0 ? ", inputs times 1e3" : ""), counts);
        }
      }
      request.set = small;
    }
  }
  CHECK(counts.finite + counts.named + counts.diverged > 0);
  // Most of what is legal is representable: a model that diverges in more than half of these has lost its numbers, not its range.
  CHECK_SAYS(2 * counts.finite > counts.named + counts.diverged, architecture + ": only " + std::to_string(counts.finite) + " runs are finite");
  std::printf("%s: %d finite, %d with a gradient named, %d diverged, %d refused\n", architecture.c_str(), counts.finite, counts.named, counts.diverged, counts.refused);
}

const bool registered = [] {
  for (const Architecture& architecture : builtin_registry().all())
    test::cases().push_back({"extremes of " + architecture.id, [id = architecture.id] { sweep(id); }});
  return true;
}();

}  // namespace

TEST_CASE("there are architectures to try") { CHECK(registered && !builtin_registry().all().empty()); }
