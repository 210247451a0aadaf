// SPDX-License-Identifier: GPL-3.0-or-later
// Teacher forcing of a model that runs on its own output: its gradient against central differences of a loop that is written out here, its
// limits, and the exponents of a linear loop against their closed form.
#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <memory>
#include <numbers>
#include <numeric>
#include <string>
#include <vector>

#include "array/backend.h"
#include "array/error.h"
#include "array/host.h"
#include "array/rng.h"
#include "learning/examples.h"
#include "learning/forcing/closed_loop.h"
#include "learning/learning_rule.h"
#include "learning/trainer.h"
#include "models/registry.h"
#include "sweep.h"
#include "test.h"

using namespace reclab;

namespace {

constexpr std::int64_t steps = 9;

struct Setup {
  std::deque<Sequence> batch;
  const Architecture* architecture = nullptr;
  Hyper hyper;
  Parameters parameters;
  TrainingOptions options;

  Setup(const std::string& id, const test::Settings& set, const std::string& task) {
    const auto examples = task_examples(task, {.length = steps, .seed = 4});
    batch = {examples->training(0, 0), examples->training(0, 1)};
    architecture = &builtin_registry().find(id);
    hyper = hyper_of(builtin_registry(), test::preset_of(id), set);
    parameters = Network(*architecture, hyper, {.input = batch[0].width, .head = batch[0].width}).initialise(2);
    options.batch = 2;
    options.rule = "forcing";
  }
  std::unique_ptr<Model> model(const Parameters& of) const {
    return std::make_unique<Model>(*architecture, hyper, of, cpu_backend(), DType::f64);
  }
  std::vector<double> gradient() const {
    const auto of = model(parameters);
    const auto rule = make_learning_rule({*of, options, steps, batch});
    rule->begin(batch, 1);
    loss = rule->learn({}).loss;
    CHECK(!rule->left());
    std::vector<double> all;
    for (const DeviceArray& array : rule->gradients()) {
      const auto values = to_double(of->backend(), of->real(), array.data(), array.entries());
      all.insert(all.end(), values.begin(), values.end());
    }
    return all;
  }
  /// The loss of the batch, by a loop over the one step of the model.
  double plain_loss(const Parameters& weights) const {
    const auto of = model(weights);
    StepMap step(*of, batch[0].width, batch[0].width);
    double sum = 0.0;
    for (const Sequence& sequence : batch) {
      const auto width = static_cast<std::size_t>(sequence.width);
      const double counted = std::accumulate(sequence.mask.begin(), sequence.mask.end(), 0.0);
      std::vector<double> state = step.start(), fed(sequence.input.begin(), sequence.input.begin() + sequence.width);
      for (std::size_t t = 0; t < steps; ++t) {
        step.evaluate(state, fed);
        state = step.next();
        for (std::size_t j = 0; j < width; ++j) {
          sum += 0.5 * sequence.mask[t] / counted * std::pow(step.output()[j] - sequence.target[t * width + j], 2);
          if (t + 1 == steps) continue;
          const bool forced = (t + 1) % static_cast<std::size_t>(options.forcing.every) == 0;
          fed[j] = step.output()[j];
          if (forced) fed[j] += options.forcing.strength * (sequence.input[(t + 1) * width + j] - step.output()[j]);
        }
      }
    }
    return sum;
  }

  mutable double loss = 0.0;
};

/// A linear loop of one unit: h = w h + v u, y = c h.
struct LinearLoop {
  LinearLoop(double w, double v, double c) : setup("elman", {{"width", "1"}, {"layers", "1"}, {"activation", "identity"}}, "mackey-glass") {
    sequence = task_examples("mackey-glass", {.length = 60, .seed = 4})->training(0, 0);
    for (auto& entry : setup.parameters.entries())
      std::ranges::fill(entry.values, entry.name == "0/weight_hh"   ? w
                                      : entry.name == "0/weight_ih" ? v
                                      : entry.name == "head/weight" ? c
                                                                    : 0.0);
    model = setup.model(setup.parameters);
    step = std::make_unique<StepMap>(*model, 1, 1);
    loop = std::make_unique<ClosedLoop>(*step, sequence);
  }
  double exponent(const Forcing& forcing) {
    loop->run(forcing, {});
    return loop->exponent(20, {});
  }
  Setup setup;
  Sequence sequence;
  std::unique_ptr<Model> model;
  std::unique_ptr<StepMap> step;
  std::unique_ptr<ClosedLoop> loop;
};

}  // namespace

