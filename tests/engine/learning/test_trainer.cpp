// SPDX-License-Identifier: GPL-3.0-or-later
#include "learning/trainer.h"

#include <cmath>
#include <string>
#include <vector>

#include "models/registry.h"
#include "one_processor.h"
#include "test.h"

using namespace reclab;

namespace {

/// A model that learns a task, and its trainer.
struct Learner {
  const Architecture& architecture;
  Hyper hyper;
  std::unique_ptr<Examples> examples;
  std::unique_ptr<Model> model;
  std::unique_ptr<Trainer> trainer;

  explicit Learner(const TrainingOptions& options, const std::string& id = "lstm", std::int64_t length = 20, const std::string& task = "adding")
      : architecture(builtin_registry().find(id)), hyper(architecture.hyper), examples(task_examples(task, {.length = length, .seed = 3})) {
    hyper.set_text("width", "8", id);
    const Sequence one = examples->training(0, 0);
    const SequenceLoss loss(LossKind::task, one);
    model = std::make_unique<Model>(architecture, hyper, Network(architecture, hyper, {.input = one.width, .head = loss.outputs()}).initialise(1), cpu_backend(), DType::f64);
    trainer = std::make_unique<Trainer>(*model, *examples, options);
  }
  std::vector<double> numbers() const {
    std::vector<double> all;
    const Parameters weights = model->parameters();
    for (const auto& entry : weights.entries()) all.insert(all.end(), entry.values.begin(), entry.values.end());
    return all;
  }
  /// Everything that training so many steps makes.
  std::vector<double> after(int steps) {
    std::vector<double> all;
    for (int i = 0; i < steps; ++i) {
      const TrainingStep step = trainer->step();
      all.insert(all.end(), {step.loss, step.norm, step.clipped});
    }
    const Judgement judged = trainer->judge();
    all.insert(all.end(), {judged.loss, judged.metric});
    const auto weights = numbers();
    all.insert(all.end(), weights.begin(), weights.end());
    return all;
  }
};

TrainingOptions small(std::int64_t batch = 6) {
  TrainingOptions options;
  options.batch = batch;
  options.rate.rate = 0.01;
  options.held_out = 12;
  return options;
}

std::vector<double> trained() { return Learner(small(32), "lstm", 50).after(6); }

}  // namespace

TEST_CASE("a judgement is of what is held out, by the task's metric, beside the best constant output") {
  Learner adding(small());
  const Judgement before = adding.trainer->judge();
  double loss = 0.0, mean = 0.0, squares = 0.0;
  for (std::int64_t i = 0; i < 12; ++i) {
    const Sequence sequence = adding.examples->held_out(i);
    const SequenceLoss own(LossKind::task, sequence);
    Rollout rollout(*adding.model, Batch(sequence, own), {.record = false});
    CHECK(!rollout.forward({}, {}));
    loss += rollout.loss() / 12.0;
    mean += sequence.target.back() / 12.0;
    squares += sequence.target.back() * sequence.target.back() / 12.0;
  }
  CHECK_CLOSE(before.loss, loss, 1e-12);
  CHECK_EQUAL(adding.trainer->metric(), "squared error");
  CHECK_CLOSE(before.metric, 2.0 * before.loss, 1e-12);
  CHECK_CLOSE(adding.trainer->baseline().metric, squares - mean * mean, 1e-12);
  CHECK_CLOSE(adding.trainer->baseline().loss, (squares - mean * mean) / 2.0, 1e-12);
  CHECK_EQUAL(adding.trainer->held_out(), 12);

  Learner copy(small(), "gru", 30, "copy");
  CHECK_EQUAL(copy.trainer->metric(), "accuracy");
  const Judgement judged = copy.trainer->judge();
  CHECK(judged.metric >= 0.0 && judged.metric <= 1.0);
  CHECK(copy.trainer->baseline().metric > 0.0 && copy.trainer->baseline().metric < 0.5);
  CHECK_SAYS(std::abs(copy.trainer->baseline().loss - std::log(8.0)) < 0.1, test::show(copy.trainer->baseline().loss));
}

TEST_CASE("a batch's gradient is the mean of those of its sequences") {
  TrainingOptions options = small(6);
  options.optimiser.rule = OptimiserOptions::Rule::sgd;
  Learner together(options), start(options);
  together.trainer->step();
  const auto before = start.numbers(), after = together.numbers();
  std::vector<double> mean(before.size());
  for (std::int64_t b = 0; b < 6; ++b) {
    const Sequence sequence = start.examples->training(0, b);
    const SequenceLoss loss(LossKind::task, sequence);
    Rollout rollout(*start.model, Batch(sequence, loss), {.record = false});
    CHECK(!rollout.forward({}, {}));
    CHECK(!rollout.backward({}, {}));
    std::size_t at = 0;
    for (const auto& weight : start.model->weights())
      for (const double g : rollout.parameter_gradients().at(weight.name)) mean[at++] += g / 6.0;
  }
  for (std::size_t i = 0; i < mean.size(); ++i) CHECK_CLOSE((before[i] - after[i]) / options.rate.rate, mean[i], 1e-12);
}

