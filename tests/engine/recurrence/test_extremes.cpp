// SPDX-License-Identifier: GPL-3.0-or-later
// Memories and scalar functions at the edge: decays within 1e-9 of 0 and of 1, keys of size 1e3. What is representable is finite and the
// same in every exact form.
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
#include "recurrence/primitive.h"
#include "test.h"

namespace {

using namespace reclab;
using test::finite, test::largest, test::Numbers;

// ---- Every primitive, every exact form ---------------------------------------------------------------------------------------------

using namespace primitive;
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
        results["final " + std::to_string(m) + " " + std::to_string(i)] =
            to_double(cpu_backend(), real, bench.graph.value(end), parts(end));
  bench.graph.clear_gradients();
  Rng rng(99);
  Numbers seed;
  for (std::int64_t i = 0; i < parts(output); ++i) seed.push_back(rng.normal());
  const auto seeds = bytes_of_values(real, seed);
  std::copy(seeds.begin(), seeds.end(), static_cast<char*>(bench.graph.gradient(output)));
  bench.graph.backward();
  for (const Input& input : inputs)
    results["gradient of " + input.name] =
        to_double(cpu_backend(), real, bench.graph.gradient(bench.in.at(input.name)), count(input.shape));
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

const bool registered = [] {
  for (const Primitive& one : all_primitives())
    test::cases().push_back({"extremes of the primitive " + one.id,
                             [&one] {
                               for (const ExtremePrimitive& extreme : one.extremes())
                                 check_forms(extreme.name, extreme.forms, extreme.inputs, extreme.build);
                             },
                             {}});
  return true;
}();

}  // namespace

TEST_CASE("every primitive has extremes of its own") {
  CHECK(registered && !all_primitives().empty());
  for (const Primitive& one : all_primitives()) CHECK_SAYS(one.extremes && !one.extremes().empty(), one.id);
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
    const Results results = results_of(
        DType::f64, {{"z_re", {1}, {z.real()}}, {"z_im", {1}, {z.imag()}}}, [](Bench& bench, Form) { return mean_exp(bench.number("z")); },
        Form::sequential);
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
    const Results results = results_of(
        DType::f64, {{"z_re", {1}, {3.0 * size}}, {"z_im", {1}, {4.0 * size}}},
        [](Bench& bench, Form) { return reciprocal(bench.number("z")); }, Form::sequential);
    CHECK_CLOSE(results.at("output")[0], 0.12 / size, 1e-14 / size);
    CHECK_CLOSE(results.at("output")[1], -0.16 / size, 1e-14 / size);
  }
}

TEST_CASE("a norm of floats whose squares are out of range is that of smaller ones") {
  const auto of = [](DType real, double size) {
    Input x = normal("x", {3, 1, 6}, 1.0, 5);
    for (double& value : x.values) value *= size;
    return std::pair(results_of(
                         real, {x}, [](Bench& bench, Form) { return layer_norm(bench["x"], Var{}, Var{}, 1e-5); }, Form::sequential),
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
