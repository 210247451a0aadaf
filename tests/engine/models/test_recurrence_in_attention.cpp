// SPDX-License-Identifier: GPL-3.0-or-later
// What the papers that put a recurrence into a transformer claim, with numbers: a linear network is a sum of recurrence encoding matrices,
// and recurrent windows and recurrent positions know an order that attention alone does not.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "array/rng.h"
#include "execution/rollout.h"
#include "experiment/experiment.h"
#include "models/network.h"
#include "models/registry.h"
#include "test.h"

using namespace reclab;

namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;
using Weights = std::map<std::string, std::vector<double>>;

/// A layer of an architecture with some weights set by hand, run over a sequence that is as wide as the layer; the outputs [steps, width].
struct Machine {
  Machine(const std::string& id, const Settings& set)
      : architecture(builtin_registry().find(id)), hyper(hyper_of(builtin_registry(), preset(id), set)) {}
  static Preset preset(const std::string& id) {
    Preset preset;
    preset.id = preset.title = preset.architecture = id;
    return preset;
  }
  std::vector<double> outputs(const std::vector<double>& input, std::int64_t width, const Weights& weights = {}) const {
    NetworkOptions options;
    options.input = width;
    Parameters parameters = Network(architecture, hyper, options).initialise(5);
    for (const auto& [name, values] : weights) {
      auto* entry = parameters.find(name);
      CHECK_SAYS(entry && entry->values.size() == values.size(), name);
      entry->values = values;
    }
    const auto steps = static_cast<std::int64_t>(input.size()) / width;
    Sequence sequence = make_task("impulse", {.length = steps});
    sequence.width = width;
    sequence.input = input;
    sequence.names.assign(static_cast<std::size_t>(width), "x");
    const Model model(architecture, hyper, parameters, cpu_backend(), DType::f64);
    const SequenceLoss loss(LossKind::last, sequence);
    Rollout rollout(model, Batch(sequence, loss), {});
    std::vector<double> all;
    const auto outcome = rollout.forward(
        [&](const Rollout::Segment& segment) {
          const Var y = segment.network.output();
          const auto* values = static_cast<const double*>(segment.network.graph().value(y));
          all.insert(all.end(), values, values + count(y.shape()));
        },
        {});
    CHECK(!outcome);
    return all;
  }
  const Architecture& architecture;
  Hyper hyper;
};

std::vector<double> noise(std::size_t n, std::uint64_t seed) {
  Rng rng(seed);
  std::vector<double> values(n);
  for (double& value : values) value = rng.normal();
  return values;
}
double largest_difference(const std::vector<double>& a, const std::vector<double>& b) {
  CHECK_EQUAL(a.size(), b.size());
  double most = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}
/// By how much the last output moves when steps `first` and `second` of the input change places.
double moved(const Machine& machine, std::int64_t width, std::size_t first, std::size_t second, const Weights& weights = {}) {
  const auto w = static_cast<std::size_t>(width);
  std::vector<double> x = noise(20 * w, 7), swapped = x;
  for (std::size_t i = 0; i < w; ++i) std::swap(swapped[first * w + i], swapped[second * w + i]);
  const auto a = machine.outputs(x, width, weights), b = machine.outputs(swapped, width, weights);
  return largest_difference({a.end() - static_cast<std::ptrdiff_t>(w), a.end()}, {b.end() - static_cast<std::ptrdiff_t>(w), b.end()});
}

}  // namespace