TEST_CASE("clipping shortens the gradient to its norm, or cuts its entries") {
  TrainingOptions options = small();
  options.clip_norm = 0.05;
  Learner by_norm(options);
  const TrainingStep step = by_norm.trainer->step();
  CHECK(step.norm > 0.05);
  CHECK_CLOSE(step.clipped, 0.05 * step.norm / (step.norm + 1e-6), 1e-12);
  options.clip_norm = 1e3;
  Learner not_clipped(options);
  const TrainingStep free = not_clipped.trainer->step();
  CHECK_EQUAL(free.clipped, free.norm);
  CHECK_EQUAL(free.norm, step.norm);
  options.clip_norm = 0.0;
  options.clip_value = 0.003;
  options.optimiser.rule = OptimiserOptions::Rule::sgd;
  Learner by_value(options);
  const auto before = by_value.numbers();
  const TrainingStep cut = by_value.trainer->step();
  CHECK(cut.clipped < cut.norm);
  double largest = 0.0;
  const auto after = by_value.numbers();
  for (std::size_t i = 0; i < before.size(); ++i) largest = std::max(largest, std::abs(after[i] - before[i]) / options.rate.rate);
  CHECK_CLOSE(largest, 0.003, 1e-12);
}

TEST_CASE("frozen weights keep their bits, and take no part in the norm") {
  TrainingOptions options = small();
  options.frozen = {"0/weight_*", "head/bias"};
  Learner some(options);
  const Parameters before = some.model->parameters();
  some.trainer->watch_changes(true);
  for (int i = 0; i < 3; ++i) some.trainer->step();
  const Parameters after = some.model->parameters();
  for (std::size_t i = 0; i < before.entries().size(); ++i) {
    const std::string& name = before.entries()[i].name;
    const bool frozen = name.starts_with("0/weight_") || name == "head/bias";
    CHECK_SAYS((before.entries()[i].values == after.entries()[i].values) == frozen, name);
    CHECK_SAYS(std::isnan(some.trainer->changes()[i]) == frozen, name);
  }
  options.frozen = {"nothing"};
  CHECK_ERROR(Learner(options).trainer, "freeze = nothing is the name of no weights");
  options.frozen = {"*"};
  CHECK_ERROR(Learner(options).trainer, "leaves no weights");
}

TEST_CASE("changes are told in units of the weights") {
  TrainingOptions options = small();
  options.optimiser.rule = OptimiserOptions::Rule::sgd;
  Learner learner(options);
  const Parameters before = learner.model->parameters();
  learner.trainer->watch_changes(true);
  learner.trainer->step();
  const Parameters after = learner.model->parameters();
  for (std::size_t w = 0; w < before.entries().size(); ++w) {
    double change = 0.0, weight = 0.0;
    for (std::size_t i = 0; i < before.entries()[w].values.size(); ++i) {
      const double x = before.entries()[w].values[i], y = after.entries()[w].values[i];
      change += (y - x) * (y - x);
      weight += x * x;
    }
    CHECK_CLOSE(learner.trainer->changes()[w], std::sqrt(change / weight), 1e-12);
  }
}

TEST_CASE("truncated backpropagation of all steps is backpropagation, to the bit; of fewer it is not, and carries the state") {
  TrainingOptions options = small();
  const auto expected = Learner(options).after(4);
  for (const std::int64_t k : {20, 21, 1000}) {
    options.truncate = k;
    CHECK(Learner(options).after(4) == expected);
  }
  options.truncate = 7;
  Learner cut(options);
  CHECK(cut.after(4) != expected);
  // The target counts at the last step alone, so the weights change once a step.
  CHECK_EQUAL(cut.trainer->optimiser().steps(), 4);
  // Without changes of the weights the loss of all parts is that of the whole: the state is carried.
  CHECK_CLOSE(Learner(options).trainer->step().loss, expected[0], 1e-13);
}

TEST_CASE("a model whose state grows is refused where it cannot be truncated") {
  TrainingOptions options = small();
  options.truncate = 5;
  CHECK_ERROR(Learner(options, "transformer").trainer->step(), "cannot be continued");
}

TEST_CASE("one thread and several train the same weights to the bit") { CHECK(test::on_one_processor("writes what was trained") == trained()); }

TEST_CASE("writes what was trained") { test::write_numbers(trained); }

TEST_CASE("training that diverges says at which step and in which array, and changes nothing more") {
  TrainingOptions options = small();
  options.optimiser.rule = OptimiserOptions::Rule::sgd;
  options.rate.rate = 1e200;
  Learner learner(options);
  std::vector<double> before;
  std::string said;
  try {
    for (int i = 0; i < 100; ++i) {
      before = learner.numbers();
      learner.trainer->step();
    }
  } catch (const TrainingDiverged& diverged) {
    said = diverged.what();
    CHECK_EQUAL(diverged.step, learner.trainer->steps() + 1);
    CHECK(!diverged.array.empty());
  }
  CHECK_SAYS(said.find("--lr") != std::string::npos && said.find("non-finite") != std::string::npos, said);
  CHECK(learner.numbers() == before);
}

TEST_CASE("an LSTM learns to add") {
  Learner learner(small(16));
  for (int i = 0; i < 400; ++i) learner.trainer->step();
  const Judgement after = learner.trainer->judge();
  CHECK_SAYS(after.metric < 0.5 * learner.trainer->baseline().metric, test::show(after.metric) + ", baseline " + test::show(learner.trainer->baseline().metric));
}
