// SPDX-License-Identifier: GPL-3.0-or-later
// Mega's damped moving average is the convolution with its kernel, truncated or not, however it is computed.
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "execution/rollout.h"
#include "experiment/experiment.h"
#include "learning/losses.h"
#include "models/network.h"
#include "models/registry.h"
#include "test.h"

using namespace reclab;

namespace {

using Settings = std::vector<std::pair<std::string, std::string>>;

constexpr std::int64_t steps = 300, width = 3, averages = 2;

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

/// One layer whose averages read the sequence itself, with weights as they are drawn.
struct Mega {
  explicit Mega(const Settings& set)
      : architecture(builtin_registry().find("mega")),
        hyper(hyper_of(builtin_registry(), preset(), set)),
        parameters(Network(architecture, hyper, {.input = width}).initialise(11)) {
    sequence = make_task("noise", {.length = steps});
    Rng rng(5);
    sequence.width = width;
    sequence.input.resize(static_cast<std::size_t>(steps * width));
    std::ranges::generate(sequence.input, [&] { return rng.normal(); });
    sequence.names.assign(width, "u");
    sequence.mean.assign(width, 0.0);
    sequence.deviation.assign(width, 1.0);
  }
  static Preset preset() {
    Preset preset;
    preset.id = preset.title = preset.architecture = "mega";
    preset.hyper = {{"width", std::int64_t{width}}, {"layers", std::int64_t{1}}, {"ndim", std::int64_t{averages}}, {"prenorm", false},
                    {"zdim", std::int64_t{4}},      {"hdim", std::int64_t{4}}};
    return preset;
  }
  std::vector<double> weight(const std::string& name) {
    auto* entry = parameters.find("0/mega_layer.move." + name);
    CHECK_SAYS(entry, name);
    return entry->values;
  }
  /// An array of each step: the states h, or what the network returns.
  std::vector<double> run(Form form, bool states) const {
    const Model model(architecture, hyper, parameters, cpu_backend(), DType::f64);
    const SequenceLoss loss(LossKind::last, sequence);
    Rollout rollout(model, Batch(sequence, loss), {.form = form});
    std::vector<double> all;
    CHECK(!rollout.forward(
        [&](const Rollout::Segment& segment) {
          Var wanted = segment.network.output();
          if (states)
            for (const auto& state : segment.network.states())
              if (state.name == "h") wanted = state.trajectory;
          const auto* values = static_cast<const double*>(segment.network.graph().value(wanted));
          all.insert(all.end(), values, values + count(wanted.shape()));
        },
        {}));
    return all;
  }

  const Architecture& architecture;
  Hyper hyper;
  Parameters parameters;
  Sequence sequence;
};

/// The largest difference of the states' read from the sum over the kernel Σ_n c p b q^j/√N, relative to the largest sum.
double error_against_kernel(Mega& mega, std::int64_t taps) {
  const auto delta = mega.weight("delta"), alpha = mega.weight("alpha"), beta = mega.weight("beta"), gamma = mega.weight("gamma");
  const auto h = mega.run(Form::sequential, true);
  CHECK_EQUAL(std::ssize(h), steps * width * averages);
  double worst = 0.0, largest = 0.0;
  for (std::int64_t c = 0; c < width; ++c) {
    std::vector<double> kernel(static_cast<std::size_t>(std::min(taps, steps)), 0.0);
    for (std::int64_t n = 0; n < averages; ++n) {
      const auto i = static_cast<std::size_t>(c * averages + n);
      const double p = sigmoid(delta[i]), q = 1.0 - p * sigmoid(alpha[i]);
      CHECK(q > 0.0 && q < 1.0);
      for (std::size_t j = 0; j < kernel.size(); ++j)
        kernel[j] += gamma[i] * p * beta[i] * std::pow(q, static_cast<double>(j)) / std::sqrt(static_cast<double>(averages));
    }
    for (std::int64_t t = 0; t < steps; ++t) {
      double sum = 0.0, read = 0.0;
      for (std::size_t j = 0; j < kernel.size() && static_cast<std::int64_t>(j) <= t; ++j)
        sum += kernel[j] * mega.sequence.input[static_cast<std::size_t>((t - static_cast<std::int64_t>(j)) * width + c)];
      for (std::int64_t n = 0; n < averages; ++n)
        read += gamma[static_cast<std::size_t>(c * averages + n)] * h[static_cast<std::size_t>((t * width + c) * averages + n)] /
                std::sqrt(static_cast<double>(averages));
      worst = std::max(worst, std::abs(sum - read));
      largest = std::max(largest, std::abs(sum));
    }
  }
  return worst / largest;
}

double difference(const std::vector<double>& a, const std::vector<double>& b) {
  CHECK_EQUAL(a.size(), b.size());
  double worst = 0.0, largest = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    worst = std::max(worst, std::abs(a[i] - b[i]));
    largest = std::max(largest, std::abs(a[i]));
  }
  return worst / largest;
}

}  // namespace

TEST_CASE("Mega's averages are the sums over their kernel") {
  Mega mega(Settings{});
  const double error = error_against_kernel(mega, steps);
  std::printf("averages against kernel sums: %.1e\n", error);
  CHECK(error < 1e-13);
}

TEST_CASE("a truncated average is the sum over as many taps, and is not that over all of them") {
  Mega mega(Settings{{"truncation", "5"}});
  const double error = error_against_kernel(mega, 5);
  std::printf("truncated averages against kernels of 5 taps: %.1e\n", error);
  CHECK(error < 1e-13);
  CHECK(error_against_kernel(mega, steps) > 1e-3);
}

TEST_CASE("the form convolution, which makes no average, gives what the averages give") {
  const Mega mega(Settings{});
  const auto expected = mega.run(Form::sequential, false);
  for (const Form form : {Form::scan, Form::chunkwise, Form::convolution, Form::attention})
    CHECK(difference(expected, mega.run(form, false)) < 1e-12);
}
