// SPDX-License-Identifier: GPL-3.0-or-later
// Columns that are learned in stages: those of earlier stages stay to the bit, the stage that learns has the gradients of backpropagation,
// and it sees what the stages below have found.
#include <algorithm>
#include <cmath>
#include <deque>
#include <memory>
#include <string>
#include <vector>

#include "array/error.h"
#include "array/host.h"
#include "execution/step_map.h"
#include "learning/learning_rule.h"
#include "learning/trainer.h"
#include "models/registry.h"
#include "sweep.h"
#include "test.h"

using namespace reclab;

namespace {

constexpr std::int64_t stages = 3, width = 2, per_stage = 3;

struct Learner {
  std::unique_ptr<Examples> examples;
  std::deque<Sequence> batch;
  std::unique_ptr<Model> model;
  TrainingOptions options;

  explicit Learner(const std::string& id, const test::Settings& set, const std::string& task = "mackey-glass", DType real = DType::f64)
      : examples(task_examples(task, {.length = 12, .seed = 4})) {
    for (std::int64_t b = 0; b < 3; ++b) batch.push_back(examples->training(0, b));
    const Architecture& architecture = builtin_registry().find(id);
    const Hyper hyper = hyper_of(builtin_registry(), test::preset_of(id), set);
    const std::int64_t head = SequenceLoss(LossKind::task, batch[0]).outputs();
    model = std::make_unique<Model>(
        architecture, hyper, Network(architecture, hyper, {.input = batch[0].width, .head = head}).initialise(2), cpu_backend(), real);
    options.rule = "staged-columns";
    options.stage_steps = per_stage;
    options.batch = 3;
    options.held_out = 3;
    options.optimiser = {"adamw", {{"weight_decay", 0.1}}};
    options.rate.rate = 0.05;
  }
  std::unique_ptr<LearningRule> rule(const std::string& id) {
    options.rule = id;
    return make_learning_rule({*model, options, batch[0].length, batch});
  }
  std::vector<double> weights(const std::string& name) const {
    const Parameters now = model->parameters();
    for (const auto& entry : now.entries())
      if (entry.name == name) return entry.values;
    return {};
  }
  std::vector<double> gradient(const LearningRule& of, const std::string& name) const {
    for (std::size_t i = 0; i < model->weights().size(); ++i)
      if (const DeviceArray& array = of.gradients()[i]; model->weights()[i].name == name)
        return to_double(model->backend(), model->real(), array.data(), array.entries());
    return {};
  }
  std::vector<std::string> names() const {
    std::vector<std::string> all;
    for (const Model::Weight& weight : model->weights()) all.push_back(weight.name);
    return all;
  }
};

const test::Settings columns{{"width", std::to_string(width)}, {"stages", std::to_string(stages)}, {"start", "1"}};
std::int64_t stage_of(const std::string& name) { return name.starts_with("head/") ? -1 : name[0] - '0'; }

}  // namespace

TEST_CASE("columns of earlier stages stay to the bit, later ones are not read, and the read-out learns all the time") {
  for (const DType real : {DType::f64, DType::f32}) {
    Learner learner("columnar-lstm", columns, "mackey-glass", real);
    Trainer trainer(*learner.model, *learner.examples, learner.options);
    for (std::int64_t step = 0; step < per_stage * (stages + 1); ++step) {
      const std::int64_t stage = std::min(step / per_stage, stages - 1);
      std::vector<std::vector<double>> before;
      for (const std::string& name : learner.names()) before.push_back(learner.weights(name));
      trainer.step();
      for (std::size_t i = 0; i < before.size(); ++i) {
        const std::string name = learner.names()[i];
        if (const std::int64_t own = stage_of(name); own >= 0) {
          // The first change of a stage is that of the read-out alone, which has begun at 0.
          if (own != stage) CHECK_SAYS(learner.weights(name) == before[i], name + " at " + std::to_string(step));
          if (own == stage && step % per_stage > 0) CHECK_SAYS(learner.weights(name) != before[i], name + " at " + std::to_string(step));
        } else {
          CHECK_SAYS(learner.weights(name) != before[i], name + " at " + std::to_string(step));
        }
      }
      const std::vector<double> read = learner.weights("head/weight");
      CHECK_EQUAL(read.size(), static_cast<std::size_t>(stages * width));
      for (std::size_t j = 0; j < read.size(); ++j) CHECK_EQUAL(read[j] == 0.0, static_cast<std::int64_t>(j) >= (stage + 1) * width);
    }
  }
}

