// SPDX-License-Identifier: GPL-3.0-or-later
// What the papers of the linear transformers claim of their feature maps: Performer's estimate of the softmax kernel is unbiased and its
// variance falls as 1/m, the kernels of cosFormer and LRPE are cosines of the distance, TransNormer's parallel and recurrent forms agree
// after their norms.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numbers>
#include <string>
#include <vector>

#include "array/backend.h"
#include "array/rng.h"
#include "experiment/experiment.h"
#include "models/parts/features.h"
#include "models/registry.h"
#include "test.h"

using namespace reclab;

namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;

TracePtr run_of(const std::string& architecture, const Settings& set, std::int64_t length, const std::string& form = "") {
  RunRequest request;
  request.preset.id = request.preset.title = request.preset.architecture = architecture;
  request.set = set;
  request.sequence = make_task("noise", {.length = length, .seed = 3});
  request.every = 1;
  if (!form.empty()) request.form = form;
  request.recording.kinds.remove(kinds_of(Stage::late));
  const TracePtr trace = run(builtin_registry(), request, {}, {}).trace;
  CHECK_SAYS(trace->info.outcome == Outcome::finished, trace->info.sentence);
  return trace;
}
const std::vector<double>& values_of(const TracePtr& trace, const std::string& key) {
  CHECK_SAYS(trace->find(key), key);
  return *trace->find(key)->real;
}
double distance(const std::vector<double>& a, const std::vector<double>& b) {
  CHECK_EQUAL(a.size(), b.size());
  double most = 0.0, largest = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    most = std::max(most, std::abs(a[i] - b[i]));
    largest = std::max(largest, std::abs(b[i]));
  }
  return most / largest;
}

/// x W^T + b for rows of x.
std::vector<double> affine_of(const std::vector<double>& x, const std::vector<double>& W, const std::vector<double>& b) {
  const std::size_t out = b.size(), in = W.size() / out, rows = x.size() / in;
  std::vector<double> y(rows * out);
  for (std::size_t t = 0; t < rows; ++t)
    for (std::size_t i = 0; i < out; ++i) {
      y[t * out + i] = b[i];
      for (std::size_t j = 0; j < in; ++j) y[t * out + i] += W[i * in + j] * x[t * in + j];
    }
  return y;
}

struct Moments {
  double mean = 0.0, variance = 0.0;
};
/// Of Performer's estimate of exp(q.k) over many draws of m features.
Moments estimate(const std::vector<double>& q, const std::vector<double>& k, std::int64_t m, parts::RowLength length, int draws,
                 bool waves = false) {
  const auto d = static_cast<std::int64_t>(q.size());
  Graph graph(DType::f64);
  const Var W = graph.leaf(LeafKind::variable, {m, d}, DType::f64), x = graph.constant({1, d}, q), y = graph.constant({1, d}, k);
  const auto features = [&](Var z) {
    return waves ? parts::waves(z, W, false) * exp(parts::squared_norm(z) * 0.5) : exp(parts::softmax_exponents(z, W));
  };
  const Var made = mean_keep(features(x) * features(y), -1) * (waves ? 2.0 : 1.0);  // of waves a cosine and a sine make one feature
  graph.allocate(cpu_backend(), false);
  std::vector<double> rows(static_cast<std::size_t>(m * d));
  graph.bind(W, rows.data());
  const Init draw = parts::orthogonal_rows(length);
  const Shape shape{m, d};
  double sum = 0.0, squares = 0.0;
  for (int i = 0; i < draws; ++i) {
    Rng rng(static_cast<std::uint64_t>(1000 + i));
    InitContext context{rng, shape, rows, {}};
    draw(context);
    graph.forward();
    const double one = *static_cast<const double*>(graph.value(made));
    sum += one;
    squares += one * one;
  }
  const double mean = sum / draws;
  return {mean, squares / draws - mean * mean};
}

}  // namespace

