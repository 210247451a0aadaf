// SPDX-License-Identifier: GPL-3.0-or-later
// Every rule that says of a model that its gradients are exact has those of backpropagation, for every architecture that it takes; and
// those that draw signs have the mean that they should.
#include <algorithm>
#include <cmath>

#include "array/backend.h"
#include "array/error.h"
#include "array/host.h"
#include "array/rng.h"
#include "execution/step_map.h"
#include "learning/examples.h"
#include "learning/learning_rule.h"
#include "learning/losses.h"
#include "learning/online/influence.h"
#include "models/registry.h"
#include "sweep.h"
#include "test.h"

using namespace reclab;

namespace {

std::vector<double> gradient_of(LearningRule& rule, const std::deque<Sequence>& batch, Model& model) {
  rule.begin(batch, 1);
  rule.learn({});
  CHECK(!rule.left());
  std::vector<double> all;
  for (const DeviceArray& array : rule.gradients()) {
    const auto values = to_double(model.backend(), model.real(), array.data(), array.entries());
    all.insert(all.end(), values.begin(), values.end());
  }
  return all;
}

}  // namespace

SWEEP_ARCHITECTURES("exact learning rules have the gradients of backpropagation", architecture) {
  const Preset preset = test::preset_of(architecture.id);
  test::Settings one = test::small_settings(preset);
  std::erase_if(one, [](const auto& setting) { return setting.first == "layers"; });
  for (const test::Settings& set : {test::small_settings(preset), one}) {
    if (!test::possible(preset, set)) continue;
    const Hyper hyper = hyper_of(builtin_registry(), preset, set);
    const auto examples = task_examples("adding", {.length = 6, .seed = 4});
    const std::deque<Sequence> batch{examples->training(0, 0), examples->training(0, 1)};
    const Parameters parameters = Network(architecture, hyper, {.input = batch[0].width, .head = 1}).initialise(2);
    Model model(architecture, hyper, parameters, cpu_backend(), DType::f64);
    TrainingOptions options;
    options.batch = 2;
    const auto make = [&](const std::string& id) {
      options.rule = id;
      return make_learning_rule({model, options, 6, batch});
    };
    const auto truth_rule = make("bptt");
    const std::vector<double> truth = gradient_of(*truth_rule, batch, model);
    double scale = 0.0;
    for (const double value : truth) scale = std::max(scale, std::abs(value));
    options.snap_order = 1 << 20;
    try {
      const StepMap step(model, batch[0].width, 1);
      if (!test::thorough() && step.states() * step.states() * step.weights() > 4'000'000) continue;
    } catch (const Error&) {  // rules say so, below
    }
    for (const LearningRuleInfo& info : learning_rules()) {
      if (info.id == "bptt") continue;
      std::unique_ptr<LearningRule> rule;
      try {
        rule = make(info.id);
      } catch (const Error& error) {
        CHECK_SAYS(std::string(error.what()).find("choose") != std::string::npos ||
                       std::string(error.what()).find("no step of its own") != std::string::npos,
                   error.what());
        continue;
      }
      if (!info.online && !rule->exact()) continue;
      CHECK_SAYS(rule->exact() || info.gradient != GradientKind::exact, info.id);
      CHECK_SAYS(rule->exact() || info.id != "snap", "it has all steps that it can");
      std::vector<double> own;
      try {
        own = gradient_of(*rule, batch, model);
      } catch (const Error& end) {  // where rounding grew too far, or no fixed point is stable, the rule says so itself
        CHECK_SAYS(info.id == "forward-errors" || info.id == "rbp", end.what());
        test::measured(architecture.id, info.id + "-broken", 1.0);
        continue;
      }
      double error = 0.0;
      for (std::size_t i = 0; i < own.size(); ++i) error = std::max(error, std::abs(own[i] - truth[i]) / scale);
      CHECK_SAYS(std::isfinite(error), info.id);
      if (!rule->exact()) continue;
      test::measured(architecture.id, info.id, error);
      // Errors that go forward grow by what the adjoint shrinks by, up to the share at which the rule ends the training.
      CHECK_SAYS(error <= (info.id == "forward-errors" ? 1e-9 : 1e-12), info.id + " " + test::show(error));
    }
  }
}

SWEEP_ARCHITECTURES("forcing with all data at every step has the gradients of backpropagation", architecture) {
  const Preset preset = test::preset_of(architecture.id);
  const Hyper hyper = hyper_of(builtin_registry(), preset, test::small_settings(preset));
  const auto examples = task_examples("lorenz", {.length = 6, .seed = 4});
  const std::deque<Sequence> batch{examples->training(0, 0), examples->training(0, 1)};
  const Parameters parameters = Network(architecture, hyper, {.input = 3, .head = 3}).initialise(2);
  Model model(architecture, hyper, parameters, cpu_backend(), DType::f64);
  TrainingOptions options;
  options.batch = 2;
  options.forcing = {.strength = 1.0, .every = 1};
  const auto gradient = [&](const std::string& id) {
    options.rule = id;
    const auto rule = make_learning_rule({model, options, 6, batch});
    CHECK(rule->exact());
    return gradient_of(*rule, batch, model);
  };
  std::vector<double> own;
  try {
    own = gradient("forcing");
  } catch (const Error& error) {
    CHECK_SAYS(std::string(error.what()).find("choose") != std::string::npos ||
                   std::string(error.what()).find("no step of its own") != std::string::npos,
               error.what());
    return;
  }
  const std::vector<double> truth = gradient("bptt");
  double error = 0.0, scale = 0.0;
  for (std::size_t i = 0; i < own.size(); ++i) {
    scale = std::max(scale, std::abs(truth[i]));
    error = std::max(error, std::abs(own[i] - truth[i]));
  }
  test::measured(architecture.id, "forcing", error / scale);
  CHECK_SAYS(error <= 1e-12 * scale, test::show(error) + " of " + test::show(scale));
}