TEST_CASE("the stage that learns has the gradients of backpropagation, and learns from the columns below") {
  for (const std::string task : {"mackey-glass", "parity", "adding"}) {
    Learner learner("columnar-lstm", columns, task);
    const auto rule = learner.rule("staged-columns"), truth = learner.rule("bptt");
    for (std::int64_t stage = 0; stage < stages; ++stage) {
      rule->begin(learner.batch, 1 + stage * per_stage);
      if (stage > 0) {  // its columns of the read-out are 0 when it begins
        std::vector<double> read = learner.weights("head/weight");
        const auto of_row = static_cast<std::size_t>(stages * width);
        for (std::size_t i = 0; i < read.size(); ++i)
          if (static_cast<std::int64_t>(i % of_row) / width == stage) read[i] = 0.3 + 0.1 * static_cast<double>(i);
        learner.model->set("head/weight", read);
        rule->begin(learner.batch, 1 + stage * per_stage);
      }
      rule->learn({});
      truth->begin(learner.batch, 1);
      truth->learn({});
      for (const std::string& name : learner.names()) {
        const std::vector<double> own = learner.gradient(*rule, name);
        std::vector<double> expected = learner.gradient(*truth, name);
        double largest = 0.0;
        for (const double value : expected) largest = std::max(largest, std::abs(value));
        if (const std::int64_t of = stage_of(name); of >= 0 && of != stage) std::ranges::fill(expected, 0.0);
        if (name == "head/weight")
          for (std::size_t i = 0; i < expected.size(); ++i)
            if (static_cast<std::int64_t>(i) % (stages * width) >= (stage + 1) * width) expected[i] = 0.0;
        for (std::size_t i = 0; i < own.size(); ++i)
          CHECK_SAYS(std::abs(own[i] - expected[i]) <= 1e-12 * largest, task + " " + name + " " + test::show(own[i] - expected[i]));
        if (stage_of(name) == stage) CHECK(largest > 1e-9);
      }
      // The columns of W behind the input's are of the features below.
      const std::string name = std::to_string(stage) + "/weight_ih";
      const std::vector<double> own = learner.gradient(*rule, name);
      const auto input = static_cast<std::size_t>(learner.batch[0].width), sees = own.size() / (4 * width);
      CHECK_EQUAL(sees, input + static_cast<std::size_t>(stage * width));
      for (std::size_t j = input; j < sees; ++j) {
        double of_feature = 0.0;
        for (std::size_t i = 0; i < 4 * width; ++i) of_feature = std::max(of_feature, std::abs(own[i * sees + j]));
        CHECK_SAYS(of_feature > 1e-9, name + " column " + std::to_string(j));
      }
    }
  }
}

TEST_CASE("a single stage is exact, and its influence is that of its own columns") {
  Learner whole("columnar-lstm", {{"width", "6"}, {"stages", "1"}});
  CHECK(whole.rule("staged-columns")->exact());
  Learner learner("columnar-lstm", {{"width", "6"}, {"stages", "3"}});
  const auto rule = learner.rule("staged-columns");
  CHECK(!rule->exact());
  const std::int64_t first = rule->bytes();
  rule->begin(learner.batch, 1 + 2 * per_stage);
  CHECK(rule->bytes() > first);  // the last stage sees more
  CHECK(rule->bytes() < learner.rule("diagonal-rtrl")->bytes() * 2);
  CHECK(Learner("indrnn", {{"width", "4"}, {"layers", "1"}}).rule("staged-columns")->exact());
}

TEST_CASE("models and options that it does not take are refused with a sentence") {
  CHECK_ERROR(Learner("elman", {{"width", "4"}}).rule("staged-columns"), "neither diagonal nor in blocks");
  CHECK_ERROR(Learner("indrnn", {{"width", "4"}, {"layers", "2"}}).rule("staged-columns"), "sees those of the last alone");
  CHECK_ERROR(Learner("lru", {{"width", "4"}}).rule("staged-columns"), "linear read-out");
  Learner learner("columnar-lstm", columns);
  learner.options.stage_steps = 0;
  CHECK_ERROR(learner.rule("staged-columns"), "stage_steps is out of range");
}