TEST_CASE("the gradient of a forced loop is that of central differences of its loss, for every share and interval") {
  for (const std::string id : {"elman", "lstm", "gru", "lru", "s4d", "mamba", "deltanet"})
    for (const std::string task : {"mackey-glass", "lorenz"})
      for (const Forcing forcing : {Forcing{0.0, 1}, Forcing{0.3, 1}, Forcing{1.0, 3}, Forcing{0.6, 2}}) {
        Setup setup(id, test::small_settings(test::preset_of(id)), task);
        setup.options.forcing = forcing;
        const std::vector<double> gradient = setup.gradient();
        CHECK_CLOSE(setup.loss, setup.plain_loss(setup.parameters), 1e-12 * setup.loss);
        // Along two directions, of which neither is the gradient's.
        for (int direction = 0; direction < 2; ++direction) {
          Rng rng(static_cast<std::uint64_t>(direction) + 3);
          std::vector<double> along(gradient.size());
          for (double& x : along) x = rng.normal();
          constexpr double by = 1e-6;
          const auto moved = [&](double factor) {
            Parameters weights = setup.parameters;
            std::size_t at = 0;
            for (auto& entry : weights.entries())
              for (double& x : entry.values) x += factor * along[at++];
            CHECK_EQUAL(at, along.size());
            return setup.plain_loss(weights);
          };
          const auto difference = [&](double h) { return (moved(h) - moved(-h)) / (2.0 * h); };
          const double numeric = (4.0 * difference(by) - difference(2.0 * by)) / 3.0;  // deltanet is so curved
          double analytic = 0.0, size = 0.0;
          for (std::size_t i = 0; i < along.size(); ++i) analytic += gradient[i] * along[i], size += std::pow(gradient[i] * along[i], 2);
          CHECK_SAYS(std::abs(numeric - analytic) <= 1e-6 * (std::sqrt(size) + std::abs(analytic)),
                     id + " " + task + " " + test::show(numeric) + " " + test::show(analytic));
        }
      }
}

TEST_CASE("with all data at every step forcing is backpropagation, and with less it is not") {
  for (const std::string id : {"elman", "lstm", "lru", "mamba"}) {
    Setup setup(id, test::small_settings(test::preset_of(id)), "lorenz");
    setup.options.forcing = {1.0, 1};
    const std::vector<double> forced = setup.gradient();
    setup.options.rule = "bptt";
    const std::vector<double> truth = setup.gradient();
    setup.options.rule = "forcing";
    setup.options.forcing = {0.9, 1};
    const std::vector<double> less = setup.gradient();
    double scale = 0.0, error = 0.0, apart = 0.0;
    for (std::size_t i = 0; i < truth.size(); ++i) {
      scale = std::max(scale, std::abs(truth[i]));
      error = std::max(error, std::abs(forced[i] - truth[i]));
      apart = std::max(apart, std::abs(less[i] - truth[i]));
    }
    CHECK_SAYS(error <= 1e-12 * scale, id + " " + test::show(error / scale));
    CHECK_SAYS(apart > 1e-4 * scale, id + " " + test::show(apart / scale));
  }
}

