// SPDX-License-Identifier: GPL-3.0-or-later
// H3 is linear attention where its shift is an impulse and its diagonal system a running sum; and what its two systems do by themselves.
#include <algorithm>
#include <cmath>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "experiment/experiment.h"
#include "files/files.h"
#include "files/npz.h"
#include "given_weights.h"
#include "models/network.h"
#include "models/registry.h"
#include "scratch.h"
#include "sequence/sequence.h"
#include "test.h"

using namespace reclab;

namespace {

using Values = std::map<std::string, std::vector<double>>;
using Settings = std::vector<std::pair<std::string, std::string>>;

constexpr std::size_t width = 4;
constexpr std::int64_t steps = 150;

/// Inputs between -1 and 1.
Sequence noise() {
  Sequence s;
  Rng rng(5);
  s.name = s.source = "noise";
  s.length = steps;
  s.width = width;
  for (std::size_t i = 0; i < width; ++i) {
    s.names.push_back("u" + std::to_string(i));
    s.mean.push_back(0.0);
    s.deviation.push_back(1.0);
  }
  for (std::int64_t t = 0; t < steps; ++t) {
    s.time.push_back(static_cast<double>(t));
    for (std::size_t i = 0; i < width; ++i) s.input.push_back(rng.uniform(-1.0, 1.0));
  }
  return s;
}

/// What a layer alone returns with these parameters, [steps, width].
std::vector<double> output_of(const std::string& architecture, Settings set, const Values& values, const std::string& form = "sequential") {
  const test::Scratch folder;
  RunRequest request;
  request.preset.id = request.preset.title = request.preset.architecture = architecture;
  request.set = {{"width", std::to_string(width)}, {"block", "none"}};
  request.set.insert(request.set.end(), set.begin(), set.end());
  request.form = form;
  request.sequence.own() = noise();
  request.weights = folder / "w.npz";
  test::write_given_weights(request, width, values);
  const TracePtr trace = run(builtin_registry(), request, {}, {}).trace;
  CHECK_SAYS(trace->info.outcome == Outcome::finished, trace->info.sentence);
  return *trace->find("output")->real;
}

struct Projection {
  std::vector<double> weight, bias;
};
Projection drawn(Rng& rng, double bias) {
  Projection p;
  for (std::size_t i = 0; i < width * width; ++i) p.weight.push_back(rng.uniform(-0.4, 0.4));
  p.bias.assign(width, bias);
  return p;
}
std::vector<double> identity() {
  std::vector<double> matrix(width * width, 0.0);
  for (std::size_t i = 0; i < width; ++i) matrix[i * width + i] = 1.0;
  return matrix;
}

/// H3 that neither shifts nor forgets, so that it is a sum over the past of products: C of the shift reads the place of the current step, A
/// is 0 to rounding, and each half of a conjugate pair counts a half.
Values running_sum(const Projection& q, const Projection& k, const Projection& v, std::size_t head_dim, std::size_t places) {
  const std::size_t heads = width / head_dim, modes = places / 2;
  Values w{{"0/q_proj.weight", q.weight}, {"0/q_proj.bias", q.bias},     {"0/k_proj.weight", k.weight},
           {"0/k_proj.bias", k.bias},     {"0/v_proj.weight", v.weight}, {"0/v_proj.bias", v.bias}};
  std::vector<double> first(width * places, 0.0);
  for (std::size_t i = 0; i < width; ++i) first[i * places] = 1.0;
  w["0/ssm_k_kernel.kernel.B"] = w["0/ssm_k_kernel.kernel.C"] = first;
  w["0/ssm_k_D"].assign(width, 0.0);
  w["0/D"].assign(heads, 0.0);
  w["0/kernel.kernel.log_dt"].assign(heads, 0.0);
  w["0/kernel.kernel.inv_A_real"].assign(heads * modes, -60.0);
  w["0/kernel.kernel.A_imag"].assign(heads * modes, 0.0);
  for (std::size_t i = 0; i < heads * modes; ++i)
    for (const double part : {1.0, 0.0}) {
      w["0/kernel.kernel.B"].push_back(part);
      w["0/kernel.kernel.C"].push_back(0.5 * part / static_cast<double>(modes));
    }
  // The reference's sum leaves (dimension, head), which is turned back here.
  std::vector<double> back(width * width, 0.0);
  for (std::size_t head = 0; head < heads; ++head)
    for (std::size_t i = 0; i < head_dim; ++i) back[(head * head_dim + i) * width + i * heads + head] = 1.0;
  w["0/output_linear.weight"] = back;
  w["0/output_linear.bias"].assign(width, 0.0);
  return w;
}

/// The largest difference of linear attention from H3 divided by H3 of ones, which is its normaliser.
double difference(std::size_t head_dim, const std::string& disc, const std::string& form, double shift = 0.0) {
  Rng rng(3);
  // Biases that keep what elu + 1 takes above 0, where it adds 1.
  const Projection q = drawn(rng, 2.0), k = drawn(rng, 2.0), v = drawn(rng, 0.0),
                   one{std::vector<double>(width * width, 0.0), std::vector<double>(width, 1.0)};
  const std::vector<double> attended = output_of("linear-attention", {{"heads", std::to_string(width / head_dim)}},
                                                 {{"0/attention.query_projection.weight", q.weight},
                                                  {"0/attention.query_projection.bias", q.bias},
                                                  {"0/attention.key_projection.weight", k.weight},
                                                  {"0/attention.key_projection.bias", k.bias},
                                                  {"0/attention.value_projection.weight", v.weight},
                                                  {"0/attention.value_projection.bias", v.bias},
                                                  {"0/attention.out_projection.weight", identity()},
                                                  {"0/attention.out_projection.bias", std::vector<double>(width, 0.0)}});
  Projection q1 = q, k1 = k;
  for (double& bias : q1.bias) bias += 1.0;
  for (double& bias : k1.bias) bias += 1.0;
  const Settings set{{"head_dim", std::to_string(head_dim)}, {"state", "4"}, {"disc", disc}};
  const auto read = [&](const Projection& values) {
    Values w = running_sum(q1, k1, values, head_dim, 4);
    for (std::size_t i = 0; i < width; ++i) w["0/ssm_k_kernel.kernel.C"][i * 4 + 1] = shift;
    return output_of("h3", set, w, form);
  };
  const std::vector<double> sums = read(v), weights = read(one);
  double worst = 0.0, size = 0.0;
  CHECK_EQUAL(sums.size(), attended.size());
  for (std::size_t i = 0; i < sums.size(); ++i) {
    worst = std::max(worst, std::abs(sums[i] / (weights[i] + 1e-6) - attended[i]));
    size = std::max(size, std::abs(attended[i]));
  }
  CHECK(size > 0.1);
  return worst / size;
}

}  // namespace

