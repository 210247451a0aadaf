// SPDX-License-Identifier: GPL-3.0-or-later
// What the papers of constrained recurrent networks claim, with numbers: lengths that are kept, transients, equilibria, noise.
#include <algorithm>
#include <cmath>
#include <complex>
#include <string>
#include <vector>

#include "experiment/experiment.h"
#include "models/registry.h"
#include "test.h"

using namespace reclab;

namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;

TracePtr run_of(const std::string& architecture, std::int64_t length, const Settings& set, const std::string& dtype = "f64") {
  RunRequest request;
  request.preset.id = request.preset.title = request.preset.architecture = architecture;
  request.set = set;
  request.sequence = make_task("noise", {.length = length, .seed = 1});
  request.dtype = dtype;
  request.every = 1;
  const TracePtr trace = run(builtin_registry(), request, {}, {}).trace;
  CHECK_SAYS(trace->info.outcome == Outcome::finished, trace->info.sentence);
  return trace;
}
const std::vector<double>& real_of(const Trace& trace, const std::string& key) {
  const TraceArray* array = trace.find(key);
  CHECK_SAYS(array && array->real, key);
  return *array->real;
}
const std::vector<std::complex<double>>& spectrum_of(const Trace& trace) {
  const TraceArray* array = trace.find("spectrum/0");
  CHECK(array && array->complex);
  return *array->complex;
}
double largest(const std::vector<double>& values) { return *std::ranges::max_element(values); }
double largest_modulus(const std::vector<std::complex<double>>& values) {
  double most = 0.0;
  for (const auto& value : values) most = std::max(most, std::abs(value));
  return most;
}

}  // namespace

TEST_CASE("over 2,000 linear steps a unitary and an orthogonal network keep every singular value of ds_T/ds_t at 1") {
  for (const auto& [architecture, more] :
       std::vector<std::pair<std::string, Settings>>{{"unitary-rnn", {{"width", "8"}}},
                                                     {"unitary-rnn", {{"width", "7"}, {"permutation_seed", "5"}}},
                                                     {"exp-rnn", {{"width", "16"}}},
                                                     {"exp-rnn", {{"width", "16"}, {"map", "cayley"}}},
                                                     {"exp-rnn", {{"width", "15"}, {"init", "cayley"}}}}) {
    Settings set = more;
    set.emplace_back("activation", "identity");
    const TracePtr trace = run_of(architecture, 2000, set);
    const auto &most = real_of(*trace, "jacobian/0"), &least = real_of(*trace, "jacobian_min/0");
    CHECK(least.size() >= 100);
    double worst = 0.0;
    for (const auto* logs : {&most, &least})
      for (const double value : *logs) worst = std::max(worst, std::abs(std::pow(10.0, value) - 1.0));
    std::printf("%s: a singular value is off 1 by at most %.1e\n", architecture.c_str(), worst);
    CHECK_SAYS(worst <= 1e-6, architecture + ": a singular value is off by " + test::show(worst));
    for (const auto& lambda : spectrum_of(*trace)) CHECK_CLOSE(std::abs(lambda), 1.0, 1e-12);
  }
}

TEST_CASE("an orthogonal matrix in single precision is one to its rounding") {
  const TracePtr trace = run_of("exp-rnn", 20, {{"width", "32"}, {"activation", "identity"}}, "f32");
  for (const auto& lambda : spectrum_of(*trace)) CHECK_CLOSE(std::abs(lambda), 1.0, 1e-6);
}

TEST_CASE("the transient growth of a non-normal network exceeds its spectral radius") {
  const Settings set{{"width", "16"}, {"activation", "identity"}, {"modulus", "0.95"}};
  Settings non_normal = set;
  non_normal.emplace_back("transient", "0.3");
  const TracePtr normal = run_of("nnrnn", 200, set), grown = run_of("nnrnn", 200, non_normal);
  for (const TracePtr& trace : {normal, grown})
    for (const auto& lambda : spectrum_of(*trace)) CHECK_CLOSE(std::abs(lambda), 0.95, 1e-6);
  // A normal matrix stretches nothing by more than its spectral radius to the power of the steps.
  CHECK(largest(real_of(*normal, "jacobian/0")) <= 1e-12);
  const double growth = std::pow(10.0, largest(real_of(*grown, "jacobian/0")));
  std::printf("nnrnn: spectral radius %.4f, transient growth %.3g\n", largest_modulus(spectrum_of(*grown)), growth);
  CHECK(growth > 2.0);
}

TEST_CASE("at its equilibrium the incremental network's Jacobian is minus the identity") {
  const auto off = [](const char* inner) {
    const TracePtr trace = run_of("incremental-rnn", 50, {{"width", "8"}, {"inner_steps", inner}, {"eta", "0.5"}, {"activation", "tanh"}});
    double worst = 0.0;
    for (const auto& lambda : spectrum_of(*trace)) worst = std::max(worst, std::abs(lambda + 1.0));
    return worst;
  };
  const double near = off("10"), nearer = off("40"), there = off("80");
  std::printf("incremental-rnn: eigenvalues are off -1 by %.1e after 10 inner steps, %.1e after 40, %.1e after 80\n", near, nearer, there);
  CHECK(near < 0.1 && nearer < 1e-4 * near && there < 1e-10);
}

TEST_CASE("an antisymmetric network's eigenvalues have one real part, which the diffusion alone sets") {
  for (const double gamma : {0.0, 0.3}) {
    const TracePtr trace = run_of("antisymmetric-rnn", 20,
                                  {{"width", "12"}, {"epsilon", "0.1"}, {"gamma", std::to_string(gamma)}, {"activation", "identity"}});
    double turning = 0.0;
    for (const auto& lambda : spectrum_of(*trace)) {
      CHECK_CLOSE(lambda.real(), 1.0 - 0.1 * gamma, 1e-12);
      turning = std::max(turning, lambda.imag());
    }
    CHECK(turning > 0.1);
  }
}

TEST_CASE("noise is that of its seed, of the deviation asked for, and other numbers at each step") {
  const Settings set{{"width", "8"}, {"add_noise", "0.05"}, {"mult_noise", "0.4"}};
  Settings other = set;
  other.emplace_back("noise_seed", "2");
  const TracePtr first = run_of("noisy-rnn", 2000, set), again = run_of("noisy-rnn", 2000, set), another = run_of("noisy-rnn", 2000, other);
  const auto &add = real_of(*first, "gate/0/add"), &mult = real_of(*first, "gate/0/mult");
  CHECK(add == real_of(*again, "gate/0/add") && real_of(*first, "output") == real_of(*again, "output"));
  CHECK(add != real_of(*another, "gate/0/add"));
  const auto n = static_cast<double>(add.size());
  double sum = 0.0, squares = 0.0, lagged = 0.0, share = 0.0;
  for (std::size_t i = 0; i < add.size(); ++i) {
    sum += add[i];
    squares += add[i] * add[i];
    if (i >= 8) lagged += add[i] * add[i - 8];
    share += mult[i];
    CHECK(mult[i] >= 0.6 && mult[i] < 1.0);
  }
  const double variance = 0.05 * 0.05;  // five deviations of each mean, for n independent draws
  CHECK_CLOSE(sum / n, 0.0, 5.0 * 0.05 / std::sqrt(n));
  CHECK_CLOSE(squares / n, variance, 5.0 * variance * std::sqrt(2.0 / n));
  CHECK_CLOSE(lagged / n, 0.0, 5.0 * variance / std::sqrt(n));
  CHECK_CLOSE(share / n, 0.8, 5.0 * 0.4 / std::sqrt(12.0 * n));
}
