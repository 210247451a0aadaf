// SPDX-License-Identifier: GPL-3.0-or-later
// What tests of learning rules share: a model with drawn weights, and a batch that a rule learns from.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "array/host.h"
#include "learning/examples.h"
#include "learning/learning_rule.h"
#include "learning/losses.h"
#include "models/registry.h"
#include "sweep.h"

namespace reclab::test {

struct RuleCourse {
  std::deque<Sequence> batch;  ///< two sequences of a task
  std::unique_ptr<Model> model;
  TrainingOptions options;

  RuleCourse(const std::string& id, const std::string& task, std::int64_t length, const Settings& set) {
    const auto examples = task_examples(task, {.length = length, .seed = 4});
    for (std::int64_t b = 0; b < 2; ++b) batch.push_back(examples->training(0, b));
    const Architecture& architecture = builtin_registry().find(id);
    const Hyper hyper = hyper_of(builtin_registry(), preset_of(id), set);
    model = std::make_unique<Model>(architecture, hyper,
                                    Network(architecture, hyper, {.input = batch[0].width, .head = outputs()}).initialise(2), cpu_backend(),
                                    DType::f64);
    options.batch = 2;
  }
  std::int64_t outputs() const { return SequenceLoss(LossKind::task, batch[0]).outputs(); }
  /// The rule of the options.
  std::unique_ptr<LearningRule> rule(std::vector<bool> frozen = {}) const {
    return make_learning_rule({*model, options, batch[0].length, batch, std::move(frozen)});
  }
  /// The same after it has learned from the batch.
  std::unique_ptr<LearningRule> learned(std::vector<bool> frozen = {}) const {
    auto made = rule(std::move(frozen));
    made->begin(batch, 1);
    made->learn({});
    return made;
  }
};

/// The gradient of each weight, in their order.
inline std::vector<std::vector<double>> gradients_of(const Model& model, const LearningRule& rule) {
  std::vector<std::vector<double>> all;
  for (const DeviceArray& array : rule.gradients()) all.push_back(to_double(model.backend(), model.real(), array.data(), array.entries()));
  return all;
}

}  // namespace reclab::test