TEST_CASE("with an impulse for a shift and a running sum for a diagonal system H3 is linear attention with heads of one dimension") {
  for (const std::string disc : {"bilinear", "zoh"})
    for (const std::string form : {"sequential", "scan", "convolution"}) {
      const double found = difference(1, disc, form);
      CHECK_SAYS(found <= 1e-12, disc + ", " + form + ": " + std::to_string(found * 1e12) + "e-12");
    }
  // A key that is read one step later too is another thing.
  CHECK(difference(1, "zoh", "sequential", 0.3) > 1e-3);
}

TEST_CASE("with heads of more dimensions it is linear attention with such heads") {
  for (const std::size_t head_dim : {std::size_t{2}, width}) {
    const double found = difference(head_dim, "zoh", "sequential");
    CHECK_SAYS(found <= 1e-12, std::to_string(head_dim) + ": " + std::to_string(found * 1e12) + "e-12");
  }
}

TEST_CASE("l_max makes a window of the running sum") {
  // A shift of two places has two taps, so that seven of them cut the diagonal system alone.
  Rng rng(9);
  const Projection q = drawn(rng, 0.3), k = drawn(rng, 0.2), v = drawn(rng, 0.0);
  const Values w = running_sum(q, k, v, 1, 2);
  const std::vector<double> whole = output_of("h3", {{"state", "2"}, {"disc", "zoh"}}, w),
                            cut = output_of("h3", {{"state", "2"}, {"disc", "zoh"}, {"l_max", "7"}}, w);
  double within = 0.0, beyond = 0.0;
  for (std::size_t i = 0; i < whole.size(); ++i)
    (i < 7 * width ? within : beyond) = std::max(i < 7 * width ? within : beyond, std::abs(whole[i] - cut[i]));
  CHECK_SAYS(within <= 1e-14, std::to_string(within));
  CHECK(beyond > 0.1);
  // Beyond, it is the sum of the last seven steps: the whole less the same sum seven steps ago, under queries that stay.
  const Values ones = [&] {
    Values other = w;
    other["0/q_proj.weight"].assign(width * width, 0.0);
    other["0/q_proj.bias"].assign(width, 1.0);
    return other;
  }();
  const std::vector<double> sums = output_of("h3", {{"state", "2"}, {"disc", "zoh"}}, ones),
                            windows = output_of("h3", {{"state", "2"}, {"disc", "zoh"}, {"l_max", "7"}}, ones);
  for (std::size_t i = 7 * width; i < sums.size(); ++i) CHECK_CLOSE(windows[i], sums[i] - sums[i - 7 * width], 1e-12);
}

TEST_CASE("a file of the reference's language model is read, and its embeddings and its head are of no use") {
  const test::Scratch folder;
  RunRequest request;
  request.preset.id = request.preset.title = request.preset.architecture = "h3";
  request.set = {{"width", std::to_string(width)}, {"state", "4"}, {"layers", "2"}};
  request.sequence.own() = noise();
  const auto output = [&] { return *run(builtin_registry(), request, {}, {}).trace->find("output")->real; };
  const std::vector<double> expected = output();
  const Network network(builtin_registry().find("h3"), hyper_of(builtin_registry(), request.preset, request.set), {.input = width});
  AtomicFile file(folder / "w.npz");
  NpzWriter writer(file);
  const Parameters drawn = network.initialise(request.seed);
  for (const auto& entry : drawn.entries()) {
    const std::string layer = entry.name.substr(0, 2), name = entry.name.substr(2);
    const bool mixer = !name.starts_with("norm") && !name.starts_with("mlp");
    const std::string theirs = entry.name.starts_with("final/")
                                   ? "backbone." + entry.name.substr(6)
                                   : "backbone.layers." + layer.substr(0, 1) + (mixer ? ".mixer." : ".") + name;
    writer.add(theirs, entry.shape, std::span<const double>(entry.values));
  }
  const std::vector<double> tokens(5 * width, 1.0);
  for (const std::string name :
       {"backbone.embeddings.word_embeddings.weight", "backbone.embeddings.position_embeddings.weight", "lm_head.weight"})
    writer.add(name, {5, width}, std::span<const double>(tokens));
  writer.finish();
  file.commit();
  request.seed = 2;
  CHECK(output() != expected);
  request.weights = folder / "w.npz";
  CHECK(output() == expected);
}