SWEEP_ARCHITECTURES("rules that draw signs have the mean that they should", architecture) {
  const Preset preset = test::preset_of(architecture.id);
  const Hyper hyper = hyper_of(builtin_registry(), preset, test::small_settings(preset));
  constexpr std::int64_t width = 2, head = 2;
  const Parameters parameters = Network(architecture, hyper, {.input = width, .head = head}).initialise(2);
  const Model model(architecture, hyper, parameters, cpu_backend(), DType::f64);
  std::unique_ptr<StepMap> step;
  try {
    step = std::make_unique<StepMap>(model, width, head);
  } catch (const Error&) {
    return;  // it has no step of its own
  }
  if (!test::thorough() && step->states() * step->states() * step->weights() > 4'000'000) return;
  Rng rng(3);
  std::vector<std::vector<double>> inputs(3, std::vector<double>(width)), states{step->start()};
  for (auto& input : inputs)
    for (double& x : input) x = rng.normal();
  const auto at = [&](std::size_t t) { step->evaluate(states[t], inputs[t]); };
  for (std::size_t t = 0; t < 2; ++t) {
    at(t);
    states.push_back(step->next());
  }
  // The gradient of the loss of the third step by weights that act at the two before it.
  const std::vector<double> adjoint{1.0, -0.5};
  const auto gradient = [&](Influence& influence, const Signs& signs) {
    influence.start(signs);
    for (std::size_t t = 0; t < 2; ++t) {
      at(t);
      influence.advance(*step, true);
    }
    at(2);
    std::vector<double> sum(step->weights());
    influence.credit(*step, adjoint, false, sum);
    return sum;
  };
  const OnlineSetup setup{model, TrainingOptions(), width, head};
  const auto mean_of_two = [&](const std::string& rule, std::vector<double> signs, std::size_t turned) {
    const auto influence = learning_rule(rule).online(setup).influence();
    std::vector<double> mean(step->weights());
    for (int turn = 0; turn < 2; ++turn) {
      std::size_t drawn = 0;
      const auto one = gradient(*influence, [&] { return signs.at(drawn++); });
      CHECK(drawn == signs.size() || rule != "uoro");
      for (std::size_t w = 0; w < mean.size(); ++w) mean[w] += 0.5 * one[w];
      for (std::size_t i = turned; i < signs.size(); ++i) signs[i] = -signs[i];
    }
    return mean;
  };
  const auto compare = [&](const std::string& rule, const std::vector<double>& own, const std::vector<double>& expected) {
    double scale = 0.0, error = 0.0;
    for (const double value : expected) scale = std::max(scale, std::abs(value));
    for (std::size_t w = 0; w < own.size(); ++w) error = std::max(error, std::abs(own[w] - expected[w]));
    test::measured(architecture.id, rule + "-mean", scale > 0.0 ? error / scale : error);
    CHECK_SAYS(error <= 1e-12 * scale, rule + " " + test::show(error) + " of " + test::show(scale));
  };

  // UORO with the signs mu of the first step, over nu and -nu of the second: g J mu mu^T D[0] + g nu nu^T D[1], in which no sign of one
  // step meets one of the other.
  const std::size_t n = step->states();
  std::vector<double> signs(2 * n);
  const Signs draw = signs_of(1, 1, 0);
  for (double& sign : signs) sign = draw();
  const std::span<const double> mu(signs.data(), n), nu(signs.data() + n, n);
  at(0);
  step->pull_back(mu, {});
  const std::vector<double> first = step->weight_adjoint();
  at(1);
  step->pull_back(nu, {});
  const std::vector<double> second = step->weight_adjoint();
  step->push_forward(mu, {});
  const std::vector<double> carried = step->next_move();
  at(2);
  step->pull_back({}, adjoint);
  double of_first = 0.0, of_second = 0.0;
  for (std::size_t i = 0; i < n; ++i) {
    of_first += step->state_adjoint()[i] * carried[i];
    of_second += step->state_adjoint()[i] * nu[i];
  }
  std::vector<double> expected(step->weights());
  for (std::size_t w = 0; w < expected.size(); ++w) expected[w] = of_first * first[w] + of_second * second[w];
  compare("uoro", mean_of_two("uoro", signs, n), expected);

  // KF-RTRL is RTRL after a first step, and in the mean over one sign of the second.
  try {
    const auto own = mean_of_two("kf-rtrl", {1.0, 1.0, 1.0, 1.0}, 3);
    compare("kf-rtrl", own, gradient(*learning_rule("rtrl").online(setup).influence(), {}));
  } catch (const Error& error) {
    CHECK_SAYS(std::string(error.what()).find("do not act as a matrix") != std::string::npos, error.what());
  }
}
