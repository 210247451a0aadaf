// SPDX-License-Identifier: GPL-3.0-or-later
// Gradient flossing: exponents and gradients of linear units in closed form, gradients of other models against central differences, and
// exponents that come to 0.
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <vector>

#include "array/backend.h"
#include "array/error.h"
#include "array/rng.h"
#include "learning/examples.h"
#include "learning/flossing/flossing.h"
#include "models/registry.h"
#include "sweep.h"
#include "test.h"

using namespace reclab;

namespace {

struct Setup {
  std::unique_ptr<Examples> examples;
  Sequence sequence;
  const Architecture* architecture;
  Hyper hyper;
  Parameters parameters;

  Setup(const std::string& id, const test::Settings& set, std::int64_t length)
      : examples(task_examples("adding", {.length = length, .seed = 4})), sequence(examples->training(0, 0)) {
    architecture = &builtin_registry().find(id);
    hyper = hyper_of(builtin_registry(), test::preset_of(id), set);
    parameters = Network(*architecture, hyper, {.input = sequence.width, .head = 1}).initialise(2);
  }
  std::unique_ptr<Model> model(const Parameters& of) const {
    return std::make_unique<Model>(*architecture, hyper, of, cpu_backend(), DType::f64);
  }
  FlossLoss loss(const Parameters& of, std::int64_t exponents, bool with_gradient) const {
    const auto model_of = model(of);
    StepMap step(*model_of, sequence.width, 1);
    return floss_loss(step, sequence, exponents, with_gradient, {});
  }
};

double largest(const std::vector<double>& values) {
  double found = 0.0;
  for (const double x : values) found = std::max(found, std::abs(x));
  return found;
}

}  // namespace

TEST_CASE("the exponent of a linear unit is ln |w|, and the loss changes by 2 ln |w| / w") {
  for (const double w : {0.5, 0.9, -1.3}) {
    Setup setup("elman", {{"width", "1"}, {"layers", "1"}, {"activation", "identity"}}, 30);
    std::size_t at = 0, place = 0;
    for (auto& entry : setup.parameters.entries()) {
      if (entry.name == "0/weight_hh") {
        entry.values[0] = w;
        place = at;
      }
      at += entry.values.size();
    }
    const FlossLoss loss = setup.loss(setup.parameters, 4, true);
    CHECK_EQUAL(loss.exponents.size(), 1U);
    CHECK_CLOSE(loss.exponents[0], std::log(std::abs(w)), 1e-12);
    CHECK_CLOSE(loss.value, std::pow(std::log(std::abs(w)), 2), 1e-12);
    for (std::size_t i = 0; i < loss.gradient.size(); ++i)
      CHECK_CLOSE(loss.gradient[i], i == place ? 2.0 * std::log(std::abs(w)) / w : 0.0, 1e-9);
  }
}

TEST_CASE("all exponents of linear units add up to ln |det W|") {
  Setup setup("elman", {{"width", "4"}, {"layers", "1"}, {"activation", "identity"}}, 30);
  // Triangular, so that the determinant is the product of the diagonal.
  double expected = 0.0;
  for (auto& entry : setup.parameters.entries())
    if (entry.name == "0/weight_hh")
      for (std::size_t i = 0; i < 4; ++i)
        for (std::size_t j = 0; j < 4; ++j) {
          if (j > i) entry.values[4 * i + j] = 0.0;
          if (j == i) expected += std::log(entry.values[4 * i + j] = 0.5 + 0.2 * static_cast<double>(i));
        }
  double sum = 0.0;
  for (const double exponent : setup.loss(setup.parameters, 4, false).exponents) sum += exponent;
  CHECK_CLOSE(sum, expected, 1e-11);
}

TEST_CASE("the gradient of flossing is that of central differences of its loss") {
  for (const std::string id : {"elman", "lstm", "gru", "lru", "deltanet"})
    for (const std::int64_t exponents : {1, 3}) {
      const Setup setup(id, test::small_settings(test::preset_of(id)), 7);
      const FlossLoss loss = setup.loss(setup.parameters, exponents, true);
      for (int direction = 0; direction < 3; ++direction) {
        Rng rng(static_cast<std::uint64_t>(direction) + 3);
        std::vector<double> along(loss.gradient.size());
        for (double& x : along) x = rng.normal();
        constexpr double by = 1e-6;
        const auto moved = [&](double factor) {
          Parameters weights = setup.parameters;
          std::size_t at = 0;
          for (auto& entry : weights.entries())
            for (double& x : entry.values) x += factor * along[at++];
          CHECK_EQUAL(at, along.size());
          return setup.loss(weights, exponents, false).value;
        };
        const auto difference = [&](double h) { return (moved(h) - moved(-h)) / (2.0 * h); };
        const double numeric = (4.0 * difference(by) - difference(2.0 * by)) / 3.0;  // deltanet is so curved
        double analytic = 0.0, size = 0.0;
        for (std::size_t i = 0; i < along.size(); ++i)
          analytic += loss.gradient[i] * along[i], size += std::pow(loss.gradient[i] * along[i], 2);
        CHECK_SAYS(std::abs(numeric - analytic) <= 1e-6 * (std::sqrt(size) + std::abs(analytic)) + 1e-9,
                   id + " " + test::show(numeric) + " " + test::show(analytic));
      }
    }
}

TEST_CASE("flossing brings exponents near 0, leaves frozen weights alone, and does nothing where it is stopped") {
  const Setup setup("elman", {{"width", "8"}, {"layers", "1"}, {"spectral_radius", "0.5"}}, 20);
  const auto model = setup.model(setup.parameters);
  const FlossReport report = floss(*model, *setup.examples, 1, {.steps = 60, .exponents = 2, .rate = 0.02}, {}, {});
  CHECK_SAYS(largest(report.before) > 0.3, test::show(largest(report.before)));
  CHECK_SAYS(largest(report.after) < 0.1, test::show(largest(report.after)));
  const auto again = setup.model(setup.parameters);
  floss(*again, *setup.examples, 1, {.steps = 60, .exponents = 2, .rate = 0.02}, {}, {});
  CHECK(again->parameters().entries()[0].values == model->parameters().entries()[0].values);

  const auto kept = setup.model(setup.parameters);
  std::vector<bool> frozen(kept->weights().size(), true);
  frozen[0] = false;
  floss(*kept, *setup.examples, 1, {.steps = 2}, frozen, {});
  const Parameters now = kept->parameters();
  for (std::size_t i = 0; i < frozen.size(); ++i) CHECK_EQUAL(now.entries()[i].values == setup.parameters.entries()[i].values, frozen[i]);

  const auto stopped = setup.model(setup.parameters);
  std::stop_source stop;
  stop.request_stop();
  bool cancelled = false;
  try {
    floss(*stopped, *setup.examples, 1, {.steps = 2}, {}, stop.get_token());
  } catch (const Cancelled&) {
    cancelled = true;
  }
  CHECK(cancelled);
  const Parameters unchanged = stopped->parameters();
  for (std::size_t i = 0; i < frozen.size(); ++i) CHECK(unchanged.entries()[i].values == setup.parameters.entries()[i].values);
}

TEST_CASE("a model without a step of its own is not flossed") {
  const Setup setup("transformer", test::small_settings(test::preset_of("transformer")), 7);
  const auto model = setup.model(setup.parameters);
  CHECK_ERROR(floss(*model, *setup.examples, 1, {.steps = 1}, {}, {}), "grows with the sequence");
}