TEST_CASE("a linear recurrent network is a sum of recurrence encoding matrices, one a real eigenvalue and four a pair of complex ones") {
  // h_t = W h_{t-1} + u_t with W = diag(λ₁, λ₂, γ R(θ)): its part from before this step is what six heads of one channel say, those of the
  // pair its cosines and sines.
  const double eta[] = {1.3, -0.7}, nu = 1.6, theta = 0.9, gamma = 1.0 / (1.0 + std::exp(-nu));
  const double turn[2][2] = {{gamma * std::cos(theta), -gamma * std::sin(theta)}, {gamma * std::sin(theta), gamma * std::cos(theta)}};
  const Machine rsa(
      "rsa", {{"width", "6"}, {"heads", "6"}, {"cosine", "2"}, {"sine", "2"}, {"position", "none"}, {"block", "none"}, {"bias", "false"}});
  constexpr std::size_t steps = 40;
  const std::vector<double> u = noise(4 * steps, 11);
  std::vector<double> input(6 * steps, 0.0);
  for (std::size_t t = 0; t < steps; ++t) std::copy_n(&u[4 * t], 4, &input[6 * t]);
  std::vector<double> in(3 * 6 * 6, 0.0), out(6 * 6, 0.0);
  const std::size_t reads[] = {0, 1, 2,
                               3, 2, 3};  // which channel of u each head takes as its value: regular, regular, cosine, cosine, sine, sine
  for (std::size_t head = 0; head < 6; ++head) in[(12 + head) * 6 + reads[head]] = 1.0;
  const auto adds = [&](std::size_t channel, std::size_t head, double sign) { out[channel * 6 + head] = sign; };
  adds(0, 0, 1.0);
  adds(1, 1, 1.0);
  adds(2, 2, 1.0);
  adds(2, 5, -1.0);
  adds(3, 4, 1.0);
  adds(3, 3, 1.0);
  const Weights weights{{"0/self_attn.in_proj_weight", in},     {"0/self_attn.out_proj.weight", out},
                        {"0/mu", std::vector<double>(6, 50.0)}, {"0/eta", {eta[0], eta[1]}},
                        {"0/nu", std::vector<double>(4, nu)},   {"0/theta", std::vector<double>(4, theta)}};
  const std::vector<double> y = rsa.outputs(input, 6, weights);
  double h[4] = {0.0, 0.0, 0.0, 0.0}, worst = 0.0, most = 0.0;
  for (std::size_t t = 0; t < steps; ++t) {
    const double before[4] = {std::tanh(eta[0]) * h[0], std::tanh(eta[1]) * h[1], turn[0][0] * h[2] + turn[0][1] * h[3],
                              turn[1][0] * h[2] + turn[1][1] * h[3]};
    for (std::size_t i = 0; i < 4; ++i) {
      worst = std::max(worst, std::abs(y[6 * t + i] - before[i]));
      most = std::max(most, std::abs(before[i]));
      h[i] = before[i] + u[4 * t + i];
    }
  }
  std::printf("rsa: its heads are a linear network to %.1e of %.2f\n", worst, most);
  CHECK(worst <= 1e-13 * most && most > 1.0);
}

TEST_CASE("without positions a local recurrent network tells the order of steps in its window, and attention alone does not") {
  const auto order = [&](const std::string& ksize, std::size_t first, std::size_t second) {
    return moved(Machine("r-transformer", {{"width", "8"}, {"heads", "2"}, {"ksize", ksize}, {"feed_forward", "8"}}), 8, first, second);
  };
  const double blind = order("1", 5, 9), near = order("4", 8, 9);
  std::printf("r-transformer: two steps that change places move the last output by %.1e with a window of 1 and by %.1e with one of 4\n",
              blind, near);
  CHECK(blind <= 1e-12);
  CHECK(near >= 1e-4);
}

TEST_CASE("recurrent positions know the order that attention without positions does not") {
  const Settings none{{"width", "8"}, {"heads", "2"}, {"position", "none"}, {"feed_forward", "8"}};
  Settings recurrent = none;
  recurrent.emplace_back("recurrent_width", "4");
  const double blind = moved(Machine("transformer", none), 8, 5, 9),
               seen = moved(Machine("recurrent-position-encoding", recurrent), 8, 5, 9);
  std::printf("recurrent-position-encoding: two steps that change places move the last output by %.1e, and without by %.1e\n", seen, blind);
  CHECK(blind <= 1e-12);
  CHECK(seen >= 1e-4);
}

TEST_CASE("with its gate closed to the recurrence a layer with a recurrence encoder is a transformer's") {
  const Settings shared{{"width", "8"}, {"heads", "2"}, {"feed_forward", "8"}};
  Settings bare = shared;
  bare.emplace_back("final_norm", "false");
  const std::vector<double> x = noise(8 * 20, 3);
  const Machine with("arn", shared), without("transformer", bare);
  // The same names draw the same weights.
  const std::vector<double> plain = without.outputs(x, 8);
  const double closed = largest_difference(
      with.outputs(x, 8, {{"0/gate.weight", std::vector<double>(8 * 16, 0.0)}, {"0/gate.bias", std::vector<double>(8, 60.0)}}), plain);
  const double open = largest_difference(with.outputs(x, 8), plain);
  std::printf("arn: %.1e from the transformer with its gate closed, %.1e with it open\n", closed, open);
  CHECK(closed <= 1e-13);
  CHECK(open >= 1e-3);
}