TEST_CASE("Performer's estimate of the softmax kernel is unbiased, and its variance falls as one over the number of features") {
  const std::vector<double> q{0.6, -0.3, 0.2, 0.5}, k{0.1, 0.4, -0.5, 0.7};
  double dot = 0.0;
  for (std::size_t i = 0; i < q.size(); ++i) dot += q[i] * k[i];
  const double kernel = std::exp(dot);
  constexpr int draws = 20000;
  std::vector<double> variances;
  for (const std::int64_t m : {4, 8, 16, 32, 64}) {
    const Moments found = estimate(q, k, m, parts::RowLength::gaussian, draws);
    const double error = std::sqrt(found.variance / draws);
    std::printf("m = %lld: mean %.4f of %.4f, standard error %.4f, variance %.5f\n", static_cast<long long>(m), found.mean, kernel, error,
                found.variance);
    CHECK_SAYS(std::abs(found.mean - kernel) < 4.0 * error,
               "the mean of the estimates is " + test::show(found.mean) + ", the kernel " + test::show(kernel));
    variances.push_back(found.variance);
  }
  for (std::size_t i = 1; i < variances.size(); ++i) CHECK_CLOSE(variances[i - 1] / variances[i], 2.0, 0.15);
  // Rows that all have length sqrt(d) are not Gaussian ones: what has their mean is another kernel.
  const Moments rooted = estimate({1.6, -0.9, 0.8, 1.5}, {0.6, 1.2, -1.5, 1.7}, 4, parts::RowLength::root, draws);
  const double other = std::exp(1.6 * 0.6 - 0.9 * 1.2 - 0.8 * 1.5 + 1.5 * 1.7);
  CHECK(std::abs(rooted.mean - other) > 4.0 * std::sqrt(rooted.variance / draws));
}

TEST_CASE("where the kernel is small positive features tell it better than waves, and where it is large worse") {
  const std::vector<double> a{0.9, -0.6, 0.7, 0.8}, b{-0.9, 0.6, -0.7, -0.8};
  const Moments positive = estimate(a, b, 16, parts::RowLength::gaussian, 4000),
                waves = estimate(a, b, 16, parts::RowLength::gaussian, 4000, true);
  CHECK_SAYS(100.0 * positive.variance < waves.variance, test::show(positive.variance) + " and " + test::show(waves.variance));
  const Moments alike = estimate(a, a, 16, parts::RowLength::gaussian, 4000),
                alike_waves = estimate(a, a, 16, parts::RowLength::gaussian, 4000, true);
  CHECK_CLOSE(alike_waves.variance, 0.0, 1e-9);
  CHECK(alike.variance > 0.1);
}

TEST_CASE("cosFormer's weights are products of features times the cosine of the distance") {
  constexpr std::size_t T = 60, d = 6;
  const TracePtr trace =
      run_of("cosformer",
             {{"width", "6"}, {"heads", "1"}, {"horizon", "70"}, {"block", "none"}, {"out_projection", "no"}, {"encoder_bias", "no"}}, T);
  const auto in = affine_of(values_of(trace, "input"), values_of(trace, "param/encoder/weight"), std::vector<double>(d, 0.0));
  const auto project = [&](const std::string& which) {
    return affine_of(in, values_of(trace, "param/0/self_attn." + which + "_proj.weight"),
                     values_of(trace, "param/0/self_attn." + which + "_proj.bias"));
  };
  const auto q = project("q"), k = project("k"), v = project("v");
  std::vector<double> expected;
  for (std::size_t t = 0; t < T; ++t) {
    std::vector<double> read(d, 0.0);
    double weights = 0.0;
    for (std::size_t s = 0; s <= t; ++s) {
      double weight = 0.0;
      for (std::size_t i = 0; i < d; ++i) weight += std::max(q[t * d + i], 0.0) * std::max(k[s * d + i], 0.0);
      weight *= std::cos(std::numbers::pi / 140.0 * static_cast<double>(t - s));
      weights += weight;
      for (std::size_t i = 0; i < d; ++i) read[i] += weight * v[s * d + i];
    }
    for (const double value : read) expected.push_back(value / std::max(weights, 1e-6));
  }
  const double error = distance(values_of(trace, "output"), expected);
  std::printf("cosformer: %.1e from its kernel\n", error);
  CHECK(error <= 1e-12);
}

