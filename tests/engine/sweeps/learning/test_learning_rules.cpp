// SPDX-License-Identifier: GPL-3.0-or-later
// Every rule that says of a model that its gradients are exact has those of backpropagation, for every architecture that it takes.
#include <algorithm>
#include <cmath>

#include "array/backend.h"
#include "array/error.h"
#include "array/host.h"
#include "execution/step_map.h"
#include "learning/examples.h"
#include "learning/learning_rule.h"
#include "learning/losses.h"
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
      if (!info.online) continue;
      std::unique_ptr<LearningRule> rule;
      try {
        rule = make(info.id);
      } catch (const Error& error) {
        CHECK_SAYS(std::string(error.what()).find("choose") != std::string::npos ||
                       std::string(error.what()).find("no step of its own") != std::string::npos,
                   error.what());
        continue;
      }
      CHECK_SAYS(rule->exact() || info.gradient != GradientKind::exact, info.id);
      CHECK_SAYS(rule->exact() || info.id != "snap", "it has all steps that it can");
      std::vector<double> own;
      try {
        own = gradient_of(*rule, batch, model);
      } catch (const Error& end) {  // where rounding grew too far, the rule says so itself
        CHECK_SAYS(info.id == "forward-errors", end.what());
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