TEST_CASE("what is fed back is the data at forced steps, their mixture with the output, or the output") {
  LinearLoop linear(0.5, 0.8, 0.9);
  const auto fed = [&](const Forcing& forcing, std::int64_t free_from = 1 << 20) {
    linear.loop->run(forcing, {}, free_from);
    return linear.loop->inputs();
  };
  CHECK(fed({1.0, 1}) == linear.sequence.input);
  const std::vector<double> sparse = fed({1.0, 7});
  for (std::size_t t = 1; t < 60; ++t) CHECK_EQUAL(sparse[t], t % 7 == 0 ? linear.sequence.input[t] : linear.loop->outputs()[t - 1]);
  const std::vector<double> mixed = fed({0.25, 1});
  for (std::size_t t = 1; t < 60; ++t) CHECK_CLOSE(mixed[t], 0.25 * linear.sequence.input[t] + 0.75 * linear.loop->outputs()[t - 1], 1e-15);
  const std::vector<double> later_free = fed({1.0, 1}, 30);
  for (std::size_t t = 1; t < 60; ++t) CHECK_EQUAL(later_free[t], t < 30 ? linear.sequence.input[t] : linear.loop->outputs()[t - 1]);
}

TEST_CASE("exponents and estimates of a linear loop are those of its one eigenvalue, w + (1 - a) c v") {
  const double w = 0.5, v = 1.8, c = 0.5;
  LinearLoop linear(w, v, c);
  for (const double share : {0.0, 0.25, 0.5, 1.0}) CHECK_CLOSE(linear.exponent({share, 1}), std::log(w + (1.0 - share) * c * v), 1e-10);
  // Forced at every second step alone, in the mean of both.
  CHECK_CLOSE(linear.exponent({1.0, 2}), 0.5 * std::log(w * (w + c * v)), 0.05);
  const ForcingEstimate found = estimate_forcing(*linear.loop, 20, {});
  CHECK_CLOSE(found.free_exponent, std::log(1.4), 1e-10);
  CHECK_CLOSE(found.interval, std::numbers::ln2 / std::log(1.4), 1e-9);
  CHECK_CLOSE(found.geometric, 1.0 - 1.0 / 1.4, 1e-10);
  CHECK_CLOSE(found.least, 1.0 - 0.5 / 0.9, 1e-3);

  LinearLoop shrinks(0.5, 0.4, 0.5);
  const ForcingEstimate none = estimate_forcing(*shrinks.loop, 20, {});
  CHECK(none.geometric == 0.0 && none.least == 0.0 && std::isinf(none.interval));
  CHECK_CLOSE(none.free_exponent, std::log(0.7), 1e-10);
  LinearLoop grows(1.2, 0.4, 0.5);
  CHECK(std::isnan(estimate_forcing(*grows.loop, 20, {}).least));
  LinearLoop forgets(0.0, 0.4, 0.5);
  CHECK_EQUAL(forgets.exponent({1.0, 1}), -std::numeric_limits<double>::infinity());
}

TEST_CASE("what forcing cannot learn from is said, with the cure") {
  const auto made = [](const std::string& id, const std::string& task, const TrainingOptions& options) {
    const std::int64_t length = task == "copy" ? 24 : steps;
    const auto examples = task_examples(task, {.length = length, .seed = 4});
    const std::deque<Sequence> batch{examples->training(0, 0)};
    const Architecture& architecture = builtin_registry().find(id);
    const Hyper hyper = hyper_of(builtin_registry(), test::preset_of(id), test::small_settings(test::preset_of(id)));
    const std::int64_t head = SequenceLoss(LossKind::task, batch[0]).outputs();
    Model model(architecture, hyper, Network(architecture, hyper, {.input = batch[0].width, .head = head}).initialise(2), cpu_backend(),
                DType::f64);
    make_learning_rule({model, options, length, batch});
  };
  TrainingOptions options;
  options.rule = "forcing";
  options.batch = 1;
  made("elman", "lorenz", options);
  CHECK_ERROR(made("elman", "adding", options), "choose a task such as lorenz");
  CHECK_ERROR(made("elman", "copy", options), "choose a task such as lorenz");
  CHECK_ERROR(made("transformer", "lorenz", options), "grows with the sequence");
  options.forcing.strength = 1.5;
  CHECK_ERROR(made("elman", "lorenz", options), "choose 0 to 1");
  options.forcing = {0.5, 0};
  CHECK_ERROR(made("elman", "lorenz", options), "choose 1 or more");
  options.forcing = {};
  options.truncate = 4;
  CHECK_ERROR(made("elman", "lorenz", options), "leave truncate at 0");
}