TEST_CASE("LRPE's weights are sums of cosines of the distance, in a frame that stands and in one that turns") {
  constexpr std::size_t T = 60, d = 6;
  for (const char* frame : {"fixed", "turning"}) {
    const TracePtr trace = run_of(
        "lrpe", {{"width", "6"}, {"heads", "1"}, {"block", "none"}, {"normaliser", "none"}, {"frame", frame}, {"encoder_bias", "no"}}, T);
    const auto in = affine_of(values_of(trace, "input"), values_of(trace, "param/encoder/weight"), std::vector<double>(d, 0.0));
    const auto map = [&](const std::string& which, const std::vector<double>& x) {
      return affine_of(x, values_of(trace, "param/0/self_attn." + which + "_proj.weight"),
                       values_of(trace, "param/0/self_attn." + which + "_proj.bias"));
    };
    auto q = map("q", in), k = map("k", in);
    const auto v = map("v", in);
    for (auto* features : {&q, &k})
      for (double& x : *features) x = x > 0.0 ? x + 1.0 : std::exp(x);
    const auto& theta = values_of(trace, "param/0/self_attn.urpe.theta");
    std::vector<double> read(T * d, 0.0);
    for (std::size_t t = 0; t < T; ++t)
      for (std::size_t s = 0; s <= t; ++s) {
        double weight = 0.0;
        for (std::size_t i = 0; i < d; ++i) weight += q[t * d + i] * k[s * d + i] * std::cos(theta[i] * static_cast<double>(t - s));
        for (std::size_t i = 0; i < d; ++i) read[t * d + i] += weight * v[s * d + i];
      }
    const double error = distance(values_of(trace, "output"), map("out", read));
    std::printf("lrpe, %s frame: %.1e from its kernel\n", frame, error);
    CHECK(error <= 1e-12);
  }
}

TEST_CASE("the parallel forms of TransNormer and TransNormerLLM are their recurrent ones after their norms") {
  for (const char* architecture : {"transnormer", "transnormer-llm"})
    for (const char* norm : {"srms", "layer"}) {
      const Settings set{{"width", "8"}, {"heads", "2"}, {"layers", "3"}, {"norm", norm}};
      const TracePtr recurrent = run_of(architecture, set, 300, "sequential");
      for (const char* form : {"attention", "chunkwise"}) {
        const double error = distance(values_of(run_of(architecture, set, 300, form), "output"), values_of(recurrent, "output"));
        std::printf("%s, norm=%s: %s differs by %.1e\n", architecture, norm, form, error);
        CHECK_SAYS(error <= 1e-11, std::string(architecture) + " " + form + " is off by " + test::show(error));
      }
    }
}

TEST_CASE("TransNormerLLM's memory decays by ALiBi's slopes, less in each layer and hardly at all in the last") {
  RunRequest request;
  request.preset.id = request.preset.title = request.preset.architecture = "transnormer-llm";
  request.set = {{"width", "8"}, {"heads", "4"}, {"layers", "3"}};
  request.sequence = make_task("noise", {.length = 5, .seed = 3});
  request.every = 1;
  const TracePtr trace = run(builtin_registry(), request, {}, {}).trace;
  for (int layer : {0, 1, 2}) {
    const auto& spectrum = *trace->find("spectrum/" + std::to_string(layer))->complex;
    const std::size_t each = spectrum.size() / 4;
    for (std::size_t head = 0; head < 4; ++head) {
      const double slope = std::pow(2.0, -2.0 * static_cast<double>(head + 1)) * (1.0 - 0.5 * layer + 1e-5);
      CHECK_CLOSE(std::abs(spectrum[head * each] - std::exp(-slope)), 0.0, 1e-12);
    }
  }
}
